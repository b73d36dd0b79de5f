package proxy

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// The seal is set by a statement and a portal of these names, which no client's can have, and with a Sync of its own: a
// Query in front of the client's messages would destroy its statement without a name, and an error in the client's
// messages would undo a seal that shares their transaction. The value is a parameter, so that it shows nowhere as text.
// The statement is prepared anew each time, since DEALLOCATE ALL drops it.
const (
	sealName = verdict.SealStatement
	sealText = "SELECT pg_catalog.set_config($1, $2, false)"
)

// sealWait bounds the server's answer to a seal.
const sealWait = 30 * time.Second

// setSeal gets a fresh seal and sets it. The server must be idle, and nothing is sent after it before it has answered:
// a message behind a seal that fails would run under the one before.
func (s *session) setSeal() error {
	seal, err := s.decider.Seal(s.ctx, s.backend)
	if err != nil {
		return sqlstate.From(err)
	}
	for attempt := 0; ; attempt++ {
		code, err := s.sendSeal(seal.Setting, seal.Value)
		switch {
		case err != nil:
			return err
		case code == "":
			// Without the monotonic clock, which stands still while a machine sleeps.
			seal.Renew, seal.Expires = seal.Renew.Round(0), seal.Expires.Round(0)
			s.seal = seal
			s.ledger.sealed(seal)
			return nil
		case code == "57014" && attempt < 3:
			// A cancel request of the client that came too late for its own statement.
		default:
			return sqlstate.New(sqlstate.InternalError, sqlstate.ReasonIdentity, "the session could not be sealed").
				WithHint("Run pgconsent doctor: the database did not take the session's identity.").
				WithCause(errors.New("the server answered " + string(code)))
		}
	}
}

// The database holds a seal against the beginning of the transaction, and shows no rows where it has expired: the
// client could not tell that from an answer. So nothing that may begin a transaction is sent under a seal that is due,
// but for the second one of a message, which has some time more; and when the server gets to what was sent in time too
// late, the session ends. Where the database's clock was moved, what it plans it answers with 40001, and the seal is
// renewed by the new time; a plan that it has kept shows no rows until the next look at its clock.

// sealDue tells whether the seal is to be renewed before the next transaction.
func (s *session) sealDue() bool {
	return time.Now().After(s.seal.Renew) || s.seal.Stale != nil && s.seal.Stale()
}

// sealEnds tells whether it is too late to begin a transaction under the seal where it cannot be renewed before: in a
// message, or a group of them, that ends one first. Half of the time between due and expired is left to the server to
// get there.
func (s *session) sealEnds() bool {
	rest := s.seal.Expires.Sub(s.seal.Renew)
	return s.seal.Renew.IsZero() || time.Now().After(s.seal.Renew.Add(rest/2)) || s.seal.Stale != nil && s.seal.Stale()
}

// outdated refuses what was decided before the rights that the seal vouches for, and is sent only now.
func (s *session) outdated(end int) {
	refused := false
	for i := s.batch.sent; i < end; i++ {
		e := s.batch.items[i].entry
		if e == nil || e.refusal != nil || e.verdict == nil || e.verdict.Rights >= s.seal.Rights ||
			only(e.verdict, verdict.BeginsTx, verdict.EndsTx, verdict.ChangesGUC, verdict.Deallocates, verdict.Closes) {
			continue
		}
		e.replace(s.denied(decidedBefore()))
		e.refusal.again = true
		refused = true
	}
	if refused {
		s.batch.replace()
	}
}

func decidedBefore() *sqlstate.Error {
	return sqlstate.New(sqlstate.SerializationFailure, sqlstate.ReasonStale,
		"could not serialize access: the policy or the schema has changed").
		WithHint("The statement was decided a moment before. Try it again.")
}

// renew sends what is staged, waits for the answers and renews the seal. It is false in the middle of a transaction or
// of a group of messages, where that is not possible.
func (s *session) renew() (bool, error) {
	if err := s.flush(); err != nil {
		return false, err
	}
	if !s.ledger.quiet() {
		return false, nil
	}
	return true, s.setSeal()
}

// beginsAgain tells whether a message with these effects goes on after it has ended a transaction, and so begins one in
// its middle.
func beginsAgain(effects []verdict.Effect) bool {
	for i, e := range effects {
		if e.Kind == verdict.EndsTx && i+1 < len(effects) {
			return true
		}
	}
	return false
}

func endAlone() *sqlstate.Error {
	return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonTransaction,
		"no transaction can begin here: the session's identity has to be renewed first").
		WithHint("Send COMMIT or ROLLBACK in a message of its own, with a Sync after it in a pipeline, when a " +
			"transaction has lasted long.")
}

// unsealed notes that the seal is gone with what was sent: nothing that may begin a transaction goes before a new one.
func (s *session) unsealed() { s.seal.Renew = time.Time{} }

// resetInside is the refusal of what takes the seal away where it could not be set again.
func resetInside(kind verdict.EffectKind) *sqlstate.Error {
	hint := "It takes the session's identity away, which pgconsent sets again before the next transaction. In a " +
		"pipeline, send it with a Sync of its own."
	if kind == verdict.Discards {
		return sqlstate.New(sqlstate.ActiveTransaction, sqlstate.ReasonTransaction,
			"DISCARD ALL cannot run inside a transaction block").WithHint("%s", hint)
	}
	return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonTransaction,
		"RESET ALL is not available to agents inside a transaction block").WithHint("%s", hint)
}

func sealExpired() *sqlstate.Error {
	return sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonIdentity,
		"the session's identity has expired before the server came to the messages sent in advance").
		WithHint("What was answered is valid, what was not has shown nothing. Connect again, and send no more in " +
			"advance than the server answers in half a minute.")
}

// sendSeal sends the messages and returns the SQLSTATE of the server's error, or "".
func (s *session) sendSeal(setting, value string) (sqlstate.Code, error) {
	end := &entry{kind: syncs, own: true, done: make(chan struct{})}
	out := appendClose(nil, 'S', sealName)
	types := []byte{0, 2, 0, 0, 0, 25, 0, 0, 0, 25} // text, text
	out = appendParse(out, sealName, sealText, types)
	var p []byte
	p = append(p, 0, 0, 0, 2) // parameters in text format, two of them
	p = binary.BigEndian.AppendUint32(p, uint32(len(setting)))
	p = append(p, setting...)
	p = binary.BigEndian.AppendUint32(p, uint32(len(value)))
	p = append(p, value...)
	p = append(p, 0, 0) // results in text format
	out = appendBind(out, sealName, sealName, p)
	out = appendExecute(out, sealName, 0)
	out = appendSync(out)
	entries := []*entry{{kind: closeStatement, own: true}, {kind: parse, own: true}, {kind: bind, own: true},
		{kind: execute, own: true}, end}
	if skipped, ok := s.ledger.push(entries); !ok {
		return "", errGone
	} else if len(skipped) > 0 {
		return "", lost(errors.New("the seal would be skipped"))
	}
	if _, err := s.upstream.Write(out); err != nil {
		return "", s.awaitEnd(err)
	}
	timeout := time.NewTimer(sealWait)
	defer timeout.Stop()
	select {
	case <-end.done:
		return end.code, nil
	case <-s.ctx.Done():
		return "", errGone
	case <-timeout.C:
		return "", lost(errors.New("no answer to the seal"))
	}
}
