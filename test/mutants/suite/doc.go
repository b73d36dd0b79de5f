// Package suite has the tests that each mutant is tried on. They take limited time, and were written without regard to
// the mutants.
package suite
