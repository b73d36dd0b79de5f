package operations

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/face/identity"
	"github.com/pgconsent/pgconsent/internal/record/dsar"
	"github.com/pgconsent/pgconsent/internal/record/dsar/pgrows"
	"github.com/pgconsent/pgconsent/internal/tool/why"
)

// queryTimeout limits a query that reads hidden rows.
const queryTimeout = 10 * time.Second

// Visibility returns how much of a subject's data each agent can see now: to the subject and to admins.
func (o *AdminService) Visibility(ctx context.Context, c identity.Caller, subject string) ([]why.Visibility, error) {
	if err := RequireRole(c, identity.Subject, identity.Admin); err != nil {
		return nil, err
	}
	subject, err := Whose(c, subject)
	if err != nil {
		return nil, err
	}
	p, _, err := o.ActivePolicy(c.Database)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	conn, err := o.owner(ctx, c)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return why.VisibleToAgents(ctx, conn, p, subject, o.Agents(c.Database))
}

// RowKeys returns the keys of a subject's rows, by table: to admins.
func (o *AdminService) RowKeys(ctx context.Context, c identity.Caller, subject string) ([]dsar.Rows, error) {
	if err := RequireRole(c, identity.Admin); err != nil {
		return nil, err
	}
	subject, err := Whose(c, subject)
	if err != nil {
		return nil, err
	}
	p, _, err := o.ActivePolicy(c.Database)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	conn, err := o.owner(ctx, c)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return pgrows.Read(ctx, conn, dsar.Tables(p), subject, false, nil)
}

// Why explains why an agent sees a row or not, rule by rule: to admins.
func (o *AdminService) Why(ctx context.Context, c identity.Caller, agent, table string, key []string) (*why.Answer, error) {
	if err := RequireRole(c, identity.Admin); err != nil {
		return nil, err
	}
	attributes, ok := o.Agents(c.Database)[agent]
	if !ok {
		return nil, notFound("agent")
	}
	p, snapshot, err := o.ActivePolicy(c.Database)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	conn, err := o.owner(ctx, c)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	q := why.Question{Policy: p, Snapshot: snapshot, Agent: agent, Attributes: attributes, Table: table, Key: key,
		AgentRole: o.Role(c.Database)}
	if o.AsAgent != nil {
		q.AsAgent = func(ctx context.Context) (*pgx.Conn, error) { return o.AsAgent(ctx, c.Database) }
	}
	return why.Explain(ctx, conn, q)
}

// Tables returns the names of the policy's tables: to admins.
func (o *AdminService) Tables(_ context.Context, c identity.Caller) ([]string, error) {
	if err := RequireRole(c, identity.Admin); err != nil {
		return nil, err
	}
	p, _, err := o.ActivePolicy(c.Database)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, t := range p.Tables() {
		out = append(out, t.Relation.Name.String())
	}
	return out, nil
}
