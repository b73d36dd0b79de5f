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

// Connect opens an agent's session for HTTP or MCP, by a connection to the proxy inside of this process. The proxy
// enforces, records and limits the statements like those of the agent's own client. It ends the session when the agent
// is disabled or the process ends. It asks for no password, since HTTP or MCP has verified the caller. The caller
// closes the connection.
func (s *Service) Connect(ctx context.Context, caller identity.Caller) (*pgx.Conn, error) {
	return s.connect(ctx, caller, false, nil)
}

// connectForLists is [Service.Connect] for a session in which columns that the policy shows by key only are hidden
// altogether. Notices from the connection are passed to notice.
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
	// The environment variables and files of libpq (PGUSER, PGOPTIONS, ~/.pgpass …) must have no effect.
	c.User, c.Database, c.Password, c.Fallbacks, c.TLSConfig = caller.Agent, caller.Database, "", nil, nil
	c.RuntimeParams = map[string]string{}
	if caller.UserToken != "" {
		c.RuntimeParams[enforce.TokenSetting] = caller.UserToken
	}
	// DialFunc ignores the address, but pgx needs one.
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

// loginRefusal returns the error for a session that could not begin. It contains the proxy's message, which names
// nothing that is hidden from agents.
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
