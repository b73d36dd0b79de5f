package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// decoder converts YAML nodes to declarations, and collects all errors. It reads the forms that all sections share;
// each section has a decoder of its own.
type decoder struct {
	doc        *Document
	errs       Errors
	declaredAt map[string]place // the place of each declared name, such as "tables public.t"

	includes []wordDecl // the files named in include of the file that is being read

	onKeys func(position place, keys []string) // a test sets this function to learn which keys each mapping may have
}

func (d *decoder) fail(position place, suggestion, format string, args ...any) {
	d.errs = append(d.errs, position.Errorf(suggestion, format, args...))
}

// requireKind tells whether a node is of a kind, and reports an error if it is not.
func (d *decoder) requireKind(n *node, kind yamlfile.Kind, label string) bool {
	if n.Kind != kind {
		suggestion := ""
		switch {
		case kind == yamlfile.MappingNode && n.Kind == yamlfile.ListNode:
			if suggestion = listSlips[label]; suggestion == "" {
				suggestion = "write name: value, without dashes and square brackets"
			}
		case kind == yamlfile.ListNode && n.Kind == yamlfile.MappingNode:
			suggestion = "begin each entry with a dash, or write [ … ]"
		case kind == yamlfile.ListNode && n.Kind == yamlfile.ScalarNode:
			suggestion = "write [" + n.Value + "]"
		case kind == yamlfile.MappingNode && n.Kind == yamlfile.NullNode:
			suggestion = "indent what belongs to it, further than its name"
		case kind == yamlfile.MappingNode && n.Kind == yamlfile.ScalarNode:
			suggestion = scalarSlips[label]
		case kind == yamlfile.ScalarNode && n.Kind == yamlfile.ListNode && label == "is":
			suggestion = "one of several is any: [ … ], with a block for each"
		}
		d.fail(n.Place, suggestion, "%s must be %s, not %s", label, kind, n.Kind)
		return false
	}
	return true
}

// decodeFields calls for each key of a mapping the decoder of that key, with the key's value. Keys in later are
// reserved for later versions of pgconsent.
func (d *decoder) decodeFields(n *node, label string, decoders map[string]func(*node), later ...string) bool {
	if !d.requireKind(n, yamlfile.MappingNode, label) {
		return false
	}
	if d.onKeys != nil {
		d.onKeys(n.Place, sortedKeys(decoders))
	}
	for i, key := range n.Keys {
		if f, ok := decoders[key]; ok {
			f(n.Values[i])
			continue
		}
		if slices.Contains(later, key) {
			d.fail(n.KeyPlaces[i], "", "%q in %s is not in this version", key, label)
			continue
		}
		suggestion := closestOrFew(key, slices.Sorted(maps.Keys(decoders)))
		switch {
		case strings.HasPrefix(label, "table ") && slices.Contains(blockNames(), key):
			suggestion = "a block stands beneath rows, with a dash before it"
		case label == "the policy" && n.Values[i].Kind == yamlfile.MappingNode && slices.Contains(n.Values[i].Keys, "rows"):
			suggestion = "a table stands beneath tables"
		case label == "the policy" && slices.Contains(tableKeys, key):
			suggestion = key + " stands with the table that it speaks of: tables: { name: { rows: …, " + key + ": … } }"
		case suggestComparison(n, label) != "":
			d.fail(n.KeyPlaces[i], suggestComparison(n, label), "unknown key %q in %s", key, label)
			return false
		}
		d.fail(n.KeyPlaces[i], suggestion, "unknown key %q in %s", key, label)
	}
	return true
}

// requireFields reports keys that a mapping lacks.
func (d *decoder) requireFields(n *node, label string, fields ...string) {
	if suggestComparison(n, label) != "" { // another error about this mistake is reported
		return
	}
	for _, f := range fields {
		if n.Kind == yamlfile.MappingNode && !slices.Contains(n.Keys, f) {
			suggestion := ""
			switch {
			case f == "version":
				suggestion = `begin with "version: 1"`
			case f == "rows" && strings.HasPrefix(label, "table "):
				suggestion = "say which rows show, or rows: open if every row may"
			}
			d.fail(n.Place, suggestion, "%s needs %q", label, f)
		}
	}
}

// decodeSection calls f for each entry of a section. It reports a name that was declared before, also in another file.
func (d *decoder) decodeSection(n *node, decodeSection string, f func(position place, name string, n *node)) {
	if !d.requireKind(n, yamlfile.MappingNode, decodeSection) {
		return
	}
	for i, name := range n.Keys {
		id := decodeSection + " " + name
		if firstPosition, ok := d.declaredAt[id]; ok {
			d.fail(n.KeyPlaces[i], "", "%s has %q already, at %s:%d:%d", decodeSection, name, firstPosition.File,
				firstPosition.Line, firstPosition.Column)
			continue
		}
		d.declaredAt[id] = n.KeyPlaces[i]
		d.doc.declarations = append(d.doc.declarations, entryName{n.KeyPlaces[i], name})
		f(n.KeyPlaces[i], name, n.Values[i])
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
