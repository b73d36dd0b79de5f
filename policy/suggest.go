package policy

import "slices"

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

// editDistance is Levenshtein's, over bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
