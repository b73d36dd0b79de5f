package yamlfile

import "slices"

// Kind is the kind of a node.
type Kind int

// The kinds.
const (
	Scalar Kind = iota
	Null
	Mapping
	List
	Other // an alias, an anchor, a tag or a merge key: see [Format.RefuseOther]
)

func (k Kind) String() string {
	return [...]string{"a single value", "nothing", "a mapping", "a list", "an alias, anchor, tag or merge key"}[k]
}

// Literal says how a scalar is written.
type Literal string

// The ways to write a scalar. A number in quotes is a string.
const (
	String  Literal = "string"
	Integer Literal = "int"
	Float   Literal = "float"
	Bool    Literal = "bool"
)

// Node is a value of a file.
type Node struct {
	Place
	Kind    Kind
	Value   string // the value of a scalar without quotes; true or false for a boolean
	Written string // the value as the file writes it: a boolean may be True
	Literal Literal

	// The fields of a mapping, in the order of the file.
	Keys   []string
	KeyAt  []Place
	Values []*Node

	Items []*Node // the items of a list

	writtenText string // a string as the file writes it
	writtenAt   Place  // the place of the first character of writtenText
}

// Get returns the value of a key, or nil.
func (n *Node) Get(key string) *Node {
	if i := slices.Index(n.Keys, key); i >= 0 {
		return n.Values[i]
	}
	return nil
}

// PlaceOfByte returns the place in the file of a byte in a string's value. The file may write the string folded or with
// escapes.
func (n *Node) PlaceOfByte(offset int) Place {
	at := n.writtenAt
	if n.writtenText == "" {
		return n.Place
	}
	written := []rune(n.writtenText)
	i := 0
	advance := func() {
		if written[i] == '\n' {
			at.Line, at.Column = at.Line+1, 1
		} else {
			at.Column++
		}
		i++
	}
	for byteAt, r := range n.Value {
		for i < len(written) && written[i] != r && !(r == ' ' && written[i] == '\n') {
			advance()
		}
		if byteAt >= offset || i >= len(written) {
			return at
		}
		advance()
	}
	return at
}
