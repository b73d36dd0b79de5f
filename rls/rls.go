// Package rls generates the SQL by which the database enforces a policy: row policies, views, triggers, functions and
// rights.
//
// Once a [Plan] is installed, the agent role reads exactly the rows of a protected table that the policy's rule shows.
// This holds whatever SQL it sends. Without a valid seal (signed identity) in its session, it reads no rows. It can
// change only what the policy permits: rows that it sees, into rows that it sees. It can read no other table and create
// no object. Other roles keep their rights, since restrictive row policies apply only to pgconsent's roles. Row
// security is never FORCEd, so owners of tables are not affected.
//
// A plan is a list of objects. Each feature of the package is a type that makes its own objects: row policies, signed
// views, change triggers, and so on. The statements that install a plan make the objects in their order, and the
// statements that remove it drop them in the reverse order.
//
// A plan cannot prevent later changes of the database, row policies of others that hide rows from the reader role, or
// unsafe roles that existed before. The command pgconsent doctor checks for these.
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
	SealOnly      // for tests of rewriting alone: row policies require only a valid seal
)

// Options name the roles and say what the plan includes.
type Options struct {
	// the names of the roles; "": pgconsent_agent, pgconsent_control, pgconsent_reader, pgconsent_rows
	AgentRole, ControlRole, ReaderRole, RowsRole string
	Mode                                         Mode
	SignedViews                                  bool // the plan includes signed views
}

// Statement is a SQL statement with the reason for it.
type Statement = migrations.Statement

// Object is something that a plan makes in the database, such as a row policy or a view with its rights.
type Object = migrations.Object

// Plan generates the database objects that enforce a policy.
type Plan struct {
	facts *planFacts
	hash  string
}

// Generate returns the plan of a policy. Equal policies and catalogs give equal plans.
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
	// The hash does not depend on partitions and columns, which come and go. Agents cannot name partitions and columns
	// that were added since the last migrate, so a proxy can go on without it.
	h := sha256.New()
	for _, s := range plan.Up() {
		fmt.Fprintf(h, "%s;\n", s.SQL)
	}
	plan.hash = hex.EncodeToString(h.Sum(nil)[:16])
	plan.facts.addChildren()
	return plan
}

// Hash returns the hash of the plan, which does not depend on partitions, inheritance children and columns of tables. A
// proxy may load another policy with the same hash without a migration.
func (p *Plan) Hash() string { return p.hash }

// PolicyVersion returns the version of the policy from which the plan was made.
func (p *Plan) PolicyVersion() string { return p.facts.policy.Version() }

// feature generates the objects of one kind in a plan.
type feature interface{ objects() []Object }

// Objects returns the objects of the plan for a database in the state foundState, in the order in which they are made.
func (p *Plan) Objects(foundState migrations.Found) []Object {
	f := *p.facts
	f.foundState = foundState
	var out []Object
	// Triggers come before policies: for each later DDL on a table PostgreSQL reads the table's policies again.
	for _, kind := range []feature{
		revocations{&f}, schemaRights{&f}, lookupViews{&f}, liveAttributes{&f}, materializations{&f}, signedViews{&f},
		groupViews{&f}, changeTriggers{&f}, canaryFeature{&f}, rowPolicies{&f}, childPolicies{&f}, rowViews{&f},
		functionRights{&f},
		shownObjects{&f}, shadowViews{&f}, viewCopies{&f}, sweepFeature{&f}, privacyFeature{&f}, controlRights{&f},
	} {
		out = append(out, kind.objects()...)
	}
	return out
}

// Up returns the statements that install the plan in a database in which no table has row security and PUBLIC has no
// rights.
func (p *Plan) Up() []Statement { return p.UpFrom(migrations.Found{}) }

// Down returns the statements that undo [Plan.Up], except for privileges, which package migrations restores.
func (p *Plan) Down() []Statement { return p.DownTo(migrations.Found{}) }

// UpFrom returns the statements that install the plan in a database whose state was f.
func (p *Plan) UpFrom(f migrations.Found) []Statement { return migrations.MakeAll(p.Objects(f)) }

// DownTo returns the statements that remove the plan and restore the state f, except for privileges.
func (p *Plan) DownTo(f migrations.Found) []Statement { return migrations.DropAll(p.Objects(f)) }

// PredicateTables returns the tables that the policy lists, and the other tables that its rules and live attributes
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
