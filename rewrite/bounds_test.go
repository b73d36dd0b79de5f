package rewrite

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// No text within the bounds takes time or memory out of proportion: lists of thousands are gone through once each.
func TestLongStatements(t *testing.T) {
	r := rewriter(t, Both)
	list := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i, i+1)
		}
		return b.String()
	}
	same := strings.Repeat
	for _, c := range []struct{ name, sql string }{
		{"grouped by names", "SELECT id" + same(",id a", 30_000) + " FROM memories GROUP BY a" + same(",a", 30_000)},
		{"grouped by positions", "SELECT id" + same(",id", 30_000) + " FROM memories GROUP BY 1" + same(",1", 30_000)},
		{"keys", "SELECT 1 FROM memories" + same(",memories", 30_000) + " GROUP BY id" + same(",id", 30_000)},
		{"stars", "SELECT *" + same(",*", 30_000) + " FROM pg_am" + same(",pg_am", 30_000)},
		{"stars of stars", "WITH c0 AS (SELECT 1 a" + list(1_600, ",1 a%d_%d") + ")" + list(8_000, ",c%[2]d AS (SELECT *, 1 FROM c%[1]d)") + " SELECT 1"},
		{"one alias", "SELECT a.x" + same(",a.x", 20_000) + " FROM pg_am a" + same(",pg_am a", 20_000)},
		{"items around", same("SELECT (", 150) + "SELECT a.oid" + same(",a.oid", 10_000) + same(" FROM pg_am a"+same(",pg_am a", 150)+")", 150)},
		{"queries of WITH", "WITH c AS (SELECT 1)" + list(20_000, ",c%d AS (SELECT %d)") + " SELECT 1"},
		{"statements", same("SELECT 1;", 60_000)},
		{"predicates", "SELECT 1 FROM people" + same(" UNION ALL SELECT 1 FROM people", 300)},
		{"pins", "SELECT match_memories(NULL,2)" + same(",match_memories(NULL,2)", 20_000)},
		{"columns of COPY", "COPY memories (id" + same(",id", 60_000) + ") TO STDOUT"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		_, refused := r.Rewrite(c.sql, false)
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		mb := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%s: %d bytes, %s, %d MB: %v", c.name, len(c.sql), took.Round(time.Millisecond), mb, refused)
		if took > 20*time.Second || mb > 1_000 {
			t.Errorf("%s: %d bytes of SQL took %s and %d MB", c.name, len(c.sql), took, mb)
		}
	}
}
