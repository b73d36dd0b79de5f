package proxy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// PostgreSQL runs the statements of a Query without a pause, and commits them before it reports the last one complete.
// If a limit must be able to end a result before the commit, the proxy sends the Query in steps. It sends each
// statement by messages of the extended protocol after the previous one is answered, and the COMMIT last. The client
// gets only the answers that it would have got to the Query.
//
// PostgreSQL runs several statements of a Query as one transaction. To get the same in steps, the proxy sends BEGIN and
// COMMIT around them, unless they control transactions themselves. If the client already has a transaction block open,
// the BEGIN only causes a warning, and the proxy sends no COMMIT.
//
// The proxy also sends a Query in steps if each statement needs its own statement_timestamp(), which PostgreSQL sets
// once for each message (see [verdict.Verdict.OneStatementPerMessage]).
//
// The goroutine that reads the server's answers sends the steps. The one that handles the client's messages sends
// nothing before the Query is answered.

// stepName is the server's name of the prepared statement of each step. No client can use this name.
const stepName = verdict.SealStatement + "_step"

// queryInSteps is the state of a Query that is sent in steps.
type queryInSteps struct {
	parts            []verdict.Part
	hardenedSteps    []bool // for each step, whether settings of a hardened plan precede it; nil: for none
	binary           []bool // for each step, whether its result is in binary; nil: for none
	isOneTransaction bool   // the proxy sends BEGIN and COMMIT around the steps

	begun       bool   // the server has answered the proxy's BEGIN
	inBlock     bool   // a transaction block of the client was already open
	rollingBack bool   // the proxy has sent a ROLLBACK
	isOver      bool   // the proxy sends nothing more before ReadyForQuery
	lastAnswer  []byte // the last statement's CommandComplete, which the client gets after the commit
}

// needsOneByOne reports whether e is a Query each of whose statements needs its own statement_timestamp().
func needsOneByOne(e entry) bool {
	q, ok := e.(*queryEntry)
	return ok && q.verdict != nil && q.verdict.OneStatementPerMessage
}

// divide prepares to send a limited Query in steps if that is necessary. It returns an error if the Query cannot be
// divided.
func (e *queryEntry) divide() *sqlstate.Error {
	v := e.verdict
	if len(v.Effects) <= 1 {
		if e.limit.MustRollBack || !e.isFirstInGroup {
			e.startSteps([]verdict.Part{{Text: v.Text}}, false)
		}
		return nil
	}
	var parts []verdict.Part
	if v.Parts != nil && !hasCopyIn(v) {
		parts = v.Parts()
	}
	if len(parts) != len(v.Effects) && needsOneByOne(e) {
		return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonStatement,
			"these statements cannot run in one multi-statement query: what the later ones read may expire while the others run").
			WithHint("Send the statements one by one.")
	}
	if len(parts) != len(v.Effects) {
		return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonLimit,
			"these statements cannot run in one multi-statement query: the policy bounds what they return").
			WithHint("Send the statements one by one.")
	}
	e.startSteps(parts, !slices.ContainsFunc(v.Effects, controlsTx))
	return nil
}

func (e *queryEntry) startSteps(parts []verdict.Part, block bool) {
	e.steps = &queryInSteps{parts: parts, hardenedSteps: e.hardenedStatements, binary: e.binaryFetches(), isOneTransaction: block}
	e.settingsToAnswer = e.steps.settings(0)
}

// controlsTx reports whether a statement is a transaction command, such as COMMIT or SAVEPOINT.
func controlsTx(effect verdict.Effect) bool {
	switch effect.Kind {
	case verdict.EffectBegin, verdict.EffectEnd, verdict.EffectSavepoint, verdict.EffectRelease, verdict.EffectRollbackTo:
		return true
	}
	return false
}

// binaryFetches returns for each statement whether it fetches from a BINARY cursor. A Query would return binary values
// there; in a step the Bind must request them.
func (e *queryEntry) binaryFetches() []bool {
	if !slices.ContainsFunc(e.portals, func(p *portal) bool { return p.fetchedInBinary }) {
		return nil
	}
	out := make([]bool, len(e.verdict.Effects))
	portals := e.portals
	for i, effect := range e.verdict.Effects {
		if effect.Kind == verdict.EffectFetch {
			out[i], portals = portals[0].fetchedInBinary, portals[1:]
		}
	}
	return out
}

// step returns the messages that run the i-th statement or, after the last, those that end the Query.
func (st *queryInSteps) step(i int) []byte {
	var b []byte
	if i == 0 {
		b = appendClose(b, 'S', "") // A real Query would also drop the unnamed statement.
		if st.isOneTransaction {
			b = appendStep(b, "BEGIN", noParameters)
		}
	}
	if i < len(st.parts) {
		if st.settings(i) > 0 {
			for _, text := range verdict.HardenedPlanStatements {
				b = appendStep(b, text, noParameters)
			}
		}
		rest := noParameters
		if i < len(st.binary) && st.binary[i] {
			rest = inBinary
		}
		return appendMessage(appendStep(b, st.parts[i].Text, rest), 'H')
	}
	if st.ownsBlock() {
		b = appendStep(b, "COMMIT", noParameters)
	}
	st.isOver = true
	return appendSync(appendClose(b, 'S', stepName))
}

// settings returns how many settings of a hardened plan are sent before the i-th statement.
func (st *queryInSteps) settings(i int) int {
	if i < len(st.hardenedSteps) && st.hardenedSteps[i] {
		return len(verdict.HardenedPlanStatements)
	}
	return 0
}

// ownsBlock reports whether the proxy's BEGIN has opened the transaction block.
func (st *queryInSteps) ownsBlock() bool { return st.begun && !st.inBlock }

// appendStep appends messages that run a statement; rest is the part of its Bind behind the names.
func appendStep(b []byte, text string, rest []byte) []byte {
	b = appendClose(b, 'S', stepName)
	b = appendParse(b, stepName, text, noParameterTypes)
	b = appendBind(b, "", stepName, rest)
	b = appendDescribe(b, 'P', "")
	b = appendExecute(b, "", 0)
	return appendClose(b, 'P', "")
}

// completeStep handles a CommandComplete of a Query in steps, and returns the message that the client gets for it.
func (a *answers) completeStep(e *queryEntry, message []byte) ([]byte, *sqlstate.Error) {
	st := e.steps
	switch {
	case st.isOneTransaction && !st.begun:
		st.begun = true
		return nil, nil
	case st.rollingBack || e.completedStatements >= len(st.parts): // The statement was ROLLBACK or COMMIT.
		return nil, nil
	case e.settingsToAnswer > 0:
		e.settingsToAnswer--
		return nil, nil
	}
	e.completeStatement(a)
	switch {
	case a.endedResult.execution != nil:
		return nil, a.undoResult((*refusal).execute, false)
	case a.sealExpired: // The session ends.
		return message, nil
	case e.completedStatements == len(st.parts):
		st.lastAnswer, message = message, nil
	}
	e.settingsToAnswer = st.settings(e.completedStatements)
	return message, a.send(st.step(e.completedStatements))
}

// isStepReady handles a ReadyForQuery of a Query in steps. It returns true if the Query is not over: the proxy must
// first roll back its transaction block.
func (a *answers) isStepReady(e entry, status byte) (isSet bool, err *sqlstate.Error) {
	q, ok := e.(*queryEntry)
	if !ok || q.steps == nil || !q.steps.ownsBlock() || status != 'E' || q.steps.rollingBack {
		return false, nil
	}
	q.steps.rollingBack, q.steps.isOver = true, true
	return true, a.send(appendQuery(nil, "ROLLBACK"))
}

// bytesAfterError returns the Sync to send after an error, or nil if a Sync was sent already.
func (st *queryInSteps) bytesAfterError() []byte {
	if st.isOver {
		return nil
	}
	return appendSync(nil)
}

// stepOffset returns how many characters of the Query's text precede the current step's statement.
func (e *queryEntry) stepOffset() int {
	if e.steps != nil && e.completedStatements < len(e.steps.parts) {
		return e.steps.parts[e.completedStatements].Offset
	}
	return 0
}

// undefinedParameter is PostgreSQL's SQLSTATE for a parameter that does not exist, such as $1 in a Query.
const undefinedParameter = "42P02"

// asQueryError handles an error of a step whose text names a parameter. It replaces the Bind's error by the one that
// PostgreSQL gives for a Query with a parameter.
func (e *queryEntry) asQueryError(f *errorFields) {
	if e.steps == nil || f.code() != sqlstate.ProtocolViolation {
		return
	}
	if _, n, ok := strings.Cut(f.message, " requires "); ok &&
		strings.HasPrefix(f.message, "bind message supplies 0 parameters") {
		f.sqlstate, f.message = undefinedParameter, "there is no parameter $"+n
	}
}
