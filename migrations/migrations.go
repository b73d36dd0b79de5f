// Package migrations installs pgconsent's objects in a database and removes them again.
//
// Everything happens in one transaction under a lock. It installs the base (numbered SQL in this package), and the
// objects of a [Plan], with the privileges that it gives and takes. How the found state is changed, privileges
// included, is recorded in the database. So [Down] restores it exactly, whichever policy is installed by then. A
// further [Up] changes only the objects that differ. Rights that the migrating role does not have are named with the
// statements that a DBA has to run.
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

// Options say for which roles to install, and who is told about it.
type Options struct {
	// the names of the roles; "": pgconsent_agent, pgconsent_control, pgconsent_reader, pgconsent_rows
	AgentRole, ControlRole, ReaderRole, RowsRole string

	// The passwords that the roles get; "": their passwords stay. Only a SCRAM verifier reaches the server.
	AgentPassword, ControlPassword string

	// OnWait is called each time that other sessions hold locks which are needed, before the next attempt; it may be nil.
	OnWait func([]Holder)

	// OnChange is called with what Up has changed, after the commit; it may be nil.
	OnChange func(Changed)
}

// The names of the roles for which Options name none.
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

// Found is the state of a database into which a plan has to fit.
type Found struct {
	Database      string
	Superuser     bool            // the migrating role is a superuser
	RowSecurity   map[string]bool // for each relation, as schema.name, whether row security is on already
	PublicUsage   map[string]bool // for each schema, whether PUBLIC has USAGE
	PublicConnect bool            // PUBLIC may connect to the database

	// The rights of PUBLIC that agents must not have, and the roles that keep them by name.
	PublicOnDatabase []string // which of CREATE and TEMPORARY PUBLIC has on the database
	PublicCreate     []string // the schemas in which PUBLIC may create objects
	KeepRoles        []string // the roles that get these rights by name
}

// Plan is what a policy requires of the database: an *rls.Plan.
type Plan interface {
	Hash() string           // returns a hash of the plan's objects
	PolicyVersion() string  // returns the version of the whole policy
	Objects(Found) []Object // returns the objects in the order in which they are made
}

// Installed says what is installed, by the record in the database.
type Installed struct {
	Base          int    // the number of the newest base migration
	Hash          string // the hash of the installed plan
	PolicyVersion string // the version of the policy from which the plan was made
}

// ErrNotInstalled is returned by ReadInstalled for a database without pgconsent.
var ErrNotInstalled = errors.New("pgconsent is not installed in this database: run pgconsent migrate")

// The reasons why the installed plan is not the one that a policy requires.
var (
	ErrOtherPolicy = errors.New("another policy is installed in the database than the one configured: run pgconsent migrate")
	ErrOtherSchema = errors.New(
		"the configured policy is installed, but the schema, or pgconsent itself, has changed since: run pgconsent migrate")
)

// CheckPlan returns nil if the installed plan is p, else [ErrOtherPolicy] or [ErrOtherSchema].
func (in Installed) CheckPlan(p Plan) error {
	switch {
	case in.Hash == p.Hash():
		return nil
	case in.PolicyVersion == p.PolicyVersion():
		return ErrOtherSchema
	default:
		return ErrOtherPolicy
	}
}

// Up installs or updates pgconsent's objects in one transaction. It changes only the objects that differ from the
// installed ones, and locks only their tables: a second call changes nothing. It waits for no lock longer than 200 ms,
// so that other sessions never queue behind it for longer. If it does not get a lock, it rolls back and begins again,
// until ctx ends.
func Up(ctx context.Context, conn *pgx.Conn, o Options, p Plan) error {
	var changed Changed
	err := transact(ctx, conn, o, true, func(r *migrationRun) (err error) {
		changed, err = r.install(ctx, o.withDefaults(), p)
		return err
	})
	if err == nil && o.OnChange != nil {
		o.OnChange(changed)
	}
	return err
}

// Down removes pgconsent's objects and restores the state that was found.
func Down(ctx context.Context, conn *pgx.Conn, o Options) error {
	return transact(ctx, conn, o, true, func(r *migrationRun) error { return r.down(ctx, o.withDefaults()) })
}

// Render returns the SQL that [Up] would run, with comments. It runs the SQL and rolls back, so that the printed SQL is
// known to work.
func Render(ctx context.Context, conn *pgx.Conn, o Options, p Plan) (string, error) {
	var script string
	err := transact(ctx, conn, o, false, func(r *migrationRun) error {
		_, err := r.install(ctx, o.withDefaults(), p)
		script = r.script()
		return err
	})
	return script, err
}

// RenderDown returns the SQL that [Down] would run, as [Render] does for Up.
func RenderDown(ctx context.Context, conn *pgx.Conn, o Options) (string, error) {
	var script string
	err := transact(ctx, conn, o, false, func(r *migrationRun) error {
		err := r.down(ctx, o.withDefaults())
		script = r.script()
		return err
	})
	return script, err
}

// ReadInstalled reads what is installed. The connection is that of the control role or the owner.
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
	case first != baseMigrations[0].name:
		return Installed{}, errBeforeRelease
	}
	return in, nil
}

// MissingRightsError is the error if the migrating role lacks rights: it has the statements for a role that has them.
type MissingRightsError struct{ Statements []Statement }

func (e *MissingRightsError) Error() string { return e.sqlError().Error() }

func (e *MissingRightsError) Unwrap() error { return e.sqlError() }

func (e *MissingRightsError) sqlError() *sqlstate.Error {
	list := ""
	for _, s := range e.Statements {
		list += "\n" + s.SQL + ";  -- " + s.Why
	}
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonUpstream,
		"the role that migrates may not do all that is needed").
		WithHint("Let a superuser run this in the database and migrate again:%s", list)
}
