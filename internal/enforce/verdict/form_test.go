package verdict

import (
	"strings"
	"testing"
)

// A value for a number of rows is checked in text and in binary format, and must not be negative.
func TestNaturalNumbers(t *testing.T) {
	for value, want := range map[string]bool{
		"0": true, "20": true, "007": true, "99999999999999999999": true,
		"\x00\x00\x00\x14": true, "\x00\x14": true, "\x00\x00\x00\x00\x00\x00\x00\x14": true,
		"": false, "-1": false, "-123": false, " -5 ": false, "\t-5\n": false, "+5": false, " 20 ": false, "1e3": false, "2.5": false, "0x10": false,
		"\xff\xff\xff\xff": false, "\xff\xff": false, "\xff\xff\xff\xff\xff\xff\xff\xfe": false, "\x00": false, "\x00\x00\x01": false,
	} {
		if NonNegative.Matches([]byte(value)) != want {
			t.Errorf("%q: %t, want %t", value, !want, want)
		}
	}
	if !NonNegative.Matches(nil) {
		t.Error("NULL is no limit")
	}
}

// A value is checked for each form that its statement requires, also if the statement requires several.
func TestCombinedValueForms(t *testing.T) {
	levels := func(n int) string { return strings.Repeat("[", n) + strings.Repeat(`{"a":`, n) }
	alone := []struct {
		form          ValueForm
		good, refused string
	}{
		{PatternPart, strings.Repeat("%", maxWildcards), strings.Repeat("%", maxWildcards+1)},
		{Pattern, `a\b%`, `a\`},
		{SearchWords, strings.Repeat("w", maxWordBytes-1), strings.Repeat("w", maxWordBytes)},
		{ShallowJSON, levels(maxLevels / 2), levels(maxLevels/2 + 1)},
		{RegularExpression, "a|b", "a|"},
		{TextQuery, "a | b", "a | | b"},
		{NonNegative, "20", "-20"},
	}
	for _, a := range alone {
		if !a.form.Matches([]byte(a.good)) {
			t.Errorf("%08b: %.40q is refused", a.form, a.good)
		}
		for _, b := range alone {
			if (a.form | b.form).Matches([]byte(a.refused)) {
				t.Errorf("%08b beside %08b: %.40q passes", a.form, b.form, a.refused)
			}
		}
	}
}
