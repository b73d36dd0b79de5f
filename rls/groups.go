package rls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// groupViews makes the views that aggregates of agents read. Such a view has the visible rows. It also has other rows,
// as far as they fall into a cell (rows with equal values of all dimensions) with enough subjects. Since the groups of
// an aggregate consist of whole cells, the difference of two answers never concerns fewer subjects than a cell has.
//
// The view has only the columns that aggregates may use. It is a security barrier, so no expression of a statement runs
// on a row that the view leaves out. On a plain UNION ALL the barrier would have no effect, since PostgreSQL flattens
// it and pushes conditions into its branches. The SELECT and the OFFSET around the UNION ALL prevent that.
type groupViews struct{ *planFacts }

func (f groupViews) objects() []Object {
	var out []Object
	for _, t := range f.policy.Tables() {
		if t.Aggregate == nil {
			continue
		}
		r := t.Relation
		if !f.isLookupTable(r) && !f.hasSignedView(r) {
			out = append(out, f.readerAccess(r))
		}
		view := predicate.GroupView(r.Name)
		o := newObject("view "+view.String(),
			"Signed aggregates read this view, which has rows that agents do not see one by "+
				"one, in groups large enough; for anything else it raises.", r)
		o.NeededObjects = f.objectsRead(append(conditionsOf(t), t.Aggregate.Rows)...)
		if pseudonymColumn(t) != nil {
			o.grant(rightsOn("FUNCTION", listOf("pgconsent.pseudonym(pg_catalog.text, pg_catalog.text)"), listOf(f.agent),
				"Views call functions with the rights of who reads them. Agents cannot name it: they have no USAGE of its schema.",
				"EXECUTE"))
		}
		o.create(fmt.Sprintf("CREATE VIEW %s WITH (security_barrier) AS\n%s", view.SQL(), groupViewQuery(t)))
		o.create(fmt.Sprintf("GRANT SELECT ON %s TO %s", view.SQL(), f.agent))
		o.create(fmt.Sprintf("ALTER VIEW %s OWNER TO %s", view.SQL(), f.reader))
		o.drop("Take the views of aggregates away.", "DROP VIEW IF EXISTS "+view.SQL())
		out = append(out, o.Object)
	}
	return out
}

// innerPrefix begins the names of additional columns and aliases in the view's sub-selects, so that they differ from
// the table's columns.
const innerPrefix = "pgconsent_"

// groupViewQuery returns the SELECT of the group view of a table.
func groupViewQuery(t *policy.Table) string {
	q := newGroupQuery(t)
	rowExpressions, cellExpressions, cellConditions := q.cellCounts()
	visibleCondition, countedConditions := q.rowConditions()
	columnNames := strings.Join(q.names, ", ")
	return "SELECT " + columnNames + " FROM (SELECT " + strings.Join(q.visibleValues, ",\n  ") + "\n" + q.fromClause +
		"\nWHERE (SELECT pgconsent_signed.text_is_signed()) AND " + visibleCondition + "\nUNION ALL\nSELECT " + columnNames +
		" FROM (SELECT " + strings.Join(cellExpressions, ",\n    ") +
		"\n  FROM (SELECT " + strings.Join(rowExpressions, ",\n      ") +
		"\n    FROM (SELECT " + strings.Join(q.groupValues, ",\n        ") + "\n     " + q.fromClause +
		"\n      WHERE " + strings.Join(countedConditions, "\n        AND ") +
		") AS " + innerPrefix + "1) AS " + innerPrefix + "2) AS " + innerPrefix + "3" +
		"\nWHERE " + strings.Join(cellConditions, "\n  AND ") + ") AS " + innerPrefix + "4\nWHERE " + catalogIsCurrent +
		" OFFSET 0"
}

// groupQuery holds the parts of a group view's query while it is being built.
type groupQuery struct {
	table         *policy.Table
	row           string   // the name by which the query calls the table's row
	fromClause    string   // the FROM clause of the query
	subject       string   // the quoted name of the subject's column
	names         []string // the names of the view's columns
	visibleValues []string // the values of the columns in visible rows
	groupValues   []string // the values of the columns in hidden rows that count in groups only
	cellColumns   []string // the columns whose values divide the rows into cells
	conditions    []string // inner columns that say whether a measure of the row counts
	partlyHidden  []string // the conditions under which some value of a visible row is hidden
}

func newGroupQuery(t *policy.Table) *groupQuery {
	a, row := t.Aggregate, catalog.QuoteIdent(t.Relation.Name.Name)
	q := &groupQuery{
		table: t, row: row, subject: catalog.QuoteIdent(a.Subject),
		fromClause: " FROM " + t.Relation.Name.SQL() + " AS " + row}
	subjectValue := row + "." + q.subject
	if pseudonymColumn(t) != nil {
		// the sub-select depends on the subject alone, so that PostgreSQL need not compute it for each row
		subjectValue = innerPrefix + "0.who"
		q.fromClause += ", LATERAL (SELECT " + CountedSubject(t, row) + " AS who OFFSET 0) AS " + innerPrefix + "0"
	}
	q.names = listOf(q.subject)
	q.visibleValues = listOf(subjectValue + " AS " + q.subject)
	q.groupValues = slices.Clone(q.visibleValues)
	for _, d := range a.Dimensions {
		name := catalog.QuoteIdent(d.Column)
		value := row + "." + name
		if d.Unit != "" {
			value = truncateMask(policy.VisibleColumn{Type: d.Type, Unit: d.Unit}, value)
		}
		q.add(d.Column, name, value)
		q.cellColumns = append(q.cellColumns, name)
	}
	for i, m := range a.Measures {
		name := catalog.QuoteIdent(m.Column)
		q.add(m.Column, name, boundedMeasure(m, row+"."+name))
		// Subjects who consent to a measure and those who do not are in different cells. Otherwise a sum over a cell of five
		// subjects could be the value of a single one.
		if s, isConditional := t.ConditionalColumn(m.Column); isConditional {
			condition := fmt.Sprintf("%sneeds%d", innerPrefix, i)
			q.groupValues = append(q.groupValues, "("+predicate.CheckSQL(s.GroupCondition, t.Relation)+") IS TRUE AS "+condition)
			q.cellColumns, q.conditions = append(q.cellColumns, condition), append(q.conditions, condition)
		}
	}
	return q
}

// add adds a column to the view, with its values in visible rows and in rows that count in groups only.
func (q *groupQuery) add(column, name, value string) {
	q.names = append(q.names, name)
	s, isConditional := q.table.ConditionalColumn(column)
	if !isConditional {
		q.visibleValues, q.groupValues = append(q.visibleValues, value+" AS "+name), append(q.groupValues, value+" AS "+name)
		return
	}
	condition := predicate.CheckSQL(s.Condition, q.table.Relation)
	q.visibleValues = append(q.visibleValues, "CASE WHEN "+condition+" THEN "+value+" END AS "+name)
	q.partlyHidden = append(q.partlyHidden, "("+condition+") IS NOT TRUE")
	q.groupValues = append(q.groupValues, "CASE WHEN "+predicate.CheckSQL(s.GroupCondition,
		q.table.Relation)+" THEN "+value+" END AS "+name)
}

// rowConditions returns the condition for the view's visible rows, and the conditions for rows that count in groups
// only.
func (q *groupQuery) rowConditions() (visibleCondition string, countedConditions []string) {
	a := q.table.Aggregate
	visibleRule := predicate.RowPolicySQL(q.table.Rows, q.table.Relation)
	groupRule := "(" + predicate.RowPolicySQL(a.Rows, q.table.Relation) + ")"
	isHidden := "(" + visibleRule + ") IS NOT TRUE"
	visibleCondition = "(" + visibleRule + ")"
	if len(q.partlyHidden) > 0 {
		// A visible row with a hidden value counts only in groups, with that value, if the rule for groups admits the row.
		// Otherwise the view has the row without the value.
		isPartlyHidden := strings.Join(q.partlyHidden, " OR ")
		isHidden = "(" + isHidden + " OR " + isPartlyHidden + ")"
		visibleCondition += " AND (" + groupRule + " AND (" + isPartlyHidden + ")) IS NOT TRUE"
	}
	countedConditions = []string{"(SELECT pgconsent_signed.text_is_signed())", groupRule, isHidden, q.row + "." + q.subject + " IS NOT NULL"}
	for _, d := range a.Dimensions {
		if d.OnlyPastPeriods {
			countedConditions = append(countedConditions, periodIsOverCondition(d, q.row+"."+catalog.QuoteIdent(d.Column)))
		}
	}
	return visibleCondition, countedConditions
}

// cellWindow returns the window definition for the rows of a cell, divided further by furtherColumns.
func (q *groupQuery) cellWindow(furtherColumns ...string) string {
	if columns := append(slices.Clone(q.cellColumns), furtherColumns...); len(columns) > 0 {
		return "PARTITION BY " + strings.Join(columns, ", ")
	}
	return ""
}

// cellCounts returns the expressions that count the subjects of each cell and compute the largest share of one subject.
// The results are expressions for each row, expressions over the whole cell, and the conditions that a cell must meet.
func (q *groupQuery) cellCounts() (rowExpressions, cellExpressions, cellConditions []string) {
	a := q.table.Aggregate
	columns := strings.Join(append(slices.Clone(q.names), q.conditions...), ", ")
	rowExpressions = []string{columns,
		fmt.Sprintf("pg_catalog.dense_rank() OVER (%s ORDER BY %s) AS %ssubject", q.cellWindow(), q.subject, innerPrefix)}
	cellExpressions = []string{columns,
		fmt.Sprintf("pg_catalog.max(%ssubject) OVER (%s) AS %[1]ssubjects", innerPrefix, q.cellWindow())}
	cellConditions = []string{fmt.Sprintf("%ssubjects OPERATOR(pg_catalog.>=) %d", innerPrefix, a.MinSubjects)}
	if a.MaxSharePercent <= 0 {
		return rowExpressions, cellExpressions, cellConditions
	}
	addShare := func(n int, value string) {
		rowExpressions = append(rowExpressions,
			fmt.Sprintf("%s OVER (%s) AS %sone%d", value, q.cellWindow(q.subject), innerPrefix, n),
			fmt.Sprintf("%s OVER (%s) AS %sall%d", value, q.cellWindow(), innerPrefix, n))
		cellExpressions = append(cellExpressions,
			fmt.Sprintf("pg_catalog.max(%sone%d) OVER (%s) AS %[1]sone%[2]d", innerPrefix, n, q.cellWindow()),
			fmt.Sprintf("%sall%d", innerPrefix, n))
		cellConditions = append(cellConditions, fmt.Sprintf(
			"(COALESCE(%[1]sone%[2]d::pg_catalog.numeric, 0::pg_catalog.numeric) OPERATOR(pg_catalog.*) "+
				"100::pg_catalog.numeric) OPERATOR(pg_catalog.<=) "+
				"(COALESCE(%[1]sall%[2]d::pg_catalog.numeric, 0::pg_catalog.numeric) OPERATOR(pg_catalog.*) "+
				"%[3]d::pg_catalog.numeric)",
			innerPrefix, n, a.MaxSharePercent))
	}
	addShare(0, "pg_catalog.count(*)")
	for i, m := range a.Measures {
		addShare(i+1, "pg_catalog.sum(pg_catalog.abs("+catalog.QuoteIdent(m.Column)+"::pg_catalog.numeric))")
	}
	return rowExpressions, cellExpressions, cellConditions
}

// CountedSubject returns the SQL expression of the subject as which a row counts in groups. If the sweeper replaces
// subjects by pseudonyms, this is the pseudonym, so that a subject counts once although only some of its rows were
// swept. A subject without a key in the registry counts by the column's value, since its rows are never swept.
func CountedSubject(t *policy.Table, row string) string {
	column := row + "." + catalog.QuoteIdent(t.Aggregate.Subject)
	b := pseudonymColumn(t)
	if b == nil {
		return column
	}
	subject := "(" + row + "." + catalog.QuoteIdent(t.Lifecycle.Subject) +
		`::pg_catalog.text COLLATE pg_catalog."default")`
	return "COALESCE(" + pseudonymAs(b.Type, pseudonym(subject, column)) + ", " + column + ")"
}

// pseudonymColumn returns the lifecycle of the subject's column if the sweeper replaces that column by a pseudonym, or
// nil.
func pseudonymColumn(t *policy.Table) *policy.LifecycleColumn {
	if t.Lifecycle == nil {
		return nil
	}
	for i, b := range t.Lifecycle.Columns {
		if b.Name == t.Aggregate.Subject && b.Mask == policy.Hash {
			return &t.Lifecycle.Columns[i]
		}
	}
	return nil
}

// CellExpressions returns SQL expressions for the dimensions of a row, truncated to their units, which divide rows into
// cells. conditions are what a row must meet to count, besides the rules. known is false if a dimension or measure of
// the table has a condition of its own.
func CellExpressions(t *policy.Table, row string) (dimensions, conditions []string, known bool) {
	conditions = []string{row + "." + catalog.QuoteIdent(t.Aggregate.Subject) + " IS NOT NULL"}
	for _, d := range t.Aggregate.Dimensions {
		if _, isConditional := t.ConditionalColumn(d.Column); isConditional {
			return nil, nil, false
		}
		value := row + "." + catalog.QuoteIdent(d.Column)
		if d.OnlyPastPeriods {
			conditions = append(conditions, periodIsOverCondition(d, value))
		}
		if d.Unit != "" {
			value = truncateMask(policy.VisibleColumn{Type: d.Type, Unit: d.Unit}, value)
		}
		dimensions = append(dimensions, value)
	}
	for _, m := range t.Aggregate.Measures {
		if _, isConditional := t.ConditionalColumn(m.Column); isConditional {
			return nil, nil, false
		}
	}
	return dimensions, conditions, true
}

// boundedMeasure returns the expression of a measure's value, limited to its bounds. Numbers that are no integers are
// rounded to a fixed scale, since the scale of a sum would otherwise reveal the largest scale of a value.
func boundedMeasure(m policy.Measure, column string) string {
	literal := func(bound, sqlType string) string { return catalog.QuoteLiteral(bound) + "::" + sqlType }
	if isInteger := m.Type == "smallint" || m.Type == "integer" || m.Type == "bigint"; isInteger {
		return fmt.Sprintf("CASE WHEN %[1]s OPERATOR(pg_catalog.>) %[2]s THEN %[2]s WHEN %[1]s "+
			"OPERATOR(pg_catalog.<) %[3]s THEN %[3]s ELSE %[1]s END",
			column, literal(m.High, m.Type), literal(m.Low, m.Type))
	}
	resultType := "pg_catalog.numeric"
	comparedType := resultType
	if m.Type == "real" || m.Type == "double precision" {
		comparedType = "pg_catalog.float8"
	}
	return fmt.Sprintf("pg_catalog.round(CASE WHEN %[1]s OPERATOR(pg_catalog.>) %[2]s THEN %[3]s WHEN %[1]s "+
		"OPERATOR(pg_catalog.<) %[4]s THEN %[5]s ELSE %[1]s::%[6]s END, 6)",
		column, literal(m.High, comparedType), literal(m.High, resultType), literal(m.Low, comparedType),
		literal(m.Low, resultType), resultType)
}

// periodIsOverCondition returns the condition that a row's date or time lies before the current period (day, month …)
// of the dimension.
func periodIsOverCondition(d policy.Dimension, column string) string {
	periodStart := fmt.Sprintf("pg_catalog.date_trunc('%s', pg_catalog.statement_timestamp(), 'UTC')", d.Unit)
	localPeriodStart := fmt.Sprintf("pg_catalog.timezone('UTC', %s)", periodStart)
	switch {
	case strings.HasSuffix(d.Type, "with time zone"):
		return column + " OPERATOR(pg_catalog.<) " + periodStart
	case strings.HasPrefix(d.Type, "timestamp"):
		return column + " OPERATOR(pg_catalog.<) " + localPeriodStart
	default:
		return column + " OPERATOR(pg_catalog.<) " + localPeriodStart + "::pg_catalog.date"
	}
}
