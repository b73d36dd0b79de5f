package proxy

import (
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// An Execute of COMMIT, ROLLBACK or DISCARD ALL ends its transaction at once, and the messages behind it in the same
// group begin another one. Where these need a new seal, the proxy waits for the answer to the Execute and sends a Sync
// of its own. No transaction is open there, so the Sync ends none. Then it sets the seal as between two groups.

// beginBehindEnd prepares a message that may begin a transaction behind one that has ended its own, or has taken the
// seal away. It refuses the message where the seal cannot be renewed.
func (r *requests) beginBehindEnd(typ byte) (isRefused bool, err error) {
	switch typ {
	case 'Q', 'P', 'B', 'D', 'E':
	default:
		return false, nil
	}
	if isBehindEnd := r.group.endsTx && (r.group.dropsSeal || r.seal.isTooOld()); !isBehindEnd {
		r.group.endsTx = false
		return false, nil
	}
	if isResumed, err := r.resumeGroup(); isResumed || err != nil {
		return false, err
	}
	if typ == 'Q' {
		r.group.endsTx, r.group.dropsSeal = false, false
		r.refuse(&queryEntry{}, endMustBeAloneError(), nil, nil)
	} else {
		r.refuse(&describeEntry{object: 'S'}, endMustBeAloneError(), nil, nil)
	}
	return true, nil
}

// resumeGroup sets a new seal behind an Execute that ends its transaction. It is false where the server is still in a
// transaction then. The Execute has failed and the server skips the rest of the group, or it was a COMMIT AND CHAIN.
func (r *requests) resumeGroup() (bool, error) {
	r.endInputPart()
	r.stageFlush()
	if err := r.flush(); err != nil {
		return false, err
	}
	r.ledger.setStaging(true) // the session is not idle at the Sync
	start := time.Now()
	if skips, ok := r.ledger.waitAnswered(); !ok {
		return false, errPeerGone
	} else if skips {
		return false, nil
	}
	if code, err := r.sendProxyMessages(nil, nil); err != nil {
		return false, err
	} else if code != "" || !r.ledger.outsideTx() {
		return false, nil
	}
	if err := r.setSeal(); err != nil {
		return false, err
	}
	r.batch.lastRead = r.batch.lastRead.Add(time.Since(start)) // the time that the server took is not the proxy's
	r.group = messageGroup{number: r.group.number + 1}
	r.snapshots.begin(false)
	return true, nil
}

// discardsBehindEnd tells whether a Bind or Query of v is to begin a transaction in which DISCARD ALL can run. It can
// if the last Execute of the group has ended the one before.
func (r *requests) discardsBehindEnd(v *verdict.Verdict) bool {
	return r.group.lastExecuteEndsTx && len(v.Effects) == 1 && v.Effects[0].Kind == verdict.EffectDiscard
}

// waitAnswered waits for the answers to all messages, none of which the server keeps back. It tells whether the server
// skips the next messages; ok is false if the session is over.
func (l *ledger) waitAnswered() (skips, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.queue.len() > 0 && !l.closed {
		l.changed.Wait()
	}
	return l.skipping, !l.closed
}

func endMustBeAloneError() *sqlstate.Error {
	return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonTransaction,
		"no transaction can begin here: the session's identity has to be renewed first").
		WithHint("Send COMMIT or ROLLBACK in a message of its own when a transaction has lasted long.")
}
