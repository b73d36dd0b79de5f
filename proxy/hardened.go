package proxy

import (
	"strings"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// A statement whose expressions could fail on hidden rows gets a hardened plan (docs/decisions/0073). A few planner
// settings apply to its transaction from just before it on. They are sent with it each time, so the proxy need not know
// which of them a ROLLBACK has undone:
//
//   - In a Query, SET LOCAL stands in front of the statement in the same text, since the server would skip messages of
//     the proxy's own where an error comes before them. The answers to the settings are not relayed, and positions in
//     errors are counted without them.
//   - Before a Bind, an Execute of a statement that is planned as it runs, and a Parse or Describe that may run functions
//     of others, go messages of the proxy's own. An error of these is the answer to the client's message, which the
//     server skips. They execute nothing, since the messages behind an Execute in a pipeline are in a transaction block as
//     of PostgreSQL 18.
//
// Later statements of the same transaction are planned so too, which costs nothing but speed.

// hardenName is the name of a statement and of a portal that set a hardened plan; no client can use this name.
const hardenName = verdict.SealStatement + "_care"

// insertedText is text of the proxy in a Query.
type insertedText struct{ position int } // how many characters of the verdict's text come before it

// hardenedStatements returns which of the statements of a Query get a hardened plan, and whether any does. runs are the
// verdicts on what it runs by name.
func hardenedStatements(v *verdict.Verdict, runs []*verdict.Verdict) (hardened []bool, anyHardened bool) {
	byName := false
	for _, run := range runs {
		byName = byName || run.HasHardenedPlan()
	}
	hardened = make([]bool, len(v.Effects))
	for i, e := range v.Effects {
		hardened[i] = e.HardenedPlan != verdict.NotHardened || byName && e.Kind == verdict.EffectExecute
		anyHardened = anyHardened || hardened[i]
	}
	return hardened, anyHardened
}

// withHardenedPlan returns the text of a Query with the settings of a hardened plan in front of each statement that
// needs one. The error says why the text cannot be sent so.
func (e *queryEntry) withHardenedPlan() (string, *sqlstate.Error) {
	v := e.verdict
	hardened, anyHardened := hardenedStatements(v, e.namedVerdicts)
	if !anyHardened {
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

// insertSettings puts the settings in front of each statement that needs them, since the statements between may undo
// them, and notes the places.
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

// byteOffset returns where in a text the character begins that has this many characters before it.
func byteOffset(text string, characters int) int {
	offset := 0
	for range characters {
		_, n := utf8.DecodeRuneInString(text[offset:])
		offset += n
	}
	return offset
}

// expectSettings notes that the answers to the settings come next, if the next statement has them.
func (e *queryEntry) expectSettings() {
	if e.steps == nil && e.completedStatements < len(e.hardenedStatements) && e.hardenedStatements[e.completedStatements] {
		e.settingsToAnswer = len(verdict.HardenedPlanStatements)
	}
}

// withoutSettings converts a position that the server reports into a position in the text without the settings. It
// returns 0 if the position is in the settings.
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

// hardenPlan stages messages that give the statements behind them a hardened plan.
func (r *requests) hardenPlan() {
	r.planHardened = true
	r.stageProxyPrepare(hardenName, verdict.HardenedPlanCall, noParameterTypes)
	// Bind plans the statement, and planning runs the settings: an Execute would show in the answers.
	r.stageProxyMessage(&bindEntry{}, hardenName, appendBind(nil, hardenName, hardenName, noParameters))
	r.stageProxyMessage(&closeEntry{object: 'P'}, hardenName, appendClose(nil, 'P', hardenName))
}

// stageProxyPrepare stages messages that prepare a text under a name of the proxy, for the client's message behind
// them.
func (r *requests) stageProxyPrepare(name, text string, types []byte) {
	r.stageProxyMessage(&closeEntry{object: 'S'}, name, appendClose(nil, 'S', name))
	r.stageProxyMessage(&parseEntry{}, name, appendParse(nil, name, text, types))
}

// stageProxyMessage stages a message of the proxy for the client's message behind it.
func (r *requests) stageProxyMessage(e entry, name string, b []byte) {
	start := len(r.batch.out)
	r.batch.out = append(r.batch.out, b...)
	base := e.base()
	base.fromProxy, base.preparesNext, base.name, base.upstreamName = true, true, name, name
	r.batch.add(start, e)
}

// failsOutsideTx reports whether a Query fails because no transaction is open. The settings of a hardened plan would
// make it a block of several statements, in which it would succeed.
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
