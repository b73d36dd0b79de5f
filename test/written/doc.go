// Package written compares the SQL that pgconsent writes for policies, and the forms in which it evaluates their rules,
// with files under testdata.
//
// The oracle and the triples test whether that SQL is right. They test random samples, so a changed word may harm no row
// of theirs. Here every policy of the worlds, the oracle and the cookbook is compiled, and the result is compared word
// by word. "go test ./test/written -update" writes the files anew; a review reads what has changed in them.
package written
