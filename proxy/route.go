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

// Router decides whether a client is an owner, an agent or an operator, by the user and database of its startup message.
type Router interface {
	// Route never fails: an unknown client gets a route of kind Refused. It is called by many goroutines.
	Route(user, database string) Route
}

// RouteKind says whether a client is an owner, an agent, an operator, or none of them.
type RouteKind int

// The kinds of clients. The zero value refuses.
const (
	Refused  RouteKind = iota // the client is none of the others: its login fails as a wrong password does
	Owner                     // the client's bytes are relayed without being parsed
	Agent                     // each statement of the client is decided
	Operator                  // the client is served by Route.Serve, and reaches no server
)

// Route says how to treat a client.
type Route struct {
	Kind     RouteKind
	Upstream Upstream // server of the database, for Owner and Agent

	// Credential is the verifier of the password of an agent or an operator. For Refused it is one that no password matches; it must be the
	// same for the same user each time.
	Credential *scram.StoredCredentials

	// Password, where it is set, is used instead of Credential. The agent sends a token as its password, in plain text,
	// and Password verifies it. The text of an error is for the log.
	Password func(ctx context.Context, password string) (TokenGrant, error)

	// Certificate, where it is set, judges the certificate by which the agent logs in, which the handshake has verified. A
	// client without one that is right gets the exchange and the error of a wrong password, whatever Credential says. The
	// text of an error is for the log.
	Certificate func(*x509.Certificate) error

	// Sessions is how many sessions an agent may have at a time; 0: as many as there is room for.
	Sessions int

	// Pool has the agent's sessions share connections to the server; nil: each session has its own.
	Pool *PoolSettings

	// CheckSetting judges one startup setting of an agent; where is "startup" or "options". It returns the value to
	// forward, whether to forward it, or the refusal.
	CheckSetting func(name, value, where string) (normalised string, mustForward bool, err *sqlstate.Error)

	// Open starts an agent's session for enforcement, after authentication and with the upstream connection made.
	Open func(ctx context.Context, info SessionInfo) (verdict.Decider, error)

	// Paused returns a channel that is closed when the agents of the database may go on, and nil while they may. It is
	// called before each of an agent's messages outside a transaction; nil: agents always may.
	Paused func() <-chan struct{}

	// Serve serves an operator after authentication, from AuthenticationOk on. It returns when the client has left, or
	// with an error that the client is told; reads fail once the connection is to end.
	Serve func(ctx context.Context, client net.Conn, info OperatorInfo) error
}

// OperatorInfo is what [Route].Serve learns of an operator's session.
type OperatorInfo struct {
	ID         string // random id, as [Server.Sessions] has it
	User       string
	RemoteAddr string
}

// TokenGrant is what a verified token gives a session.
type TokenGrant struct {
	Attributes map[string]string // attributes that the token gives; they are secret and not logged
	Until      time.Time         // when the token expires; zero: never
}

// Upstream says how to reach the server for one database.
type Upstream struct {
	Network  string            // "unix" or "tcp"
	Address  string            // address as for net.Dial: the socket's path, or host:port
	TLS      *tls.Config       // nil: the connection is not encrypted
	Database string            // name of the database on the server; empty: as the client asked for it
	User     string            // name of the agent role
	Password string            // the password of the agent role
	Params   map[string]string // settings that no client can change

	// KeepHeap is how many bytes of memory a session's server process keeps once it had them. It would otherwise return
	// them to its kernel after each statement; 0 leaves that to its C library.
	KeepHeap int

	// StatementCache is how many statements of a session the proxy keeps prepared; 0: none.
	StatementCache int

	// Settings are the names of the settings that agents may change, without those that the policy maps to attributes.
	// In a pool they go with the session from one connection to the next.
	Settings []string

	// CacheEagerly keeps a statement prepared from its first coming on, not from its second: for tests.
	CacheEagerly bool
}

// SessionInfo is what enforcement learns of a session that starts.
type SessionInfo struct {
	ID         string // random id, for logs and the audit
	Agent      string
	Database   string // name of the database as the client asked for it
	RemoteAddr string
	BackendPID uint32
	Server     string // when the server was started, by its own clock; this tells servers apart

	// Settings are the settings of the startup message, by their names in lower case. Claims returns the current values of
	// settings that the policy maps to attributes; the goroutine that calls the Decider calls it.
	Settings map[string]string
	Claims   func() verdict.Claims

	TokenAttributes        map[string]string // attributes that the agent's token gave; nil without one
	ExpiresAt              time.Time         // when the token or certificate expires, and the session with it; zero: never
	ExpiresWithCertificate bool              // Until is when a certificate expires
	HidesKeyOnlyColumns    bool              // the value of [Identity.Lists]

	// OnRevoke ends the session with this error; it returns at once, may be called from any goroutine, and does
	// nothing when the session is over.
	OnRevoke func(*sqlstate.Error)
}
