package rewrite

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
)

// sizes are those of a large database with three users.
func sizes() catalog.Sizes {
	public := func(name string) catalog.Name { return catalog.Name{Schema: "public", Name: name} }
	return catalog.Sizes{
		public("memories"):            {Rows: 1e6, DistinctValues: map[string]float64{"user_id": 3, "id": 1e6}},
		public("memory_participants"): {Rows: 2.5e6, DistinctValues: map[string]float64{"memory_id": 1e6, "person_id": 1e5}},
		public("people"):              {Rows: 1e5, DistinctValues: map[string]float64{"user_id": 3, "id": 1e5}},
	}
}

func TestUseHashHint(t *testing.T) {
	r := rewriter(t, RowSecurityMode).WithSizes(sizes())
	for sql, want := range map[string]bool{
		"SELECT count(*) FROM memories":                                                                       true,
		"SELECT date_trunc('month', occurred_at), count(*) FROM memories GROUP BY 1":                          true,
		"SELECT title FROM memories WHERE body LIKE '%zebra%'":                                                true,
		"SELECT title FROM memories ORDER BY title LIMIT 20":                                                  true,
		"SELECT DISTINCT title FROM memories LIMIT 20":                                                        true,
		"SELECT count(*) FROM memory_participants":                                                            true,
		"SELECT count(*) FROM (SELECT * FROM memories) m":                                                     true,
		"WITH m AS (SELECT * FROM memories) SELECT count(*) FROM m":                                           true,
		"COPY (SELECT * FROM memories) TO STDOUT":                                                             true,
		"COPY memories TO STDOUT":                                                                             true,
		"SELECT 1 FROM notes WHERE EXISTS (SELECT FROM memories WHERE body = 'x')":                            true,
		"SELECT * FROM memories WHERE id = '6f1e0000-0000-4000-8000-000000000001'":                            false,
		"SELECT * FROM memories WHERE id = $1":                                                                false,
		"SELECT * FROM memories m WHERE m.id IN ('6f1e0000-0000-4000-8000-000000000001')":                     false,
		"SELECT title FROM memories ORDER BY id LIMIT 20":                                                     false,
		"SELECT title FROM memories LIMIT 20":                                                                 false,
		"SELECT p.role FROM memory_participants p JOIN memories m ON m.id = p.memory_id WHERE m.id = $1":      false,
		"SELECT m.title FROM memories m, memory_participants p WHERE p.memory_id = m.id AND p.person_id = $1": false,
		"SELECT * FROM people":                                                                                false, // the rule reads no other table
		"SELECT * FROM notes":                                                                                 false,
		"SELECT count(*) FROM shares":                                                                         true,
		"SELECT max(n), title FROM hosted GROUP BY title":                                                     true,
		"SELECT title FROM shares WHERE share > 2 AND title LIKE '%a'":                                        false,
		"SELECT title FROM shares WHERE title LIKE '%a'":                                                      true,
		"SELECT title FROM shares WHERE id = $1":                                                              false,
		"SELECT title FROM shares LIMIT 20":                                                                   false,
		"SELECT title FROM shares s JOIN memory_participants p ON p.memory_id = s.id WHERE p.person_id = $1":  false,
		"SELECT 1": false,
		// a sub-select in the results runs for each row of a LIMIT, or for all rows
		"SELECT name, (SELECT count(*) FROM memory_participants x WHERE x.person_id = p.id) FROM people p ORDER " +
			"BY name LIMIT 20": false,
		"SELECT name, (SELECT count(*) FROM memory_participants x WHERE x.person_id = p.id)::int AS n, " +
			"upper(name) FROM people p LIMIT $1 OFFSET 40": false,
		"SELECT json_build_object('n', name, 'roles', COALESCE((SELECT json_agg(x.role ORDER BY x.role) FROM " +
			"memory_participants x WHERE x.person_id = p.id), '[]')) FROM people p LIMIT 5": false,
		"SELECT name, (SELECT count(*) FROM memory_participants x WHERE x.person_id = p.id) FROM people p ORDER " +
			"BY name": true,
		"SELECT name, (SELECT count(*) FROM memory_participants x WHERE x.person_id = p.id) AS n FROM people p " +
			"ORDER BY n DESC LIMIT 20": true,
		"SELECT name, (SELECT count(*) FROM memory_participants x WHERE x.person_id = p.id) FROM people p ORDER " +
			"BY 2 DESC LIMIT 20": true,
		"SELECT DISTINCT name, (SELECT count(*) FROM memory_participants x WHERE x.person_id = p.id) FROM people " +
			"p LIMIT 20": true,
		"SELECT name FROM people p ORDER BY (SELECT count(*) FROM memory_participants x WHERE x.person_id = p.id) " +
			"LIMIT 20": true,
		"SELECT name, sum(1) OVER (), (SELECT count(*) FROM memory_participants x WHERE x.person_id = p.id) FROM " +
			"people p LIMIT 20": true,
		"SELECT CASE WHEN name = 'a' THEN (SELECT count(*) FROM memory_participants x WHERE x.person_id = p.id) " +
			"END FROM people p WHERE id = $1": false,
		"SELECT upper(title) FROM memories LIMIT 20":                false,
		"SELECT title, 2 * count(*) OVER () FROM memories LIMIT 20": true,
		"SELECT 2 * max(length(title)) FROM memories LIMIT 20":      true,
		"SELECT count(*) FROM memories; SELECT 1":                   false,
		"SET application_name = 'x'":                                false,
		"SELECT title FROM memories WHERE id = $1 AND EXISTS (SELECT FROM memory_participants p WHERE p.memory_id = memories.id)": false,
	} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil {
			t.Errorf("%s: %v", sql, refusal)
			continue
		}
		if result.UseHash != want || strings.HasPrefix(result.Text, predicate.UseHashHint) != want {
			t.Errorf("%s: scan is %v, %.60s", sql, result.UseHash, result.Text)
		}
		if tokenIndex := strings.Index(result.Text, "title"); want && tokenIndex > 0 && result.Position(tokenIndex+1) != strings.Index(sql, "title")+1 {
			t.Errorf("%s: position %d becomes %d", sql, tokenIndex+1, result.Position(tokenIndex+1))
		}
	}
	if result, _ := rewriter(t, RowSecurityMode).Rewrite("SELECT count(*) FROM memories", false); result.UseHash {
		t.Error("a hint without knowing the sizes")
	}
	large := sizes()
	large[catalog.Name{Schema: "public", Name: "memory_participants"}] = catalog.Size{Rows: 1e8}
	if result, _ := rewriter(t, RowSecurityMode).WithSizes(large).Rewrite("SELECT count(*) FROM memories",
		false); result.UseHash {
		t.Error("a hint for a set that does not fit into memory: the plan would be quadratic")
	}
}

// The control role reads the sizes of tables from the server.
func TestSizes(t *testing.T) {
	db := database(t)
	super := db.Connect(t, "postgres")
	if _, err := super.PgConn().Exec(context.Background(), `INSERT INTO people (user_id, name)
		SELECT ('00000000-0000-0000-0000-00000000000' || i % 4)::uuid, 'n' FROM generate_series(1, 1000) AS i; ANALYZE people`).ReadAll(); err != nil {
		t.Fatal(err)
	}
	rewriter(t, RowSecurityMode)
	people := catalog.Name{Schema: "public", Name: "people"}
	relation, _ := fixture.snap.Relation(people)
	got, err := pgcatalog.Sizes(context.Background(), db.Connect(t, "pgconsent_control"),
		[]*catalog.Relation{relation})
	if err != nil || got[people].Rows != 1000 || got[people].DistinctValues["user_id"] != 4 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := db.Connect(t, "pgconsent_agent").Exec(context.Background(), "SELECT pgconsent.distinct_values('{}')",
		pgx.QueryExecModeExec); err == nil {
		t.Error("an agent may ask for sizes")
	}
}
