// Package rewrite rewrites an agent's statement so that it can read no row that the policy withholds, or refuses it.
//
// The rewriter edits the agent's text only at the offsets of tokens. It replaces names of relations by subqueries with
// the predicate, or by views of pgconsent. It replaces catalogs by their shadow views, writes the schemas of functions,
// and sets pinned arguments to their values. Then it parses the result again, and refuses the statement unless the tree
// is the intended one (invariant I3 in docs/explanation/invariants.md). Lists name each kind of node, function,
// operator, type, relation and setting that is allowed. Everything else is refused.
//
// The package does not limit what a statement costs. It does not promise that an error or a notice tells nothing about
// hidden rows: row security and the signed views in the database ensure that. It uses no network, no clock and no
// global state.
package rewrite
