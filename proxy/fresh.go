package proxy

import (
	"sync"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// What sees one snapshot for longer than a statement (a transaction of REPEATABLE READ or SERIALIZABLE, a cursor, a
// portal that is not run to its end at once) could go on showing what was withdrawn since. The moment before its first
// message goes upstream is noted, and before each later use it is asked whether anything changed since; then the use is
// refused.
//
// Which transaction is which kind is not followed exactly but from the safe side: a session that has asked for such a
// transaction counts as being in one until the server is known to be outside any.

// since is such a moment.
type since struct {
	fill  uint64 // the part of the client's input that asked for it; what was sent with it, or before, needs no asking
	known bool   // it was taken
	verdict.Snapshot
}

// use is a later use of what was seen since a moment.
type use struct {
	*since
	portal bool
}

// moment is the one that the messages of this batch begin to see from. It is taken before the batch is sent.
func (s *session) moment() *since {
	if s.batch.moment == nil || s.batch.moment.fill != s.fill {
		s.batch.moment = &since{fill: s.fill}
	}
	return s.batch.moment
}

// keeping begins a message: it forgets a transaction that is over.
func (s *session) keeping() {
	if s.keeps && len(s.batch.items) == 0 && s.ledger.rested() {
		s.keeps, s.tx = s.ledger.keepsAll(), nil
	}
}

// keeper notes that a text which is about to run makes transactions keep their snapshots.
func (s *session) keeper(v *verdict.Verdict) {
	for _, e := range v.Effects {
		switch e.SnapshotHold {
		case verdict.TransactionHoldsSnapshot:
			s.keeps = true
		case verdict.SessionHoldsSnapshot:
			s.keeps = true
			s.ledger.keepAll()
		}
	}
}

// sees notes that e needs a snapshot, and, if it shows something, has its age asked for.
func (s *session) sees(e *entry, shows bool) {
	v := e.verdict
	if !s.keeps || v == nil || only(v, verdict.BeginsTx, verdict.EndsTx, verdict.ChangesGUC) {
		return
	}
	if s.tx == nil {
		s.tx = s.moment()
		e.takes = s.tx
		return
	}
	if shows && !only(v, verdict.BeginsTx, verdict.EndsTx, verdict.ChangesGUC, verdict.Deallocates, verdict.Closes) {
		s.uses(e, s.tx, false)
	}
}

// uses has the age of a moment asked for before e is sent.
func (s *session) uses(e *entry, m *since, portal bool) {
	if m.fill == s.fill {
		return
	}
	e.uses = append(e.uses, use{m, portal})
}

// only tells whether a text does nothing but these things.
func only(v *verdict.Verdict, kinds ...verdict.EffectKind) bool {
	for _, e := range v.Effects {
		found := false
		for _, k := range kinds {
			found = found || e.Kind == k
		}
		if !found {
			return false
		}
	}
	return true
}

// together ends what counts as sent together: a Query, or messages up to a Sync or a Flush. What comes next may start
// long after.
func (s *session) together() {
	for i := len(s.batch.items) - 1; i >= s.batch.sent; i-- {
		e := s.batch.items[i].entry
		if e == nil {
			continue
		}
		if e.portal != nil {
			if e.portal.fill != s.fill {
				break
			}
			if e.refusal == nil {
				s.open(e, e.portal)
			}
		}
	}
	s.fill++
}

// aged is where the first part of the batch ends that is to be answered before what comes next is asked about, or end.
func (b *batch) aged(end int) int {
	boundary := end
	for i := b.sent; i < end; i++ {
		e := b.items[i].entry
		switch {
		case e == nil:
		case (len(e.uses) > 0 || e.unguarded() != nil) && e.refusal == nil && boundary < end:
			return boundary
		case e.kind == query || e.kind == syncs:
			boundary = i + 1
		}
	}
	return end
}

// open has the moment of a portal taken, which the same batch does not run to its end.
func (s *session) open(e *entry, p *portal) {
	if p.since != nil || p.run != nil || only(p.verdict, verdict.BeginsTx, verdict.EndsTx, verdict.ChangesGUC) {
		return
	}
	if s.tx != nil {
		p.since = s.tx
		return
	}
	p.since = s.moment()
	e.takes = p.since
}

// resumed has the age of a portal asked for before e runs it.
func (s *session) resumed(e *entry, p *portal) {
	switch {
	case p.since != nil:
		s.uses(e, p.since, true)
	case p.fill == s.fill || s.ledger.ran(p.run) || only(p.verdict, verdict.BeginsTx, verdict.EndsTx, verdict.ChangesGUC):
	default:
		s.uses(e, &since{}, true) // nobody knows since when
	}
}

// freshen takes the moment of what is sent next, up to end, and asks for the age of the others. What may not run is
// replaced by its refused form.
func (s *session) freshen(end int) {
	b := &s.batch
	asked := false
	for i := b.sent; i < end; i++ {
		e := b.items[i].entry
		if e == nil || e.refusal != nil {
			continue
		}
		if e.portal != nil {
			s.open(e, e.portal)
		}
		asked = asked || e.takes != nil || len(e.uses) > 0 || e.unguarded() != nil
	}
	if !asked {
		return
	}
	// What was sent before may run for long, and these only after it.
	s.ledger.quiet()
	refused := false
	answers := map[use]*sqlstate.Error{}
	// of one moment: what waits in a portal may be too old where the rest is not
	ask := func(u use, f func() *sqlstate.Error) *sqlstate.Error {
		err, ok := answers[u]
		if !ok {
			err = f()
			answers[u] = err
		}
		return err
	}
	unchanged := map[verdict.Versions]func() *sqlstate.Error{}
	for i := b.sent; i < end; i++ {
		e := b.items[i].entry
		if e == nil || e.refusal != nil {
			continue
		}
		if v := e.unguarded(); v != nil {
			if unchanged[v.Versions] == nil {
				unchanged[v.Versions] = sync.OnceValue(func() *sqlstate.Error { return s.decider.Unchanged(s.ctx, v) })
			}
			if err := unchanged[v.Versions](); err != nil {
				e.replace(s.denied(err))
				e.refusal.again = err.Code == sqlstate.SerializationFailure
				refused = true
				continue
			}
		}
		err := e.unnoticed()
		if m := e.takes; m != nil && !m.known {
			refused := ask(use{since: m}, func() *sqlstate.Error {
				snapshot, err := s.decider.Snapshot(s.ctx)
				m.Snapshot, m.known = snapshot, err == nil
				return err
			})
			if err == nil {
				err = refused
			}
		}
		for _, u := range e.uses {
			if err != nil {
				break
			}
			if !u.known {
				err = unknownAge()
				break
			}
			err = ask(u, func() *sqlstate.Error { return s.decider.Fresh(s.ctx, u.Snapshot, u.portal) })
		}
		if err != nil {
			e.replace(s.denied(err))
			refused = true
		}
	}
	if refused {
		b.replace()
	}
}

// unguarded is what e runs, or plans, that calls functions which may not be those any more that were checked; nil:
// there is nothing.
func (e *entry) unguarded() *verdict.Verdict {
	if e.kind != query && e.kind != bind && e.kind != execute {
		return nil
	}
	if e.verdict != nil && e.verdict.Unguarded {
		return e.verdict
	}
	for _, v := range e.runs {
		if v.Unguarded {
			return v
		}
	}
	return nil
}

// unnoticed is the refusal of what would show, for longer than its statement, something of whose changes nobody tells.
func (e *entry) unnoticed() *sqlstate.Error {
	if e.takes == nil && len(e.uses) == 0 {
		return nil
	}
	list := append([]*verdict.Verdict{e.verdict}, e.runs...)
	if e.portal != nil {
		list = append(list, e.portal.verdict)
	}
	for _, v := range list {
		if v != nil && v.UntrackedRelation != "" {
			return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonTransaction,
				"cursors, row limits and transactions that keep a snapshot are not available to agents for what this statement reads").
				WithHint("Changes of what %s shows cannot be noticed in time. Read it in READ COMMITTED, each "+
					"result to its end.", v.UntrackedRelation)
		}
	}
	return nil
}

// unknownAge is the refusal of what nobody knows the age of.
func unknownAge() *sqlstate.Error {
	return sqlstate.New(sqlstate.SerializationFailure, sqlstate.ReasonStale,
		"could not serialize access: it is not known whether consent has changed").
		WithHint("Begin the transaction, or open the cursor, again.")
}

// ran tells whether e has been answered, without an error. The server skips what comes after one, and a portal older
// than the savepoint that the client goes back to is still there.
func (l *ledger) ran(e *entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return e != nil && e.over && e.code == ""
}

// rested tells whether nothing is in flight and the server outside a transaction.
func (l *ledger) rested() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first == len(l.queue) && !l.open && !l.skipping && l.status == 'I'
}

// keepAll notes that the session's transactions keep their snapshots by default, until all settings are reset: a SET
// may be rolled back.
func (l *ledger) keepAll() {
	l.mu.Lock()
	l.keep = true
	l.keepers++
	l.mu.Unlock()
}

// keepersNow is how often it was asked for so far.
func (l *ledger) keepersNow() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keepers
}

func (l *ledger) keepsAll() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keep
}
