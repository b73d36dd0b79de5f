package proxy

import (
	"slices"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// entry is one message for the server. It is in the batch at first, and in the ledger from when it is sent until the
// server has answered it. Each kind of message has a type of its own: [queryEntry], [parseEntry], [bindEntry],
// [describeEntry], [closeEntry], [executeEntry] and [syncEntry].
type entry interface {
	base() *entryBase

	// execution returns what a Query and an Execute have in common, and nil for all other messages.
	asExecution() *execution

	// beginsTransaction reports whether the server begins a transaction with the message if none is open.
	beginsTransaction() bool

	// endsWithReady reports whether ReadyForQuery ends the answers to the message, as with a Query and a Sync.
	endsWithReady() bool

	// appendRefused appends the refused form of the message, see [refusal].
	appendRefused(dst []byte) []byte

	// handleAnswer handles one message of the server, by its type and the length of its body. It returns false where
	// PostgreSQL has no such answer to a message of this kind.
	handleAnswer(a *answers, typ byte, length int) (isExpected bool, err *sqlstate.Error)
}

// entryBase is what all kinds of messages have in common.
type entryBase struct {
	fromProxy    bool     // the message is the proxy's and not the client's: its answers are not relayed
	preparesNext bool     // the proxy's message prepares the message behind it; an error of it is the answer to that message
	refusal      *refusal // refusal whose refused form is sent in place of the message; it also replaces the server's error
	replaced     bool     // the message was refused after its bytes were staged

	verdict *verdict.Verdict
	ticket  verdict.Ticket

	name         string // the client's name of the statement or portal
	upstreamName string // the server's name of the statement or portal

	snapshot     *heldSnapshot // snapshot that the server takes with this message; nil: none that is held
	readsForeign bool          // the server reads foreign tables for the message

	requestTime time.Duration // how long the proxy worked on the request before it was sent
	sentAt      time.Time     // when the message was sent

	code       sqlstate.Code // the SQLSTATE of the error that the client got
	isAnswered bool          // the message needs no more answers; guarded by the ledger's lock
	answered   chan struct{} // closed with the ReadyForQuery of a Query or Sync of the proxy
}

func (e *entryBase) base() *entryBase        { return e }
func (e *entryBase) asExecution() *execution { return nil }
func (e *entryBase) beginsTransaction() bool { return true }
func (e *entryBase) endsWithReady() bool     { return false }

// replaceByRefusal replaces a message that is staged already by its refused form.
func replaceByRefusal(e entry, r *refusal) {
	b := e.base()
	b.refusal, b.replaced = r, true
	if q, ok := e.(*queryEntry); ok {
		q.steps = nil // The refused form is sent as one message.
	}
}

// execution is what a Query and an Execute have in common: statements that run, and their results.
type execution struct {
	entryBase

	namedVerdicts []*verdict.Verdict // the verdicts on the statements that the text runs by name
	// the statements that its PREPAREs make, by the verdict's effects; nil once the server has confirmed them
	preparedStatements []*statement
	// the portals that its DECLAREs make, by the verdict's effects; nil once the server has confirmed them
	declaredPortals []*portal
	portals         []*portal     // the portals that the execution runs, by Execute or FETCH
	snapshots       []snapshotUse // the held snapshots whose rows the execution shows
	dropsSeal       bool

	holdRequests   uint64 // the holdRequests of the ledger when the message was staged
	isFirstInGroup bool   // no message was executed before it since the last Sync or Query

	// These fields are set while the answers come, by the goroutine that reads them.
	completedStatements int // number of statements that have completed
	// number of the statement that raised the notices in raisedNotices, counted like completedStatements
	raisedBy      int
	raisedNotices []verdict.Notice
	rows          int64
	bytes         int64
	limit         resultLimit
	keyReader     verdict.KeyReader // reads the keys of the rows; nil: none are recorded

	// These fields are guarded by the ledger's lock. While copying is set, rows and bytes count the rows of the client's
	// COPY FROM STDIN.
	copying bool
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
		// When a limit has ended the result, the client sends no rows of a COPY, for which the server would wait.
		return a.endedResult.execution == nil && a.ledger.noteCopyRequested(x)
	default:
		// CopyBothResponse is among these: no agent may start replication.
		return false
	}
}

// completeStatement applies the effect of the statement whose CommandComplete has come.
func (x *execution) completeStatement(a *answers) {
	if x.verdict != nil && x.completedStatements < len(x.verdict.Effects) {
		a.sealExpired = a.ledger.statementCompleted(x, x.completedStatements)
	}
	x.completedStatements++
}

// completion returns what the client gets in place of the CommandComplete of the statement that runs now; nil: the
// message of the server.
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

// raises reports whether the running statement raises a notice for the client, and has not raised the same notice
// before. A trigger raises its notice for each row, and the client gets it once.
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

// recordOutcome writes the outcome of an execution, or of a message that was refused, into the audit.
func recordOutcome(e entry) {
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
	if !b.sentAt.IsZero() {
		outcome.Upstream = time.Since(b.sentAt)
	}
	ticket := b.ticket
	b.ticket = nil
	ticket.RecordOutcome(outcome)
}
