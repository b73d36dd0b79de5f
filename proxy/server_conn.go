package proxy

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// serverConn is a connection to the server that is logged in as the agent role. One session uses it at a time: to its
// end, or for a transaction if it belongs to a pool.
type serverConn struct {
	net.Conn
	pid           uint32
	key           []byte            // the server's cancel key, with the process id in front
	parameters    map[string]string // the settings that the server reported at the login
	serverStarted string            // when the server was started, by its own clock

	source source
	sink   sink
	cache  statementCache

	// State that the last session left on the connection; guarded by the turn of the session that has it.
	lastSession  string            // id of that session
	seal         sealState         // the seal that the server has; its value is empty before the first
	settings     map[string]string // settings that are not those which the connection began with
	needsReset   bool              // there may be further state: sequence values, settings, locks
	namesToClose []string          // the server's names of statements that are to be closed

	startupSettings string            // the startup settings, as [startupKey] writes them
	initial         map[string]string // the values of settings with which the connection began
	idleSince       time.Time         // since when no session has the connection

	mu      sync.Mutex
	session *session // the session that answers belong to; nil: none has the connection
	reading bool     // a goroutine reads from it
	isDead  bool     // the connection was closed, or the server sent a message, while no session had it
	pool    *pool    // nil: it belongs to one session

	woken          bool         // the reading goroutine was woken; guarded by the lock of its session's conn
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

// wake has the goroutine that reads the answers return from reading with [os.ErrDeadlineExceeded], or lets it read
// again.
func (c *serverConn) wake(isSet bool) {
	var at time.Time
	if isSet {
		at = time.Unix(1, 0)
	}
	_ = c.SetReadDeadline(at)
	c.woken = isSet
}

// assignTo gives a session the answers that come from now on. It returns false if the connection has ended meanwhile.
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

// release ends what assignTo has begun. It belongs to the goroutine that reads.
func (c *serverConn) release() {
	c.mu.Lock()
	s := c.session
	c.session = nil
	c.mu.Unlock()
	s.outgoing.Done()
}

// read reads the server's answers for as long as the connection lives, and relays them to the client of the session
// that has it.
func (c *serverConn) read() {
	o := &answers{relay: relay{source: c.source}}
	defer func() { o.release() }()
	for {
		err := o.fill()
		c.mu.Lock()
		s := c.session
		woken := s == nil && errors.Is(err, os.ErrDeadlineExceeded)
		c.isDead = s == nil && !woken
		if woken { // for the session that has given it back; the next one sets a deadline of its own only once it holds
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
