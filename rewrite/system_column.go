package rewrite

import (
	"google.golang.org/protobuf/proto"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// frozenXID is the xmin that agents see in each row of a catalog: FrozenTransactionId, which PostgreSQL regards as
// older than any other. The real xmin would tell how many transactions there have been.
const frozenXID = "('2'::pg_catalog.xid)"

// catalogSystemColumn replaces tableoid and xmin of a catalog by constants, because the shadow view in the catalog's
// place has no system columns. It tells whether it did. target is the result column if the reference stands alone in a
// target list.
func (w *walker) catalogSystemColumn(n *sqltext.Node, target *sqltext.ResTarget) bool {
	c := n.GetColumnRef()
	if w.refused != nil || len(c.Fields) != 2 {
		return false
	}
	name, ok := w.scope.catalogNamed(c.Fields[0].GetString_().GetSval())
	if !ok {
		return false
	}
	first := w.source.TokenAt(c.Location)
	if first < 0 || first+2 >= len(w.source.Tokens) || w.source.KindAt(first+1) != sqltext.Dot {
		return false
	}
	switch column := c.Fields[1].GetString_().GetSval(); column {
	case "tableoid":
		return w.replaceColumn(n, target, column, "("+catalog.QuoteLiteral(name.SQL())+"::pg_catalog.regclass::pg_catalog.oid)", first, first+2)
	case "xmin":
		return w.replaceColumn(n, target, column, frozenXID, first, first+2)
	}
	return false
}

// bareXmin replaces xmin without a qualifier by a constant, if the only item of FROM is a catalog. It is not called for
// ORDER BY and GROUP BY, where the name could mean a result column.
func (w *walker) bareXmin(n *sqltext.Node, target *sqltext.ResTarget) bool {
	c := n.GetColumnRef()
	if c == nil || w.refused != nil || len(c.Fields) != 1 || c.Fields[0].GetString_().GetSval() != "xmin" ||
		w.scope == nil || len(w.scope.items) != 1 {
		return false
	}
	name := w.scope.items[0].name
	if _, ok := w.scope.catalogNamed(name); !ok || w.scope.hasUnknownName {
		return false
	}
	tokenIndex := w.source.TokenAt(c.Location)
	return tokenIndex >= 0 && w.replaceColumn(n, target, "xmin", frozenXID, tokenIndex, tokenIndex)
}

// replaceColumn puts an expression in the place of a column reference, which consists of the tokens from first to last.
func (w *walker) replaceColumn(n *sqltext.Node, target *sqltext.ResTarget, column, text string, first, last int) bool {
	constant := parseExpression(text)
	if constant == nil {
		return false
	}
	w.countNode("ColumnRef")
	hasName := target != nil && target.Name == ""
	if hasName {
		text += " AS " + column
	}
	w.replace(w.source.Tokens[first].Start, w.source.Tokens[last].End, text, func() {
		n.Node = proto.Clone(constant).(*sqltext.Node).Node
		if hasName {
			target.Name = column
		}
	})
	return true
}

// catalogNamed returns the catalog that a qualifier before a column means. ok is false if some item of that name is not
// the catalog.
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
