package rls

import "fmt"

// childPolicies makes the row policies of partitions and inheritance children. They have the rules of the parent, and
// apply to statements that name the child. For a statement that names the parent, PostgreSQL applies only the parent's
// policies.
type childPolicies struct{ *planFacts }

func (f childPolicies) objects() []Object {
	const why = "A part of a table that the policy lists has the table's rule. Agents write through the table."
	var out []Object
	for _, c := range f.children {
		table := c.Relation.Name.SQL()
		out = append(out, f.rowSecurity(c.Relation, f.agent, false))
		add := func(name, sql string) {
			o := newObject(policyIdentity(name, c.Relation), why, c.Relation)
			o.create(sql)
			o.drop(dropPoliciesReason, dropPolicy(name, c.Relation))
			out = append(out, o.Object)
		}
		selection := newObject(policyIdentity(selectPolicy, c.Relation), why, c.Relation)
		selection.NeededObjects = f.objectsRead(c.Rows)
		f.addSelectPolicy(selection, c.Relation, f.agent, f.condition(c.Rows, c.Relation))
		out = append(out, selection.Object)
		add(insertPolicy, fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR INSERT TO %s WITH CHECK (false)",
			insertPolicy, table, f.agent))
		add(updatePolicy, fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR UPDATE TO %s USING (false)",
			updatePolicy, table, f.agent))
		add(deletePolicy, fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR DELETE TO %s USING (false)",
			deletePolicy, table, f.agent))
		out = append(out, f.currentCatalogPolicy(c.Relation, f.agent))
		if c.ReadableByName {
			out = append(out, rightsObject("SELECT on "+c.Relation.Name.String(),
				rightsOn("TABLE", listOf(table), listOf(f.agent), "Agents may name it as well.", "SELECT")))
		}
	}
	return out
}
