package generalize

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// ordinaryWordList lists words that are written with a capital letter and name neither a person nor a place, one a
// line: languages, titles, techniques, names of months that are also common words.
//
//go:embed ordinary.txt
var ordinaryWordList string

var ordinaryWords = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(ordinaryWordList) {
		if w := normalizePlace(strings.TrimSpace(line)); w != "" {
			out[w] = true
		}
	}
	return out
})

// maxAcronym is how many letters a word in capital letters may have to count as an acronym.
const maxAcronym = 5

// findCapitalized finds words with a capital letter that may name a place or a person, though no list and no subject
// has them. It leaves out the first word of a sentence, which always has a capital letter, and words of earlier
// findings.
func findCapitalized(text string, found []Finding) []Finding {
	knownWords := map[string]bool{}
	for _, f := range found {
		for _, w := range splitWords(f.Text) {
			for _, p := range w.parts {
				knownWords[normalizePlace(p.text)] = true
			}
		}
	}
	var out []Finding
	for _, w := range splitWords(text) {
		suspect := slices.ContainsFunc(w.parts, func(p textWord) bool {
			normalized := normalizePlace(p.text)
			return p.isCapitalized && !(w.startsSentence && p.start == w.start) && !isAcronym(p.text) &&
				!knownWords[normalized] &&
				!ordinaryWords()[normalized] &&
				!isDateWord(p.text)
		})
		if suspect && !ordinaryWords()[normalizePlace(w.text)] {
			out = append(out, Finding{Check: CheckSpecificity, Level: LevelWarn, Kind: "capitalized", Text: w.text,
				start:   w.start,
				Message: "it may be a place or a name: consider whether that tells the source"})
		}
	}
	return out
}

// isAcronym reports whether a word has at most maxAcronym letters, none in lower case, apart from a plural s.
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

// isDateWord reports whether a word, or its singular, says when: a month, a weekday, a feast.
func isDateWord(w string) bool {
	return len(findDates(w)) > 0 || len(findDates(strings.TrimSuffix(w, "s"))) > 0
}

// textWord is a word of the text, or a part of such a word.
type textWord struct {
	text           string // the word without an ending that follows an apostrophe
	start          int
	isCapitalized  bool // the word begins with a capital letter
	startsSentence bool // the word begins a sentence
	parts          []textWord
}

const (
	apostrophes  = "'’ʼ＇`´"
	hyphens      = "-‐‑"
	quotes       = `"“”„‟«»‹›‘‚'`
	openingSigns = quotes + "([{¿¡*_"
)

// splitWords divides a text into words. A word with hyphens has several parts. A name after an apostrophe, as in
// O'Neil, is a part of its own; an ending, as in Graz's, is dropped.
func splitWords(text string) []textWord {
	var out []textWord
	end := 0 // where the previous word ended
	for offset := 0; offset < len(text); {
		r, size := utf8.DecodeRuneInString(text[offset:])
		if !isWordCharacter(r) {
			offset += size
			continue
		}
		w := textWord{start: offset, isCapitalized: unicode.IsUpper(r) || unicode.IsTitle(r)}
		w.startsSentence = len(out) == 0 || startsSentence(out[len(out)-1].text, text[end:offset])
		w.parts, offset = wordParts(text, offset)
		end = offset
		w.text = text[w.start:w.parts[len(w.parts)-1].start] + w.parts[len(w.parts)-1].text
		out = append(out, w)
	}
	return out
}

// isWordCharacter reports whether a character can be in a word: a letter or a digit.
func isWordCharacter(r rune) bool {
	return unicode.IsLetter(r) && !strings.ContainsRune(apostrophes, r) || unicode.IsDigit(r)
}

// wordParts returns the parts of the word that begins at an offset, and the offset at which the word ends.
func wordParts(text string, offset int) ([]textWord, int) {
	var out []textWord
	for {
		first, _ := utf8.DecodeRuneInString(text[offset:])
		end := offset
		for end < len(text) {
			r, size := utf8.DecodeRuneInString(text[end:])
			if !isWordCharacter(r) && !isInvisible(r) && !unicode.Is(unicode.M, r) {
				break
			}
			end += size
		}
		out = append(out, textWord{text: text[offset:end], start: offset, isCapitalized: unicode.IsUpper(first) || unicode.IsTitle(first)})
		mark, size := utf8.DecodeRuneInString(text[end:])
		nextRune, _ := utf8.DecodeRuneInString(text[end+size:])
		switch {
		case end == len(text) || !isWordCharacter(nextRune):
			return out, end
		case strings.ContainsRune(hyphens, mark):
			offset = end + size
		case strings.ContainsRune(apostrophes, mark) && (unicode.IsUpper(nextRune) || utf8.RuneCountInString(out[len(out)-1].text) < 3):
			offset = end + size // A name follows the apostrophe: O'Neil, l'Aquila, d'Arc.
		case strings.ContainsRune(apostrophes, mark):
			// An ending follows the apostrophe: Graz's.
			for end += size; end < len(text); end += size {
				if nextRune, size = utf8.DecodeRuneInString(text[end:]); !isWordCharacter(nextRune) {
					break
				}
			}
			return out, end
		default:
			return out, end
		}
	}
}

// abbreviations are words that a full stop follows inside a sentence.
var abbreviations = wordSet("mr mrs ms dr prof st vs hr fr bzw ca cf nr")

// startsSentence reports whether a word begins a sentence. before is the previous word, between what separates both.
func startsSentence(before, between string) bool {
	textWithoutSigns := strings.TrimRight(between, openingSigns)
	if strings.ContainsAny(between[len(textWithoutSigns):], quotes) {
		return true
	}
	// In French a space separates an opening quotation mark from the word.
	if beforeQuote := strings.TrimRight(between, " \u00a0\u202f"); strings.HasSuffix(beforeQuote, " «") &&
		beforeQuote != between {
		return true
	}
	switch end := strings.TrimRight(textWithoutSigns, " \t\u00a0"+quotes+")]}*_"); {
	case strings.ContainsAny(between, "\n\r\u2028\u2029。！？："):
		return true
	case len(end) == len(between) && textWithoutSigns == between: // No space follows the full stop, as in 3.5 or a.b.
		return false
	case strings.HasSuffix(end, "."):
		lowerBefore := strings.ToLower(before)
		return !abbreviations[lowerBefore] && !(utf8.RuneCountInString(before) == 1 && before == lowerBefore && !unicode.IsDigit(rune(before[0])))
	default:
		return strings.HasSuffix(end, "!") || strings.HasSuffix(end, "?") || strings.HasSuffix(end, ":") || strings.HasSuffix(end, "…")
	}
}
