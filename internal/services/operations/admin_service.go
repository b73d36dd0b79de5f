package operations

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/record/dsar/access"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// AdminService adds to Service what subjects, owners and operators can ask: who can see data and who did, why an agent
// sees a row, and the state of the sidecar. Operations that read hidden rows log in as the owner of the tables.
type AdminService struct {
	*Service

	// ConnectOwner logs in as the owner of a database's tables. The caller closes the connection. The error says what is
	// missing.
	ConnectOwner func(ctx context.Context, database string) (*pgx.Conn, error)

	// ConnectAgent logs in as the agents' role; nil: row security is not asked.
	ConnectAgent func(ctx context.Context, database string) (*pgx.Conn, error)

	// ActivePolicy returns the policy that agents are served by, and the catalog that it was compiled for.
	ActivePolicy func(database string) (*policy.Policy, *catalog.Snapshot, error)

	// Agents returns the agents of a database with the attributes of their credentials; AgentRole returns the role that
	// they share.
	Agents    func(database string) map[string]map[string]string
	AgentRole func(database string) string

	// ReportSources returns the logs of a database's audit, and the log in which reports are recorded.
	ReportSources func(database string) access.ReportSources

	Overview func(context.Context) Overview

	reportSlot chan struct{} // held by the operation that reads a whole log, so that only one does at a time
}

// NewAdminService returns the service, ready for use.
func NewAdminService(o AdminService) *AdminService {
	o.reportSlot = make(chan struct{}, 1)
	return &o
}

// connectOwner logs in as the owner of the tables, for an operation on the caller's database.
func (o *AdminService) connectOwner(ctx context.Context, c identity.Caller) (*pgx.Conn, error) {
	if _, err := o.Database(c); err != nil {
		return nil, err
	}
	return o.ConnectOwner(ctx, c.Database)
}

// NewNoOwnerLoginError is the error of an [AdminService.ConnectOwner] that has no login.
func NewNoOwnerLoginError() error {
	return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal,
		"pgconsent has no login of the owner of the tables here").
		WithHint("Name the password of roles.migrate with secrets.migrate in the configuration; it is used " +
			"in read-only transactions only. The command pgconsent dsar makes reports as well.")
}
