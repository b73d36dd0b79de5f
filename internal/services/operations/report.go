package operations

import (
	"context"
	"time"

	"github.com/pgconsent/pgconsent/internal/record/dsar"
	"github.com/pgconsent/pgconsent/internal/record/dsar/access"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// auditTimeout limits the time for reading the audit for one report.
const auditTimeout = 2 * time.Minute

// Report makes the report to a data subject. Only the subject and admins may call it. Since a report reads the whole
// audit, only one is made at a time; other callers wait for a moment and then get an error that asks them to try again.
func (o *AdminService) Report(ctx context.Context, caller identity.Caller, q access.ReportRequest) (*dsar.Report,
	error) {
	if err := RequireRole(caller, identity.Subject, identity.Admin); err != nil {
		return nil, err
	}
	var err error
	if q.Subject, err = SubjectOf(caller, q.Subject); err != nil {
		return nil, err
	}
	q.RequestedBy = caller.Name
	if caller.Role == identity.Subject {
		q.RequestedBy = caller.Subject
	}
	db, err := o.Database(caller)
	if err != nil {
		return nil, err
	}
	p, _, err := o.ActivePolicy(caller.Database)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(10 * time.Second)
	defer timer.Stop()
	select {
	case o.reportSlot <- struct{}{}:
		defer func() { <-o.reportSlot }()
	case <-timer.C:
		return nil, sqlstate.New(sqlstate.LimitExceeded, sqlstate.ReasonLimit, "another report is being made").
			WithHint("Try again in a minute.")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	conn, err := o.connectOwner(ctx, caller)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	from := o.ReportSources(caller.Database)
	from.Conn, from.Policy, from.Registry = conn, p, db.Registry
	return access.MakeReport(ctx, from, q)
}
