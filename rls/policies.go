package rls

import (
	"fmt"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
)

// policies protects each table of the policy.
func (p *Plan) policies(f migrations.Found) []Statement {
	var out []Statement
	for _, t := range p.policy.Tables() {
		if t.LacksRowSecurity() {
			continue
		}
		table := t.Relation.Name.SQL()
		out = append(out,
			Statement{
				SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR SELECT TO %s USING (%s)", selectPolicy,
					table, p.bound(t), p.rows(t)),
				Why: "Which rows agents see. RESTRICTIVE, because a permissive policy would be ORed with those of others.",
			},
		)
		out = append(out, fresh(t.Relation, p.bound(t)))
		out = append(out, p.writes(t)...)
		out = append(out, p.enable(t.Relation, p.bound(t), t.Write != nil, f)...)
		if t.Columns == nil { // else agents read its row view
			out = append(out, Statement{
				SQL: fmt.Sprintf("GRANT SELECT ON TABLE %s TO %s", table, p.agent),
				Why: "The policy lists the table.",
			})
		}
	}
	for _, r := range p.unlisted() {
		out = append(out, Statement{
			SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR ALL TO %s USING (false)", nonePolicy, r.Name.SQL(), p.agent),
			Why: "Predicates read the table; the policy does not list it, so agents see nothing of it, whatever PUBLIC may do.",
		})
		out = append(out, p.enable(r, p.agent, false, f)...)
	}
	return out
}

// unlisted are the tables that predicates read and the policy does not list. They are under row security as well: it
// keeps the planner from running an agent's operators on their statistics.
func (p *Plan) unlisted() []*catalog.Relation {
	var out []*catalog.Relation
	for _, h := range p.helpers {
		if _, ok := p.policy.Table(h.Relation.Name); !ok && h.Relation.Name != predicate.RegistryTable {
			out = append(out, h.Relation)
		}
	}
	return out
}

// enable switches row security on so that it concerns our roles alone.
func (p *Plan) enable(r *catalog.Relation, roles string, written bool, f migrations.Found) []Statement {
	table := r.Name.SQL()
	if f.RowSecurity[r.Name.String()] {
		command := "SELECT"
		if written {
			command = "ALL" // each command has a restrictive policy
		}
		return []Statement{{
			SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS PERMISSIVE FOR %s TO %s USING (true)", openPolicy, table, command, roles),
			Why: "Row security is on already and shows other roles what it did; a restrictive policy needs a " +
				"permissive one beside it.",
		}}
	}
	return []Statement{
		{
			SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS PERMISSIVE FOR ALL TO PUBLIC USING (true)", openPolicy, table),
			Why: "Other roles keep every row that their grants give them: row security was off.",
		},
		{
			SQL: fmt.Sprintf("ALTER TABLE %s ENABLE ROW LEVEL SECURITY", table),
			Why: "Row security. It is never FORCEd: the owner is not touched.",
		},
	}
}

// isFresh is true, or raises while a statement is planned that was decided before the catalogs changed.
const isFresh = predicate.CurrentCatalog

// fresh refuses statements that were decided under other catalogs, whatever they do with the table.
func fresh(r *catalog.Relation, roles string) Statement {
	return Statement{
		SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR ALL TO %s USING (%s)", freshPolicy, r.Name.SQL(),
			roles, isFresh),
		Why: "What was decided before the last DDL is planned no more. The planner evaluates it, once for a " +
			"statement: no row is looked at.",
	}
}

func (p *Plan) rows(t *policy.Table) string {
	if p.mode == SealOnly {
		return "(SELECT pgconsent_gate.sealed())"
	}
	return predicate.Policy(t.Rows, t.Relation)
}

func (p *Plan) dropPolicies(f migrations.Found) []Statement {
	const why = "Take the policies away."
	var out []Statement
	drop := func(r *catalog.Relation, names ...string) { out = append(out, dropPolicies(r, f, why, names...)...) }
	for _, t := range p.policy.Tables() {
		if t.LacksRowSecurity() {
			continue
		}
		out = append(out, p.dropWrites(t)...)
		drop(t.Relation, selectPolicy, insertPolicy, updatePolicy, deletePolicy, waitedUpdatePolicy,
			waitedDeletePolicy, freshPolicy, openPolicy)
	}
	for _, r := range p.unlisted() {
		drop(r, nonePolicy, openPolicy)
	}
	return out
}

func dropPolicies(r *catalog.Relation, f migrations.Found, why string, names ...string) []Statement {
	var out []Statement
	for _, name := range names {
		out = append(out, Statement{SQL: fmt.Sprintf("DROP POLICY IF EXISTS %s ON %s", name, r.Name.SQL()), Why: why})
	}
	if !f.RowSecurity[r.Name.String()] {
		out = append(out, Statement{SQL: fmt.Sprintf("ALTER TABLE %s DISABLE ROW LEVEL SECURITY", r.Name.SQL()),
			Why: "Row security was off."})
	}
	return out
}
