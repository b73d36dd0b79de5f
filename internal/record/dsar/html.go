package dsar

import (
	_ "embed" // for the go:embed line below
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"
)

//go:embed report.html.tmpl
var pageText string

// maxTableRows is how many lines a table of the page has at most. The JSON report has all of them.
const maxTableRows = 200

var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"instant": Instant,
	"when": func(t *time.Time) string {
		if t == nil {
			return "no date"
		}
		return Instant(*t)
	},
	"machine": func(t any) string {
		switch t := t.(type) {
		case time.Time:
			return t.UTC().Format(time.RFC3339)
		case *time.Time:
			if t != nil {
				return t.UTC().Format(time.RFC3339)
			}
		}
		return ""
	},
	"join": func(words []string) string { return strings.Join(words, ", ") },
	"everything": func(grantee, scope string) string {
		to, about := "everybody", "everything"
		if grantee != "*" {
			to = grantee
		}
		if scope != "*" {
			about = scope
		}
		return to + ", about " + about
	},
	"word": func(p *string) string {
		if p == nil {
			return "–"
		}
		return *p
	},
	"keys": func(keys [][]string) string {
		var out []string
		for i, k := range keys {
			if i == 20 {
				out = append(out, fmt.Sprintf("and %d more", len(keys)-i))
				break
			}
			out = append(out, strings.Join(k, " "))
		}
		return strings.Join(out, ", ")
	},
	"number": groupDigits,
	"newest": func(all []Retrieval) []Retrieval {
		out := slices.Clone(all)
		slices.Reverse(out)
		return out[:min(len(out), maxTableRows)]
	},
	"newest_calls": func(all []InterfaceCall) []InterfaceCall {
		out := slices.Clone(all)
		slices.Reverse(out)
		return out[:min(len(out), maxTableRows)]
	},
	"more_calls": func(all []InterfaceCall) int { return max(0, len(all)-maxTableRows) },
	"more":       func(all []Retrieval) int { return max(0, len(all)-maxTableRows) },
	"days":       func(all []Day) []Day { return all[max(0, len(all)-31):] },
	"row":        func(j json.RawMessage) string { return string(j) },
}).Parse(pageText))

// groupDigits returns a number with spaces between groups of three digits.
func groupDigits(n any) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + " " + digits[i:]
	}
	return digits
}

// WriteHTML writes the report as an HTML page that loads nothing: no scripts, fonts or pictures. All contents are
// escaped.
func (r *Report) WriteHTML(w io.Writer) error { return page.Execute(w, r) }

// WriteJSON writes the report as docs/schema/dsar.json describes.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
