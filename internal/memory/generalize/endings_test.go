package generalize

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/pgconsent/pgconsent/test/property"
)

// A word is found as a name with an ending exactly if it equals the name plus one of the listed endings.
func TestEndingsAreThoseOfTheList(t *testing.T) {
	letters := rapid.SampledFrom([]rune("aeinosstlumwjköéñ"))
	word := func(t *rapid.T, label string, limit int) string {
		return string(rapid.SliceOfN(letters, 1, limit).Draw(t, label))
	}
	property.Check(t, func(t *rapid.T) {
		name := word(t, "name", 7)
		text := name
		if rapid.Bool().Draw(t, "doubled") {
			lastRune, _ := utf8.DecodeLastRuneInString(name)
			text += string(lastRune)
		}
		switch rapid.IntRange(0, 3).Draw(t, "what follows") {
		case 0:
			text += word(t, "rest", 4)
		case 1:
			text = word(t, "other", 8)
		default:
			text += rapid.SampledFrom(nameEndings).Draw(t, "ending")
		}
		w, p := joinParts(splitParts(text)), namePattern{wordPart: joinParts(splitParts(name))}
		w.noDoubles, p.noDoubles = dropDoubles(w.plainForm), dropDoubles(p.plainForm)
		length := utf8.RuneCountInString(p.plainForm)
		want := slices.ContainsFunc(nameEndings, func(e string) bool {
			return (length >= 4 || length >= 2 && strings.HasPrefix(e, "s")) && (w.plainForm == p.plainForm+e || w.expanded == p.expanded+e ||
				w.lookalike == foldLookalikes(p.lookalike+e) && len(p.lookalike) >= 4 || length >= 5 && dropDoubles(w.plainForm) == dropDoubles(p.plainForm+e))
		})
		if got := hasNameEnding(w, p, length); got != want {
			t.Fatalf("%q of %q: %t, by the list %t", text, name, got, want)
		}
	})
}
