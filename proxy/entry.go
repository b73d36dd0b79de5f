package proxy

import (
	"slices"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// entry is a message for the server. It is first in the batch, and from sending until the server has answered it in the
// ledger. Each kind of message has its own type: [queryEntry], [parseEntry], [bindEntry], [describeEntry],
// [closeEntry], [executeEntry], [syncEntry] and [settingsEntry].
type entry interface {
	base() *entryBase

	// asExecution returns the part that a Query and an Execute have in common, and nil for all other messages.
	asExecution() *execution

	// beginsTransaction reports whether the message makes the server begin a transaction if none is open.
	beginsTransaction() bool

	// endsWithReady reports whether ReadyForQuery ends the answers to the message. It does for a Query and a Sync.
	endsWithReady() bool

	// appendRefused appends the message that is sent in place of a refused one, and fails on the server: see [refusal].
	appendRefused(dst []byte) []byte

	// handleAnswer handles a message of the server that answers this entry; length is that of its body. It returns false
	// if PostgreSQL never answers this kind of message so.
	handleAnswer(a *answers, typ byte, length int) (isExpected bool, err *sqlstate.Error)
}

// startTime is a time before every message. Times since then take less memory than a [time.Time].
var startTime = time.Now()

// entryBase has the fields that all kinds of entries have in common.
type entryBase struct {
	fromProxy    bool // the proxy sends the message by itself; its answers are not relayed
	preparesNext bool // the client's next message depends on this message of the proxy and gets its error
	replaced     bool // the message was refused after its bytes were added to the batch
	readsForeign bool // the server reads foreign tables for the message
	isAnswered   bool // the message needs no more answers; guarded by the ledger's lock

	refusal *refusal // if set, a failing message is sent instead, and the client gets this refusal as its error

	verdict *verdict.Verdict
	ticket  verdict.Ticket

	name         string // the client's name of the statement or portal
	upstreamName string // the server's name of the statement or portal

	snapshot *heldSnapshot // the lasting snapshot that the server takes with this message; nil: none

	requestTime time.Duration // how long the proxy worked on the request before it was sent
	sentAt      time.Duration // when the message was sent, as the time since startTime; 0: it was not

	code     sqlstate.Code // the SQLSTATE of the error that the client got
	answered chan struct{} // closed at the ReadyForQuery for a Query or Sync of the proxy
}

func (e *entryBase) base() *entryBase        { return e }
func (e *entryBase) asExecution() *execution { return nil }
func (e *entryBase) beginsTransaction() bool { return true }
func (e *entryBase) endsWithReady() bool     { return false }

// replaceByRefusal marks a message in the batch as refused. [batch.replaceRefused] then replaces its bytes.
func replaceByRefusal(e entry, r *refusal) {
	b := e.base()
	b.refusal, b.replaced = r, true
	if q, ok := e.(*queryEntry); ok {
		q.steps = nil // A refused Query is not sent in steps.
	}
}

// execution has the fields that a Query and an Execute have in common: the statements that they run, and the results.
type execution struct {
	entryBase

	namedVerdicts []*verdict.Verdict // the verdicts on the statements that the text runs by name
	// the statement that the i-th effect of the verdict, a PREPARE, makes; nil once the server has confirmed it
	preparedStatements []*statement
	// the portal that the i-th effect of the verdict, a DECLARE, makes; nil once the server has confirmed it
	declaredPortals []*portal
	portals         []*portal     // the portals that the execution runs, by Execute or FETCH
	snapshots       []snapshotUse // the lasting snapshots from which the execution shows rows

	holdRequests   uint64 // the value of [ledger.holdRequests] when the message was added to the batch
	dropsSeal      bool
	isFirstInGroup bool // no Execute came before it since the last Sync or Query
	// The server reads rows of the client's COPY FROM STDIN. The ledger's lock guards copying, and while it is true, also
	// rows and bytes.
	copying bool

	// The goroutine that reads the server's answers sets these fields.
	completedStatements int // number of statements that have completed
	// the index of the statement that raised the notices in raisedNotices
	raisedBy      int
	raisedNotices []verdict.Notice
	rows          int64
	bytes         int64
	limit         resultLimit
	keyReader     verdict.KeyReader // reads keys of rows for the audit; nil: the audit records none
}

func (x *execution) asExecution() *execution { return x }

// answerRows handles the answers that a Query and an Execute have in common.
func (x *execution) answerRows(a *answers, typ byte, length int) (isExpected bool) {
	switch typ {
	case 'D', 'd': // The types are those of DataRow and CopyData.
		if a.endedResult.execution != nil {
			return true
		}
		if bound, isSet := x.limit.exceededBy(length); isSet {
			a.cutResult(x, bound)
		} else {
			x.rows++
			x.bytes += int64(length)
			x.limit.count(length)
		}
		return true
	case 'H', 'c': // The types are those of CopyOutResponse and CopyDone.
		return true
	case 'G': // The type is that of CopyInResponse.
		// After a limit has ended the result, the client would send no rows, and the server would wait for them.
		return a.endedResult.execution == nil && a.ledger.noteCopyRequested(x)
	default:
		// This includes CopyBothResponse, since no agent may start replication.
		return false
	}
}

// completeStatement applies the effect of the current statement, since its CommandComplete has arrived.
func (x *execution) completeStatement(a *answers) {
	if x.verdict != nil && x.completedStatements < len(x.verdict.Effects) {
		a.sealExpired = a.ledger.statementCompleted(x, x.completedStatements)
	}
	x.completedStatements++
}

// completion returns the message that the client gets in place of the server's CommandComplete for the current
// statement; nil: the server's own.
func (x *execution) completion() []byte {
	if x.fromProxy || x.refusal != nil || x.verdict == nil || x.completedStatements >= len(x.verdict.Effects) {
		return nil
	}
	e := x.verdict.Effects[x.completedStatements]
	if e.CommandTag == "" {
		return nil
	}
	return appendCommandComplete(nil, e.CommandTag)
}

// raises reports whether the client gets this notice of the running statement: the verdict lists it, and the statement
// has not raised it before. A trigger raises its notice for each row, but the client gets it once.
func (x *execution) raises(code sqlstate.Code, message string) bool {
	if x.fromProxy || x.refusal != nil || x.verdict == nil || x.completedStatements >= len(x.verdict.Effects) {
		return false
	}
	if x.raisedBy != x.completedStatements {
		x.raisedBy, x.raisedNotices = x.completedStatements, nil
	}
	n := verdict.Notice{Code: code, Message: message}
	raises := func(e verdict.Effect) bool { return slices.Contains(e.Notices, n) }
	if slices.Contains(x.raisedNotices, n) || !raises(x.verdict.Effects[x.completedStatements]) &&
		!slices.ContainsFunc(x.namedVerdicts, func(v *verdict.Verdict) bool { return slices.ContainsFunc(v.Effects, raises) }) {
		return false
	}
	x.raisedNotices = append(x.raisedNotices, n)
	return true
}

// copiesIn reports whether the statement that runs now is the client's COPY FROM STDIN.
func (x *execution) copiesIn() bool {
	return !x.fromProxy && x.verdict != nil && x.completedStatements < len(x.verdict.Effects) &&
		x.verdict.Effects[x.completedStatements].Kind == verdict.EffectCopyIn
}

// recordOutcome writes the outcome of a message to the audit, if the decider has recorded a decision on it. The outcome
// is known since now.
func recordOutcome(e entry, now time.Time) {
	b := e.base()
	if b.ticket == nil {
		return
	}
	outcome := verdict.Outcome{Code: b.code}
	if x := e.asExecution(); x != nil {
		outcome.Rows, outcome.Bytes = x.rows, x.bytes
		if x.limit.code != "" {
			outcome.Code = x.limit.code
		}
	}
	if outcome.Code == "" {
		outcome.Code = sqlstate.SuccessfulCompletion
	}
	if b.sentAt != 0 {
		outcome.Upstream = now.Sub(startTime) - b.sentAt
	}
	ticket := b.ticket
	b.ticket = nil
	ticket.RecordOutcome(outcome)
}
