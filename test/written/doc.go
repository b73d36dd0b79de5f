// Package written compares two kinds of text with files under testdata: the SQL that pgconsent generates for policies,
// and the forms in which it evaluates their rules.
//
// The oracle and the triples test whether that SQL is right. They test random samples, so a changed word may affect
// none of their rows. Here every policy of the worlds, the oracle and the cookbook is compiled, and the result is
// compared word by word. "go test ./test/written -update" writes the files anew; a review reads what has changed in
// them.
package written
