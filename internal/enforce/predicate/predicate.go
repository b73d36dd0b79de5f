// Package predicate is the predicate tree: the one description of who may see a row. Both enforcement layers, row
// security and rewriting, are made from it.
//
// [RowPolicySQL] writes it as the expression of a row security policy, and [InjectedCondition] as the text put into an
// agent's statement. [Eval] evaluates it over rows in memory: it is the reference model with which tests compare the
// two SQL forms. All three agree on every row.
//
// A row shows only where the tree is true. In SQL's three-valued logic every construct is written so that NULL, a
// dangling link or a missing attribute hides the row: comparisons that hide a row are `(x = y) IS NOT TRUE`, links are
// outer joins, and the expression of a policy first tests that each attribute it uses is present. Every relation,
// function, operator and type in the SQL is qualified, so that its meaning does not depend on a search path.
//
// A predicate cannot know whether a lookup view shows all rows of its table. Where the view of a link table shows no
// row at all, policies check whether the table is empty. Doctor checks that no foreign policy hides a part of it.
package predicate

import "github.com/pgconsent/pgconsent/internal/sql/catalog"

// Node is a node of the predicate tree. Only the types of this package implement it.
type Node interface{ node() }

// Open shows every row.
type Open struct{}

// All shows a row that every one of its parts shows. An empty All shows no row.
type All []Node

// Any shows a row that at least one of its parts shows. An empty Any shows no row.
type Any []Node

// Status shows a row whose column, as text, is the given word.
type Status struct {
	Column string
	Value  string
	// the column's type if it is boolean, or an enum in the table's schema, which everybody who reads the table may name;
	// "": any other type
	ColumnType string
}

// Consent shows a row if every row that is reached by following the steps has the status. A row from which the first
// step leads nowhere shows, unless Required is set. If a later step leads nowhere, the row is hidden.
type Consent struct {
	Steps         []Step
	FirstRequired bool // the first step is a reference to one row, which must exist
	StatusColumn  string
	AgreedStatus  string
	StatusType    string // the type of the status column, like ColumnType of [Status]
	// the subject's column with the time at which the consent ends, if it is not NULL; "": there is no such column
	ExpiryColumn string
	Materialized *Materialized // how the answer is stored beside the row; nil: it is not stored
}

// Step leads from a row to the rows of Relation whose Column equals the From column of that row. And has further pairs
// of columns that must be equal.
type Step struct {
	Relation   *catalog.Relation
	Column     string
	FromColumn string
	MorePairs  []ColumnPair // the further pairs, for a key of several columns
}

// ColumnPair is a column of the table to which a link leads, and the column that it equals in the row where the link
// starts.
type ColumnPair struct{ Column, FromColumn string }

// Visible shows a row if the row of Relation to which it refers shows by that relation's own predicate.
type Visible struct {
	Relation   *catalog.Relation
	Column     string       // the column of the table to which the link leads
	FromColumn string       // the column of the row that refers
	MorePairs  []ColumnPair // further pairs, for a key of several columns
	Rows       Node         // the predicate of Relation's rows
}

func (Open) node()    {}
func (All) node()     {}
func (Any) node()     {}
func (Status) node()  {}
func (Consent) node() {}
func (Visible) node() {}
