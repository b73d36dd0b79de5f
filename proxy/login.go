package proxy

import (
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgproto3/v2"
	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/run/metrics"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// refuse handles a client whose route is Refused. The client sees the same exchange and error as an agent with a wrong
// password.
func (c *conn) refuse(st *startup, route Route) error {
	c.server.metrics.SessionOpened(metrics.Refused)
	defer c.server.metrics.SessionClosed(metrics.Refused)
	if err := c.identify(st, route); err != nil {
		return err
	}
	return wrongPasswordError(st.user) // A client that is not known is refused whatever its password is.
}

// identify authenticates the client by its certificate or password. It refuses an unencrypted connection from another
// machine.
func (c *conn) identify(st *startup, route Route) error {
	if c.identity == nil && c.binding == nil && !c.isLoopback() {
		return sqlstate.New(sqlstate.InvalidAuthorization, sqlstate.ReasonIdentity, "an encrypted connection is required").
			WithHint("Connect with sslmode=require or stricter; without TLS, pgconsent serves only clients on its own machine.")
	}
	if b := st.negotiation(); b != nil {
		if err := c.write(b); err != nil {
			return errPeerGone
		}
	}
	if c.identity != nil {
		c.token = TokenGrant{Attributes: c.identity.Claims, Until: c.identity.Until}
		return nil
	}
	if route.Certificate != nil && c.verifyCertificate(st.user, route.Certificate) {
		return nil
	}
	if route.Password != nil && route.Certificate == nil {
		return c.verifyPassword(st.user, route.Password)
	}
	if route.Credential == nil {
		return sqlstate.AsError(errors.New("the route has no credential"))
	}
	if err := c.authenticate(st.user, *route.Credential); err != nil {
		return err
	}
	if route.Certificate != nil {
		return wrongPasswordError(st.user) // This agent may log in only by certificate, whatever its password is.
	}
	return nil
}

// logInAgent authenticates an agent and opens its session. It returns the function that serves the session until the
// connection ends.
func (c *conn) logInAgent(st *startup, route Route) (serveSession func() error, err error) {
	if err := c.identify(st, route); err != nil {
		c.server.metrics.SessionOpened(metrics.Refused)
		c.server.metrics.SessionClosed(metrics.Refused)
		return nil, err
	}
	c.server.metrics.SessionOpened(metrics.Agent)
	release := func() {}
	defer func() {
		if serveSession == nil {
			release()
			c.server.metrics.SessionClosed(metrics.Agent)
		}
	}()
	// Settings are checked after the password, so that an error about them does not reveal which agents exist.
	settings, err := st.checkSettings(route.CheckSetting)
	if err != nil {
		return nil, err
	}

	key := agentKey{st.user, st.database}
	releaseSession, refusal := c.server.slots.takeSession(key, route.Sessions)
	if refusal != nil {
		return nil, refusal
	}
	release = releaseSession
	settings = c.server.settings.equalTo(settings)
	connector := newConnector(c.server, key, route, settings)
	server, err := connector.take(c.ctx)
	if err != nil {
		return nil, err
	}
	s, err := c.openSession(st, route, connector, server, settings)
	if err != nil {
		connector.giveUp(server)
		return nil, err
	}
	return func() error {
		defer c.server.metrics.SessionClosed(metrics.Agent)
		defer release()
		defer s.finish()
		defer s.recoverPanic()
		c.conclude(s.converse(server, st)) // conclude runs before finish, which reports the reason for the end of the session
		return nil
	}, nil
}

// openSession opens the session in enforcement and makes the proxy's session, for a connection to the server.
func (c *conn) openSession(st *startup, route Route, connector *connector, server *serverConn,
	settings map[string]string) (*session, error) {
	if route.Open == nil {
		return nil, sqlstate.AsError(errors.New("the route opens no session"))
	}
	var s *session
	decider, err := route.Open(c.ctx, SessionInfo{
		ID:                     c.id,
		Agent:                  st.user,
		Database:               st.database,
		RemoteAddr:             c.remote(),
		BackendPID:             server.pid,
		Server:                 server.serverStarted,
		Settings:               settings,
		Claims:                 func() verdict.Claims { return s.requests.claims() },
		TokenAttributes:        c.token.Attributes,
		ExpiresAt:              c.token.Until,
		ExpiresWithCertificate: c.byCertificate,
		HidesKeyOnlyColumns:    c.identity != nil && c.identity.Lists,
		OnRevoke:               c.revoke,
	})
	if err != nil {
		return nil, sqlstate.AsError(err)
	}
	s = newSession(c, decider, connector, majorVersion(server.parameters["server_version"]))
	s.whilePaused = route.Paused
	s.requests.pooling.server = server.serverStarted
	if s.pooled() {
		s.requests.pooling.returned = make(chan struct{}, 1)
	}
	s.ledger.claims.begin(settings)
	return s, nil
}

// converse tells the client that it is logged in, and serves it to the end.
func (s *session) converse(server *serverConn, st *startup) error {
	key := s.server.cancels.add(s, st.cancelSecretBytes())
	defer s.server.cancels.remove(key)
	s.clientPID = key.pid
	if err := s.welcome(server, st, key); err != nil {
		return err
	}
	return s.requests.run()
}

// welcome sets the session's seal (signed identity) and tells the client that it is logged in.
func (s *session) welcome(server *serverConn, st *startup, key cancelKey) error {
	if err := s.start(server); err != nil {
		return err
	}
	s.loggedIn(Agent, st) // before the client knows, so that Sessions lists clients in the order of their logins
	if err := s.greet(server.parameters, key); err != nil {
		return err
	}
	s.setDeadline(time.Time{})
	if s.server.isDraining() {
		s.ledger.drain() // The session ends after its first answer, so that the client's login was not in vain.
	}
	return nil
}

// revoke ends the session on behalf of enforcement, and cancels the statement that the server runs for it.
func (c *conn) revoke(reason *sqlstate.Error) {
	c.stop(reason)
}

// reportedSettings are the settings whose values PostgreSQL reports to a client (ParameterStatus). The proxy relays no
// others.
var reportedSettings = []string{
	"DateStyle", "IntervalStyle", "TimeZone", "application_name", "client_encoding", "default_transaction_read_only",
	"in_hot_standby", "integer_datetimes", "is_superuser", "scram_iterations", "search_path", "server_encoding",
	"server_version",
	"session_authorization", "standard_conforming_strings",
}

// greet sends the client the messages that end a login, with the proxy's cancel key in place of the server's.
func (c *conn) greet(parameters map[string]string, key cancelKey) error {
	b, _ := (&pgproto3.AuthenticationOk{}).Encode(nil)
	for _, name := range reportedSettings {
		if value, ok := parameters[name]; ok {
			b, _ = (&pgproto3.ParameterStatus{Name: name, Value: value}).Encode(b)
		}
	}
	b, _ = (&pgx3.BackendKeyData{ProcessID: key.pid, SecretKey: key.secret}).Encode(b)
	b, _ = (&pgproto3.ReadyForQuery{TxStatus: 'I'}).Encode(b)
	if err := c.write(b); err != nil {
		return errPeerGone
	}
	return nil
}

func isReported(name string) bool { return slices.Contains(reportedSettings, name) }
