package proxy

import (
	"maps"
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// claims tracks the values of the settings that a policy maps to attributes of the session. It follows PostgreSQL's
// rules: a rollback, also to a savepoint, undoes SET, and every end of the transaction undoes SET LOCAL. Enforcement
// needs the values before a statement is sent, when the proxy cannot yet ask the database for them.
//
// A map is never modified but replaced by a new one, so callers may keep the maps that they got.
type claims struct {
	initial    map[string]string // the claims of the startup message
	committed  map[string]string
	current    map[string]string
	onCommit   map[string]string // claims that apply once the transaction commits
	savepoints []savedClaims     // the claims at each savepoint, oldest first
	pending    bool              // the current transaction has changed a claim
	failed     bool              // the current transaction has failed
	unknown    bool              // the client has released or rolled back to a savepoint that the proxy does not know
	// A transaction has ended since the last ReadyForQuery. A setting that a later message changes belongs to an implicit
	// transaction.
	ended bool
}

type savedClaims struct {
	name              string
	current, onCommit map[string]string
}

// begin sets the claims to the settings of the startup message.
func (c *claims) begin(settings map[string]string) {
	c.initial, c.committed, c.current, c.onCommit = settings, settings, settings, settings
}

func (c *claims) setValue(name string, claim *verdict.Claim) {
	value, exists := claim.Value, true
	if claim.IsReset {
		value, exists = c.initial[name]
	}
	with := func(m map[string]string) map[string]string {
		m = maps.Clone(m)
		if m == nil {
			m = map[string]string{}
		}
		m[name] = value
		if !exists {
			delete(m, name)
		}
		return m
	}
	c.current = with(c.current)
	if !claim.IsLocal {
		c.onCommit = with(c.onCommit)
	}
	c.pending = true
}

// reset applies the effect of RESET ALL and DISCARD ALL on the claims.
func (c *claims) reset() {
	c.current, c.onCommit, c.pending, c.unknown = c.initial, c.initial, true, false
}

// endTx applies a COMMIT, or a ROLLBACK if undone is true. A COMMIT after an error also rolls back.
func (c *claims) endTx(undone bool) {
	if !undone && !c.failed {
		c.committed = c.onCommit
	}
	c.current, c.onCommit, c.savepoints, c.pending, c.failed = c.committed, c.committed, nil, false, false
}

// savepoint remembers the claims at a SAVEPOINT.
func (c *claims) savepoint(name string) {
	c.savepoints = append(c.savepoints, savedClaims{name, c.current, c.onCommit})
}

// findSavepoint returns the index of the newest savepoint with this name. If there is none, the claims are unknown from
// then on.
func (c *claims) findSavepoint(name string) (int, bool) {
	for i := len(c.savepoints) - 1; i >= 0; i-- {
		if c.savepoints[i].name == name {
			return i, true
		}
	}
	c.unknown = true
	return 0, false
}

// release forgets a savepoint and those after it, as RELEASE SAVEPOINT does.
func (c *claims) release(savepoint string) {
	if i, ok := c.findSavepoint(savepoint); ok {
		c.savepoints = c.savepoints[:i]
	}
}

// rollbackTo restores the claims that were noted at a savepoint, as ROLLBACK TO SAVEPOINT does.
func (c *claims) rollbackTo(savepoint string) {
	c.failed = false
	if i, ok := c.findSavepoint(savepoint); ok {
		c.current, c.onCommit = c.savepoints[i].current, c.savepoints[i].onCommit
		c.savepoints = c.savepoints[:i+1]
	}
}

// apply applies the effect on claims of a statement that has completed.
func (c *claims) apply(e verdict.Effect) {
	switch e.Kind {
	case verdict.EffectSet, verdict.EffectNone:
		if e.Claim != nil {
			c.setValue(e.Name, e.Claim)
		}
	case verdict.EffectResetAll:
		c.reset()
	// PostgreSQL commits DISCARD ALL at once, so no later error in a pipeline undoes it.
	case verdict.EffectDiscard:
		c.reset()
		c.endTx(false)
		c.ended = true
	case verdict.EffectEnd:
		c.endTx(e.IsRollback)
		c.ended = true
	case verdict.EffectSavepoint:
		c.savepoint(e.Name)
	case verdict.EffectRelease:
		c.release(e.Name)
	case verdict.EffectRollbackTo:
		c.rollbackTo(e.Name)
	}
}

// mayChange reports whether e, which the server has not answered yet, may change the claims. inTx says that an explicit
// transaction block is open.
func (c *claims) mayChange(e entry, inTx bool) bool {
	if e == nil {
		return false
	}
	if c.pending && !inTx && e.endsWithReady() {
		// The entry ends the implicit transaction in which the claims were set. If the entry fails or is refused, the claims
		// are undone.
		return true
	}
	x := e.asExecution()
	if x == nil || x.refusal != nil || x.verdict == nil {
		return false
	}
	for _, effect := range x.verdict.Effects {
		switch effect.Kind {
		case verdict.EffectSet, verdict.EffectNone:
			if effect.Claim != nil {
				return true
			}
		case verdict.EffectResetAll, verdict.EffectDiscard:
			return true
		case verdict.EffectEnd, verdict.EffectSavepoint, verdict.EffectRelease, verdict.EffectRollbackTo:
			if c.pending {
				return true
			}
		}
	}
	return false
}

// claimsAfterAll returns the claims after all messages in flight and the staged ones have run. It returns false if the
// outcome of these messages decides the claims.
func (l *ledger) claimsAfterAll(staged []item) (verdict.Claims, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	inTx := l.status == 'T' && !l.claims.ended
	entries := slices.Clone(l.queue.waiting())
	for _, i := range staged {
		entries = append(entries, i.entry)
	}
	if !slices.ContainsFunc(entries, func(e entry) bool { return l.claims.mayChange(e, inTx) }) {
		return verdict.Claims{Known: !l.claims.unknown, Values: l.claims.current}, true
	}
	return verdict.Claims{Expected: l.claims.valuesAfter(entries, inTx)}, false
}

// valuesAfter returns the claims after these entries, provided that none fails, or nil if they are uncertain even then.
// If an entry fails, the server skips the rest of its group (messages up to a Sync) but runs later groups.
func (c claims) valuesAfter(entries []entry, inTx bool) map[string]string {
	for _, e := range entries {
		if c.pending && e != nil && e.endsWithReady() || c.mayChange(e, inTx) && e.endsWithReady() {
			return nil
		}
		if !c.mayChange(e, inTx) {
			continue
		}
		for _, effect := range e.asExecution().verdict.Effects {
			c.apply(effect)
		}
	}
	if c.unknown {
		return nil
	}
	return c.current
}

// claims returns the session's claims, for enforcement. If an answer of the server decides the claims, claims waits for
// it. In the middle of a group of messages it cannot wait, since the server need not answer before a Sync; the claims
// are then unknown. They are also unknown for a statement that a text runs by name after the text may have changed
// claims.
func (r *requests) claims() verdict.Claims {
	if r.claimsUnknown {
		return verdict.Claims{}
	}
	c, ok := r.ledger.claimsAfterAll(r.batch.unsent())
	if ok {
		return c
	}
	if err := r.flush(); err != nil {
		return verdict.Claims{} // The session's next flush reports the same error.
	}
	r.ledger.waitOutsideTx()
	c, _ = r.ledger.claimsAfterAll(nil)
	return c
}
