package rls

import (
	"fmt"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// The names of pgconsent's row policies on tables of the owner.
const (
	selectPolicy  = "pgconsent_select"
	insertPolicy  = "pgconsent_insert"
	updatePolicy  = "pgconsent_update"
	deletePolicy  = "pgconsent_delete"
	noRowsPolicy  = "pgconsent_none"
	openPolicy    = "pgconsent_open"
	readerPolicy  = "pgconsent_reader"
	currentPolicy = "pgconsent_current"
)

func policyIdentity(name string, r *catalog.Relation) string {
	return "policy " + name + " on " + r.Name.String()
}

func dropPolicy(name string, r *catalog.Relation) string {
	return fmt.Sprintf("DROP POLICY IF EXISTS %s ON %s", name, r.Name.SQL())
}

// rowPolicies makes the row policies of the tables that the policy lists, and of the other tables that predicates read.
type rowPolicies struct{ *planFacts }

func (f rowPolicies) objects() []Object {
	var out []Object
	for _, t := range f.policy.Tables() {
		if t.LacksRowSecurity() {
			continue
		}
		table := t.Relation.Name.SQL()
		writes := writePolicies{f.planFacts, t}
		out = append(out, f.rowSecurity(t.Relation, f.boundRoles(t), t.Write != nil))
		out = append(out, writes.triggers()...)
		o := newObject(policyIdentity(selectPolicy, t.Relation),
			"Which rows agents see. RESTRICTIVE, because a permissive policy would be ORed with those of others.", t.Relation)
		o.NeededObjects = f.objectsRead(t.Rows)
		f.addSelectPolicy(o, t.Relation, f.boundRoles(t), f.ruleCondition(t))
		out = append(out, f.currentCatalogPolicy(t.Relation, f.boundRoles(t)), o.Object)
		out = append(out, writes.objects()...)
		if t.Columns == nil { // without a row view, agents read the table itself
			out = append(out, rightsObject("SELECT on "+t.Relation.Name.String(),
				rightsOn("TABLE", listOf(table), listOf(f.agent), "The policy lists the table.", "SELECT")))
		}
	}
	for _, r := range f.unlistedTables() {
		out = append(out, f.rowSecurity(r, f.agent, false))
		o := newObject(policyIdentity(noRowsPolicy, r),
			"Predicates read the table; the policy does not list it, so agents see nothing of it, whatever PUBLIC may do.", r)
		o.create(fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR ALL TO %s USING (false)", noRowsPolicy, r.Name.SQL(),
			f.agent))
		o.drop(dropPoliciesReason, dropPolicy(noRowsPolicy, r))
		out = append(out, o.Object)
	}
	return out
}

// addSelectPolicy adds to o the policy that says which rows these roles see, and the functions of its sets.
func (f *planFacts) addSelectPolicy(o *objectBuilder, r *catalog.Relation, roles, condition string) {
	condition, sets := predicate.WithSetFunctions(condition, r.Name)
	reason := o.why
	o.why = "A set of the policy. PostgreSQL opens the function only for statements that read many rows."
	for _, set := range sets {
		o.create(fmt.Sprintf("CREATE FUNCTION %s() RETURNS SETOF %s\nLANGUAGE sql STABLE PARALLEL RESTRICTED\nBEGIN ATOMIC\n  %s;\nEND",
			set.Name.SQL(), set.LookupView, set.Query))
		o.create(fmt.Sprintf("REVOKE ALL ON FUNCTION %s() FROM PUBLIC", set.Name.SQL()))
		o.create(fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s() TO %s", set.Name.SQL(), strings.Join(f.callers(), ", ")))
	}
	o.why = reason
	o.create(fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR SELECT TO %s USING (%s)", selectPolicy, r.Name.SQL(),
		roles, condition))
	o.drop(dropPoliciesReason, dropPolicy(selectPolicy, r))
	for _, set := range sets {
		o.drop(dropPoliciesReason, fmt.Sprintf("DROP FUNCTION IF EXISTS %s()", set.Name.SQL()))
	}
}

const dropPoliciesReason = "Take the policies away."

// unlistedTables returns the tables that predicates read and the policy does not list. These tables get row security as
// well, so that the planner runs no operator of an agent on their statistics.
func (f rowPolicies) unlistedTables() []*catalog.Relation {
	var out []*catalog.Relation
	for _, h := range f.lookupTables {
		if _, ok := f.policy.Table(h.Relation.Name); !ok && h.Relation.Name != predicate.CurrentConsents {
			out = append(out, h.Relation)
		}
	}
	return out
}

// rowSecurity returns an object that enables row security on a table, and a permissive policy so that roles other than
// pgconsent's are not restricted. It is the first object of a table, and so the last one that is dropped: if row
// security is off while policies exist, an event trigger withdraws the agents' rights.
func (f *planFacts) rowSecurity(r *catalog.Relation, roles string, written bool) Object {
	o := newObject("row security of "+r.Name.String(), "", r)
	table := r.Name.SQL()
	o.drop(dropPoliciesReason, dropPolicy(openPolicy, r))
	if f.foundState.RowSecurity[r.Name.String()] {
		command := "SELECT"
		if written {
			command = "ALL" // each command also has a restrictive policy
		}
		o.why = "Row security is on already and shows other roles what it did; a restrictive policy needs a " +
			"permissive one beside it."
		o.create(fmt.Sprintf("CREATE POLICY %s ON %s AS PERMISSIVE FOR %s TO %s USING (true)", openPolicy, table, command,
			roles))
		return o.Object
	}
	o.why = "Other roles keep every row that their grants give them: row security was off."
	o.create(fmt.Sprintf("CREATE POLICY %s ON %s AS PERMISSIVE FOR ALL TO PUBLIC USING (true)", openPolicy, table))
	o.why = "Row security. It is never FORCEd: the owner is not touched."
	o.create(fmt.Sprintf("ALTER TABLE %s ENABLE ROW LEVEL SECURITY", table))
	o.drop("Row security was off.", fmt.Sprintf("ALTER TABLE %s DISABLE ROW LEVEL SECURITY", table))
	return o.Object
}

// currentCatalogPolicy returns the row policy that makes planning fail for statements which were decided before the
// last relevant DDL.
func (f *planFacts) currentCatalogPolicy(r *catalog.Relation, roles string) Object {
	o := newObject(policyIdentity(currentPolicy, r),
		"What was decided before the last DDL is planned no more. The planner evaluates it, once for a "+
			"statement: no row is looked at.", r)
	o.create(fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR ALL TO %s USING (%s)", currentPolicy, r.Name.SQL(),
		roles, catalogIsCurrent))
	o.drop(dropPoliciesReason, dropPolicy(currentPolicy, r))
	return o.Object
}
