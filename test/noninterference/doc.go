// Package noninterference searches for statements whose answers depend on hidden rows.
//
// It makes random schemas (with the objects around tables: around.go, listed.go), policies over them, data, callers and
// statements. It sends each statement over the wire to two databases that differ in rows hidden from the caller only.
// Then it compares everything that the caller received. SQL does not always define one answer: the order of evaluation
// may decide which error comes first. Then PostgreSQL, on the visible rows alone, must give both answers under some
// settings of its planner. An answer must also be one that the visible rows alone give.
//
// The visible rows are computed by the package's own model (model.go), which shares nothing with package predicate. A
// difference is shrunk and saved under testdata/found, which is run again with every test.
//
// Values does the same for values that no row rule hides: those of columns that a contract does not allow, and of
// columns that show by key only.
//
// The statements are not written with the rewriter in mind: functions, relations and settings are drawn from the
// server's catalog.
package noninterference
