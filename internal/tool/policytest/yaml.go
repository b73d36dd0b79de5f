package policytest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/policy"
)

// Place is a position in a file of tests.
type Place = yamlfile.Place

type node = yamlfile.Node

var fileFormat = yamlfile.Format{
	RefuseOther:       "anchors, aliases, tags and merge keys are not part of a test",
	SecondDocument:    "a second YAML document",
	SecondDocumentFix: "put it into a file of its own",
}

// fileReader reads a file of tests and collects all errors in it.
type fileReader struct {
	file string
	errs policy.Errors
}

func (r *fileReader) addError(place Place, suggestion, format string, args ...any) {
	r.errs = append(r.errs, place.Errorf(suggestion, format, args...))
}

// parse returns the root node, or nil if the file is empty or no valid YAML.
func (r *fileReader) parse(data []byte) *node {
	root, errs := fileFormat.Parse(r.file, data)
	r.errs = append(r.errs, errs...)
	if root == nil && len(r.errs) == 0 {
		r.addError(Place{File: r.file, Line: 1, Column: 1}, `begin with "version: 1"`, "the file is empty")
	}
	return root
}

// requireKind reports whether a node has the given kind, and adds an error if it has not.
func (r *fileReader) requireKind(n *node, kind yamlfile.Kind, label string) bool {
	if n.Kind != kind {
		r.addError(n.Place, "", "%s must be %s, not %s", label, kind, n.Kind)
		return false
	}
	return true
}

// readFields calls, for each key of a mapping, the function for that key with its value, in the order of the file.
func (r *fileReader) readFields(n *node, label string, fields map[string]func(*node)) bool {
	if !r.requireKind(n, yamlfile.MappingNode, label) {
		return false
	}
	for i, key := range n.Keys {
		if f, ok := fields[key]; ok {
			f(n.Values[i])
			continue
		}
		names := slices.Sorted(maps.Keys(fields))
		suggestion := policy.Suggest(key, names)
		if suggestion == "" {
			suggestion = fmt.Sprintf("it has %v", names)
		}
		r.addError(n.KeyPlaces[i], suggestion, "unknown key %q in %s", key, label)
	}
	return true
}

// wordReader returns a function that reads a scalar into a string. An empty scalar is an error.
func (r *fileReader) wordReader(into *string, label string) func(*node) {
	return func(n *node) {
		if r.requireKind(n, yamlfile.ScalarNode, label) {
			if n.Value == "" {
				r.addError(n.Place, "", "%s is empty", label)
			}
			*into = n.Value
		}
	}
}

// wordsReader returns a function that reads a scalar, or a list of scalars, into a list of strings.
func (r *fileReader) wordsReader(into *[]string, label string) func(*node) {
	return func(n *node) {
		*into = []string{}
		switch n.Kind {
		case yamlfile.ScalarNode:
			*into = []string{n.Value}
		case yamlfile.ListNode:
			for _, v := range n.Items {
				if r.requireKind(v, yamlfile.ScalarNode, "an entry of "+label) {
					*into = append(*into, v.Value)
				}
			}
		case yamlfile.NullNode:
		default:
			r.requireKind(n, yamlfile.ListNode, label)
		}
	}
}
