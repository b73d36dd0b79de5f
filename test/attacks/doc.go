// Package attacks sends what is known from elsewhere to break row-level rules: published lists of vectors, PostgreSQL's
// own tests and its CVEs about row security. Each runs over the wire on two databases that differ in hidden rows only,
// in every mode an operator may choose. The answers must be equal, byte for byte but for the order of rows, and without
// a hidden row's marker.
package attacks
