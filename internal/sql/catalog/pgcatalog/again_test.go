package pgcatalog_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
)

// The query for relations that depend on changed ones uses the indexes of the catalogs, however many relations there
// are: the proxy runs it after each change.
func TestDependentsAreLookedUp(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t)
	conn := db.Connect(t, "postgres")
	exec(t, conn, `DO $$ BEGIN FOR i IN 1..300 LOOP
		EXECUTE format('CREATE TABLE many_%s (id serial PRIMARY KEY, parent int REFERENCES many_%s, name text CHECK (name <> ''''))', i,
			greatest(i - 1, 1));
		EXECUTE format('CREATE VIEW v_%s AS SELECT id FROM many_%s', i, i);
		END LOOP; END $$; ANALYZE; SET plan_cache_mode = force_generic_plan; PREPARE dependents (oid[]) AS `+pgcatalog.DependentsQuery)
	rows, err := conn.Query(t.Context(), "EXPLAIN EXECUTE dependents (ARRAY['many_7'::regclass])")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(plan, "\n"); strings.Contains(text, "Seq Scan") {
		t.Error(text)
	}
}
