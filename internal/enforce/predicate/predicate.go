// Package predicate has the predicate tree: the one description of who may see a row. Both enforcement layers, row
// security and rewriting, are generated from it.
//
// [RowPolicySQL] writes the tree as the expression of a row security policy, and [InjectedCondition] as text that the
// rewriter puts into an agent's statement. [Eval] evaluates the tree over rows in memory: it is the reference model
// with which tests compare the two SQL forms. All three give the same result for every row.
//
// A row is visible only if the tree is true. In SQL's three-valued logic every construct is written so that NULL, a
// dangling link or a missing attribute hides the row. Comparisons that hide a row are `(x = y) IS NOT TRUE`, and links
// are outer joins. The expression of a policy first tests that each attribute it needs is present. Every relation,
// function, operator and type in the SQL is qualified, so that its meaning does not depend on a search path.
//
// A predicate cannot know whether a lookup view shows all rows of its table. If the view of a link table shows no row
// at all, row policies check whether the table is empty. pgconsent doctor checks that no foreign policy hides a part of
// the table.
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

// Status shows a row whose column, as text, equals Value.
type Status struct {
	Column string
	Value  string
	// ColumnType is the column's type if this is boolean, or an enum in the table's schema, whose name everybody who reads
	// the table may use. "": any other type.
	ColumnType string
}

// Consent shows a row if all rows to which the steps lead have the status AgreedStatus. If the first step leads
// nowhere, the row is visible, unless FirstRequired is set. If a later step leads nowhere, the row is hidden.
type Consent struct {
	Steps         []Step
	FirstRequired bool // the first step must lead to a row
	StatusColumn  string
	AgreedStatus  string
	StatusType    string // the type of StatusColumn, like ColumnType of [Status]
	// ExpiryColumn is the subject's column with the time at which the consent ends; NULL means never. "": there is no such
	// column.
	ExpiryColumn string
	Materialized *Materialized // where the answer is stored; nil: it is not stored
}

// Step leads from a row to the rows of Relation whose Column equals the FromColumn of that row. MorePairs are further
// pairs of columns that must be equal.
type Step struct {
	Relation   *catalog.Relation
	Column     string
	FromColumn string
	MorePairs  []ColumnPair // further pairs, for a key of several columns
}

// ColumnPair is a column of the table to which a link leads, and the column of the link's first row that it must equal.
type ColumnPair struct{ Column, FromColumn string }

// Visible shows a row if it refers to a row of Relation that meets Rows, that relation's own predicate.
type Visible struct {
	Relation   *catalog.Relation
	Column     string       // the column of the table to which the link leads
	FromColumn string       // the column of the row from which the link leads
	MorePairs  []ColumnPair // further pairs, for a key of several columns
	Rows       Node         // the predicate for rows of Relation
}

func (Open) node()    {}
func (All) node()     {}
func (Any) node()     {}
func (Status) node()  {}
func (Consent) node() {}
func (Visible) node() {}
