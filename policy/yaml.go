package policy

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// place is where something stands.
type place struct {
	file         string
	line, column int
}

func (p place) errorf(suggestion, message string) *Error {
	return &Error{File: p.file, Line: p.line, Column: p.column, Message: message, Suggestion: suggestion}
}

// or is another place where this one is not known.
func (p place) or(other place) place {
	if p == (place{}) {
		return other
	}
	return p
}

// warningf is a warning with its place.
func (p place) warningf(format string, args ...any) *Error {
	return p.errorf("", fmt.Sprintf(format, args...))
}

// nodeKind is the kind of a node.
type nodeKind int

const (
	scalarNode nodeKind = iota
	nullNode
	mapNode
	listNode
)

func (k nodeKind) String() string {
	return [...]string{"a single value", "nothing", "a mapping", "a list"}[k]
}

// node is the part of YAML that a policy may use: mappings with plain keys, lists and scalars. Anchors, aliases, tags and
// merge keys say things twice or say them elsewhere, and are refused.
type node struct {
	place
	kind    nodeKind
	value   string // of a scalar
	literal string // "string", "int", "float", "bool": how the scalar is written
	keys    []string
	keyAt   []place
	values  []*node // of a mapping, beside keys
	items   []*node // of a list

	origin   string // of a string: how it is written
	originAt place  // of the first character of origin
}

// parseYAML reads one file. A nil node is an empty one.
func parseYAML(file string, data []byte) (*node, *Error) {
	start := place{file, 1, 1}
	data, wrong := readable(file, data)
	if wrong != nil {
		return nil, wrong
	}
	tokens := lexer.Tokenize(string(data))
	if wrong := tooDeep(file, tokens); wrong != nil {
		return nil, wrong
	}
	parsed, err := parser.Parse(tokens, 0)
	if err != nil {
		var syntax yaml.Error
		if errors.As(err, &syntax) {
			here := at(file, syntax.GetToken())
			if wrong := fromEnvironment(here, line(data, here.line)); wrong != nil { // whose braces the parser takes for a mapping's
				return nil, wrong
			}
			return nil, here.errorf(inPlainWords(syntax.GetMessage()))
		}
		return nil, start.errorf("", "not YAML: "+err.Error())
	}
	var root *node
	for i, doc := range parsed.Docs {
		if doc.Body == nil {
			continue
		}
		if i > 0 && root != nil {
			return nil, at(file, doc.Body.GetToken()).errorf("put it into a file of its own", "a second YAML document")
		}
		var e *Error
		if root, e = convert(file, doc.Body); e != nil {
			return nil, e
		}
	}
	return root, nil
}

func at(file string, t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{file, 1, 1}
	}
	return place{file, t.Position.Line, t.Position.Column}
}

func convert(file string, n ast.Node) (*node, *Error) {
	here := at(file, n.GetToken())
	scalar := func(value, literal string) (*node, *Error) {
		return &node{place: here, kind: scalarNode, value: value, literal: literal}, nil
	}
	switch n := n.(type) {
	case *ast.StringNode:
		if wrong := fromEnvironment(here, n.Value); wrong != nil {
			return nil, wrong
		}
		out, _ := scalar(n.Value, "string")
		out.origin, out.originAt = withoutIndent(n.Token.Origin), here
		return out, nil
	case *ast.LiteralNode:
		if wrong := fromEnvironment(here, n.Value.Value); wrong != nil {
			return nil, wrong
		}
		out, _ := scalar(n.Value.Value, "string")
		out.origin, out.originAt = n.Value.Token.Origin, place{file, here.line + 1, 1}
		return out, nil
	case *ast.IntegerNode:
		return scalar(n.Token.Value, "int")
	case *ast.FloatNode:
		return scalar(n.Token.Value, "float")
	case *ast.BoolNode:
		if n.Value {
			return scalar("true", "bool")
		}
		return scalar("false", "bool")
	case *ast.NullNode:
		return &node{place: here, kind: nullNode}, nil
	case *ast.SequenceNode:
		out := &node{place: here, kind: listNode}
		for _, item := range n.Values {
			converted, err := convert(file, item)
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, converted)
		}
		return out, nil
	case *ast.MappingNode:
		return convertMap(file, here, n.Values)
	case *ast.MappingValueNode:
		return convertMap(file, here, []*ast.MappingValueNode{n})
	default:
		return nil, here.errorf("write the value out", "anchors, aliases, tags and merge keys are not part of a policy")
	}
}

func convertMap(file string, here place, values []*ast.MappingValueNode) (*node, *Error) {
	out := &node{place: here, kind: mapNode}
	if len(values) > 0 {
		out.place = at(file, values[0].Key.GetToken())
	}
	for _, v := range values {
		keyAt := at(file, v.Key.GetToken())
		key, err := convertKey(file, v.Key)
		if err != nil {
			return nil, err
		}
		for _, seen := range out.keys {
			if seen == key {
				return nil, keyAt.errorf("", "the key "+quote(key)+" is there twice")
			}
		}
		value, err := convert(file, v.Value)
		if err != nil {
			return nil, err
		}
		out.keys = append(out.keys, key)
		out.keyAt = append(out.keyAt, keyAt)
		out.values = append(out.values, value)
	}
	return out, nil
}

func convertKey(file string, key ast.MapKeyNode) (string, *Error) {
	here := at(file, key.GetToken())
	plain, ok := key.(ast.Node)
	if !ok {
		return "", here.errorf("", "a key must be a plain word")
	}
	n, err := convert(file, plain)
	if err != nil {
		return "", err
	}
	if n.kind != scalarNode || n.value == "" {
		return "", here.errorf("", "a key must be a plain word")
	}
	if oddSpace(n.value) {
		return "", here.errorf("write plain spaces",
			"in or before this name stands a space of another kind, or one that nobody sees")
	}
	return n.value, nil
}

func quote(s string) string { return `"` + s + `"` }
