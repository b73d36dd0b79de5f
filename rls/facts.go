package rls

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
)

// roles are the names of pgconsent's roles, quoted as SQL except agentName and controlName.
type roles struct {
	agent, control, reader, rowsRole string
	agentName, controlName           string
}

// facts are the input of all features of a plan: the policy, the catalog, the roles, and what follows from these.
type facts struct {
	roles
	policy *policy.Policy
	snap   *catalog.Snapshot
	mode   Mode
	found  migrations.Found

	helpers      []predicate.Helper
	inPolicies   map[catalog.Name]bool // helpers that row policies read, not live attributes alone
	links        []*catalog.Relation
	materialized []materialized
	signed       []signedTable

	// The rest is not set while the hash of the plan is computed.
	children    []*policy.Child
	knownTables []*catalog.Relation // the tables of the policy and their parts
}

func newFacts(p *policy.Policy, snap *catalog.Snapshot, mode Mode, roles roles) *facts {
	f := &facts{roles: roles, policy: p, snap: snap, mode: mode, inPolicies: map[catalog.Name]bool{}}
	var all predicate.All
	for _, t := range p.Tables() {
		all = append(all, t.Rows)
		all = append(all, t.ColumnConditions()...)
		if t.Observed != nil { // comparisons use the rule that would apply
			all = append(all, t.Observed.Rows)
		}
		if t.Aggregate != nil {
			all = append(all, t.Aggregate.Rows)
		}
		if t.Write != nil {
			all = append(all, t.Write.Conditions()...)
			all = append(all, triggerConditions(t.Write)...)
		}
	}
	for _, h := range predicate.Helpers(all) {
		f.inPolicies[h.Relation.Name] = true
	}
	all = append(all, liveNodes(p)...)
	f.helpers = predicate.Helpers(all)
	for _, n := range predicate.MaterializedConsents(all) {
		f.materialized = append(f.materialized, newMaterialized(n))
	}
	f.links = predicate.ShownWhileEmpty(all)
	return f
}

// addChildren adds the partitions and children of tables, and which columns tables have.
func (f *facts) addChildren() {
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

// restrictedTables are the tables with hidden or masked columns.
func (f *facts) restrictedTables() []*policy.Table {
	var out []*policy.Table
	for _, t := range f.policy.Tables() {
		if t.Columns != nil {
			out = append(out, t)
		}
	}
	return out
}

// boundRoles are the roles to which the row policies of a table apply.
func (f *facts) boundRoles(t *policy.Table) string {
	if t.Columns != nil {
		return f.agent + ", " + f.rowsRole
	}
	return f.agent
}

// callers are the roles with whose rights row policies and masks run: the agents' role, and the owner of row views
// where a function that it owns reads them.
func (f *facts) callers() []string {
	if slices.ContainsFunc(f.policy.Tables(), byKey) {
		return []string{f.agent, f.rowsRole}
	}
	return []string{f.agent}
}

// readByView are the relations that agents read through a view of pgconsent's.
func (f *facts) readByView() []catalog.Name {
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

// isHelper tells whether predicates read a table.
func (f *facts) isHelper(r *catalog.Relation) bool {
	return slices.ContainsFunc(f.helpers, func(h predicate.Helper) bool { return h.Relation.Name == r.Name })
}

func (f *facts) hasSignedView(r *catalog.Relation) bool {
	return slices.ContainsFunc(f.signed, func(s signedTable) bool { return s.table.Relation.Name == r.Name })
}

// rule is the condition of a row policy for the rows that agents see of a table.
func (f *facts) rule(t *policy.Table) string { return f.condition(t.Rows, t.Relation) }

func (f *facts) condition(rows predicate.Node, r *catalog.Relation) string {
	if f.mode == SealOnly {
		return predicate.SealInPlan("(SELECT pgconsent_signed.sealed())")
	}
	return predicate.SealInPlan(predicate.Policy(rows, r))
}

// isCurrent is true, or raises an error while a statement is planned that was decided before the catalogs changed.
const isCurrent = predicate.CurrentCatalog

// objectsRead are the objects of the plan that conditions read.
func (f *facts) objectsRead(nodes ...predicate.Node) []string {
	all := predicate.All(nodes)
	var out []string
	for _, h := range predicate.Helpers(all) {
		out = append(out, helperIdentity(h.Relation))
	}
	for _, r := range predicate.ShownWhileEmpty(all) {
		out = append(out, emptyIdentity(r))
	}
	for _, n := range predicate.MaterializedConsents(all) {
		out = append(out, newMaterialized(n).identity())
	}
	return out
}

// conditionsOf are the rule of a table and the conditions of its columns.
func conditionsOf(t *policy.Table) []predicate.Node {
	return append([]predicate.Node{t.Rows}, t.ColumnConditions()...)
}

// one is a list of one name.
func one(name string) []string { return []string{name} }
