package policy

import (
	"slices"
	"strings"
)

// Suggest returns `did you mean "x"?` for the candidate nearest to what was written, or "" if none is near.
func Suggest(written string, candidates []string) string { return closest(written, candidates) }

// closest returns `did you mean "x"?` for the candidate nearest to what was written, or "" if none is near.
func closest(written string, candidates []string) string {
	best, distance := "", len(written)/3+2
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		if d := editDistance(written, c); d < distance {
			best, distance = c, d
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + quote(best) + "?"
}

// oneOf is closest, or the candidates themselves where none is near and they are few.
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

// among is closest, or all that are known.
func among(written string, known []string) string {
	if near := closest(written, known); near != "" {
		return near
	}
	return "one of " + strings.Join(known, ", ")
}

// editDistance is Levenshtein's, over bytes, with two neighbours that changed places counted as one slip.
func editDistance(a, b string) int {
	above, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := row[j-1]
			if a[i-1] != b[j-1] {
				cost++
			}
			next[j] = min(cost, row[j]+1, next[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], above[j-2]+1)
			}
		}
		above, row = row, next
	}
	return row[len(b)]
}
