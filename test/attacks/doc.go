// Package attacks sends statements that are known to break row-level rules elsewhere: published lists of attack
// vectors, PostgreSQL's own tests, and its CVEs about row security. Each statement is sent over the wire to two
// databases that differ in hidden rows only, in every mode that an operator can configure. The answers must be equal
// byte for byte, except for the order of rows, and must not contain the marker of a hidden row.
package attacks
