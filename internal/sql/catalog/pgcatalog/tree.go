package pgcatalog

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tree is an expression, or the body of a function in SQL, as the catalogs store it.
type tree struct {
	text      string
	functions []uint32 // functions that it calls
	types     []uint32 // types of the values in it
	nodes     []string // the names of its nodes, such as OPEXPR
	whole     bool
}

var treeColumn = regexp.MustCompile(`:varattno ([0-9]+)`)

// newTree is nil where there is no expression. It looks for the marks before the names of nodes and their fields:
// regular expressions take ten times as long.
func newTree(text *string) *tree {
	if text == nil {
		return nil
	}
	t := &tree{text: *text, whole: strings.Contains(*text, ":varattno 0 ")}
	for rest := *text; ; {
		at := strings.IndexAny(rest, ":{")
		if at < 0 {
			return t
		}
		node := rest[at] == '{'
		rest = rest[at+1:]
		name, value, _ := strings.Cut(rest, " ")
		digits := value[:len(value)-len(strings.TrimLeft(value, "0123456789"))]
		switch {
		case node:
			t.nodes = add(t.nodes, name)
		case digits == "":
		case name == "funcid", name == "opfuncid":
			t.functions = add(t.functions, number(digits))
		case isType(name):
			t.types = add(t.types, number(digits))
		}
	}
}

// has tells whether the name of one of the tree's nodes begins with one of the prefixes.
func (t *tree) has(prefixes []string) bool {
	return slices.ContainsFunc(t.nodes, func(name string) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	})
}

// isType tells whether a type's OID stands behind the name of a field. Two names only look so, nulltesttype and
// booltesttype: a kind of test stands behind them, such as IS NULL or IS TRUE.
func isType(name string) bool {
	if strings.HasPrefix(name, "nulltesttype") || strings.HasPrefix(name, "booltesttype") {
		return false
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, "Id"), "id")
	return strings.HasSuffix(name, "type") && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// add adds one to a list that does not have it yet.
func add[T comparable](to []T, one T) []T {
	if slices.Contains(to, one) {
		return to
	}
	return append(to, one)
}

// unknown is an OID that no object has.
const unknown = 1<<32 - 1

// number is the OID that the digits say; unknown, if they say none.
func number(digits string) uint32 {
	oid, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return unknown
	}
	return uint32(oid)
}

// oids are the OIDs that the first group of a regular expression finds in a text, each once.
func oids(find *regexp.Regexp, text string) []uint32 {
	var out []uint32
	for _, m := range find.FindAllStringSubmatch(text, -1) {
		out = add(out, number(m[1]))
	}
	return out
}

// wholeRow tells whether the tree reads a whole row, for which pg_depend names no column.
func (t *tree) wholeRow() bool { return t != nil && t.whole }

// columns are the numbers of the columns that the tree reads one by one; see wholeRow.
func (t *tree) columns() []uint32 { return oids(treeColumn, t.text) }
