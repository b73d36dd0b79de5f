// Package written compares the SQL that pgconsent generates for policies, and the forms in which pgconsent evaluates
// their rules, with files in testdata.
//
// Whether that SQL is right is tested by package oracle and by the random triples in package predicate. These tests use
// random samples, so that a changed word may not affect any of their rows. This package compiles every policy of the
// worlds, the oracle and the cookbook, and compares the result word by word. "go test ./test/written -update" writes
// the files anew, so that a reviewer sees what has changed.
package written
