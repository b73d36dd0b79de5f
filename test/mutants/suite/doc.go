// Package suite has tests that must catch mutants of package mutants. They take limited time, and were written without
// regard to the mutants.
package suite
