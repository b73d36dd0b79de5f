package rewrite

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/test/tier"
)

// A function is treated as an aggregate where PostgreSQL has it as one. If one were missed, its result would come from
// the visible rows only. A volatile function is refused beside aggregates, since it could choose single rows of a
// group.
func TestAggregatesAndFunctionsOfAggregates(t *testing.T) {
	tier.All(t)
	ctx := context.Background()
	conn := database(t).Connect(t, "postgres")
	names := func(sql string, args ...any) []string {
		t.Helper()
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			t.Fatal(err)
		}
		out, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, name := range names(`SELECT DISTINCT proname::text FROM pg_proc WHERE prokind = 'a' AND pronamespace = 'pg_catalog'::regnamespace`) {
		if !catalogAggregates[name] {
			t.Errorf("%s is an aggregate", name)
		}
	}
	listedNames := slices.Collect(maps.Keys(cellFunctions))
	for _, name := range names(`SELECT DISTINCT proname::text FROM pg_proc WHERE proname = ANY ($1) AND pronamespace = 'pg_catalog'::regnamespace
		AND (provolatile = 'v' OR proretset OR prokind <> 'f')`, listedNames) {
		t.Errorf("%s is volatile, an aggregate, or returns a set", name)
	}
	namesOnServer := names(`SELECT DISTINCT proname::text FROM pg_proc WHERE proname = ANY ($1) AND pronamespace = 'pg_catalog'::regnamespace`, listedNames)
	for _, name := range listedNames {
		if !slices.Contains(namesOnServer, name) {
			t.Errorf("there is no function %s", name)
		}
	}
}
