package pgcatalog

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tree is an expression, or the parsed body of an SQL function, as the catalogs store it (pg_node_tree).
type tree struct {
	text        string
	functions   []uint32 // functions that the expression calls
	types       []uint32 // types of the values in the expression
	nodes       []string // the names of its nodes, such as OPEXPR
	hasWholeRow bool
}

var treeColumn = regexp.MustCompile(`:varattno ([0-9]+)`)

// newTree parses a stored expression; it returns nil for NULL. It searches for the characters that begin names of nodes
// and fields, since regular expressions would take ten times as long.
func newTree(text *string) *tree {
	if text == nil {
		return nil
	}
	t := &tree{text: *text, hasWholeRow: strings.Contains(*text, ":varattno 0 ")}
	for rest := *text; ; {
		valueStart := strings.IndexAny(rest, ":{")
		if valueStart < 0 {
			return t
		}
		isNode := rest[valueStart] == '{'
		rest = rest[valueStart+1:]
		name, value, _ := strings.Cut(rest, " ")
		digits := value[:len(value)-len(strings.TrimLeft(value, "0123456789"))]
		switch {
		case isNode:
			t.nodes = appendNew(t.nodes, name)
		case digits == "":
		case name == "funcid", name == "opfuncid":
			t.functions = appendNew(t.functions, parseOID(digits))
		case isType(name):
			t.types = appendNew(t.types, parseOID(digits))
		}
	}
}

// hasNode tells whether the name of one of the tree's nodes begins with one of the prefixes.
func (t *tree) hasNode(prefixes []string) bool {
	return slices.ContainsFunc(t.nodes, func(name string) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	})
}

// isType tells whether the field with this name holds the OID of a type. The fields nulltesttype and booltesttype hold
// a kind of test instead, such as IS NULL or IS TRUE.
func isType(name string) bool {
	if strings.HasPrefix(name, "nulltesttype") || strings.HasPrefix(name, "booltesttype") {
		return false
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, "Id"), "id")
	return strings.HasSuffix(name, "type") && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// appendNew appends a value to a list unless the list has the value already.
func appendNew[T comparable](to []T, value T) []T {
	if slices.Contains(to, value) {
		return to
	}
	return append(to, value)
}

// unknownOID is an OID that no object has.
const unknownOID = 1<<32 - 1

// parseOID returns the OID that the digits spell, or unknownOID if they spell none.
func parseOID(digits string) uint32 {
	oid, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return unknownOID
	}
	return uint32(oid)
}

// findOIDs returns the OIDs that the first group of a regular expression matches in a text, each once.
func findOIDs(find *regexp.Regexp, text string) []uint32 {
	var out []uint32
	for _, m := range find.FindAllStringSubmatch(text, -1) {
		out = appendNew(out, parseOID(m[1]))
	}
	return out
}

// readsWholeRow tells whether the expression reads a whole row. For such an expression pg_depend names no column.
func (t *tree) readsWholeRow() bool { return t != nil && t.hasWholeRow }

// columns returns the numbers of the columns that the expression reads; 0 stands for a whole row.
func (t *tree) columns() []uint32 { return findOIDs(treeColumn, t.text) }
