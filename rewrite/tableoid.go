package rewrite

import (
	"google.golang.org/protobuf/proto"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// catalogOID writes a catalog's tableoid as a constant: the view in place of the catalog has no such column. It tells
// whether it did. target holds the reference if it is a result column by itself.
func (w *walker) catalogOID(n *sqltext.Node, target *sqltext.ResTarget) bool {
	c := n.GetColumnRef()
	if w.refused != nil || len(c.Fields) != 2 || c.Fields[1].GetString_().GetSval() != "tableoid" {
		return false
	}
	name, ok := w.scope.catalogNamed(c.Fields[0].GetString_().GetSval())
	if !ok {
		return false
	}
	first := w.source.At(c.Location)
	if first < 0 || first+2 >= len(w.source.Tokens) || w.source.Kind(first+1) != sqltext.Dot {
		return false
	}
	text := "(" + catalog.QuoteLiteral(name.SQL()) + "::pg_catalog.regclass::pg_catalog.oid)"
	constant := parseExpression(text)
	if constant == nil {
		return false
	}
	w.saw("ColumnRef")
	named := target != nil && target.Name == ""
	if named {
		text += " AS tableoid"
	}
	w.replace(w.source.Tokens[first].Start, w.source.Tokens[first+2].End, text, func() {
		n.Node = proto.Clone(constant).(*sqltext.Node).Node
		if named {
			target.Name = "tableoid"
		}
	})
	return true
}

// catalogNamed returns the catalog that a name in front of a column means, if all items of that name are that catalog.
func (s *scope) catalogNamed(item string) (name catalog.Name, ok bool) {
	for ; s != nil; s = s.parent {
		if s.hasUnknownName {
			return name, false
		}
		for _, i := range s.byName[item] {
			if i.ref == nil || i.ref.shadowView == (catalog.Name{}) || i.ref.relation == nil ||
				i.ref.relation.Kind != catalog.Table || ok && i.ref.name != name {
				return name, false
			}
			name, ok = i.ref.name, true
		}
	}
	return name, ok
}
