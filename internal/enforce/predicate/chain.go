package predicate

import (
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Chain says to which row of its own table a row refers (as a memory that was told from another), and so on. The row's
// list may only have ids that every list along the chain has. A row of the chain that does not exist, that the writer
// does not see or that has no list allows no id. A circle, or a chain deeper than [MaxDepth], allows no id either.
type Chain struct {
	Relation *catalog.Relation
	Match    []Pair // its column: the column of the row that it equals
	All      string // the word for everybody: a list that has it allows every id; "": there is none
	Rows     Node   // the whole rule of the table
}

// chainNode makes [Helpers] find the table of a chain, so that it has a helper view. It is part of no rule.
type chainNode struct {
	Chain
	list string
}

func (chainNode) node() {}

func (n chainNode) columns() []string {
	out := []string{n.list}
	for _, p := range n.Match {
		out = append(out, p.Column, p.From)
	}
	return out
}

// hasParentSQL is the condition that a row refers to another one.
func (c Chain) hasParentSQL(row string) string {
	var some []string
	for _, p := range c.Match {
		some = append(some, column(row, p.From)+" IS NOT NULL")
	}
	return "(" + strings.Join(some, " OR ") + ")"
}

// allowsSQL is the condition that a list along the chain, as an array, allows an element.
func (b Bound) allowsSQL(array, element string) string {
	if b.Chain.All == "" {
		return oneOf(element, array)
	}
	return oneOf(element, array) + " OR " + oneOf(b.everybodySQL(), array)
}

func (b Bound) everybodySQL() string {
	return catalog.QuoteLiteral(b.Chain.All) + "::" + b.Form.element()
}

// ChainIntersection is the intersection of the lists along the chain of the new row, as an array: in the order of the
// first list, empty where the chain is broken. NULL where the row refers to no other.
func (b Bound) ChainIntersection() string {
	c := b.Chain
	const each, row = "c", "t"
	w := writer{policy: true, form: probe, prefix: "s"}
	shows := strings.Join(append(guards(attributesToGuard(c.Rows)), w.write(c.Rows, row)), " AND ")
	var names, froms, first, next []string
	for i, p := range c.Match {
		name := "f" + strconv.Itoa(i+1)
		names, froms = append(names, name), append(froms, column(row, p.From))
		first = append(first, equal(column(row, p.Column), column(newRow, p.From)))
		next = append(next, equal(column(row, p.Column), each+"."+name))
	}
	link := func(depth string) string {
		return "SELECT " + strings.Join(froms, ", ") + ", " + c.hasParentSQL(row) + ", " + b.arraySQL(row) + ", (" + shows +
			") IS TRUE, " + depth
	}
	view := HelperView(c.Relation.Name).SQL() + " AS " + row
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
		" GROUP BY e.id ORDER BY pg_catalog.min(f.depth), pg_catalog.min(e.n))::" + b.Array() + " ELSE '{}'::" +
		b.Array() + " END FROM c) END"
}

// CutToChain is the list of a new row where the agent leaves it out: the given elements that the chain allows, or all
// that the chain allows where none is given. Both are arrays.
func (b Bound) CutToChain(given, told string) string {
	return "CASE WHEN " + told + " IS NULL THEN " + given + " WHEN pg_catalog.cardinality(" + given +
		") OPERATOR(pg_catalog.=) 0 THEN " + told +
		" ELSE ARRAY(SELECT e.id FROM pg_catalog.unnest(" + given + ") AS e (id) WHERE " + b.allowsSQL(told, "e.id") +
		")::" + b.Array() + " END"
}

// ExceedsChain is true if the chain does not allow some element of the new row's list that was not in before.
func (b Bound) ExceedsChain(told, before string) string {
	return told + " IS NOT NULL AND EXISTS (SELECT 1 FROM pg_catalog.unnest(" + b.arraySQL(newRow) +
		") AS e (id) WHERE (" + b.allowsSQL(told, "e.id") + ") IS NOT TRUE AND (" + oneOf("e.id", before) + ") IS NOT TRUE)"
}
