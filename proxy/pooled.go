package proxy

import (
	"errors"
	"maps"
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// A session of a pool takes a connection when the client sends a message. It gives it back when the server is idle
// outside a transaction and the client has sent no more. The state of a session on a server process goes with the
// session or is removed:
//
//   - The identity. A connection keeps its seal where the next session has the same attributes; otherwise plans that hold
//     it are dropped, and a new one is set before anything else is sent.
//   - Settings. After a statement that may have changed some, the proxy reads their values before it gives the connection
//     back. Another session gets RESET ALL and its own values.
//   - Prepared statements. The proxy has the client's; on the server they are in the cache of statements of a connection,
//     and are prepared where they are missing.
//   - Numbers of sequences, which lastval and currval tell, and what triggers and functions of the owner may have left:
//     after a statement that writes or calls such functions another session gets RESET ALL, DISCARD SEQUENCES and
//     pg_advisory_unlock_all.
//
// A session keeps its connection to its end once the server process holds state of it that cannot move. Examples are
// notifications that it listens to, statements of PREPARE, advisory locks, and the seed of random(). It keeps it as
// well while a cursor WITH HOLD is open. Such a connection is closed with the session.

// poolSession is what a session of a pool keeps of its own. It belongs to the goroutine that has the turn.
type poolSession struct {
	server          string            // when the server of the session was started
	connections     uint64            // how many connections the session has had so far
	settings        map[string]string // settings that are not those of the startup message
	settingsTouched bool              // the client may have changed settings since they were read
	namedSettings   map[string]bool   // the settings that statements of the client have named to change them
}

// pooled tells whether the session shares connections.
func (s *session) pooled() bool { return s.connector != nil && s.connector.pool != nil }

// takeConnection sees to it that the session has a connection.
func (r *requests) takeConnection() error {
	if !r.pooled() || r.hasConnection() {
		return nil
	}
	for {
		c, err := r.connector.take(r.ctx)
		if err != nil {
			return err
		}
		if c.serverStarted != r.pooling.server {
			r.connector.giveUp(c)
			return otherServerError()
		}
		switch err := r.attach(c); err {
		case nil:
			return r.identify(c)
		case errConnectionEnded: // the connection ended while no session had it
		default:
			return err
		}
	}
}

func (s *session) hasConnection() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connection != nil
}

// identify makes a connection the session's own: with its identity and its settings, and nothing of another session.
func (r *requests) identify(c *serverConn) error {
	r.pooling.connections++
	before := proxyMessages{}
	for _, name := range c.namesToClose {
		before.closeStatement(name)
	}
	cleans := c.lastSession != r.id && c.needsReset
	differs := !maps.Equal(c.settings, r.pooling.settings)
	resets := cleans || differs
	if resets {
		before.addStatement(resetName, "RESET ALL")
		for _, name := range slices.Sorted(maps.Keys(r.pooling.settings)) {
			before.addSetting(name, r.pooling.settings[name])
		}
		if differs { // A text may mean something else with other settings.
			r.ledger.dropAllCached()
		}
	}
	if cleans {
		before.addStatement(resetName, "DISCARD SEQUENCES")
		before.addStatement(resetName, "SELECT pg_catalog.pg_advisory_unlock_all()")
	}
	if err := r.setIdentity(c, before, resets); err != nil {
		return err
	}
	c.lastSession, c.settings, c.needsReset, c.namesToClose = r.id, r.pooling.settings, c.needsReset && !cleans, nil
	return nil
}

// resetName is the name of statements that take away what another session has left.
const resetName = verdict.SealStatement + "_reset"

// setIdentity sends messages of the proxy, and a seal after them unless the connection has one for the same identity.
// resets: the messages take the seal away.
func (r *requests) setIdentity(c *serverConn, before proxyMessages, resets bool) error {
	adopter, ok := r.decider.(verdict.SealSharer)
	adopts := ok && c.seal.Value != "" && adopter.CanShareSeal(c.seal.Seal)
	switch {
	case adopts && !resets:
		r.seal = c.seal
		r.ledger.noteSeal(c.seal.Seal)
		return r.sendBefore(before)
	case c.seal.Value != "" && !adopts:
		before.addStatement(dropPlansName, dropPlansText)
	}
	r.seal = sealState{}
	return r.setSealBehind(before)
}

// sendBefore sends messages of the proxy, if there are any, and waits for the answer.
func (r *requests) sendBefore(m proxyMessages) error {
	for attempt := 1; m.hasMessages(); attempt++ {
		code, err := r.sendProxyMessages(m.entries(), m.bytes)
		switch {
		case err != nil:
			return err
		case code == "":
			return nil
		case code != queryCanceled || attempt == sealAttempts:
			return connectionLostError(errors.New("the server answered " + string(code) + " as a connection passed to another session"))
		}
	}
	return nil
}

// giveBack gives the connection back, if the session needs it no more. It belongs to the goroutine that reads the
// answers.
func (a *answers) giveBack(c *serverConn) {
	if !a.needsNoConnection() {
		return
	}
	select {
	case <-a.retry.turn:
	default:
		return // the goroutine that has the turn offers the connection when it gives the turn up: see [requests.leaveTurn]
	}
	if !a.ledger.needsNoConnection() {
		a.retry.leaveTurn()
		return
	}
	if a.requests.pooling.settingsTouched {
		a.outgoing.Go(a.requests.readSettings)
		return
	}
	defer a.retry.leaveTurn()
	if !a.detach(c) {
		return
	}
	if c.canceling.Load() == 0 {
		c.pool.put(c)
		return
	}
	go func() { // A request that comes late would cancel what the next session runs.
		c.runningCancels.Wait()
		c.pool.put(c)
	}()
}

// outlives tells whether the session goes on without a connection that has ended: all is answered, and it was about to
// be given back. It belongs to the goroutine that reads the answers.
func (a *answers) outlives(c *serverConn) bool {
	if !a.needsNoConnection() || !a.retry.tryTakeTurn() {
		return false
	}
	defer a.retry.leaveTurn()
	if !a.ledger.needsNoConnection() || a.requests.pooling.settingsTouched || !a.detach(c) {
		return false
	}
	a.connector.giveUp(c)
	return true
}

// needsNoConnection tells whether the session of a pool needs its connection no more, as far as the goroutine knows that
// reads the answers.
func (a *answers) needsNoConnection() bool {
	return a.pooled() && a.tail.remaining == 0 && a.unreadStart == a.unreadEnd && !a.retriedAnswer.answerIsRetried &&
		a.ledger.needsNoConnection()
}

// detach takes the connection away from the session, unless the session has ended. The caller has the turn.
func (a *answers) detach(c *serverConn) bool {
	c.seal = a.requests.seal
	a.mu.Lock()
	if a.ended {
		a.mu.Unlock()
		return false
	}
	if c.woken {
		c.wake(false)
	}
	a.connection, a.upstream = nil, nil
	a.mu.Unlock()
	c.release()
	return true
}

// wasOnlyWoken tells whether the goroutine that reads the answers was only woken. Then it waits for more.
func (a *answers) wasOnlyWoken() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended || !a.pooled() {
		return false
	}
	a.connection.wake(false)
	return true
}

// leaveTurn gives the turn up. Where the connection could be given back meanwhile, the goroutine that reads the answers
// is woken to do so.
func (r *requests) leaveTurn() {
	if len(r.batch.items) > 0 { // The batch has messages that the server has not got yet.
		r.ledger.setStaging(true)
	}
	r.retry.leaveTurn()
	if !r.pooled() || !r.ledger.needsNoConnection() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.connection != nil && !r.ended {
		r.connection.wake(true)
	}
}

// needsNoConnection tells whether the session needs its connection no more.
func (l *ledger) needsNoConnection() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isIdle() && !l.closed && !l.keepsConnection && len(l.portals) == 0 && len(l.pendingPortals) == 0 &&
		len(l.channels) == 0
}

// keepConnection notes that the session needs its connection to its end.
func (l *ledger) keepConnection() {
	l.mu.Lock()
	l.keepsConnection = true
	l.mu.Unlock()
}

// setCache gives the session the statements that are kept prepared on the connection it has.
func (l *ledger) setCache(c *statementCache) {
	l.mu.Lock()
	l.cache = c
	l.mu.Unlock()
}

// otherServerError ends a session whose server is not there any more, in the words of package enforce.
func otherServerError() *sqlstate.Error {
	return sqlstate.New(sqlstate.AdminShutdown, sqlstate.ReasonUpstream,
		"the database server is another one than before, or was started anew").WithHint("Connect again.")
}

// noteSetting notes that a setting may have changed; "": any.
func (p *poolSession) noteSetting(name string) {
	p.settingsTouched = true
	if name == "" {
		return
	}
	if p.namedSettings == nil {
		p.namedSettings = map[string]bool{}
	}
	p.namedSettings[name] = true
}

// noteLeftovers notes what a text that is about to run, and the statements that it runs by name, leave on the connection
// of a pool.
func (r *requests) noteLeftovers(v *verdict.Verdict, runs []*verdict.Verdict) {
	if !r.pooled() {
		return
	}
	for _, executed := range append(runs[:len(runs):len(runs)], v) {
		for _, e := range executed.Effects {
			switch e.Kind {
			case verdict.EffectSet, verdict.EffectResetAll, verdict.EffectDiscard:
				r.pooling.noteSetting(e.Name)
			case verdict.EffectPrepare:
				r.ledger.keepConnection()
			}
			if e.Claim != nil {
				r.pooling.noteSetting(e.Name)
			}
			r.connection.needsReset = r.connection.needsReset || e.WritesRows || e.Kind == verdict.EffectCopyIn
		}
		r.pooling.settingsTouched = r.pooling.settingsTouched || executed.CallsSetConfig
		r.connection.needsReset = r.connection.needsReset || executed.MayLeaveState
		if executed.KeepsSessionState {
			r.ledger.keepConnection()
		}
	}
}
