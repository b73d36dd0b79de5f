package generalize

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// namePattern is a name to search for, or one word of it.
type namePattern struct {
	wordPart
	kind      string // "name" of a person, or "source": the id of the source
	wordCount int    // how many words the name has
	partCount int    // how many parts, as splitParts makes them, the name has
	isWhole   bool   // the pattern is the whole name, not a word of it
	stems     []nameStem
}

// subjectPatterns returns the patterns for the names of all subjects, and for the id of the source.
func (in Input) subjectPatterns() []namePattern {
	var out []namePattern
	add := func(kind, name string) {
		for _, spelling := range spellings(name) {
			out = append(out, patternsOf(kind, spelling, false)...)
		}
	}
	for _, s := range in.Subjects {
		_, name, found := strings.Cut(s.ID, ":")
		if !found {
			name = s.ID
		}
		out = append(out, patternsOf("name", name, true)...)
		for _, alias := range s.Aliases {
			add("name", alias)
		}
	}
	if in.SourceID != "" {
		if _, id, ok := strings.Cut(in.SourceID, ":"); ok {
			for _, p := range patternsOf("source", id, false) {
				if p.isWhole && utf8.RuneCountInString(p.plainForm) > 3 {
					out = append(out, p)
				}
			}
		}
	}
	for i := range out {
		out[i].noDoubles, out[i].stems = dropDoubles(out[i].plainForm), inflectedStems(out[i].plainForm)
	}
	slices.SortStableFunc(out, func(a, b namePattern) int { return len(b.plainForm) - len(a.plainForm) })
	return slices.CompactFunc(out, func(a, b namePattern) bool {
		return a.plainForm == b.plainForm && a.kind == b.kind && a.script == b.script
	})
}

// spellings returns a name and the spellings that people use on keyboards without its letters.
func spellings(name string) []string {
	name = norm.NFC.String(name)
	out := []string{name}
	if expandedName := umlautExpander.Replace(name); expandedName != name {
		out = append(out, expandedName)
	}
	if shortSpelling := strings.NewReplacer("ae", "a", "oe", "o", "ue", "u").Replace(name); shortSpelling != name &&
		len(shortSpelling) > 3 {
		out = append(out, shortSpelling)
	}
	return out
}

// nameParticles are words in names that are not names by themselves.
var nameParticles = wordSet("de del della di da do dos das du des van von der den ter ten zu zum la le les al el bin " +
	"ibn abu ben bint y e of the and und st saint san santa dr mr mrs ms miss prof sir jr sr herr frau señor señora don doña")

// roleWords are words in ids that say what somebody is, and are not names.
var roleWords = wordSet("agent human person user student pupil kid child boy girl parent mother father teacher tutor " +
	"guest patient client customer member owner guardian doctor nurse vet dog cat pet bot ai si my the")

func wordSet(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(s) {
		out[w] = true
	}
	return out
}

// patternsOf returns patterns for the whole name, and for each word that is a name by itself. If id is true, the name
// is part of an id, in which signs such as _ separate words.
func patternsOf(kind, name string, id bool) []namePattern {
	if id {
		name = strings.NewReplacer("_", " ", "-", " ", ".", " ", "/", " ").Replace(name)
	}
	parts := splitParts(name)
	if len(parts) == 0 {
		return nil
	}
	var groups [][]wordPart
	for _, p := range parts {
		// Parts that only an apostrophe or a hyphen separates belong to one word of the name: O'Neil, Anne-Marie.
		if len(groups) > 0 && (p.followsDirectly || p.script == unspacedScript && p.before == "" ||
			!strings.ContainsAny(p.before, " \t\n,;()")) {
			groups[len(groups)-1] = append(groups[len(groups)-1], p)
		} else {
			groups = append(groups, []wordPart{p})
		}
	}
	wholeName := namePattern{wordPart: joinParts(parts), kind: kind, wordCount: len(groups), partCount: len(parts),
		isWhole: true}
	out := []namePattern{wholeName}
	for _, g := range groups {
		p := joinParts(g)
		if len(groups) > 1 && !isNumber(g) && !nameParticles[p.plainForm] && !(id && roleWords[p.plainForm]) &&
			utf8.RuneCountInString(p.plainForm) > 1 {
			out = append(out, namePattern{wordPart: p, kind: kind, wordCount: 1, partCount: len(g)})
		}
		// The longer parts of Anne-Marie and O'Neil are names by themselves.
		if len(g) > 1 && g[0].script != unspacedScript {
			for _, part := range g {
				if utf8.RuneCountInString(part.plainForm) >= 3 && part.script != digitRun && !nameParticles[part.plainForm] &&
					!(id && roleWords[part.plainForm]) && !part.followsDirectly && !g[len(g)-1].followsDirectly {
					out = append(out, namePattern{wordPart: part, kind: kind, wordCount: 1, partCount: 1})
				}
			}
		}
		// In Chinese, Japanese and Korean the family name comes first. It has one character, or two in a name of four.
		if n := len(g); g[0].script == unspacedScript && n >= 3 && n <= 6 {
			out = append(out, namePattern{wordPart: joinParts(g[1:]), kind: kind, wordCount: 1, partCount: n - 1})
			if n >= 4 {
				out = append(out, namePattern{wordPart: joinParts(g[:2]), kind: kind, wordCount: 1, partCount: 2},
					namePattern{wordPart: joinParts(g[2:]), kind: kind, wordCount: 1, partCount: n - 2})
			}
		}
	}
	return out
}

func isNumber(parts []wordPart) bool {
	return !slices.ContainsFunc(parts, func(p wordPart) bool { return p.script != digitRun })
}

// joinParts joins several parts to one word.
func joinParts(parts []wordPart) wordPart {
	out := parts[0]
	for _, p := range parts[1:] {
		out = appendPart(out, p)
	}
	out.phonetic, out.consonants = phoneticForm(out.latinForm), consonantsOf(out.latinForm)
	return out
}

func appendPart(w, p wordPart) wordPart {
	w.end = p.end
	w.plainForm += p.plainForm
	w.expanded += p.expanded
	w.lookalike = foldLookalikes(w.lookalike + p.lookalike)
	w.latinForm += p.latinForm
	if w.script == digitRun || w.script == latin && p.script != digitRun {
		w.script = p.script
	}
	return w
}

// maxJoinedParts is how many parts of a text are joined to search a name in them: people may write something between
// all letters.
const maxJoinedParts = 48

// findNames finds the names in a text, also those that are written with spaces or signs between their letters.
func findNames(text string, names []namePattern) []Finding {
	parts := splitParts(text)
	var out []Finding
	maxParts := 0
	for _, n := range names {
		maxParts = max(maxParts, len(n.latinForm), len(n.plainForm), len(n.lookalike))
	}
	for i := range parts {
		w := parts[i]
		hasGap, letters, isUnusual := false, true, false
		for j := i; j < len(parts) && j < i+maxJoinedParts; j++ {
			p := parts[j]
			if j > i {
				w = appendPart(w, p)
				hasGap = hasGap || hasUnusualGap(p.before)
			}
			letters = letters && p.end-p.start <= 4 && utf8.RuneCountInString(p.plainForm) == 1
			isUnusual = isUnusual || p.script != digitRun && !shortWords[p.plainForm]
			if j > i && len(w.latinForm) > maxParts+8 && len(w.plainForm) > maxParts+8 {
				break
			}
			w.noDoubles, w.phonetic = dropDoubles(w.plainForm), phoneticForm(w.latinForm)
			w.consonants = consonantsOf(w.latinForm)
			for _, n := range names {
				// Several words together can be a short name by accident. They count only if one of them is not a common short
				// word.
				if hasGap && n.wordCount == 1 && !letters && !(utf8.RuneCountInString(n.plainForm) >= 6 &&
					n.script != unspacedScript) &&
					!isUnusual {
					continue
				}
				level := matchLevel(w, n, j-i+1, hasGap)
				if level == "" {
					continue
				}
				description := "the name of somebody whom the source is about"
				if n.kind == "source" {
					description = "the id of the source"
				}
				message := description + ": take it out"
				if level == LevelWarn {
					message = "it may be " + description
				}
				out = append(out, Finding{Check: CheckEntityName, Level: level, Kind: n.kind, Text: text[w.start:w.end],
					Message: message, start: w.start})
			}
		}
	}
	return out
}

// hasUnusualGap reports whether there is space between two parts. A hyphen at the end of a line is no gap, since the
// word continues in the next line.
func hasUnusualGap(between string) bool {
	return strings.ContainsAny(between, " \t\u00a0\u2009\u202f\n\r\u3000") &&
		!(strings.ContainsAny(between, "-‐‑–") && strings.Contains(between, "\n"))
}

// shortWords are common short words of several languages, which follow each other in any text.
var shortWords = wordSet(
	`a i o e y u an am as at be by do go he if in is it me my no of on or so to up us we and the for are but not you all any can had her ` +
		`was one our out day get has him his how man new now old see two way who its did yes let put say she too use ad al au ce de du en es ` +
		`et il je la le ma mi ne ni on ou sa se si su ta te tu un va el lo los las con del por que una der die das den dem des ein im ist mit ` +
		`von zu zum zur auf aus bei bin da du er es hat ich ihr ja man nur ob sie so um und uns vor war was wer wie wir det en er et för i og ` +
		`på som til av den har ei ja on se że na nie to z w o do po za od go mu ich a at om op te van het een dat met niet zijn`)

// matchLevel returns how certain it is that a word, or several joined words, are a name; "": they are not. n is the
// number of joined parts; hasGap says whether there is space between them.
func matchLevel(w wordPart, p namePattern, n int, hasGap bool) Level {
	length := utf8.RuneCountInString(p.plainForm)
	if length == 1 && p.script != unspacedScript {
		if w.plainForm == p.plainForm && w.startsUpper && n == 1 {
			return LevelBlock
		}
		return ""
	}
	if w.plainForm == p.plainForm || w.expanded == p.expanded || w.plainForm == p.expanded || w.expanded == p.plainForm ||
		w.lookalike == p.lookalike && len(p.lookalike) > 1 {
		return LevelBlock
	}
	if length >= 3 && len(w.noDoubles) >= 3 && w.noDoubles == p.noDoubles {
		return LevelBlock
	}
	if w.script == p.script && w.script != unspacedScript {
		level := matchInflected(w, p, length, hasGap)
		if level == "" && length >= 4 && !hasGap && isReversed(w.plainForm, p.plainForm) {
			return LevelWarn
		}
		return level
	}
	if w.script != p.script && !(hasGap && p.wordCount == 1 && w.script != unspacedScript && p.script != unspacedScript) {
		return matchOtherScript(w, p, n)
	}
	if w.script == unspacedScript && n > 1 && len(p.phonetic) >= 4 && w.phonetic == p.phonetic {
		return LevelBlock // It is another spelling with the same sound.
	}
	return ""
}

// matchInflected compares a word with the inflected forms of a name in the same script.
func matchInflected(w wordPart, p namePattern, length int, hasGap bool) Level {
	switch p.script {
	case consonantScript:
		for _, withoutPrefix := range withoutPrefixes(w.plainForm) {
			if withoutPrefix == p.plainForm || length >= 3 && strings.HasPrefix(withoutPrefix, p.plainForm) &&
				utf8.RuneCountInString(withoutPrefix)-length <= 3 {
				return LevelBlock
			}
		}
		return ""
	case alphabeticScript:
		prefixLength := commonPrefixLength(w.plainForm, p.plainForm)
		addedLetters, lostLetters := utf8.RuneCountInString(w.plainForm)-prefixLength, length-prefixLength
		switch {
		case length >= 3 && lostLetters == 0 && addedLetters <= 3, length >= 4 && lostLetters == 1 &&
			addedLetters <= 3, length >= 5 && lostLetters == 2 &&
			addedLetters <= 2 && addedLetters > 0, length >= 6 && lostLetters == 2 && addedLetters == 3:
			return LevelBlock
		// In Indic scripts a name may have only two letters, since vowels are marks. Postpositions follow without a space. So
		// the word may be the name with a postposition.
		case length == 2 && lostLetters == 0 && addedLetters <= 3 && w.isIndic:
			return LevelWarn
		case !hasGap && hasChangedStem(w.plainForm, p):
			return LevelBlock
		case len(p.phonetic) >= 4 && w.phonetic == p.phonetic:
			return LevelBlock
		}
		return ""
	}
	if hasNameEnding(w, p, length) {
		if length < 3 && !w.startsUpper {
			return LevelWarn
		}
		return LevelBlock
	}
	doubtfulLevel := LevelWarn
	if w.startsUpper {
		doubtfulLevel = LevelBlock
	}
	if stem := p.plainForm[:len(p.plainForm)-1]; length >= 4 && strings.Contains("aeiouy",
		p.plainForm[len(p.plainForm)-1:]) &&
		len(p.plainForm) == length && !hasGap {
		if addedLetters, ok := strings.CutPrefix(w.plainForm, stem); ok && caseEndings[addedLetters] {
			return doubtfulLevel
		}
	}
	if len(p.phonetic) >= 4 && w.phonetic == p.phonetic && !hasGap || !hasGap && hasChangedStem(w.plainForm, p) {
		return doubtfulLevel
	}
	if (length >= 5 || w.isTag && length >= 3) && !hasGap &&
		(strings.HasPrefix(w.plainForm, p.plainForm) || strings.HasSuffix(w.plainForm, p.plainForm)) {
		return LevelWarn
	}
	return ""
}

// caseEndings are endings that replace the last vowel of a name in other grammatical cases.
var caseEndings = wordSet("a e i o u y ie ou oi oy om em am ej ego emu ami ach")

// matchOtherScript compares a word with a name in another script by their transliterations.
func matchOtherScript(w wordPart, p namePattern, n int) Level {
	if w.script == digitRun || p.script == digitRun {
		return ""
	}
	if w.script == consonantScript || p.script == consonantScript {
		candidates := []string{w.consonants}
		if w.script == consonantScript {
			candidates = candidates[:0]
			for _, withoutPrefix := range withoutPrefixes(w.plainForm) {
				var b strings.Builder
				for i := range []rune(withoutPrefix) {
					b.WriteString(romanisedLetter([]rune(withoutPrefix), i))
				}
				candidates = append(candidates, consonantsOf(keepLetters(b.String())))
			}
		}
		for _, c := range candidates {
			a, b := c, p.consonants // a is the word that is written without vowels.
			if p.script == consonantScript && w.script != consonantScript {
				a, b = b, a
			}
			consonants := len(strings.ReplaceAll(a, "*", ""))
			if consonants >= 2 && lacksOnlyVowels(a, b) {
				return LevelBlock
			}
			if consonants == 1 && a == b && len(a) >= 2 {
				return LevelWarn
			}
		}
		return ""
	}
	// A single Chinese character sounds like many others, so it proves nothing.
	if w.script == unspacedScript && n < 2 && !p.isWhole || p.script == unspacedScript && p.partCount < 2 {
		return ""
	}
	if len(p.phonetic) >= 2 && w.phonetic == p.phonetic {
		return LevelBlock
	}
	if stem := strings.TrimRight(p.phonetic, "aeiou"); len(stem) >= 3 && w.script == alphabeticScript {
		if ending, ok := strings.CutPrefix(w.phonetic, stem); ok && len(ending) <= 4 &&
			strings.Trim(ending, "aeioumvks") == "" {
			return LevelBlock
		}
	}
	if w.script != unspacedScript && p.script != unspacedScript {
		return matchOtherLanguage(w, p)
	}
	a, b := strings.Trim(w.consonants, "*"), strings.Trim(p.consonants, "*")
	consonants := func(s string) string { return dropDoubles(strings.ReplaceAll(s, "*", "")) }
	if len(consonants(a)) >= 2 && (a == b || w.isIndic && consonants(a) == consonants(b)) {
		return LevelWarn // The vowels are those of another language, or marks around the consonants.
	}
	return ""
}

// matchOtherLanguage compares a word with a name whose form in another language has other vowels: Peter and Пётр.
func matchOtherLanguage(w wordPart, p namePattern) Level {
	a, b := strings.TrimRight(w.consonants, "*"), strings.TrimRight(p.consonants, "*")
	if !lacksOnlyVowels(a, b) && !lacksOnlyVowels(b, a) {
		if withoutVowels := strings.TrimRight(a[:max(len(a)-1, 0)], "*"); w.isIndic &&
			len(strings.ReplaceAll(withoutVowels, "*", "")) >= 2 && lacksOnlyVowels(withoutVowels, b) {
			return LevelWarn // A postposition may follow the name without a space.
		}
		return ""
	}
	consonants := len(strings.ReplaceAll(a, "*", ""))
	switch {
	case (w.startsUpper || w.isIndic) && consonants >= 3:
		return LevelBlock
	case w.isIndic && consonants == 2:
		return LevelWarn
	case w.startsUpper && consonants == 2 && a == b, consonants >= 4:
		return LevelWarn
	}
	return ""
}

// lacksOnlyVowels reports whether a is b without some or all of its vowels.
func lacksOnlyVowels(a, b string) bool {
	i := 0
	for _, r := range []byte(b) {
		if i < len(a) && a[i] == r {
			i++
		} else if r != '*' {
			return false
		}
	}
	return i == len(a)
}

// commonPrefixLength returns with how many equal characters two words begin.
func commonPrefixLength(a, b string) int {
	ra, rb := []rune(a), []rune(b)
	n := 0
	for n < len(ra) && n < len(rb) && ra[n] == rb[n] {
		n++
	}
	return n
}

// withoutPrefixes returns an Arabic or Hebrew word, and the same word without the articles, prepositions and
// conjunctions that these languages write together with it.
func withoutPrefixes(w string) []string {
	out := []string{w}
	letters := []rune(w)
	for range 3 {
		if len(letters) < 3 || !strings.ContainsRune("وفبلكسوبלהמשכ"+"ו", letters[0]) && letters[0] != 'ا' {
			break
		}
		if letters[0] == 'ا' {
			if letters[1] != 'ل' {
				break
			}
			letters = letters[1:]
		}
		letters = letters[1:]
		out = append(out, string(letters))
	}
	return out
}
