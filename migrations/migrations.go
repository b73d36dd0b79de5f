// Package migrations installs the database side and takes it away again.
package migrations

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// Options say for whom to install.
type Options struct {
	AgentRole, ControlRole, ReaderRole string // "": pgconsent_agent, pgconsent_control, pgconsent_reader

	// The passwords to give to the roles; "": leave as they are. Only a SCRAM verifier reaches the server.
	AgentPassword, ControlPassword string
}

// Statement is one statement with the reason that --dry-run prints above it.
type Statement struct{ SQL, Why string }

// Found is the state of the database that a plan has to fit in and that Down restores.
type Found struct {
	Owner       string          // the role that migrates
	Superuser   bool            // of it
	RowSecurity map[string]bool // protected table, as schema.name: row security was on already
}

// Plan is what a policy asks of the database: an *rls.Plan.
type Plan interface {
	Hash() string          // of the database half
	PolicyVersion() string // of the whole policy
	UpFrom(Found) []Statement
	DownTo(Found) []Statement
}

// Installed is what the database says is installed.
type Installed struct {
	Base          int    // number of the newest base migration
	Hash          string // of the database half
	PolicyVersion string
}

// ErrNotInstalled is returned by ReadInstalled for a database without pgconsent.
var ErrNotInstalled = errors.New("pgconsent is not installed in this database: run pgconsent migrate")

// Up installs or updates the database side in one transaction. A second call changes nothing.
func Up(ctx context.Context, conn *pgx.Conn, o Options, p Plan) error {
	return errors.New("not built yet")
}

// Down takes the database side away and restores what was found.
func Down(ctx context.Context, conn *pgx.Conn, o Options) error { return errors.New("not built yet") }

// Render returns the SQL that Up would run, with comments, without changing anything.
func Render(ctx context.Context, conn *pgx.Conn, o Options, p Plan) (string, error) {
	return "", errors.New("not built yet")
}

// ReadInstalled reads what is installed, as the control role or the owner.
func ReadInstalled(ctx context.Context, conn *pgx.Conn) (Installed, error) {
	return Installed{}, errors.New("not built yet")
}
