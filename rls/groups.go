package rls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// grouped are the tables with rows that count in aggregates only.
func (p *Plan) grouped() []*policy.Table {
	var out []*policy.Table
	for _, t := range p.policy.Tables() {
		if t.Aggregate != nil {
			out = append(out, t)
		}
	}
	return out
}

// groupViews makes the views that aggregates read: the visible rows, and of the others those in cells that have subjects
// enough. Whatever an aggregate chooses by dimensions is made of whole cells, so that no difference of two answers is
// about fewer subjects than a cell has.
//
// The view has the columns that aggregates may use, and no other. It is a security barrier: what a statement asks runs
// on no row that the view leaves out, so that it may ask anything. The barrier of a plain UNION ALL holds nothing:
// PostgreSQL flattens that, and pushes conditions into its parts, and through windows. Hence the SELECT around it, and
// the OFFSET.
func (p *Plan) groupViews() []Statement {
	const why = "Signed aggregates read this view, which has rows that agents do not see one by one, in groups " +
		"large enough; for anything else it raises."
	var out []Statement
	for _, t := range p.grouped() {
		r := t.Relation
		if !p.helps(r) && !p.hasDoor(r) {
			out = append(out, p.readable(r)...)
		}
		if standsFor(t) != nil {
			out = append(out, Statement{
				SQL: "GRANT EXECUTE ON FUNCTION pgconsent.pseudonym(pg_catalog.text, pg_catalog.text) TO " + p.agent,
				Why: "Views call functions with the rights of who reads them. Agents cannot name it: they have no USAGE of its schema.",
			})
		}
		view := predicate.GroupView(r.Name).SQL()
		out = append(out,
			Statement{SQL: fmt.Sprintf("CREATE VIEW %s WITH (security_barrier) AS\n%s", view, groups(t)), Why: why},
			Statement{SQL: fmt.Sprintf("GRANT SELECT ON %s TO %s", view, p.agent), Why: why},
			Statement{SQL: fmt.Sprintf("ALTER VIEW %s OWNER TO %s", view, p.reader), Why: why},
		)
	}
	return out
}

func (p *Plan) hasDoor(r *catalog.Relation) bool {
	return slices.ContainsFunc(p.doors, func(d door) bool { return d.table.Relation.Name == r.Name })
}

func (p *Plan) dropGroups() []Statement {
	const why = "Take the views of aggregates away."
	var out []Statement
	for _, t := range p.grouped() {
		out = append(out, Statement{SQL: "DROP VIEW IF EXISTS " + predicate.GroupView(t.Relation.Name).SQL(), Why: why})
		if !p.helps(t.Relation) && !p.hasDoor(t.Relation) {
			out = append(out, Statement{SQL: fmt.Sprintf("DROP POLICY IF EXISTS %s ON %s", readerPolicy,
				t.Relation.Name.SQL()), Why: why})
		}
	}
	return out
}

// Columns of the sub-selects begin with this, and no column of a table that is a dimension or measure is called so: they
// are numbered.
const inner = "pgconsent_"

// groups writes the query of a group view.
func groups(t *policy.Table) string {
	a, row := t.Aggregate, catalog.QuoteIdent(t.Relation.Name.Name)
	subject := catalog.QuoteIdent(a.Subject)
	who, from := row+"."+subject, " FROM "+t.Relation.Name.SQL()+" AS "+row
	if standsFor(t) != nil {
		// A sub-select of the subject alone is worked out once for each of them.
		who = inner + "0.who"
		from += ", LATERAL (SELECT " + Counted(t, row) + " AS who OFFSET 0) AS " + inner + "0"
	}
	values := []string{who + " AS " + subject} // of rows that show
	hidden := slices.Clone(values)             // of rows that count in groups only
	names, cell := []string{subject}, []string(nil)
	var partly, conditions []string
	add := func(column, name, value string) {
		s, needs := t.ConditionalColumn(column)
		if !needs {
			values, hidden = append(values, value+" AS "+name), append(hidden, value+" AS "+name)
			return
		}
		when := predicate.Check(s.Condition, t.Relation)
		values = append(values, "CASE WHEN "+when+" THEN "+value+" END AS "+name)
		partly = append(partly, "("+when+") IS NOT TRUE")
		hidden = append(hidden, "CASE WHEN "+predicate.Check(s.GroupCondition, t.Relation)+" THEN "+value+" END AS "+name)
	}
	for _, d := range a.Dimensions {
		name := catalog.QuoteIdent(d.Column)
		value := row + "." + name
		if d.Unit != "" {
			value = truncated(policy.VisibleColumn{Type: d.Type, Unit: d.Unit}, value)
		}
		add(d.Column, name, value)
		names, cell = append(names, name), append(cell, name)
	}
	for i, m := range a.Measures {
		name := catalog.QuoteIdent(m.Column)
		add(m.Column, name, bounded(m, row+"."+name))
		names = append(names, name)
		// Who consents to a measure and who does not are in different cells: a sum over five people is not of one of them.
		if s, needs := t.ConditionalColumn(m.Column); needs {
			condition := fmt.Sprintf("%sneeds%d", inner, i)
			hidden = append(hidden, "("+predicate.Check(s.GroupCondition, t.Relation)+") IS TRUE AS "+condition)
			cell, conditions = append(cell, condition), append(conditions, condition)
		}
	}
	visible := predicate.Policy(t.Rows, t.Relation)
	grouped := "(" + predicate.Policy(a.Rows, t.Relation) + ")"
	shows, shown := "("+visible+") IS NOT TRUE", "("+visible+")"
	if len(partly) > 0 {
		// A row of which some value does not show counts in groups, if it may, with that value; else without it.
		shows = "(" + shows + " OR " + strings.Join(partly, " OR ") + ")"
		shown += " AND (" + grouped + " AND (" + strings.Join(partly, " OR ") + ")) IS NOT TRUE"
	}
	counts := []string{"(SELECT pgconsent_gate.vetted())", grouped, shows, row + "." + subject + " IS NOT NULL"}
	for _, d := range a.Dimensions {
		if d.Closed {
			counts = append(counts, closed(d, row+"."+catalog.QuoteIdent(d.Column)))
		}
	}
	list := strings.Join(names, ", ")
	partition := func(more ...string) string {
		by := ""
		if all := append(slices.Clone(cell), more...); len(all) > 0 {
			by = "PARTITION BY " + strings.Join(all, ", ")
		}
		return by
	}
	each := []string{
		strings.Join(append(slices.Clone(names), conditions...), ", "),
		fmt.Sprintf("pg_catalog.dense_rank() OVER (%s ORDER BY %s) AS %ssubject", partition(), subject, inner),
	}
	all := []string{strings.Join(append(slices.Clone(names), conditions...), ", "),
		fmt.Sprintf("pg_catalog.max(%ssubject) OVER (%s) AS %[1]ssubjects", inner, partition())}
	enough := []string{fmt.Sprintf("%ssubjects OPERATOR(pg_catalog.>=) %d", inner, a.Minimum)}
	if a.Share > 0 {
		one, whole := partition(subject), partition()
		share := func(n int, value string) {
			each = append(each,
				fmt.Sprintf("%s OVER (%s) AS %sone%d", value, one, inner, n),
				fmt.Sprintf("%s OVER (%s) AS %sall%d", value, whole, inner, n))
			all = append(all,
				fmt.Sprintf("pg_catalog.max(%sone%d) OVER (%s) AS %[1]sone%[2]d", inner, n, whole),
				fmt.Sprintf("%sall%d", inner, n))
			enough = append(enough, fmt.Sprintf(
				"(COALESCE(%[1]sone%[2]d::pg_catalog.numeric, 0::pg_catalog.numeric) OPERATOR(pg_catalog.*) "+
					"100::pg_catalog.numeric) OPERATOR(pg_catalog.<=) "+
					"(COALESCE(%[1]sall%[2]d::pg_catalog.numeric, 0::pg_catalog.numeric) OPERATOR(pg_catalog.*) "+
					"%[3]d::pg_catalog.numeric)",
				inner, n, a.Share))
		}
		share(0, "pg_catalog.count(*)")
		for i, m := range a.Measures {
			share(i+1, "pg_catalog.sum(pg_catalog.abs("+catalog.QuoteIdent(m.Column)+"::pg_catalog.numeric))")
		}
	}
	return "SELECT " + list + " FROM (SELECT " + strings.Join(values, ",\n  ") + "\n" + from +
		"\nWHERE (SELECT pgconsent_gate.vetted()) AND " + shown + "\nUNION ALL\nSELECT " + list +
		" FROM (SELECT " + strings.Join(all, ",\n    ") +
		"\n  FROM (SELECT " + strings.Join(each, ",\n      ") +
		"\n    FROM (SELECT " + strings.Join(hidden, ",\n        ") + "\n     " + from +
		"\n      WHERE " + strings.Join(counts, "\n        AND ") + ") AS " + inner + "1) AS " + inner + "2) AS " + inner + "3" +
		"\nWHERE " + strings.Join(enough, "\n  AND ") + ") AS " + inner + "4\nWHERE " + isFresh + " OFFSET 0"
}

// Counted is whom a row of the table counts for in groups: what stands for its subject where the sweeper makes rows
// anonymous, so that somebody of whose rows some are swept and others not yet is one. Whom the registry has no key of
// is not swept.
func Counted(t *policy.Table, row string) string {
	column := row + "." + catalog.QuoteIdent(t.Aggregate.Subject)
	b := standsFor(t)
	if b == nil {
		return column
	}
	of := "(" + row + "." + catalog.QuoteIdent(t.Lifecycle.Subject) + `::pg_catalog.text COLLATE pg_catalog."default")`
	return "COALESCE(" + typed(b.Type, pseudonym(of, column)) + ", " + column + ")"
}

// standsFor is what the sweeper makes of whom the rows of groups are about, if it is a text that stands for them.
func standsFor(t *policy.Table) *policy.LifecycleColumn {
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

// Cell is what makes rows one group, as expressions over a row of the table: the values of the dimensions, cut to their
// units; and what must hold besides the rules for a row to count. It is not known for a table whose values show by
// conditions of their own.
func Cell(t *policy.Table, row string) (dimensions, counts []string, known bool) {
	counts = []string{row + "." + catalog.QuoteIdent(t.Aggregate.Subject) + " IS NOT NULL"}
	for _, d := range t.Aggregate.Dimensions {
		if _, needs := t.ConditionalColumn(d.Column); needs {
			return nil, nil, false
		}
		value := row + "." + catalog.QuoteIdent(d.Column)
		if d.Closed {
			counts = append(counts, closed(d, value))
		}
		if d.Unit != "" {
			value = truncated(policy.VisibleColumn{Type: d.Type, Unit: d.Unit}, value)
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

// bounded is a measure's value: within its bounds, finite, and of one scale, since the scale of a sum would tell the
// longest. Integers keep their type, in which their sums are exact.
func bounded(m policy.Measure, column string) string {
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

// closed says that the period of a time is over.
func closed(d policy.Dimension, column string) string {
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
