package operations

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/face/identity"
	"github.com/pgconsent/pgconsent/internal/record/dsar/access"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// AdminService is the desk with what subjects, owners and operators ask besides: who can see what and who did, why, and how the
// sidecar does. What reads hidden rows logs in as the owner of the tables.
type AdminService struct {
	*Service

	// Owner logs in as the owner of a database's tables. The caller closes the connection. Its error says what is missing.
	Owner func(ctx context.Context, database string) (*pgx.Conn, error)

	// AsAgent logs in as the agents' role; nil: row security is not asked.
	AsAgent func(ctx context.Context, database string) (*pgx.Conn, error)

	// ActivePolicy returns the policy that agents are served by, and the catalog that it was compiled for.
	ActivePolicy func(database string) (*policy.Policy, *catalog.Snapshot, error)

	// Agents are the agents of a database, with the attributes of their credentials; Role is the role that they share.
	Agents func(database string) map[string]map[string]string
	Role   func(database string) string

	// Logs are where the audit of a database is read, and where it is recorded that a report was made.
	Logs func(database string) access.Sources

	Overview func(context.Context) Overview

	busy chan struct{} // holds one at a time of what reads a whole log
}

// NewAdminService completes an office.
func NewAdminService(o AdminService) *AdminService {
	o.busy = make(chan struct{}, 1)
	return &o
}

// owner logs in for an operation on the caller's database.
func (o *AdminService) owner(ctx context.Context, c identity.Caller) (*pgx.Conn, error) {
	if _, err := o.Database(c); err != nil {
		return nil, err
	}
	return o.Owner(ctx, c.Database)
}

// NoOwnerLogin is the error of an [AdminService.Owner] that has no login.
func NoOwnerLogin() error {
	return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal,
		"pgconsent has no login of the owner of the tables here").
		WithHint("Name the password of roles.migrate with secrets.migrate in the configuration; it is used to " +
			"look, in read-only transactions. The command pgconsent dsar makes reports as well.")
}
