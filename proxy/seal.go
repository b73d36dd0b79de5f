package proxy

import (
	"encoding/binary"
	"errors"
	"strconv"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// The seal is a signed value that tells the database on whose behalf the session acts. The proxy sets it by a statement
// and portal of this name, which no client can use, followed by a Sync. A Query would drop the client's unnamed
// statement. Without the Sync, an error in the client's messages would undo the seal with their transaction. The value
// is a parameter, so that no log shows it in a text. The statement is prepared anew each time, since DEALLOCATE ALL
// drops it.
const (
	sealName = verdict.SealStatement
	sealText = "SELECT pg_catalog.set_config($1, $2, false)"
)

// The cached plans of prepared statements, and of the database's functions attr and sealed, contain the seal (signed
// identity) under which they were made, and any other seal is verified at each run. If statements ran often under the
// old seal, the proxy sends DISCARD PLANS with the new one, so that PostgreSQL plans them again. Otherwise verifying is
// cheaper.
const (
	dropPlansName = verdict.SealStatement + "_plans"
	dropPlansText = "DISCARD PLANS"
	maxRuns       = 200 // planning a statement and the verifying functions takes about 1.5 ms, a verification 15 µs
)

const (
	sealTimeout  = 30 * time.Second // how long the proxy waits for the server's answer to a seal
	sealAttempts = 4

	queryCanceled sqlstate.Code = "57014"
)

// The database compares the expiry of the seal (signed identity) with the start of the transaction, and shows no rows if the
// seal has expired. The client could not tell this from an empty result. So the proxy sends nothing that may begin a
// transaction under a seal that is due for renewal. A second transaction within one message is an exception, for which
// the seal stays valid a little longer. If the server runs messages too late although they were sent in time, the
// session ends. If the database's clock was moved, the database refuses a statement with 40001 while planning it, and
// the proxy renews the seal by the new time. A cached plan shows no rows until the next catalog refresh notices the
// moved clock.

// sealState is the session's current seal, as the proxy has set it.
type sealState struct {
	verdict.Seal

	runs int // how many statements were run under this seal
}

// isSet reports whether the proxy has set a seal (signed identity) on the connection.
func (s *sealState) isSet() bool { return s.Setting != "" }

// isDue reports whether the proxy must renew the seal (signed identity) before a transaction that begins now.
func (s *sealState) isDue(now time.Time) bool { return now.After(s.RenewAfter) || s.isStale() }

// isTooOld reports whether no transaction may begin under the seal (signed identity) any more. The proxy asks this
// where it cannot renew the seal in time: a message, or group of messages, ends a transaction and begins another. The
// limit is half-way between renewal and expiry, which leaves the server the other half to get there.
func (s *sealState) isTooOld() bool {
	validity := s.Expires.Sub(s.RenewAfter)
	return s.RenewAfter.IsZero() || time.Now().After(s.RenewAfter.Add(validity/2)) || s.isStale()
}

func (s *sealState) isStale() bool { return s.IsStale != nil && s.IsStale() }

// noteDropped notes that a message removes the seal (signed identity) on the server. The proxy then sets a new seal
// before it sends anything that may begin a transaction.
func (s *sealState) noteDropped() { s.RenewAfter = time.Time{} }

// setSeal gets a new seal (signed identity) from enforcement and sets it on the server, which must be idle. It waits
// for the answer, since messages behind a seal that fails would run under the old seal.
func (r *requests) setSeal() error { return r.setSealBehind(proxyMessages{}) }

// setSealBehind does what setSeal does, but first sends the messages that the argument before has. All of them succeed
// together, or none.
func (r *requests) setSealBehind(before proxyMessages) error {
	seal, err := r.decider.Seal(r.ctx, r.backend)
	if err != nil {
		return sqlstate.AsError(err)
	}
	if r.seal.runs >= maxRuns { // The server then plans them anew.
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
			// Round(0) strips the monotonic clock, which stands still while a machine sleeps.
			seal.RenewAfter, seal.Expires = seal.RenewAfter.Round(0), seal.Expires.Round(0)
			seal.Value = "" // it is secret, and not needed again
			r.seal = sealState{Seal: seal}
			r.ledger.noteSeal(seal)
			return nil
		case code == queryCanceled && attempt < sealAttempts:
			// The client may have sent a cancel request that came too late for its own statement. The proxy tries again.
		default:
			return sqlstate.New(sqlstate.InternalError, sqlstate.ReasonIdentity, "the session could not be sealed").
				WithHint("Run pgconsent doctor: the database did not take the session's identity.").
				WithCause(errors.New("the server answered " + string(code)))
		}
	}
}

// renewSeal sends the batch, waits for the answers and renews the seal (signed identity). It returns false in the
// middle of a transaction or of a group of messages, where the seal cannot be renewed.
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
	statements int // number of statements that the messages prepare and run, behind the Closes
	closes     int
	bytes      []byte
}

// closeStatement adds a Close of a statement. It must be called before the other methods that add messages.
func (m *proxyMessages) closeStatement(name string) {
	m.bytes = appendClose(m.bytes, 'S', name)
	m.closes++
}

// addStatement adds messages that prepare a statement with this text and run it.
func (m *proxyMessages) addStatement(name, text string) {
	m.bytes = appendOwnStatement(m.bytes, m.numberedName(name), text, noParameterTypes, noParameters)
	m.statements++
}

// addSetting adds messages that change a setting of the session.
func (m *proxyMessages) addSetting(setting, value string) {
	m.bytes = appendSetting(m.bytes, m.numberedName(sealName), setting, value)
	m.statements++
}

// numberedName returns a name for the next statement and its portal. It adds a number, since portals of one transaction
// need different names.
func (m *proxyMessages) numberedName(name string) string {
	if m.statements == 0 {
		return name
	}
	return name + strconv.Itoa(m.statements)
}

func (m *proxyMessages) hasMessages() bool { return len(m.bytes) > 0 }

// entries returns the ledger entries for the messages.
func (m *proxyMessages) entries() (entries []entry) {
	for range m.closes {
		entries = append(entries, &closeEntry{object: 'S'})
	}
	for range m.statements {
		entries = append(entries, entriesOfProxyStatement()...)
	}
	return entries
}

// sendProxyMessages sends messages of the proxy and a Sync, and waits for the answers. It returns the SQLSTATE of the
// server's error, or "".
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

// entriesOfProxyStatement returns the ledger entries for the messages that appendOwnStatement appends.
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

// appendSetting appends messages that change a setting by set_config, in a statement with this name.
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

// refuseOutdated refuses unsent messages before end that were decided when the agent had fewer rights than the new seal
// (signed identity) grants. The proxy may decide on them once more and send them again.
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

// beginsNextTransaction reports whether a Query with these effects ends a transaction and then has further statements,
// which begin another.
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

// discardInTxError refuses DISCARD ALL inside a transaction, where the proxy could not set again the seal (signed
// identity) that it removes.
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
