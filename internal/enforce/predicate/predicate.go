// Package predicate is the predicate tree: the one description of who may see a row. Both enforcement layers, row
// security and rewriting, are made from it.
//
// [Policy] writes it as the expression of a row security policy, and [Inject] as the text put into an agent's
// statement. [Eval] evaluates it over rows in memory: it is the reference model with which tests compare the two SQL
// forms. All three agree on every row.
//
// A row shows only where the tree is true. In SQL's three-valued logic every construct is written so that NULL, a
// dangling link or a missing attribute hides the row: comparisons that hide a row are `(x = y) IS NOT TRUE`, links are
// outer joins, and the expression of a policy first tests that each attribute it uses is present. Every relation,
// function, operator and type in the SQL is qualified, so that its meaning does not depend on a search path.
//
// A predicate cannot know whether a helper view shows all rows of its table. Where the view of a link table shows no
// row at all, policies check whether the table is empty. Doctor checks that no foreign policy hides a part of it.
package predicate

import "github.com/pgconsent/pgconsent/internal/sql/catalog"

// Node is a node of the tree. The types of this package are all there are.
type Node interface{ node() }

// Open shows every row.
type Open struct{}

// All shows a row that every part shows. An empty All shows none.
type All []Node

// Any shows a row that some part shows. An empty Any shows none.
type Any []Node

// Status shows a row whose column, as text, is the given word.
type Status struct {
	Column string
	Is     string
	// the column's type, if it is boolean, or an enum of the table's schema, which all who read the table may name; "":
	// any other type
	Of string
}

// Consent shows a row if every row reached by following the steps has the status. A row from which the first step leads
// nowhere shows, unless Required; a later step that leads nowhere hides it.
type Consent struct {
	Steps        []Step
	Required     bool // the first step is a reference to one row, which must be there
	Status       string
	Is           string
	Of           string        // like Of of [Status]
	Expires      string        // the subject's column of the moment at which the agreement ends, if it is not NULL; "": none
	Materialized *Materialized // the answer is stored beside the row; nil: it is not
}

// Step goes from a row to the rows of Relation whose Column equals the From column of that row. And has further pairs
// of columns that must be equal.
type Step struct {
	Relation *catalog.Relation
	Column   string
	From     string
	And      []Pair // of a key of several columns
}

// Pair is a column of the table that a link leads to, and the column that it equals.
type Pair struct{ Column, From string }

// Visible shows a row if the row of Relation that it points to shows by that relation's own predicate.
type Visible struct {
	Relation *catalog.Relation
	Column   string // a column of the table that the link leads to
	From     string // a column of the row
	And      []Pair // of a key of several columns
	Rows     Node   // the predicate of Relation
}

func (Open) node()    {}
func (All) node()     {}
func (Any) node()     {}
func (Status) node()  {}
func (Consent) node() {}
func (Visible) node() {}
