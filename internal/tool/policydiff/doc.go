// Package policydiff compares two policies over live data: which rows, columns and rights agents would gain and lose.
//
// It reads as the owner, in one snapshot, with the form of the predicates that needs no lookup views, and installs
// nothing. It compares both policies as they would be, whatever is installed in the database. It counts rows by
// evaluating both predicates on every row, except where they are the same text.
package policydiff
