// Package rls writes the database half of a policy: policies, helper and gate views, shadows of the catalogs, grants.
//
// Under the statements of a [Plan] the agent's role reads of a protected table exactly the rows that the predicate
// shows, whatever SQL it sends, and only in a sealed session; it changes what the policy lets it, of the rows it sees
// and into rows it sees; it reads no other table, and makes no object. Other roles keep what they had: the one policy
// that narrows is RESTRICTIVE and speaks of the agent's role alone. Row security is never FORCEd, so owners are not
// touched.
//
// A plan does not promise that nobody changes the database afterwards, that a foreign policy does not narrow what the
// reader role sees, or that roles were safe before: that is for doctor to check.
package rls

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
)

// Mode says what the generated policies hold.
type Mode int

// The modes.
const (
	Enforce  Mode = iota
	SealOnly      // tests: policies reduced to "the seal is valid", so that the rewriter's wall stands alone
)

// Options name the roles; the zero value is right for production.
type Options struct {
	// "": pgconsent_agent, pgconsent_control, pgconsent_reader, pgconsent_rows
	AgentRole, ControlRole, ReaderRole, RowsRole string
	Mode                                         Mode
	Doors                                        bool // make the views of the gate door
}

// Statement is one statement with its reason.
type Statement = migrations.Statement

// Plan is what a policy asks of the database.
type Plan struct {
	policy *policy.Policy
	snap   *catalog.Snapshot
	mode   Mode
	hash   string

	agentName, controlName           string
	agent, control, reader, rowsRole string // quoted
	helpers                          []predicate.Helper
	gated                            map[catalog.Name]bool // helpers that policies read, not live attributes alone
	links                            []*catalog.Relation
	horizons                         []horizon
	doors                            []door
	children                         []*policy.Child
	// the tables of the policy and their parts; nil while the hash is reckoned
	known []*catalog.Relation
}

// Generate makes the plan. It is a pure function: equal policies over equal catalogs give equal plans.
func Generate(p *policy.Policy, snap *catalog.Snapshot, o Options) *Plan {
	name := func(given, otherwise string) string {
		if given == "" {
			given = otherwise
		}
		return catalog.QuoteIdent(given)
	}
	plan := &Plan{
		agentName:   cmp.Or(o.AgentRole, migrations.DefaultAgentRole),
		controlName: cmp.Or(o.ControlRole, migrations.DefaultControlRole),
		policy:      p, snap: snap, mode: o.Mode,
		agent:   name(o.AgentRole, migrations.DefaultAgentRole),
		control: name(o.ControlRole, migrations.DefaultControlRole),
		reader:  name(o.ReaderRole, migrations.DefaultReaderRole),

		rowsRole: name(o.RowsRole, migrations.DefaultRowsRole),
	}
	var all predicate.All
	for _, t := range p.Tables() {
		all = append(all, t.Rows)
		all = append(all, t.ColumnConditions()...)
		if t.Observed != nil { // what it would be is tried
			all = append(all, t.Observed.Rows)
		}
		if t.Aggregate != nil {
			all = append(all, t.Aggregate.Rows)
		}
		if t.Write != nil {
			all = append(all, t.Write.InsertCheck, t.Write.UpdateCheck)
			all = append(all, written(t.Write)...)
		}
	}
	plan.gated = map[catalog.Name]bool{}
	for _, h := range predicate.Helpers(all) {
		plan.gated[h.Relation.Name] = true
	}
	all = append(all, plan.liveNodes()...)
	plan.helpers = predicate.Helpers(all)
	for _, n := range predicate.MaterializedConsents(all) {
		plan.horizons = append(plan.horizons, horizonOf(n))
	}
	plan.links = predicate.ShownWhileEmpty(all)
	if o.Doors {
		plan.doors = doors(p)
	}
	// Partitions and columns come and go. A proxy goes on without those that migrate has not seen, which agents cannot
	// name.
	h := sha256.New()
	for _, s := range plan.Up() {
		fmt.Fprintf(h, "%s;\n", s.SQL)
	}
	plan.hash = hex.EncodeToString(h.Sum(nil)[:16])
	plan.children = p.Children()
	for _, t := range p.Tables() {
		plan.known = append(plan.known, t.Relation)
	}
	for _, c := range plan.children {
		if c.ReadableByName {
			plan.known = append(plan.known, c.Relation)
		}
	}
	return plan
}

// Hash is the hash of the database half, partitions and children of tables, and the columns that they are known to
// have, left out: two policies with one hash can be swapped without migrating.
func (p *Plan) Hash() string { return p.hash }

// PolicyVersion is the version of the whole policy.
func (p *Plan) PolicyVersion() string { return p.policy.Version() }

// Up returns the statements for a database in which nothing was protected before.
func (p *Plan) Up() []Statement { return p.UpFrom(migrations.Found{}) }

// Down returns the statements that undo Up, but for privileges, which migrations gives back as it found them.
func (p *Plan) Down() []Statement { return p.DownTo(migrations.Found{}) }

// UpFrom returns the statements for a database in the state found, in order.
func (p *Plan) UpFrom(f migrations.Found) []Statement {
	var out []Statement
	for _, part := range [][]Statement{
		p.revocations(f), p.schemas(f), p.readers(f), p.live(), p.kept(), p.doorViews(), p.groupViews(), p.canaries(),
		p.policies(f), p.parts(f), p.rowViews(), p.changes(), p.functions(), p.shown(), p.shadows(), p.views(),
		p.sweeps(), p.privacy(), p.controls(),
	} {
		out = append(out, part...)
	}
	return out
}

// DownTo returns the statements that restore the state found, privileges excepted.
func (p *Plan) DownTo(f migrations.Found) []Statement {
	var out []Statement
	for _, part := range [][]Statement{p.dropPrivacy(), p.dropSweeps(), p.dropViews(), p.dropShadows(), p.dropShown(),
		p.dropChanges(), p.dropRowViews(), p.dropParts(f), p.dropPolicies(f), p.dropCanaries(), p.dropGroups(),
		p.dropDoors(), p.dropKept(), p.dropLive(), p.dropReaders()} {
		out = append(out, part...)
	}
	return out
}

// Tables returns the tables that the statements change: those of the policy, and those that rules read besides.
func (p *Plan) Tables() []catalog.Name {
	var out []catalog.Name
	for _, r := range Tables(p.policy) {
		out = append(out, r.Name)
	}
	return out
}

// Tables are those that a policy's predicates concern, each once: the listed ones and those read besides.
func Tables(p *policy.Policy) []*catalog.Relation {
	var out []*catalog.Relation
	add := func(r *catalog.Relation) {
		if !slices.ContainsFunc(out, func(o *catalog.Relation) bool { return o.OID == r.OID }) {
			out = append(out, r)
		}
	}
	for _, t := range p.Tables() {
		add(t.Relation)
		for _, h := range predicate.Helpers(t.VisibilityRules()) {
			add(h.Relation)
		}
	}
	for _, l := range p.Live() {
		for _, h := range predicate.Helpers(l.Node()) {
			out = append(out, h.Relation)
		}
	}
	return out
}
