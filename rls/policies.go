package rls

import (
	"fmt"

	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/predicate"
)

// policies protects each table of the policy.
func (p *Plan) policies(f migrations.Found) []Statement {
	var out []Statement
	for _, t := range p.policy.Tables() {
		table := t.Relation.Name.SQL()
		out = append(out,
			Statement{
				SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR SELECT TO %s USING (%s)", selectPolicy, table, p.agent, p.rows(t)),
				Why: "Which rows agents see. RESTRICTIVE, because a permissive policy would be ORed with those of others.",
			},

			Statement{
				SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR INSERT TO %s WITH CHECK (false)", insertPolicy, table, p.agent),
				Why: "Agents write nothing.",
			},

			Statement{
				SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR UPDATE TO %s USING (false)", updatePolicy, table, p.agent),
				Why: "Agents write nothing.",
			},

			Statement{
				SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR DELETE TO %s USING (false)", deletePolicy, table, p.agent),
				Why: "Agents write nothing.",
			},
		)
		if f.RowSecurity[t.Relation.Name.String()] {
			out = append(out, Statement{
				SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS PERMISSIVE FOR SELECT TO %s USING (true)", openPolicy, table, p.agent),
				Why: "Row security is on already and shows other roles what it did; a restrictive policy needs a permissive one beside it.",
			})
		} else {
			out = append(out,
				Statement{
					SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS PERMISSIVE FOR ALL TO PUBLIC USING (true)", openPolicy, table),
					Why: "Other roles keep every row that their grants give them: row security was off.",
				},

				Statement{
					SQL: fmt.Sprintf("ALTER TABLE %s ENABLE ROW LEVEL SECURITY", table),
					Why: "The wall. It is never FORCEd: the owner is not touched.",
				},
			)
		}
		out = append(out, Statement{
			SQL: fmt.Sprintf("GRANT SELECT ON TABLE %s TO %s", table, p.agent),
			Why: "The policy lists the table.",
		})
	}
	return out
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
	for _, t := range p.policy.Tables() {
		table := t.Relation.Name.SQL()
		for _, name := range []string{selectPolicy, insertPolicy, updatePolicy, deletePolicy, openPolicy} {
			out = append(out, Statement{SQL: fmt.Sprintf("DROP POLICY IF EXISTS %s ON %s", name, table), Why: why})
		}
		if !f.RowSecurity[t.Relation.Name.String()] {
			out = append(out, Statement{
				SQL: fmt.Sprintf("ALTER TABLE %s DISABLE ROW LEVEL SECURITY", table),
				Why: "Row security was off.",
			})
		}
	}
	return out
}
