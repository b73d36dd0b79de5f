package sqltext

import (
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/test/tier"
)

// A text is refused before it is parsed if the parser would copy a long source for each of many columns. Texts that
// people write are not refused.
func TestCopiedSources(t *testing.T) {
	list := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	for _, sql := range []string{
		"UPDATE t SET (" + list(1000, "a") + ") = ROW (" + list(1000, "1") + ")",
		"UPDATE t SET b = 1, (" + list(1000, "a") + ") = (SELECT " + list(1000, "1") + ")",
		"UPDATE t SET (" + list(1000, "a") + ") = 1" + strings.Repeat(" + 1", 400),
		"UPDATE t SET (" + list(1000, "a") + ") = 1 IS DISTINCT FROM 1" + strings.Repeat(" + 1", 400),
		"UPDATE t SET (" + list(1000, "a") + ") = (1) || (" + list(1000, "1") + ")",
		"UPDATE t SET (" + list(1000, "a") + ") = (ARRAY[" + list(1000, "1") + "])[1]",
		"UPDATE t SET " + list(100, "("+list(100, "a")+") = ROW ("+list(100, "1")+")"),
		"INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET (" + list(1000, "a") + ") = (SELECT " + list(1000, "1") + ")",
		"MERGE INTO t USING s ON true WHEN MATCHED THEN UPDATE SET (" + list(1000, "a") + ") = (SELECT " + list(1000, "1") + ")",
		"WITH x AS (UPDATE t SET (" + list(1000, "a") + ") = (SELECT " + list(1000, "1") + ") RETURNING *) SELECT * FROM x",
	} {
		startedAt := time.Now()
		_, err := Parse(sql)
		if err == nil || err.Code != sqlstate.StatementTooComplex {
			t.Errorf("%.60s: %v", sql, err)
		}
		if took := time.Since(startedAt); took > tier.Patience {
			t.Errorf("%.60s: %v", sql, took)
		}
	}
	for _, sql := range []string{
		"UPDATE t SET (a, b, c) = (SELECT x, y, z FROM s WHERE s.id = t.id) WHERE a > 1",
		"UPDATE t SET (" + list(60, "a") + ") = ROW (" + list(60, "$1") + ")",
		"SELECT 1, (a, b) = (1, 2) FROM t WHERE (a, b, c) = (" + list(3, "1") + ") AND x IN (" + list(20_000, "1") + ")",
		"INSERT INTO t (a, b, c) VALUES " + list(10_000, "(1, 2, 3)"),
		"UPDATE t SET a = 1, b = 2 WHERE (a, b) = (SELECT 1, 2) OR x IN (" + list(20_000, "1") + ")",
	} {
		if _, err := Parse(sql); err != nil {
			t.Errorf("%.60s: %v", sql, err)
		}
	}
}
