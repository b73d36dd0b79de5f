package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	harness "github.com/pgconsent/pgconsent/test/instance"
)

// These tests cover the requirements of the memberintel world (ADR-0029 of the original system), over the wire.

const (
	brainGlobal  = "b0000000-0000-4000-8000-000000000001"
	brainOwn     = "b0000000-0000-4000-8000-000000000002"
	brainForeign = "b0000000-0000-4000-8000-000000000003"
	brainAbsent  = "b0000000-0000-4000-8000-00000000ffff"
)

// brainVisible is the visibility rule of seeds/004:56.
const brainVisible = `(tenant_id = 'global' OR tenant_id = '` + user1 + `')`

func brainPolicy(t testing.TB) string {
	t.Helper()
	w, err := world.Open("memberintel")
	if err != nil {
		t.Fatal(err)
	}
	b, err := w.File("policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// unlimitedPolicy returns the world's policy without its limits, for tests that send more statements than a user would.
func unlimitedPolicy(t testing.TB) string {
	t.Helper()
	beforeLimits, fromLimits, ok := strings.Cut(brainPolicy(t), "limits:")
	_, afterLimits, _ := strings.Cut(fromLimits, "tables:")
	if !ok || afterLimits == "" {
		t.Fatal("the world has no limits")
	}
	return beforeLimits + "tables:" + afterLimits
}

// brainDatabase returns a database with the world.
func brainDatabase(t testing.TB) *pgtest.DB {
	t.Helper()
	return pgtest.Template(t, "memberintel", func(ctx context.Context, conn *pgx.Conn) error {
		w, err := world.Open("memberintel")
		if err != nil {
			return err
		}
		return w.Load(ctx, conn, nil)
	})
}

// brainCopy returns a copy of the world without what an advisor of the first user may not see; pgconsent's views are
// not used. It lacks hidden rows, and all metadata except the strings of the listed keys. withContent says whether it
// has the column content.
func brainCopy(t testing.TB, withContent bool) *pgconn.PgConn {
	t.Helper()
	db := brainDatabase(t)
	runAsSuperuser(t, db, `DELETE FROM brain_entries WHERE `+brainVisible+` IS NOT TRUE;
		UPDATE brain_entries SET metadata = CASE WHEN jsonb_typeof(metadata) = 'object' THEN (
			SELECT coalesce(jsonb_object_agg(k, CASE WHEN jsonb_typeof(v) = 'string' THEN v ELSE 'null' END), '{}') FROM jsonb_each(metadata) e(k, v)
			WHERE k IN ('title', 'url', 'summary', 'category', 'last_reviewed')) END`)
	if !withContent {
		runAsSuperuser(t, db, "ALTER TABLE brain_entries DROP COLUMN content")
	}
	return harness.Connect(t, db.DSN("postgres", ""))
}

// brainProxy serves the world's agents.
func brainProxy(t testing.TB, mode harness.Mode) (*pgtest.DB, *harness.Proxy) {
	t.Helper()
	d := harness.Database{Name: "brain", DB: brainDatabase(t), Policy: unlimitedPolicy(t), SearchPath: []string{"public"}}
	harness.Install(t, d, mode)
	return d.DB, harness.Serve(t, mode, []harness.Database{d}, []harness.Agent{
		{Name: "advisor", Database: "brain", Attributes: map[string]string{"user": user1}},
		{Name: "coach", Database: "brain", Attributes: map[string]string{"user": user2}},
	})
}

// readBrain is [brainProxy] for read-only tests, which share it. Each test has its own tap.
func readBrain(t testing.TB, mode harness.Mode) (*pgtest.DB, *harness.Proxy) {
	t.Helper()
	type servedBrain struct {
		db    *pgtest.DB
		proxy *harness.Proxy
	}
	sharedBrain := harness.Shared(t, "memberintel, "+mode.Name, func(t testing.TB) (servedBrain, *pgtest.DB) {
		db, proxy := brainProxy(t, mode)
		return servedBrain{db, proxy}, db
	})
	return sharedBrain.db, sharedBrain.proxy.WithOwnTap(t)
}

var brainModes = []harness.Mode{harness.Both, harness.RLS, harness.InjectedOnly, harness.Auto}

// Point a: global entries and the caller's own are visible, and all others are as if they did not exist.
// seeds/004:39-42, 55-58, 85-87, 115-116.
func TestMemberintelA_EverythingElseIsAsIfAbsent(t *testing.T) {
	db, proxy := readBrain(t, harness.Both)
	advisorConn := proxy.Agent(t, "advisor", "brain")
	hiddenIDs := firstColumnValues(t, db, `SELECT id::text FROM brain_entries WHERE `+brainVisible+` IS NOT TRUE ORDER BY id`)
	shownIDs := firstColumnValues(t, db, `SELECT id::text FROM brain_entries WHERE `+brainVisible+` ORDER BY id`)
	if len(hiddenIDs) < 300 || len(shownIDs) < 700 {
		t.Fatalf("%d hidden and %d visible entries prove little", len(hiddenIDs), len(shownIDs))
	}
	if got := harness.Ask(advisorConn, `SELECT id FROM brain_entries ORDER BY id`); strings.Join(got.Results[0].Rows, " ") != strings.Join(shownIDs, " ") {
		t.Errorf("%d entries, want %d", len(got.Results[0].Rows), len(shownIDs))
	}
	// A hidden id gets, in rows, errors, counts and tags, the same bytes as an id that does not exist.
	for _, statement := range []string{
		`SELECT * FROM brain_entries WHERE id = '%s'`, `SELECT content FROM brain_entries WHERE id = '%s'`,
		`SELECT count(*), count(content), max(content) FROM brain_entries WHERE id = '%s'`,
		`SELECT EXISTS (SELECT 1 FROM brain_entries WHERE id = '%s')`,
		`SELECT 1 / count(*) FROM brain_entries WHERE id = '%s'`, `SELECT content::int FROM brain_entries WHERE id = '%s'`,
		`SELECT (SELECT content FROM brain_entries WHERE id = '%s') IS NULL`, `SELECT title::int, metadata::text::int FROM brain_entries WHERE id = '%s'`,
		`INSERT INTO brain_entries (id, tenant_id, collection) VALUES ('%s', 'global', 'playbooks')`,
		`INSERT INTO brain_entries (id, collection) VALUES ('%s', 'x') ON CONFLICT DO NOTHING`,
		`UPDATE brain_entries SET title = title WHERE id = '%s' RETURNING content`, `DELETE FROM brain_entries WHERE id = '%s'`,
		`SELECT id FROM brain_entries WHERE id = '%s' FOR UPDATE`,
		`SELECT tenant_id FROM brain_entries WHERE id IN ('%s')`, `DECLARE c CURSOR FOR SELECT content FROM brain_entries WHERE id = '%s'`,
	} {
		want := harness.Ask(advisorConn, fmt.Sprintf(statement, brainAbsent)).SortedString()
		for _, id := range []string{brainForeign, hiddenIDs[0], hiddenIDs[len(hiddenIDs)/2]} {
			if got := harness.Ask(advisorConn, fmt.Sprintf(statement, id)).SortedString(); strings.ReplaceAll(got, id,
				"ID") != strings.ReplaceAll(want, brainAbsent, "ID") {
				t.Errorf("%s: a hidden entry answers\n%s\nan absent one\n%s", statement, got, want)
			}
		}
	}
	// The other user sees the same entry, and does not see the first user's own one.
	coachConn := proxy.Agent(t, "coach", "brain")
	if got := harness.Ask(coachConn, `SELECT content FROM brain_entries WHERE id = '`+brainForeign+`'`); len(got.Results[0].Rows) != 1 {
		t.Error("the second user's own entry does not show to its agent")
	}
	if got := harness.Ask(coachConn, `SELECT id FROM brain_entries WHERE tenant_id = '`+user1+`'`); len(got.Results[0].Rows) != 0 {
		t.Error("the first user's entries show to the second's agent")
	}
}

// firstColumnValues returns the first column of a query that the superuser runs.
func firstColumnValues(t testing.TB, db *pgtest.DB, sql string) []string {
	t.Helper()
	rows, err := db.Connect(t, "postgres").Query(context.Background(), sql)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Point b: metadata shows the listed keys only, each as a string or null, whatever is stored, in every mode and for
// later changes. seeds/004:26-33, 59-62, 69-76, 101-102, 147-151.
func TestMemberintelB_MetadataIsAnAllowlist(t *testing.T) {
	for _, mode := range harness.Modes(brainModes...) {
		t.Run(mode.Name, func(t *testing.T) {
			db, proxy := brainProxy(t, mode)
			agent := proxy.Agent(t, "advisor", "brain")
			answer := func(sql string) string {
				t.Helper()
				got := harness.Ask(agent, sql)
				if got.Code != "" || len(got.Results) != 1 {
					return got.Code
				}
				return strings.Join(got.Results[0].Rows, " ")
			}
			if got := answer(
				`SELECT DISTINCT k FROM brain_entries, jsonb_object_keys(metadata) AS k (k) WHERE jsonb_typeof(metadata) = 'object' ` +
					`ORDER BY k`); got != "category last_reviewed summary title url" {
				t.Errorf("keys %s", got)
			}
			if got := answer(
				`SELECT DISTINCT jsonb_typeof(e.value) FROM brain_entries, jsonb_each(metadata) e ` +
					`WHERE jsonb_typeof(metadata) = 'object' ORDER BY 1`); got != "null string" {
				t.Errorf("values are %s", got)
			}
			const entryClause = ` FROM brain_entries WHERE id = '` + brainGlobal + `'`
			for storedValue, want := range map[string]string{
				`{"title": "t", "author": "HIDDENMARK", "path": "HIDDENMARK", "internal": {"title": "HIDDENMARK"}}`: `{"title": "t"}`,
				`{"title": {"author": "HIDDENMARK"}, "url": ["HIDDENMARK"], "summary": 770001, "category": true}`: `{"url": null, ` +
					`"title": null, "summary": null, "category": null}`,
				`{"Title": "HIDDENMARK", "title ": "HIDDENMARK"}`: `{}`,
				`{"title": null, "last_reviewed": "2026-05-01"}`:  `{"title": null, "last_reviewed": "2026-05-01"}`,
				`["HIDDENMARK"]`: `\N`, `"HIDDENMARK"`: `\N`, `770001`: `\N`, `null`: `\N`,
			} {
				runAsSuperuser(t, db, `UPDATE brain_entries SET metadata = '`+storedValue+`' WHERE id = '`+brainGlobal+`'`)
				if got := answer("SELECT metadata" + entryClause); got != want {
					t.Errorf("%s comes out as %s, want %s", storedValue, got, want)
				}
				if got := answer("SELECT metadata ->> 'title'" + entryClause); got == "None" || got == "null" {
					t.Errorf("%s: the title is the word %s", storedValue, got)
				}
			}
			proxy.Tap().RequireNoMarker(t)
		})
	}
}

// Points b and c over many forms of SQL. The answers equal those of a copy without hidden rows and keys. The copy also
// lacks content, except where an entry is fetched by its id. seeds/004:21-25, 46-48, 82-84.
func TestMemberintelC_ContentExistsByKeyOnly(t *testing.T) {
	copyWithoutContent, copyWithContent := brainCopy(t, false), brainCopy(t, true)
	for _, mode := range harness.Modes(brainModes...) {
		t.Run(mode.Name, func(t *testing.T) {
			_, proxy := readBrain(t, mode)
			agent := proxy.Agent(t, "advisor", "brain")
			compareAnswers := func(sql string, copyConn *pgconn.PgConn) {
				t.Helper()
				want, got := harness.Ask(copyConn, sql), harness.Ask(agent, sql)
				harness.Ask(copyConn, "ROLLBACK; DEALLOCATE ALL")
				harness.Ask(agent, "ROLLBACK; DEALLOCATE ALL")
				if want.Code != got.Code || want.Code == "" && got.SortedString() != want.SortedString() {
					t.Errorf("%s\nagent:\n%s\ncopy:\n%s", sql, harness.Truncate(got.SortedString()), harness.Truncate(want.SortedString()))
				}
			}
			for _, sql := range brainLists {
				compareAnswers(sql, copyWithoutContent)
			}
			proxy.Tap().RequireNoMarker(t)
			for _, sql := range brainFetches {
				compareAnswers(strings.ReplaceAll(sql, "ID", brainOwn), copyWithContent)
			}
			for sql, copySQL := range brainMixed {
				sql, copySQL = strings.ReplaceAll(sql, "ID", brainOwn), strings.ReplaceAll(copySQL, "ID", brainOwn)
				if want, got := harness.Ask(copyWithContent, copySQL), harness.Ask(agent, sql); want.Code != "" || got.SortedString() != want.SortedString() {
					t.Errorf("%s\nagent:\n%s\ncopy:\n%s", sql, harness.Truncate(got.SortedString()), harness.Truncate(want.SortedString()))
				}
			}
			for _, sql := range brainAttacks {
				sql = strings.ReplaceAll(sql, "ID", brainOwn)
				got := harness.Ask(agent, sql)
				harness.Ask(agent, "ROLLBACK; DEALLOCATE ALL")
				if got.Code == "" {
					t.Errorf("%s is answered:\n%s", sql, harness.Truncate(got.SortedString()))
				}
				if strings.Contains(got.SortedString(), "BODYMARK") {
					t.Errorf("%s shows content:\n%s", sql, harness.Truncate(got.SortedString()))
				}
			}
			proxy.Tap().RequireNoMarker(t)
		})
	}
}

// brainLists are statements that name no key; some of them use the column content nevertheless.
var brainLists = []string{
	"SELECT * FROM brain_entries", "TABLE brain_entries", "SELECT b FROM brain_entries b",
	"SELECT to_jsonb(b) FROM brain_entries b", "SELECT id, collection, metadata FROM brain_entries",
	"SELECT (b).* FROM brain_entries b", "SELECT count(*), collection FROM brain_entries GROUP BY 2",
	"SELECT id FROM brain_entries WHERE metadata ->> 'title' LIKE 'W%'",
	"SELECT metadata -> 'author', metadata #> '{path}', metadata #>> '{title,author}', metadata['author'] FROM " +
		"brain_entries", "SELECT key, count(*) FROM brain_entries, jsonb_each(metadata) GROUP BY 1",
	"SELECT metadata ->> 'summary', metadata ->> 'title', metadata ->> 'last_reviewed' FROM brain_entries WHERE " +
		"metadata ? 'summary'", "SELECT id FROM brain_entries WHERE metadata @> '{\"author\": \"x\"}' OR metadata ? 'path'",
	"SELECT jsonb_path_query(metadata, '$.**') FROM brain_entries",
	"SELECT jsonb_object_keys(metadata) FROM brain_entries WHERE jsonb_typeof(metadata) = 'object'", "SELECT metadata::text FROM brain_entries",
	"SELECT jsonb_agg(metadata ORDER BY id) FROM brain_entries",
	"SELECT max(length(metadata::text)), sum(hashtext(metadata::text)) FROM brain_entries",
	"SELECT DISTINCT jsonb_typeof(metadata -> 'title') FROM brain_entries",
	"SELECT jsonb_pretty(metadata || '{}') FROM brain_entries ORDER BY id LIMIT 5",
	"SELECT x.* FROM brain_entries, jsonb_to_record(metadata) AS x (title text, author text, path text, summary text)",
	"SELECT title AS content FROM brain_entries ORDER BY content LIMIT 3",
	"SELECT collection AS content, count(*) FROM brain_entries GROUP BY content", "SELECT id FROM brain_entries WHERE id = '" + brainOwn + "'",
	"SELECT a.id FROM brain_entries a JOIN brain_entries b ON b.id = a.id WHERE a.collection = 'soul'",
	"COPY brain_entries TO STDOUT", "COPY (SELECT * FROM brain_entries) TO STDOUT",
	"SELECT content FROM brain_entries", "SELECT b.content FROM brain_entries b",
	"SELECT id FROM brain_entries WHERE content LIKE '%BODY%'", "SELECT id FROM brain_entries ORDER BY content",
	"SELECT length(content) FROM brain_entries",
	"SELECT count(*) FROM brain_entries GROUP BY content",
	"SELECT id FROM brain_entries b WHERE b.content IS NOT NULL", "SELECT (b).content FROM brain_entries b",
	"SELECT content(b) FROM brain_entries b", "SELECT max(content) FROM brain_entries",
	"SELECT * FROM brain_entries NATURAL JOIN (VALUES ('x')) v (content)",
	"SELECT to_jsonb(b) ->> 'content' FROM brain_entries b LIMIT 1",
	"SELECT x.content FROM (SELECT * FROM brain_entries) x", "COPY brain_entries (content) TO STDOUT",
	"WITH x AS (SELECT * FROM brain_entries) SELECT content FROM x",
	"SELECT * FROM brain_entries JOIN (SELECT '' AS content) v USING (content)", "SELECT 1 FROM brain_entries HAVING min(content) > ''",
}

// brainFetches are statements that name the key of every entry that they read.
var brainFetches = []string{
	"SELECT content FROM brain_entries WHERE id = 'ID'", "SELECT * FROM brain_entries WHERE id = 'ID'",
	"SELECT b FROM brain_entries b WHERE b.id = 'ID'", "SELECT b.* FROM brain_entries b WHERE 'ID' = b.id",
	"SELECT to_jsonb(b) FROM brain_entries AS b WHERE id = 'ID'::uuid",
	"SELECT content FROM brain_entries WHERE id = uuid 'ID' AND collection = 'bible'",
	"SELECT content FROM public.brain_entries WHERE public.brain_entries.id = 'ID'",
	"SELECT content FROM brain_entries WHERE (id = 'ID' AND title IS NOT NULL) AND content LIKE '%members%'",
	"SELECT content FROM brain_entries WHERE id IN ('ID')", "SELECT content FROM brain_entries WHERE id = ANY (ARRAY['ID'::uuid])",
	"SELECT content FROM brain_entries WHERE id = ANY ('{ID}')",
	"SELECT content FROM brain_entries WHERE id = ANY ('{ID}'::uuid[])",
	"SELECT length(content), upper(content), split_part(content, e'\\n', 1) FROM brain_entries WHERE id = 'ID'",
	"SELECT (b).content, content FROM brain_entries b WHERE id = 'ID' ORDER BY content",
	"SELECT max(content) FROM brain_entries WHERE id = 'ID' GROUP BY content HAVING content > ''",
	"SELECT content FROM brain_entries WHERE id = 'ID' AND id = '" + brainGlobal + "'",
	"SELECT (SELECT content FROM brain_entries WHERE id = 'ID')",
	"SELECT x.content FROM (SELECT * FROM brain_entries WHERE id = 'ID') x",
	"WITH x AS (SELECT content FROM brain_entries WHERE id = 'ID') SELECT * FROM x",
	"SELECT v.n, b.content FROM (VALUES (1), (2)) v (n) JOIN brain_entries b ON b.id = 'ID'",
	"SELECT v.n, b.content FROM (VALUES (1), (2)) v (n) LEFT JOIN brain_entries b ON b.id = 'ID' AND v.n = 2",
	"SELECT v.n, b.content FROM brain_entries b RIGHT JOIN (VALUES (1), (2)) v (n) ON b.id = 'ID' AND v.n = 2",
	"SELECT b.content FROM (VALUES (1)) v (n) LEFT JOIN brain_entries b ON true WHERE b.id = 'ID'",
	"SELECT a.content, b.content FROM brain_entries a, brain_entries b WHERE a.id = 'ID' AND b.id = '" + brainGlobal +
		"'", "SELECT content FROM brain_entries WHERE id = 'ID' UNION ALL SELECT content FROM brain_entries WHERE id = '" + brainGlobal + "'",
	"COPY (SELECT content FROM brain_entries WHERE id = 'ID') TO STDOUT",
	"PREPARE p (uuid) AS SELECT content FROM brain_entries WHERE id = $1; EXECUTE p ('ID'); EXECUTE p ('" +
		brainGlobal + "'); EXECUTE p ('" + brainForeign + "')",
	"BEGIN; DECLARE c CURSOR FOR SELECT content FROM brain_entries WHERE id = 'ID'; FETCH ALL c",
	"SELECT content::int FROM brain_entries WHERE id = 'ID'", "SELECT content FROM brain_entries WHERE id = 'no uuid'",
	"SELECT content FROM brain_entries WHERE id = '" + brainForeign +
		"'", "SELECT content FROM brain_entries WHERE id = 'ID' OFFSET 0",
	"SELECT b.content, l.n FROM brain_entries b, LATERAL (SELECT length(b.content) AS n) l WHERE b.id = 'ID'",
	"SELECT content FROM brain_entries WHERE id = 'ID' AND EXISTS (SELECT 1 FROM brain_entries c WHERE c.id = " +
		"brain_entries.id)", "SELECT row_number() OVER (ORDER BY content) FROM brain_entries WHERE id = 'ID'",
	"SELECT b.title FROM brain_entries b FULL JOIN (VALUES (1)) v (n) ON b.content IS NULL WHERE b.id = 'ID'",
	"SELECT content FROM brain_entries WHERE id = $q$ID$q$", "SELECT content FROM brain_entries WHERE id = 'ID' LIMIT 1",
	"SELECT content FROM brain_entries, generate_series(1, 2) AS g (n) WHERE brain_entries.id = 'ID'",
}

// brainMixed are statements with a list and a fetch by key, with equivalent statements for the copy. Only the fetched
// row has content.
var brainMixed = map[string]string{
	"SELECT b.content, l.* FROM brain_entries b, brain_entries l WHERE b.id = 'ID' AND l.collection = 'soul'": "SELECT b.content, l.id, l.tenant_id, " +
		"l.collection, l.title, l.category, l.last_reviewed, l.metadata FROM brain_entries b, brain_entries l WHERE b.id = 'ID' AND l.collection = 'soul'",
	"SELECT l.id FROM brain_entries l WHERE l.title < (SELECT content FROM brain_entries WHERE id = 'ID')": "SELECT l.id FROM brain_entries l " +
		"WHERE l.title < (SELECT content FROM brain_entries WHERE id = 'ID')",
	"SELECT l.id, (SELECT b.content FROM brain_entries b WHERE b.id = 'ID' AND b.id = l.id) AS content FROM " +
		"brain_entries l": "SELECT l.id, (SELECT b.content FROM brain_entries b WHERE b.id = 'ID' AND b.id = l.id) AS content FROM brain_entries l",
}

// brainAttacks are statements that try to read the content of a row whose key they do not name: all are refused.
var brainAttacks = []string{
	"SELECT ctid FROM brain_entries WHERE id = 'ID' AND content > ''",
	"SELECT * FROM brain_entries WHERE id = 'ID' AND content > '' OR id = 'ID' AND false",
	"SELECT content FROM brain_entries WHERE id = id",
	"SELECT content FROM brain_entries WHERE id = (SELECT id FROM brain_entries LIMIT 1)",
	"SELECT content FROM brain_entries WHERE id = coalesce('ID', id)",
	"SELECT content FROM brain_entries WHERE id = 'ID' OR true",
	"SELECT content FROM brain_entries WHERE id = 'ID' OR id = '" + brainGlobal +
		"'", "SELECT content FROM brain_entries WHERE NOT id = 'ID'", "SELECT content FROM brain_entries WHERE (id = 'ID') IS NOT TRUE",
	"SELECT content FROM brain_entries WHERE id <> 'ID'", "SELECT content FROM brain_entries WHERE id >= 'ID'",
	"SELECT content FROM brain_entries WHERE id IN (SELECT id FROM brain_entries)",
	"SELECT content FROM brain_entries WHERE id = ANY (ARRAY(SELECT id FROM brain_entries))",
	"SELECT content FROM brain_entries WHERE id IN ('ID', '" + brainGlobal +
		"')", "SELECT content FROM brain_entries WHERE id = ANY ('{ID," + brainGlobal +
		"}')", "SELECT content FROM brain_entries WHERE id NOT IN ('ID')", "SELECT content FROM brain_entries WHERE id = ALL ('{ID}')",
	"SELECT content FROM brain_entries WHERE id = ALL ('{}')",
	"SELECT content FROM brain_entries WHERE id = ANY ('{}')",
	"SELECT content FROM brain_entries WHERE id IS NOT DISTINCT FROM id",
	"SELECT content FROM brain_entries WHERE id::text = 'ID'",
	"SELECT content FROM brain_entries WHERE id BETWEEN 'ID' AND 'ffffffff-ffff-ffff-ffff-ffffffffffff'",
	"SELECT content FROM brain_entries WHERE CASE WHEN id = 'ID' THEN true ELSE true END",
	"SELECT content FROM brain_entries HAVING id = 'ID'",
	"SELECT content FROM brain_entries GROUP BY content, id HAVING id = 'ID'",
	"SELECT string_agg(content, '') FILTER (WHERE id = 'ID') FROM brain_entries",
	"SELECT b.content FROM brain_entries a, brain_entries b WHERE a.id = 'ID'",
	"SELECT b.content FROM brain_entries a JOIN brain_entries b ON b.id = a.id WHERE a.id = 'ID'",
	"SELECT b.content FROM brain_entries a JOIN brain_entries b USING (id) WHERE a.id = 'ID'",
	"SELECT content FROM brain_entries a JOIN brain_entries b USING (id) WHERE id = 'ID'",
	"SELECT b.content FROM brain_entries b LEFT JOIN (VALUES (1)) v (n) ON b.id = 'ID'",
	"SELECT b.content FROM (VALUES (1)) v (n) RIGHT JOIN brain_entries b ON b.id = 'ID'",
	"SELECT b.content FROM brain_entries b FULL JOIN (VALUES (1)) v (n) ON b.id = 'ID'",
	"SELECT x.content FROM brain_entries l, LATERAL (SELECT content FROM brain_entries b WHERE b.id = l.id) x",
	"SELECT (SELECT content FROM brain_entries b WHERE b.id = l.id) FROM brain_entries l",
	"SELECT (SELECT b.content FROM brain_entries b WHERE l.id = 'ID') FROM brain_entries l",
	"WITH RECURSIVE k AS (SELECT 'ID'::uuid AS id UNION ALL SELECT l.id FROM brain_entries l, k WHERE l.id > " +
		"k.id) SELECT content FROM k, brain_entries b WHERE b.id = k.id",
	"WITH k AS (SELECT id FROM brain_entries) SELECT content FROM brain_entries b, k WHERE b.id = k.id",
	"PREPARE p (uuid) AS SELECT content FROM brain_entries WHERE id = $1 OR true",
	"PREPARE p (uuid) AS SELECT content FROM brain_entries WHERE id = $1; EXECUTE p ((SELECT id FROM " +
		"brain_entries LIMIT 1))", "PREPARE p (uuid[]) AS SELECT content FROM brain_entries WHERE id = ANY ($1)",
	"DECLARE c CURSOR WITH HOLD FOR SELECT content FROM brain_entries",
	"SELECT content FROM brain_entries WHERE id = 'ID' FOR UPDATE",
	"SELECT content FROM brain_entries AS b (a, b, c, d, e, f, g, content) WHERE b.a = 'ID'",
	"SELECT content FROM ONLY brain_entries WHERE id IS NOT NULL",
	"SELECT x.content FROM (SELECT * FROM brain_entries) x WHERE x.id = 'ID'",
	"WITH x AS (SELECT * FROM brain_entries) SELECT content FROM x WHERE id = 'ID'",
	"SELECT j.content FROM (brain_entries b CROSS JOIN (VALUES (1)) v (n)) AS j WHERE j.id = 'ID'", "SELECT content FROM brain_entries WHERE id = NULL",
	"SELECT content FROM brain_entries WHERE id = 'ID'::text::uuid",
	"SELECT content FROM brain_entries WHERE id OPERATOR(pg_catalog.=) 'ID'",
	"SELECT content FROM brain_entries WHERE (id, id) = ('ID', 'ID')",
	"SELECT content FROM brain_entries WHERE ARRAY[id] = '{ID}'", "SELECT content FROM brain_entries WHERE id = current_setting('search_path')::uuid",
	"SELECT content FROM brain_entries WHERE id = gen_random_uuid()",
	"SELECT content FROM pgconsent_rows.key_public_brain_entries",
	"SELECT content FROM pgconsent_rows.key_public_brain_entries('ID')",
	"SELECT pgconsent_rows.key_public_brain_entries(id) FROM brain_entries", "SELECT content FROM pgconsent_rows.filtered_key_public_brain_entries",
	"SELECT public.brain_entries.content FROM brain_entries",
	"SELECT content FROM brain_entries TABLESAMPLE system (100) WHERE id = 'ID'",
	"UPDATE brain_entries SET title = content WHERE id = 'ID'",
	"DELETE FROM brain_entries WHERE id = 'ID' RETURNING content", "INSERT INTO brain_entries SELECT * FROM brain_entries WHERE id = 'ID'",
	"MERGE INTO brain_entries b USING brain_entries s ON b.id = 'ID' WHEN MATCHED THEN DO NOTHING",
	"EXPLAIN ANALYZE SELECT content FROM brain_entries WHERE id = 'ID'",
	"SELECT content FROM brain_entries b, (SELECT 'ID'::uuid AS id) k WHERE b.id = k.id",
	"SELECT content FROM brain_entries NATURAL JOIN (SELECT 'ID'::uuid AS id) k",
}

// Point c: the agent's conditions are not evaluated on rows whose key it does not name, whatever the plan.
func TestMemberintelC_NoExpressionRunsOnOtherContent(t *testing.T) {
	db, proxy := brainProxy(t, harness.Both)
	runAsSuperuser(t, db, "UPDATE brain_entries SET content = '1' WHERE id = '"+brainOwn+"'")
	agent := proxy.Agent(t, "advisor", "brain")
	for _, sql := range []string{
		"SELECT content FROM brain_entries WHERE content::int = 1 AND id = '" + brainOwn + "'",
		"SELECT b.content FROM (VALUES (1)) v (n) JOIN brain_entries b ON b.content::int = v.n AND b.id = '" + brainOwn + "'",
		"SELECT b.content FROM (VALUES (1)) v (n) LEFT JOIN brain_entries b ON b.content::int = v.n WHERE b.id = '" + brainOwn + "'",
		"SELECT content FROM brain_entries WHERE 1 / length(content) = 1 AND id = '" + brainOwn + "' AND content::int > 0",
	} {
		if got := harness.Ask(agent, sql); got.Code != "" || len(got.Results[0].Rows) != 1 {
			t.Errorf("%s\n%s", sql, got.SortedString())
		}
	}
	proxy.Tap().RequireNoMarker(t)
}

// Point c over the extended protocol: a prepared statement gets one key in each execution.
// seeds/004:46-48, 93-95.
func TestMemberintelC_FetchesWithParameters(t *testing.T) {
	db, proxy := readBrain(t, harness.Both)
	conn, err := pgx.Connect(context.Background(), proxy.DSN("advisor", "brain"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, id := range firstColumnValues(t, db, `SELECT id::text FROM brain_entries WHERE collection IN ('soul', 'bible') ORDER BY id`) {
		want := firstColumnValues(t, db, `SELECT content FROM brain_entries WHERE id = '`+id+`' AND `+brainVisible)
		for _, sql := range []string{`SELECT content FROM brain_entries WHERE id = $1`,
			`SELECT content FROM brain_entries b WHERE b.id = $1::uuid`, `SELECT content FROM brain_entries WHERE id IN ($1)`} {
			rows, err := conn.Query(context.Background(), sql, id)
			if err != nil {
				t.Fatal(err)
			}
			got, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil || strings.Join(got, "|") != strings.Join(want, "|") {
				t.Fatalf("%s with %s: %d rows, %v; want %d", sql, id, len(got), err, len(want))
			}
		}
	}
	proxy.Tap().RequireNoMarker(t)
}

// Point c, for developers: the error says how to fetch content, and the catalogs describe the columns of the list.
func TestMemberintelC_DenialsSayHowToFetchContent(t *testing.T) {
	_, proxy := readBrain(t, harness.Both)
	agent := proxy.Agent(t, "advisor", "brain")
	got := harness.Ask(agent, "SELECT b.content FROM brain_entries b")
	if got.Code != "42703" || !strings.Contains(got.Err, "WHERE id = ...") {
		t.Errorf("the error does not teach: %s", got.Err)
	}
	for sql, want := range map[string]string{
		"SELECT string_agg(column_name, ',' ORDER BY ordinal_position) FROM information_schema.columns WHERE " +
			"table_name = 'brain_entries'": "id,tenant_id,collection,title,category,last_reviewed,metadata",
		"SELECT string_agg(attname, ',' ORDER BY attnum) FROM pg_attribute WHERE attrelid = " +
			"'brain_entries'::regclass AND attnum > 0": "id,tenant_id,collection,title,category,last_reviewed,metadata",
		"SELECT string_agg(relname, ',') FROM pg_class WHERE relname LIKE '%key\\_public%'":                                                `\N`,
		"SELECT string_agg(proname, ',') FROM pg_proc WHERE proname LIKE '%key\\_public%'":                                                 `\N`,
		"SELECT string_agg(typname, ',') FROM pg_type WHERE typname LIKE '%key\\_public%'":                                                 `\N`,
		"SELECT string_agg(table_name, ',') FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema')": "brain_entries",
	} {
		if got := harness.Ask(agent, sql); got.Code != "" || got.Results[0].Rows[0] != want {
			t.Errorf("%s: %s", sql, got.SortedString())
		}
	}
}

// Point c, and an open question of the seed: a limit per user stops scraping with a clear error. Ids without a row
// count as well.
// seeds/004:127-128.
func TestMemberintelC_ScrapingStops(t *testing.T) {
	d := harness.Database{Name: "brain", DB: brainDatabase(t), Policy: brainPolicy(t), SearchPath: []string{"public"},
		Audit: filepath.Join(t.TempDir(), "audit")}
	harness.Install(t, d, harness.Both)
	proxy := harness.Serve(t, harness.Both, []harness.Database{d}, []harness.Agent{
		{Name: "advisor", Database: "brain", Attributes: map[string]string{"user": user1}},
		{Name: "member_ui", Database: "brain", Attributes: map[string]string{"user": user1}},
		{Name: "coach", Database: "brain", Attributes: map[string]string{"user": user2}},
	})
	ids := firstColumnValues(t, d.DB, `SELECT id::text FROM brain_entries ORDER BY id`)
	sessions := []*pgconn.PgConn{proxy.Agent(t, "advisor", "brain"), proxy.Agent(t, "member_ui", "brain"), proxy.Agent(t, "advisor", "brain")}
	fetchedEntries := 0
	for i, id := range ids {
		got := harness.Ask(sessions[i%len(sessions)], `SELECT content FROM brain_entries WHERE id = '`+id+`'`)
		if got.Code != "" {
			const limitMessage = "60 per minute and user, which come back evenly, and 60 at once"
			if got.Code != limitExhausted || !strings.Contains(got.Err, limitMessage) || !strings.Contains(got.Err, "Try again in") {
				t.Errorf("the error is %s", got.Err)
			}
			break
		}
		fetchedEntries++
	}
	if fetchedEntries < 60 || fetchedEntries > 90 { // one more fetch is allowed each second
		t.Errorf("%d fetches of %d before the limit", fetchedEntries, len(ids))
	}
	if got := harness.Ask(sessions[0], `SELECT count(*) FROM brain_entries`); got.Code != "" {
		t.Errorf("lists are refused, too: %s", got.Err)
	}
	if got := harness.Ask(proxy.Agent(t, "coach", "brain"), `SELECT content FROM brain_entries WHERE id = '`+brainForeign+`'`); got.Code != "" {
		t.Errorf("another user is refused: %s", got.Err)
	}
	// The audit has a record of each attempt, including the refused one: by two agents, and then a list.
	decisions := countDecisions(t, d.Audit)
	total := 0
	for _, agent := range []string{"advisor", "member_ui"} {
		total += decisions[agent]["allow"] + decisions[agent]["deny"]
	}
	if total != fetchedEntries+2 || decisions["coach"]["allow"] != 1 {
		t.Errorf("of %d attempts the audit has %v", fetchedEntries+3, decisions)
	}
}

// Point d: agents cannot write in any way.
// seeds/004:63, 88-89.
func TestMemberintelD_ReadOnly(t *testing.T) {
	db, proxy := readBrain(t, harness.Both)
	before := firstColumnValues(t, db, `SELECT md5(string_agg(b::text, '' ORDER BY id)) FROM brain_entries b`)
	agent := proxy.Agent(t, "advisor", "brain")
	for _, sql := range []string{
		`INSERT INTO brain_entries (id, collection) VALUES (gen_random_uuid(), 'x')`,
		`UPDATE brain_entries SET title = 'x'`, `DELETE FROM brain_entries`, `TRUNCATE brain_entries`, `COPY brain_entries FROM STDIN`,
		`MERGE INTO brain_entries b USING (SELECT 1) s ON true WHEN MATCHED THEN DELETE`,
		`SELECT id FROM brain_entries FOR UPDATE`, `SELECT id FROM brain_entries FOR KEY SHARE`, `LOCK brain_entries`,
		`ALTER TABLE brain_entries ADD x int`,
		`CREATE TABLE t (id int)`, `CREATE TEMP TABLE t AS SELECT * FROM brain_entries`,
		`SELECT * INTO t FROM brain_entries`, `WITH d AS (DELETE FROM brain_entries RETURNING id) SELECT * FROM d`,
		`DO $$ BEGIN DELETE FROM brain_entries; END $$`,
		`CALL x()`, `INSERT INTO pgconsent_rows.public_brain_entries (id) VALUES (gen_random_uuid())`,
		`SELECT lo_create(0)`, `SELECT nextval('x')`, `COMMENT ON TABLE brain_entries IS 'x'`, `GRANT SELECT ON brain_entries TO PUBLIC`, `NOTIFY x`,
	} {
		if got := harness.Ask(agent, sql); got.Code == "" {
			t.Errorf("%s is answered", sql)
		}
	}
	if after := firstColumnValues(t, db, `SELECT md5(string_agg(b::text, '' ORDER BY id)) FROM brain_entries b`); after[0] != before[0] {
		t.Error("an entry has changed")
	}
}

// Point f: the planted author and path are in no answer. The schema of the governed tables is unchanged.
// seeds/004:26-33, 65-67, 69-76, 88-89, 103-105, 112-114, 147-151.
func TestMemberintelF_PlantedKeysReachNoByte(t *testing.T) {
	db, proxy := readBrain(t, harness.Both)
	plantedCount := firstColumnValues(t, db, `SELECT count(*)::text FROM brain_entries WHERE `+brainVisible+
		` AND metadata ->> 'author' ~ 'HIDDENMARK' AND metadata ->> 'path' ~ 'HIDDENMARK'`)
	if plantedCount[0] == "0" {
		t.Fatal("nothing is planted")
	}
	agent := proxy.Agent(t, "advisor", "brain")
	for _, sql := range append(append([]string{}, brainLists...), brainFetches...) {
		harness.Ask(agent, strings.ReplaceAll(sql, "ID", brainGlobal))
		harness.Ask(agent, "ROLLBACK; DEALLOCATE ALL")
	}
	proxy.Tap().RequireNoMarker(t)
	// A value that is not a string is null, and neither of the words that a naive conversion makes of it (seeds/004:60-62,
	// 101).
	got := harness.Ask(agent, `SELECT count(*) FROM brain_entries, jsonb_each_text(metadata) e WHERE e.value IN ('null', 'None')`)
	if got.Code != "" || got.Results[0].Rows[0] != "0" {
		t.Errorf("null became a word: %s", got.SortedString())
	}
	got = harness.Ask(agent, `SELECT count(*) > 20 FROM brain_entries WHERE metadata ? 'title' AND metadata ->> 'title' IS NULL`)
	if got.Code != "" || got.Results[0].Rows[0] != "t" {
		t.Errorf("no value that is no string came out as null: %s", got.SortedString())
	}
	columns := firstColumnValues(t, db,
		`SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) FROM pg_attribute `+
			`WHERE attrelid = 'brain_entries'::regclass AND attnum > 0`)
	if columns[0] != "id uuid, tenant_id text, collection text, title text, category text, last_reviewed date, metadata jsonb, content text" {
		t.Errorf("the table's schema is %s", columns[0])
	}
}
