package yamlfile

import (
	"fmt"
	"strings"
)

// Error is one thing that is wrong with a file, or unwise in it, with its place.
type Error struct {
	File       string `json:"file"`
	Line       int    `json:"line"` // begins with 1; 0: the whole file
	Column     int    `json:"column"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion,omitempty"`
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": " + e.Message)
	if e.Suggestion != "" {
		b.WriteString(" (" + e.Suggestion + ")")
	}
	return b.String()
}

// Errors are all errors of one reading, in the order of the files.
type Errors []*Error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}
