// Package migrations installs pgconsent's objects (schemas, views, triggers, row policies, rights) in a database, and
// removes them again.
//
// [Up] installs the base migrations (numbered SQL files of this package) and the objects of a [Plan], and changes
// privileges as the plan requires. All of this happens in one transaction under a lock. The database records how to
// undo each change, so [Down] can restore the previous state exactly, whichever policy is installed by then. A further
// Up changes only the objects that differ. If the migrating role lacks rights, the error names the statements that a
// DBA has to run.
//
// Package migrations cannot prevent that a superuser alters installed objects later; [Drift] finds such changes.
package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Options name the roles to install for, their passwords, and functions that report progress.
type Options struct {
	// the names of the roles; "": pgconsent_agent, pgconsent_control, pgconsent_reader, pgconsent_rows
	AgentRole, ControlRole, ReaderRole, RowsRole string

	// The passwords that the roles get; "": a role's password stays. The server gets only SCRAM verifiers of them.
	AgentPassword, ControlPassword string

	// OnWait, if not nil, is called before each further attempt when other sessions hold locks that the migration needs.
	OnWait func([]Holder)

	// OnChange, if not nil, is called after the commit with the numbers of objects that Up has changed.
	OnChange func(Changed)
}

// The default names of the roles in Options.
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

// Found is the state of a database that a plan depends on, as it would be without pgconsent.
type Found struct {
	Database      string
	Superuser     bool            // the migrating role is a superuser
	RowSecurity   map[string]bool // for each relation, as schema.name, whether row security is on
	PublicUsage   map[string]bool // for each schema, whether PUBLIC has USAGE
	PublicConnect bool            // PUBLIC may connect to the database

	// The rights that pgconsent revokes from PUBLIC, since agents must not have them, and the roles to which it grants
	// them instead.
	PublicOnDatabase []string // which of CREATE and TEMPORARY PUBLIC has on the database
	PublicCreate     []string // the schemas in which PUBLIC may create objects
	KeepRoles        []string // the roles that get these rights by name
}

// Plan is the set of objects that a policy requires in the database; *rls.Plan implements it.
type Plan interface {
	Hash() string           // returns a hash of the plan's objects
	PolicyVersion() string  // returns the version of the whole policy
	Objects(Found) []Object // returns the objects in the order in which they are made
}

// Installed says which plan is installed, as recorded in the database.
type Installed struct {
	Base          int    // the number of the newest base migration
	Hash          string // the hash of the installed plan
	PolicyVersion string // the version of the policy from which the plan was made
}

// ErrNotInstalled is returned by ReadInstalled for a database without pgconsent.
var ErrNotInstalled = errors.New("pgconsent is not installed in this database: run pgconsent migrate")

// The errors of [Installed.CheckPlan].
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

// Up installs or updates pgconsent's objects in one transaction. It changes only objects that differ from the installed
// ones, and locks only the tables of these. It waits at most 200 ms for a lock, so that other sessions do not queue
// behind it for longer. If it does not get a lock, it rolls back and tries again, until ctx ends.
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

// Down removes pgconsent's objects and restores the state before the first [Up].
func Down(ctx context.Context, conn *pgx.Conn, o Options) error {
	return transact(ctx, conn, o, true, func(r *migrationRun) error { return r.down(ctx, o.withDefaults()) })
}

// Render returns the SQL that [Up] would run, with comments. To make sure that the SQL works, it runs it and rolls
// back.
func Render(ctx context.Context, conn *pgx.Conn, o Options, p Plan) (string, error) {
	var script string
	err := transact(ctx, conn, o, false, func(r *migrationRun) error {
		_, err := r.install(ctx, o.withDefaults(), p)
		script = r.script()
		return err
	})
	return script, err
}

// RenderDown returns the SQL that [Down] would run, with comments. Like [Render], it runs the SQL and rolls back.
func RenderDown(ctx context.Context, conn *pgx.Conn, o Options) (string, error) {
	var script string
	err := transact(ctx, conn, o, false, func(r *migrationRun) error {
		err := r.down(ctx, o.withDefaults())
		script = r.script()
		return err
	})
	return script, err
}

// ReadInstalled reads which plan is installed in a database. conn must be a connection of the control role or of the
// role that ran [Up].
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

// MissingRightsError means that the migrating role lacks rights. It lists the statements that a role with these rights
// must run.
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
