// Package generalize judges whether a text that an agent wants to share still reveals the persons in the private text
// from which it was drawn.
//
// It makes three checks. Names of the subjects, by their ids and aliases, block the text. Dates, places, words with a
// capital letter within a sentence, and details that hardly any other text has, are warnings. How much of the source
// the text repeats is advice. The package only computes: it reads no database and changes nothing.
//
// Guarantee: the package finds a name in upper or lower case, with other accents, with the endings of possessive and
// inflected forms that are listed here, and transliterated to another script. It finds a name that is broken by
// hyphens, spaces or zero-width characters, or written in letters that look similar. If it is uncertain whether a word
// is a form of a name, the finding is a warning, so the text is not clear either. It does not find a description ("the
// boy from flat 4"), a translation, or a spelling only by sound, unless that is an alias.
package generalize

import (
	"cmp"
	"slices"
	"strings"
)

// Subject is a person whom the private text is about.
type Subject struct {
	ID      string   // the id, kind:name; the part after the colon counts as a name
	Aliases []string // other names of the subject
}

// Input is what [CheckTexts] judges: the texts to be shared, and the private text from which they were drawn.
type Input struct {
	SourceID string // the id of the private text, which the shared texts must not contain
	Source   string // the private text
	Subjects []Subject
	Texts    []string // the texts to be shared: the belief and the note

	// TextsWithWord returns in how many of CorpusSize texts, the source included, a word in lower case occurs. If it is
	// nil, every word of the source counts as rare.
	TextsWithWord func(word string) int
	CorpusSize    int
}

// Level says how severe a finding is.
type Level string

// The levels of findings.
const (
	LevelBlock    Level = "block"
	LevelWarn     Level = "warn"
	LevelAdvisory Level = "advisory"
)

// Check names one of the three checks.
type Check string

// The checks of a text.
const (
	CheckEntityName    Check = "entity_name"
	CheckSpecificity   Check = "specificity"
	CheckReversibility Check = "reversibility"
)

// Finding is a part of a text that may reveal a person, or advice about the whole text.
type Finding struct {
	Check   Check  `json:"check"`
	Level   Level  `json:"level"`
	Kind    string `json:"kind"`           // name, source, date, place, capitalized, contact, number, detail, overlap
	Text    string `json:"text,omitempty"` // the part of the text that the finding is about
	Message string `json:"message"`        // what the finding means, for the caller
	start   int
}

// Report is the result of [CheckTexts].
type Report struct {
	Verdict  string    `json:"verdict"` // blocked, warned or clear
	Findings []Finding `json:"findings"`

	Overlap    float64 `json:"overlap"`     // the share of the texts' words that the source also has
	LongestRun int     `json:"longest_run"` // how many words in sequence the texts and the source have in common
}

// The verdicts of reports.
const (
	VerdictBlocked = "blocked"
	VerdictWarned  = "warned"
	VerdictClear   = "clear"
)

// CheckTexts makes the three checks and returns all findings.
func CheckTexts(in Input) Report {
	out := Report{Verdict: VerdictClear, Findings: []Finding{}}
	names := in.subjectPatterns()
	for _, text := range in.Texts {
		var found []Finding
		for _, form := range alternativeReadings(text) {
			found = append(found, findNames(form, names)...)
		}
		found = append(found, findDates(text)...)
		found = append(found, findPlaces(text)...)
		found = append(found, findCapitalized(text, found)...)
		out.Findings = append(append(out.Findings, found...), in.findDetails(text)...)
	}
	out.Overlap, out.LongestRun = textOverlap(in.Source, strings.Join(in.Texts, "\n"))
	if f, ok := overlapFinding(out.Overlap, out.LongestRun); ok {
		out.Findings = append(out.Findings, f)
	}
	out.Findings = sortDistinct(out.Findings)
	for _, f := range out.Findings {
		if f.Level == LevelBlock {
			out.Verdict = VerdictBlocked
		} else if f.Level == LevelWarn && out.Verdict == VerdictClear {
			out.Verdict = VerdictWarned
		}
	}
	return out
}

func levelRank(l Level) int { return map[Level]int{LevelBlock: 0, LevelWarn: 1, LevelAdvisory: 2}[l] }

// sortDistinct sorts findings by level and position, and removes repeated ones.
func sortDistinct(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(levelRank(a.Level)-levelRank(b.Level),
			a.start-b.start)
	})
	out := []Finding{}
	for _, f := range findings {
		if !slices.ContainsFunc(out, func(g Finding) bool {
			return g.Text == f.Text && (g.Kind == f.Kind ||
				g.Level == LevelBlock)
		}) {
			out = append(out, f)
		}
	}
	return out
}
