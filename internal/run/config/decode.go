package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// Problem is a mistake in a configuration, with its place in the file.
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

// Problems is the error of [Load]. It has all mistakes of a configuration, in the order of the file.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].String()
	}
	return strings.Join(lines, "\n")
}

// decoder decodes a YAML tree into structs. It reports unknown keys and wrong types as problems. It takes the text of
// scalars from the file, so that a name such as 1e5 is not read as a number.
type decoder struct {
	file   string
	places map[string]yamlfile.Place // place of each key, and of each item of a list, by its path
	// text of each scalar by its path, from the file or from the variable that overrides it
	textByPath map[string]string
	problems   Problems
}

func newDecoder(file string) *decoder {
	return &decoder{file: file, places: map[string]yamlfile.Place{}, textByPath: map[string]string{}}
}

// addProblem reports a mistake. Its place is that of the key at path, or of the closest key above it that is in the
// file. It adds the value of the key to the message, except for secrets.
func (d *decoder) addProblem(path, hint, format string, args ...any) {
	p := Problem{File: d.file, Message: fmt.Sprintf(format, args...), Hint: hint}
	if environmentValue, ok := d.textByPath[path]; ok && !strings.Contains(p.Message, environmentValue) &&
		!strings.Contains(path,
			"secret") {
		p.Message += shortQuote(environmentValue)
	}
	for ancestor := path; ; {
		if pos, ok := d.places[ancestor]; ok {
			p.Line, p.Column = pos.Line, pos.Column
			break
		}
		i := strings.LastIndexAny(ancestor, ".[")
		if i < 0 {
			break
		}
		ancestor = ancestor[:i]
	}
	d.problems = append(d.problems, p)
}

func (d *decoder) addProblemAt(at yamlfile.Place, hint, format string, args ...any) {
	d.problems = append(d.problems, Problem{File: d.file, Line: at.Line, Column: at.Column,
		Message: fmt.Sprintf(format, args...), Hint: hint})
}

var fileFormat = yamlfile.Format{SecondDocument: "one file holds one configuration"}

func (d *decoder) decode(text []byte, into any) {
	root, errs := fileFormat.Parse(d.file, text)
	for _, e := range errs {
		d.problems = append(d.problems, Problem{File: d.file, Line: e.Line, Column: e.Column, Message: e.Message,
			Hint: e.Suggestion})
	}
	switch {
	case len(errs) > 0:
	case root == nil:
		d.problems = append(d.problems, Problem{File: d.file, Message: "the file is empty",
			Hint: "A configuration begins with: version: 1"})
	default:
		d.decodeValue("", root, reflect.ValueOf(into).Elem())
	}
}

func (d *decoder) decodeValue(path string, n *yamlfile.Node, v reflect.Value) {
	if n.Kind == yamlfile.ScalarNode && n.SourceText != "" {
		d.textByPath[path] = n.SourceText
	}
	switch v.Kind() {
	case reflect.Pointer:
		if n.Kind == yamlfile.NullNode {
			d.addProblemAt(n.Place, "", "%s has no value", keyName(path))
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		d.decodeValue(path, n, v.Elem())
	case reflect.Struct:
		d.eachEntry(path, n, func(key string, at yamlfile.Place, value *yamlfile.Node) {
			field, ok := fieldByKey(v, key)
			if !ok {
				d.addProblemAt(at, suggestKey(key, fieldKeys(v.Type())), "unknown key %q in %s", key, keyName(path))
				return
			}
			d.decodeValue(joinPath(path, key), value, field)
		})
	case reflect.Map:
		if v.Type() == attributesType {
			d.decodeAttributes(path, n, v)
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		d.eachEntry(path, n, func(key string, _ yamlfile.Place, value *yamlfile.Node) {
			e := reflect.New(v.Type().Elem()).Elem()
			d.decodeValue(joinPath(path, key), value, e)
			v.SetMapIndex(reflect.ValueOf(key), e)
		})
	case reflect.Slice:
		switch {
		case v.Type() == addressesType:
			d.decodeAddresses(path, n, v)
		case n.Kind != yamlfile.ListNode:
			d.addProblemAt(n.Place, fmt.Sprintf("%s: [a, b]", lastPathKey(path)), "%s must be a list", keyName(path))
		default:
			d.decodeItems(path, n, v)
		}
	case reflect.String:
		if n.Kind == yamlfile.ScalarNode {
			v.SetString(n.SourceText)
		} else {
			d.addProblemAt(n.Place, "", "%s must be a text", keyName(path))
		}
	case reflect.Int:
		i, err := strconv.Atoi(n.SourceText)
		if n.Kind != yamlfile.ScalarNode || err != nil {
			d.addProblemAt(n.Place, "", "%s must be a whole number%s", keyName(path), shortQuote(n.SourceText))
			return
		}
		v.SetInt(int64(i))
	case reflect.Bool:
		if n.SourceText != "true" && n.SourceText != "false" {
			d.addProblemAt(n.Place, "", "%s must be true or false%s", keyName(path), shortQuote(n.SourceText))
			return
		}
		v.SetBool(n.SourceText == "true")
	default:
		d.addProblemAt(n.Place, "", "%s cannot be read", keyName(path))
	}
}

// decodeItems decodes a list into the slice v.
func (d *decoder) decodeItems(path string, n *yamlfile.Node, v reflect.Value) {
	v.Set(reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items)))
	for i, item := range n.Items {
		d.places[itemPath(path, i)] = item.Place
		d.decodeValue(itemPath(path, i), item, v.Index(i))
	}
}

// eachEntry calls f for each entry of a mapping, in the order of the file.
func (d *decoder) eachEntry(path string, n *yamlfile.Node, f func(key string, at yamlfile.Place,
	value *yamlfile.Node)) {
	if n.Kind != yamlfile.MappingNode {
		d.addProblemAt(n.Place, "", "%s must be a mapping of keys to values", keyName(path))
		return
	}
	for i, key := range n.Keys {
		d.places[joinPath(path, key)] = n.KeyPlaces[i]
		f(key, n.KeyPlaces[i], n.Values[i])
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

func fieldKeys(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("yaml"); tag != "-" {
			out = append(out, tag)
		}
	}
	return out
}

func suggestKey(key string, knownKeys []string) string {
	if nearest, ok := yamlfile.NearestWord(key, knownKeys); ok {
		return fmt.Sprintf("Did you mean %q?", nearest)
	}
	return "Known here: " + strings.Join(knownKeys, ", ") + "."
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func lastPathKey(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

func keyName(path string) string {
	if path == "" {
		return "the configuration"
	}
	return path
}

// shortQuote returns a value in quotes, for a message. It truncates a long value.
func shortQuote(writtenText string) string {
	if writtenText == "" {
		return ""
	}
	if runes := []rune(writtenText); len(runes) > 60 {
		writtenText = string(runes[:60]) + "…"
	}
	if strings.ContainsFunc(writtenText, unicode.IsControl) {
		writtenText = strconv.Quote(writtenText)
	}
	return ": here it is " + writtenText
}
