package proxy

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// session is an agent's session, from the time when it has a connection to the server. Two goroutines run it: one
// relays the client's messages to the server ([requests]), the other relays the server's answers ([answers]).
type session struct {
	*conn
	decider       verdict.Decider
	noticeSource  verdict.NoticeSource  // the decider, if it implements NoticeSource
	channelFilter verdict.ChannelFilter // the decider, if it implements ChannelFilter
	backend       verdict.Backend
	clientPID     uint32 // the process id in the client's cancel key
	ledger        *ledger
	outgoing      sync.WaitGroup
	retry         retryState
	requests      *requests
	// the value of [Route].Paused
	whilePaused func() <-chan struct{}
	connector   *connector
	connection  *serverConn // the connection to the server; nil: a pooled session has none now. Guarded by the conn's lock
	toClient    sink
	// RowDescriptions by statement text, if the audit records keys of rows; only the goroutine that reads answers uses it
	descriptions map[string][]byte
	// The server treats messages behind an Execute in a pipeline as a transaction block, as PostgreSQL 18 and newer do.
	implicitBlocks bool
}

// newSession makes a session that has no connection to the server yet. serverVersion is the server's major version.
func newSession(c *conn, d verdict.Decider, l *connector, serverVersion int) *session {
	s := &session{
		conn:           c,
		decider:        d,
		ledger:         newLedger(),
		connector:      l,
		toClient:       newSink(c.client),
		implicitBlocks: serverVersion >= 18,
	}
	s.requests = newRequests(s)
	s.retry.turn = make(chan struct{}, 1)
	s.retry.leaveTurn()
	s.noticeSource, _ = d.(verdict.NoticeSource)
	s.channelFilter, _ = d.(verdict.ChannelFilter)
	s.boundTransactions()
	c.mu.Lock()
	c.session = s
	if c.ended {
		s.ledger.close()
	}
	c.mu.Unlock()
	return s
}

// majorVersion returns the major version of a server, and 0 if it is not known.
func majorVersion(version string) (major int) {
	_, _ = fmt.Sscanf(version, "%d", &major)
	return major
}

// start gives the session its first connection and sets the seal (signed identity). The caller has the turn (see
// [retryState]) from then on.
func (s *session) start(server *serverConn) error {
	s.retry.takeTurn()
	switch err := s.attach(server); {
	case err == errConnectionEnded: // A pooled connection had ended; another one is taken or made.
		return s.requests.takeConnection()
	case err != nil:
		return err
	}
	return s.requests.identify(server)
}

// attach makes c the session's connection and begins to read the server's answers.
func (s *session) attach(c *serverConn) error {
	if err := s.setConnection(c); err != nil {
		s.connector.giveUp(c)
		return err
	}
	s.backend = verdict.Backend{PID: c.pid}
	s.requests.batch.server = c.sink
	s.ledger.setCache(&c.cache)
	if c.assignTo(s) {
		return nil
	}
	s.mu.Lock()
	s.connection, s.upstream = nil, nil
	s.mu.Unlock()
	s.connector.giveUp(c)
	return errConnectionEnded
}

// errConnectionEnded means that a connection has ended while no session had it.
var errConnectionEnded = errors.New("the connection has ended")

// setConnection stores the session's connection, so that end and close can end it.
func (s *session) setConnection(c *serverConn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errPeerGone
	}
	s.connection, s.upstream = c, c.Conn
	return nil
}

// finish ends a session after the client's last message. It stops the goroutine that reads the answers, records the
// outcome of unanswered messages, and closes the decider.
func (s *session) finish() {
	s.end(nil)
	s.mu.Lock()
	code := sqlstate.ConnectionFailure
	if s.reason != nil {
		code = s.reason.Code
	}
	connection, stopping := s.connection, s.cancelsStatement
	s.mu.Unlock()
	if connection != nil {
		sendTerminate(connection)
	}
	s.outgoing.Wait()
	unanswered := s.ledger.removeAll()
	if stopping && len(unanswered) > 0 {
		// The server would run the statement to its end, although nobody waits for the answer. It ignores a cancel request
		// that comes before it has read the statement, so the proxy sends a second one.
		s.cancelUpstream()
		time.Sleep(100 * time.Millisecond)
		s.cancelUpstream()
	}
	for _, i := range s.requests.batch.items {
		if i.entry != nil {
			unanswered = append(unanswered, i.entry)
		}
	}
	for _, e := range unanswered {
		if e.base().code == "" {
			e.base().code = code
		}
		recordOutcome(e, time.Now())
	}
	if connection != nil {
		s.connector.giveUp(connection)
	}
	s.decider.Close()
}

// sendTerminate sends a Terminate to the server, which would otherwise log an unexpected end of the connection.
func sendTerminate(upstream net.Conn) {
	_ = upstream.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	_, _ = upstream.Write([]byte{'X', 0, 0, 0, 4})
}

// cancelUpstream sends the server a cancel request for the session's running statement.
func (s *session) cancelUpstream() {
	s.mu.Lock()
	c := s.connection
	if c != nil {
		c.runningCancels.Add(1)
		c.canceling.Add(1)
	}
	s.mu.Unlock()
	if c == nil {
		return
	}
	defer c.runningCancels.Done()
	defer c.canceling.Add(-1)
	if err := s.connector.upstream.cancel(c.key); err != nil {
		s.log().Warn("cancel request not delivered", "error", err)
	}
}
