package proxy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// PostgreSQL commits what a Query did before it says that the last statement is done, and goes through the statements
// of one without a pause. Where a limit must be able to end a result before that, the Query is sent in steps. Each
// statement goes by messages of the extended protocol, after the one before is answered, and the commit comes last. The
// client gets the answers that it would have got to the Query; all others are not relayed.
//
// Several statements of a Query are one transaction block, which the extended protocol does not have. Where they
// control no transaction themselves, they get BEGIN and COMMIT around them. In a block of the client's the BEGIN only
// brings a warning, and there is no COMMIT.
//
// A Query whose statements are to begin one by one (see [verdict.Verdict.OneStatementPerMessage]) is sent in steps as
// well. PostgreSQL's statement_timestamp() is the time of the message, and each step has messages of its own.
//
// The goroutine that reads the server's answers sends the steps. The other one has nothing to send before they are
// answered.

// stepName is the name of a prepared statement that no client can use. The statement is made anew for each step.
const stepName = verdict.SealStatement + "_step"

// queryInSteps is a Query that is sent in steps.
type queryInSteps struct {
	parts            []verdict.Part
	hardenedSteps    []bool // for each step, whether it gets a hardened plan; nil: none does
	binary           []bool // for each step, whether it returns values in binary; nil: none does
	isOneTransaction bool   // the steps are several statements that control no transaction

	begun       bool   // the server has answered the BEGIN in front of the statements
	inBlock     bool   // the server has said that a transaction block of the client is open already
	rollingBack bool   // a ROLLBACK is sent
	isOver      bool   // nothing else is to be sent before ReadyForQuery
	lastAnswer  []byte // the answer to the last statement, which the client gets when the transaction is committed
}

// needsOneByOne reports whether e is a Query whose statements are to begin one by one. As one message it would give all
// of them its own time.
func needsOneByOne(e entry) bool {
	q, ok := e.(*queryEntry)
	return ok && q.verdict != nil && q.verdict.OneStatementPerMessage
}

// divide sets up that a limited Query is sent in steps if that is necessary, or returns the reason why it cannot be.
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

// controlsTx reports whether a statement controls a transaction.
func controlsTx(effect verdict.Effect) bool {
	switch effect.Kind {
	case verdict.EffectBegin, verdict.EffectEnd, verdict.EffectSavepoint, verdict.EffectRelease, verdict.EffectRollbackTo:
		return true
	}
	return false
}

// binaryFetches returns which statements fetch from a BINARY cursor: a Query gets values in binary there, and a Bind
// has to ask for them.
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

// step returns the messages for the i-th statement, or the messages that end the Query.
func (st *queryInSteps) step(i int) []byte {
	var b []byte
	if i == 0 {
		b = appendClose(b, 'S', "") // A Query closes the statement without a name, too.
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

// ownsBlock reports whether the transaction block is the proxy's.
func (st *queryInSteps) ownsBlock() bool { return st.begun && !st.inBlock }

// appendStep adds the messages that run a statement; bindRest is what its Bind says of parameters and results.
func appendStep(b []byte, text string, rest []byte) []byte {
	b = appendClose(b, 'S', stepName)
	b = appendParse(b, stepName, text, noParameterTypes)
	b = appendBind(b, "", stepName, rest)
	b = appendDescribe(b, 'P', "")
	b = appendExecute(b, "", 0)
	return appendClose(b, 'P', "")
}

// completeStep handles the CommandComplete of a step and returns what the client gets of it.
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

// isStepReady handles a ReadyForQuery and reports whether it ends a step, and not the Query.
func (a *answers) isStepReady(e entry, status byte) (isSet bool, err *sqlstate.Error) {
	q, ok := e.(*queryEntry)
	if !ok || q.steps == nil || !q.steps.ownsBlock() || status != 'E' || q.steps.rollingBack {
		return false, nil
	}
	q.steps.rollingBack, q.steps.isOver = true, true
	return true, a.send(appendQuery(nil, "ROLLBACK"))
}

// bytesAfterError returns what is sent after an error: the server skips the other messages of the step.
func (st *queryInSteps) bytesAfterError() []byte {
	if st.isOver {
		return nil
	}
	return appendSync(nil)
}

// stepOffset returns how many characters of the whole text stand before the statement that the server speaks of.
func (e *queryEntry) stepOffset() int {
	if e.steps != nil && e.completedStatements < len(e.steps.parts) {
		return e.steps.parts[e.completedStatements].Offset
	}
	return 0
}

// undefinedParameter is PostgreSQL's SQLSTATE for a parameter in a text that declares none.
const undefinedParameter = "42P02"

// asQueryError turns the server's error to a message of a step into the error that the Query would have brought: a
// Query has no parameters.
func (e *queryEntry) asQueryError(f *errorFields) {
	if e.steps == nil || f.code() != sqlstate.ProtocolViolation {
		return
	}
	if _, n, ok := strings.Cut(f.message, " requires "); ok &&
		strings.HasPrefix(f.message, "bind message supplies 0 parameters") {
		f.sqlstate, f.message = undefinedParameter, "there is no parameter $"+n
	}
}
