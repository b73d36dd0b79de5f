// Package sqltext reads SQL text: it checks bounds, scans, parses, splices and proves. It alone imports the SQL parser.
//
// The parser is C code without a guard on its stack. So a text that could end the process is refused before it reaches
// the parser. A text made by [ApplyEdits] has to pass [ProveSameTree], which parses it again and compares its tree with
// the intended one. This package does not judge what a statement may do.
//
// Of the parser only Parse and Scan are used. Deparse drops parentheses and crashes on some statements, and Normalize
// has a known memory error: neither is ever given a text (invariant I3 in docs/explanation/invariants.md). The grammar
// is PostgreSQL 16's.
package sqltext
