package verdict

import (
	"bytes"
	"slices"
)

// ValueForm is a condition that a text of the signed path sets on the value of a parameter. With a value that does not
// meet it, an expression could raise an error on a hidden row, and so reveal the row.
type ValueForm uint8

// The forms of values.
const (
	PatternPart       ValueForm                        = 1 << iota // a part of a LIKE pattern: short, with few wildcards
	noTrailingEscape                                               // the value does not end in LIKE's escape character
	SearchWords                                                    // a text search with few short words and few dashes
	ShallowJSON                                                    // the value is a JSON document with few levels
	RegularExpression                                              // a value for which [SafeRegularExpression] is true
	TextQuery                                                      // a value for which [SafeTextQuery] is true
	NonNegative                                                    // a whole number from 0 on, for LIMIT or OFFSET
	Pattern           = PatternPart | noTrailingEscape             // the value is a whole pattern of LIKE
)

// Within these bounds PostgreSQL does not fail on a value. It matches patterns, parses text searches and compares
// documents recursively, within max_stack_depth: 2 MB by default, at least 100 kB. 100 kB suffice for 500 levels, and
// every two bytes of a search may make one level. Words must have less than 2,048 bytes (tsearch's MAXSTRLEN) in lower
// case, which may be longer than the word itself. The stack of a web search has 32 places (STACKDEPTH).
const (
	maxPatternBytes = 64 << 10 // length of a LIKE pattern
	maxWildcards    = 50
	maxWordsBytes   = 1000 // length of a text search
	maxWordBytes    = 600
	maxDashes       = 20
	maxLevels       = 200
)

// Matches reports whether a value in UTF-8 has the form f. A nil value is NULL, which has every form.
func (f ValueForm) Matches(value []byte) bool {
	switch {
	case f&noTrailingEscape != 0 && bytes.HasSuffix(value, []byte(`\`)),
		f&PatternPart != 0 && (len(value) > maxPatternBytes || bytes.Count(value, []byte("%")) > maxWildcards),
		f&ShallowJSON != 0 && bytes.Count(value, []byte("["))+bytes.Count(value, []byte("{")) > maxLevels,
		f&RegularExpression != 0 && value != nil && !SafeRegularExpression(string(value)),
		f&TextQuery != 0 && value != nil && !SafeTextQuery(string(value)),
		f&NonNegative != 0 && value != nil && !isWholeNumber(value):
		return false
	case f&SearchWords == 0:
		return true
	}
	return len(value) <= maxWordsBytes && bytes.Count(value, []byte("-")) <= maxDashes &&
		!slices.ContainsFunc(bytes.Fields(value), func(word []byte) bool { return len(word) >= maxWordBytes })
}

// isWholeNumber reports whether a value, in text or binary format, is a whole number from 0 on. A value in binary
// format begins with a zero byte, which no text does; the largest numbers do not, so for them isWholeNumber returns
// false.
func isWholeNumber(value []byte) bool {
	binary := slices.Contains([]int{2, 4, 8}, len(value)) && value[0] == 0
	return binary || len(value) > 0 && !slices.ContainsFunc(value, func(b byte) bool { return b < '0' || b > '9' })
}

// ParametersFit reports whether the values of the parameters, from $1 on, have the forms that v.Text requires.
func (v *Verdict) ParametersFit(values [][]byte) bool {
	for number, form := range v.Forms {
		if i := int(number) - 1; i < len(values) && !form.Matches(values[i]) {
			return false
		}
	}
	return true
}
