package proxy

import (
	"maps"
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// claims follows the settings that a policy maps to attributes, as PostgreSQL treats them. A SET ends with the
// transaction or the savepoint that is undone, a SET LOCAL with the transaction in any case. Enforcement needs their
// values before a statement is sent, when the database cannot be asked for the values that will apply to it.
//
// Maps are replaced, never changed: one that was handed out stays as it is.
type claims struct {
	initial    map[string]string // the claims of the startup message
	committed  map[string]string
	current    map[string]string
	onCommit   map[string]string // claims that apply once the transaction commits
	savepoints []savedClaims     // the claims at each savepoint, oldest first
	pending    bool              // a setting was changed in the transaction that is in progress
	failed     bool              // an error has occurred in the transaction
	unknown    bool              // a savepoint was undone that the proxy does not know
	// A transaction has ended since the last ReadyForQuery: a setting that is changed since then is part of one that ends
	// by itself.
	ended bool
}

type savedClaims struct {
	name              string
	current, onCommit map[string]string
}

// begin notes the claims of the startup message.
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

// reset applies RESET ALL and DISCARD ALL.
func (c *claims) reset() {
	c.current, c.onCommit, c.pending, c.unknown = c.initial, c.initial, true, false
}

// endTx applies the end of a transaction.
func (c *claims) endTx(undone bool) {
	if !undone && !c.failed {
		c.committed = c.onCommit
	}
	c.current, c.onCommit, c.savepoints, c.pending, c.failed = c.committed, c.committed, nil, false, false
}

// savepoint applies SAVEPOINT.
func (c *claims) savepoint(name string) {
	c.savepoints = append(c.savepoints, savedClaims{name, c.current, c.onCommit})
}

// findSavepoint returns the place of the newest savepoint with this name.
func (c *claims) findSavepoint(name string) (int, bool) {
	for i := len(c.savepoints) - 1; i >= 0; i-- {
		if c.savepoints[i].name == name {
			return i, true
		}
	}
	c.unknown = true
	return 0, false
}

// release applies RELEASE SAVEPOINT.
func (c *claims) release(savepoint string) {
	if i, ok := c.findSavepoint(savepoint); ok {
		c.savepoints = c.savepoints[:i]
	}
}

// rollbackTo applies ROLLBACK TO SAVEPOINT.
func (c *claims) rollbackTo(savepoint string) {
	c.failed = false
	if i, ok := c.findSavepoint(savepoint); ok {
		c.current, c.onCommit = c.savepoints[i].current, c.savepoints[i].onCommit
		c.savepoints = c.savepoints[:i+1]
	}
}

// apply takes the effect of a statement that has completed.
func (c *claims) apply(e verdict.Effect) {
	switch e.Kind {
	case verdict.EffectSet, verdict.EffectNone:
		if e.Claim != nil {
			c.setValue(e.Name, e.Claim)
		}
	case verdict.EffectResetAll:
		c.reset()
	// PostgreSQL commits DISCARD ALL as it completes: no error behind it in a pipeline undoes it.
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

// mayChange reports whether e, which is not answered yet, may change claims.
func (c *claims) mayChange(e entry, inTx bool) bool {
	if e == nil {
		return false
	}
	if c.pending && !inTx && e.endsWithReady() {
		// The entry ends the transaction in which the claims were set, and undoes them if it fails, as a refused message
		// does.
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

// claimsAfterAll returns the claims after everything that is sent or staged has run; false if the claims are not
// certain yet.
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

// valuesAfter returns the claims after these entries, if none fails; nil if they are not certain even then. An entry
// that fails takes with it what the client sends in the same group, and not what it sends behind that.
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

// claims returns the claims of the session, for enforcement. If an answer of the server decides the claims,
// claims waits for it. In the middle of a group of messages the claims are not known, since the server may answer as
// late as it likes. For a statement that a text runs by name they are not known if the text changes claims before it.
func (r *requests) claims() verdict.Claims {
	if r.claimsUnknown {
		return verdict.Claims{}
	}
	c, ok := r.ledger.claimsAfterAll(r.batch.unsent())
	if ok {
		return c
	}
	if err := r.flush(); err != nil {
		return verdict.Claims{} // The next flush returns the error as well.
	}
	r.ledger.waitOutsideTx()
	c, _ = r.ledger.claimsAfterAll(nil)
	return c
}
