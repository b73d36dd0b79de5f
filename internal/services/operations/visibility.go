package operations

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/record/dsar"
	"github.com/pgconsent/pgconsent/internal/record/dsar/pgrows"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/tool/why"
)

// queryTimeout limits how long a query that reads hidden rows may run.
const queryTimeout = 10 * time.Second

// Visibility returns how much of a subject's data each agent can see now. Only the subject and admins may call it.
func (o *AdminService) Visibility(ctx context.Context, caller identity.Caller, subject string) ([]why.Visibility,
	error) {
	if err := RequireRole(caller, identity.Subject, identity.Admin); err != nil {
		return nil, err
	}
	subject, err := SubjectOf(caller, subject)
	if err != nil {
		return nil, err
	}
	p, _, err := o.ActivePolicy(caller.Database)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	conn, err := o.connectOwner(ctx, caller)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return why.VisibleToAgents(ctx, conn, p, subject, o.Agents(caller.Database))
}

// RowKeys returns the primary keys of a subject's rows, by table. Only admins may call it.
func (o *AdminService) RowKeys(ctx context.Context, caller identity.Caller, subject string) ([]dsar.SubjectRows,
	error) {
	if err := RequireRole(caller, identity.Admin); err != nil {
		return nil, err
	}
	subject, err := SubjectOf(caller, subject)
	if err != nil {
		return nil, err
	}
	p, _, err := o.ActivePolicy(caller.Database)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	conn, err := o.connectOwner(ctx, caller)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return pgrows.ReadRows(ctx, conn, dsar.SubjectTables(p), subject, false, nil)
}

// ExplainRow explains, rule by rule, why an agent sees a row or does not see it. Only admins may call it.
func (o *AdminService) ExplainRow(ctx context.Context, caller identity.Caller, agent, table string,
	key []string) (*why.Answer, error) {
	if err := RequireRole(caller, identity.Admin); err != nil {
		return nil, err
	}
	attributes, ok := o.Agents(caller.Database)[agent]
	if !ok {
		return nil, newNotFoundError("agent")
	}
	p, snapshot, err := o.ActivePolicy(caller.Database)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	conn, err := o.connectOwner(ctx, caller)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	q := why.Question{Policy: p, Snapshot: snapshot, Agent: agent, Attributes: attributes, Table: table, Key: key,
		AgentRole: o.AgentRole(caller.Database)}
	if o.ConnectAgent != nil {
		q.ConnectAgent = func(ctx context.Context) (*pgx.Conn, error) { return o.ConnectAgent(ctx, caller.Database) }
	}
	return why.Explain(ctx, conn, q)
}

// Tables returns the names of the tables that the policy lists. Only admins may call it.
func (o *AdminService) Tables(_ context.Context, caller identity.Caller) ([]string, error) {
	if err := RequireRole(caller, identity.Admin); err != nil {
		return nil, err
	}
	p, _, err := o.ActivePolicy(caller.Database)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, table := range p.Tables() {
		out = append(out, table.Relation.Name.String())
	}
	return out, nil
}
