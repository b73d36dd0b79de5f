package rls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// narrowed are the tables with hidden or masked columns.
func (p *Plan) narrowed() []*policy.Table {
	var out []*policy.Table
	for _, t := range p.policy.Tables() {
		if t.Columns != nil {
			out = append(out, t)
		}
	}
	return out
}

// bound are the roles that the row policies of a table bind.
func (p *Plan) bound(t *policy.Table) string {
	if t.Columns != nil {
		return p.agent + ", " + p.rowsRole
	}
	return p.agent
}

// readThrough are the relations that agents read through a view of ours.
func (p *Plan) readThrough() []catalog.Name {
	var out []catalog.Name
	for _, t := range p.narrowed() {
		out = append(out, t.Relation.Name)
	}
	for _, v := range p.policy.Views() {
		if v.Listed {
			out = append(out, v.Relation.Name)
		}
	}
	return out
}

// rowViews makes the views that agents read in place of tables with hidden columns. They belong to a role that row
// security binds as it binds agents, and that may read these tables and nothing else.
func (p *Plan) rowViews() []Statement {
	const why = "Agents read this view in place of a table with hidden columns: what it does not have does not exist for them."
	var out []Statement
	if len(p.readThrough()) > 0 {
		out = append(out, Statement{
			SQL: fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s", predicate.RowsSchema, p.agent),
			Why: "Rewritten statements name these views.",
		})
	}
	if slices.ContainsFunc(p.policy.Tables(), byKey) {
		out = append(out, Statement{
			SQL: fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s", predicate.RowsSchema, p.rowsRole),
			Why: "Functions that fetch rows by key run as this role, and name a view.",
		})
	}
	if len(p.narrowed()) > 0 {
		out = append(out, Statement{
			SQL: "GRANT EXECUTE ON FUNCTION pgconsent.mask(pg_catalog.text) TO " + p.callers(),
			Why: "Views call functions with the rights of who reads them. Agents cannot name it: they have no USAGE of its schema.",
		})
	}
	for _, t := range p.narrowed() {
		query := p.rowQuery(t, t.Columns.Columns)
		wall := p.wall(t)
		owner, options, reason := p.rowsRole, "", "The row view reads the table as its owner, under row security."
		plain := query
		if t.LacksRowSecurity() {
			// No row security: the rule is in the view, and nothing of the agent's runs before it. Both views are one.
			owner, options, reason = p.reader, " WITH (security_barrier)", "The view reads it as its owner; the rule is in the view."
			rule := predicate.Policy(t.Rows, t.Relation)
			wall = "\nWHERE " + isFresh + " AND (" + rule + ")"
			if looksFurther(rule) {
				// PostgreSQL takes a leak-proof condition past the barrier, and there the cheaper is first, what it
				// compares with included.
				wall += "\nOFFSET 0"
			}
			plain = query + wall
		}
		out = append(out, Statement{SQL: fmt.Sprintf("GRANT SELECT ON TABLE %s TO %s", t.Relation.Name.SQL(), owner),
			Why: reason})
		for _, v := range []struct {
			name catalog.Name
			sql  string
		}{{predicate.RowView(t.Relation.Name), plain}, {predicate.FilteredRowView(t.Relation.Name), query + wall}} {
			out = append(out,
				Statement{SQL: fmt.Sprintf("CREATE VIEW %s%s AS\n%s", v.name.SQL(), options, v.sql), Why: why},
				Statement{SQL: fmt.Sprintf("GRANT SELECT ON %s TO %s", v.name.SQL(), p.agent), Why: why},
				Statement{SQL: fmt.Sprintf("ALTER VIEW %s OWNER TO %s", v.name.SQL(), owner), Why: why},
			)
		}
		out = append(out, p.keyed(t)...)
		if t.Write != nil && p.mode == Enforce {
			out = append(out, p.writtenThrough(predicate.RowView(t.Relation.Name), t.Write,
				"PostgreSQL writes through the view, with its owner's rights and under its owner's row policies, "+
					"which are the agents'.")...)
		}
	}
	return out
}

// rowQuery selects these columns of a table, as they come out.
func (p *Plan) rowQuery(t *policy.Table, columns []policy.VisibleColumn) string {
	row := catalog.QuoteIdent(t.Relation.Name.Name)
	values := make([]string, len(columns))
	for i, c := range columns {
		name := catalog.QuoteIdent(c.Name)
		values[i] = needed(c.Condition, t.Relation, c, shown(c, row+"."+name)) + " AS " + name
	}
	return "SELECT " + strings.Join(values, ",\n  ") + "\nFROM " + t.Relation.Name.SQL() + " AS " + row
}

// wall is the predicate as a view has it besides row security.
func (p *Plan) wall(t *policy.Table) string {
	return "\nWHERE (CASE WHEN " + predicate.Policy(t.Rows, t.Relation) + " THEN true END) IS NOT NULL"
}

// looksFurther tells whether a rule has sub-selects besides those for the caller's seal and attributes. Only those have
// a cost where operators have none.
func looksFurther(rule string) bool {
	return strings.Count(rule, "SELECT") > strings.Count(rule, "(SELECT pgconsent_gate.attr(")+
		strings.Count(rule, "(SELECT pgconsent_gate.sealed())")
}

func (p *Plan) dropRowViews() []Statement {
	const why = "Take the row views away."
	var out []Statement
	for _, t := range p.narrowed() {
		out = append(out, p.dropKeyed(t)...)
		out = append(out, Statement{SQL: fmt.Sprintf("DROP VIEW IF EXISTS %s, %s",
			predicate.FilteredRowView(t.Relation.Name).SQL(), predicate.RowView(t.Relation.Name).SQL()), Why: why})
	}
	return out
}

// views makes copies of the customer's views that run with the rights of who reads them. Those they read come first,
// and the shadows of catalogs.
func (p *Plan) views() []Statement {
	const why = "A copy of a view that the policy lists, or that such a view reads. The original runs with its " +
		"owner's rights, past row security."
	var out []Statement
	through := p.writtenViews()
	for _, v := range p.policy.Views() {
		columns := make([]string, len(v.Relation.Columns))
		for i, c := range v.Relation.Columns {
			columns[i] = catalog.QuoteIdent(c.Name)
		}
		named := ""
		if len(columns) > 0 { // PostgreSQL has views without any, and no empty list of them
			named = " (" + strings.Join(columns, ", ") + ")"
		}
		plain := ""
		if v.Relation.CheckOption != "" && v.Write != nil {
			plain = ", check_option = " + v.Relation.CheckOption
		}
		for _, c := range []struct {
			name           catalog.Name
			options, query string
		}{{predicate.RowView(v.Relation.Name), plain, v.Query}, {predicate.FilteredRowView(v.Relation.Name), "", v.FilteredQuery}} {
			out = append(out,
				Statement{SQL: fmt.Sprintf("CREATE VIEW %s%s WITH (security_invoker = true%s) AS\n%s", c.name.SQL(),
					named, c.options, c.query), Why: why},
				Statement{SQL: fmt.Sprintf("GRANT SELECT ON %s TO %s", c.name.SQL(), p.agent), Why: why},
			)
		}
		if p.viewHasDoor(v) { // with the agent's rights: those of the door views in it are their owner's
			view := predicate.SignedView(v.Relation.Name).SQL()
			out = append(out,
				Statement{SQL: fmt.Sprintf("CREATE VIEW %s%s WITH (security_invoker = true) AS\n%s", view, named,
					v.SignedQuery), Why: "Vetted statements read the view here, over the door views of its tables."},
				Statement{SQL: fmt.Sprintf("GRANT SELECT ON %s TO %s", view, p.agent), Why: why},
			)
		}
		if through[v.Relation.Name] && p.mode == Enforce {
			out = append(out, p.writtenThrough(predicate.RowView(v.Relation.Name), v.Write,
				"PostgreSQL writes through the view with the agent's rights, under the row policies of its table.")...)
		}
	}
	return out
}

// writtenViews are the views that agents write through, and those beneath them, for which PostgreSQL asks the same
// rights. These give nothing that agents do not have of the table.
func (p *Plan) writtenViews() map[catalog.Name]bool {
	out := map[catalog.Name]bool{}
	for _, v := range slices.Backward(p.policy.Views()) { // those that a view reads come before it
		if v.Write == nil || !v.Listed && !out[v.Relation.Name] {
			continue
		}
		out[v.Relation.Name] = true
		if inner, nested := p.policy.View(v.Relation.Reads[0].Relation); nested {
			out[inner.Relation.Name] = true
		}
	}
	return out
}

// writtenThrough lets agents write through a view of ours.
func (p *Plan) writtenThrough(view catalog.Name, w *policy.Write, why string) []Statement {
	var out []Statement
	grant := func(what string) {
		out = append(out, Statement{SQL: fmt.Sprintf("GRANT %s ON %s TO %s", what, view.SQL(), p.agent), Why: why})
	}
	if w.Insert && len(w.Insertable) > 0 {
		grant("INSERT (" + strings.Join(quoteAll(w.Insertable), ", ") + ")")
	}
	if w.Update {
		grant("UPDATE (" + strings.Join(quoteAll(w.Updatable), ", ") + ")")
	}
	if w.Delete {
		grant("DELETE")
	}
	return out
}

func (p *Plan) dropViews() []Statement {
	var out []Statement
	for _, v := range slices.Backward(p.policy.Views()) {
		if p.viewHasDoor(v) {
			out = append(out, Statement{SQL: "DROP VIEW IF EXISTS " + predicate.SignedView(v.Relation.Name).SQL(),
				Why: "Take the views of the gate door away."})
		}
		out = append(out, Statement{
			SQL: fmt.Sprintf("DROP VIEW IF EXISTS %s, %s", predicate.FilteredRowView(v.Relation.Name).SQL(),
				predicate.RowView(v.Relation.Name).SQL()),
			Why: "Take the copies of views away.",
		})
	}
	return out
}

// viewHasDoor tells whether vetted statements read a view through a copy over door views.
func (p *Plan) viewHasDoor(v *policy.View) bool { return p.HasDoors() && v.SignedQuery != "" }
