// Package noninterference looks for a bit about a hidden row.
//
// It makes schemas (with the objects around tables: around.go, listed.go), policies over them, data, callers and
// statements. It runs each statement over the wire on two databases that differ in rows hidden from the caller only.
// Then it compares everything the caller received. Where SQL leaves an answer open (the order of evaluation decides
// which error comes first), both answers must be possible. PostgreSQL must give each on the visible rows alone under
// one setting of its planner or another. An answer must also be one that the visible rows alone give.
//
// The visible rows are computed by the package's own model (model.go), which shares nothing with package predicate. A
// difference is shrunk and saved under testdata/found, which is run again with every test.
//
// Values does the same for values that no row rule hides: of columns that a contract leaves out, and of those that
// exist by key.
//
// The grammar names no construct of the rewriter: it draws functions, relations and settings from the catalog.
package noninterference
