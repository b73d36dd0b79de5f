package rls

import (
	"fmt"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/migrations"
)

// parts puts the partitions and inheritance children of tables under the rules of their parents, for when they are read
// by name. Read through the parent they are under its policies, whether or not they have any.
func (p *Plan) parts(f migrations.Found) []Statement {
	var out []Statement
	for _, c := range p.children {
		table := c.Relation.Name.SQL()
		rows := predicate.Policy(c.Rows, c.Relation)
		if p.mode == SealOnly {
			rows = "(SELECT pgconsent_gate.sealed())"
		}
		const why = "A part of a table that the policy lists has the table's rule. Agents write through the table."
		out = append(out,
			Statement{SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR SELECT TO %s USING (%s)",
				selectPolicy, table, p.agent, rows), Why: why},
			Statement{SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR INSERT TO %s WITH CHECK (false)",
				insertPolicy, table, p.agent), Why: why},
			Statement{SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR UPDATE TO %s USING (false)",
				updatePolicy, table, p.agent), Why: why},
			Statement{SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR DELETE TO %s USING (false)",
				deletePolicy, table, p.agent), Why: why},
		)
		out = append(out, fresh(c.Relation, p.agent))
		out = append(out, p.enable(c.Relation, p.agent, false, f)...)
		if c.ReadableByName {
			out = append(out, Statement{SQL: fmt.Sprintf("GRANT SELECT ON TABLE %s TO %s", table, p.agent),
				Why: "Agents may name it as well."})
		}
	}
	return out
}

func (p *Plan) dropParts(f migrations.Found) []Statement {
	var out []Statement
	for _, c := range p.children {
		out = append(out, dropPolicies(c.Relation, f, "Take the policies away.", selectPolicy, insertPolicy,
			updatePolicy, deletePolicy, freshPolicy, openPolicy)...)
	}
	return out
}
