package config

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Problem is one thing wrong with a configuration.
type Problem struct {
	File         string
	Line, Column int
	Message      string
	Hint         string
}

func (p Problem) String() string {
	s := fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
	if p.Line == 0 {
		s = fmt.Sprintf("%s: %s", p.File, p.Message)
	}
	if p.Hint != "" {
		s += "\n    " + p.Hint
	}
	return s
}

// Problems is the error of [Load]: everything that is wrong, in the file's order.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].String()
	}
	return strings.Join(lines, "\n")
}

// decoder reads a YAML tree into structs. It knows nothing that it was not told: an unknown key, a wrong type, an alias
// or a merge is a problem. Scalars are taken as written, so that a key like 1e5 stays what it is.
type decoder struct {
	file string
	at   map[string]token.Position // path of each key → where it stands
	errs Problems
}

func newDecoder(file string) *decoder { return &decoder{file: file, at: map[string]token.Position{}} }

// problem reports something at a key's path, or at the closest one above it that the file has.
func (d *decoder) problem(path, hint, format string, args ...any) {
	p := Problem{File: d.file, Message: fmt.Sprintf(format, args...), Hint: hint}
	for at := path; ; {
		if pos, ok := d.at[at]; ok {
			p.Line, p.Column = pos.Line, pos.Column
			break
		}
		i := strings.LastIndexByte(at, '.')
		if i < 0 {
			break
		}
		at = at[:i]
	}
	d.errs = append(d.errs, p)
}

func (d *decoder) node(n ast.Node, hint, format string, args ...any) {
	p := Problem{File: d.file, Message: fmt.Sprintf(format, args...), Hint: hint}
	if t := n.GetToken(); t != nil {
		p.Line, p.Column = t.Position.Line, t.Position.Column
	}
	d.errs = append(d.errs, p)
}

func (d *decoder) decode(text []byte, into any) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		p := Problem{File: d.file, Message: err.Error()}
		var e yaml.Error
		if errors.As(err, &e) {
			p.Message = e.GetMessage()
			if t := e.GetToken(); t != nil {
				p.Line, p.Column = t.Position.Line, t.Position.Column
			}
		}
		d.errs = append(d.errs, p)
		return
	}
	var docs []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil {
			docs = append(docs, doc.Body)
		}
	}
	switch len(docs) {
	case 0:
		d.errs = append(d.errs, Problem{File: d.file, Message: "the file is empty",
			Hint: "A configuration begins with: version: 1"})
	case 1:
		d.value("", docs[0], reflect.ValueOf(into).Elem())
	default:
		d.node(docs[1], "", "one file holds one configuration")
	}
}

func (d *decoder) value(path string, n ast.Node, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if _, null := n.(*ast.NullNode); null {
			d.node(n, "", "%s has no value", name(path))
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		d.value(path, n, v.Elem())
	case reflect.Struct:
		d.entries(path, n, func(key string, kn ast.Node, vn ast.Node) {
			field, ok := fieldByKey(v, key)
			if !ok {
				d.node(kn, suggestion(key, keys(v.Type())), "unknown key %q in %s", key, name(path))
				return
			}
			d.value(join(path, key), vn, field)
		})
	case reflect.Map:
		if v.Type() == attributesType {
			d.attributes(path, n, v)
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		d.entries(path, n, func(key string, _ ast.Node, vn ast.Node) {
			e := reflect.New(v.Type().Elem()).Elem()
			d.value(join(path, key), vn, e)
			v.SetMapIndex(reflect.ValueOf(key), e)
		})
	case reflect.Slice:
		seq, ok := n.(*ast.SequenceNode)
		if !ok {
			d.node(n, fmt.Sprintf("%s: [a, b]", last(path)), "%s must be a list", name(path))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values)))
		for i, item := range seq.Values {
			d.value(fmt.Sprintf("%s[%d]", path, i), item, v.Index(i))
		}
	case reflect.String:
		if s, ok := scalar(n); ok {
			v.SetString(s)
		} else {
			d.node(n, "", "%s must be a text", name(path))
		}
	case reflect.Int:
		s, ok := scalar(n)
		i, err := strconv.Atoi(s)
		if !ok || err != nil {
			d.node(n, "", "%s must be a whole number", name(path))
			return
		}
		v.SetInt(int64(i))
	case reflect.Bool:
		s, _ := scalar(n)
		if s != "true" && s != "false" {
			d.node(n, "", "%s must be true or false", name(path))
			return
		}
		v.SetBool(s == "true")
	default:
		d.node(n, "", "%s cannot be read", name(path))
	}
}

// entries calls f for each entry of a mapping. Keys are unique: the parser sees to it.
func (d *decoder) entries(path string, n ast.Node, f func(key string, kn, vn ast.Node)) {
	var values []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	default:
		d.node(n, "", "%s must be a mapping of keys to values", name(path))
		return
	}
	for _, e := range values {
		key, ok := scalar(e.Key)
		if !ok {
			d.node(e.Key, "Write the keys out.", "aliases and merges are not known in a configuration")
			continue
		}
		d.at[join(path, key)] = *e.Key.GetToken().Position
		f(key, e.Key, e.Value)
	}
}

// scalar returns the text of a scalar as written, without quotes.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	default:
		return "", false
	}
}

func fieldByKey(v reflect.Value, key string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if tag := v.Type().Field(i).Tag.Get("yaml"); tag == key && tag != "-" {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

func keys(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("yaml"); tag != "-" {
			out = append(out, tag)
		}
	}
	return out
}

func suggestion(key string, known []string) string {
	if best, ok := closest(key, known); ok {
		return fmt.Sprintf("Did you mean %q?", best)
	}
	return "Known here: " + strings.Join(known, ", ") + "."
}

// closest returns the known word at the smallest edit distance, if that is small enough to be a slip.
func closest(word string, known []string) (string, bool) {
	best, distance := "", 1+len(word)/3
	for _, k := range known {
		if d := edits(word, k); d <= distance && (best == "" || d < distance) {
			best, distance = k, d
		}
	}
	return best, best != ""
}

func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func last(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

func name(path string) string {
	if path == "" {
		return "the configuration"
	}
	return path
}
