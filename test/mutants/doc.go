// Package mutants breaks one line of what decides (sqltext, rewrite, predicate, rls, policy, catalog, verdict, proxy,
// enforce, consent, identity, audit) at a time and asks whether the harness sees it.
//
// Those of hand/ are holes that somebody would make by mistake; each file says which. The harness, that is package
// suite, names none of the constructs they are about. A mutant is a file, a text in it and another in its place; the
// build takes it by an overlay, so that the tree is not touched. machine.go makes more of them.
//
// Those of planted/ are plain faults anywhere in the program, drawn by lot: any test of "make test" or "make test-all"
// may see them, and planted.txt keeps which one does.
package mutants
