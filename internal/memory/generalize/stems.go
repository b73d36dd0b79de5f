package generalize

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// nameStem is the form of a name to which endings of grammatical cases are added, if it differs from the name: Павл-
// for Павел.
type nameStem struct {
	text    string
	endings map[string]bool
}

// These are endings in lower case and without marks, grouped by how a name changes before them.
var (
	// endings after Slavic names that lose their last e or o: Павел, Павл-а
	endingsAfterFleetingVowel = wordSet("a u e i y om em ovi ova ovo owi ow ie iem ami ach ech my а у е и ы ом ем ам ами ах " +
		"ов ова ове ови ю я")
	// endings after Slavic names whose last consonant changes: Ольга, Ольз-і
	endingsAfterSoftening = wordSet("e i ie y і и е")
	// endings after Finnish names in -nen, which change to -s-: Virtanen, Virtas-en
	finnishNenEndings = wordSet("en ta ella elle elta essa esta een eksi ia ille illa ilta ten et iin")
	// endings after Finnish names whose consonants become weaker before them: Lahti, Lahde-n
	endingsAfterWeakening = wordSet("n lla lle lta ssa sta ksi t")
	// endings after Turkish names whose last t becomes d: Murat, Murad-ı
	endingsAfterVoicing = wordSet("i in e a un u on den dan ten tan im imiz")
	// endings after Slavic names that are declined like adjectives: Kowalski, Kowalski-ego
	endingsOfAdjectives = wordSet("mu ho ego emu go m meho")
)

// softenedEndings says how the last consonants of a Slavic name change before e and i.
var softenedEndings = [][2]string{
	{"cka", "cc"}, {"cha", "sz"}, {"cha", "s"}, {"sta", "sci"}, {"ka", "c"}, {"ga", "dz"}, {"ga", "z"}, {"ha", "z"}, {
		"ha", "s"}, {"ra", "rz"}, {"ta", "ci"}, {"da", "dzi"},
	{"ка", "ц"}, {"ка", "ч"}, {"га", "з"}, {"ха", "с"},
}

// weakConsonants says how the consonants before the last vowel of a Finnish name change before some endings.
var weakConsonants = map[string]string{"ht": "hd", "nt": "nn", "nk": "ng", "mp": "mm", "lt": "ll", "rt": "rr"}

// diminutiveSuffixes are suffixes that make diminutives of Russian and Polish names.
var diminutiveSuffixes = []string{"ушк", "юшк", "ышк", "очк", "ечк", "оньк", "еньк", "чик", "уш", "юш", "ул", "usk",
	"uszk", "ock", "eck", "ick", "eczk", "enk", "onk", "usia", "unia", "ulka", "uska"}

const vowels = "aeiouyаеиоуыэюяі"

// inflectedStems returns the stems to which inflection adds endings. The name is in lower case and without marks.
func inflectedStems(name string) []nameStem {
	var out []nameStem
	add := func(text string, endings map[string]bool) {
		if utf8.RuneCountInString(text) >= 3 {
			out = append(out, nameStem{text, endings})
		}
	}
	r := []rune(name)
	n := len(r)
	vowel := func(i int) bool { return strings.ContainsRune(vowels, r[i]) }
	if n >= 3 && strings.ContainsRune("eoео", r[n-2]) && !vowel(n-1) && !vowel(n-3) {
		before, lastLetter := string(r[:n-2]), string(r[n-1])
		add(before+lastLetter, endingsAfterFleetingVowel)
		if r[n-3] == 'л' || r[n-3] == 'н' {
			add(before+"ь"+lastLetter, endingsAfterFleetingVowel)
		}
	}
	for _, s := range softenedEndings {
		if before, ok := strings.CutSuffix(name, s[0]); ok {
			add(before+s[1], endingsAfterSoftening)
		}
	}
	if before, ok := strings.CutSuffix(name, "nen"); ok {
		add(before+"s", finnishNenEndings)
	}
	if n >= 5 && vowel(n-1) {
		if weakenedConsonants, ok := weakConsonants[string(r[n-3:n-1])]; ok {
			add(string(r[:n-3])+weakenedConsonants+string(r[n-1]), endingsAfterWeakening)
			if r[n-1] == 'i' {
				add(string(r[:n-3])+weakenedConsonants+"e", endingsAfterWeakening)
			}
		}
	}
	if n >= 5 && r[n-1] == 't' && vowel(n-2) {
		add(string(r[:n-1])+"d", endingsAfterVoicing)
	}
	if n >= 4 && (r[n-1] == 'i' || r[n-1] == 'y') {
		add(name, endingsOfAdjectives)
		add(string(r[:n-1]), endingsOfAdjectives)
	}
	return out
}

// hasChangedStem reports whether a word is an inflected form or a diminutive of a name whose stem differs from the
// name.
func hasChangedStem(word string, p namePattern) bool {
	for _, s := range p.stems {
		if ending, ok := strings.CutPrefix(word, s.text); ok && s.endings[ending] {
			return true
		}
	}
	withoutVowels := strings.TrimRight(p.plainForm, vowels)
	if utf8.RuneCountInString(withoutVowels) < 3 {
		return false
	}
	ending, ok := strings.CutPrefix(word, withoutVowels)
	return ok && utf8.RuneCountInString(ending) <= 7 &&
		slices.ContainsFunc(diminutiveSuffixes, func(d string) bool { return strings.HasPrefix(ending, d) })
}

// isReversed reports whether a word is the other word written backwards.
func isReversed(word, other string) bool {
	if len(word) != len(other) {
		return false
	}
	r := []rune(word)
	slices.Reverse(r)
	return string(r) == other
}
