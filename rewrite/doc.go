// Package rewrite returns a statement that can read no row the policy withholds, or an error.
//
// The rewriter edits the agent's text only at the offsets of tokens. Names of relations become subqueries with the
// predicate, or views of pgconsent. Catalogs become their shadow views, functions get their schema, and pinned
// arguments get their values. The result is parsed again, and its tree must equal the intended one, or the statement is
// refused (invariant I3 in docs/explanation/invariants.md). Each kind of node, function, operator, type, relation and
// setting that is allowed is on a list. Default arms refuse.
//
// The package does not limit what a statement costs. It does not promise that an error or a notice tells nothing: row
// security and the signed views in the database see to that. It has no network, clock or global state.
package rewrite
