package predicate

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Bound bounds the list of a new or a changed row. Its SQL is for a trigger of pgconsent, which runs as the reader: a
// row policy cannot read the row as it was before an UPDATE.
type Bound struct {
	List
	Type string // the type of the column

	// From: the first of these that is not empty is the default of the list where the agent leaves the column out, and
	// the list's bound where it does not. Nil: a new row's list is not bounded.
	From []Source

	Narrow bool // the list of a row may get smaller only
	Wider  Node // condition on the row for each additional element; nil: none may be added

	Chain *Chain // bounds the list as well, Wider or not; nil: rows refer to no others
}

// Source is a list of ids that a bound is made of: columns of the row, or of the one row of Relation that matches.
type Source struct {
	When     Node // the condition on the new row under which the source applies; nil: always
	Relation *catalog.Relation
	Match    []Pair
	Where    Node // the condition on the row of Relation; nil: any row
	Columns  []List
	One      []bool // for each of Columns, whether it holds one id instead of a list
}

// Nodes are the conditions that a bound reads, as parts of a predicate on the row: helper views are made for them.
func (b Bound) Nodes() []Node {
	var out []Node
	if b.Wider != nil {
		out = append(out, b.Wider)
	}
	for _, s := range b.From {
		if s.When != nil {
			out = append(out, s.When)
		}
		if s.Relation != nil {
			out = append(out, sourceNode{s})
		}
	}
	if b.Chain != nil {
		out = append(out, chainNode{*b.Chain, b.Column})
	}
	return out
}

// sourceNode makes [Helpers] find the table of a source, so that it has a helper view. It is part of no rule.
type sourceNode struct{ Source }

func (sourceNode) node() {}

func (s Source) columns() []string {
	var out []string
	for _, p := range s.Match {
		out = append(out, p.Column)
	}
	for _, l := range s.Columns {
		out = append(out, l.Column)
	}
	return out
}

// newRow and oldRow are the names of a trigger's rows.
const newRow, oldRow = "NEW", "OLD"

// Malformed is true unless the new row's list is one-dimensional and has no NULL.
func (b Bound) Malformed() string {
	list := b.arraySQL(newRow)
	return "(CASE WHEN " + list + " IS NULL OR COALESCE(pg_catalog.array_ndims(" + list +
		"), 1) OPERATOR(pg_catalog.<>) 1 THEN true ELSE pg_catalog.array_position(" + list + ", NULL) IS NOT NULL END)"
}

// Elements is the list of the new row or the old one, as an array.
func (b Bound) Elements(old bool) string {
	if old {
		return b.arraySQL(oldRow)
	}
	return b.arraySQL(newRow)
}

// Array is the type of the array that lists are compared as.
func (b Bound) Array() string { return b.Form.element() + "[]" }

// DefaultList is the list of a new row where the agent leaves it out, as an array.
func (b Bound) DefaultList() string {
	parts := make([]string, 0, len(b.From)+1)
	for _, s := range b.From {
		parts = append(parts, s.sql(b.Array()))
	}
	return "COALESCE(" + strings.Join(append(parts, "'{}'::"+b.Array()), ",\n    ") + ")"
}

// Stored turns an array into a value of the column.
func (b Bound) Stored(array string) string {
	switch b.Form {
	case GrantJSONB:
		return "pg_catalog.to_jsonb(" + array + ")"
	case GrantJSON:
		return "pg_catalog.to_jsonb(" + array + ")::pg_catalog.text::" + b.Type
	}
	return array + "::" + b.Type
}

// Exceeds is true if some element of the new row's list is neither in allowed nor permitted by Wider. Where the row
// refers to another one along the chain (the trigger's variable told), the word for everybody in allowed permits each.
func (b Bound) Exceeds(allowed string, chained bool) string {
	w := writer{policy: true, form: probe, prefix: prefixFor(strings.ToLower(newRow)), element: "e.id"}
	more := ""
	if b.Wider != nil {
		more = " AND (" + strings.Join(append(guards(attributesToGuard(b.Wider)), w.write(b.Wider, newRow)),
			" AND ") + ") IS NOT TRUE"
	}
	if chained && b.Chain != nil && b.Chain.All != "" {
		more += " AND (told IS NOT NULL AND " + oneOf(b.everybodySQL(), allowed) + ") IS NOT TRUE"
	}
	return "EXISTS (SELECT 1 FROM pg_catalog.unnest(" + b.arraySQL(newRow) + ") AS e (id) WHERE (" +
		oneOf("e.id", allowed) + ") IS NOT TRUE" + more + ")"
}

// sql is an expression for the source's ids; its value is NULL if the source does not apply, or is empty.
func (s Source) sql(array string) string {
	w := writer{policy: true, form: probe, prefix: "s"}
	row := newRow
	if s.Relation != nil {
		row = "t"
	}
	lists := make([]string, len(s.Columns))
	for i, l := range s.Columns {
		if s.One[i] {
			lists[i] = "pg_catalog.array_remove(ARRAY[" + column(row, l.Column) + "]::" + array + ", NULL)"
		} else {
			lists[i] = "ARRAY(SELECT u.id FROM pg_catalog.unnest(" + l.arraySQL(row) + ") AS u (id) WHERE u.id IS NOT NULL)"
		}
	}
	out := "(" + strings.Join(lists, " OPERATOR(pg_catalog.||) ") + ")"
	if s.Relation != nil {
		where := pairConditions(s.Match, row, newRow)
		if s.Where != nil {
			where = append(append(guards(attributesToGuard(s.Where)), where...), w.write(s.Where, row))
		}
		if len(where) == 0 {
			where = []string{"true"}
		}
		// A source with two matching rows is ambiguous and counts as none.
		out = "(SELECT q.ids FROM (SELECT " + out + " AS ids, pg_catalog.count(*) OVER () AS n FROM " +
			HelperView(s.Relation.Name).SQL() + " AS " + row +
			" WHERE " + strings.Join(where, " AND ") + ") AS q WHERE q.n OPERATOR(pg_catalog.=) 1)"
	}
	if s.When != nil {
		out = "CASE WHEN " + strings.Join(append(guards(attributesToGuard(s.When)), w.write(s.When, newRow)), " AND ") +
			" THEN " + out + " END"
	}
	return "NULLIF(" + out + ", '{}'::" + array + ")"
}

// OfNewRow writes n as a condition on the new row of a trigger that runs as the reader.
func OfNewRow(n Node) string {
	w := writer{policy: true, form: probe, prefix: "r"}
	return strings.Join(append(guards(attributesToGuard(n)), w.write(n, newRow)), " AND ")
}

// OmittedMark is the comment in front of a statement whose INSERTs into a table all leave a column out. The trigger
// that fills the column in could not know it otherwise: it sees the column's default. The mark is no security input:
// the agent may write the filled-in list anyway.
func OmittedMark(table catalog.Name, column string) string {
	return "/*" + omittedMarkText(table, column) + "*/"
}

func omittedMarkText(table catalog.Name, column string) string {
	sum := sha256.Sum256([]byte(table.Schema + "\x00" + table.Name + "\x00" + column))
	return "pgconsent:left " + hex.EncodeToString(sum[:8])
}

// ColumnOmitted is the trigger's test for the mark: in the text that runs, or in the text of the prepared statement
// that it executes, by the name that the proxy gave it.
func ColumnOmitted(table catalog.Name, column string) string {
	mark := catalog.QuoteLiteral(omittedMarkText(table, column))
	in := func(text string) string {
		return "pg_catalog.strpos(pg_catalog.substr(" + text + ", 1, 2000), " + mark + ") OPERATOR(pg_catalog.>) 0"
	}
	return "(" + in("pg_catalog.current_query()") +
		" OR EXISTS (SELECT FROM pg_catalog.pg_prepared_statements AS q WHERE q.from_sql AND q.name " +
		"OPERATOR(pg_catalog.=) " + executedName + " AND " + in("q.statement") + "))"
}

// executedName is the name of the prepared statement that the text executes; NULL if it does something else, or begins
// with a comment that contains a star: then the column keeps the table's default. The settings of a hardened plan
// (package verdict) may come before it.
const (
	executePattern = `^(?:\s|/\*[^*]*\*/|SET LOCAL [a-z_]+ = [a-z0-9_]+;)*[Ee][Xx][Ee][Cc][Uu][Tt][Ee]\s+`
	executedName   = "COALESCE(pg_catalog.replace(pg_catalog.substring(pg_catalog.current_query(), '" +
		executePattern + `"((?:[^"]|"")+)"` + "'), '\"\"', '\"'), pg_catalog.substring(pg_catalog.current_query(), '" +
		executePattern + "([a-z_][a-z0-9_]*)'))"
)

// OmittedDefault is a value that means that the column was left out. It is the default of the view that COPY writes to,
// where the text does not tell. It is no valid list, so it collides with none; an agent that writes it gets the default
// list. "" where the column's type has no such value.
func (b Bound) OmittedDefault() string {
	switch {
	case strings.HasSuffix(b.Type, "[]"):
		return "'[7432:7432]={NULL}'::" + b.Type
	case b.Type == "text", b.Type == "character varying", b.Type == "json", b.Type == "jsonb":
		return `'"pgconsent:left"'::` + b.Type
	}
	return ""
}

// IsOmittedDefault is the trigger's test whether the new row's list is that value.
func (b Bound) IsOmittedDefault() string {
	left := b.OmittedDefault()
	if left == "" {
		return "false"
	}
	return "(" + column(newRow, b.Column) + "::pg_catalog.text OPERATOR(pg_catalog.=) " + left + "::pg_catalog.text) IS TRUE"
}

// ListFunction is the trigger function that checks the lists of a table against their bounds.
func ListFunction(table catalog.Name) catalog.Name {
	return catalog.Name{Schema: Schema, Name: objectName("lists_", table)}
}
