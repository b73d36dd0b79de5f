package policy

import "github.com/pgconsent/pgconsent/internal/enforce/predicate"

// Rule is a block of a table's rule with its place in the file. Tools name such blocks to explain why agents see a row
// or do not see it. The node of the outermost Rule is the table's Rows.
type Rule struct {
	File         string
	Line, Column int
	Block        string // the block's name; "all" for a list of blocks
	Node         predicate.Node
	// the parts of a block all, any or not, in order, without conditions on rows of other tables
	Parts           []*Rule
	addedByContract bool // a contract has added the block
}

// WithoutContracts returns the rule without the conditions that contracts have added.
func (r *Rule) WithoutContracts() *Rule {
	for len(r.Parts) == 2 && r.Parts[0].addedByContract {
		r = r.Parts[1]
	}
	return r
}

// Leaves returns the blocks without parts, in the order of the file. A negation counts as a single block, with all of
// its parts.
func (r *Rule) Leaves() []*Rule {
	if r.Block == "not" || len(r.Parts) == 0 {
		return []*Rule{r}
	}
	var out []*Rule
	for _, part := range r.Parts {
		out = append(out, part.Leaves()...)
	}
	return out
}

// Replace returns the rule's node with another node in place of one block's node, which may be at any depth of All and
// Any.
func (r *Rule) Replace(part *Rule, replacement predicate.Node) predicate.Node {
	if r == part {
		return replacement
	}
	if len(r.Parts) == 0 { // the block has no parts, although its node may be an All or Any
		return r.Node
	}
	var parts []predicate.Node
	for _, p := range r.Parts {
		parts = append(parts, p.Replace(part, replacement))
	}
	switch r.Node.(type) {
	case predicate.All:
		return predicate.All(parts)
	case predicate.Any:
		return predicate.Any(parts)
	default:
		return r.Node
	}
}
