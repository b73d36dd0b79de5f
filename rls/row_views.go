package rls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
)

// rowViews makes the views that agents read in place of tables with hidden or masked columns. The views belong to the
// rows role, to which the same row policies apply as to agents. That role may read these tables and nothing else.
type rowViews struct{ *planFacts }

func rowViewIdentity(name catalog.Name) string { return "view " + predicate.RowView(name).String() }

func (f rowViews) objects() []Object {
	var out []Object
	if len(f.relationsReadByView()) > 0 {
		out = append(out, rightsObject("USAGE on schema "+predicate.RowsSchema+" for "+f.agent, rightsOn("SCHEMA",
			listOf(predicate.RowsSchema), listOf(f.agent), "Rewritten statements name these views.", "USAGE")))
	}
	if slices.ContainsFunc(f.policy.Tables(), byKey) {
		out = append(out, rightsObject("USAGE on schema "+predicate.RowsSchema+" for "+f.rowsRole, rightsOn("SCHEMA",
			listOf(predicate.RowsSchema), listOf(f.rowsRole),
			"Functions that fetch rows by key run as this role, and name a view.", "USAGE")))
	}
	if len(f.restrictedTables()) > 0 {
		out = append(out, rightsObject("masks", rightsOn("FUNCTION", listOf("pgconsent.mask(pg_catalog.text)"), f.callers(),
			"Views call functions with the rights of who reads them. Agents cannot name it: they have no USAGE of its schema.",
			"EXECUTE")))
	}
	for _, t := range f.restrictedTables() {
		out = append(out, f.views(t))
		if byKey(t) {
			out = append(out, f.keyFunctions(t))
		}
		if t.Write != nil && f.mode == Enforce {
			view := predicate.RowView(t.Relation.Name)
			grants := writeGrants(view, t.Write, f.agent,
				"PostgreSQL writes through the view, with its owner's rights and under its owner's row policies, "+
					"which are the agents'.")
			if len(grants) > 0 {
				o := rightsObject("to write "+view.String(), grants...)
				o.NeededObjects = listOf(rowViewIdentity(t.Relation.Name))
				out = append(out, o)
			}
		}
	}
	return out
}

// views returns an object with the two row views of a table: one that relies on the table's row security, and one that
// also contains the rule.
func (f rowViews) views(t *policy.Table) Object {
	name := t.Relation.Name
	o := newObject(rowViewIdentity(name), "", t.Relation)
	o.NeededObjects = f.objectsRead(conditionsOf(t)...)
	query := f.rowQuery(t, t.Columns.Columns)
	plainQuery, filteredQuery := query, query+f.ruleInView(t)
	owner, options, reason := f.rowsRole, "", "The row view reads the table as its owner, under row security."
	if t.LacksRowSecurity() {
		// The relation cannot have row security. So both views contain the rule, as security barriers, so that it runs before
		// the agent's expressions.
		owner, options = f.reader, " WITH (security_barrier)"
		reason = "The view reads it as its owner; the rule is in the view."
		plainQuery = query + ruleWithoutRowSecurity(t)
		filteredQuery = plainQuery
	}
	o.grant(rightsOn("TABLE", listOf(name.SQL()), listOf(owner), reason, "SELECT"))
	o.why = "Agents read this view in place of a table with hidden columns: what it does not have does not exist for them."
	for _, v := range []struct {
		name  catalog.Name
		query string
	}{{predicate.RowView(name), plainQuery}, {predicate.FilteredRowView(name), filteredQuery}} {
		o.create(fmt.Sprintf("CREATE VIEW %s%s AS\n%s", v.name.SQL(), options, v.query))
		o.create(fmt.Sprintf("GRANT SELECT ON %s TO %s", v.name.SQL(), f.agent))
		o.create(fmt.Sprintf("ALTER VIEW %s OWNER TO %s", v.name.SQL(), owner))
	}
	o.drop("Take the row views away.", fmt.Sprintf("DROP VIEW IF EXISTS %s, %s", predicate.FilteredRowView(name).SQL(),
		predicate.RowView(name).SQL()))
	return o.Object
}

// ruleWithoutRowSecurity returns the WHERE clause with the rule, for the view of a relation that cannot have row
// security.
func ruleWithoutRowSecurity(t *policy.Table) string {
	rule := predicate.RowPolicySQL(t.Rows, t.Relation)
	condition := "\nWHERE " + catalogIsCurrent + " AND (" + rule + ")"
	if hasSubSelects(rule) {
		// PostgreSQL may evaluate an agent's leak-proof condition before a more expensive rule, even in a security barrier.
		// OFFSET prevents that.
		condition += "\nOFFSET 0"
	}
	return condition
}

// rowQuery returns a SELECT of these columns of a table, with the values that agents see.
func (f *planFacts) rowQuery(t *policy.Table, columns []policy.VisibleColumn) string {
	row := catalog.QuoteIdent(t.Relation.Name.Name)
	values := make([]string, len(columns))
	for i, c := range columns {
		name := catalog.QuoteIdent(c.Name)
		values[i] = conditionalValue(c.Condition, t.Relation, c, maskedColumn(c, row+"."+name)) + " AS " + name
	}
	return "SELECT " + strings.Join(values, ",\n  ") + "\nFROM " + t.Relation.Name.SQL() + " AS " + row
}

// ruleInView returns the WHERE clause with the rule, for a view that also relies on row security.
func (f *planFacts) ruleInView(t *policy.Table) string {
	return "\nWHERE (CASE WHEN " + predicate.RowPolicySQL(t.Rows, t.Relation) + " THEN true END) IS NOT NULL"
}

// hasSubSelects reports whether a rule has sub-selects other than those that read the session's seal and attributes.
// With cpu_operator_cost = 0, only such sub-selects have a cost.
func hasSubSelects(rule string) bool {
	return strings.Count(rule, "SELECT") > strings.Count(rule, "(SELECT pgconsent_signed.attr(")+
		strings.Count(rule, "(SELECT pgconsent_signed.sealed())")
}

// writeGrants returns the grants by which the agent role may write through a view of pgconsent.
func writeGrants(view catalog.Name, w *policy.Write, agent, why string) []migrations.Grant {
	var out []migrations.Grant
	give := func(right string, columns []string) {
		out = append(out, migrations.Grant{
			Rights: []migrations.Right{{Name: right, Columns: columns}}, Objects: listOf(view.SQL()), Roles: listOf(agent),
			Why: why})
	}
	if w.Insert && len(w.Insertable) > 0 {
		give("INSERT", quoteAll(w.Insertable))
	}
	if w.Update {
		give("UPDATE", quoteAll(w.Updatable))
	}
	if w.Delete {
		give("DELETE", nil)
	}
	return out
}
