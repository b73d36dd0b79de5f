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
	line           int
	producedShapes map[place]*shape // the shapes of the generated mappings, by position
	openCount      map[string]int   // how often a named shape occurs on the current path
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
		if x.openCount[s.definitionName] > 1 { // a shape may contain itself once; deeper nesting gives millions of examples
			return nil
		}
		x.openCount[s.definitionName]++
		defer func() { x.openCount[s.definitionName]-- }()
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
	maxExamples := 1
	for i, k := range s.keys {
		values[i] = x.of(k.shape)
		maxExamples = max(maxExamples, len(values[i]))
	}
	make := func(pick func(i, exampleNumber int) *node, exampleNumber int) {
		n := &node{Place: x.at(), Kind: yamlfile.MappingNode}
		for i, k := range s.keys {
			if v := pick(i, exampleNumber); v != nil {
				n.Keys, n.KeyPlaces, n.Values = append(n.Keys, k.name), append(n.KeyPlaces, x.at()), append(n.Values, v)
			}
		}
		x.producedShapes[n.Place] = s
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
	for exampleNumber := range maxExamples {
		make(func(i, exampleNumber int) *node {
			if len(values[i]) == 0 {
				return nil
			}
			return values[i][min(exampleNumber, len(values[i])-1)]
		}, exampleNumber)
	}
	return out
}

// The decoder and the shapes agree on the keys that are allowed, at each position of a policy.
func TestShapes(t *testing.T) {
	tier.All(t)
	x := &examples{producedShapes: map[place]*shape{}, openCount: map[string]int{}}
	seenShapes := map[*shape]bool{}
	reportedKeys := map[string]bool{}
	for _, rootNode := range x.of(policyShape()) {
		d := newDocumentDecoder(&Document{blockNames: map[place]string{}})
		d.onKeys = func(position place, allowedWords []string) {
			s := x.producedShapes[position]
			if s == nil {
				return // its parent mapping is reported below
			}
			seenShapes[s] = true
			var describedKeys []string
			for _, k := range s.keys {
				describedKeys = append(describedKeys, k.name)
			}
			slices.Sort(describedKeys)
			if !slices.Equal(describedKeys, allowedWords) && !reportedKeys[s.doc] {
				reportedKeys[s.doc] = true
				t.Errorf("%q: the decoder knows the keys %v, policy/shape.go describes %v", s.doc, allowedWords, describedKeys)
			}
		}
		d.decodeRoot(rootNode)
		for _, err := range d.errs {
			if strings.Contains(err.Message, "unknown key") || strings.Contains(err.Message, "not in this version") ||
				strings.Contains(err.Message, "must be a") {
				if !reportedKeys[err.Message] {
					t.Errorf("the decoder refuses what policy/shape.go describes: %s", err)
				}
				reportedKeys[err.Message] = true
			}
		}
	}
	reachedWords := map[string]bool{}
	for s := range seenShapes {
		reachedWords[signatureOf(s)] = true
	}
	for position, s := range x.producedShapes {
		if len(s.keys) > 0 && !reachedWords[signatureOf(s)] {
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
