package rewrite

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/test/tier"
)

// A text within the size limits costs the rewriter time and memory in proportion to its length. Each text is compared
// with a plain statement of the same length, in the same run, with room for a constant factor.
func TestLongStatements(t *testing.T) {
	tier.All(t)
	r := rewriter(t, InjectedMode)
	list := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i, i+1)
		}
		return b.String()
	}
	repeatText := strings.Repeat
	perByte := func(sql string) (time.Duration, time.Duration) {
		start := time.Now()
		if _, refusal := r.Rewrite(sql, false); refusal != nil && refusal.Code != sqlstate.ProgramLimitExceeded {
			t.Fatalf("%.60s: %v", sql, refusal)
		}
		elapsed := time.Since(start)
		return elapsed, elapsed / time.Duration(len(sql))
	}
	_, plainTimePerByte := perByte(repeatText("SELECT 1;", 60_000))
	for _, c := range []struct{ name, sql string }{
		{"grouped by names", "SELECT id" + repeatText(",id a", 30_000) + " FROM memories GROUP BY a" + repeatText(",a", 30_000)},
		{"grouped by many names", "SELECT id" + list(20_000, ",id a%[1]d") + " FROM memories GROUP BY a0" + list(20_000, ",a%[1]d")},
		{"grouped by positions", "SELECT id" + repeatText(",id", 30_000) + " FROM memories GROUP BY 1" + repeatText(",1", 30_000)},
		{"keys", "SELECT 1 FROM memories" + repeatText(",memories", 30_000) + " GROUP BY id" + repeatText(",id", 30_000)},
		{"stars", "SELECT *" + repeatText(",*", 30_000) + " FROM pg_am" + repeatText(",pg_am", 30_000)},
		{"stars of stars", "WITH c0 AS (SELECT 1 a" + list(1_600, ",1 a%d_%d") + ")" + list(8_000, ",c%[2]d AS (SELECT *, 1 FROM c%[1]d)") + " SELECT 1"},
		{"one alias", "SELECT a.x" + repeatText(",a.x", 20_000) + " FROM pg_am a" + repeatText(",pg_am a", 20_000)},
		{"items around", repeatText("SELECT (", 150) + "SELECT a.oid" + repeatText(",a.oid", 10_000) +
			repeatText(" FROM pg_am a"+repeatText(",pg_am a", 150)+")", 150)},
		{"queries of WITH", "WITH c AS (SELECT 1)" + list(20_000, ",c%d AS (SELECT %d)") + " SELECT 1"},
		{"predicates", "SELECT 1 FROM people" + repeatText(" UNION ALL SELECT 1 FROM people", 300)},
		{"pins", "SELECT match_memories(NULL,2)" + repeatText(",match_memories(NULL,2)", 20_000)},
		{"columns of COPY", "COPY memories (id" + repeatText(",id", 60_000) + ") TO STDOUT"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		elapsed, timePerByte := perByte(c.sql)
		runtime.ReadMemStats(&after)
		mb := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%s: %d bytes, %s, %d times that of plain ones, %d MB", c.name, len(c.sql), elapsed.Round(time.Millisecond),
			timePerByte/plainTimePerByte, mb)
		if len(c.sql) > 100_000 && timePerByte > 40*plainTimePerByte || mb > 1_000 {
			t.Errorf("%s: %d bytes of SQL took %s and %d MB, a byte %d times one of plain statements", c.name, len(c.sql), elapsed, mb, timePerByte/plainTimePerByte)
		}
	}
}
