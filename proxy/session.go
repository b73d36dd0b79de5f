package proxy

import (
	"encoding/binary"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// session is an agent's, from the upstream connection on. Two goroutines run it: inbound, the connection's own, takes
// the client's messages to the server; outbound takes the answers back.
type session struct {
	*conn
	decider  verdict.Decider
	noticer  verdict.Noticer // the decider, if it is one
	backend  verdict.Backend
	cancelAt Upstream
	key      []byte // the server's cancel key, with the process id in front
	ledger   *ledger
	outgoing sync.WaitGroup
	again    repeatable
	// the server takes what comes behind an Execute in a pipeline for a transaction block: it is PostgreSQL 18 or newer
	nests bool

	// Of who has the turn (see repeatable): the inbound goroutine, mostly.
	seal      verdict.Seal
	group     uint64 // counts Syncs
	astray    bool   // what is judged runs with claims that are not known
	executes  int    // of the group
	ended     bool   // the last message of the group ends the transaction
	unsealing bool   // or takes the seal away
	copies    *entry // asks the client for rows, and is about to be sent
	awaited   *entry // is to be answered before anything else is sent
	fill      uint64 // counts reads of what the client sends, and Queries and Syncs in it
	keeps     bool   // the transaction may be one that keeps its snapshot
	tx        *since // from when such a transaction sees
	foreign   bool   // something has asked a foreign server
	foreignIn uint64 // the group of the last Bind or Execute that did, from 1 on
	batch     batch
}

func newSession(c *conn, d verdict.Decider, server *pgconn.HijackedConn, u Upstream) *session {
	s := &session{
		conn:     c,
		decider:  d,
		backend:  verdict.Backend{PID: server.PID},
		cancelAt: u,
		key:      append(binary.BigEndian.AppendUint32(nil, server.PID), server.SecretKey...),
		ledger:   newLedger(),
		nests:    majorOf(server.ParameterStatuses["server_version"]) >= 18,
	}
	s.again.turn = make(chan struct{}, 1)
	s.again.leave()
	s.noticer, _ = d.(verdict.Noticer)
	s.boundTransactions()
	c.mu.Lock()
	c.session = s
	if c.ended {
		s.ledger.close()
	}
	c.mu.Unlock()
	return s
}

// start begins to read the server's answers and seals the session.
func (s *session) start() error {
	s.batch.to = newSink(s.upstream)
	s.outgoing.Add(1)
	go func() {
		defer s.outgoing.Done()
		defer s.recovered()
		s.end(s.outbound())
	}()
	return s.setSeal()
}

// finish runs after inbound has returned: it stops outbound, settles what will not be answered and closes the decider.
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
		// The server does not notice that nobody waits any more. It ignores a cancel request that comes before it has
		// read the statement.
		s.cancelUpstream()
		time.Sleep(100 * time.Millisecond)
		s.cancelUpstream()
	}
	for _, i := range s.batch.items {
		if i.entry != nil {
			unanswered = append(unanswered, i.entry)
		}
	}
	for _, e := range unanswered {
		if e.code == "" {
			e.code = code
		}
		e.record()
	}
	s.decider.Close()
}

// farewell takes leave of the server, which otherwise logs an unexpected end.
func farewell(upstream net.Conn) {
	_ = upstream.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	_, _ = upstream.Write([]byte{'X', 0, 0, 0, 4})
}

// record writes the outcome of an execution.
func (e *entry) record() {
	if e.ticket == nil {
		return
	}
	o := verdict.Outcome{Rows: e.rows, Bytes: e.bytes, Code: e.code}
	switch {
	case e.limited != "":
		o.Code = e.limited
	case o.Code == "":
		o.Code = sqlstate.SuccessfulCompletion
	}
	if !e.sent.IsZero() {
		o.Upstream = time.Since(e.sent)
	}
	t := e.ticket
	e.ticket = nil
	t.Done(o)
}

// cancelUpstream asks the server to cancel what it does for this session.
func (s *session) cancelUpstream() {
	if err := s.cancelAt.cancel(s.key); err != nil {
		s.log.Warn("cancel request not delivered", "error", err)
	}
}
