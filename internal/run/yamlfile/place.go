package yamlfile

import "fmt"

// Place is a place in a file. Line and Column are counted from 1. If Line is 0, the place is the whole file.
type Place struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

func (p Place) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// OrElse returns this place, or other if this place is not known.
func (p Place) OrElse(other Place) Place {
	if p == (Place{}) {
		return other
	}
	return p
}

// Errorf makes an error at this place. suggestion says what to write instead; it may be "".
func (p Place) Errorf(suggestion, format string, args ...any) *Error {
	return &Error{File: p.File, Line: p.Line, Column: p.Column, Message: fmt.Sprintf(format, args...),
		Suggestion: suggestion}
}

// At returns the place. Types that embed a Place get this method.
func (p Place) At() Place { return p }
