package yamlfile

import (
	"fmt"
	"strings"
)

// Error is a mistake in a file, or a warning about something in it, with its place.
type Error struct {
	File       string `json:"file"`
	Line       int    `json:"line"` // line, counted from 1; 0: the error is about the whole file
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

// Errors has all errors that were found in the files, in their order.
type Errors []*Error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}
