package proxy

import (
	"strings"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// A statement that may compare with what can fail is planned with care (docs/decisions/0073): the settings of care hold
// for its transaction from just before it on. They are sent with it, each time, so that nothing has to be known of what
// a ROLLBACK has undone:
//
//   - a Query gets SET LOCAL in front of the statement in its own text, since messages between a Query and what was sent before
//     would be skipped where these fail. The answers to it are swallowed, and positions counted without it;
//   - a Bind, an Execute of what is planned as it runs, and a Parse and a Describe that may run functions of others, come behind messages of the proxy's own. An error of these is the answer
//     to what they are for: the server skips that. Nothing of these is executed, since what comes behind an Execute in a pipeline is in a
//     transaction block as of PostgreSQL 18.
//
// What comes behind in the same transaction is planned so too, which costs nothing but speed.

const careName = verdict.SealStatement + "_care" // of a statement and a portal; no client's can have it

// inserted is text of ours in a Query.
type inserted struct{ at int } // characters of the verdict's text before it

// careOf tells which of the statements of a Query are planned with care. runs are what it runs by name.
func careOf(v *verdict.Verdict, runs []*verdict.Verdict) (which []bool, any bool) {
	below := false
	for _, r := range runs {
		below = below || r.HasHardenedPlan()
	}
	which = make([]bool, len(v.Effects))
	for i, e := range v.Effects {
		which[i] = e.HardenedPlan != verdict.NotHardened || below && e.Kind == verdict.Executes
		any = any || which[i]
	}
	return which, any
}

// withCare returns the text of a Query with the settings of care before what they are for, or why it cannot be sent so.
func (e *entry) withCare() (string, *sqlstate.Error) {
	v := e.verdict
	which, any := careOf(v, e.runs)
	if !any {
		return v.Text, nil
	}
	e.care = which
	var parts []verdict.Part
	switch {
	case len(which) == 1:
		parts = []verdict.Part{{Text: v.Text}}
	case v.Parts != nil:
		parts = v.Parts()
	}
	if len(parts) != len(which) {
		return "", sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonStatement,
			"these statements cannot run in one multi-statement query: one of them needs settings of its own for its plan").
			WithHint("Send the statements one by one.")
	}
	var out strings.Builder
	from := 0
	for i := range v.Effects { // before each: what stands between may have set or undone them
		if !which[i] {
			continue
		}
		at := byteOf(v.Text, parts[i].At)
		if at == 0 {
			at = verdict.HintLength(v.Text)
		}
		out.WriteString(v.Text[from:at])
		out.WriteString(verdict.HardenedPlanPrefix)
		e.inserted = append(e.inserted, inserted{utf8.RuneCountInString(v.Text[:at])})
		from = at
	}
	out.WriteString(v.Text[from:])
	e.leads()
	if v.HardenedText != "" {
		return v.HardenedText, nil
	}
	return out.String(), nil
}

// byteOf is where the character begins before which there are so many.
func byteOf(text string, characters int) int {
	at := 0
	for range characters {
		_, n := utf8.DecodeRuneInString(text[at:])
		at += n
	}
	return at
}

// leads notes that the answers to the settings come next, if they do.
func (e *entry) leads() {
	if e.steps == nil && e.completed < len(e.care) && e.care[e.completed] {
		e.leading = len(verdict.HardenedPlanStatements)
	}
}

// without is a position of the server's in the text as it was before the settings of care were put in; 0 where it is in
// these.
func (e *entry) without(position int) int {
	if e.steps != nil {
		return position
	}
	added := 0
	for _, i := range e.inserted {
		switch at := position - added - 1; {
		case at < i.at:
			return position - added
		case at < i.at+len(verdict.HardenedPlanPrefix):
			return 0
		}
		added += len(verdict.HardenedPlanPrefix)
	}
	return position - added
}

// care adds the messages that have what comes next planned with care.
func (s *session) care() {
	s.prepareOwn(careName, verdict.HardenedPlanCall, noTypes)
	// which plans it, and that is all: an Execute would show
	s.addOwn(bind, careName, appendBind(nil, careName, careName, noParameters))
	s.addOwn(closePortal, careName, appendClose(nil, 'P', careName))
}

// prepareOwn prepares a text under a name of ours, for what comes next.
func (s *session) prepareOwn(name, text string, types []byte) {
	s.addOwn(closeStatement, name, appendClose(nil, 'S', name))
	s.addOwn(parse, name, appendParse(nil, name, text, types))
}

// addOwn adds a message of ours that is for the next one of the client's.
func (s *session) addOwn(kind message, name string, b []byte) {
	start := len(s.batch.out)
	s.batch.out = append(s.batch.out, b...)
	s.batch.add(start, &entry{kind: kind, own: true, forNext: true, name: name, upstream: name})
}

var noTypes = []byte{0, 0}

// failsOutside tells whether a Query fails because no transaction is open: the settings of care would make one of it.
func (s *session) failsOutside(v *verdict.Verdict) (bool, error) {
	if len(v.Effects) != 1 || v.Effects[0].Kind != verdict.Declares || v.Effects[0].Hold ||
		v.Effects[0].HardenedPlan == verdict.NotHardened || s.executes > 0 {
		return false, nil
	}
	if err := s.flush(); err != nil {
		return false, err
	}
	return s.ledger.outside(), nil
}
