package proxy

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// A session of a pool takes a connection when the client sends a message. It returns the connection when the server is
// idle outside a transaction and the client has sent nothing more. The state that a session has on the server process
// either moves with the session or is removed:
//
//   - The identity (seal). A connection keeps its seal if the next session has the same attributes. Otherwise the proxy
//     drops the plans that contain the seal, and sets a new one before it sends anything else.
//   - Settings. After a statement that may have changed settings, the proxy reads their values before it returns the
//     connection. For another session it sends RESET ALL and sets that session's values. It does not read them as the
//     client leaves: the next session begins with RESET ALL in any case.
//   - Prepared statements. The proxy remembers the client's statements, and prepares them on a connection that does not
//     have them.
//   - Sequence values (lastval, currval) and whatever triggers and functions of the owner may leave. After a statement
//     that writes rows or calls such functions, the proxy runs RESET ALL, DISCARD SEQUENCES and pg_advisory_unlock_all
//     before another session uses the connection.
//
// A session keeps its connection to its end once the server process holds state that cannot move. Examples are LISTEN,
// statements made by PREPARE, advisory locks, and the seed of random(). The proxy then closes the connection with the
// session. A session also keeps its connection while a cursor WITH HOLD is open.

// poolSession is the state of a pooled session that moves from connection to connection. Only the goroutine that has
// the turn uses it (see [retryState]).
type poolSession struct {
	server          string            // the start time of the server with which the session began
	connections     uint64            // how many connections the session has had so far
	settings        map[string]string // settings whose values differ from those at the start
	settingsTouched bool              // the client may have changed settings since the proxy read them
	namedSettings   map[string]bool   // names of settings that the client's statements may have changed
	returned        chan struct{}     // receives a value each time that the session has returned its connection
}

// pooled reports whether the session shares connections to the server.
func (s *session) pooled() bool { return s.connector != nil && s.connector.pool != nil }

// takeConnection takes a connection from the pool if the session has none.
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

// identify prepares a connection for this session: it sets the session's identity and settings, and removes what
// another session has left.
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
		if differs { // The cached statements were prepared under other settings.
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

// resetName is the server's name of the proxy's statements that remove what another session has left.
const resetName = verdict.SealStatement + "_reset"

// setIdentity sends the messages that the argument before has. It then sets a new seal (signed identity), unless the
// connection's seal has the same identity and remains. resets says that the messages remove the connection's seal.
func (r *requests) setIdentity(c *serverConn, before proxyMessages, resets bool) error {
	adopter, ok := r.decider.(verdict.SealSharer)
	adopts := ok && c.seal.isSet() && adopter.CanShareSeal(c.seal.Seal)
	switch {
	case adopts && !resets:
		r.seal = c.seal
		r.ledger.noteSeal(c.seal.Seal)
		return r.sendBefore(before)
	case c.seal.isSet() && !adopts:
		before.addStatement(dropPlansName, dropPlansText)
	}
	r.seal = sealState{}
	return r.setSealBehind(before)
}

// sendBefore sends messages of the proxy, if there are any, and waits for the server's answer.
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

// giveBack returns the connection to the pool, if the session no longer needs it. Only the goroutine that reads the
// answers calls it.
func (a *answers) giveBack(c *serverConn) {
	if !a.needsNoConnection() {
		return
	}
	select {
	case <-a.retry.turn:
	default:
		return // the goroutine that has the turn wakes this one later: see [requests.leaveTurn]
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
	go func() { // A late cancel request would hit the next session's statement.
		c.runningCancels.Wait()
		c.pool.put(c)
	}()
}

// maxReturn is how long a session that ends waits until its connection is back in the pool.
const maxReturn = time.Second

// unknownSettings are the settings of a connection whose last session may have changed some. They are no session's, so
// that the next one begins with RESET ALL.
var unknownSettings = map[string]string{"": ""}

// returnAtEnd returns the connection to the pool as the client leaves, if the session no longer needs it. Otherwise the
// connection ends with the session. The caller has the turn.
func (r *requests) returnAtEnd() {
	if !r.pooled() || !r.hasConnection() || !r.ledger.needsNoConnection() {
		return
	}
	if r.pooling.settingsTouched {
		r.pooling.settingsTouched, r.connection.settings = false, unknownSettings
	}
	select {
	case <-r.pooling.returned: // The session had returned an earlier connection.
	default:
	}
	r.leaveTurn()
	select {
	case <-r.pooling.returned:
	case <-time.After(maxReturn):
	case <-r.ctx.Done():
	}
	r.retry.takeTurn()
}

// outlives reports whether the session goes on although its connection has ended: it no longer needed the connection.
// Only the goroutine that reads the answers calls it.
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

// needsNoConnection reports whether a pooled session no longer needs its connection, as far as the goroutine that reads
// the answers can tell.
func (a *answers) needsNoConnection() bool {
	return a.pooled() && a.tail.remaining == 0 && a.unreadStart == a.unreadEnd && !a.retriedAnswer.answerIsRetried &&
		a.ledger.needsNoConnection()
}

// detach separates the connection from the session, and returns false if the session has ended. The caller has the turn
// (see [retryState]).
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
	select {
	case a.requests.pooling.returned <- struct{}{}:
	default: // Only a session that ends waits for it.
	}
	return true
}

// wasOnlyWoken reports whether a read failed only because [requests.leaveTurn] woke the goroutine that reads the
// answers. It then makes further reads possible.
func (a *answers) wasOnlyWoken() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended || !a.pooled() {
		return false
	}
	a.connection.wake(false)
	return true
}

// leaveTurn gives up the turn (see [retryState]). If the session no longer needs its connection, leaveTurn wakes the
// goroutine that reads the answers, which returns the connection to the pool.
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

// needsNoConnection reports whether the session is idle and has no state that needs its connection.
func (l *ledger) needsNoConnection() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isIdle() && !l.closed && !l.keepsConnection && l.portals.len() == 0 && l.pendingPortals.len() == 0 &&
		len(l.channels) == 0
}

// keepConnection makes the session keep its connection to its end.
func (l *ledger) keepConnection() {
	l.mu.Lock()
	l.keepsConnection = true
	l.mu.Unlock()
}

// setCache sets the cache of statements that are prepared on the session's connection.
func (l *ledger) setCache(c *statementCache) {
	l.mu.Lock()
	l.cache = c
	l.mu.Unlock()
}

// otherServerError ends a session whose server was restarted or replaced by another one.
func otherServerError() *sqlstate.Error {
	return sqlstate.New(sqlstate.AdminShutdown, sqlstate.ReasonUpstream,
		"the database server is another one than before, or was started anew").WithHint("Connect again.")
}

// noteSetting notes that the client may have changed this setting, or any setting if name is "".
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

// noteLeftovers notes which state a text that is about to run may leave on a pooled connection. runs are the verdicts
// on the statements that the text runs by name.
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
