// Package rewrite returns a statement that can read no row the policy withholds, or an error.
//
// The agent's text is edited only at the offsets of tokens: names of relations become protected forms, catalogs their
// shadows, functions their qualified names, and pinned arguments their values. The result is parsed again and its tree
// must equal the intended one, or the statement is refused (DESIGN invariant I3). What is not understood is refused: each
// kind of node, function, operator, type, relation and setting is on a list, and default arms deny.
//
// The package does not limit what a statement costs, and does not promise that an error or a notice tells nothing: that
// is what row security and the gate in the database are for. It has no network, clock or global state.
package rewrite
