package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	harness "github.com/pgconsent/pgconsent/test/instance"
)

// searchedSchema has 50,000 vectors of five members, with 78 %, 7 %, 1 %, 0.01 % and the rest of the rows.
const searchedSchema = `
CREATE EXTENSION vector;
CREATE TABLE notes (id int PRIMARY KEY, member int NOT NULL, kind text, emb vector(12) NOT NULL);
SELECT setseed(0.42);
INSERT INTO notes
SELECT i, CASE WHEN i % 10000 = 7 THEN 4 WHEN i % 100 = 8 THEN 3 WHEN i % 100 < 7 THEN 2 WHEN i % 100 < 85 THEN 1 ELSE 5 END, 'k' || i % 3,
  ARRAY(SELECT (random() + i % 4)::real FROM generate_series(1, 12) AS d WHERE i IS NOT NULL)::vector FROM generate_series(1, 50000) AS i;
CREATE INDEX ON notes USING hnsw (emb vector_l2_ops);
DO $$ BEGIN CREATE ROLE nearest_owner LOGIN; EXCEPTION WHEN duplicate_object THEN END $$;
ALTER TABLE notes OWNER TO nearest_owner;
ANALYZE notes`

const searchPolicy = `
version: 1
attributes: { member: { type: bigint, source: credential } }
tables: { notes: { rows: [ { own: { column: member, is: member } } ] } }
`

// A search for the nearest k rows returns k visible rows, or all if there are fewer. They are those of an exact search
// on the visible rows. If the policy accepts an approximate index, nearly all of them are.
func TestNearestRowsAreFilledFromVisibleOnes(t *testing.T) {
	db, super := vectorDatabase(t)
	ctx := context.Background()
	if _, err := super.PgConn().Exec(ctx, searchedSchema).ReadAll(); err != nil {
		t.Fatal(err)
	}
	memberByAgent := map[string]string{"most": "1", "few": "2", "one_percent": "3", "five": "4"}
	var agents []harness.Agent
	for name, member := range memberByAgent {
		agents = append(agents, harness.Agent{Name: name, Database: "notes", Attributes: map[string]string{"member": member}})
	}
	for i, mode := range []harness.Mode{harness.Auto, harness.Both, harness.Auto, harness.Both} {
		servedDatabase, leastShare := harness.Database{Name: "notes", DB: db, Policy: searchPolicy, SearchPath: []string{"public"}}, 1.0
		if i >= 2 {
			servedDatabase.Policy, leastShare = strings.Replace(searchPolicy, "rows:", "approximate: accept, rows:", 1), 0.99
		}
		harness.Install(t, servedDatabase, mode)
		proxy := harness.Serve(t, mode, []harness.Database{servedDatabase}, agents)
		for name, member := range memberByAgent {
			agent := proxy.Agent(t, name, "notes")
			foundRows, exactRows, queries := 0, 0, 20
			for q := range queries {
				searchVector := vectorAt(t, super, q*2300+11)
				whereClause, args := "", "LIMIT 10"
				if q%4 == 3 {
					whereClause = " WHERE kind = 'k1'"
				}
				exactIDs := columnValues(t, super.PgConn(),
					fmt.Sprintf("SELECT id FROM (SELECT * FROM notes WHERE member = %s OFFSET 0) AS n%s ORDER BY emb <-> '%s' LIMIT 10", member, whereClause, searchVector))
				sql := fmt.Sprintf("SELECT id FROM notes%s ORDER BY emb <-> '%s' %s", whereClause, searchVector, args)
				if q%2 == 1 {
					sql = fmt.Sprintf("SELECT id, emb <-> '%s' AS distance FROM notes AS n%s ORDER BY distance %s;", searchVector, whereClause, args)
				}
				got := columnValues(t, agent, sql)
				if len(got) != len(exactIDs) {
					t.Errorf("%s, %s: %d rows of %d: %s", mode.Name, name, len(got), len(exactIDs), sql)
				}
				exactRows += len(exactIDs)
				for _, id := range got {
					if slices.Contains(exactIDs, id) {
						foundRows++
					}
				}
			}
			recall := float64(foundRows) / float64(max(exactRows, 1))
			t.Logf("%s, %s: recall %.3f of %d rows, at least %.2f", mode.Name, name, recall, exactRows, leastShare)
			if recall < leastShare || exactRows == 0 {
				t.Errorf("%s, %s: recall %.3f", mode.Name, name, recall)
			}
		}
		// Parameters, offsets and errors work in statements that are rewritten for such a search.
		agent := proxy.Agent(t, "five", "notes")
		searchVector := vectorAt(t, super, 11)
		for limit, want := range map[string]int{"3": 3, "10": 5, "0": 0} {
			result := agent.ExecParams(ctx, "SELECT id FROM notes ORDER BY emb <-> $1 LIMIT $2", [][]byte{[]byte(searchVector), []byte(limit)}, nil, nil, nil).Read()
			if result.Err != nil || len(result.Rows) != want {
				t.Errorf("LIMIT %s: %d rows, %v", limit, len(result.Rows), result.Err)
			}
		}
		if result := agent.ExecParams(ctx, "SELECT id FROM notes ORDER BY emb <-> $1 LIMIT $2",
			[][]byte{[]byte(searchVector), nil}, nil, nil, nil).Read(); result.Err != nil || len(result.Rows) != 5 {
			t.Errorf("LIMIT NULL: %d rows, %v", len(result.Rows), result.Err)
		}
		if got := columnValues(t, agent, fmt.Sprintf("SELECT id FROM notes ORDER BY emb <-> '%s' LIMIT 10 OFFSET 2",
			searchVector)); len(got) != 3 {
			t.Errorf("OFFSET 2: %d rows", len(got))
		}
		_, err := agent.Exec(ctx, "/* é */ SELECT missing FROM notes ORDER BY emb <-> '[1]' LIMIT 1").ReadAll()
		if pg, ok := err.(*pgconn.PgError); !ok || pg.Code != "42703" || pg.Position != 16 {
			t.Errorf("an unknown column: %v", err)
		}
	}
}

// Windows and aggregates in a search cover all visible rows. An index may stop early among hidden rows, which must not
// change their results.
func TestSearchWindowsCoverAllVisibleRows(t *testing.T) {
	db, super := vectorDatabase(t)
	if _, err := super.PgConn().Exec(context.Background(), searchedSchema).ReadAll(); err != nil {
		t.Fatal(err)
	}
	for _, setting := range []string{"enable_hashagg", "enable_seqscan",
		"enable_sort"} { // so that the planner chooses plans as for a larger table
		if _, err := super.PgConn().Exec(context.Background(),
			fmt.Sprintf("DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET %s = off', current_database()); END $$", setting)).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	for _, mode := range harness.Modes(harness.Auto, harness.Both) {
		servedDatabase := harness.Database{Name: "notes", DB: db,
			Policy: strings.Replace(searchPolicy, "rows:", "approximate: accept, rows:", 1), SearchPath: []string{"public"}}
		harness.Install(t, servedDatabase, mode)
		proxy := harness.Serve(t, mode, []harness.Database{servedDatabase},
			[]harness.Agent{{Name: "few", Database: "notes", Attributes: map[string]string{"member": "2"}}})
		agent := proxy.Agent(t, "few", "notes")
		searchVector := vectorAt(t, super, 11)
		for _, selectList := range []string{
			"count(*) OVER ()", "sum(id) OVER ()", "rank() OVER (ORDER BY kind)", "json_arrayagg(id) OVER ()", "count(*) OVER w",
			"min(emb <-> '%[1]s')", "count(*)", "count(*) FILTER (WHERE id > 0)",
			"string_agg(id::text, ',' ORDER BY emb <-> '%[1]s')", "array_agg(id ORDER BY id)", "json_arrayagg(id ORDER BY emb <-> '%[1]s')",
		} {
			window := ""
			if strings.HasSuffix(selectList, " w") {
				window = " WINDOW w AS ()"
			}
			orderColumn := "emb"
			if !strings.Contains(selectList, "OVER") { // an aggregate without OVER returns a single row
				orderColumn = "'%[1]s'::vector"
			}
			sql := fmt.Sprintf("SELECT "+selectList+" FROM %[2]s AS n"+window+" ORDER BY "+orderColumn+" <-> '%[1]s' LIMIT 1", searchVector, "%s")
			if strings.HasPrefix(selectList, "json_arrayagg") { // an older server lacks this function
				if _, err := super.Exec(context.Background(), "SELECT json_arrayagg(1)"); err != nil {
					continue
				}
			}
			if selectList == "count(*)" {
				sql = fmt.Sprintf("SELECT count(*) FROM (SELECT id FROM %[2]s AS n GROUP BY emb <-> '%[1]s', id LIMIT 3000) AS x", searchVector, "%s")
			}
			want := columnValues(t, super.PgConn(), fmt.Sprintf(sql, "(SELECT * FROM notes WHERE member = 2 OFFSET 0)"))
			if got := columnValues(t, agent, fmt.Sprintf(sql, "notes")); !slices.Equal(got, want) {
				t.Errorf("%s: %.200v, on the visible rows %.200v: %s", mode.Name, got, want, fmt.Sprintf(sql, "notes"))
			}
		}
	}
}

// vectorDatabase returns a database with the extension pgvector, or skips the test.
func vectorDatabase(t *testing.T) (*pgtest.DB, *pgx.Conn) {
	t.Helper()
	db := pgtest.Database(t)
	super := db.Connect(t, "postgres")
	if _, err := super.Exec(context.Background(), "CREATE EXTENSION vector; DROP EXTENSION vector"); err != nil {
		if os.Getenv("REQUIRE_PGVECTOR") != "" {
			t.Fatalf("REQUIRE_PGVECTOR is set: %v", err)
		}
		t.Skipf("NOT TESTED, since pgvector is not installed: %v", err)
	}
	return db, super
}

// Hidden rows do not change which visible rows a search finds. They are dense around the searched point here, and the
// search width is small. If the policy accepts approximate results, the answers differ: so the test can detect a
// difference.
func TestHiddenVectorsDoNotDecideSearchResults(t *testing.T) {
	ctx := context.Background()
	const table = `CREATE EXTENSION vector; CREATE TABLE notes (id int PRIMARY KEY, member int NOT NULL, kind text, emb vector(8) NOT NULL); SELECT setseed(0.7);
INSERT INTO notes SELECT i, 1, 'k' || i %% 3, ARRAY(SELECT random()::real FROM generate_series(1, 8) AS d WHERE i IS NOT NULL)::vector
FROM generate_series(1, 3000) AS i;
INSERT INTO notes SELECT 10000 + i, 2, 'k1', ARRAY(SELECT (%s)::real FROM generate_series(1, 8) AS d WHERE i IS NOT NULL)::vector
FROM generate_series(1, 3000) AS i;
CREATE INDEX ON notes USING hnsw (emb vector_l2_ops); CREATE INDEX ON notes USING ivfflat (emb vector_l2_ops) WITH (lists = 40);
DO $$ BEGIN CREATE ROLE nearest_owner LOGIN; EXCEPTION WHEN duplicate_object THEN END $$; ALTER TABLE notes OWNER TO nearest_owner; ANALYZE notes`
	firstDB, super := vectorDatabase(t)
	secondDB, otherSuper := vectorDatabase(t)
	for i, conn := range []*pgx.Conn{super, otherSuper} {
		vectorMember := []string{"0.5 + random() * 0.001", "5 + random()"}[i]
		if _, err := conn.PgConn().Exec(ctx, fmt.Sprintf(table, vectorMember)).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	for _, acceptsApproximate := range []bool{false, true} {
		text := searchPolicy
		if acceptsApproximate {
			text = strings.Replace(text, "rows:", "approximate: accept, rows:", 1)
		}
		for _, mode := range harness.Modes(harness.Auto, harness.Both) {
			var agents [2]*pgconn.PgConn
			for i, db := range []*pgtest.DB{firstDB, secondDB} {
				servedDatabase := harness.Database{Name: "notes", DB: db, Policy: text, SearchPath: []string{"public"}}
				harness.Install(t, servedDatabase, mode)
				agents[i] = harness.Serve(t, mode, []harness.Database{servedDatabase},
					[]harness.Agent{{Name: "one", Database: "notes", Attributes: map[string]string{"member": "1"}}}).Agent(t, "one", "notes")
				for _, settingSQL := range []string{"SET hnsw.ef_search = 1", "SET ivfflat.probes = 1"} {
					if _, err := agents[i].Exec(ctx, settingSQL).ReadAll(); err != nil {
						t.Fatal(err)
					}
				}
			}
			differences := 0
			for _, search := range []string{
				"SELECT id FROM notes ORDER BY emb <-> '%s' LIMIT 10",
				"SELECT n.id, n.emb <-> '%s' AS d FROM notes AS n WHERE n.kind = 'k1' OR n.id < 100 ORDER BY d LIMIT 5",
				"SELECT public.notes.id FROM notes WHERE public.notes.kind <> 'k2' ORDER BY public.notes.emb <-> '%s', id LIMIT 3 OFFSET 2",
				"SELECT id FROM ONLY notes ORDER BY emb <-> '%s' LIMIT 4",
				"SELECT id FROM notes ORDER BY emb <-> (SELECT '%s'::vector) LIMIT 10",
				"SELECT string_agg(id::text, ',') FROM (SELECT id FROM notes ORDER BY emb <-> '%s' LIMIT 10) AS s",
			} {
				for _, searchVector := range []string{"[.5,.5,.5,.5,.5,.5,.5,.5]", "[.5,.5,.5,.5,.4,.5,.5,.6]", "[5,5,5,5,5,5,5,5]", "[.1,.9,.1,.9,.1,.9,.1,.9]"} {
					sql := fmt.Sprintf(search, searchVector)
					if a, b := columnValues(t, agents[0], sql), columnValues(t, agents[1], sql); !slices.Equal(a, b) || len(a) == 0 {
						if differences++; !acceptsApproximate {
							t.Errorf("%s: %s\n%v\n%v", mode.Name, sql, a, b)
						}
					}
				}
			}
			if acceptsApproximate && differences == 0 {
				t.Errorf("%s: by the index nothing differs: the vectors of this test prove nothing", mode.Name)
			}
		}
	}
}

// An index on vectors raises an error for a search vector of another dimension, but only if it contains rows. If only
// hidden rows are in the index, the error would reveal them.
func TestSearchesFailOverVisibleRowsOnly(t *testing.T) {
	db, super := vectorDatabase(t)
	ctx := context.Background()
	const table = `CREATE TABLE %[1]s (id int PRIMARY KEY, member int NOT NULL, kind text, emb vector(3), other vector(3));
INSERT INTO %[1]s SELECT i, 1, 'visible', NULL, NULL FROM generate_series(1, 20) AS i; CREATE INDEX ON %[1]s USING hnsw (emb vector_l2_ops);
CREATE INDEX ON %[1]s USING hnsw ((emb::halfvec(3)) halfvec_cosine_ops); ALTER TABLE %[1]s OWNER TO nearest_owner;`
	for _, sql := range []string{
		"CREATE EXTENSION vector; DO $$ BEGIN CREATE ROLE nearest_owner LOGIN; EXCEPTION WHEN duplicate_object " +
			"THEN END $$", fmt.Sprintf(table, "empty"), fmt.Sprintf(table, "filled"),
		"INSERT INTO filled SELECT i, 2, 'hidden', '[1,2,3]', '[1,2,3]' FROM generate_series(21, 40) AS i; ANALYZE",
		"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET enable_seqscan = off', current_database()); EXECUTE " +
			"format('ALTER DATABASE %I SET enable_sort = off', current_database()); END $$",
	} {
		if _, err := super.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	for _, mode := range harness.Modes(harness.Auto, harness.Both) {
		servedDatabase := harness.Database{Name: "notes", DB: db, SearchPath: []string{"public"},
			Policy: strings.Replace(searchPolicy, "tables: { notes: { rows: [ { own: { column: member, is: member } } ] } }",
				"tables:\n  empty: { rows: [ { own: { column: member, is: member } } ] }\n  filled: { rows: [ { own: { column: member, is: member } } ] }", 1)}
		harness.Install(t, servedDatabase, mode)
		agent := harness.Serve(t, mode, []harness.Database{servedDatabase},
			[]harness.Agent{{Name: "one", Database: "notes", Attributes: map[string]string{"member": "1"}}}).Agent(t, "one", "notes")
		for _, search := range []string{
			"SELECT id FROM %s ORDER BY emb <-> '[1,2]' LIMIT 2",
			"SELECT id, emb <-> '[1,2]' AS d FROM %s WHERE kind = 'visible' OR id = 7 ORDER BY d LIMIT 2",
			"SELECT emb::halfvec(3) <=> '[1,2]', id FROM %s AS x ORDER BY 1 LIMIT 2",
			"SELECT public.%[1]s.id FROM %[1]s WHERE EXISTS (SELECT FROM %[1]s AS y WHERE y.id = 1) ORDER BY public.%[1]s.emb <-> '[1,2]' LIMIT 2",
			"SELECT id FROM %s ORDER BY emb <-> (SELECT '[1,2]'::vector) LIMIT 2",
			"SELECT count(*) FROM (SELECT id FROM %s ORDER BY emb <-> '[1,2]' LIMIT 2) AS s",
		} {
			var answers [2]string
			for i, name := range []string{"empty", "filled"} {
				results, err := agent.Exec(ctx, fmt.Sprintf(search, name)).ReadAll()
				answers[i] = fmt.Sprint(codeOf(err))
				if err == nil {
					answers[i] = fmt.Sprintf("%d rows", len(results[0].Rows))
				}
			}
			if answers[0] != answers[1] || !strings.HasSuffix(answers[1], "rows") {
				t.Errorf("%s, %s: %s without hidden rows, %s with", mode.Name, search, answers[0], answers[1])
			}
		}
	}
}

func vectorAt(t *testing.T, conn *pgx.Conn, id int) string {
	t.Helper()
	var v string
	if err := conn.QueryRow(context.Background(), "SELECT emb::text FROM notes WHERE id = $1", id).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// columnValues returns the first column of a query's rows.
func columnValues(t *testing.T, conn *pgconn.PgConn, sql string) []string {
	t.Helper()
	results, err := conn.Exec(context.Background(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", strings.TrimSpace(sql), err)
	}
	var out []string
	for _, row := range results[0].Rows {
		out = append(out, string(row[0]))
	}
	return out
}
