package consent

import (
	"regexp"
	"slices"
	"strings"
)

// Categories and purposes form trees: research/medical is below research. Consent to a category includes the categories
// below it, but neither its parent nor its siblings.

var pathPattern = regexp.MustCompile(`^[A-Za-z0-9_.:-]+(/[A-Za-z0-9_.:-]+)*$`)

const maxPathBytes = 200

// PathsCover reports whether one of the granted paths is the requested path or a path above it.
func PathsCover(granted []string, requested string) bool {
	for _, p := range PathAndAncestors(requested) {
		if slices.Contains(granted, p) {
			return true
		}
	}
	return false
}

// PathAndAncestors returns a path and the paths above it, nearest first. Consent to any of them covers the path.
func PathAndAncestors(p string) []string {
	out := []string{p}
	for {
		i := strings.LastIndexByte(p, '/')
		if i < 0 {
			return out
		}
		p = p[:i]
		out = append(out, p)
	}
}

// pathsCoverAll reports whether the granted paths cover all requested paths.
func pathsCoverAll(granted, requested []string) bool {
	return !slices.ContainsFunc(requested, func(w string) bool { return !PathsCover(granted, w) })
}

func checkPaths(label string, paths []string) error {
	for _, p := range paths {
		if len(p) > maxPathBytes || !pathPattern.MatchString(p) {
			return newValidationError("a %s is not a name", label).
				hint("Names of letters, digits and _ . : -, with / between a node and what is below it; at most %d bytes.", maxPathBytes)
		}
	}
	if len(paths) > 100 {
		return newValidationError("more than 100 names of a %s", label)
	}
	return nil
}

// sortedUnique returns the paths sorted and without duplicates. The result is never nil.
func sortedUnique(paths []string) []string {
	out := append([]string{}, paths...)
	slices.Sort(out)
	return slices.Compact(out)
}

func equalSets(a, b []string) bool { return slices.Equal(sortedUnique(a), sortedUnique(b)) }
