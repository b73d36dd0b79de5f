package proxy

import (
	"sync"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// snapshotCheck asks the decider about the held snapshots (used for longer than a statement) of the messages that are
// sent next, and caches the answers.
type snapshotCheck struct {
	*requests
	// the answer for each use; portal uses are separate, since results that wait in a portal may be too old alone
	answers   map[snapshotUse]*sqlstate.Error
	unchanged map[verdict.Versions]func() *sqlstate.Error
}

// checkSnapshots notes the time of the held snapshots (used for longer than a statement) that messages before end take,
// and checks those that they use. A message that may not run is refused.
func (r *requests) checkSnapshots(end int) {
	if !r.needsCheck(end) {
		return
	}
	// Earlier messages may run for long, and consent may change meanwhile.
	r.ledger.waitOutsideTx()
	c := snapshotCheck{r, map[snapshotUse]*sqlstate.Error{}, map[verdict.Versions]func() *sqlstate.Error{}}
	isRefused := false
	for i := r.batch.sent; i < end; i++ {
		e := r.batch.items[i].entry
		if e == nil || e.base().refusal != nil {
			continue
		}
		if err := c.checkFunctions(e); err != nil {
			replaceByRefusal(e, r.unrecordedRefusal(err))
			e.base().refusal.retry = err.Code == sqlstate.SerializationFailure
			isRefused = true
		} else if err := c.check(e); err != nil {
			replaceByRefusal(e, r.unrecordedRefusal(err))
			isRefused = true
		}
	}
	if isRefused {
		r.batch.replaceRefused()
	}
}

// needsCheck reports whether an unsent message before end takes or uses a held snapshot (used for longer than a
// statement), or calls functions that must be checked.
func (r *requests) needsCheck(end int) (isSet bool) {
	for i := r.batch.sent; i < end; i++ {
		e := r.batch.items[i].entry
		if e == nil || e.base().refusal != nil {
			continue
		}
		if b, ok := e.(*bindEntry); ok && b.portal != nil {
			r.snapshots.holdForPortal(b, b.portal)
		}
		isSet = isSet || e.base().snapshot != nil || showsHeldSnapshot(e) || unguardedVerdict(e) != nil
	}
	return isSet
}

// checkFunctions returns an error if e calls functions that were replaced since pgconsent checked them.
func (c *snapshotCheck) checkFunctions(e entry) *sqlstate.Error {
	v := unguardedVerdict(e)
	if v == nil {
		return nil
	}
	if c.unchanged[v.Versions] == nil {
		c.unchanged[v.Versions] = sync.OnceValue(func() *sqlstate.Error { return c.decider.CheckCatalogs(c.ctx, v) })
	}
	return c.unchanged[v.Versions]()
}

// check notes the time of the held snapshot (used for longer than a statement) that e takes. It returns an error if a
// held snapshot that e uses may show rows that are hidden now.
func (c *snapshotCheck) check(e entry) *sqlstate.Error {
	err := untrackedError(e)
	if refusal := c.noteMoment(e.base().snapshot); err == nil {
		err = refusal
	}
	if err != nil || e.asExecution() == nil {
		return err
	}
	for _, u := range e.asExecution().snapshots {
		if !u.known {
			return unknownAgeError()
		}
		if err := c.askOnce(u, func() *sqlstate.Error { return c.decider.CheckSnapshot(c.ctx, u.Snapshot, u.portal) }); err != nil {
			return err
		}
	}
	return nil
}

// noteMoment makes the decider note the time of a held snapshot (used for longer than a statement) that the server is
// about to take.
func (c *snapshotCheck) noteMoment(h *heldSnapshot) *sqlstate.Error {
	if h == nil || h.known {
		return nil
	}
	return c.askOnce(snapshotUse{heldSnapshot: h}, func() *sqlstate.Error {
		snapshot, err := c.decider.Snapshot(c.ctx)
		h.Snapshot, h.known = snapshot, err == nil
		return err
	})
}

func (c *snapshotCheck) askOnce(u snapshotUse, ask func() *sqlstate.Error) *sqlstate.Error {
	err, ok := c.answers[u]
	if !ok {
		err = ask()
		c.answers[u] = err
	}
	return err
}

// unguardedVerdict returns a verdict of e that calls functions of the owner which may have been replaced since they
// were checked, or nil (see [verdict.Verdict.CallsUncheckedFunctions]).
func unguardedVerdict(e entry) *verdict.Verdict {
	x := e.asExecution()
	if _, isBind := e.(*bindEntry); x == nil && !isBind {
		return nil
	}
	if v := e.base().verdict; v != nil && v.CallsUncheckedFunctions {
		return v
	}
	if x == nil {
		return nil
	}
	for _, v := range x.namedVerdicts {
		if v.CallsUncheckedFunctions {
			return v
		}
	}
	return nil
}

// untrackedError refuses a message that reads an untracked relation or function by a held snapshot (used for longer
// than a statement). Pgconsent does not notice changes of these. untrackedError returns nil for other messages.
func untrackedError(e entry) *sqlstate.Error {
	if e.base().snapshot == nil && !showsHeldSnapshot(e) {
		return nil
	}
	verdicts := []*verdict.Verdict{e.base().verdict}
	if x := e.asExecution(); x != nil {
		verdicts = append(verdicts, x.namedVerdicts...)
	}
	if b, ok := e.(*bindEntry); ok && b.portal != nil {
		verdicts = append(verdicts, b.portal.verdict)
	}
	for _, v := range verdicts {
		if v != nil && v.UntrackedRelation != "" {
			return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonTransaction,
				"cursors, row limits and transactions that keep a snapshot are not available to agents for what this "+
					"statement reads").
				WithHint("Changes of what %s shows cannot be noticed in time. Read it in READ COMMITTED, each "+
					"result to its end.", v.UntrackedRelation)
		}
	}
	return nil
}

// unknownAgeError refuses the use of a held snapshot (used for longer than a statement) if it is not known when the
// snapshot was taken.
func unknownAgeError() *sqlstate.Error {
	return sqlstate.New(sqlstate.SerializationFailure, sqlstate.ReasonStale,
		"could not serialize access: it is not known whether consent has changed").
		WithHint("Begin the transaction, or open the cursor, again.")
}
