// Package generalize judges whether a text that somebody wants to share still tells whom the private text speaks of
// that it was drawn from.
//
// Three checks: names (of the subjects, by their ids and aliases) block; dates, places and details that hardly any
// other text has warn; and how much of the source the text repeats is advice. It is pure: texts in, findings out.
//
// Guarantee: a name that stands in the text is found in whatever case, accents, possessive or inflected form of the
// tables here, broken by hyphens, spaces or characters without width, in letters that look like its own, or in another
// script by letter. Where a form is doubtful the finding is a warning: the text is then not clear, either. A name that
// was changed to another one ("the boy from flat 4"), translated or written by sound alone is not found: an alias is.
package generalize

import (
	"cmp"
	"slices"
	"strings"
)

// Subject is somebody whom the source speaks of.
type Subject struct {
	ID      string   // as kind:name; the name counts as one of theirs
	Aliases []string // what else they are called
}

// Input is what is judged.
type Input struct {
	SourceID string // must not stand in the text
	Source   string // the private text
	Subjects []Subject
	Texts    []string // that are to be shared: the belief, and the note

	// Corpus is what is known of words elsewhere: in how many of Documents texts, the source among them, a word stands,
	// which is in lower case. Nil: nothing, and a word that the source has counts as rare.
	Corpus    func(word string) int
	Documents int
}

// Level is how much a finding weighs.
type Level string

// The levels.
const (
	Block    Level = "block"
	Warn     Level = "warn"
	Advisory Level = "advisory"
)

// Check names a check.
type Check string

// The checks.
const (
	EntityName    Check = "entity_name"
	Specificity   Check = "specificity"
	Reversibility Check = "reversibility"
)

// Finding is something in the text.
type Finding struct {
	Check   Check  `json:"check"`
	Level   Level  `json:"level"`
	Kind    string `json:"kind"`           // name, source, date, place, contact, number, detail, overlap
	Text    string `json:"text,omitempty"` // as the text has it
	Message string `json:"message"`
	at      int
}

// Report is the judgement.
type Report struct {
	Verdict  string    `json:"verdict"` // blocked, warned, clear
	Findings []Finding `json:"findings"`

	Overlap float64 `json:"overlap"`     // of the text's words, how many the source has
	Run     int     `json:"longest_run"` // words that both have in one order
}

// The verdicts.
const (
	Blocked = "blocked"
	Warned  = "warned"
	Clear   = "clear"
)

// Judge makes the three checks.
func Judge(in Input) Report {
	out := Report{Verdict: Clear, Findings: []Finding{}}
	names := in.names()
	for _, text := range in.Texts {
		for _, form := range renderings(text) {
			out.Findings = append(out.Findings, findNames(form, names)...)
		}
		out.Findings = append(out.Findings, findDates(text)...)
		out.Findings = append(out.Findings, findPlaces(text)...)
		out.Findings = append(out.Findings, in.details(text)...)
	}
	out.Overlap, out.Run = overlap(in.Source, strings.Join(in.Texts, "\n"))
	if f, ok := overlapFinding(out.Overlap, out.Run); ok {
		out.Findings = append(out.Findings, f)
	}
	out.Findings = distinct(out.Findings)
	for _, f := range out.Findings {
		if f.Level == Block {
			out.Verdict = Blocked
		} else if f.Level == Warn && out.Verdict == Clear {
			out.Verdict = Warned
		}
	}
	return out
}

func rank(l Level) int { return map[Level]int{Block: 0, Warn: 1, Advisory: 2}[l] }

// distinct orders findings by weight and place, and drops what says the same again.
func distinct(all []Finding) []Finding {
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Or(rank(a.Level)-rank(b.Level), a.at-b.at) })
	out := []Finding{}
	for _, f := range all {
		if !slices.ContainsFunc(out, func(g Finding) bool { return g.Text == f.Text && (g.Kind == f.Kind || g.Level == Block) }) {
			out = append(out, f)
		}
	}
	return out
}
