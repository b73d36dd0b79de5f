// Package sqltext reads SQL text: it checks the bounds of a text, scans and parses it, applies edits, and proves that
// an edited text has the intended tree. It is the only package that imports the SQL parser.
//
// The parser is C code without a limit on its stack. So a text that could crash the process is refused before it
// reaches the parser. A text made by [ApplyEdits] must pass [ProveSameTree], which parses the text and compares its
// tree with the intended tree. This package does not decide what a statement may do.
//
// Of the parser only Parse and Scan are used. Deparse drops parentheses and crashes on some statements, and Normalize
// has a known memory error, so neither is ever called (invariant I3 in docs/explanation/invariants.md). The grammar is
// PostgreSQL 16's.
package sqltext
