// Package mutants breaks one line of code that decides at a time, and asks whether the harness sees it. That code is in
// sqltext, rewrite, predicate, rls, policy, catalog, verdict, proxy, enforce, consent, identity and audit.
//
// Those of hand/ are holes that somebody would make by mistake; each file says which. The harness, that is package
// suite, names none of the constructs they are about. A mutant is a file, a text in it, and another text to replace it.
// The build takes it by an overlay, so that the tree is not touched. machine.go makes more of them.
//
// Those of planted/ are plain faults anywhere in the program, chosen at random. Any test of "make test" or "make
// test-all" may see them, and planted.txt records which one does.
package mutants
