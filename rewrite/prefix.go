package rewrite

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// prefixSearch replaces "title LIKE 'abc%'" by "(title ^@ 'abc')" if an index on the column has byte order. For a text
// of the database's collation both mean the same. But PostgreSQL considers only ^@ leak-proof, so that it can use the
// index for ^@ under row security.
func (w *walker) prefixSearch(x *sqltext.A_Expr) {
	if w.refused != nil || w.repeated || x.Kind != sqltext.AEXPR_LIKE || len(x.Name) != 1 ||
		x.Name[0].GetString_().GetSval() != "~~" {
		return
	}
	column, pattern := x.Lexpr.GetColumnRef(), x.Rexpr.GetAConst()
	prefix, found := strings.CutSuffix(pattern.GetSval().GetSval(), "%")
	if column == nil || pattern.GetSval() == nil || !found || prefix == "" || strings.ContainsAny(prefix, `%_\`) ||
		!w.hasByteIndex(column) {
		return
	}
	// the text must be the column, LIKE and the pattern, and nothing else
	first := w.source.TokenAt(column.Location)
	last := w.source.TokenAt(pattern.Location)
	nameTokens := 2*len(column.Fields) - 1
	if first < 0 || last != first+nameTokens+1 || w.source.KindAt(last) != sqltext.Sconst ||
		w.source.TokenAt(x.Location) != first+nameTokens {
		return
	}
	start, end := w.source.Tokens[first].Start, w.source.Tokens[first+nameTokens-1].End
	w.replace(start, w.source.Tokens[last].End, "("+w.source.Text[start:end]+" OPERATOR(pg_catalog.^@) "+
		catalog.QuoteLiteral(prefix)+")", func() {
		x.Kind, x.Name = sqltext.AEXPR_OP, []*sqltext.Node{stringNode("pg_catalog"), stringNode("^@")}
		pattern.GetSval().Sval = prefix
	})
}

// hasByteIndex tells whether a name certainly means a text column with an index in byte order.
func (w *walker) hasByteIndex(c *sqltext.ColumnRef) bool {
	relation, column := w.storedColumn(c)
	return column != nil && column.Collation == "" && (column.TypeOID == 25 || column.TypeOID == 1043) &&
		slices.ContainsFunc(relation.BTrees, func(i catalog.BTree) bool {
			return i.InByteOrder &&
				i.Columns[0] == column.Name
		})
}

// storedColumn returns the column of a table that a name certainly means, and the table; nil if that is not certain.
func (w *walker) storedColumn(c *sqltext.ColumnRef) (*catalog.Relation, *catalog.Column) {
	item, column := w.storedColumnOf(c)
	if item == nil {
		return nil, nil
	}
	return item.ref.relation, column
}

// storedColumnOf returns the column of a table that a name certainly means, and the FROM item of the table.
func (w *walker) storedColumnOf(c *sqltext.ColumnRef) (*fromItem, *catalog.Column) {
	if w.scope == nil || len(c.Fields) == 0 || len(c.Fields) > 2 {
		return nil, nil
	}
	name := c.Fields[len(c.Fields)-1].GetString_().GetSval()
	var of *fromItem
	for _, item := range w.scope.items {
		if len(c.Fields) == 2 && item.name != c.Fields[0].GetString_().GetSval() {
			continue
		}
		if item.columns == nil || item.columns[name] && of != nil {
			return nil, nil
		}
		if item.columns[name] {
			of = item
		}
	}
	// The condition of a join cannot name the items before the join, so there the name may mean an outer column.
	for s := w.scope.parent; s != nil; s = s.parent {
		if slices.ContainsFunc(s.items, func(i *fromItem) bool { return i.columns == nil || i.columns[name] }) {
			return nil, nil
		}
	}
	// a masked column may have another type than the stored one
	if of == nil || of.ref == nil || of.ref.relation == nil || of.ref.fragment == nil ||
		of.ref.fragment.isPlain != nil && !of.ref.fragment.isPlain(name) {
		return nil, nil
	}
	return of, of.ref.relation.Column(name)
}
