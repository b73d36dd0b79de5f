package yamlfile

import "fmt"

// Place is a place in a file. Line and Column are counted from 1; if Line is 0 it means the whole file.
type Place struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

func (p Place) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// OrElse returns the other place if this one is not known.
func (p Place) OrElse(other Place) Place {
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

// At returns the place itself, so that a type which embeds a Place has the method.
func (p Place) At() Place { return p }
