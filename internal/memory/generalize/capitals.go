package generalize

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// ordinaryText lists words that are written with a capital letter and name neither a person nor a place, one a line:
// languages, titles, techniques, months that the dates are not sure of.
//
//go:embed ordinary.txt
var ordinaryText string

var ordinaryWords = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(ordinaryText) {
		if w := normalize(strings.TrimSpace(line)); w != "" {
			out[w] = true
		}
	}
	return out
})

// maxAcronym is up to how many letters a word in capital letters alone is an acronym.
const maxAcronym = 5

// findCapitalized finds words with a capital letter that may name a place or a person: in no list of places, and of no
// subject. A word at the start of a sentence has a capital letter anyway, and is not one of them. What is found already
// is not found again.
func findCapitalized(text string, found []Finding) []Finding {
	known := map[string]bool{}
	for _, f := range found {
		for _, w := range writtenWords(f.Text) {
			for _, p := range w.parts {
				known[normalize(p.text)] = true
			}
		}
	}
	var out []Finding
	for _, w := range writtenWords(text) {
		suspect := slices.ContainsFunc(w.parts, func(p written) bool {
			plain := normalize(p.text)
			return p.upper && !(w.starts && p.start == w.start) && !isAcronym(p.text) && !known[plain] && !ordinaryWords()[plain] &&
				!isDateWord(p.text)
		})
		if suspect && !ordinaryWords()[normalize(w.text)] {
			out = append(out, Finding{Check: Specificity, Level: Warn, Kind: "capitalized", Text: w.text, at: w.start,
				Message: "it may be a place or a name: consider whether that tells the source"})
		}
	}
	return out
}

// isAcronym tells whether a word is one letter, or a few in capitals alone, with or without the s of several.
func isAcronym(w string) bool {
	w = strings.TrimSuffix(w, "s")
	letters := 0
	for _, r := range w {
		switch {
		case unicode.IsLower(r):
			return false
		case unicode.IsLetter(r):
			letters++
		}
	}
	return letters <= maxAcronym
}

// isDateWord tells whether a word by itself, or in the plural, says when: a month, a weekday, a feast.
func isDateWord(w string) bool {
	return len(findDates(w)) > 0 || len(findDates(strings.TrimSuffix(w, "s"))) > 0
}

// written is a word as it is written, or a part of one.
type written struct {
	text   string // without the s of a possessive
	start  int
	upper  bool // it begins with a capital letter
	starts bool // it begins a sentence
	parts  []written
}

const (
	apostrophes = "'’ʼ＇`´"
	hyphens     = "-‐‑"
	quotes      = `"“”„‟«»‹›‘‚'`
	openers     = quotes + "([{¿¡*_"
)

// writtenWords divides a text into words. A word with hyphens is one of several parts; what follows an apostrophe goes
// with it, and counts as a part of its own if it is more than an ending: O'Neil.
func writtenWords(text string) []written {
	var out []written
	end := 0 // of the word before
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		if !isLetterOf(r) {
			at += size
			continue
		}
		w := written{start: at, upper: unicode.IsUpper(r) || unicode.IsTitle(r)}
		w.starts = len(out) == 0 || startsSentence(out[len(out)-1].text, text[end:at])
		w.parts, at = partsOf(text, at)
		end = at
		w.text = text[w.start:w.parts[len(w.parts)-1].start] + w.parts[len(w.parts)-1].text
		out = append(out, w)
	}
	return out
}

// isLetterOf tells whether a character belongs to a word: a letter or a digit.
func isLetterOf(r rune) bool {
	return unicode.IsLetter(r) && !strings.ContainsRune(apostrophes, r) || unicode.IsDigit(r)
}

// partsOf are the parts of the word that begins at an offset, and where it ends.
func partsOf(text string, at int) ([]written, int) {
	var out []written
	for {
		first, _ := utf8.DecodeRuneInString(text[at:])
		end := at
		for end < len(text) {
			r, size := utf8.DecodeRuneInString(text[end:])
			if !isLetterOf(r) && !isInvisible(r) && !unicode.Is(unicode.M, r) {
				break
			}
			end += size
		}
		out = append(out, written{text: text[at:end], start: at, upper: unicode.IsUpper(first) || unicode.IsTitle(first)})
		mark, size := utf8.DecodeRuneInString(text[end:])
		next, _ := utf8.DecodeRuneInString(text[end+size:])
		switch {
		case end == len(text) || !isLetterOf(next):
			return out, end
		case strings.ContainsRune(hyphens, mark):
			at = end + size
		case strings.ContainsRune(apostrophes, mark) && (unicode.IsUpper(next) || utf8.RuneCountInString(out[len(out)-1].text) < 3):
			at = end + size // O'Neil, l'Aquila, d'Arc
		case strings.ContainsRune(apostrophes, mark):
			// an ending: Graz's
			for end += size; end < len(text); end += size {
				if next, size = utf8.DecodeRuneInString(text[end:]); !isLetterOf(next) {
					break
				}
			}
			return out, end
		default:
			return out, end
		}
	}
}

// abbreviations end with a full stop within a sentence.
var abbreviations = words("mr mrs ms dr prof st vs hr fr bzw ca cf nr")

// startsSentence tells whether a word begins a sentence, by what stands between it and the word before.
func startsSentence(before, between string) bool {
	bare := strings.TrimRight(between, openers)
	if strings.ContainsAny(between[len(bare):], quotes) {
		return true
	}
	if open := strings.TrimRight(between, " \u00a0\u202f"); strings.HasSuffix(open, " «") && open != between { // as French has it
		return true
	}
	switch end := strings.TrimRight(bare, " \t\u00a0"+quotes+")]}*_"); {
	case strings.ContainsAny(between, "\n\r\u2028\u2029。！？："):
		return true
	case len(end) == len(between) && bare == between: // nothing follows: 3.5, a.b
		return false
	case strings.HasSuffix(end, "."):
		plain := strings.ToLower(before)
		return !abbreviations[plain] && !(utf8.RuneCountInString(before) == 1 && before == plain && !unicode.IsDigit(rune(before[0])))
	default:
		return strings.HasSuffix(end, "!") || strings.HasSuffix(end, "?") || strings.HasSuffix(end, ":") || strings.HasSuffix(end, "…")
	}
}
