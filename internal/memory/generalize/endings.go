package generalize

import (
	"strings"
	"unicode/utf8"
)

// nameEndings are the endings that inflected names have in languages with Latin letters.
var nameEndings = strings.Fields(
	"s es n en in an ns ens ie chen lein a e i u y o om em am im um ov ev ow ou oi oy ej ey owi ovi owa ova ka ko " +
		"ek ta te na ne ni da de la le nin un on den dan ten tan ssa lla lle lta sta sto ban ben val vel nak nek " +
		"hoz tol rol nal nel ra re ia io us os is ine ette ito ita inho inha")

var (
	endingsPlain     = endingSet(nameEndings, func(e string) string { return e })
	endingsLookalike = endingSet(nameEndings, foldLookalikes)
	endingsNoDoubles = endingSet(nameEndings, dropDoubles)

	endingsWithS          = endingSet(nameEndings, func(e string) string { return ifPrefixed("s", e) })
	endingsWithSLookalike = endingSet(nameEndings, func(e string) string { return foldLookalikes(ifPrefixed("s", e)) })
)

func endingSet(from []string, form func(string) string) map[string]bool {
	out := map[string]bool{}
	for _, e := range from {
		if f := form(e); f != "" {
			out[f] = true
		}
	}
	return out
}

// ifPrefixed returns the ending if it begins with the prefix, and "" otherwise.
func ifPrefixed(prefix, e string) string {
	if strings.HasPrefix(e, prefix) {
		return e
	}
	return ""
}

// hasNameEnding reports whether a word is a name of this length plus one of the endings. After a name of two or three
// letters only endings with s count. It runs for each word and each name, so it allocates no memory.
func hasNameEnding(w wordPart, p namePattern, length int) bool {
	plainEndings, lookalikeEndings := endingsPlain, endingsLookalike
	switch {
	case length < 2:
		return false
	case length < 4:
		plainEndings, lookalikeEndings = endingsWithS, endingsWithSLookalike
	}
	if ending, ok := strings.CutPrefix(w.plainForm, p.plainForm); ok && plainEndings[ending] {
		return true
	}
	if ending, ok := strings.CutPrefix(w.expanded, p.expanded); ok && plainEndings[ending] {
		return true
	}
	if len(p.lookalike) >= 4 { // foldLookalikes has been applied to the name already.
		if ending, ok := strings.CutPrefix(w.lookalike, p.lookalike); ok && lookalikeEndings[ending] {
			return true
		}
	}
	if length < 5 {
		return false
	}
	ending, ok := strings.CutPrefix(w.noDoubles, p.noDoubles)
	if !ok || len(ending) > 4 { // No ending has more than 4 letters.
		return false
	}
	lastRune, _ := utf8.DecodeLastRuneInString(p.plainForm)
	// dropDoubles removes the first letter of an ending if the name ends with the same letter.
	return endingsNoDoubles[ending] || endingsNoDoubles[string(lastRune)+ending]
}
