package yamlfile

import "slices"

// NearestWord returns the candidate with the smallest edit distance to word. It returns false if no candidate is
// similar enough.
func NearestWord(word string, candidates []string) (string, bool) {
	nearest, distance := "", len(word)/3+2
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		if d := editDistance(word, c); d < distance {
			nearest, distance = c, d
		}
	}
	return nearest, nearest != ""
}

// editDistance returns the edit distance of two texts in bytes. Swapping two neighbouring bytes counts as one edit.
func editDistance(a, b string) int {
	rowAbove, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		nextRow := make([]int, len(b)+1)
		nextRow[0] = i
		for j := 1; j <= len(b); j++ {
			cost := row[j-1]
			if a[i-1] != b[j-1] {
				cost++
			}
			nextRow[j] = min(cost, row[j]+1, nextRow[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				nextRow[j] = min(nextRow[j], rowAbove[j-2]+1)
			}
		}
		rowAbove, row = row, nextRow
	}
	return row[len(b)]
}
