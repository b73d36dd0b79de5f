package policy

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// Suggest returns `did you mean "x"?` for the candidate nearest to what was written, or "" if none is near.
func Suggest(written string, candidates []string) string { return closest(written, candidates) }

// closest returns `did you mean "x"?` for the candidate nearest to what was written, or "" if none is near.
func closest(written string, candidates []string) string {
	near, ok := yamlfile.Nearest(written, candidates)
	if !ok {
		return ""
	}
	return "did you mean " + quote(near) + "?"
}

// oneOf is closest. If nothing is near, it lists the candidates, if they are few.
func oneOf(written string, candidates []string) string {
	if near := closest(written, candidates); near != "" || len(candidates) == 0 {
		return near
	}
	quoted := make([]string, 0, len(candidates))
	for _, c := range candidates[:min(len(candidates), 8)] {
		quoted = append(quoted, quote(c))
	}
	if len(candidates) > len(quoted) {
		quoted = append(quoted, "…")
	}
	return "it has " + strings.Join(quoted, ", ")
}

// among is closest. If nothing is near, it lists all known words.
func among(written string, known []string) string {
	if near := closest(written, known); near != "" {
		return near
	}
	return "one of " + strings.Join(known, ", ")
}
