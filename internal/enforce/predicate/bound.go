package predicate

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// ListBound says which ids the list of a new or changed row may have. Its SQL is for a trigger of pgconsent, which runs
// as the reader: a row policy cannot read the row as it was before an UPDATE.
type ListBound struct {
	List
	Type string // the type of the list's column

	// PermittedIDs are the lists of permitted ids; the first one that is not empty counts. It is also the list that a new
	// row gets if the agent leaves the column out. Nil: a new row may have any ids.
	PermittedIDs []ListSource

	MayOnlyRemove  bool // an UPDATE may only remove ids from the list
	WiderCondition Node // the condition on the row under which an UPDATE may add an id; nil: it may add none

	Chain *ListChain // the rows to which the row refers, whose lists bound its list as well; nil: rows refer to no others
}

// ListSource is a list of permitted ids: those in columns of the row, or of the single row of Relation that matches.
type ListSource struct {
	AppliesIf      Node // the condition on the new row under which the source applies; nil: always
	Relation       *catalog.Relation
	MatchedColumns []ColumnPair
	RowCondition   Node // a condition on the row of Relation; nil: any row counts
	Columns        []List
	SingleIDs      []bool // for each of Columns, whether it holds a single id and not a list
}

// Conditions returns the conditions that a bound reads, as parts of a predicate on the row, so that lookup views are
// made for their tables.
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

// listSourceNode makes [LookupTables] find the table of a source, so that the table gets a lookup view. It is part of
// no rule.
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

// newRow and oldRow are the names of the rows in a trigger.
const newRow, oldRow = "NEW", "OLD"

// IsMalformedSQL returns the SQL condition that the new row's list is not one-dimensional, or contains NULL.
func (b ListBound) IsMalformedSQL() string {
	list := b.arraySQL(newRow)
	return "(CASE WHEN " + list + " IS NULL OR COALESCE(pg_catalog.array_ndims(" + list +
		"), 1) OPERATOR(pg_catalog.<>) 1 THEN true ELSE pg_catalog.array_position(" + list + ", NULL) IS NOT NULL END)"
}

// ElementsSQL returns the expression of the list in the new row, or with old in the old row, as an array.
func (b ListBound) ElementsSQL(ofOldRow bool) string {
	if ofOldRow {
		return b.arraySQL(oldRow)
	}
	return b.arraySQL(newRow)
}

// ArrayType returns the type of the arrays as which lists are compared.
func (b ListBound) ArrayType() string { return b.Form.elementType() + "[]" }

// DefaultListSQL returns the expression of the list that a new row gets if the agent leaves it out, as an array.
func (b ListBound) DefaultListSQL() string {
	parts := make([]string, 0, len(b.PermittedIDs)+1)
	for _, s := range b.PermittedIDs {
		parts = append(parts, s.idsSQL(b.ArrayType()))
	}
	return "COALESCE(" + strings.Join(append(parts, "'{}'::"+b.ArrayType()), ",\n    ") + ")"
}

// ColumnValueSQL returns the expression that turns an array into a value of the column.
func (b ListBound) ColumnValueSQL(array string) string {
	switch b.Form {
	case GrantJSONB:
		return "pg_catalog.to_jsonb(" + array + ")"
	case GrantJSON:
		return "pg_catalog.to_jsonb(" + array + ")::pg_catalog.text::" + b.Type
	}
	return array + "::" + b.Type
}

// ExceedsSQL returns the condition that some element of the new row's list is neither in allowed nor permitted by
// WiderCondition. If the row refers to another row along the chain (the trigger's variable told), the word for
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

// idsSQL returns the expression of the source's ids. Its value is NULL if the source does not apply, or has no ids.
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
		// A source with two matching rows is ambiguous and counts as having none.
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

// NewRowCondition returns n as a SQL condition on the new row of a trigger that runs as the reader.
func NewRowCondition(n Node) string {
	w := predicateWriter{forRowPolicy: true, sublinks: probeForm, prefix: "r"}
	return strings.Join(append(guardConditions(attributesToGuard(n)), w.nodeSQL(n, newRow)), " AND ")
}

// OmittedColumnComment returns the comment that goes in front of a statement whose INSERTs into a table all leave a
// column out. The trigger that fills the column in could not know this otherwise, since it sees the column's default.
// Security does not depend on the comment: the agent may write the filled-in list itself.
func OmittedColumnComment(table catalog.Name, column string) string {
	return "/*" + omittedColumnText(table, column) + "*/"
}

func omittedColumnText(table catalog.Name, column string) string {
	sum := sha256.Sum256([]byte(table.Schema + "\x00" + table.Name + "\x00" + column))
	return "pgconsent:left " + hex.EncodeToString(sum[:8])
}

// IsColumnOmittedSQL returns the trigger's condition that the mark is there: in the running text, or in the text of the
// prepared statement that it executes, which it finds by the proxy's name for the statement.
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
// is NULL if the text does something else, or begins with a comment that contains a star: then the column keeps the
// table's default. The settings of a hardened plan (package verdict) may come before the EXECUTE.
const (
	executePattern       = `^(?:\s|/\*[^*]*\*/|SET LOCAL [a-z_]+ = [a-z0-9_]+;)*[Ee][Xx][Ee][Cc][Uu][Tt][Ee]\s+`
	executedStatementSQL = "COALESCE(pg_catalog.replace(pg_catalog.substring(pg_catalog.current_query(), '" +
		executePattern + `"((?:[^"]|"")+)"` + "'), '\"\"', '\"'), pg_catalog.substring(pg_catalog.current_query(), '" +
		executePattern + "([a-z_][a-z0-9_]*)'))"
)

// OmittedDefault returns a value that means that the column was left out. It is the default of the view that COPY
// writes to, where the text of the statement does not tell. It is no valid list, so it collides with none; an agent
// that writes it gets the default list. "" where the column's type has no such value.
func (b ListBound) OmittedDefault() string {
	switch {
	case strings.HasSuffix(b.Type, "[]"):
		return "'[7432:7432]={NULL}'::" + b.Type
	case b.Type == "text", b.Type == "character varying", b.Type == "json", b.Type == "jsonb":
		return `'"pgconsent:left"'::` + b.Type
	}
	return ""
}

// IsOmittedDefaultSQL returns the trigger's condition that the new row's list is OmittedDefault.
func (b ListBound) IsOmittedDefaultSQL() string {
	omittedDefault := b.OmittedDefault()
	if omittedDefault == "" {
		return "false"
	}
	return "(" + columnSQL(newRow, b.Column) + "::pg_catalog.text OPERATOR(pg_catalog.=) " + omittedDefault +
		"::pg_catalog.text) IS TRUE"
}

// ListBoundFunction returns the name of the trigger function that checks the lists of a table against their bounds.
func ListBoundFunction(table catalog.Name) catalog.Name {
	return catalog.Name{Schema: OwnSchema, Name: objectName("lists_", table)}
}
