// Package policydiff compares two policies over the rows that exist now: which rows, columns and rights agents would
// gain and lose.
//
// It reads as the owner, in one snapshot, and installs nothing: its predicates read tables directly and need no lookup
// views. What is installed in the database does not matter. It counts rows by evaluating both predicates on every row,
// unless they are the same text.
package policydiff
