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

// dialer connects to the server with keepalive, so that a server that has disappeared is noticed.
var dialer = net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
	Enable: true, Idle: 60 * time.Second, Interval: 15 * time.Second, Count: 4}}

// dialServer makes a connection to the server; tests replace it with a slow one.
var dialServer = dialer.DialContext

// maxServerLogin is the length of the longest message of the server while logging in.
const maxServerLogin = 1 << 20

// heapQuery makes a server's process keep memory. With glibc, freeing a large piece of memory raises the size up to
// which a process keeps free memory at the end of its heap. This lasts as long as the process (M_MMAP_THRESHOLD in
// mallopt(3)). Before that it returns the memory of each plan to the kernel, and asks for it again with the next
// statement.
//
// The text is repeated in pieces of a kilobyte, since repeat() copies piece by piece: 4 MiB of single letters take the
// server 24 ms, and 6 ms in pieces.
func heapQuery(bytes int) string {
	const piece = 1024
	return fmt.Sprintf("SELECT pg_catalog.octet_length(pg_catalog.repeat(pg_catalog.repeat('x', %d), %d))", piece, (bytes+piece-1)/piece)
}

// startTimeQuery identifies the server: one that was restarted, or another one at the same address, has another start
// time.
const startTimeQuery = "SELECT EXTRACT(epoch FROM pg_catalog.pg_postmaster_start_time())"

// dial logs in to the server as the agent role. pooled tells that several sessions will use the connection.
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
	// Where a write of the login or of the query took long, the driver has begun to read in the background. That reader
	// would take the first of the session's answers.
	if err := pc.SyncConn(ctx); err != nil {
		_ = pc.Close(ctx)
		return nil, unreachableError(err)
	}
	hc, err := pc.Hijack()
	if err != nil {
		return nil, unreachableError(err)
	}
	c := newServerConn(hc, string(results[0].Rows[0][0]), u)
	c.initial, c.startupSettings = initial, startupKey(settings, u.Params)
	return c, nil
}

// config configures the login of the agent role. The pinned settings of u come after the client's, so that none of
// these can take their place.
func (u Upstream) config(database string, settings map[string]string) (*pgconn.Config, error) {
	if u.Database != "" {
		database = u.Database
	}
	cfg, err := pgconn.ParseConfig("host=localhost port=5432 sslmode=disable")
	if err != nil {
		return nil, err
	}
	// Nothing of the process's environment (PGUSER, PGOPTIONS, ~/.pgpass …) takes part.
	cfg.User, cfg.Password, cfg.Database = u.User, u.Password, database
	cfg.TLSConfig, cfg.Fallbacks, cfg.ValidateConnect, cfg.AfterConnect = u.TLS, nil, nil, nil
	cfg.SSLNegotiation, cfg.MinProtocolVersion, cfg.MaxProtocolVersion = "postgres", "3.0", "3.0"
	cfg.ChannelBinding, cfg.RequireAuth = "prefer", ""
	cfg.KerberosSrvName, cfg.KerberosSpn = "", ""
	cfg.MaxProtocolMessageBodyLen = maxServerLogin
	// DialFunc does not use this function.
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

// unreachableError is the error while the server cannot be reached.
func unreachableError(cause error) *sqlstate.Error {
	return sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonUpstream, "the database server cannot be reached").
		WithHint(
			"pgconsent is running but its connection to PostgreSQL failed; try again later, or ask its operator.").WithCause(cause)
}

// connectionLostError is the error of a connection to the server that was lost.
func connectionLostError(cause error) *sqlstate.Error {
	return sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonUpstream, "the connection to the database server was lost").
		WithHint("The statement in progress, if any, may or may not have taken effect. Connect again.").WithCause(cause)
}

// loginFailed says why the agent role could not log in, as far as it concerns the client: its settings, or the server's
// state. Any other reason concerns the operator.
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

// open makes a connection to the server without logging in, with TLS if u asks for it.
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
	var answer [1]byte // Exactly one byte is read: the bytes behind it belong to the handshake.
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
