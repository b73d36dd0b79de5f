package generalize

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"
)

// normalizedWords returns the words of a text in lower case and without marks.
func normalizedWords(text string) []string {
	return strings.Fields(normalizePlace(text))
}

var numberPattern = regexp.MustCompile(`\d+(?:[.,]\d+)*\s?(?:%|€|\$|£|kg|lb|cm|mm|km|mg|ml|bpm|°)?`)

// isRare reports whether a word occurs in hardly any text of the corpus. Without a corpus every word counts as rare.
func (in Input) isRare(w string) bool {
	if in.TextsWithWord == nil || in.CorpusSize < 2 {
		return true
	}
	return in.TextsWithWord(w) <= max(1, int(math.Ceil(float64(in.CorpusSize)*0.005)))
}

// findDetails finds rare words that the text shares with the source, and numbers that both have.
func (in Input) findDetails(text string) []Finding {
	var out []Finding
	source := map[string]bool{}
	for _, w := range normalizedWords(in.Source) {
		source[w] = true
	}
	reportedWords := map[string]bool{}
	for _, p := range splitParts(text) {
		w := p.plainForm
		n := utf8.RuneCountInString(w)
		if reportedWords[w] || !source[w] || p.script == digitRun || p.script == unspacedScript || n < 4 || commonWords[w] {
			continue
		}
		reportedWords[w] = true
		if in.isRare(w) {
			out = append(out, Finding{Check: CheckSpecificity, Level: LevelWarn, Kind: "detail", Text: text[p.start:p.end],
				start:   p.start,
				Message: "the source has this word and hardly any other text has: consider whether it tells the source"})
		}
	}
	sourceNumbers := map[string]bool{}
	for _, n := range numberPattern.FindAllString(in.Source, -1) {
		sourceNumbers[strings.TrimSpace(n)] = true
	}
	for _, bounds := range numberPattern.FindAllStringIndex(text, -1) {
		if n := strings.TrimSpace(text[bounds[0]:bounds[1]]); sourceNumbers[n] {
			out = append(out, Finding{Check: CheckSpecificity, Level: LevelWarn, Kind: "number",
				Text: n, Message: "the source has this number: consider whether it tells the source", start: bounds[0]})
		}
	}
	return out
}

// commonWords are frequent words of several languages. findDetails never reports them.
var commonWords = wordSet(
	`about above after again against also always another around because been before being below between both come could does doing down ` +
		`during each even every from further give have having help here hers into just keep kind know less like look made make many more most ` +
		`much must need never often only other over people same should some such take than that their them then there these they thing things ` +
		`this those through time under until upon used very want well were what when where which while will with within without would ` +
		`your auch aber alle beim dass dein diese dieser doch eine einem einen einer eines etwas haben hatte hier ihre immer kann kein keine ` +
		`mehr muss nach nicht noch oder ohne sehr sein seine sich sind über unter viel wenn werden wird avec aussi cette ` +
		`dans elle elles être fait leur mais même nous pour plus sans sont tout tous très vous como cuando desde donde entre ` +
		`esta este esto hacia hasta muchos nosotros para pero porque sobre también tiene todos anche come dalla degli della delle hanno molto ` +
		`nella perché quando quello questa questo sono tutti`)

// textOverlap returns the share of the text's words that the source also has. It also returns the length of the longest
// sequence of words that both have.
func textOverlap(source, text string) (float64, int) {
	a, b := normalizedWords(source), normalizedWords(text)
	if len(b) == 0 {
		return 0, 0
	}
	sourceRuns := map[string]bool{}
	for _, w := range a {
		sourceRuns[w] = true
	}
	sharedCount, wordCount := 0, 0
	for _, w := range b {
		if utf8.RuneCountInString(w) < 3 || commonWords[w] || shortWords[w] {
			continue
		}
		wordCount++
		if sourceRuns[w] {
			sharedCount++
		}
	}
	longest, row := 0, make([]int, len(a)+1)
	for _, w := range b {
		diagonal := 0
		for j := range a {
			valueAbove := row[j+1]
			row[j+1] = 0
			if a[j] == w {
				row[j+1] = diagonal + 1
				longest = max(longest, row[j+1])
			}
			diagonal = valueAbove
		}
	}
	if wordCount == 0 {
		return 0, longest
	}
	return math.Round(100*float64(sharedCount)/float64(wordCount)) / 100, longest
}

// overlapFinding returns a finding if the text repeats much of its source. ok is false if it does not.
func overlapFinding(share float64, run int) (Finding, bool) {
	if share < 0.3 && run < 4 {
		return Finding{}, false
	}
	return Finding{Check: CheckReversibility, Level: LevelAdvisory, Kind: "overlap",
		Message: fmt.Sprintf(
			"%.0f%% of the words are those of the source, up to %d in a row: could somebody who knows a part of "+
				"it tell the rest?", 100*share, run)}, true
}
