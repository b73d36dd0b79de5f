package desk

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/face/identity"
	"github.com/pgconsent/pgconsent/internal/record/dsar/access"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// Office is the desk with what subjects, owners and operators ask besides: who can see what and who did, why, and how the
// sidecar does. What reads hidden rows logs in as the owner of the tables.
type Office struct {
	*Desk

	// Owner logs in as the owner of a database's tables. The caller closes the connection. Its error says what is missing.
	Owner func(ctx context.Context, database string) (*pgx.Conn, error)

	// AsAgent logs in as the agents' role; nil: row security is not asked.
	AsAgent func(ctx context.Context, database string) (*pgx.Conn, error)

	// InForce is the policy that agents are served by.
	InForce func(database string) (*policy.Policy, *catalog.Snapshot, error)

	// Agents are the agents of a database, with the attributes of their credentials; Role is the role that they share.
	Agents func(database string) map[string]map[string]string
	Role   func(database string) string

	// Logs are where the audit of a database is read, and where it is recorded that a report was made.
	Logs func(database string) access.Sources

	Overview func(context.Context) Overview

	busy chan struct{} // holds one at a time of what reads a whole log
}

// NewOffice completes an office.
func NewOffice(o Office) *Office {
	o.busy = make(chan struct{}, 1)
	return &o
}

// owner logs in for an operation on the caller's database.
func (o *Office) owner(ctx context.Context, c identity.Caller) (*pgx.Conn, error) {
	if _, err := o.Database(c); err != nil {
		return nil, err
	}
	return o.Owner(ctx, c.Database)
}

// NoOwner is the error of an [Office.Owner] that has no login.
func NoOwner() error {
	return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal,
		"pgconsent has no login of the owner of the tables here").
		WithHint("Name the password of roles.migrate with secrets.migrate in the configuration; it is used to " +
			"look, in read-only transactions. The command pgconsent dsar makes reports as well.")
}
