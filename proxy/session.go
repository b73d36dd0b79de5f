package proxy

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// session is an agent's session, which begins with the connection to the server. Two goroutines run it: the
// connection's goroutine relays the client's messages to the server ([requests]), the other goroutine relays the
// answers ([answers]).
type session struct {
	*conn
	decider  verdict.Decider
	noticer  verdict.Noticer // the decider, if it is a Noticer
	hearer   verdict.Hearer  // the decider, if it is a Hearer
	backend  verdict.Backend
	cancelAt Upstream
	key      []byte // the server's cancel key, with the process id in front
	shownPID uint32 // the process id that the client was told
	ledger   *ledger
	outgoing sync.WaitGroup
	retry    retryState
	requests *requests
	// returns a channel that is closed when the session may go on, and nil while it may; nil: it always may
	whilePaused func() <-chan struct{}
	// The server takes the messages behind an Execute in a pipeline for a transaction block: it is PostgreSQL 18 or newer.
	implicitBlocks bool
}

func newSession(c *conn, d verdict.Decider, server *pgconn.HijackedConn, u Upstream) *session {
	s := &session{
		conn:           c,
		decider:        d,
		backend:        verdict.Backend{PID: server.PID},
		cancelAt:       u,
		key:            append(binary.BigEndian.AppendUint32(nil, server.PID), server.SecretKey...),
		ledger:         newLedger(),
		implicitBlocks: majorVersion(server.ParameterStatuses["server_version"]) >= 18,
	}
	s.ledger.cache.most, s.ledger.cache.eager = u.StatementCache, u.CacheEagerly
	s.requests = newRequests(s)
	s.retry.turn = make(chan struct{}, 1)
	s.retry.leave()
	s.noticer, _ = d.(verdict.Noticer)
	s.hearer, _ = d.(verdict.Hearer)
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

// start begins to read the server's answers and seals the session.
func (s *session) start() error {
	s.requests.batch.to = newSink(s.upstream)
	s.outgoing.Add(1)
	go func() {
		defer s.outgoing.Done()
		defer s.recoverPanic()
		s.end(s.relayAnswers())
	}()
	return s.requests.setSeal()
}

// finish runs when no more messages of the client will come: it stops the goroutine that reads the answers, records the
// outcome of messages that will not be answered, and closes the decider.
func (s *session) finish() {
	s.end(nil)
	s.mu.Lock()
	code := sqlstate.ConnectionFailure
	if s.reason != nil {
		code = s.reason.Code
	}
	upstream, stopping := s.upstream, s.stopping
	s.mu.Unlock()
	farewell(upstream)
	s.outgoing.Wait()
	unanswered := s.ledger.rest()
	if stopping && len(unanswered) > 0 {
		// The server does not notice that nobody waits for its answer any more. It ignores a cancel request that comes before
		// it has read the statement, so it gets a second request.
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
		record(e)
	}
	s.decider.Close()
}

// farewell sends a Terminate to the server, which otherwise logs an unexpected end.
func farewell(upstream net.Conn) {
	_ = upstream.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	_, _ = upstream.Write([]byte{'X', 0, 0, 0, 4})
}

// cancelUpstream requests the server to cancel what it does for this session.
func (s *session) cancelUpstream() {
	if err := s.cancelAt.cancel(s.key); err != nil {
		s.log.Warn("cancel request not delivered", "error", err)
	}
}
