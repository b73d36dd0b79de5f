package predicate

import (
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// ListChain says by which columns a row refers to another row of its own table, as a memory refers to the memory that
// it was derived from. The row's list may only have ids that are in the lists of all rows along the chain. A row of the
// chain allows no id if it does not exist, is hidden from the writer, or has no list. A cycle, or a chain longer than
// [MaxDepth], allows no id either.
type ListChain struct {
	Relation *catalog.Relation
	// MatchedColumns are columns of the row that is referred to, each with the column of the referring row that equals it.
	MatchedColumns []ColumnPair
	EverybodyWord  string // a word for everybody: a list that has it allows every id; "": there is none
	Rows           Node   // the table's rule, which the rows of the chain must meet
}

// listChainNode lets [LookupTables] find the table of a chain, so that the table gets a lookup view. It is part of no
// rule.
type listChainNode struct {
	ListChain
	list string
}

func (listChainNode) node() {}

func (n listChainNode) columns() []string {
	out := []string{n.list}
	for _, p := range n.MatchedColumns {
		out = append(out, p.Column, p.FromColumn)
	}
	return out
}

// hasParentSQL returns an SQL condition that is true if the row refers to another row.
func (c ListChain) hasParentSQL(row string) string {
	var notNulls []string
	for _, p := range c.MatchedColumns {
		notNulls = append(notNulls, columnSQL(row, p.FromColumn)+" IS NOT NULL")
	}
	return "(" + strings.Join(notNulls, " OR ") + ")"
}

// allowsSQL returns an SQL condition that is true if this list of the chain, an array, allows the element.
func (b ListBound) allowsSQL(array, element string) string {
	if b.Chain.EverybodyWord == "" {
		return oneOfSQL(element, array)
	}
	return oneOfSQL(element, array) + " OR " + oneOfSQL(b.everybodySQL(), array)
}

func (b ListBound) everybodySQL() string {
	return catalog.QuoteLiteral(b.Chain.EverybodyWord) + "::" + b.Form.elementType()
}

// ChainIntersectionSQL returns the SQL expression of the ids that are in all lists along the chain of the new row, as
// an array in the order of the first list. It is empty if the chain is broken, and NULL if the new row refers to no
// other row.
func (b ListBound) ChainIntersectionSQL() string {
	c := b.Chain
	const each, row = "c", "t"
	w := predicateWriter{forRowPolicy: true, sublinks: probeForm, prefix: "s"}
	shows := strings.Join(append(guardConditions(attributesToGuard(c.Rows)), w.nodeSQL(c.Rows, row)), " AND ")
	var names, froms, first, next []string
	for i, p := range c.MatchedColumns {
		name := "f" + strconv.Itoa(i+1)
		names, froms = append(names, name), append(froms, columnSQL(row, p.FromColumn))
		first = append(first, equalSQL(columnSQL(row, p.Column), columnSQL(newRow, p.FromColumn)))
		next = append(next, equalSQL(columnSQL(row, p.Column), each+"."+name))
	}
	link := func(depth string) string {
		return "SELECT " + strings.Join(froms, ", ") + ", " + c.hasParentSQL(row) + ", " + b.arraySQL(row) + ", (" + shows +
			") IS TRUE, " + depth
	}
	view := LookupView(c.Relation.Name).SQL() + " AS " + row
	member := "EXISTS (SELECT 1 FROM c AS m WHERE (" + b.allowsSQL("m.ids", "e.id") + ") IS NOT TRUE)"
	return "CASE WHEN " + c.hasParentSQL(newRow) + " THEN (WITH RECURSIVE c (" + strings.Join(names, ", ") +
		", leads, ids, shows, depth) AS (\n      " +
		link("1") + " FROM " + view + " WHERE " + strings.Join(first, " AND ") + "\n      UNION ALL " +
		link("c.depth OPERATOR(pg_catalog.+) 1") + " FROM c JOIN " + view + " ON " + strings.Join(next, " AND ") +
		" WHERE c.shows AND c.depth OPERATOR(pg_catalog.<=) " + strconv.Itoa(MaxDepth) + ")\n" +
		"    SELECT CASE WHEN pg_catalog.bool_and(c.shows) AND pg_catalog.count(*) FILTER (WHERE NOT c.leads) " +
		"OPERATOR(pg_catalog.=) 1\n" +
		"      THEN ARRAY(SELECT e.id FROM c AS f, pg_catalog.unnest(f.ids) WITH ORDINALITY AS e (id, n) WHERE " +
		"e.id IS NOT NULL AND NOT " + member +
		" GROUP BY e.id ORDER BY pg_catalog.min(f.depth), pg_catalog.min(e.n))::" + b.ArrayType() + " ELSE '{}'::" +
		b.ArrayType() + " END FROM c) END"
}

// LimitToChainSQL returns the SQL expression of the list that is stored in a new row if the agent leaves the column out.
// given is the list that the row would get otherwise, and allowedByChain what the rows allow from which the new row is
// derived; NULL: it is derived from none. The result has the elements of given that are allowed, or all that are
// allowed if given is empty. Both arguments are SQL expressions of arrays.
func (b ListBound) LimitToChainSQL(given, allowedByChain string) string {
	return "CASE WHEN " + allowedByChain + " IS NULL THEN " + given + " WHEN pg_catalog.cardinality(" + given +
		") OPERATOR(pg_catalog.=) 0 THEN " + allowedByChain +
		" ELSE ARRAY(SELECT e.id FROM pg_catalog.unnest(" + given + ") AS e (id) WHERE " + b.allowsSQL(allowedByChain,
		"e.id") +
		")::" + b.ArrayType() + " END"
}

// ExceedsChainSQL returns an SQL condition that is true if the new row's list has an element that the array before does
// not have and that the chain does not allow.
func (b ListBound) ExceedsChainSQL(allowedByChain, before string) string {
	return allowedByChain + " IS NOT NULL AND EXISTS (SELECT 1 FROM pg_catalog.unnest(" + b.arraySQL(newRow) +
		") AS e (id) WHERE (" + b.allowsSQL(allowedByChain, "e.id") + ") IS NOT TRUE AND (" + oneOfSQL("e.id",
		before) + ") IS NOT TRUE)"
}
