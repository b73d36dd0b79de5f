package serve

import (
	"context"
	"errors"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/enforce"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/proxy"
)

// Connect opens an agent's session for HTTP or MCP: a connection to the proxy within the process. The proxy enforces,
// records and limits its statements as those of the agent's own client, and ends it when the agent is disabled or the
// service drains. Only the password is not asked for, since HTTP or MCP has verified the caller. The caller closes the
// connection.
func (s *Service) Connect(ctx context.Context, caller identity.Caller) (*pgx.Conn, error) {
	return s.connect(ctx, caller, false, nil)
}

// connectForLists is [Service.Connect] for callers that hide columns which exist by key only, and that forward notices.
func (s *Service) connectForLists(ctx context.Context, caller identity.Caller,
	notice func(*pgconn.Notice)) (*pgx.Conn, error) {
	return s.connect(ctx, caller, true, notice)
}

func (s *Service) connect(ctx context.Context, caller identity.Caller, lists bool,
	notice func(*pgconn.Notice)) (*pgx.Conn, error) {
	if caller.Role != identity.Agent {
		return nil, sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonIdentity, "only an agent reads and writes rows").
			WithHint("Use the token of an agent: pgconsent token add NAME --role agent --agent AGENT")
	}
	c, err := pgx.ParseConfig("host=localhost port=5432 sslmode=disable")
	if err != nil {
		return nil, err
	}
	// No environment variable or file of the process (PGUSER, PGOPTIONS, ~/.pgpass …) has an effect.
	c.User, c.Database, c.Password, c.Fallbacks, c.TLSConfig = caller.Agent, caller.Database, "", nil, nil
	c.RuntimeParams = map[string]string{}
	if caller.UserToken != "" {
		c.RuntimeParams[enforce.TokenSetting] = caller.UserToken
	}
	// DialFunc does not use the address
	c.LookupFunc = func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil }
	c.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return s.proxy.Dial(ctx, proxy.Identity{Agent: caller.Agent, Database: caller.Database,
			Remote: "token " + caller.Name, Claims: caller.Claims, Until: caller.ExpiresAt, Lists: lists})
	}
	if notice != nil {
		c.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { notice(n) }
	}
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return nil, loginRefusal(err)
	}
	return conn, nil
}

// loginRefusal returns the error of a session that could not begin. The proxy's messages at a login name nothing
// hidden.
func loginRefusal(err error) error {
	var serverError *pgconn.PgError
	if errors.As(err, &serverError) {
		return sqlstate.New(sqlstate.Code(serverError.Code), sqlstate.ReasonIdentity, "%s",
			serverError.Message).WithHint("%s", serverError.Hint)
	}
	var sqlError *sqlstate.Error
	if errors.As(err, &sqlError) {
		return sqlError
	}
	return sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonUpstream, "the agent's session could not be opened").
		WithHint("Try again in a moment.").WithCause(err)
}
