// Package noninterference searches for statements whose answers depend on hidden rows.
//
// It makes random schemas (with the objects around tables: around.go, listed.go), policies, data, callers and
// statements. It sends each statement over the wire to two databases that differ only in rows hidden from the caller,
// and compares everything that the caller receives. SQL does not always define one answer: the order of evaluation may
// decide which error comes first. If the two answers differ, PostgreSQL must give each of them on the visible rows
// alone, under some settings of its planner. If they are equal, the answer must be one that PostgreSQL gives on the
// visible rows alone.
//
// Which rows are visible is computed by a model in this package (model.go), which shares no code with package
// predicate. A case that shows a difference is shortened and saved under testdata/found. Each later test runs it again.
//
// The function Values does the same for values that no row rule hides: in columns that a contract does not allow, and
// in columns that the policy shows by key only.
//
// The statements are not made with the rewriter in mind: functions, relations and settings are chosen at random from
// the server's catalog.
package noninterference
