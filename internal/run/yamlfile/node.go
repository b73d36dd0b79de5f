package yamlfile

import "slices"

// Kind is the kind of a node.
type Kind int

// Kinds of nodes.
const (
	ScalarNode Kind = iota
	NullNode
	MappingNode
	ListNode
	OtherNode // an alias, an anchor, a tag or a merge key: see [Format.RefuseOther]
)

func (k Kind) String() string {
	return [...]string{"a single value", "nothing", "a mapping", "a list", "an alias, anchor, tag or merge key"}[k]
}

// ScalarType is the type of a scalar, as the file writes it.
type ScalarType string

// Types of scalars. A number in quotes is a string.
const (
	StringScalar  ScalarType = "string"
	IntegerScalar ScalarType = "int"
	FloatScalar   ScalarType = "float"
	BoolScalar    ScalarType = "bool"
)

// Node is a value in a file.
type Node struct {
	Place
	Kind       Kind
	Value      string // value of a scalar, without quotes; of a boolean: true or false
	SourceText string // the scalar as the file writes it; a boolean may be True
	ScalarType ScalarType

	// Keys and values of a mapping, in the order of the file.
	Keys      []string
	KeyPlaces []Place
	Values    []*Node

	Items []*Node // items of a list

	quotedText  string // a string as the file writes it
	quotedPlace Place  // place of the first character of quotedText
}

// Get returns the value of a key of a mapping, and nil if the mapping does not have the key.
func (n *Node) Get(key string) *Node {
	if i := slices.Index(n.Keys, key); i >= 0 {
		return n.Values[i]
	}
	return nil
}

// PlaceOfByte returns the place in the file of the byte at offset in a string's value. In the file, the string may be
// folded or written with escapes.
func (n *Node) PlaceOfByte(offset int) Place {
	place := n.quotedPlace
	if n.quotedText == "" {
		return n.Place
	}
	quotedRunes := []rune(n.quotedText)
	i := 0
	advance := func() {
		if quotedRunes[i] == '\n' {
			place.Line, place.Column = place.Line+1, 1
		} else {
			place.Column++
		}
		i++
	}
	for byteAt, r := range n.Value {
		for i < len(quotedRunes) && quotedRunes[i] != r && !(r == ' ' && quotedRunes[i] == '\n') {
			advance()
		}
		if byteAt >= offset || i >= len(quotedRunes) {
			return place
		}
		advance()
	}
	return place
}
