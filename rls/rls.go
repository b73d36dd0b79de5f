// Package rls writes the database half of a policy: row policies, lookup and signed views, catalog shadows, rights.
//
// With the statements of a [Plan] installed, the agent's role reads of a protected table exactly the rows that the
// predicate shows. This holds whatever SQL it sends, and only in a sealed session. It changes only what the policy
// permits, in rows that it sees, into rows that it sees. It reads no other table, and creates no object. Other roles
// keep the rights they had: the only restrictive policies are for the agent's role. Row security is never FORCEd, so
// owners are not affected.
//
// A plan is a list of objects. Each feature of the package is a type that makes its own objects: row policies, signed
// views, change triggers, and so on. The statements that install a plan make the objects in their order, and the
// statements that remove it drop them in the reverse order.
//
// A plan does not guarantee that nobody changes the database afterwards, nor that no foreign policy hides rows from the
// reader role. It does not guarantee that the roles were safe before. Doctor checks these.
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

// The modes of the generated policies.
const (
	Enforce  Mode = iota
	SealOnly      // for tests: policies require only a valid seal, so that rewriting is tested by itself
)

// Options name the roles and say what to make; the zero value is for production.
type Options struct {
	// the names of the roles; "": pgconsent_agent, pgconsent_control, pgconsent_reader, pgconsent_rows
	AgentRole, ControlRole, ReaderRole, RowsRole string
	Mode                                         Mode
	SignedViews                                  bool // make the signed views, too
}

// Statement is a SQL statement with the reason for it.
type Statement = migrations.Statement

// Object is one thing that a plan makes in the database.
type Object = migrations.Object

// Plan is the part of a policy that the database enforces.
type Plan struct {
	facts *planFacts
	hash  string
}

// Generate makes the plan of a policy. It is a pure function: equal policies over equal catalogs give equal plans.
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
		plan.facts.signedTables = signedTables(p)
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

// Hash returns the hash of the plan, without partitions and children of tables and the columns that tables are known to
// have. A proxy may change from one policy to another with the same hash without a migration.
func (p *Plan) Hash() string { return p.hash }

// PolicyVersion returns the version of the whole policy.
func (p *Plan) PolicyVersion() string { return p.facts.policy.Version() }

// feature makes the objects of one kind in a plan.
type feature interface{ objects() []Object }

// Objects returns the objects of the plan for a database in the given state, in the order in which they are made.
func (p *Plan) Objects(foundState migrations.Found) []Object {
	f := *p.facts
	f.foundState = foundState
	var out []Object
	for _, kind := range []feature{
		revocations{&f}, schemaRights{&f}, lookupViews{&f}, liveAttributes{&f}, materializations{&f}, signedViews{&f},
		groupViews{&f}, canaryFeature{&f}, rowPolicies{&f}, childPolicies{&f}, rowViews{&f}, changeTriggers{&f},
		functionRights{&f},
		shownObjects{&f}, shadowViews{&f}, viewCopies{&f}, sweepFeature{&f}, privacyFeature{&f}, controlRights{&f},
	} {
		out = append(out, kind.objects()...)
	}
	return out
}

// Up returns the statements for a database in which nothing was protected before.
func (p *Plan) Up() []Statement { return p.UpFrom(migrations.Found{}) }

// Down returns the statements that undo [Plan.Up], except for privileges, which package migrations restores as it found
// them.
func (p *Plan) Down() []Statement { return p.DownTo(migrations.Found{}) }

// UpFrom returns the statements that install the plan in a database in the given state, in order.
func (p *Plan) UpFrom(f migrations.Found) []Statement { return migrations.MakeAll(p.Objects(f)) }

// DownTo returns the statements that restore the given state, except for privileges.
func (p *Plan) DownTo(f migrations.Found) []Statement { return migrations.DropAll(p.Objects(f)) }

// PredicateTables returns the tables of a policy's predicates, each once: the listed tables and the others that rules
// read.
func PredicateTables(p *policy.Policy) []*catalog.Relation {
	var out []*catalog.Relation
	add := func(r *catalog.Relation) {
		if !slices.ContainsFunc(out, func(o *catalog.Relation) bool { return o.OID == r.OID }) {
			out = append(out, r)
		}
	}
	for _, t := range p.Tables() {
		add(t.Relation)
		for _, h := range predicate.LookupTables(t.VisibilityRules()) {
			add(h.Relation)
		}
	}
	for _, l := range p.LiveAttributes() {
		for _, h := range predicate.LookupTables(l.Node()) {
			out = append(out, h.Relation)
		}
	}
	return out
}
