package policytest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/pgconsent/pgconsent/policy"
)

// Place is where something stands in a file.
type Place struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

func (p Place) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

type kind int

const (
	scalar kind = iota
	null
	mapping
	list
)

func (k kind) String() string {
	return [...]string{"a single value", "nothing", "a mapping", "a list"}[k]
}

// node is the part of YAML that a test may use: mappings with plain keys, lists, scalars.
type node struct {
	Place
	kind   kind
	value  string // of a scalar
	truth  bool   // the scalar is written as true or false
	number bool   // the scalar is written as a number
	keys   []string
	keyAt  []Place
	values []*node // of a mapping, beside keys; of a list
}

// get is the value of a key, nil if it is not there.
func (n *node) get(key string) *node {
	if i := slices.Index(n.keys, key); i >= 0 {
		return n.values[i]
	}
	return nil
}

// reader collects every error of a file.
type reader struct {
	file string
	errs policy.Errors
}

func (r *reader) fail(at Place, suggestion, format string, args ...any) {
	r.errs = append(r.errs, problem(at, suggestion, format, args...))
}

func problem(at Place, suggestion, format string, args ...any) *policy.Error {
	return &policy.Error{File: at.File, Line: at.Line, Column: at.Column, Message: fmt.Sprintf(format, args...),
		Suggestion: suggestion}
}

func (r *reader) parse(data []byte) *node {
	parsed, err := parser.ParseBytes(data, 0)
	if err != nil {
		var syntax *yaml.SyntaxError
		if errors.As(err, &syntax) {
			r.fail(r.at(syntax.Token), "", "%s", syntax.Message)
		} else {
			r.fail(Place{r.file, 1, 1}, "", "not YAML: %v", err)
		}
		return nil
	}
	var root *node
	for _, doc := range parsed.Docs {
		switch {
		case doc.Body == nil:
		case root != nil:
			r.fail(r.at(doc.Body.GetToken()), "put it into a file of its own", "a second YAML document")
		default:
			root = r.convert(doc.Body)
		}
	}
	if root == nil && len(r.errs) == 0 {
		r.fail(Place{r.file, 1, 1}, `begin with "version: 1"`, "the file is empty")
	}
	return root
}

func (r *reader) at(t *token.Token) Place {
	if t == nil || t.Position == nil {
		return Place{r.file, 1, 1}
	}
	return Place{r.file, t.Position.Line, t.Position.Column}
}

func (r *reader) convert(n ast.Node) *node {
	here := r.at(n.GetToken())
	switch n := n.(type) {
	case *ast.StringNode:
		return &node{Place: here, value: n.Value}
	case *ast.LiteralNode:
		return &node{Place: here, value: n.Value.Value}
	case *ast.IntegerNode:
		return &node{Place: here, value: n.Token.Value, number: true}
	case *ast.FloatNode:
		return &node{Place: here, value: n.Token.Value, number: true}
	case *ast.BoolNode:
		return &node{Place: here, value: fmt.Sprint(n.Value), truth: true}
	case *ast.NullNode:
		return &node{Place: here, kind: null}
	case *ast.SequenceNode:
		out := &node{Place: here, kind: list}
		for _, item := range n.Values {
			out.values = append(out.values, r.convert(item))
		}
		return out
	case *ast.MappingNode:
		return r.mapping(here, n.Values)
	case *ast.MappingValueNode:
		return r.mapping(here, []*ast.MappingValueNode{n})
	default:
		r.fail(here, "write the value out", "anchors, aliases, tags and merge keys are not part of a test")
		return &node{Place: here, kind: null}
	}
}

func (r *reader) mapping(here Place, values []*ast.MappingValueNode) *node {
	out := &node{Place: here, kind: mapping}
	if len(values) > 0 {
		out.Place = r.at(values[0].Key.GetToken())
	}
	for _, v := range values {
		at := r.at(v.Key.GetToken())
		key, plain := v.Key.(ast.Node)
		var name *node
		if plain {
			name = r.convert(key)
		}
		switch {
		case name == nil || name.kind != scalar || name.value == "":
			r.fail(at, "", "a key must be a plain word")
			continue
		case slices.Contains(out.keys, name.value):
			r.fail(at, "", "the key %q is there twice", name.value)
			continue
		}
		out.keys, out.keyAt, out.values = append(out.keys, name.value), append(out.keyAt, at), append(out.values,
			r.convert(v.Value))
	}
	return out
}

// want reports a node of another kind.
func (r *reader) want(n *node, k kind, what string) bool {
	if n.kind != k {
		r.fail(n.Place, "", "%s must be %s, not %s", what, k, n.kind)
		return false
	}
	return true
}

// fields hands each value of a mapping to the function of its key, in the order of the file.
func (r *reader) fields(n *node, what string, known map[string]func(*node)) bool {
	if !r.want(n, mapping, what) {
		return false
	}
	for i, key := range n.keys {
		if f, ok := known[key]; ok {
			f(n.values[i])
			continue
		}
		names := make([]string, 0, len(known))
		for name := range known {
			names = append(names, name)
		}
		slices.Sort(names)
		suggestion := policy.Suggest(key, names)
		if suggestion == "" {
			suggestion = fmt.Sprintf("it has %v", names)
		}
		r.fail(n.keyAt[i], suggestion, "unknown key %q in %s", key, what)
	}
	return true
}

// word reads a scalar that is not empty.
func (r *reader) word(into *string, what string) func(*node) {
	return func(n *node) {
		if r.want(n, scalar, what) {
			if n.value == "" {
				r.fail(n.Place, "", "%s is empty", what)
			}
			*into = n.value
		}
	}
}

// words reads a scalar or a list of them.
func (r *reader) words(into *[]string, what string) func(*node) {
	return func(n *node) {
		*into = []string{}
		switch n.kind {
		case scalar:
			*into = []string{n.value}
		case list:
			for _, v := range n.values {
				if r.want(v, scalar, "an entry of "+what) {
					*into = append(*into, v.value)
				}
			}
		case null:
		default:
			r.want(n, list, what)
		}
	}
}
