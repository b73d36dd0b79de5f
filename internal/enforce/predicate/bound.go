package predicate

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// ListBound says which ids the list in a new or changed row may have. A trigger of pgconsent checks this, with the
// rights of the reader role: a row policy cannot read the row as it was before an UPDATE.
type ListBound struct {
	List
	Type string // the type of the list's column

	// PermittedIDs are sources of permitted ids, of which the first one with any ids counts. If the agent leaves the
	// column out, a new row gets these ids as its list. Nil: a new row may have any ids.
	PermittedIDs []ListSource

	MayOnlyRemove  bool // an UPDATE may only remove ids from the list, unless WiderCondition holds
	WiderCondition Node // a condition on the row under which an UPDATE may add an id; nil: it may add none

	Chain *ListChain // rows to which the row refers, and whose lists also bound its list; nil: there are none
}

// ListSource is a source of permitted ids: columns of the row itself, or of the only row of Relation that matches it.
type ListSource struct {
	AppliesIf      Node // a condition on the new row under which the source applies; nil: always
	Relation       *catalog.Relation
	MatchedColumns []ColumnPair
	RowCondition   Node // a condition on the row of Relation; nil: none
	Columns        []List
	SingleIDs      []bool // for each of Columns: whether it holds a single id and not a list
}

// Conditions returns the conditions that a bound needs, as nodes of a predicate on the row. From these, pgconsent finds
// the tables that need a lookup view.
func (b ListBound) Conditions() []Node {
	var out []Node
	if b.WiderCondition != nil {
		out = append(out, b.WiderCondition)
	}
	for _, s := range b.PermittedIDs {
		if s.AppliesIf != nil {
			out = append(out, s.AppliesIf)
		}
		if s.Relation != nil {
			out = append(out, listSourceNode{s})
		}
	}
	if b.Chain != nil {
		out = append(out, listChainNode{*b.Chain, b.Column})
	}
	return out
}

// listSourceNode lets [LookupTables] find the table of a ListSource, so that the table gets a lookup view. It is part
// of no rule.
type listSourceNode struct{ ListSource }

func (listSourceNode) node() {}

func (s ListSource) columns() []string {
	var out []string
	for _, p := range s.MatchedColumns {
		out = append(out, p.Column)
	}
	for _, l := range s.Columns {
		out = append(out, l.Column)
	}
	return out
}

// newRow and oldRow are the names that the rows have in a trigger function.
const newRow, oldRow = "NEW", "OLD"

// IsMalformedSQL returns an SQL condition that is true if the new row's list is no one-dimensional array, or contains
// NULL.
func (b ListBound) IsMalformedSQL() string {
	list := b.arraySQL(newRow)
	return "(CASE WHEN " + list + " IS NULL OR COALESCE(pg_catalog.array_ndims(" + list +
		"), 1) OPERATOR(pg_catalog.<>) 1 THEN true ELSE pg_catalog.array_position(" + list + ", NULL) IS NOT NULL END)"
}

// ElementsSQL returns the SQL expression of the list in the new row as an array, or in the old row if ofOldRow is true.
func (b ListBound) ElementsSQL(ofOldRow bool) string {
	if ofOldRow {
		return b.arraySQL(oldRow)
	}
	return b.arraySQL(newRow)
}

// ArrayType returns the array type in which SQL compares lists.
func (b ListBound) ArrayType() string { return b.Form.elementType() + "[]" }

// DefaultListSQL returns the SQL expression of the list that a new row gets if the agent leaves the column out, as an
// array.
func (b ListBound) DefaultListSQL() string {
	parts := make([]string, 0, len(b.PermittedIDs)+1)
	for _, s := range b.PermittedIDs {
		parts = append(parts, s.idsSQL(b.ArrayType()))
	}
	return "COALESCE(" + strings.Join(append(parts, "'{}'::"+b.ArrayType()), ",\n    ") + ")"
}

// ColumnValueSQL returns the SQL expression that converts an array into a value of the column.
func (b ListBound) ColumnValueSQL(array string) string {
	switch b.Form {
	case GrantJSONB:
		return "pg_catalog.to_jsonb(" + array + ")"
	case GrantJSON:
		return "pg_catalog.to_jsonb(" + array + ")::pg_catalog.text::" + b.Type
	}
	return array + "::" + b.Type
}

// ExceedsSQL returns an SQL condition that is true if some element of the new row's list is neither in allowed nor
// permitted by WiderCondition. If the row refers to another row (the trigger's variable told is not NULL), the word for
// everybody in allowed permits any element.
func (b ListBound) ExceedsSQL(allowed string, refersToRow bool) string {
	w := predicateWriter{forRowPolicy: true, sublinks: probeForm, prefix: aliasPrefixFor(strings.ToLower(newRow)),
		element: "e.id"}
	more := ""
	if b.WiderCondition != nil {
		more = " AND (" + strings.Join(append(guardConditions(attributesToGuard(b.WiderCondition)),
			w.nodeSQL(b.WiderCondition, newRow)),
			" AND ") + ") IS NOT TRUE"
	}
	if refersToRow && b.Chain != nil && b.Chain.EverybodyWord != "" {
		more += " AND (told IS NOT NULL AND " + oneOfSQL(b.everybodySQL(), allowed) + ") IS NOT TRUE"
	}
	return "EXISTS (SELECT 1 FROM pg_catalog.unnest(" + b.arraySQL(newRow) + ") AS e (id) WHERE (" +
		oneOfSQL("e.id", allowed) + ") IS NOT TRUE" + more + ")"
}

// idsSQL returns the SQL expression of the source's ids. It is NULL if the source does not apply or has no ids.
func (s ListSource) idsSQL(array string) string {
	w := predicateWriter{forRowPolicy: true, sublinks: probeForm, prefix: "s"}
	row := newRow
	if s.Relation != nil {
		row = "t"
	}
	lists := make([]string, len(s.Columns))
	for i, l := range s.Columns {
		if s.SingleIDs[i] {
			lists[i] = "pg_catalog.array_remove(ARRAY[" + columnSQL(row, l.Column) + "]::" + array + ", NULL)"
		} else {
			lists[i] = "ARRAY(SELECT u.id FROM pg_catalog.unnest(" + l.arraySQL(row) + ") AS u (id) WHERE u.id IS NOT NULL)"
		}
	}
	out := "(" + strings.Join(lists, " OPERATOR(pg_catalog.||) ") + ")"
	if s.Relation != nil {
		where := pairConditions(s.MatchedColumns, row, newRow)
		if s.RowCondition != nil {
			where = append(append(guardConditions(attributesToGuard(s.RowCondition)), where...), w.nodeSQL(s.RowCondition, row))
		}
		if len(where) == 0 {
			where = []string{"true"}
		}
		// A source with several matching rows is ambiguous and counts as having no ids.
		out = "(SELECT q.ids FROM (SELECT " + out + " AS ids, pg_catalog.count(*) OVER () AS n FROM " +
			LookupView(s.Relation.Name).SQL() + " AS " + row +
			" WHERE " + strings.Join(where, " AND ") + ") AS q WHERE q.n OPERATOR(pg_catalog.=) 1)"
	}
	if s.AppliesIf != nil {
		out = "CASE WHEN " + strings.Join(append(guardConditions(attributesToGuard(s.AppliesIf)), w.nodeSQL(s.AppliesIf,
			newRow)),
			" AND ") +
			" THEN " + out + " END"
	}
	return "NULLIF(" + out + ", '{}'::" + array + ")"
}

// NewRowCondition returns n as an SQL condition on the new row, for a trigger function that runs with the rights of the
// reader role.
func NewRowCondition(n Node) string {
	w := predicateWriter{forRowPolicy: true, sublinks: probeForm, prefix: "r"}
	return strings.Join(append(guardConditions(attributesToGuard(n)), w.nodeSQL(n, newRow)), " AND ")
}

// OmittedColumnComment returns a comment that the rewriter puts in front of a statement if all its INSERTs into a table
// leave a column out. Without the comment, the trigger that fills the column in would see only the column's default.
// Security does not depend on the comment: the agent may also write the list that the trigger fills in.
func OmittedColumnComment(table catalog.Name, column string) string {
	return "/*" + omittedColumnText(table, column) + "*/"
}

func omittedColumnText(table catalog.Name, column string) string {
	sum := sha256.Sum256([]byte(table.Schema + "\x00" + table.Name + "\x00" + column))
	return "pgconsent:left " + hex.EncodeToString(sum[:8])
}

// IsColumnOmittedSQL returns the SQL condition by which a trigger finds that comment. It is in the running text, or in
// the text of the prepared statement that this text executes, whose name on the server the condition takes from the
// text.
func IsColumnOmittedSQL(table catalog.Name, column string) string {
	mark := catalog.QuoteLiteral(omittedColumnText(table, column))
	hasComment := func(text string) string {
		return "pg_catalog.strpos(pg_catalog.substr(" + text + ", 1, 2000), " + mark + ") OPERATOR(pg_catalog.>) 0"
	}
	return "(" + hasComment("pg_catalog.current_query()") +
		" OR EXISTS (SELECT FROM pg_catalog.pg_prepared_statements AS q WHERE q.from_sql AND q.name " +
		"OPERATOR(pg_catalog.=) " + executedStatementSQL + " AND " + hasComment("q.statement") + "))"
}

// executedStatementSQL is the SQL expression of the name of the prepared statement that the running text executes. It
// is NULL if the text does something else, or begins with a comment that contains a star: then the column gets the
// table's default. The settings of a hardened plan (package verdict) may be in front of the EXECUTE.
const (
	executePattern       = `^(?:\s|/\*[^*]*\*/|SET LOCAL [a-z_]+ = [a-z0-9_]+;)*[Ee][Xx][Ee][Cc][Uu][Tt][Ee]\s+`
	executedStatementSQL = "COALESCE(pg_catalog.replace(pg_catalog.substring(pg_catalog.current_query(), '" +
		executePattern + `"((?:[^"]|"")+)"` + "'), '\"\"', '\"'), pg_catalog.substring(pg_catalog.current_query(), '" +
		executePattern + "([a-z_][a-z0-9_]*)'))"
)

// OmittedDefault returns a value that means that the agent has left the column out. It is the column's default in the
// view that COPY writes to, since a COPY has no comment. It is no valid list, so no agent needs it; an agent that
// writes it gets the default list. OmittedDefault returns "" if the column's type has no such value.
func (b ListBound) OmittedDefault() string {
	switch {
	case strings.HasSuffix(b.Type, "[]"):
		return "'[7432:7432]={NULL}'::" + b.Type
	case b.Type == "text", b.Type == "character varying", b.Type == "json", b.Type == "jsonb":
		return `'"pgconsent:left"'::` + b.Type
	}
	return ""
}

// IsOmittedDefaultSQL returns an SQL condition that is true if the new row's list is the value of OmittedDefault.
func (b ListBound) IsOmittedDefaultSQL() string {
	omittedDefault := b.OmittedDefault()
	if omittedDefault == "" {
		return "false"
	}
	return "(" + columnSQL(newRow, b.Column) + "::pg_catalog.text OPERATOR(pg_catalog.=) " + omittedDefault +
		"::pg_catalog.text) IS TRUE"
}

// ListBoundFunction returns the name of the trigger function that checks the lists in a table against their bounds.
func ListBoundFunction(table catalog.Name) catalog.Name {
	return catalog.Name{Schema: OwnSchema, Name: objectName("lists_", table)}
}
