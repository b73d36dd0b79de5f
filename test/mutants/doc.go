// Package mutants tests the tests: it makes one small change at a time to the code that enforces policies, and checks
// whether a test fails. That code is in sqltext, rewrite, predicate, rls, policy, catalog, verdict, proxy, enforce,
// consent, identity and audit.
//
// A mutant names a file, a text in it, and the text that replaces it. The compiler reads the changed file by its flag
// -overlay, so that the source tree stays unchanged.
//
// The mutants in hand/ are security holes that somebody might open by mistake; each file describes one. The tests that
// must catch them, among them those of package suite, were written without regard to these mutants. machine.go makes
// further mutants.
//
// The mutants in planted/ are ordinary bugs anywhere in the program, chosen at random. Any test of "make test" or "make
// test-all" may catch them, and planted.txt records which test does.
package mutants
