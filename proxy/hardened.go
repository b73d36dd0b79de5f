package proxy

import (
	"strings"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// A statement whose expressions could fail on hidden rows gets a hardened plan (docs/decisions/0073): a few planner
// settings are set in its transaction just before it. The proxy sends them with every such statement, so it need not
// know which settings a ROLLBACK has undone:
//
//   - In a Query, the proxy inserts SET LOCAL commands in front of the statement, in the same text. Separate messages
//     would not do, since the server may skip them after an error. The proxy drops the answers to the settings and
//     corrects positions in errors.
//   - Before certain messages of the extended protocol the proxy sends messages of its own. These are a Bind, an
//     Execute of a statement that is planned as it runs, and a Parse or Describe that may run other roles' functions.
//     If the proxy's messages fail, the client gets their error, and the server skips the client's message. None of the
//     proxy's messages is an Execute, since PostgreSQL 18 treats messages behind an Execute in a pipeline as a
//     transaction block.
//
// The settings also apply to later statements of the same transaction, which only makes their plans slower.

// hardenName is the name of the statement and portal by which the proxy sets the settings of a hardened plan. No client
// can use this name.
const hardenName = verdict.SealStatement + "_care"

// insertedText is a place at which the proxy has inserted settings into a Query.
type insertedText struct{ position int } // number of characters of the verdict's text before the place

// hardenedStatements reports for each statement of v whether it gets a hardened plan. It returns nil if none does. runs
// are the verdicts on the statements that v runs by name.
func hardenedStatements(v *verdict.Verdict, runs []*verdict.Verdict) (hardened []bool) {
	byName := false
	for _, run := range runs {
		byName = byName || run.HasHardenedPlan()
	}
	for i, e := range v.Effects {
		if e.HardenedPlan == verdict.NotHardened && !(byName && e.Kind == verdict.EffectExecute) {
			continue
		}
		if hardened == nil {
			hardened = make([]bool, len(v.Effects))
		}
		hardened[i] = true
	}
	return hardened
}

// withHardenedPlan returns the Query's text with SET LOCAL commands in front of each statement that needs a hardened
// plan. It returns an error if the text cannot be divided into its statements.
func (e *queryEntry) withHardenedPlan() (string, *sqlstate.Error) {
	v := e.verdict
	hardened := hardenedStatements(v, e.namedVerdicts)
	if hardened == nil {
		return v.Text, nil
	}
	e.hardenedStatements = hardened
	var parts []verdict.Part
	switch {
	case len(hardened) == 1:
		parts = []verdict.Part{{Text: v.Text}}
	case v.Parts != nil:
		parts = v.Parts()
	}
	if len(parts) != len(hardened) {
		return "", sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonStatement,
			"these statements cannot run in one multi-statement query: one of them needs settings of its own for its plan").
			WithHint("Send the statements one by one.")
	}
	text := e.insertSettings(parts)
	e.expectSettings()
	if v.HardenedText != "" {
		return v.HardenedText, nil
	}
	return text, nil
}

// insertSettings inserts the settings in front of each statement that needs them, and notes the places. Once at the
// start would not do, since other statements in the text may undo the settings.
func (e *queryEntry) insertSettings(parts []verdict.Part) string {
	var out strings.Builder
	text, copiedTo := e.verdict.Text, 0
	for i, part := range parts {
		if !e.hardenedStatements[i] {
			continue
		}
		offset := byteOffset(text, part.Offset)
		if offset == 0 {
			offset = verdict.HintLength(text)
		}
		out.WriteString(text[copiedTo:offset])
		out.WriteString(verdict.HardenedPlanPrefix)
		e.insertedTexts = append(e.insertedTexts, insertedText{utf8.RuneCountInString(text[:offset])})
		copiedTo = offset
	}
	out.WriteString(text[copiedTo:])
	return out.String()
}

// byteOffset returns how many bytes the first characters of text, of this number, have.
func byteOffset(text string, characters int) int {
	offset := 0
	for range characters {
		_, n := utf8.DecodeRuneInString(text[offset:])
		offset += n
	}
	return offset
}

// expectSettings notes how many answers to inserted settings come before the answer to the next statement.
func (e *queryEntry) expectSettings() {
	if e.steps == nil && e.completedStatements < len(e.hardenedStatements) && e.hardenedStatements[e.completedStatements] {
		e.settingsToAnswer = len(verdict.HardenedPlanStatements)
	}
}

// withoutSettings converts an error position from the server into a position in the text without the inserted settings.
// It returns 0 for a position inside them.
func (e *queryEntry) withoutSettings(position int) int {
	if e.steps != nil {
		return position
	}
	added := 0
	for _, i := range e.insertedTexts {
		switch offset := position - added - 1; {
		case offset < i.position:
			return position - added
		case offset < i.position+len(verdict.HardenedPlanPrefix):
			return 0
		}
		added += len(verdict.HardenedPlanPrefix)
	}
	return position - added
}

// hardenPlan adds messages of the proxy to the batch that set the settings of a hardened plan for the messages behind
// them.
func (r *requests) hardenPlan() {
	r.planHardened = true
	r.stageProxyPrepare(hardenName, verdict.HardenedPlanCall, noParameterTypes)
	// Bind makes PostgreSQL plan the query, and planning it already runs harden_plan, so no Execute is needed.
	r.stageProxyMessage(&bindEntry{}, hardenName, appendBind(nil, hardenName, hardenName, noParameters))
	r.stageProxyMessage(&closeEntry{object: 'P'}, hardenName, appendClose(nil, 'P', hardenName))
}

// stageProxyPrepare adds a Close and a Parse of the proxy to the batch. They prepare a text under this name for the
// client's message behind them.
func (r *requests) stageProxyPrepare(name, text string, types []byte) {
	r.stageProxyMessage(&closeEntry{object: 'S'}, name, appendClose(nil, 'S', name))
	r.stageProxyMessage(&parseEntry{}, name, appendParse(nil, name, text, types))
}

// stageProxyMessage adds a message of the proxy to the batch, for the client's message behind it.
func (r *requests) stageProxyMessage(e entry, name string, b []byte) {
	start := len(r.batch.out)
	r.batch.out = append(r.batch.out, b...)
	base := e.base()
	base.fromProxy, base.preparesNext, base.name, base.upstreamName = true, true, name, name
	r.batch.add(start, e)
}

// failsOutsideTx reports whether a Query is a DECLARE that PostgreSQL refuses because no transaction block is open.
// With inserted settings the Query would have several statements and so an implicit block, in which DECLARE would
// succeed.
func (r *requests) failsOutsideTx(v *verdict.Verdict) (bool, error) {
	if len(v.Effects) != 1 || v.Effects[0].Kind != verdict.EffectDeclare || v.Effects[0].WithHold ||
		v.Effects[0].HardenedPlan == verdict.NotHardened || r.group.executes > 0 {
		return false, nil
	}
	if err := r.flush(); err != nil {
		return false, err
	}
	return r.ledger.waitTxStatus(), nil
}
