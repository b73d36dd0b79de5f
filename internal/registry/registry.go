package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Config says how to reach a registry.
type Config struct {
	Connect  *pgx.ConnConfig // how to log in as the control role
	Database string          // the database's name in the configuration; the anchor file has an entry with this name
	Keys     Keys
	Anchor   string // the path of the anchor file
	Settings consent.Settings

	RetryFor time.Duration // how long a call tries again while the database is unavailable; 0: 15 s

	afterCommit func() // tests set it: it runs after the commit and before the anchor is written
}

// Registry reads and writes the consent records of one database. It is safe for concurrent use.
type Registry struct {
	Config

	mu        sync.Mutex
	idleConns []*pgx.Conn
	closed    bool
}

// Open returns a registry. It connects when it is first used.
func Open(c Config) (*Registry, error) {
	switch {
	case c.Connect == nil:
		return nil, errors.New("registry: no connection is configured")
	case c.Keys.isZero():
		return nil, errors.New("registry: no key is configured")
	case c.Anchor == "":
		return nil, errors.New("registry: no anchor is configured")
	}
	c.Connect = c.Connect.Copy()
	for name, value := range map[string]string{
		"application_name": "pgconsent consent", "search_path": "pg_catalog", "statement_timeout": "10s", "lock_timeout": "8s",
		"idle_in_transaction_session_timeout": "30s", "client_encoding": "UTF8", "DateStyle": "ISO", "TimeZone": "UTC",
		// These override settings that are stored for the role.
		"default_transaction_read_only": "off", "default_transaction_isolation": "read committed", "quote_all_identifiers": "off",
	} {
		c.Connect.RuntimeParams[name] = value
	}
	if c.RetryFor == 0 {
		c.RetryFor = 15 * time.Second
	}
	return &Registry{Config: c}, nil
}

// Close closes idle connections. Calls that are running finish.
func (r *Registry) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, c := range r.idleConns {
		_ = c.Close(context.Background())
	}
	r.idleConns = nil
}

const maxIdleConns = 4

func (r *Registry) connect(ctx context.Context) (*pgx.Conn, error) {
	r.mu.Lock()
	if n := len(r.idleConns); n > 0 {
		c := r.idleConns[n-1]
		r.idleConns = r.idleConns[:n-1]
		r.mu.Unlock()
		return c, nil
	}
	r.mu.Unlock()
	return pgx.ConnectConfig(ctx, r.Connect.Copy())
}

func (r *Registry) release(conn *pgx.Conn) {
	r.mu.Lock()
	keep := !r.closed && !conn.IsClosed() && conn.PgConn().TxStatus() == 'I' && len(r.idleConns) < maxIdleConns
	if keep {
		r.idleConns = append(r.idleConns, conn)
	}
	r.mu.Unlock()
	if !keep {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}
}

// withConnection calls f with a connection, and calls it again while the database is unavailable.
func (r *Registry) withConnection(ctx context.Context, f func(ctx context.Context, conn *pgx.Conn) error) error {
	return r.tryWithConnection(ctx, false, unreachableError, f)
}

// tryWithConnection is [Registry.withConnection] with two options. unavailableError makes the error if the database
// stays unavailable. If isLong is true, f may take longer than RetryFor.
func (r *Registry) tryWithConnection(callContext context.Context, isLong bool, unavailableError func(error) error,
	f func(ctx context.Context, conn *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(callContext, r.RetryFor)
	defer cancel()
	attemptContext := ctx
	if isLong {
		attemptContext = callContext
	}
	var lastError error
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		conn, err := r.connect(ctx)
		if err == nil {
			err = f(attemptContext, conn)
			r.release(conn)
		}
		if err == nil || !isTransient(err) {
			return err
		}
		if lastError == nil || ctx.Err() == nil {
			lastError = err
		}
		select {
		case <-ctx.Done():
			// A server that has too many connections has not begun the call, so its own error is returned.
			if loginError := sqlstate.LoginFailedError(r.Connect.User,
				lastError); loginError.Code == sqlstate.TooManyConnections {
				return loginError
			}
			return unavailableError(lastError)
		case <-time.After(wait):
		}
	}
}

// isTransient reports whether the cause of an error may disappear: a restart, a lock, a lost connection.
func isTransient(err error) bool {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		switch {
		case pgErr.Code[:2] == "08", pgErr.Code == "57P01", pgErr.Code == "57P02", pgErr.Code == "57P03",
			pgErr.Code == "40001", pgErr.Code == "40P01", pgErr.Code == "55P03", pgErr.Code == "57014",
			pgErr.Code == "25P03", pgErr.Code == "53300":
			return true
		}
		return false
	}
	var ownError *sqlstate.Error
	var namedError consent.Named
	if errors.As(err, &ownError) || errors.As(err, &namedError) {
		return false
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) || pgconn.Timeout(err) ||
		isConnectionLost(err)
}

// isConnectionLost reports whether the connection broke during a statement.
func isConnectionLost(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, errConnection) || isConnectionEOF(err)
}

var errConnection = errors.New("the connection was lost")

func unreachableError(err error) error {
	return sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonUpstream,
		"the database did not answer in time: it is not known whether the change was made").
		WithHint("Make the same call again, with the same key if it had one: the change is not made twice.").WithCause(err)
}

func queryTimeoutError(err error) error {
	return sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonUpstream, "the database did not answer in time").
		WithHint("Nothing was changed. Try again when it can be reached.").WithCause(err)
}

// databaseError returns the error for callers after a failure of the database.
func databaseError(action string, err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		switch pgErr.Code {
		case "3F000", "42P01", "42883", "42704":
			return sqlstate.New(sqlstate.UndefinedObject, sqlstate.ReasonConsent, "this database has no consent registry").
				WithHint("Run pgconsent migrate.").WithCause(err)
		case "42501":
			return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonConsent, "the control role may not %s", action).
				WithHint("Run pgconsent migrate, which gives it the rights.").WithCause(err)
		case "25006", "0A000": // only a standby answers pgconsent's transactions with these codes
			return StandbyError(err)
		}
	}
	return fmt.Errorf("%s: %w", action, err)
}

// StandbyError returns the error for a change that was tried on a standby server.
func StandbyError(cause error) error {
	return sqlstate.New(sqlstate.CannotConnectNow, sqlstate.ReasonUpstream, "the server takes no changes: it is a standby").
		WithHint("Let upstream name the primary, or promote this server.").WithCause(cause)
}
