// Package rls writes the database half of a policy.
package rls

import (
	"github.com/pgconsent/pgconsent/catalog"
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
	AgentRole, ControlRole, ReaderRole string // "": pgconsent_agent, pgconsent_control, pgconsent_reader
	Mode                               Mode
}

// Statement is one statement with its reason.
type Statement = migrations.Statement

// Plan is what a policy asks of the database.
type Plan struct {
	up, down func(migrations.Found) []Statement
	hash     string
	version  string
}

// Generate makes the plan. It is a pure function: equal policies over equal catalogs give equal plans.
func Generate(p *policy.Policy, snap *catalog.Snapshot, o Options) *Plan {
	return &Plan{}
}

// Hash is the hash of the database half: two policies with one hash can be swapped without migrating.
func (p *Plan) Hash() string { return p.hash }

// PolicyVersion is the version of the whole policy.
func (p *Plan) PolicyVersion() string { return p.version }

// Up returns the statements for a database in which nothing was protected before.
func (p *Plan) Up() []Statement { return p.UpFrom(migrations.Found{}) }

// Down returns the statements that undo Up.
func (p *Plan) Down() []Statement { return p.DownTo(migrations.Found{}) }

// UpFrom returns the statements for a database in the state found.
func (p *Plan) UpFrom(f migrations.Found) []Statement { return p.up(f) }

// DownTo returns the statements that restore the state found.
func (p *Plan) DownTo(f migrations.Found) []Statement { return p.down(f) }
