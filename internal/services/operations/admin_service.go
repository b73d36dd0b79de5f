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

// AdminService adds the operations of subjects, owners and operators to Service: who can see data and who has seen
// them, why an agent sees a row, and the state of the sidecar. Operations that read hidden rows connect as the owner of
// the tables.
type AdminService struct {
	*Service

	// ConnectOwner connects to a database as the owner of its tables. The caller closes the connection. If there is no
	// login for the owner, the error says what is missing in the configuration.
	ConnectOwner func(ctx context.Context, database string) (*pgx.Conn, error)

	// ConnectAgent connects with the role of the agents. If it is nil, explanations do not ask row security.
	ConnectAgent func(ctx context.Context, database string) (*pgx.Conn, error)

	// ActivePolicy returns the policy by which agents are served now, and the catalog for which it was compiled.
	ActivePolicy func(database string) (*policy.Policy, *catalog.Snapshot, error)

	// Agents returns the agents of a database with the attributes of their credentials. AgentRole returns the database
	// role that these agents share.
	Agents    func(database string) map[string]map[string]string
	AgentRole func(database string) string

	// ReportSources returns the logs of a database's audit, and the log to which the making of a report is recorded.
	ReportSources func(database string) access.ReportSources

	Overview func(context.Context) Overview

	reportSlot chan struct{} // held by the operation that reads a whole audit log, so that only one does so at a time
}

// NewAdminService returns the service, ready for use.
func NewAdminService(o AdminService) *AdminService {
	o.reportSlot = make(chan struct{}, 1)
	return &o
}

// connectOwner connects to the caller's database as the owner of its tables.
func (o *AdminService) connectOwner(ctx context.Context, c identity.Caller) (*pgx.Conn, error) {
	if _, err := o.Database(c); err != nil {
		return nil, err
	}
	return o.ConnectOwner(ctx, c.Database)
}

// NewNoOwnerLoginError returns the error of [AdminService.ConnectOwner] when the configuration has no login of the
// owner.
func NewNoOwnerLoginError() error {
	return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal,
		"pgconsent has no login of the owner of the tables here").
		WithHint("Name the password of roles.migrate with secrets.migrate in the configuration; it is used " +
			"in read-only transactions only. The command pgconsent dsar makes reports as well.")
}
