package verdict

import (
	"bytes"
	"slices"
)

// Form is what a text of the gate door counts on in the value of a parameter: of others an expression could fail, when it came to a
// row that is hidden.
type Form uint8

// The forms.
const (
	Pattern Form = 1 << iota // of LIKE: it does not end in its escape
	Words                    // of a text search: few words, and no long ones
)

// maxWords is how many bytes a text for a search may have. PostgreSQL 15 to 18 read 8,000 words with the stack that they have unless told otherwise, and
// words of less than 2,048 bytes (tsearch's MAXSTRLEN).
const (
	maxWords = 4000
	maxWord  = 2000
)

// Holds tells whether a value, in UTF-8, has the form. NULL is nil, and has every form.
func (f Form) Holds(value []byte) bool {
	if f&Pattern != 0 && bytes.HasSuffix(value, []byte(`\`)) {
		return false
	}
	if f&Words == 0 || len(value) < maxWord {
		return true
	}
	return len(value) <= maxWords && !slices.ContainsFunc(bytes.Fields(value), func(word []byte) bool { return len(word) >= maxWord })
}

// Fit tells whether the values of the parameters, from $1 on, have the forms that the text counts on.
func (v *Verdict) Fit(values [][]byte) bool {
	for number, form := range v.Forms {
		if i := int(number) - 1; i < len(values) && !form.Holds(values[i]) {
			return false
		}
	}
	return true
}
