// Package sqltext reads SQL text: bounds, scan, parse, splice, prove. It is the one import of the SQL parser.
//
// It guarantees that text which could end the process never reaches the parser (the parser is C code without a guard on
// its stack), and that a text made by [Splice] is returned only through [Prove], which parses it again and requires the
// tree that was intended. It makes no judgement on what a statement may do.
//
// Of the parser only Parse and Scan are used. Deparse drops parentheses and crashes on some statements, and Normalize has
// a known memory error: neither ever sees text (DESIGN invariant I3). The grammar is PostgreSQL 16's.
package sqltext
