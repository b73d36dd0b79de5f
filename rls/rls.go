// Package rls writes the database half of a policy: row policies, helper and signed views, catalog shadows, rights.
//
// With the statements of a [Plan] installed, the agent's role reads of a protected table exactly the rows that the
// predicate shows, whatever SQL it sends, and only in a sealed session. It changes only what the policy permits, in
// rows that it sees, into rows that it sees. It reads no other table, and creates no object. Other roles keep the
// rights they had: the only restrictive policies are for the agent's role. Row security is never FORCEd, so owners are
// not affected.
//
// A plan is a list of objects. Each feature of the package is a type that makes its own objects: row policies, signed
// views, change triggers, and so on. The statements that install a plan make the objects in their order, and the
// statements that remove it drop them in the reverse order.
//
// A plan does not guarantee that nobody changes the database afterwards, that no foreign policy hides rows from the
// reader role, or that the roles were safe before. Doctor checks these.
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

// Mode says what the generated policies enforce.
type Mode int

// The modes.
const (
	Enforce  Mode = iota
	SealOnly      // tests: policies reduced to "the seal is valid", so that rewriting is tested by itself
)

// Options name the roles; the zero value is for production.
type Options struct {
	// "": pgconsent_agent, pgconsent_control, pgconsent_reader, pgconsent_rows
	AgentRole, ControlRole, ReaderRole, RowsRole string
	Mode                                         Mode
	SignedViews                                  bool // make the signed views
}

// Statement is one statement with its reason.
type Statement = migrations.Statement

// Object is one thing that a plan makes.
type Object = migrations.Object

// Plan is the database half of a policy.
type Plan struct {
	facts *facts
	hash  string
}

// Generate makes the plan. It is a pure function: equal policies over equal catalogs give equal plans.
func Generate(p *policy.Policy, snap *catalog.Snapshot, o Options) *Plan {
	agent := cmp.Or(o.AgentRole, migrations.DefaultAgentRole)
	control := cmp.Or(o.ControlRole, migrations.DefaultControlRole)
	plan := &Plan{facts: newFacts(p, snap, o.Mode, roles{
		agentName: agent, controlName: control,
		agent: catalog.QuoteIdent(agent), control: catalog.QuoteIdent(control),
		reader:   catalog.QuoteIdent(cmp.Or(o.ReaderRole, migrations.DefaultReaderRole)),
		rowsRole: catalog.QuoteIdent(cmp.Or(o.RowsRole, migrations.DefaultRowsRole)),
	})}
	if o.SignedViews {
		plan.facts.signed = signedTables(p)
	}
	// The hash does not depend on partitions and columns, which come and go. A proxy serves without the partitions and
	// columns that migrate has not seen; agents cannot name them.
	h := sha256.New()
	for _, s := range plan.Up() {
		fmt.Fprintf(h, "%s;\n", s.SQL)
	}
	plan.hash = hex.EncodeToString(h.Sum(nil)[:16])
	plan.facts.addChildren()
	return plan
}

// Hash is the hash of the database half, without partitions and children of tables and the columns that tables are
// known to have. Two policies with one hash can be swapped without migrating.
func (p *Plan) Hash() string { return p.hash }

// PolicyVersion is the version of the whole policy.
func (p *Plan) PolicyVersion() string { return p.facts.policy.Version() }

// feature makes objects of one kind.
type feature interface{ objects() []Object }

// Objects returns the objects of the plan for a database in the state found, in the order in which they are made.
func (p *Plan) Objects(found migrations.Found) []Object {
	f := *p.facts
	f.found = found
	var out []Object
	for _, kind := range []feature{
		revocations{&f}, schemaRights{&f}, helperViews{&f}, liveAttributes{&f}, materializations{&f}, signedViews{&f},
		groupViews{&f}, canaries{&f}, rowPolicies{&f}, childPolicies{&f}, rowViews{&f}, changeTriggers{&f},
		functionRights{&f},
		shownObjects{&f}, shadows{&f}, viewCopies{&f}, sweeps{&f}, privacy{&f}, controlRights{&f},
	} {
		out = append(out, kind.objects()...)
	}
	return out
}

// Up returns the statements for a database in which nothing was protected before.
func (p *Plan) Up() []Statement { return p.UpFrom(migrations.Found{}) }

// Down returns the statements that undo Up, except for privileges, which package migrations restores as it found them.
func (p *Plan) Down() []Statement { return p.DownTo(migrations.Found{}) }

// UpFrom returns the statements for a database in the state found, in order.
func (p *Plan) UpFrom(f migrations.Found) []Statement { return migrations.MakeAll(p.Objects(f)) }

// DownTo returns the statements that restore the state found, privileges excepted.
func (p *Plan) DownTo(f migrations.Found) []Statement { return migrations.DropAll(p.Objects(f)) }

// Tables are the tables of a policy's predicates, each once: the listed ones and the others that rules read.
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
	for _, l := range p.LiveAttributes() {
		for _, h := range predicate.Helpers(l.Node()) {
			out = append(out, h.Relation)
		}
	}
	return out
}
