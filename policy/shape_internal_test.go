package policy

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/test/tier"
)

// examples generates example nodes for a shape. Together they use every key and every alternative.
type examples struct {
	line int
	want map[place]*shape // the shapes of the generated mappings, by position
	open map[string]int   // how often a named shape occurs on the current path
}

func (x *examples) at() place {
	x.line++
	return place{File: "example.yaml", Line: x.line, Column: 1}
}

func (x *examples) scalar(value string, literal yamlfile.ScalarType) []*node {
	return []*node{{Place: x.at(), Kind: yamlfile.ScalarNode, Value: value, ScalarType: literal}}
}

func (x *examples) of(s *shape) []*node {
	switch s.kind {
	case referenceKind:
		if x.open[s.definitionName] > 1 { // a shape may contain itself once; deeper nesting gives millions of examples
			return nil
		}
		x.open[s.definitionName]++
		defer func() { x.open[s.definitionName]-- }()
		return x.of(s.resolve())
	case wordKind:
		if s.words == nil {
			return x.scalar(s.example, "string")
		}
		var out []*node
		for _, w := range s.words {
			out = append(out, x.scalar(w, "string")...)
		}
		return out
	case textKind:
		return x.scalar(s.example, "string")
	case numberKind:
		return x.scalar(strconv.Itoa(max(1, s.minimum)), "int")
	case decimalKind:
		return x.scalar("1.5", "float")
	case boolKind, trueKind:
		return x.scalar("true", "bool")
	case nullKind:
		return []*node{{Place: x.at(), Kind: yamlfile.NullNode}}
	case listKind:
		return []*node{{Place: x.at(), Kind: yamlfile.ListNode, Items: x.of(s.values)}}
	case tableKind:
		var out []*node
		for _, v := range x.of(s.values) {
			out = append(out, &node{Place: x.at(), Kind: yamlfile.MappingNode, Keys: []string{"name"}, KeyPlaces: []place{x.at()}, Values: []*node{v}})
		}
		return out
	case anyOf:
		var out []*node
		for _, alternative := range s.alternatives {
			out = append(out, x.of(alternative)...)
		}
		return out
	case mappingKind:
		return x.mapping(s)
	}
	panic("a shape without examples")
}

// mapping returns one node with every key, and more where a key has several examples. If keys exclude each other, it
// returns one node for each.
func (x *examples) mapping(s *shape) []*node {
	var out []*node
	values := make([][]*node, len(s.keys))
	most := 1
	for i, k := range s.keys {
		values[i] = x.of(k.shape)
		most = max(most, len(values[i]))
	}
	make := func(pick func(i, turn int) *node, turn int) {
		n := &node{Place: x.at(), Kind: yamlfile.MappingNode}
		for i, k := range s.keys {
			if v := pick(i, turn); v != nil {
				n.Keys, n.KeyPlaces, n.Values = append(n.Keys, k.name), append(n.KeyPlaces, x.at()), append(n.Values, v)
			}
		}
		x.want[n.Place] = s
		out = append(out, n)
	}
	if s.hasOneKey {
		for i := range s.keys {
			for _, v := range values[i] {
				make(func(j, _ int) *node {
					if i == j {
						return v
					}
					return nil
				}, 0)
			}
		}
		return out
	}
	for turn := range most {
		make(func(i, turn int) *node {
			if len(values[i]) == 0 {
				return nil
			}
			return values[i][min(turn, len(values[i])-1)]
		}, turn)
	}
	return out
}

// The decoder and the shapes agree on the keys that are allowed, at each position of a policy.
func TestShapes(t *testing.T) {
	tier.All(t)
	x := &examples{want: map[place]*shape{}, open: map[string]int{}}
	seen := map[*shape]bool{}
	said := map[string]bool{}
	for _, root := range x.of(policyShape()) {
		d := newDocumentDecoder(&Document{blockNames: map[place]string{}})
		d.onKeys = func(position place, allowedWords []string) {
			s := x.want[position]
			if s == nil {
				return // its parent mapping is reported below
			}
			seen[s] = true
			var described []string
			for _, k := range s.keys {
				described = append(described, k.name)
			}
			slices.Sort(described)
			if !slices.Equal(described, allowedWords) && !said[s.doc] {
				said[s.doc] = true
				t.Errorf("%q: the decoder knows the keys %v, policy/shape.go describes %v", s.doc, allowedWords, described)
			}
		}
		d.decodeRoot(root)
		for _, err := range d.errs {
			if strings.Contains(err.Message, "unknown key") || strings.Contains(err.Message, "not in this version") ||
				strings.Contains(err.Message, "must be a") {
				if !said[err.Message] {
					t.Errorf("the decoder refuses what policy/shape.go describes: %s", err)
				}
				said[err.Message] = true
			}
		}
	}
	reached := map[string]bool{}
	for s := range seen {
		reached[signatureOf(s)] = true
	}
	for position, s := range x.want {
		if len(s.keys) > 0 && !reached[signatureOf(s)] {
			t.Errorf("%v %q: the decoder did not look at the keys %s", position, s.doc, signatureOf(s))
		}
	}
}

func signatureOf(s *shape) string {
	var names []string
	for _, k := range s.keys {
		names = append(names, k.name)
	}
	return strings.Join(names, " ")
}
