package proxy

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// dialer connects to the server with TCP keepalive, so that a server which has disappeared is noticed.
var dialer = net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
	Enable: true, Idle: 60 * time.Second, Interval: 15 * time.Second, Count: 4}}

// dialServer makes a connection to the server; tests replace it with a slow one.
var dialServer = dialer.DialContext

// maxServerLogin is the maximum length of a message from the server during the login.
const maxServerLogin = 1 << 20

// heapQuery returns a query that makes the server process keep freed memory. Without it, glibc returns the memory of
// each plan to the kernel, and requests it again for the next statement. When a process frees a large block, glibc
// raises the amount of free memory that it keeps, for the life of the process (M_MMAP_THRESHOLD in mallopt(3)).
//
// The query repeats a string of one kilobyte, since repeat() copies piece by piece: 4 MiB of single letters take the
// server 24 ms, and 6 ms in kilobytes.
func heapQuery(bytes int) string {
	const piece = 1024
	return fmt.Sprintf("SELECT pg_catalog.octet_length(pg_catalog.repeat(pg_catalog.repeat('x', %d), %d))", piece, (bytes+piece-1)/piece)
}

// startTimeQuery reads when the server was started. The proxy compares this time to notice a restart, or another server
// at the same address.
const startTimeQuery = "SELECT EXTRACT(epoch FROM pg_catalog.pg_postmaster_start_time())"

// dial logs in to the server as the agent role. pooled says that several sessions will share the connection.
func (u Upstream) dial(ctx context.Context, database string, settings map[string]string, pooled bool) (*serverConn, error) {
	cfg, err := u.config(database, settings)
	if err != nil {
		return nil, unreachableError(err)
	}
	pc, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, loginFailed(err)
	}
	text := startTimeQuery
	if pooled {
		text += "; " + initialSettingsQuery(u.Settings)
	}
	if u.KeepHeap > 0 {
		text += "; " + heapQuery(u.KeepHeap)
	}
	results, err := pc.Exec(ctx, text).ReadAll()
	if err != nil || len(results) == 0 || len(results[0].Rows) != 1 {
		_ = pc.Close(ctx)
		return nil, unreachableError(err)
	}
	var initial map[string]string
	if pooled {
		if initial, err = decodeSettings(results[1].Rows[0][0]); err != nil {
			_ = pc.Close(ctx)
			return nil, unreachableError(err)
		}
	}
	// If a write took long, pgconn has started a goroutine that reads in the background. It would take the session's first
	// answer, so SyncConn stops it.
	if err := pc.SyncConn(ctx); err != nil {
		_ = pc.Close(ctx)
		return nil, unreachableError(err)
	}
	hc, err := pc.Hijack()
	if err != nil {
		return nil, unreachableError(err)
	}
	c := newServerConn(hc, string(results[0].Rows[0][0]), u)
	c.initial = initial
	return c, nil
}

// config returns the configuration for the login of the agent role. Settings in u.Params replace the client's of the
// same name.
func (u Upstream) config(database string, settings map[string]string) (*pgconn.Config, error) {
	if u.Database != "" {
		database = u.Database
	}
	cfg, err := pgconn.ParseConfig("host=localhost port=5432 sslmode=disable")
	if err != nil {
		return nil, err
	}
	// The lines below override everything from the process's environment (PGUSER, PGOPTIONS, ~/.pgpass …).
	cfg.User, cfg.Password, cfg.Database = u.User, u.Password, database
	cfg.TLSConfig, cfg.Fallbacks, cfg.ValidateConnect, cfg.AfterConnect = u.TLS, nil, nil, nil
	cfg.SSLNegotiation, cfg.MinProtocolVersion, cfg.MaxProtocolVersion = "postgres", "3.0", "3.0"
	cfg.ChannelBinding, cfg.RequireAuth = "prefer", ""
	cfg.KerberosSrvName, cfg.KerberosSpn = "", ""
	cfg.MaxProtocolMessageBodyLen = maxServerLogin
	// The result is never used, since DialFunc connects to u.Address.
	cfg.LookupFunc = func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil }
	cfg.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialServer(ctx, u.Network, u.Address)
	}
	cfg.RuntimeParams = map[string]string{}
	maps.Copy(cfg.RuntimeParams, settings)
	for name, value := range u.Params {
		maps.DeleteFunc(cfg.RuntimeParams, func(k, _ string) bool { return strings.EqualFold(k, name) })
		cfg.RuntimeParams[name] = value
	}
	return cfg, nil
}

// unreachableError is the client's error when the proxy cannot connect to the server.
func unreachableError(cause error) *sqlstate.Error {
	return sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonUpstream, "the database server cannot be reached").
		WithHint(
			"pgconsent is running but its connection to PostgreSQL failed; try again later, or ask its operator.").WithCause(cause)
}

// connectionLostError is the client's error when the connection to the server is lost.
func connectionLostError(cause error) *sqlstate.Error {
	return sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonUpstream, "the connection to the database server was lost").
		WithHint("The statement in progress, if any, may or may not have taken effect. Connect again.").WithCause(cause)
}

// loginFailed returns the client's error when the agent role cannot log in. It names a cause only if that is the
// client's settings or the server's state. Other causes are for the operator.
func loginFailed(err error) *sqlstate.Error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return unreachableError(err)
	}
	switch {
	case pg.Code == "22023" || pg.Code == "42704":
		return sqlstate.New(sqlstate.Code(pg.Code), sqlstate.ReasonSetting, "%s", pg.Message).WithHint("%s", pg.Hint)
	case pg.Code == string(sqlstate.TooManyConnections):
		return sqlstate.New(sqlstate.TooManyConnections, sqlstate.ReasonUpstream,
			"the database server has no connection to spare").
			WithHint("Try again later, or ask the operator for more connections.").WithCause(err)
	case strings.HasPrefix(pg.Code, "57P"):
		return sqlstate.New(sqlstate.CannotConnectNow, sqlstate.ReasonUpstream,
			"the database server does not accept connections now").
			WithHint("It is starting up or shutting down; try again later.").WithCause(err)
	default:
		return unreachableError(err)
	}
}

// open connects to the server without logging in, over TLS if u.TLS is set.
func (u Upstream) open(ctx context.Context) (net.Conn, error) {
	nc, err := dialer.DialContext(ctx, u.Network, u.Address)
	if err != nil || u.TLS == nil {
		return nc, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = nc.SetDeadline(deadline)
	}
	request := binary.BigEndian.AppendUint32(nil, 8)
	request = binary.BigEndian.AppendUint32(request, codeSSL)
	var answer [1]byte // Exactly one byte is read, since later bytes belong to the handshake.
	if _, err = nc.Write(request); err == nil {
		_, err = io.ReadFull(nc, answer[:])
	}
	if err == nil && answer[0] != 'S' {
		err = errors.New("the database server does not speak TLS")
	}
	if err == nil {
		t := tls.Client(nc, u.TLS)
		if err = t.HandshakeContext(ctx); err == nil {
			_ = nc.SetDeadline(time.Time{})
			return t, nil
		}
	}
	nc.Close()
	return nil, err
}
