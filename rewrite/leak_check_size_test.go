package rewrite

import (
	"sort"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/test/tier"
)

// tables returns sizes that give each table the same number of rows.
func tables(snap *catalog.Snapshot, rows float64) catalog.Sizes {
	out := catalog.Sizes{}
	for _, r := range snap.Relations() {
		out[r.Name] = catalog.Size{Rows: rows}
	}
	return out
}

// The sizes of tables include hidden rows, and decide which relations the rewritten text reads. They must change
// nothing that the client sees: neither whether the text is too long, nor which parameter types PostgreSQL infers.
func TestSizesChangeNamesOnly(t *testing.T) {
	tier.All(t)
	r, _ := altered(t, AutoMode, "ALTER TABLE memories ADD n integer, ADD i8 bigint, ADD f float8, ADD found tsvector")
	smallRewriter, largeRewriter := r.WithSizes(tables(r.snap, 10)), r.WithSizes(sizes())
	hasHint := false
	shownToClient := func(r *Rewriter, sql string) string {
		result, refusal := r.Rewrite(sql, true)
		if refusal != nil {
			return refusal.Message
		}
		hasHint = hasHint || result.UseHash
		if strings.Contains(result.Text, "OFFSET 0") {
			return "rows are found first"
		}
		return "the text is as it was"
	}
	sqls := []string{
		"SELECT id, 'q'::int FROM memories WHERE found @@ 'b'::tsquery AND occurred_at > 'x' AND title ~ '(?=x)'",
		"SELECT n = $1 FROM memories WHERE found @@ 'b'::tsquery AND i8 > $1 AND title ~ '(?=x)'",
		"SELECT date_trunc('day', occurred_at), count(*) FROM memories WHERE title LIKE '%x%' GROUP BY 1",
	}
	for _, name := range []string{"memories", "public.memories"} { // lengths around the limit
		sql := "SELECT id FROM " + name + " WHERE title LIKE '%x%' -- "
		for _, missingBytes := range []int{0, 10, 17, 18, 19, 30, 45, 60, 100} {
			sqls = append(sqls, sql+strings.Repeat("x", sqltext.DefaultMaxBytes-missingBytes-len(sql)))
		}
	}
	longOperator := "SELECT count(*) FROM memories WHERE title ~ '(?=x)' --" // as many adjacent operator characters as allowed
	isShortEnough := func(n int) bool {
		_, refusal := sqltext.Scan(longOperator + " " + strings.Repeat("-", n))
		return refusal == nil
	}
	for isShortEnough(1) {
		longOperator += " " + strings.Repeat("-", sort.Search(20_000, func(n int) bool { return !isShortEnough(n + 1) }))
	}
	sqls = append(sqls, longOperator)
	signedViews := 0
	for _, sql := range sqls {
		if smallText, largeText := shownToClient(smallRewriter, sql), shownToClient(largeRewriter, sql); smallText != largeText {
			t.Errorf("%.120s, %d bytes: %s where tables are small, %s where they are large", sql, len(sql), smallText, largeText)
		}
		if result, _ := largeRewriter.Rewrite(sql, true); result.Path == verdict.PathSigned {
			signedViews++
		}
	}
	if signedViews < 3 || !hasHint {
		t.Errorf("%d of %d take the signed path, hints %v", signedViews, len(sqls), hasHint)
	}
}

// PostgreSQL infers a parameter's type from the first operand beside it. Where the rewriter moves the conditions of a
// search to the front, the parameter must be beside operands of one type only.
func TestConditionsAfterTheSearchKeepParameterTypes(t *testing.T) {
	r, _ := altered(t, AutoMode, "ALTER TABLE memories ADD n integer, ADD i8 bigint, ADD f float8, ADD f4 float4, ADD found tsvector")
	for sql, isAboveFence := range map[string]bool{
		"SELECT id FROM memories WHERE n > $1 AND n % 2 = 1 AND ":              true,
		"SELECT i8 = $1 FROM memories WHERE i8 > $1 AND n % 2 = 1 AND ":        true,
		"SELECT n = $1 FROM memories WHERE i8 > $1 AND n % 2 = 1 AND ":         false,
		"SELECT f4 = $1 FROM memories WHERE f > $1 AND n % 2 = 1 AND ":         false,
		"SELECT id FROM memories WHERE n IN ($1, 3) AND n % 2 = 1 AND ":        true,
		"SELECT n = $1 FROM memories WHERE n IN ($1, 3, i8) AND n % 2 = 1 AND": false,
		"SELECT title = $1 FROM memories WHERE title > $1 AND n % 2 = 1 AND ":  true,
	} {
		result, refusal := r.Rewrite(sql+" found @@ 'b'::tsquery", true)
		if refusal != nil || (result.AboveFenceReason != "") != isAboveFence {
			t.Errorf("%s: above %q, %q, %v", sql, result.AboveFenceReason, result.RowSecurityReason, refusal)
		}
	}
}
