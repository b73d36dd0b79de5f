package rewrite

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/test/tier"
)

// contracted is the schema of testdata/contract under its policy.
var contracted struct {
	once sync.Once
	snap *catalog.Snapshot
	pol  *policy.Policy
}

func underContract(t testing.TB) *Rewriter {
	t.Helper()
	contracted.once.Do(func() {
		db := pgtest.Template(t, "contract", func(ctx context.Context, conn *pgx.Conn) error {
			sql, err := os.ReadFile("testdata/contract/schema.sql")
			if err != nil {
				return err
			}
			_, err = conn.PgConn().Exec(ctx, string(sql)).ReadAll()
			return err
		})
		snap, err := pgcatalog.Load(context.Background(), db.Connect(t, "postgres"), []string{"public"})
		if err != nil {
			t.Fatal(err)
		}
		doc, err := policy.Load("testdata/contract/policy.yaml")
		if err != nil {
			t.Fatal(err)
		}
		pol, err := policy.Compile(doc, snap, policy.WithViews(RewriteViewQuery))
		if err != nil {
			t.Fatal(err)
		}
		contracted.snap, contracted.pol = snap, pol
	})
	if contracted.pol == nil {
		t.Fatal("the schema of testdata/contract could not be built")
	}
	return New(contracted.snap, contracted.pol, RowSecurityMode)
}

func TestTypedAccesses(t *testing.T) {
	r := underContract(t)
	for _, c := range []struct{ sql, accesses string }{
		// Statements that count rows and read metadata.
		{"SELECT count(*) FROM event", "event metadata()"},
		{"SELECT 1 FROM event", "event metadata()"},
		{"SELECT id, made FROM event WHERE vessel_id = 3", "event metadata(id, vessel_id, made) out"},
		{"SELECT count(id) FROM event", "event metadata(id)"},
		{"SELECT EXISTS (SELECT * FROM event)", "event metadata()"},
		{"SELECT count(*) FROM (SELECT * FROM event) x", "event metadata()"},
		{"SELECT x.id FROM (SELECT * FROM event) x", "event metadata(id) out"},
		{"SELECT 1 FROM event WHERE embedding IS NULL", "event structured(embedding)"},
		{"SELECT count(embedding) FROM event", "event structured(embedding)"},
		{"SELECT id FROM event ORDER BY made DESC LIMIT 1", "event metadata(id, made) out"},
		// Columns.
		{"SELECT title FROM event", "event structured(title) out"},
		{"SELECT id FROM event WHERE title LIKE 'a%'", "event structured(id, title) out"},
		{"SELECT id FROM event ORDER BY title", "event structured(id, title) out"},
		{"SELECT count(*) FROM event GROUP BY title", "event structured(title) out"},
		{"SELECT count(DISTINCT title) FROM event", "event structured(title) out"},
		{"SELECT id FROM event WHERE n % 2 = 0", "event structured(id, n) out"},
		{"SELECT id FROM event WHERE body @@ 'x'", "event structured(id, body) out"},
		{"TABLE plain", "plain structured(*) out"},
		{"SELECT title AS id FROM event ORDER BY 1", "event structured(title) out"},
		{"SELECT id AS title FROM event ORDER BY title", "event metadata(id) out"},
		{"SELECT DISTINCT ON (title) id FROM event", "event structured(id, title) out"},
		{"SELECT row_number() OVER (ORDER BY title) FROM event", "event structured(title) out"},
		{"SELECT (SELECT title FROM event WHERE id = 1)", "event structured(id, title) by key out"},
		{"SELECT id FROM need n WHERE EXISTS (SELECT 1 FROM event e WHERE e.vessel_id = n.vessel_id AND e.title = n.label)",
			"event AS e structured(vessel_id, title) joined; need AS n structured(id, vessel_id, label) out joined"},
		{"SELECT label FROM need WHERE EXISTS (SELECT 1 FROM event WHERE title = 'x')", "event structured(title); need structured(label) out"},
		{"SELECT date_trunc('day', made) AS d, count(*) FROM event GROUP BY d ORDER BY d", "event metadata(made) out"},
		{"SELECT date_trunc('day', made), count(*) FROM event GROUP BY date_trunc ORDER BY count", "event metadata(made) out"},
		{"SELECT *, length(description) AS d FROM agreement ORDER BY d", "agreement structured(*) out"},
		{"SELECT *, embedding <-> '(1,1)'::cube AS d FROM need ORDER BY d", "need vector(*) out"},
		{"SELECT state AS description, count(*) FROM agreement GROUP BY description", "agreement structured(description, state) out"},
		{"SELECT CASE WHEN id > 1 THEN 1 END FROM event ORDER BY \"case\"", "event metadata(id) out"},
		{"SELECT e.id AS title FROM event e JOIN need n USING (id) ORDER BY title", "event AS e metadata(id) out joined; need AS n metadata(id) joined"},
		{"SELECT id FROM event UNION ALL SELECT id FROM need ORDER BY id", "event metadata(id) out; need metadata(id) out"},
		{"SELECT id FROM event e WHERE EXISTS (SELECT FROM need WHERE label IN (SELECT e.body))",
			"event AS e structured(id, body) out; need structured(label)"},
		// By key.
		{"SELECT title FROM event WHERE id = 1", "event structured(id, title) by key out"},
		{"SELECT title FROM event WHERE $1 = id AND n > 3", "event structured(id, title, n) by key out"},
		{"SELECT title FROM event e WHERE e.id = '1'::integer", "event AS e structured(id, title) by key out"},
		{"SELECT title FROM event WHERE id IN (1)", "event structured(id, title) by key out"},
		{"SELECT title FROM event WHERE id IN (1, 2)", "event structured(id, title) out"},
		{"SELECT title FROM event WHERE id = 1 OR true", "event structured(id, title) out"},
		{"SELECT title FROM event WHERE NOT id = 1", "event structured(id, title) out"},
		{"SELECT title FROM event WHERE id <> 1", "event structured(id, title) out"},
		{"SELECT title FROM event WHERE id NOT IN (1)", "event structured(id, title) out"},
		{"SELECT title FROM event WHERE id >= 1", "event structured(id, title) out"},
		{"SELECT title FROM event WHERE id IS DISTINCT FROM 1", "event structured(id, title) out"},
		{"SELECT e.title, n.label FROM event e FULL JOIN need n ON n.id = 1 AND e.id = 1",
			"event AS e structured(id, title) out; need AS n structured(id, label) out"},
		{"SELECT e.title, n.label FROM event e RIGHT JOIN need n ON n.id = 1 AND e.id = 1",
			"event AS e structured(id, title) by key out; need AS n structured(id, label) out"},
		{"SELECT word FROM pair WHERE a = 1", "pair structured(a, word) out"},
		{"SELECT word FROM pair WHERE b = 1", "pair structured(b, word) out"},
		{"SELECT word FROM pair WHERE a = 1 AND b = 2", "pair structured(a, b, word) by key out"},
		{"SELECT word FROM pair WHERE a = 1 AND b <> 2", "pair structured(a, b, word) out"},
		{"SELECT p.word FROM pair p JOIN pair q ON q.b = 2 WHERE p.a = 1", "pair AS p+q structured(a, word, b) out"},
		{"SELECT title FROM event WHERE id = id", "event structured(id, title) out"},
		{"SELECT e.title FROM event e LEFT JOIN need n ON e.id = 1", "event AS e structured(id, title) out; need AS n metadata()"},
		{"SELECT n.label FROM event e LEFT JOIN need n ON n.id = 1", "event AS e metadata(); need AS n structured(id, label) by key out"},
		{"SELECT n.label FROM event e JOIN need n ON n.id = 1", "event AS e metadata(); need AS n structured(id, label) by key out"},
		{"SELECT n.label FROM event e FULL JOIN need n ON n.id = e.id WHERE n.id = 1",
			"event AS e metadata(id) joined; need AS n structured(id, label) by key out joined"},
		{"SELECT a.title FROM event a, event b WHERE b.id = 1", "event AS b metadata(id) by key; event AS a structured(title) out"},
		{"SELECT (SELECT title FROM event x WHERE e.id = 1 LIMIT 1) FROM event e", "event AS e metadata(id) out; event AS x structured(title) out"},
		// Statements that read whole rows.
		{"SELECT * FROM need", "need vector(*) out"},
		{"SELECT n FROM need n", "need AS n vector(*) out"},
		{"SELECT n.* FROM need n", "need AS n vector(*) out"},
		{"SELECT to_jsonb(n) FROM need n", "need AS n vector(*) out"},
		{"SELECT row_to_json(n)->>'id' FROM need n", "need AS n vector(*) out"},
		{"SELECT count(n) FROM need n", "need AS n vector(*) out"},
		{"SELECT (n).id FROM need n", "need AS n vector(*) out"},
		{"SELECT n IS NULL FROM need n", "need AS n vector(*) out"},
		{"SELECT x.id FROM (SELECT n FROM need n) y, LATERAL (SELECT (y.n).id) x", "need AS n vector(*) out"},
		{"SELECT ROW(n.*) FROM need n", "need AS n vector(*) out"},
		{"SELECT json_agg(n) FROM need n", "need AS n vector(*) out"},
		{"SELECT n::text FROM need n", "need AS n vector(*) out"},
		{"SELECT 1 FROM need n WHERE n = n", "need AS n vector(*)"},
		{"SELECT DISTINCT n FROM need n", "need AS n vector(*) out"},
		// Comparisons by likeness, in each clause.
		{"SELECT id FROM event ORDER BY embedding <-> '(1,1)'::cube LIMIT 3", "event vector(id, embedding) out"},
		{"SELECT 1 FROM event ORDER BY (embedding <-> '(1,1)'::cube)", "event vector(embedding) out"},
		{"SELECT embedding <-> '(1,1)'::cube AS d FROM event ORDER BY d", "event vector(embedding) out"},
		{"SELECT embedding <-> '(1,1)'::cube FROM event ORDER BY 1", "event vector(embedding) out"},
		{"SELECT title::cube FROM event", "event vector(title) out"},
		{"SELECT id FROM event WHERE CAST(title AS public.cube) IS NOT NULL", "event vector(id, title) out"},
		{"SELECT CAST(string_to_array(title, ',') AS cube[]) FROM event", "event vector(title) out"},
		{"SELECT cube(n) FROM event", "event vector(n) out"},
		{"SELECT title::text FROM event", "event structured(title) out"},
		{"SELECT id FROM event WHERE cube_distance(embedding, '(1,1)') < 1", "event vector(id, embedding) out"},
		{"SELECT id FROM event WHERE (embedding OPERATOR(public.<->) '(1,1)'::cube) < 1", "event vector(id, embedding) out"},
		{"SELECT id FROM event GROUP BY id HAVING min(embedding <-> '(1,1)'::cube) < 1", "event vector(id, embedding) out"},
		{"SELECT rank() OVER (ORDER BY embedding <-> '(1,1)'::cube) FROM event", "event vector(embedding) out"},
		{"SELECT rank() OVER w FROM event WINDOW w AS (ORDER BY embedding <-> '(1,1)'::cube)", "event vector(embedding) out"},
		{"SELECT id FROM (SELECT id, embedding <-> '(1,1)'::cube AS d FROM event) x WHERE d < 1", "event vector(id, embedding) out"},
		{"SELECT id FROM (SELECT id, embedding AS e FROM event) x ORDER BY e <-> '(1,1)'::cube", "event vector(id, embedding) out"},
		{"WITH c AS (SELECT id, embedding AS e FROM event) SELECT id FROM c ORDER BY e <-> '(1,1)'::cube", "event vector(id, embedding) out"},
		{"WITH c(a, b) AS (SELECT id, embedding FROM event), d AS (SELECT a, b AS f FROM c) SELECT a FROM d ORDER " +
			"BY f <-> '(1,1)'::cube", "event vector(id, embedding) out"},
		{"WITH RECURSIVE c(k, e) AS (SELECT id, embedding FROM event UNION ALL SELECT k + 1, e FROM c WHERE k < " +
			"3) SELECT k FROM c ORDER BY e <-> '(1,1)'::cube", "event vector(id, embedding) out"},
		{"WITH RECURSIVE c(k, e) AS (SELECT id, title FROM event UNION ALL SELECT k + 1, e FROM c WHERE k < 3) " +
			"SELECT k FROM c ORDER BY e <-> 'x'", "event vector(id, title) out"},
		{"SELECT x.id FROM need n, LATERAL (SELECT e.id FROM event e ORDER BY e.embedding <-> n.embedding LIMIT 1) x",
			"event AS e vector(id, embedding) out; need AS n vector(embedding) out"},
		{"SELECT e.id FROM event e JOIN need n ON e.embedding <-> n.embedding < 1",
			"event AS e vector(id, embedding) out; need AS n vector(embedding) out"},
		{"SELECT e.id FROM event AS need JOIN need AS event ON true JOIN event e ON (need.embedding <-> " +
			"'(1,1)'::cube) < 1", "event AS e metadata(id) out; event AS need vector(embedding) out; need AS event metadata()"},
		{"SELECT id FROM event WHERE embedding = '(1,1)'::cube", "event vector(id, embedding) out"},
		{"SELECT embedding::text FROM event", "event vector(embedding) out"},
		{"SELECT id FROM event WHERE embedding::text LIKE '(1%'", "event vector(id, embedding) out"},
		{"SELECT cube_ll_coord(embedding, 1) FROM event", "event vector(embedding) out"},
		{"SELECT id FROM event ORDER BY embedding ~> 1", "event vector(id, embedding) out"},
		{"SELECT id, (SELECT sum(abs(a.v - 1)) FROM unnest(numbers) AS a(v)) FROM event ORDER BY 2", "event vector(id, numbers) out"},
		{"SELECT place FROM pair", "pair vector(place) out"},
		{"SELECT word FROM pair ORDER BY place", "pair vector(word, place) out"},
		{"SELECT count(place) FROM pair", "pair structured(place)"},
		{"SELECT numbers[1] FROM event", "event vector(numbers) out"},
		{"SELECT cube(numbers::float8[]) FROM event", "event vector(numbers) out"},
		{"SELECT id FROM event WHERE (embedding IS NULL) = false", "event structured(id, embedding) out"},
		{"SELECT CASE WHEN embedding IS NULL THEN 1 ELSE 2 END FROM event", "event structured(embedding)"},
		{"SELECT coalesce(embedding, '(1,1)'::cube) FROM event", "event vector(embedding) out"},
		{"SELECT DISTINCT embedding FROM event", "event vector(embedding) out"},
		{"SELECT count(DISTINCT embedding) FROM event", "event vector(embedding) out"},
		{"SELECT id FROM event UNION SELECT id FROM need ORDER BY 1", "event metadata(id) out; need metadata(id) out"},
		{"SELECT e FROM (SELECT title AS e FROM event UNION ALL SELECT label FROM need) x ORDER BY e <-> 'x'",
			"event vector(title) out; need vector(label) out"},
		// Comparisons of texts by likeness.
		{"SELECT id FROM agreement ORDER BY description <-> 'we agreed'", "agreement vector(id, description) out"},
		{"SELECT id FROM agreement WHERE description % 'we agreed'", "agreement vector(id, description) out"},
		{"SELECT id FROM agreement WHERE similarity(description, 'we agreed') > 0.3", "agreement vector(id, description) out"},
		{"SELECT id FROM agreement WHERE word_similarity('we agreed', description) > 0.3", "agreement vector(id, description) out"},
		{"SELECT show_trgm(description) FROM agreement", "agreement vector(description) out"},
		{"SELECT id FROM agreement WHERE 'we agreed' <% description", "agreement vector(id, description) out"},
		{"SELECT id FROM (SELECT id, lower(description) AS d FROM agreement) x WHERE similarity(x.d, 'we " +
			"agreed') > 0.3", "agreement vector(id, description) out"},
		{"SELECT id FROM agreement WHERE similarity((SELECT description), 'x') > 0.3", "agreement vector(id, description) out"},
		{"SELECT id FROM agreement a WHERE similarity(a::text, 'x') > 0.3", "agreement AS a vector(*) out"},
		{"SELECT similarity(x, 'y') FROM unnest(ARRAY(SELECT description FROM agreement)) x", "agreement vector(description) out"},
		{"SELECT similarity(string_agg(description, ' '), 'y') FROM agreement", "agreement vector(description) out"},
		{"SELECT 'x' <-> 'y', id FROM agreement", "agreement metadata(id) out"},
		{"SELECT max(similarity(c, 'y')) FROM (VALUES ((SELECT description FROM agreement LIMIT 1))) v(c)", "agreement vector(description) out"},
		// Joins.
		{"SELECT e.title FROM event e JOIN vessel v ON e.vessel_id = v.id WHERE v.user_id = 1",
			"event AS e structured(vessel_id, title) out joined; vessel AS v structured(id, user_id) joined"},
		{"SELECT title FROM event JOIN vessel USING (id)", "event structured(id, title) out joined; vessel structured(id) joined"},
		{"SELECT title FROM event NATURAL JOIN vessel", "event structured(id, title) out joined; vessel structured(id) joined"},
		{"SELECT c.body FROM content c WHERE c.record_id IN (SELECT id FROM record WHERE decision = 'GRANTED')",
			"content AS c structured(record_id, body) out joined; record structured(id, decision) joined"},
		{"SELECT j.title FROM (event e JOIN need n ON e.id = n.id) AS j", "event AS e structured(id, title) out joined; need AS n metadata(id) joined"},
		{"SELECT count(*) FROM record", "record metadata()"},
		// Views.
		{"SELECT id FROM event_titles", "event metadata(id) out through public.event_titles; event_titles structured(id) out"},
		{"SELECT title FROM event_titles", "event structured(title) out through public.event_titles; event_titles structured(title) out"},
		{"SELECT id FROM event_all", "event metadata(id) out through public.event_all; event_all structured(id) out"},
		{"SELECT shout FROM over_titles",
			"event structured(title) out through public.over_titles; event_titles AS t structured(title) out " +
				"through public.over_titles; over_titles structured(shout) out"},
		{"SELECT key FROM over_all ORDER BY hidden <-> '(1,1)'::cube",
			"event vector(id, embedding) out through public.over_all; event_all AS a vector(id, embedding) out " +
				"through public.over_all; over_all vector(key, hidden) out"},
		{"SELECT key FROM over_all WHERE similarity(title, 'x') > 0.1",
			"event vector(id, title) out through public.over_all; event_all AS a vector(id, title) out through " +
				"public.over_all; over_all vector(key, title) out"},
		{"SELECT similarity(shout, 'x') FROM over_titles",
			"event vector(title) out through public.over_titles; event_titles AS t vector(title) out through " +
				"public.over_titles; over_titles vector(shout) out"},
		{"SELECT id FROM ranked", "event vector(id, embedding) out through public.ranked; ranked structured(id) out"},
		// Functions.
		{"SELECT find_events('x')", "event structured(*) out through public.find_events"},
		{"SELECT * FROM find_events('x') AS f(id)", "event structured(*) out through public.find_events"},
		{"SELECT likened('x')", "event metadata(*) out through public.likened; event vector(*) out through public.likened"},
		{"SELECT silent('x')", "silent function()"},
		{"SELECT harmless('x')", ""},
		{"SELECT silent(title) FROM event", "event structured(title) out; silent function()"},
		{"SELECT p.story FROM plain p", "event structured(*) out through public.story; plain AS p vector(*) out"},
		{"SELECT plain.story FROM plain", "event structured(*) out through public.story; plain vector(*) out"},
		{"SELECT public.plain.story FROM plain", "event structured(*) out through public.story; plain vector(*) out"},
		{"SELECT (p).story FROM plain p", "event structured(*) out through public.story; plain AS p structured(*) out"},
		{"SELECT count(*) FROM plain p WHERE p.story > 'x'", "event structured(*) out through public.story; plain AS p vector(*) out"},
		{"SELECT p.mute FROM plain p", "mute function(); plain AS p vector(*) out"},
		{"SELECT ('(1,x)'::plain).mute", "mute function()"},
		{"SELECT ('x'::text).silent", "silent function()"},
		// Writes.
		{"INSERT INTO event (title) VALUES ('x')", "event write(title)"},
		{"UPDATE event SET title = 'x' WHERE id = 1", "event metadata(id) by key; event write(title)"},
		{"UPDATE event SET title = body RETURNING id", "event structured(id, body) out; event write(title)"},
		{"DELETE FROM event", "event write()"},
		{"INSERT INTO event (title) SELECT label FROM need", "event write(title); need structured(label) out"},
		{"INSERT INTO event_titles (title) VALUES ('x')", "event write() through public.event_titles; event_titles write(title)"},
		{"INSERT INTO event (embedding) VALUES ('(1,1)')", "event write(embedding)"},
		{"WITH d AS (DELETE FROM event RETURNING title) SELECT count(*) FROM d", "event write()"},
		{"WITH d AS (DELETE FROM event RETURNING title, embedding) SELECT title FROM d", "event structured(title) out; event write()"},
		// Statements that run a query later, or copy its rows.
		{"PREPARE p AS SELECT id FROM event ORDER BY embedding <-> $1 LIMIT 3", "event vector(id, embedding) out"},
		{"DECLARE c CURSOR FOR SELECT title FROM event", "event structured(title) out"},
		{"COPY (SELECT id FROM event ORDER BY embedding <-> '(1,1)'::cube) TO STDOUT", "event vector(id, embedding) out"},
		{"COPY event (id, made) TO STDOUT", "event metadata(id, made) out"},
		{"COPY need TO STDOUT", "need vector(*) out"},
		{"COPY event (title) FROM STDIN", "event write(title)"},
		{"SELECT title FROM event; SELECT embedding FROM need", "event structured(title) out; need vector(embedding) out"},
		{"COPY event (title) FROM STDIN WHERE silent(title) = 'x'", "event structured(title); event write(title); silent function()"},
		{"SELECT e.id FROM event e JOIN library l USING (title)", "event AS e structured(id, title) out; library AS l structured(title)"},
		{"SELECT e.id FROM event e JOIN library l USING (embedding)", "event AS e vector(id, embedding) out; library AS l vector(embedding)"},
		{"EXECUTE p (silent('x'))", "silent function()"},
		{"MERGE INTO event e USING need n ON n.id = 1 WHEN NOT MATCHED THEN INSERT (embedding) VALUES (n.embedding)",
			"event AS e write(embedding); need AS n vector(id, embedding) out"},
		// Tables with partitions or children.
		{"SELECT body FROM parted", "parted structured(body) out"},
	} {
		result, refusal := r.Rewrite(c.sql, false)
		if refusal != nil {
			t.Errorf("%s: %v (%s)", c.sql, refusal, refusal.Hint)
			continue
		}
		if got := oneLine(result.Accesses); got != c.accesses {
			t.Errorf("%s\n got %s\nwant %s", c.sql, got, c.accesses)
		}
	}
}

// Reading a virtual generated column counts as reading the columns that it is computed from. If the computation fails,
// the error shows their values.
func TestAccessesOfVirtualColumns(t *testing.T) {
	r := underContract(t)
	event, _ := contracted.snap.Relation(catalog.Name{Schema: "public", Name: "event"})
	madeColumn := event.Column("made")
	madeColumn.Virtual, madeColumn.ComputedFrom = true, []string{"title", "embedding"}
	defer func() { madeColumn.Virtual, madeColumn.ComputedFrom = false, nil }()
	for sql, accesses := range map[string]string{
		"SELECT id FROM event":                        "event metadata(id) out",
		"SELECT count(*) FROM event":                  "event metadata()",
		"SELECT made FROM event":                      "event vector(title, embedding, made) out",
		"SELECT id FROM event WHERE made IS NULL":     "event vector(id, title, embedding, made) out",
		"SELECT x.id FROM (SELECT * FROM event) AS x": "event metadata(id) out",
	} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil {
			t.Errorf("%s: %v", sql, refusal)
			continue
		}
		if got := oneLine(result.Accesses); got != accesses {
			t.Errorf("%s\n got %s\nwant %s", sql, got, accesses)
		}
	}
}

// A type counts as holding embeddings however deep they are inside: in an array, or in an array of a domain over rows.
func TestTypesThatHoldEmbeddings(t *testing.T) {
	tier.All(t)
	r, _ := altered(t, RowSecurityMode,
		"CREATE DOMAIN near AS cube; CREATE TYPE placed AS (n integer, at near); CREATE DOMAIN places AS "+
			"placed[]; CREATE TABLE held (a cube, b cube[], c near, d near[], e placed, f placed[], g places, h places[], i integer[], j text)")
	table, _ := r.snap.Relation(catalog.Name{Schema: "public", Name: "held"})
	w := &walker{Rewriter: r}
	for _, c := range table.Columns {
		if w.isEmbedding(c.TypeOID) != (c.Name < "i") {
			t.Errorf("%s: %t", c.Type, w.isEmbedding(c.TypeOID))
		}
	}
}
