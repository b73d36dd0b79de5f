package rls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// groupViews are the views that aggregates read: the visible rows, and the other rows in cells with enough
// subjects. The groups that an aggregate forms by dimensions consist of whole cells. So no difference of two answers is
// about fewer subjects than a cell has.
//
// The view has only the columns that aggregates may use. It is a security barrier: no expression of a statement runs on
// a row that the view leaves out, so a statement may use any expression. On a plain UNION ALL the barrier has no
// effect: PostgreSQL flattens it, and pushes conditions into its branches and through windows. Hence the SELECT around
// it, and the OFFSET.
type groupViews struct{ *facts }

func (f groupViews) objects() []Object {
	var out []Object
	for _, t := range f.policy.Tables() {
		if t.Aggregate == nil {
			continue
		}
		r := t.Relation
		if !f.isHelper(r) && !f.hasSignedView(r) {
			out = append(out, f.readable(r))
		}
		view := predicate.GroupView(r.Name)
		o := newObject("view "+view.String(),
			"Signed aggregates read this view, which has rows that agents do not see one by "+
				"one, in groups large enough; for anything else it raises.", r)
		o.Needs = f.objectsRead(append(conditionsOf(t), t.Aggregate.Rows)...)
		if pseudonymColumn(t) != nil {
			o.grant(rightsOn("FUNCTION", one("pgconsent.pseudonym(pg_catalog.text, pg_catalog.text)"), one(f.agent),
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

// innerPrefix begins the names of columns of the sub-selects. They are numbered, so that they differ from the columns
// of the table that are dimensions or measures.
const innerPrefix = "pgconsent_"

// groupViewQuery writes the query of a group view.
func groupViewQuery(t *policy.Table) string {
	q := newGroupQuery(t)
	each, all, enough := q.windows()
	shown, counts := q.rows()
	list := strings.Join(q.names, ", ")
	return "SELECT " + list + " FROM (SELECT " + strings.Join(q.values, ",\n  ") + "\n" + q.from +
		"\nWHERE (SELECT pgconsent_signed.text_is_signed()) AND " + shown + "\nUNION ALL\nSELECT " + list +
		" FROM (SELECT " + strings.Join(all, ",\n    ") +
		"\n  FROM (SELECT " + strings.Join(each, ",\n      ") +
		"\n    FROM (SELECT " + strings.Join(q.hidden, ",\n        ") + "\n     " + q.from +
		"\n      WHERE " + strings.Join(counts, "\n        AND ") +
		") AS " + innerPrefix + "1) AS " + innerPrefix + "2) AS " + innerPrefix + "3" +
		"\nWHERE " + strings.Join(enough, "\n  AND ") + ") AS " + innerPrefix + "4\nWHERE " + isCurrent + " OFFSET 0"
}

// groupQuery is the query of a group view while it is written.
type groupQuery struct {
	table        *policy.Table
	row          string   // the name of the table's row
	from         string   // its FROM clause
	subject      string   // the column, quoted
	names        []string // the columns
	values       []string // their values, of rows that show
	hidden       []string // their values, of rows that count in groups only
	cell         []string // the columns by which hidden rows are divided into cells
	conditions   []string // the columns among names that tell whether a measure counts
	partlyHidden []string // conditions under which some value of a visible row does not show
}

func newGroupQuery(t *policy.Table) *groupQuery {
	a, row := t.Aggregate, catalog.QuoteIdent(t.Relation.Name.Name)
	q := &groupQuery{
		table: t, row: row, subject: catalog.QuoteIdent(a.Subject), from: " FROM " + t.Relation.Name.SQL() + " AS " + row}
	who := row + "." + q.subject
	if pseudonymColumn(t) != nil {
		// A sub-select of the subject alone is computed once for each subject.
		who = innerPrefix + "0.who"
		q.from += ", LATERAL (SELECT " + Counted(t, row) + " AS who OFFSET 0) AS " + innerPrefix + "0"
	}
	q.names = one(q.subject)
	q.values = one(who + " AS " + q.subject)
	q.hidden = slices.Clone(q.values)
	for _, d := range a.Dimensions {
		name := catalog.QuoteIdent(d.Column)
		value := row + "." + name
		if d.Unit != "" {
			value = truncateMask(policy.VisibleColumn{Type: d.Type, Unit: d.Unit}, value)
		}
		q.add(d.Column, name, value)
		q.cell = append(q.cell, name)
	}
	for i, m := range a.Measures {
		name := catalog.QuoteIdent(m.Column)
		q.add(m.Column, name, boundedMeasure(m, row+"."+name))
		// Subjects who consent to a measure and others are in different cells: otherwise a sum over a cell of five people
		// could be the value of one of them.
		if s, needs := t.ConditionalColumn(m.Column); needs {
			condition := fmt.Sprintf("%sneeds%d", innerPrefix, i)
			q.hidden = append(q.hidden, "("+predicate.Check(s.GroupCondition, t.Relation)+") IS TRUE AS "+condition)
			q.cell, q.conditions = append(q.cell, condition), append(q.conditions, condition)
		}
	}
	return q
}

// add adds a column with its value.
func (q *groupQuery) add(column, name, value string) {
	q.names = append(q.names, name)
	s, needs := q.table.ConditionalColumn(column)
	if !needs {
		q.values, q.hidden = append(q.values, value+" AS "+name), append(q.hidden, value+" AS "+name)
		return
	}
	when := predicate.Check(s.Condition, q.table.Relation)
	q.values = append(q.values, "CASE WHEN "+when+" THEN "+value+" END AS "+name)
	q.partlyHidden = append(q.partlyHidden, "("+when+") IS NOT TRUE")
	q.hidden = append(q.hidden, "CASE WHEN "+predicate.Check(s.GroupCondition, q.table.Relation)+" THEN "+value+" END AS "+name)
}

// rows are the condition on rows that show, and the conditions on rows that only count in groups.
func (q *groupQuery) rows() (shown string, counts []string) {
	a := q.table.Aggregate
	visible := predicate.Policy(q.table.Rows, q.table.Relation)
	grouped := "(" + predicate.Policy(a.Rows, q.table.Relation) + ")"
	hides := "(" + visible + ") IS NOT TRUE"
	shown = "(" + visible + ")"
	if len(q.partlyHidden) > 0 {
		// A visible row with a hidden value counts in groups with that value if the rule of groups lets it count. Otherwise
		// the row shows without the value.
		some := strings.Join(q.partlyHidden, " OR ")
		hides = "(" + hides + " OR " + some + ")"
		shown += " AND (" + grouped + " AND (" + some + ")) IS NOT TRUE"
	}
	counts = []string{"(SELECT pgconsent_signed.text_is_signed())", grouped, hides, q.row + "." + q.subject + " IS NOT NULL"}
	for _, d := range a.Dimensions {
		if d.OnlyPastPeriods {
			counts = append(counts, periodIsOver(d, q.row+"."+catalog.QuoteIdent(d.Column)))
		}
	}
	return shown, counts
}

// partition is a window of the rows of a cell, divided further by columns.
func (q *groupQuery) partition(more ...string) string {
	if all := append(slices.Clone(q.cell), more...); len(all) > 0 {
		return "PARTITION BY " + strings.Join(all, ", ")
	}
	return ""
}

// windows count the subjects of each cell, and the largest share of one of them: columns of each row, columns over the
// whole cell, and the conditions on these.
func (q *groupQuery) windows() (each, all, enough []string) {
	a := q.table.Aggregate
	columns := strings.Join(append(slices.Clone(q.names), q.conditions...), ", ")
	each = []string{columns,
		fmt.Sprintf("pg_catalog.dense_rank() OVER (%s ORDER BY %s) AS %ssubject", q.partition(), q.subject, innerPrefix)}
	all = []string{columns,
		fmt.Sprintf("pg_catalog.max(%ssubject) OVER (%s) AS %[1]ssubjects", innerPrefix, q.partition())}
	enough = []string{fmt.Sprintf("%ssubjects OPERATOR(pg_catalog.>=) %d", innerPrefix, a.MinSubjects)}
	if a.MaxSharePercent <= 0 {
		return each, all, enough
	}
	share := func(n int, value string) {
		each = append(each,
			fmt.Sprintf("%s OVER (%s) AS %sone%d", value, q.partition(q.subject), innerPrefix, n),
			fmt.Sprintf("%s OVER (%s) AS %sall%d", value, q.partition(), innerPrefix, n))
		all = append(all,
			fmt.Sprintf("pg_catalog.max(%sone%d) OVER (%s) AS %[1]sone%[2]d", innerPrefix, n, q.partition()),
			fmt.Sprintf("%sall%d", innerPrefix, n))
		enough = append(enough, fmt.Sprintf(
			"(COALESCE(%[1]sone%[2]d::pg_catalog.numeric, 0::pg_catalog.numeric) OPERATOR(pg_catalog.*) "+
				"100::pg_catalog.numeric) OPERATOR(pg_catalog.<=) "+
				"(COALESCE(%[1]sall%[2]d::pg_catalog.numeric, 0::pg_catalog.numeric) OPERATOR(pg_catalog.*) "+
				"%[3]d::pg_catalog.numeric)",
			innerPrefix, n, a.MaxSharePercent))
	}
	share(0, "pg_catalog.count(*)")
	for i, m := range a.Measures {
		share(i+1, "pg_catalog.sum(pg_catalog.abs("+catalog.QuoteIdent(m.Column)+"::pg_catalog.numeric))")
	}
	return each, all, enough
}

// Counted is the subject for whom a row of the table counts in groups. Where the sweeper makes rows anonymous it is the
// subject's pseudonym, so that a subject counts once while only some of its rows are swept. Rows of a subject without a
// key in the registry are not swept.
func Counted(t *policy.Table, row string) string {
	column := row + "." + catalog.QuoteIdent(t.Aggregate.Subject)
	b := pseudonymColumn(t)
	if b == nil {
		return column
	}
	of := "(" + row + "." + catalog.QuoteIdent(t.Lifecycle.Subject) + `::pg_catalog.text COLLATE pg_catalog."default")`
	return "COALESCE(" + pseudonymAs(b.Type, pseudonym(of, column)) + ", " + column + ")"
}

// pseudonymColumn is the subject's column of groups if the sweeper replaces it by a pseudonym; else nil.
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

// Cell returns how rows are divided into groups, as expressions over a row of the table: the values of the dimensions,
// truncated to their units; and the conditions, apart from the rules, for a row to count. known is false for a table
// whose values have conditions of their own.
func Cell(t *policy.Table, row string) (dimensions, counts []string, known bool) {
	counts = []string{row + "." + catalog.QuoteIdent(t.Aggregate.Subject) + " IS NOT NULL"}
	for _, d := range t.Aggregate.Dimensions {
		if _, needs := t.ConditionalColumn(d.Column); needs {
			return nil, nil, false
		}
		value := row + "." + catalog.QuoteIdent(d.Column)
		if d.OnlyPastPeriods {
			counts = append(counts, periodIsOver(d, value))
		}
		if d.Unit != "" {
			value = truncateMask(policy.VisibleColumn{Type: d.Type, Unit: d.Unit}, value)
		}
		dimensions = append(dimensions, value)
	}
	for _, m := range t.Aggregate.Measures {
		if _, needs := t.ConditionalColumn(m.Column); needs {
			return nil, nil, false
		}
	}
	return dimensions, counts, true
}

// boundedMeasure is a measure's value: within its bounds, finite, and with a fixed scale, since the scale of a sum
// would tell the largest scale of a value. Integers keep their type, in which sums are exact.
func boundedMeasure(m policy.Measure, column string) string {
	at := func(bound, as string) string { return catalog.QuoteLiteral(bound) + "::" + as }
	if integer := m.Type == "smallint" || m.Type == "integer" || m.Type == "bigint"; integer {
		return fmt.Sprintf("CASE WHEN %[1]s OPERATOR(pg_catalog.>) %[2]s THEN %[2]s WHEN %[1]s "+
			"OPERATOR(pg_catalog.<) %[3]s THEN %[3]s ELSE %[1]s END",
			column, at(m.High, m.Type), at(m.Low, m.Type))
	}
	kind := "pg_catalog.numeric"
	compared := kind
	if m.Type == "real" || m.Type == "double precision" {
		compared = "pg_catalog.float8"
	}
	return fmt.Sprintf("pg_catalog.round(CASE WHEN %[1]s OPERATOR(pg_catalog.>) %[2]s THEN %[3]s WHEN %[1]s "+
		"OPERATOR(pg_catalog.<) %[4]s THEN %[5]s ELSE %[1]s::%[6]s END, 6)",
		column, at(m.High, compared), at(m.High, kind), at(m.Low, compared), at(m.Low, kind), kind)
}

// periodIsOver is the condition that the period of a time is over.
func periodIsOver(d policy.Dimension, column string) string {
	now := fmt.Sprintf("pg_catalog.date_trunc('%s', pg_catalog.statement_timestamp(), 'UTC')", d.Unit)
	local := fmt.Sprintf("pg_catalog.timezone('UTC', %s)", now)
	switch {
	case strings.HasSuffix(d.Type, "with time zone"):
		return column + " OPERATOR(pg_catalog.<) " + now
	case strings.HasPrefix(d.Type, "timestamp"):
		return column + " OPERATOR(pg_catalog.<) " + local
	default:
		return column + " OPERATOR(pg_catalog.<) " + local + "::pg_catalog.date"
	}
}
