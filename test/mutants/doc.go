// Package mutants makes one small change at a time to the code that enforces policies, and checks whether a test of the
// harness fails. That code is in sqltext, rewrite, predicate, rls, policy, catalog, verdict, proxy, enforce, consent,
// identity and audit.
//
// A mutant is a file, a text in it, and another text to replace it. The build gets it by an overlay, so that the source
// tree stays unchanged.
//
// The mutants of hand/ are holes that somebody might make by mistake; each file says which. The tests that must catch
// them, among them package suite, were written without regard to these mutants. machine.go makes further mutants.
//
// The mutants of planted/ are ordinary bugs anywhere in the program, chosen at random. Any test of "make test" or "make
// test-all" may catch them, and planted.txt records which one does.
package mutants
