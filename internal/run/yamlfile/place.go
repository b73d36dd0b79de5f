package yamlfile

import "fmt"

// Place is a place in a file. Line and Column begin with 1; with Line 0 it is the whole file.
type Place struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

func (p Place) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// Or returns another place if this one is not known.
func (p Place) Or(other Place) Place {
	if p == (Place{}) {
		return other
	}
	return p
}

// Errorf makes an error at this place. The suggestion says what to write instead; "" for none.
func (p Place) Errorf(suggestion, format string, args ...any) *Error {
	return &Error{File: p.File, Line: p.Line, Column: p.Column, Message: fmt.Sprintf(format, args...),
		Suggestion: suggestion}
}

// At returns the place: a type that embeds a Place says by it where it is.
func (p Place) At() Place { return p }
