package oracle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

const foundSchema = `CREATE EXTENSION pg_trgm;
CREATE TABLE person (id int PRIMARY KEY, agreed text NOT NULL);
INSERT INTO person SELECT g, CASE WHEN g < 3 THEN 'yes' ELSE 'no' END FROM generate_series(0, 4) g;
CREATE TABLE doc (id int PRIMARY KEY, person int NOT NULL REFERENCES person, title text,
  body text, meta jsonb NOT NULL, n int, found tsvector GENERATED ALWAYS AS (to_tsvector('english', coalesce(title, '') || ' ' || coalesce(body, ''))) STORED,
  changed timestamptz DEFAULT '2000-01-01', CHECK (n < 100000));
INSERT INTO doc SELECT g, g % 5, 'title ' || g, (ARRAY['a lake', 'two rivers', 'the old mill', NULL, 'rivers and lakes'])[1 + g % 7 % 5],
  jsonb_build_object('k', g % 3, 'code', 'C' || g % 11), g FROM generate_series(1, 400) g;
CREATE INDEX ON doc USING gin (found); CREATE INDEX ON doc USING gin (body gin_trgm_ops);
CREATE INDEX ON doc USING gin (meta); CREATE INDEX ON doc (lower(title)) WHERE n > 3;
CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.changed = now(); RETURN NEW; END $$;
CREATE TRIGGER stamp BEFORE UPDATE ON doc FOR EACH ROW EXECUTE FUNCTION stamp();
CREATE TABLE part (id int PRIMARY KEY, doc int NOT NULL REFERENCES doc ON DELETE CASCADE, word text);
INSERT INTO part SELECT g, 1 + g % 400, 'w' || g % 9 FROM generate_series(1, 600) g;
CREATE TABLE narrow (id int PRIMARY KEY, person int NOT NULL, body text, secret text);
INSERT INTO narrow SELECT id, person, body, 'secret ' || id FROM doc;
CREATE INDEX ON narrow USING gin (body gin_trgm_ops);
ANALYZE;`

const foundFilter = `DELETE FROM doc WHERE person > 2; DELETE FROM narrow WHERE person > 2; ` +
	`DELETE FROM person WHERE id > 2; ALTER TABLE narrow DROP secret, DROP person`

const foundPolicy = `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  person: { rows: [ { status: { column: agreed, is: "yes" } } ] }
  doc: { rows: [ { visible: { person: { id: person } } } ],
    write: { commands: [update, delete], columns: [title, body, meta, n], accept: [references, values] } }
  part: { rows: [ { visible: { doc: { id: doc } } } ] }
  narrow: { rows: [ { visible: { person: { id: person } } } ], columns: { id: allow, body: allow },
    write: { commands: [update, delete], columns: [body], accept: [values] } }
`

// foundWrites are writes to rows that a search finds, with the values of their parameters.
var foundWrites = []struct {
	sql  string
	args []string
}{
	{sql: "UPDATE doc SET n = n + 1 WHERE found @@ to_tsquery('english', 'lake') RETURNING id, n"},
	{sql: "UPDATE doc SET body = upper(body), meta = meta || '{\"seen\": true}' WHERE found @@ 'river'::tsquery " +
		"AND n / 2 > 20 RETURNING id, body, meta, ts_rank(found, 'river')"},
	{sql: "UPDATE doc d SET (title, n) = (SELECT max(p.word), count(*) FROM part p WHERE p.doc = d.id) WHERE " +
		"d.body ILIKE '%mill%' RETURNING id, title, body, meta, n, changed = now()"},
	{sql: "UPDATE doc d SET title = p.word FROM part p WHERE p.doc = d.id AND d.body LIKE '%lakes%' AND p.id % 2 " +
		"= 0 AND p.id < 401 RETURNING d.id, p.word"},
	{sql: "UPDATE doc SET body = 'no lake' WHERE meta @> '{\"code\": \"C7\"}' AND lpad(title, 8) <> 'x'"},
	{sql: "UPDATE doc SET body = NULL WHERE body ~ 'riv[e]rs' AND length(title) / 2 > 3 RETURNING id, found"},
	{sql: "UPDATE doc SET n = n / (n - 4) WHERE found @@ 'lake'::tsquery"},
	{sql: "UPDATE doc SET n = 10 * n WHERE found @@ 'lake'::tsquery AND n % 2 = 0"},
	{sql: "UPDATE doc SET n = 1000000 WHERE found @@ 'mill'::tsquery"},
	{sql: "UPDATE doc d SET n = e.n FROM doc e WHERE e.id = d.id + 7 AND e.found @@ 'lake'::tsquery AND d.body LIKE '%ver%' RETURNING d.id, e.id"},
	{sql: "DELETE FROM doc WHERE found @@ 'mill'::tsquery RETURNING id, person"},
	{sql: "DELETE FROM doc WHERE meta @> '{\"k\": 1}' AND body LIKE '%river%' AND title || id LIKE '%1%'"},
	{sql: "DELETE FROM doc d USING part p WHERE p.doc = d.id AND d.found @@ 'lake'::tsquery AND p.word = 'w3' RETURNING d.id"},
	{sql: "DELETE FROM doc WHERE NOT found @@ 'lake'::tsquery AND found @@ 'river'::tsquery"},
	{sql: "UPDATE narrow SET body = body || '!' WHERE body ILIKE '%lake%' RETURNING *"},
	{sql: "DELETE FROM narrow WHERE body LIKE '%mill%' AND length(body) / 2 > 1 RETURNING narrow"},
	{sql: "UPDATE doc SET title = $2 WHERE found @@ plainto_tsquery('english', $1) RETURNING id, title", args: []string{"lakes", "new"}},
	{sql: "UPDATE doc SET title = $2 WHERE found @@ plainto_tsquery('english', $1)", args: []string{strings.Repeat("lake ", 700), "new"}},
	{sql: "UPDATE doc SET n = n + $2 WHERE body ILIKE $1 AND n / 2 > $3 RETURNING id", args: []string{"%riv_rs%", "3", "7"}},
	{sql: "DELETE FROM doc WHERE body ILIKE $1 RETURNING id", args: []string{`%riv\`}},
	{sql: "DELETE FROM doc WHERE body ~* $1 AND meta @> $2 RETURNING id", args: []string{"RIV(er|al)s", `{"k": 2}`}},
	{sql: "UPDATE doc d SET n = 7 FROM to_tsquery('english', $1) AS q WHERE q @@ d.found AND d.n / 2 > $2 " +
		"RETURNING id", args: []string{"lake | !rivers & (mill | xx:*)", "7"}},
	{sql: "DELETE FROM doc USING part p CROSS JOIN to_tsquery('lakes & rivers') WHERE found @@ to_tsquery AND " +
		"p.doc = doc.id AND p.id % 2 = 0 RETURNING doc.id, ts_rank_cd(found, to_tsquery)"},
	{sql: "UPDATE doc SET title = 'x' FROM to_tsquery('english', $1) AS q WHERE found @@ q RETURNING id", args: []string{"two rivers"}},
	{sql: "DELETE FROM doc WHERE body ~ $1 RETURNING id", args: []string{"riv(?=ers)"}},
}

// An agent updates and deletes rows that a search finds. The answers, and the rows afterwards, must be those of a copy
// without the hidden rows.
func TestWritesOfSearchResults(t *testing.T) {
	database := func(moreSQL string) *pgtest.DB {
		db := pgtest.Database(t)
		instance.Exec(t, db, foundSchema+moreSQL)
		return db
	}
	const state = "SELECT id, title, body, meta, n, found, changed = now() FROM doc ORDER BY id; SELECT id, doc " +
		"FROM part ORDER BY id; SELECT id, body FROM narrow ORDER BY id"
	sendWrite := func(c *pgconn.PgConn, sql string, args []string) string {
		instance.Ask(c, "BEGIN")
		defer instance.Ask(c, "ROLLBACK")
		var answer string
		if args == nil {
			answer = instance.Ask(c, sql).SortedString()
			if strings.Contains(answer, "ERROR") {
				return answer[:strings.Index(answer, ":")]
			}
		} else {
			var values [][]byte
			for _, a := range args {
				values = append(values, []byte(a))
			}
			r := c.ExecParams(t.Context(), sql, values, nil, nil, nil).Read()
			if r.Err != nil {
				return fmt.Sprint(r.Err)
			}
			answer = fmt.Sprintf("%v %s", r.CommandTag, sortedRows(r.Rows))
		}
		return answer + "\n" + instance.Ask(c, state).SortedString()
	}
	filtered, unfiltered := instance.Connect(t, database(foundFilter).DSN("postgres", "")), instance.Connect(t, database("").DSN("postgres", ""))
	for _, mode := range instance.Modes(instance.Auto, instance.Both) {
		d := instance.Database{Name: "found", DB: database(""), Policy: foundPolicy, SearchPath: []string{"public"}}
		m := instance.Compile(t, d, mode)
		rewriter := rewrite.New(m.Snapshot, m.Policy, mode.Rewrite)
		c := instance.Start(t, mode, d, map[string]string{"user": "me"}).Agent(t, "agent", "found")
		byKey, sensitive := 0, 0
		for _, w := range foundWrites {
			got, want := sendWrite(c, w.sql, w.args), sendWrite(filtered, w.sql, w.args)
			if got != want {
				t.Errorf("%s: %s %v\n%s\nfiltered copy:\n%s", mode.Name, w.sql, w.args, instance.Truncate(got), instance.Truncate(want))
			}
			if sendWrite(unfiltered, w.sql, w.args) != want {
				sensitive++
			}
			if result, refused := rewriter.Rewrite(w.sql, w.args != nil); refused == nil && len(result.SearchedByKey) > 0 {
				byKey++
			}
		}
		if wantByKey := len(foundWrites) - 2; mode.Name == instance.Auto.Name && byKey < wantByKey {
			t.Errorf("%d of %d are found by key", byKey, wantByKey)
		}
		if sensitive*3 < len(foundWrites)*2 {
			t.Errorf("%d of %d are sensitive", sensitive, len(foundWrites))
		}
	}
}

func sortedRows(rows [][][]byte) []string {
	var out []string
	for _, row := range rows {
		out = append(out, fmt.Sprintf("%s", row))
	}
	slices.Sort(out)
	return out
}

// Another transaction changes rows while an agent's write waits for them. PostgreSQL checks the agent's condition again
// on the new version of each row. The result must be that of a filtered copy. Only rows whose keys the search has found
// in its snapshot may be written.
func TestWritesOfConcurrentlyChangedRows(t *testing.T) {
	tier.All(t)
	const write = "UPDATE doc SET n = n + 1000 WHERE found @@ 'lake'::tsquery AND length(body) / 2 > 1 RETURNING id, n, body"
	changes := map[string]string{
		"out of what is searched for": "UPDATE doc SET body = 'a hill' WHERE id = 7",
		"otherwise":                   "UPDATE doc SET n = -5, title = 'changed' WHERE id = 7",
		"into what is searched for":   "UPDATE doc SET body = 'a lake' WHERE id = 1",
		"by what is asked beside it":  "UPDATE doc SET body = 'lake', title = NULL WHERE id = 7; UPDATE doc SET body = 'a lake of lakes' WHERE id = 42",
		"and gone":                    "DELETE FROM doc WHERE id IN (7, 42)",
	}
	runWrite := func(label, change string, filter string, agent bool) string {
		db := pgtest.Database(t)
		instance.Exec(t, db, foundSchema+filter)
		other, monitor := instance.Connect(t, db.DSN("postgres", "")), instance.Connect(t, db.DSN("postgres", ""))
		c := instance.Connect(t, db.DSN("postgres", ""))
		if agent {
			d := instance.Database{Name: "found", DB: db, Policy: foundPolicy, SearchPath: []string{"public"}}
			c = instance.Start(t, instance.Auto, d, map[string]string{"user": "me"}).Agent(t, "agent", "found")
		}
		if a := instance.Ask(other, "BEGIN"); a.Err != "" {
			t.Fatal(a.Err)
		}
		if a := instance.Ask(other, change); a.Err != "" {
			t.Fatal(label, a.Err)
		}
		done := make(chan string, 1)
		go func() { done <- instance.Ask(c, write).SortedString() }()
		for end := time.Now().Add(tier.Patience); len(done) == 0 && time.Now().Before(end); { // until it waits for a lock, or is done
			if strings.Contains(instance.Ask(monitor,
				"SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()").SortedString(), "\n1") {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		instance.Ask(other, "COMMIT")
		return <-done + "\n" + instance.Ask(monitor, "SELECT id, n, body FROM doc WHERE person < 3 ORDER BY id").String()
	}
	for label, change := range changes {
		if got, want := runWrite(label, change, "", true), runWrite(label, change, foundFilter, false); got != want {
			t.Errorf("%s:\n%s\nfiltered copy:\n%s", label, instance.Truncate(got), instance.Truncate(want))
		}
	}
	if got := runWrite("theirs who do not consent", "UPDATE doc SET person = 3 WHERE id = 7",
		"", true); strings.Contains(got, "\n7\t1007\t") || !strings.Contains(got, "\n42\t1042\t") {
		t.Errorf("a row that became somebody's who does not consent: %s", got)
	}
}
