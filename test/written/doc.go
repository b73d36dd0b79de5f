// Package written holds what the database is told, and what the forms of a rule are, to what is committed.
//
// The oracle and the triples say whether that is right. They draw and sample; a word that has changed may do no harm to
// any row of theirs. Here every policy of the worlds, the oracle and the cookbook is compiled, and what comes out is
// compared with testdata: no word of row security or of rewriting changes unseen. "go test ./test/written -update"
// writes it; the difference is what a review reads.
package written
