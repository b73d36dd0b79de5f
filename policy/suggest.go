package policy

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// Suggest returns `did you mean "x"?` with the candidate that is most similar to the written word, or "" if none is
// similar.
func Suggest(writtenName string, candidates []string) string { return closest(writtenName, candidates) }

// closest returns `did you mean "x"?` with the candidate that is most similar to the written word, or "" if none is
// similar.
func closest(writtenName string, candidates []string) string {
	near, ok := yamlfile.NearestWord(writtenName, candidates)
	if !ok {
		return ""
	}
	return "did you mean " + quoteName(near) + "?"
}

// closestOrFew does the same as [closest]. If no candidate is similar and there are only few, it lists the candidates.
func closestOrFew(writtenName string, candidates []string) string {
	if near := closest(writtenName, candidates); near != "" || len(candidates) == 0 {
		return near
	}
	quoted := make([]string, 0, len(candidates))
	for _, c := range candidates[:min(len(candidates), 8)] {
		quoted = append(quoted, quoteName(c))
	}
	if len(candidates) > len(quoted) {
		quoted = append(quoted, "…")
	}
	return "it has " + strings.Join(quoted, ", ")
}

// closestOrAll does the same as [closest]. If no word is similar, it lists all words.
func closestOrAll(writtenName string, allowedWords []string) string {
	if near := closest(writtenName, allowedWords); near != "" {
		return near
	}
	return "one of " + strings.Join(allowedWords, ", ")
}
