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

// The literals. A number in quotes is a string.
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
	Written string // like Value, but a boolean is spelled as in the file, such as True
	Literal Literal

	// Of a mapping, in the order of the file.
	Keys   []string
	KeyAt  []Place
	Values []*Node

	Items []*Node // the items of a list

	origin   string // a string as the file writes it
	originAt Place  // the place of the first character of origin
}

// Get returns the value of a key, or nil.
func (n *Node) Get(key string) *Node {
	if i := slices.Index(n.Keys, key); i >= 0 {
		return n.Values[i]
	}
	return nil
}

// ValueAt returns the place of a byte of a string's value. It follows the text as the file writes it, which may be
// folded or have escapes.
func (n *Node) ValueAt(offset int) Place {
	at := n.originAt
	if n.origin == "" {
		return n.Place
	}
	written := []rune(n.origin)
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
