package proxy

import (
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// An Execute of COMMIT, ROLLBACK or DISCARD ALL ends the transaction at once, and messages behind it in the same group
// begin another one. If that one needs a new seal (signed identity), the proxy waits for the answer to the Execute and
// sends a Sync of its own. The Sync has no effect on the client's work, since no transaction is open. Then the proxy
// sets the seal as between two groups.

// beginBehindEnd runs before a message that may begin a transaction. An earlier message of the same group may have
// ended the transaction, so that a new seal (signed identity) is due. beginBehindEnd then renews the seal, and refuses
// the message if that is not possible.
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

// resumeGroup sets a new seal (signed identity) behind an Execute that ends the transaction. It returns false if the
// Execute has failed, so that the server skips the rest of the group (messages up to a Sync). It also returns false if
// a transaction is open again, after COMMIT AND CHAIN.
func (r *requests) resumeGroup() (bool, error) {
	r.endInputPart()
	r.stageFlush()
	if err := r.flush(); err != nil {
		return false, err
	}
	r.ledger.setStaging(true) // so that the session does not count as idle at the Sync's answer
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
	r.batch.lastRead = r.batch.lastRead.Add(time.Since(start)) // the proxy's own time does not include the server's
	r.group = messageGroup{number: r.group.number + 1}
	r.snapshots.begin(false)
	return true, nil
}

// discardsBehindEnd reports whether v is a DISCARD ALL right behind an Execute that has ended the transaction. DISCARD
// ALL can then run, since no transaction is open.
func (r *requests) discardsBehindEnd(v *verdict.Verdict) bool {
	return r.group.lastExecuteEndsTx && len(v.Effects) == 1 && v.Effects[0].Kind == verdict.EffectDiscard
}

// waitAnswered waits until the server has answered all messages. skips says that the server skips messages up to the
// next Sync; ok is false if the session is over.
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
