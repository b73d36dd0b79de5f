package rls

import "fmt"

// childPolicies are the policies of partitions and inheritance children of tables: their parents' rules, for statements
// that read them by name. Read through the parent, a child is under the parent's policies whatever its own are.
type childPolicies struct{ *facts }

func (f childPolicies) objects() []Object {
	const why = "A part of a table that the policy lists has the table's rule. Agents write through the table."
	var out []Object
	for _, c := range f.children {
		table := c.Relation.Name.SQL()
		out = append(out, f.rowSecurity(c.Relation, f.agent, false))
		add := func(name, sql string, needs []string) {
			o := newObject(policyIdentity(name, c.Relation), why, c.Relation)
			o.Needs = needs
			o.create(sql)
			o.drop(whyDropPolicies, dropPolicy(name, c.Relation))
			out = append(out, o.Object)
		}
		add(selectPolicy, fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR SELECT TO %s USING (%s)",
			selectPolicy, table, f.agent, f.condition(c.Rows, c.Relation)), f.objectsRead(c.Rows))
		add(insertPolicy, fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR INSERT TO %s WITH CHECK (false)",
			insertPolicy, table, f.agent), nil)
		add(updatePolicy, fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR UPDATE TO %s USING (false)",
			updatePolicy, table, f.agent), nil)
		add(deletePolicy, fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR DELETE TO %s USING (false)",
			deletePolicy, table, f.agent), nil)
		out = append(out, f.current(c.Relation, f.agent))
		if c.ReadableByName {
			out = append(out, rights("SELECT on "+c.Relation.Name.String(),
				rightsOn("TABLE", one(table), one(f.agent), "Agents may name it as well.", "SELECT")))
		}
	}
	return out
}
