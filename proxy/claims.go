package proxy

import (
	"maps"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// claims follows the settings that a policy maps to attributes, as PostgreSQL treats them: a SET ends with the
// transaction or the savepoint that is undone, a SET LOCAL with the transaction in any case. Enforcement needs them
// before a statement is sent, where the database cannot be asked what it will be under.
//
// Maps are replaced, never changed: what was handed out stays as it is.
type claims struct {
	began     map[string]string // by the startup message
	committed map[string]string
	now       map[string]string // in force
	kept      map[string]string // in force once the transaction commits
	saved     []savedClaims     // savepoints, oldest first
	pending   bool              // something was set in the transaction that is in progress
	failed    bool              // an error came in it
	lost      bool              // something was undone that is not known
	// a transaction has, since the last ReadyForQuery: what is set since then is of one that ends by itself
	ended bool
}

type savedClaims struct {
	name      string
	now, kept map[string]string
}

func (c *claims) begin(settings map[string]string) {
	c.began, c.committed, c.now, c.kept = settings, settings, settings, settings
}

func (c *claims) set(name string, claim *verdict.Claim) {
	value, there := claim.Value, true
	if claim.Reset {
		value, there = c.began[name]
	}
	with := func(m map[string]string) map[string]string {
		m = maps.Clone(m)
		if m == nil {
			m = map[string]string{}
		}
		m[name] = value
		if !there {
			delete(m, name)
		}
		return m
	}
	c.now = with(c.now)
	if !claim.Local {
		c.kept = with(c.kept)
	}
	c.pending = true
}

// reset is what RESET ALL and DISCARD ALL do.
func (c *claims) reset() {
	c.now, c.kept, c.pending, c.lost = c.began, c.began, true, false
}

// ends is the end of a transaction.
func (c *claims) ends(undone bool) {
	if !undone && !c.failed {
		c.committed = c.kept
	}
	c.now, c.kept, c.saved, c.pending, c.failed = c.committed, c.committed, nil, false, false
}

func (c *claims) savepoint(name string) { c.saved = append(c.saved, savedClaims{name, c.now, c.kept}) }

// find is the place of the newest savepoint of that name.
func (c *claims) find(name string) (int, bool) {
	for i := len(c.saved) - 1; i >= 0; i-- {
		if c.saved[i].name == name {
			return i, true
		}
	}
	c.lost = true
	return 0, false
}

func (c *claims) release(name string) {
	if i, ok := c.find(name); ok {
		c.saved = c.saved[:i]
	}
}

func (c *claims) rewind(name string) {
	c.failed = false
	if i, ok := c.find(name); ok {
		c.now, c.kept = c.saved[i].now, c.saved[i].kept
		c.saved = c.saved[:i+1]
	}
}

// apply takes the effect of a statement that has completed.
func (c *claims) apply(e verdict.Effect) {
	switch e.Kind {
	case verdict.ChangesGUC:
		if e.Claim != nil {
			c.set(e.Name, e.Claim)
		}
	case verdict.Unseals:
		c.reset()
	case verdict.Discards: // PostgreSQL commits it as it completes: no error behind it in a pipeline takes it back
		c.reset()
		c.ends(false)
		c.ended = true
	case verdict.EndsTx:
		c.ends(e.Undoes)
		c.ended = true
	case verdict.Saves:
		c.savepoint(e.Name)
	case verdict.Releases:
		c.release(e.Name)
	case verdict.Rewinds:
		c.rewind(e.Name)
	}
}

// unsettled tells whether e, which is not answered yet, may change what is claimed.
func (c *claims) unsettled(e *entry, inside bool) bool {
	if e == nil {
		return false
	}
	if c.pending && !inside && (e.kind == query || e.kind == syncs) {
		return true // it ends the transaction in which it was set, and undoes it where it fails, as what is refused does
	}
	if e.refusal != nil || e.verdict == nil || e.kind != query && e.kind != execute {
		return false
	}
	for _, effect := range e.verdict.Effects {
		switch effect.Kind {
		case verdict.ChangesGUC:
			if effect.Claim != nil {
				return true
			}
		case verdict.Unseals, verdict.Discards:
			return true
		case verdict.EndsTx, verdict.Saves, verdict.Releases, verdict.Rewinds:
			if c.pending {
				return true
			}
		}
	}
	return false
}

// claimed is what is claimed once everything sent and staged is done; false if that is not certain yet.
func (l *ledger) claimed(staged []item) (verdict.Claims, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	inside := l.status == 'T' && !l.claims.ended
	for _, e := range l.queue[l.first:] {
		if l.claims.unsettled(e, inside) {
			return verdict.Claims{}, false
		}
	}
	for _, i := range staged {
		if l.claims.unsettled(i.entry, inside) {
			return verdict.Claims{}, false
		}
	}
	return verdict.Claims{Known: !l.claims.lost, Values: l.claims.now}, true
}

// claims tells enforcement what the session claims. Where an answer decides it, it waits; in the middle of a group of
// messages, which the server may answer as late as it likes, nothing is known; nor of what a text runs by name that
// changes claims on its way.
func (s *session) claims() verdict.Claims {
	if s.astray {
		return verdict.Claims{}
	}
	c, ok := s.ledger.claimed(s.batch.items[s.batch.sent:])
	if ok {
		return c
	}
	if err := s.flush(); err != nil {
		return verdict.Claims{} // the next flush says so
	}
	s.ledger.quiet()
	c, _ = s.ledger.claimed(nil)
	return c
}
