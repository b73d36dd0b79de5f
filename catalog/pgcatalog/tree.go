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
}

var (
	treeFunction = regexp.MustCompile(`:(?:opfuncid|funcid) ([0-9]+)`)
	treeType     = regexp.MustCompile(`:([a-z_]*type(?:id|Id)?) ([0-9]+)`)
	treeColumn   = regexp.MustCompile(`:varattno ([0-9]+)`)
)

// newTree is nil where there is no expression.
func newTree(text *string) *tree {
	if text == nil {
		return nil
	}
	t := &tree{text: *text, functions: oids(treeFunction, *text)}
	for _, m := range treeType.FindAllStringSubmatch(*text, -1) {
		if strings.HasPrefix(m[1], "nulltesttype") || strings.HasPrefix(m[1], "booltesttype") { // these are no types, but what is asked
			continue
		}
		if oid := number(m[2]); !slices.Contains(t.types, oid) {
			t.types = append(t.types, oid)
		}
	}
	return t
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
		if oid := number(m[1]); !slices.Contains(out, oid) {
			out = append(out, oid)
		}
	}
	return out
}

// wholeRow tells whether it reads a whole row, which is no column that it depends on.
func (t *tree) wholeRow() bool { return t != nil && strings.Contains(t.text, ":varattno 0 ") }

// columns are the numbers of those that it reads by themselves.
func (t *tree) columns() []uint32 { return oids(treeColumn, t.text) }
