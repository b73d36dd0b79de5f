package proxy

import (
	"encoding/binary"
	"errors"
	"strconv"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// The seal is set by a statement and a portal of these names, which no client can use, and with a Sync of its own. A
// Query in front of the client's messages would drop its statement without a name. An error in the client's messages
// would undo a seal that shares their transaction. The value is a parameter, so that it shows nowhere as text. The
// statement is prepared anew each time, since DEALLOCATE ALL drops it.
const (
	sealName = verdict.SealStatement
	sealText = "SELECT pg_catalog.set_config($1, $2, false)"
)

// Plans of prepared statements hold the seal that they were made under. Where a session runs many of them, their plans
// are dropped with the seal, and each is made anew at its next run. Otherwise verifying the new seal is cheaper.
const (
	dropPlansName   = verdict.SealStatement + "_plans"
	dropPlansText   = "DISCARD PLANS"
	maxPreparedRuns = 200 // plans of a statement and of the verifying functions take some 1.5 ms, a verification 15 µs
)

const (
	sealTimeout  = 30 * time.Second // how long the proxy waits for the server's answer to a seal
	sealAttempts = 4

	queryCanceled sqlstate.Code = "57014"
)

// The database compares a seal with the beginning of the transaction, and shows no rows where the seal has expired. The
// client could not tell that from an answer. So nothing that may begin a transaction is sent under a seal that is due.
// The second transaction of one message is an exception, and has some time more. When the server gets too late to
// messages that were sent in time, the session ends. Where the database's clock was moved, it answers a statement that
// it plans with 40001, and the seal is renewed by the new time. A plan that it has cached shows no rows until the next
// catalog refresh notices the clock.

// sealState is the seal of the session.
type sealState struct {
	verdict.Seal

	preparedRuns int // how often prepared statements were bound under this seal
}

// isDue reports whether the seal is to be renewed before the next transaction.
func (s *sealState) isDue() bool { return time.Now().After(s.RenewAfter) || s.isStale() }

// isTooOld reports whether no transaction may begin under the seal any more. It is asked where the seal cannot be
// renewed before: in a message, or a group of them, that ends a transaction first. Half of the time between due and
// expired is left to the server to get there.
func (s *sealState) isTooOld() bool {
	validity := s.Expires.Sub(s.RenewAfter)
	return s.RenewAfter.IsZero() || time.Now().After(s.RenewAfter.Add(validity/2)) || s.isStale()
}

func (s *sealState) isStale() bool { return s.IsStale != nil && s.IsStale() }

// noteDropped notes that a message takes the seal away: nothing that may begin a transaction is sent before a new one
// is set.
func (s *sealState) noteDropped() { s.RenewAfter = time.Time{} }

// setSeal requests a new seal from enforcement and sets it. The server must be idle, and nothing is sent after it
// before it has answered. A message after a seal that fails would run under the one before.
func (r *requests) setSeal() error { return r.setSealBehind(proxyMessages{}) }

// setSealBehind is setSeal with other messages of the proxy in front, all of which succeed or none.
func (r *requests) setSealBehind(before proxyMessages) error {
	seal, err := r.decider.Seal(r.ctx, r.backend)
	if err != nil {
		return sqlstate.AsError(err)
	}
	if r.seal.preparedRuns >= maxPreparedRuns { // After this the server plans prepared statements anew.
		before.addStatement(dropPlansName, dropPlansText)
	}
	if seal.RepresentedUser != nil {
		before.addSetting(verdict.RepresentedUserSetting, *seal.RepresentedUser)
	}
	before.addSetting(seal.Setting, seal.Value)
	for attempt := 1; ; attempt++ {
		code, err := r.sendProxyMessages(before.entries(), before.bytes)
		switch {
		case err != nil:
			return err
		case code == "":
			// The times are compared without the monotonic clock, which stands still while a machine sleeps.
			seal.RenewAfter, seal.Expires = seal.RenewAfter.Round(0), seal.Expires.Round(0)
			r.seal = sealState{Seal: seal}
			r.ledger.noteSeal(seal)
			return nil
		case code == queryCanceled && attempt < sealAttempts:
			// The error may come from a cancel request of the client that was too late for its own statement.
		default:
			return sqlstate.New(sqlstate.InternalError, sqlstate.ReasonIdentity, "the session could not be sealed").
				WithHint("Run pgconsent doctor: the database did not take the session's identity.").
				WithCause(errors.New("the server answered " + string(code)))
		}
	}
}

// renewSeal sends the messages that are staged, waits for the answers and renews the seal. It returns false in the
// middle of a transaction or of a group of messages, where that is not possible.
func (r *requests) renewSeal() (bool, error) {
	if err := r.flush(); err != nil {
		return false, err
	}
	if !r.ledger.waitOutsideTx() {
		return false, nil
	}
	return true, r.setSeal()
}

// proxyMessages are messages that the proxy sends by itself.
type proxyMessages struct {
	statements int // number of messages that prepare and run a statement, behind the Closes
	closes     int
	bytes      []byte
}

// closeStatement adds a Close. It comes before all else.
func (m *proxyMessages) closeStatement(name string) {
	m.bytes = appendClose(m.bytes, 'S', name)
	m.closes++
}

// addStatement adds messages that prepare a text and run it.
func (m *proxyMessages) addStatement(name, text string) {
	m.bytes = appendOwnStatement(m.bytes, m.numberedName(name), text, noParameterTypes, noParameters)
	m.statements++
}

// addSetting adds messages that change a setting of the session.
func (m *proxyMessages) addSetting(setting, value string) {
	m.bytes = appendSetting(m.bytes, m.numberedName(sealName), setting, value)
	m.statements++
}

// numberedName returns the name of a statement and its portal: the portals of one transaction have different names.
func (m *proxyMessages) numberedName(name string) string {
	if m.statements == 0 {
		return name
	}
	return name + strconv.Itoa(m.statements)
}

func (m *proxyMessages) hasMessages() bool { return len(m.bytes) > 0 }

// entries returns the entries of the messages.
func (m *proxyMessages) entries() (entries []entry) {
	for range m.closes {
		entries = append(entries, &closeEntry{object: 'S'})
	}
	for range m.statements {
		entries = append(entries, entriesOfProxyStatement()...)
	}
	return entries
}

// sendProxyMessages sends messages of the proxy with a Sync behind them, and returns the SQLSTATE of the server's
// error, or "".
func (r *requests) sendProxyMessages(entries []entry, messages []byte) (sqlstate.Code, error) {
	sync := &syncEntry{}
	sync.answered = make(chan struct{})
	entries = append(entries, sync)
	for _, e := range entries {
		e.base().fromProxy = true
	}
	if skipped, ok := r.ledger.push(entries); !ok {
		return "", errPeerGone
	} else if len(skipped) > 0 {
		return "", connectionLostError(errors.New("the seal would be skipped"))
	}
	if _, err := r.upstream.Write(appendSync(messages)); err != nil {
		return "", r.awaitEnd(err)
	}
	timeout := time.NewTimer(sealTimeout)
	defer timeout.Stop()
	select {
	case <-sync.answered:
		return sync.code, nil
	case <-r.ctx.Done():
		return "", errPeerGone
	case <-timeout.C:
		return "", connectionLostError(errors.New("no answer to the seal"))
	}
}

// entriesOfProxyStatement returns the entries of the messages of appendOwnStatement.
func entriesOfProxyStatement() []entry {
	return []entry{&closeEntry{object: 'S'}, &parseEntry{}, &bindEntry{}, &executeEntry{}}
}

// appendOwnStatement appends messages that prepare a statement of the proxy and run it once.
func appendOwnStatement(dst []byte, name, text string, types, parameters []byte) []byte {
	dst = appendClose(dst, 'S', name)
	dst = appendParse(dst, name, text, types)
	dst = appendBind(dst, name, name, parameters)
	return appendExecute(dst, name, 0)
}

// appendSetting appends messages that change a setting by a statement of this name.
func appendSetting(dst []byte, name, setting, value string) []byte {
	types := []byte{0, 2, 0, 0, 0, 25, 0, 0, 0, 25} // The OIDs are those of two parameters of type text.
	var p []byte
	p = append(p, 0, 0, 0, 2) // There are two parameters, in text format.
	p = binary.BigEndian.AppendUint32(p, uint32(len(setting)))
	p = append(p, setting...)
	p = binary.BigEndian.AppendUint32(p, uint32(len(value)))
	p = append(p, value...)
	p = append(p, 0, 0) // The results are in text format.
	return appendOwnStatement(dst, name, sealText, types, p)
}

// refuseOutdated refuses messages up to end that were decided when the agent had fewer rights than the new seal grants.
// They are sent only now.
func (r *requests) refuseOutdated(end int) {
	isRefused := false
	for i := r.batch.sent; i < end; i++ {
		e := r.batch.items[i].entry
		if e == nil {
			continue
		}
		b := e.base()
		if b.refusal != nil || b.verdict == nil || b.verdict.RightsEpoch >= r.seal.RightsEpoch ||
			onlyControlsSession(b.verdict) {
			continue
		}
		replaceByRefusal(e, r.unrecordedRefusal(decidedBeforeError()))
		b.refusal.retry = true
		isRefused = true
	}
	if isRefused {
		r.batch.replaceRefused()
	}
}

// beginsNextTransaction reports whether a message with these effects goes on after it has ended a transaction, and so
// begins one in its middle.
func beginsNextTransaction(effects []verdict.Effect) bool {
	for i, e := range effects {
		if e.Kind == verdict.EffectEnd && i+1 < len(effects) {
			return true
		}
	}
	return false
}

func decidedBeforeError() *sqlstate.Error {
	return sqlstate.New(sqlstate.SerializationFailure, sqlstate.ReasonStale,
		"could not serialize access: the policy or the schema has changed").
		WithHint("The statement was decided a moment before. Try it again.")
}

// discardInTxError is the refusal of DISCARD ALL where the seal, which it takes away, could not be set again.
func discardInTxError() *sqlstate.Error {
	return sqlstate.New(sqlstate.ActiveTransaction, sqlstate.ReasonTransaction,
		"DISCARD ALL cannot run inside a transaction block").
		WithHint("End the transaction first. In a pipeline, send it first, or behind a Sync or a COMMIT. RESET ALL works " +
			"anywhere.")
}

func sealExpiredError() *sqlstate.Error {
	return sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonIdentity,
		"the session's identity has expired before the server came to the messages sent in advance").
		WithHint("What was answered is valid, what was not has shown nothing. Connect again, and send no more in " +
			"advance than the server answers in half a minute.")
}
