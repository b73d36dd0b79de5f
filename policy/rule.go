package policy

import "github.com/pgconsent/pgconsent/internal/enforce/predicate"

// Rule is a block of a table's rule with its place in the file. Tools name the block when they say why a row shows or
// does not. The node of the outermost rule is the table's Rows.
type Rule struct {
	File         string
	Line, Column int
	Block        string // the block's name; "all" for a list of blocks
	Node         predicate.Node
	// the parts of a block all, any or not, in order; conditions on rows of other tables are left out
	Parts           []*Rule
	addedByContract bool // a contract has added the block
}

// WithoutContracts returns the rule as the table has it, without the conditions that contracts add.
func (r *Rule) WithoutContracts() *Rule {
	for len(r.Parts) == 2 && r.Parts[0].addedByContract {
		r = r.Parts[1]
	}
	return r
}

// Leaves returns the blocks that decide by themselves, in the order of the file. A negation counts as one of them, with
// all of its parts.
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

// Replace returns the rule's node, in which the node of one block is replaced, at any depth of All and Any.
func (r *Rule) Replace(part *Rule, replacement predicate.Node) predicate.Node {
	if r == part {
		return replacement
	}
	if len(r.Parts) == 0 { // the node of a block without parts may be an All or Any, too
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
