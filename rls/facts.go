package rls

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
)

// roles has the names of pgconsent's database roles. All are quoted for SQL, except agentName and controlName.
type roles struct {
	agent, control, reader, rowsRole string
	agentName, controlName           string
}

// planFacts is the input of all features of a plan: the policy, the catalog, the roles, and values derived from these.
type planFacts struct {
	roles
	policy     *policy.Policy
	snap       *catalog.Snapshot
	mode       Mode
	foundState migrations.Found

	lookupTables       []predicate.LookupTable
	policyLookupTables map[catalog.Name]bool // the lookup tables that row policies read; others serve only live attributes
	links              []*catalog.Relation
	materialized       []materializedConsent
	signedTables       []signedTable

	// addChildren sets these fields, after Generate has computed the plan's hash.
	children    []*policy.Child
	knownTables []*catalog.Relation // the tables of the policy and their partitions and children
}

func newFacts(p *policy.Policy, snap *catalog.Snapshot, mode Mode, roles roles) *planFacts {
	f := &planFacts{roles: roles, policy: p, snap: snap, mode: mode, policyLookupTables: map[catalog.Name]bool{}}
	var allRules predicate.All
	for _, t := range p.Tables() {
		allRules = append(allRules, t.Rows)
		allRules = append(allRules, t.ColumnConditions()...)
		if t.Observed != nil { // observing compares results with the rule that enforcement would apply
			allRules = append(allRules, t.Observed.Rows)
		}
		if t.Aggregate != nil {
			allRules = append(allRules, t.Aggregate.Rows)
		}
		if t.Write != nil {
			allRules = append(allRules, t.Write.Conditions()...)
			allRules = append(allRules, triggerConditions(t.Write)...)
		}
	}
	for _, h := range predicate.LookupTables(allRules) {
		f.policyLookupTables[h.Relation.Name] = true
	}
	allRules = append(allRules, liveNodes(p)...)
	f.lookupTables = predicate.LookupTables(allRules)
	for _, n := range predicate.MaterializedConsents(allRules) {
		f.materialized = append(f.materialized, newMaterialized(n))
	}
	f.links = predicate.TablesThatShowWhenEmpty(allRules)
	return f
}

// addChildren sets the children and the known tables. The hash of the plan does not depend on them.
func (f *planFacts) addChildren() {
	f.children = f.policy.Children()
	for _, t := range f.policy.Tables() {
		f.knownTables = append(f.knownTables, t.Relation)
	}
	for _, c := range f.children {
		if c.ReadableByName {
			f.knownTables = append(f.knownTables, c.Relation)
		}
	}
}

// restrictedTables returns the tables with hidden or masked columns.
func (f *planFacts) restrictedTables() []*policy.Table {
	var out []*policy.Table
	for _, t := range f.policy.Tables() {
		if t.Columns != nil {
			out = append(out, t)
		}
	}
	return out
}

// boundRoles returns the roles, separated by commas, to which the row policies of a table apply.
func (f *planFacts) boundRoles(t *policy.Table) string {
	if t.Columns != nil {
		return f.agent + ", " + f.rowsRole
	}
	return f.agent
}

// callers returns the roles with whose rights PostgreSQL evaluates row policies and masks. These are the agents' role
// and, if there are functions that fetch rows by key, the role that owns these functions.
func (f *planFacts) callers() []string {
	if slices.ContainsFunc(f.policy.Tables(), byKey) {
		return []string{f.agent, f.rowsRole}
	}
	return []string{f.agent}
}

// relationsReadByView returns the tables and views of the owner in whose place agents read a view of pgconsent.
func (f *planFacts) relationsReadByView() []catalog.Name {
	var out []catalog.Name
	for _, t := range f.restrictedTables() {
		out = append(out, t.Relation.Name)
	}
	for _, v := range f.policy.Views() {
		if v.Listed {
			out = append(out, v.Relation.Name)
		}
	}
	return out
}

// isLookupTable reports whether predicates look up rows in a table.
func (f *planFacts) isLookupTable(r *catalog.Relation) bool {
	return slices.ContainsFunc(f.lookupTables, func(h predicate.LookupTable) bool { return h.Relation.Name == r.Name })
}

func (f *planFacts) hasSignedView(r *catalog.Relation) bool {
	return slices.ContainsFunc(f.signedTables, func(s signedTable) bool { return s.table.Relation.Name == r.Name })
}

// ruleCondition returns the USING condition of a table's SELECT policy for agents.
func (f *planFacts) ruleCondition(t *policy.Table) string { return f.condition(t.Rows, t.Relation) }

func (f *planFacts) condition(rows predicate.Node, r *catalog.Relation) string {
	if f.mode == SealOnly {
		return predicate.WithSealInPlan("(SELECT pgconsent_signed.sealed())")
	}
	return predicate.WithSealInPlan(predicate.RowPolicySQL(rows, r))
}

// catalogIsCurrent is a SQL call that returns true. While PostgreSQL plans a statement that was decided before the last
// relevant DDL, the call raises an error.
const catalogIsCurrent = predicate.CurrentCatalog

// objectsRead returns the identities of the plan's objects that the conditions of nodes read.
func (f *planFacts) objectsRead(nodes ...predicate.Node) []string {
	conditions := predicate.All(nodes)
	var out []string
	for _, h := range predicate.LookupTables(conditions) {
		out = append(out, lookupViewsIdentity(h.Relation))
	}
	out = append(out, readableIdentities(conditions)...)
	for _, n := range predicate.MaterializedConsents(conditions) {
		out = append(out, newMaterialized(n).identity())
	}
	return out
}

// conditionsOf returns the row rule of a table and the conditions of its columns.
func conditionsOf(t *policy.Table) []predicate.Node {
	return append([]predicate.Node{t.Rows}, t.ColumnConditions()...)
}

// listOf returns a list with a single name.
func listOf(name string) []string { return []string{name} }
