package proxy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// PostgreSQL commits what a Query did before it says that the last statement is done, and goes through the statements
// of one without a pause. Where a bound must be able to end a result before that, the Query is sent in steps: each
// statement by the messages of the extended protocol, the next when the one before is answered, and last what commits.
// What comes back is what the Query would have brought; the answers to all else are swallowed.
//
// Several statements are one transaction block, which the extended protocol has not: where they control none
// themselves, they get BEGIN and COMMIT around them. In a block of the client's BEGIN does nothing but say so, and
// there is no COMMIT.
//
// So does a Query whose statements are to begin one by one (see [verdict.Verdict.Apart]): PostgreSQL's
// statement_timestamp() is the time of the message, and each step is messages of its own.
//
// The steps are sent by the outbound goroutine. The inbound one has nothing to send before they are answered.

// stepName is a prepared statement that no client's name can be. It is made anew each time.
const stepName = verdict.SealStatement + "_step"

// divided is a Query that goes in steps.
type divided struct {
	parts []verdict.Part
	care  []bool // which of them are planned with care; nil: none
	asked []bool // which of them are sent for values in binary; nil: none
	block bool   // several statements that control no transaction

	begun   bool   // the BEGIN in front is answered
	inside  bool   // which said that a block is open already: the client's
	undoing bool   // ROLLBACK is sent
	ended   bool   // nothing else is to be sent before ReadyForQuery
	last    []byte // the answer to the last statement, which the client gets when it is committed
}

// apart tells whether the statements of a Query are to begin one by one: it would give them all its own time.
func (e *entry) apart() bool {
	return e.kind == query && e.verdict != nil && e.verdict.OneStatementPerMessage
}

// inSteps has a bounded Query go in steps if it must, or says why it cannot.
func (e *entry) inSteps() *sqlstate.Error {
	v := e.verdict
	if len(v.Effects) <= 1 {
		if e.bound.Undoes || !e.alone {
			e.steps = &divided{parts: []verdict.Part{{Text: v.Text}}, care: e.care, asked: e.fetchesBinary()}
			e.leading = e.steps.leading(0)
		}
		return nil
	}
	var parts []verdict.Part
	if v.Parts != nil && !copies(v) {
		parts = v.Parts()
	}
	if len(parts) != len(v.Effects) && e.apart() {
		return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonStatement,
			"these statements cannot run in one multi-statement query: what the later ones read may expire while the others run").
			WithHint("Send the statements one by one.")
	}
	if len(parts) != len(v.Effects) {
		return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonLimit,
			"these statements cannot run in one multi-statement query: the policy bounds what they return").
			WithHint("Send the statements one by one.")
	}
	e.steps = &divided{parts: parts, care: e.care, asked: e.fetchesBinary(), block: true}
	e.leading = e.steps.leading(0)
	for _, effect := range v.Effects {
		switch effect.Kind {
		case verdict.BeginsTx, verdict.EndsTx, verdict.Saves, verdict.Releases, verdict.Rewinds:
			e.steps.block = false
		}
	}
	return nil
}

// fetchesBinary are the statements that fetch from a BINARY cursor: there a Query gets values in binary, and a Bind has
// to ask for them.
func (e *entry) fetchesBinary() []bool {
	if !slices.ContainsFunc(e.running, func(p *portal) bool { return p.binary }) {
		return nil
	}
	out := make([]bool, len(e.verdict.Effects))
	running := e.running
	for i, effect := range e.verdict.Effects {
		if effect.Kind == verdict.Fetches {
			out[i], running = running[0].binary, running[1:]
		}
	}
	return out
}

// step is the messages for the i-th statement, or those that end the Query.
func (st *divided) step(i int) []byte {
	var b []byte
	if i == 0 {
		b = appendClose(b, 'S', "") // as a Query does
		if st.block {
			b = appendStep(b, "BEGIN", noParameters)
		}
	}
	if i < len(st.parts) {
		if st.leading(i) > 0 {
			for _, text := range verdict.HardenedPlanStatements {
				b = appendStep(b, text, noParameters)
			}
		}
		rest := noParameters
		if i < len(st.asked) && st.asked[i] {
			rest = inBinary
		}
		return appendMessage(appendStep(b, st.parts[i].Text, rest), 'H')
	}
	if st.wrapped() {
		b = appendStep(b, "COMMIT", noParameters)
	}
	st.ended = true
	return appendSync(appendClose(b, 'S', stepName))
}

// leading is how many settings of care go before the i-th statement.
func (st *divided) leading(i int) int {
	if i < len(st.care) && st.care[i] {
		return len(verdict.HardenedPlanStatements)
	}
	return 0
}

// wrapped tells whether the block is the proxy's.
func (st *divided) wrapped() bool { return st.begun && !st.inside }

// appendStep adds the messages that run a statement; rest is what its Bind says of parameters and results.
func appendStep(b []byte, text string, rest []byte) []byte {
	b = appendClose(b, 'S', stepName)
	b = appendParse(b, stepName, text, []byte{0, 0})
	b = appendBind(b, "", stepName, rest)
	b = appendDescribe(b, 'P', "")
	b = appendExecute(b, "", 0)
	return appendClose(b, 'P', "")
}

// stepped takes the CommandComplete of a step and returns what the client gets of it.
func (o *answers) stepped(e *entry, message []byte) ([]byte, *sqlstate.Error) {
	st := e.steps
	switch {
	case st.block && !st.begun:
		st.begun = true
		return nil, nil
	case st.undoing || e.completed >= len(st.parts): // ROLLBACK, COMMIT
		return nil, nil
	case e.leading > 0:
		e.leading--
		return nil, nil
	}
	o.late = o.ledger.completed(e, e.completed)
	e.completed++
	switch {
	case o.muted != nil:
		return nil, o.undo(execute, false)
	case o.late: // the session ends
		return message, nil
	case e.completed == len(st.parts):
		st.last, message = message, nil
	}
	e.leading = st.leading(e.completed)
	return message, o.send(st.step(e.completed))
}

// between takes a ReadyForQuery that is not the one of the Query, and tells whether it is.
func (o *answers) between(e *entry, status byte) (yes bool, err *sqlstate.Error) {
	st := e.steps
	switch {
	case st == nil:
		return false, nil
	case st.wrapped() && status == 'E' && !st.undoing:
		st.undoing, st.ended = true, true
		return true, o.send(appendQuery(nil, "ROLLBACK"))
	}
	return false, nil
}

// failed is what is sent after an error: the server skips what else it has of the step.
func (st *divided) failed() []byte {
	if st.ended {
		return nil
	}
	return appendSync(nil)
}

// shift is how many characters of the whole text stand before the statement that the server speaks of.
func (e *entry) shift() int {
	if e.steps != nil && e.completed < len(e.steps.parts) {
		return e.steps.parts[e.completed].At
	}
	return 0
}

// asQuery turns the server's error to a message of a step into what a Query would have brought: it has no parameters.
func (e *entry) asQuery(f *fields) {
	if e.steps == nil || f.code() != sqlstate.ProtocolViolation {
		return
	}
	if _, n, ok := strings.Cut(f.message, " requires "); ok &&
		strings.HasPrefix(f.message, "bind message supplies 0 parameters") {
		f.sqlstate, f.message = undefinedParameter, "there is no parameter $"+n
	}
}

const undefinedParameter = "42P02"
