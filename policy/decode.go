package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// decoder turns YAML nodes into declarations, and collects all errors on the way. It reads the forms that all sections
// share; each section has a decoder of its own.
type decoder struct {
	doc        *Document
	errs       Errors
	declaredAt map[string]place // the place of each declared name, such as "tables public.t"

	includes []wordDecl // the files named in include of the file that is being read

	onKeys func(at place, keys []string) // a test sets this function to learn which keys each mapping may have
}

func (d *decoder) fail(at place, suggestion, format string, args ...any) {
	d.errs = append(d.errs, at.Errorf(suggestion, format, args...))
}

// requireKind tells whether a node is of a kind, and reports an error if it is not.
func (d *decoder) requireKind(n *node, kind yamlfile.Kind, what string) bool {
	if n.Kind != kind {
		suggestion := ""
		switch {
		case kind == yamlfile.Mapping && n.Kind == yamlfile.List:
			if suggestion = listSlips[what]; suggestion == "" {
				suggestion = "write name: value, without dashes and square brackets"
			}
		case kind == yamlfile.List && n.Kind == yamlfile.Mapping:
			suggestion = "begin each entry with a dash, or write [ … ]"
		case kind == yamlfile.List && n.Kind == yamlfile.Scalar:
			suggestion = "write [" + n.Value + "]"
		case kind == yamlfile.Mapping && n.Kind == yamlfile.Null:
			suggestion = "indent what belongs to it, further than its name"
		case kind == yamlfile.Mapping && n.Kind == yamlfile.Scalar:
			suggestion = scalarSlips[what]
		case kind == yamlfile.Scalar && n.Kind == yamlfile.List && what == "is":
			suggestion = "one of several is any: [ … ], with a block for each"
		}
		d.fail(n.Place, suggestion, "%s must be %s, not %s", what, kind, n.Kind)
		return false
	}
	return true
}

// decodeFields calls for each key of a mapping the function of that key with the value. Keys in later are reserved for
// later versions.
func (d *decoder) decodeFields(n *node, what string, known map[string]func(*node), later ...string) bool {
	if !d.requireKind(n, yamlfile.Mapping, what) {
		return false
	}
	if d.onKeys != nil {
		d.onKeys(n.Place, sortedKeys(known))
	}
	for i, key := range n.Keys {
		if f, ok := known[key]; ok {
			f(n.Values[i])
			continue
		}
		if slices.Contains(later, key) {
			d.fail(n.KeyAt[i], "", "%q in %s is not in this version", key, what)
			continue
		}
		suggestion := closestOrFew(key, slices.Sorted(maps.Keys(known)))
		switch {
		case strings.HasPrefix(what, "table ") && slices.Contains(blockNames(), key):
			suggestion = "a block stands beneath rows, with a dash before it"
		case what == "the policy" && n.Values[i].Kind == yamlfile.Mapping && slices.Contains(n.Values[i].Keys, "rows"):
			suggestion = "a table stands beneath tables"
		case what == "the policy" && slices.Contains(tableKeys, key):
			suggestion = key + " stands with the table that it speaks of: tables: { name: { rows: …, " + key + ": … } }"
		case suggestComparison(n, what) != "":
			d.fail(n.KeyAt[i], suggestComparison(n, what), "unknown key %q in %s", key, what)
			return false
		}
		d.fail(n.KeyAt[i], suggestion, "unknown key %q in %s", key, what)
	}
	return true
}

// requireFields reports fields that a mapping lacks.
func (d *decoder) requireFields(n *node, what string, fields ...string) {
	if suggestComparison(n, what) != "" { // the slip has an error of its own
		return
	}
	for _, f := range fields {
		if n.Kind == yamlfile.Mapping && !slices.Contains(n.Keys, f) {
			suggestion := ""
			switch {
			case f == "version":
				suggestion = `begin with "version: 1"`
			case f == "rows" && strings.HasPrefix(what, "table "):
				suggestion = "say which rows show, or rows: open if every row may"
			}
			d.fail(n.Place, suggestion, "%s needs %q", what, f)
		}
	}
}

// decodeSection calls f for each entry of a section. It reports a name that another file declares, too.
func (d *decoder) decodeSection(n *node, decodeSection string, f func(at place, name string, n *node)) {
	if !d.requireKind(n, yamlfile.Mapping, decodeSection) {
		return
	}
	for i, name := range n.Keys {
		id := decodeSection + " " + name
		if first, ok := d.declaredAt[id]; ok {
			d.fail(n.KeyAt[i], "", "%s has %q already, at %s:%d:%d", decodeSection, name, first.File, first.Line, first.Column)
			continue
		}
		d.declaredAt[id] = n.KeyAt[i]
		d.doc.declarations = append(d.doc.declarations, entryName{n.KeyAt[i], name})
		f(n.KeyAt[i], name, n.Values[i])
	}
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
