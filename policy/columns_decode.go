package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// columnDecl is an entry of the key columns of a table.
type columnDecl struct {
	place
	VisibleColumn
	generalised bool       // the entry has the key generalise; whether it sets Unit or Amount depends on the column's type
	byKey       *byKeyDecl // nil: the column exists in every statement

	category *categoryDecl // nil: the column needs no consent to a category
}

func (d *tableDecoder) decodeColumns(n *node) []columnDecl {
	if !d.requireKind(n, yamlfile.MappingNode, "columns") {
		return nil
	}
	if len(n.Keys) == 0 {
		d.fail(n.Place, "leave columns out if every column may show", "columns is empty")
	}
	out := []columnDecl{}
	for i, name := range n.Keys {
		out = append(out, d.decodeShownColumn(n.KeyPlaces[i], name, n.Values[i]))
	}
	return out
}

func (d *tableDecoder) decodeShownColumn(position place, name string, n *node) columnDecl {
	decl := columnDecl{place: position, VisibleColumn: VisibleColumn{Name: name}}
	label := "column " + name
	if n.Kind == yamlfile.ScalarNode {
		switch n.Value {
		case "allow":
		case "by_key":
			decl.byKey = &byKeyDecl{place: n.Place}
		default:
			d.fail(n.Place, suggestColumnRule(n.Value),
				"unknown rule %q of %s: write allow, by_key, { mask: ... } or { keys: ... }", n.Value, label)
		}
		return decl
	}
	rules := 0
	for _, key := range n.Keys {
		if key != "category" && key != "until" {
			rules++
		}
	}
	category := &categoryDecl{place: n.Place}
	d.decodeFields(n, label, map[string]func(*node){
		"mask":   func(v *node) { d.decodeMask(&decl, v) },
		"keys":   func(v *node) { d.decodeJsonKeys(&decl, v) },
		"by_key": func(v *node) { decl.byKey = d.decodeByKey(n.KeyPlaces[slices.Index(n.Keys, "by_key")], label, v) },
		"category": func(v *node) {
			category.place, decl.category = v.Place, category
			category.words = d.registryWords(v, "category")
		},
		"until": func(v *node) { d.decodeUntil(category, v) },
	}, "age", "decay")
	if n.Kind == yamlfile.MappingNode && (rules > 1 || len(n.Keys) == 0) {
		d.fail(n.Place, "", "%s needs one of mask, keys and by_key", label)
	}
	if n.Kind == yamlfile.MappingNode && slices.Contains(n.Keys, "until") && decl.category == nil {
		d.fail(category.untilAt, "write category: … beside it", "until is for columns with a category")
	}
	return decl
}

func (d *tableDecoder) decodeMask(decl *columnDecl, n *node) {
	switch {
	case n.Kind == yamlfile.NullNode, n.Kind == yamlfile.ScalarNode && n.Value == "null":
		decl.Mask = Null
	case n.Kind == yamlfile.ScalarNode && n.Value == "hash":
		decl.Mask = Hash
	case n.Kind == yamlfile.ScalarNode:
		d.fail(n.Place, closestOrAll(n.Value, []string{"null", "hash", "generalise"}), "unknown mask %q", n.Value)
	default:
		d.decodeFields(n, "mask", map[string]func(*node){"generalise": func(v *node) { d.decodeGeneralise(decl, v) }})
		d.requireFields(n, "mask", "generalise")
	}
}

func (d *tableDecoder) decodeGeneralise(decl *columnDecl, n *node) {
	decl.generalised = true
	if !d.requireKind(n, yamlfile.ScalarNode, "generalise") {
		return
	}
	if n.ScalarType == yamlfile.IntegerScalar {
		amount, err := strconv.Atoi(n.Value)
		if err != nil || amount < 1 || amount > 1_000_000_000 {
			d.fail(n.Place, "", "generalise must be from 1 to 1000000000")
		}
		decl.Amount = amount
		return
	}
	units := []string{"year", "month", "day"}
	for _, u := range units {
		if n.Value == u {
			decl.Unit = u
			return
		}
	}
	d.fail(n.Place, closest(n.Value, units),
		"generalise takes year, month or day for dates, a number of leading characters for text, a step for numbers")
}

func (d *tableDecoder) decodeJsonKeys(decl *columnDecl, n *node) {
	decl.Mask = Keys
	decl.Keys = d.decodeKeys(n, "keys", 1)
}

// keyTypes are the words for the types of JSON values that are no objects.
var keyTypes = []string{"string", "number", "boolean", "string[]", "number[]", "boolean[]"}

// maxKeyDepth is the largest depth to which JSON objects with listed keys may be nested.
const maxKeyDepth = 5

// decodeKeys reads the listed keys of a JSON object. depth is 1 for the outermost object. The result is sorted by name.
func (d *tableDecoder) decodeKeys(n *node, label string, depth int) (out []Key) {
	if !d.requireKind(n, yamlfile.MappingNode, label) {
		return nil
	}
	if len(n.Keys) == 0 {
		d.fail(n.Place, "to hide it, leave the column out or mask it with null", "%s is empty", label)
	}
	for i, key := range n.Keys {
		v := n.Values[i]
		switch {
		case v.Kind == yamlfile.MappingNode && depth == maxKeyDepth:
			d.fail(v.Place, "", "objects of listed keys lie at most %d deep", maxKeyDepth)
		case v.Kind == yamlfile.MappingNode:
			out = append(out, Key{Name: key, Type: "object", Keys: d.decodeKeys(v, "key "+key, depth+1)})
		case !d.requireKind(v, yamlfile.ScalarNode, "the type of key "+key):
		case !slices.Contains(keyTypes, v.Value):
			d.fail(v.Place, closest(v.Value, keyTypes),
				"unknown type %q of key %q: string, number, boolean, lists of them (string[]) and objects of keys are known", v.Value, key)
		default:
			out = append(out, Key{Name: key, Type: v.Value})
		}
	}
	slices.SortFunc(out, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	return out
}
