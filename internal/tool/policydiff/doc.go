// Package policydiff compares two policies over live data: which rows, columns and rights agents would gain and lose.
//
// It reads as the owner, in one snapshot, by the form of the predicates that needs no helper of ours, and installs
// nothing: both policies are compared as they would be, whatever the database has. Rows are counted by evaluating both
// predicates on every row, except where they are the same text.
package policydiff
