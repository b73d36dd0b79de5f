package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"time"

	"github.com/xdg-go/scram"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Router decides by the user and database of the startup message whether a client is an owner, an agent or an operator.
type Router interface {
	// Route returns the client's route; for an unknown client its kind is Refused. Goroutines call it concurrently.
	Route(user, database string) Route
}

// RouteKind says whether a client is an owner, an agent, an operator, or none of them.
type RouteKind int

// The kinds of clients. The zero value refuses.
const (
	Refused  RouteKind = iota // the client is none of the others: its login fails like one with a wrong password
	Owner                     // the client's bytes are relayed without being parsed
	Agent                     // the policy decides on each statement of the client
	Operator                  // Route.Serve serves the client, which reaches no PostgreSQL server
)

// Route says how the proxy treats a client, and has the functions for that.
type Route struct {
	Kind     RouteKind
	Upstream Upstream // the PostgreSQL server of the database, for Owner and Agent

	// Credential verifies the password of an agent or an operator by SCRAM. For Refused no password matches it, and it
	// must be the same for the same user each time.
	Credential *scram.StoredCredentials

	// Password, if set, is used instead of Credential. It verifies a token that the agent sends as its password, in plain
	// text. Its errors go to the log, and not to the client.
	Password func(ctx context.Context, password string) (TokenGrant, error)

	// Certificate, if set, decides whether the client's TLS certificate, which the handshake has verified, belongs to the
	// agent. A client without such a certificate sees the exchange and error of a wrong password, even if its password is
	// right. Errors of Certificate go to the log.
	Certificate func(*x509.Certificate) error

	// Sessions is how many sessions an agent may have at a time; 0: any number, up to the limit of connections.
	Sessions int

	// Pool, if set, makes the agent's sessions share connections to the server; nil: each session has its own.
	Pool *PoolSettings

	// CheckSetting decides on one setting in an agent's startup message. where is "startup" for a parameter, or "options"
	// if the setting is in the parameter options. It returns the value and whether to forward it to the server, or a
	// refusal.
	CheckSetting func(name, value, where string) (normalised string, mustForward bool, err *sqlstate.Error)

	// Open opens an agent's session in enforcement, after the agent is authenticated and the connection to the server is
	// made.
	Open func(ctx context.Context, info SessionInfo) (verdict.Decider, error)

	// Paused returns nil while the agents of the database may send statements. During a pause it returns a channel that is
	// closed when they may go on. It is called before messages of an agent outside a transaction; if Paused is nil, there
	// are no pauses.
	Paused func() <-chan struct{}

	// Serve serves an operator after authentication, and sends AuthenticationOk itself. It returns when the client has
	// left, or with an error for the client. When the proxy ends the connection, reads from client fail.
	Serve func(ctx context.Context, client net.Conn, info OperatorInfo) error
}

// OperatorInfo describes an operator's session for [Route].Serve.
type OperatorInfo struct {
	ID         string // random id, as [Server.Sessions] has it
	User       string
	RemoteAddr string
}

// TokenGrant is what a verified token or certificate grants a session.
type TokenGrant struct {
	Attributes map[string]string // attributes that the token gives; they are secret and not logged
	Until      time.Time         // when the token expires; zero: never
}

// Upstream says how the proxy reaches the PostgreSQL server for a database.
type Upstream struct {
	Network  string            // "unix" or "tcp"
	Address  string            // address as for net.Dial: the socket's path, or host:port
	TLS      *tls.Config       // nil: the connection is not encrypted
	Database string            // name of the database on the server; empty: as the client asked for it
	User     string            // name of the agent role
	Password string            // the password of the agent role
	Params   map[string]string // startup settings that the proxy sets and no client can change

	// KeepHeap is how many bytes of freed memory a session's server process keeps. It would otherwise return them to the
	// kernel after each statement. 0 leaves that to the process's C library.
	KeepHeap int

	// StatementCache is how many statements the proxy keeps prepared on each connection; 0: none.
	StatementCache int

	// Settings are the names of the settings that agents may change, without those that the policy maps to attributes.
	// With a pool, their values move with the session from one connection to the next.
	Settings []string

	// CacheEagerly makes the proxy cache a statement when it first occurs, not when it occurs again. It is for tests.
	CacheEagerly bool
}

// SessionInfo describes an agent's session to enforcement when the session starts.
type SessionInfo struct {
	ID         string // random id, for logs and the audit
	Agent      string
	Database   string // name of the database as the client asked for it
	RemoteAddr string
	BackendPID uint32
	Server     string // when the server was started, by its own clock; a restarted or other server has another time

	// Settings are the settings of the startup message, by their names in lower case. Claims returns the current values of
	// settings that the policy maps to attributes. Only the goroutine that calls the Decider may call it.
	Settings map[string]string
	Claims   func() verdict.Claims

	TokenAttributes        map[string]string // attributes that the agent's token gave; nil without one
	ExpiresAt              time.Time         // when the token or certificate expires, and the session with it; zero: never
	ExpiresWithCertificate bool              // ExpiresAt is when a certificate expires, not a token
	HidesKeyOnlyColumns    bool              // hide columns that the policy shows only in reads by key

	// OnRevoke ends the session with this error. It returns at once, may be called from any goroutine, and does nothing if
	// the session is over.
	OnRevoke func(*sqlstate.Error)
}
