package proxy

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/jackc/pgx/v5/pgconn"
)

// serverConn is a connection to the server, logged in as the agent role. One session uses it at a time: to the
// session's end, or only for a transaction if the connection belongs to a pool.
type serverConn struct {
	net.Conn
	pid           uint32
	key           []byte            // the server's cancel key, with the process id in front
	parameters    map[string]string // the settings that the server reported at the login
	serverStarted string            // when the server was started, by its own clock

	source source // reads the server's messages
	sink   sink   // writes messages to the server
	cache  statementCache

	// State that the last session left on the connection. Only the goroutine that has the turn (see [retryState]) of the
	// current session uses it.
	lastSession  string            // id of that session
	seal         sealState         // the seal that is set on the server; its value is empty before the first
	settings     map[string]string // settings whose values differ from those at the connection's start
	needsReset   bool              // the server process may hold other state: sequence values, settings, locks
	namesToClose []string          // the server's names of statements that the proxy must close

	startupSettings unique.Handle[string] // the startup settings, as [startupKey] writes them; only set with a pool
	initial         map[string]string     // the settings' values at the connection's start
	idleSince       time.Time             // since when no session has the connection

	mu      sync.Mutex
	session *session // the session that gets the server's answers; nil: no session has the connection
	reading bool     // a goroutine reads from it
	isDead  bool     // the connection ended, or the server sent bytes, while no session had it
	pool    *pool    // nil: it belongs to one session

	woken          bool         // wake(true) was called last; guarded by the lock of the session's conn
	canceling      atomic.Int32 // number of cancel requests that are being sent
	runningCancels sync.WaitGroup
}

func newServerConn(hc *pgconn.HijackedConn, serverStarted string, u Upstream) *serverConn {
	c := &serverConn{
		Conn:          hc.Conn,
		pid:           hc.PID,
		key:           append(binary.BigEndian.AppendUint32(nil, hc.PID), hc.SecretKey...),
		parameters:    hc.ParameterStatuses,
		serverStarted: serverStarted,
		source:        newSource(hc.Conn),
		sink:          newSink(hc.Conn),
	}
	c.cache.maxStatements, c.cache.preparesAtOnce = u.StatementCache, u.CacheEagerly
	return c
}

// wake(true) makes reads of the goroutine that reads the answers fail with [os.ErrDeadlineExceeded]. wake(false) lets
// it read again.
func (c *serverConn) wake(isSet bool) {
	var at time.Time
	if isSet {
		at = time.Unix(1, 0)
	}
	_ = c.SetReadDeadline(at)
	c.woken = isSet
}

// assignTo makes s the session that gets the server's answers. It returns false if the connection has ended meanwhile.
func (c *serverConn) assignTo(s *session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isDead {
		return false
	}
	s.outgoing.Add(1)
	c.session = s
	if !c.reading {
		c.reading = true
		go c.read()
	}
	return true
}

// release undoes assignTo. Only the goroutine that reads the answers calls it.
func (c *serverConn) release() {
	c.mu.Lock()
	s := c.session
	c.session = nil
	c.mu.Unlock()
	s.outgoing.Done()
}

// read reads the server's answers until the connection ends, and relays them to the client of the session that has the
// connection.
func (c *serverConn) read() {
	o := &answers{relay: relay{source: c.source}}
	defer func() { o.release() }()
	for {
		err := o.fill()
		c.mu.Lock()
		s := c.session
		woken := s == nil && errors.Is(err, os.ErrDeadlineExceeded)
		c.isDead = s == nil && !woken
		if woken { // the deadline was meant for the session that has returned the connection
			_ = c.SetReadDeadline(time.Time{})
		}
		c.mu.Unlock()
		switch {
		case woken:
		case s == nil:
			c.pool.removeEnded(c)
			return
		default:
			o.session, o.clientSink = s, s.toClient
			if !o.relayChunk(c, err) {
				c.release()
				return
			}
		}
	}
}
