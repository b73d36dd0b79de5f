// Package migrations installs the database side and takes it away again.
//
// Everything happens in one transaction under a lock: the base (numbered SQL in this package), and the objects of a
// [Plan], with the privileges that it gives and takes. How the state that was found is changed, privileges included, is
// recorded in the database, so that [Down] restores it exactly, whichever policy is installed by then. A further [Up]
// changes only the objects that differ. Rights that the migrating role does not have are named with the statements that
// a DBA has to run.
//
// Only a superuser can undo what a later superuser does; such drift is found by [Drift], not prevented.
package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Options say for whom to install.
type Options struct {
	// "": pgconsent_agent, pgconsent_control, pgconsent_reader, pgconsent_rows
	AgentRole, ControlRole, ReaderRole, RowsRole string

	// The passwords to give to the roles; "": leave as they are. Only a SCRAM verifier reaches the server.
	AgentPassword, ControlPassword string

	// Waits is told each time that others hold locks which are needed, before the next attempt; nil: nobody is.
	Waits func([]Holder)

	// Changed is told what Up has changed, when that is committed; nil: nobody is.
	Changed func(Changed)
}

// The names of the roles where Options leave them empty.
const (
	DefaultAgentRole   = "pgconsent_agent"
	DefaultControlRole = "pgconsent_control"
	DefaultReaderRole  = "pgconsent_reader"
	DefaultRowsRole    = "pgconsent_rows"
)

func (o Options) withDefaults() Options {
	if o.AgentRole == "" {
		o.AgentRole = DefaultAgentRole
	}
	if o.ControlRole == "" {
		o.ControlRole = DefaultControlRole
	}
	if o.ReaderRole == "" {
		o.ReaderRole = DefaultReaderRole
	}
	if o.RowsRole == "" {
		o.RowsRole = DefaultRowsRole
	}
	return o
}

// Found is the part of the database's state that a plan has to fit in.
type Found struct {
	Database      string
	Superuser     bool            // the migrating role is one
	RowSecurity   map[string]bool // relation, as schema.name: row security is on already
	PublicUsage   map[string]bool // schema: PUBLIC has USAGE
	PublicConnect bool            // PUBLIC may connect to the database

	// What PUBLIC may do and agents must not, with the roles that keep the right by name.
	PublicOnDatabase []string // of CREATE, TEMPORARY
	PublicCreate     []string // schemas
	KeepRoles        []string
}

// Plan is what a policy asks of the database: an *rls.Plan.
type Plan interface {
	Hash() string           // of the database half
	PolicyVersion() string  // of the whole policy
	Objects(Found) []Object // in the order in which they are made
}

// Installed is what the database says is installed.
type Installed struct {
	Base          int    // number of the newest base migration
	Hash          string // of the database half
	PolicyVersion string
}

// ErrNotInstalled is returned by ReadInstalled for a database without pgconsent.
var ErrNotInstalled = errors.New("pgconsent is not installed in this database: run pgconsent migrate")

// Why what is installed is not what a plan asks for.
var (
	ErrOtherPolicy = errors.New("another policy is installed in the database than the one configured: run pgconsent migrate")
	ErrOtherSchema = errors.New(
		"the configured policy is installed, but the schema, or pgconsent itself, has changed since: run pgconsent migrate")
)

// Fits returns nil if what is installed is what a plan asks for, else [ErrOtherPolicy] or [ErrOtherSchema].
func (in Installed) Fits(p Plan) error {
	switch {
	case in.Hash == p.Hash():
		return nil
	case in.PolicyVersion == p.PolicyVersion():
		return ErrOtherSchema
	default:
		return ErrOtherPolicy
	}
}

// Up installs or updates the database side in one transaction. It changes only the objects that differ from the ones
// that are installed, and locks the tables of these alone: a second call changes nothing. It waits for no lock longer
// than 200 ms, so that others never queue behind it for longer; it gives way and begins again until ctx ends. Nothing is
// changed before all is.
func Up(ctx context.Context, conn *pgx.Conn, o Options, p Plan) error {
	var changed Changed
	err := transact(ctx, conn, o, true, func(r *run) (err error) {
		changed, err = r.up(ctx, o.withDefaults(), p)
		return err
	})
	if err == nil && o.Changed != nil {
		o.Changed(changed)
	}
	return err
}

// Down takes the database side away and restores what was found.
func Down(ctx context.Context, conn *pgx.Conn, o Options) error {
	return transact(ctx, conn, o, true, func(r *run) error { return r.down(ctx, o.withDefaults()) })
}

// Render returns the SQL that Up would run, with comments. It runs it and rolls back, so that what it prints is what
// works.
func Render(ctx context.Context, conn *pgx.Conn, o Options, p Plan) (string, error) {
	var script string
	err := transact(ctx, conn, o, false, func(r *run) error {
		_, err := r.up(ctx, o.withDefaults(), p)
		script = r.script()
		return err
	})
	return script, err
}

// RenderDown is Render for Down.
func RenderDown(ctx context.Context, conn *pgx.Conn, o Options) (string, error) {
	var script string
	err := transact(ctx, conn, o, false, func(r *run) error {
		err := r.down(ctx, o.withDefaults())
		script = r.script()
		return err
	})
	return script, err
}

// ReadInstalled reads what is installed, as the control role or the owner.
func ReadInstalled(ctx context.Context, conn *pgx.Conn) (Installed, error) {
	var in Installed
	var first string
	err := conn.QueryRow(ctx, `SELECT (SELECT pg_catalog.max(m.number) FROM pgconsent.migration AS m),
		(SELECT pg_catalog.min(m.name) FROM pgconsent.migration AS m WHERE m.number OPERATOR(pg_catalog.=) 1),
		i.hash, i.policy_version
		FROM pgconsent.installed AS i`).Scan(&in.Base, &first, &in.Hash, &in.PolicyVersion)
	var pgErr *pgconn.PgError
	switch {
	case errors.Is(err, pgx.ErrNoRows), errors.As(err, &pgErr) && (pgErr.Code == "3F000" || pgErr.Code == "42P01"):
		return Installed{}, ErrNotInstalled
	case err != nil:
		return Installed{}, fmt.Errorf("read what is installed: %w", err)
	case first != bases[0].name:
		return Installed{}, errBeforeRelease
	}
	return in, nil
}

// MissingRights is the error for what the migrating role may not do: the statements for somebody who may.
type MissingRights struct{ Statements []Statement }

func (e *MissingRights) Error() string { return e.sqlError().Error() }

func (e *MissingRights) Unwrap() error { return e.sqlError() }

func (e *MissingRights) sqlError() *sqlstate.Error {
	list := ""
	for _, s := range e.Statements {
		list += "\n" + s.SQL + ";  -- " + s.Why
	}
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonUpstream,
		"the role that migrates may not do all that is needed").
		WithHint("Let a superuser run this in the database and migrate again:%s", list)
}
