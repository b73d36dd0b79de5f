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
	functions []uint32 // that it calls
	types     []uint32 // that it has to do with
	nodes     []string // what it consists of, by their names: OPEXPR
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

// has tells whether a node of it has a name that begins with one of these.
func (t *tree) has(prefixes []string) bool {
	return slices.ContainsFunc(t.nodes, func(name string) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	})
}

// isType tells of the name of a field that a type's OID stands behind it. Two only look so: they say what is asked, as
// IS NULL and IS TRUE are.
func isType(name string) bool {
	if strings.HasPrefix(name, "nulltesttype") || strings.HasPrefix(name, "booltesttype") {
		return false
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, "Id"), "id")
	return strings.HasSuffix(name, "type") && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// add adds what is not there.
func add[T comparable](to []T, one T) []T {
	if slices.Contains(to, one) {
		return to
	}
	return append(to, one)
}

// unknown is the OID of nothing.
const unknown = 1<<32 - 1

// number is an OID as it is stored; what is none is that of nothing.
func number(digits string) uint32 {
	oid, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return unknown
	}
	return uint32(oid)
}

// oids are those that the first group of an expression finds, each once.
func oids(find *regexp.Regexp, text string) []uint32 {
	var out []uint32
	for _, m := range find.FindAllStringSubmatch(text, -1) {
		out = add(out, number(m[1]))
	}
	return out
}

// wholeRow tells whether it reads a whole row, which is no column that it depends on.
func (t *tree) wholeRow() bool { return t != nil && t.whole }

// columns are the numbers of those that it reads by themselves.
func (t *tree) columns() []uint32 { return oids(treeColumn, t.text) }
