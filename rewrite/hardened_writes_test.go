package rewrite

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/test/tier"
)

// draftsWithoutTriggers has a table that runs no code of the owner's when a row is written.
const draftsWithoutTriggers = `CREATE EXTENSION pg_trgm; CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN short_text AS text CHECK (length(VALUE) < 9);
CREATE TABLE notes (id int PRIMARY KEY, body text);
CREATE TABLE memories (id uuid PRIMARY KEY, user_id uuid NOT NULL, title text, found tsvector); CREATE INDEX ON memories USING gin (found);
CREATE TABLE drafts (id uuid PRIMARY KEY, user_id uuid NOT NULL, title text, body text DEFAULT '', tags text[],
  note_id int REFERENCES notes, shout text GENERATED ALWAYS AS (upper(title)) STORED, made timestamptz NOT NULL DEFAULT now(), found tsvector, n int,
  UNIQUE (user_id, title), CHECK (n < 100 OR made < now()));
CREATE INDEX ON drafts USING gin (found); CREATE INDEX ON drafts USING gin (body gin_trgm_ops); CREATE INDEX ON drafts (lower(body)) WHERE length(title) > 0;
CREATE TABLE narrow (id uuid PRIMARY KEY, user_id uuid NOT NULL, body text, secret text, n int, seen timestamptz);
CREATE INDEX ON narrow USING gin (body gin_trgm_ops); CREATE INDEX ON narrow (seen);
CREATE TYPE size AS (width int); CREATE TABLE worn (id int PRIMARY KEY, s short_text, z size);
CREATE FUNCTION plain_listed(n int) RETURNS int LANGUAGE sql AS 'SELECT n';
`

// draftsRewriter judges writes of these tables after a change of them.
func draftsRewriter(t *testing.T, conn *pgx.Conn, mode Mode, change string) *Rewriter {
	t.Helper()
	if _, err := conn.PgConn().Exec(t.Context(), "DROP SCHEMA public CASCADE; CREATE SCHEMA public;"+draftsWithoutTriggers+change).ReadAll(); err != nil {
		t.Fatal(change, err)
	}
	snap, err := pgcatalog.Load(t.Context(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := policy.Parse("policy.yaml", []byte(`version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  notes: { rows: open }
  memories: { rows: [ { own: { column: user_id, is: user } } ] }
  drafts: { rows: [ { own: { column: user_id, is: user } } ], write: { commands: [insert, update, delete], accept: [references, conflicts, values] } }
  narrow: { rows: [ { own: { column: user_id, is: user } } ],
    columns: { id: allow, body: allow, n: { mask: { generalise: 2 } }, seen: { mask: { generalise: month } } }, write: { commands: [update, delete] } }
  worn: { rows: open, write: { commands: [update, delete] } }
functions: { plain_listed: {} }
`))
	if err != nil {
		t.Fatal(err)
	}
	pol, err := policy.Compile(doc, snap, policy.WithViews(RewriteViewQuery))
	if err != nil {
		t.Fatal(change, err)
	}
	return New(snap, pol, mode)
}

// An UPDATE or DELETE gets a hardened plan where a SELECT with the same conditions does.
func TestHardeningOfWrites(t *testing.T) {
	r := draftsRewriter(t, pgtest.Database(t).Connect(t, "postgres"), RowSecurityMode, "")
	for _, c := range []struct{ sql, want string }{
		{"UPDATE drafts SET title = 'a' WHERE id = $1", ""},
		{"UPDATE drafts SET title = upper(body), (body, tags) = (SELECT title, NULL FROM memories WHERE id = " +
			"drafts.id) WHERE length(title) / 2 > 3 RETURNING 1 / n, found", ""},
		{"UPDATE drafts SET title = n.body FROM notes n WHERE n.id = note_id AND n.body ~ 'x' RETURNING n.id", ""},
		{"UPDATE drafts SET tags[n / 2] = 'a' WHERE title = 'b'", ""},
		{"DELETE FROM drafts USING notes n WHERE n.id = note_id AND n.body ~ 'x' RETURNING n.id / 2", ""},
		{"WITH q AS (SELECT id FROM notes WHERE body LIKE '%a%') DELETE FROM drafts WHERE note_id IN (SELECT id FROM q)", "sub-select reads a WITH query"},
		{"WITH q AS (SELECT id FROM notes WHERE body LIKE '%a%') DELETE FROM drafts USING q WHERE note_id = q.id", ""},
		{"UPDATE drafts SET title = 'a' WHERE n = $1::int", "declared"},

		{"UPDATE drafts SET title = 'a' WHERE n = (SELECT max(1 / id) FROM notes)", "sub-select computes"},
		{"UPDATE drafts SET title = 'a' WHERE n = (SELECT id FROM notes)", "several rows"},
		{"UPDATE drafts SET title = 'a' WHERE n = 1 / $1", "no column"},
		{"UPDATE drafts SET title = 'a' FROM (SELECT id, 1 / $1 AS k FROM notes) q WHERE q.k = n", "no column"},
		{"UPDATE drafts SET title = (SELECT max(title) FROM memories m WHERE length(m.title) = 1 / drafts.n)", "no column"},
		{"UPDATE drafts SET n = (SELECT count(*) FROM memories m WHERE m.title = (SELECT body FROM notes))", "several rows"},
		{"UPDATE drafts SET (n, title) = (SELECT count(*), 'a' FROM memories m WHERE m.title = (SELECT body FROM notes))", "several rows"},
		{"UPDATE drafts SET title = 'a' RETURNING (SELECT count(*) FROM memories m WHERE m.title = (SELECT body FROM notes))", "several rows"},
		{"UPDATE drafts SET title = 'a' RETURNING plain_listed(1)", "not PostgreSQL's own"},
		{"UPDATE drafts SET n = plain_listed(1)", "not PostgreSQL's own"},
		{"DELETE FROM drafts WHERE n = (SELECT id FROM notes)", "several rows"},
		{"DELETE FROM drafts RETURNING (SELECT count(*) FROM memories m WHERE length(m.title) = 1 / drafts.n)", "no column"},
		{"DELETE FROM drafts USING notes n JOIN notes m ON n.id = 1 / $1", "no column"},
		{"DELETE FROM drafts WHERE n > (random() * 5)::int", "no column"},
		{"UPDATE drafts SET body = DEFAULT", "it writes: a column is set to its default"},
		{"UPDATE drafts SET (title, body) = ROW('a', DEFAULT)", "it writes: a column is set to its default"},
		{"WITH d AS (DELETE FROM notes) DELETE FROM drafts", ""}, // the statement is refused; see below
		{"WITH d AS (DELETE FROM drafts RETURNING id) DELETE FROM drafts WHERE id IN (SELECT id FROM d)", "writes"},
		{"WITH d AS (DELETE FROM drafts RETURNING id) SELECT id FROM d", "writes"},
		{"UPDATE narrow SET body = 'a' WHERE body LIKE '%b%' RETURNING n / 2", ""},
		{"UPDATE narrow SET body = 'a' WHERE n = (SELECT id FROM notes)", "several rows"},
		{"UPDATE worn SET id = 7", "type, rule or policy of its owner's may run as rows of public.worn are updated"}, // it has a column of a composite type
		{"DELETE FROM worn", ""},
	} {
		result, refusal := r.Rewrite(c.sql, false)
		switch {
		case refusal != nil && strings.Contains(c.sql, "DELETE FROM notes"):
		case refusal != nil:
			t.Errorf("%s: %v", c.sql, refusal)
		case c.want == "declared" && result.HardenedIfDeclared && result.HardenedReason == "":
		case result.HardenedReason == "" && c.want != "",
			c.want == "" && (result.HardenedReason != "" || result.HardenedIfDeclared),
			!strings.Contains(result.HardenedReason, c.want):
			t.Errorf("%s: hardened %q (declared %t), want %q", c.sql, result.HardenedReason, result.HardenedIfDeclared, c.want)
		}
	}
}

// A write gets a hardened plan if it runs code of the table's owner: triggers, checks, defaults, rules or functions of
// types.
func TestHardeningOfOwnersCodeInWrites(t *testing.T) {
	tier.All(t)
	const (
		update, remove     = "UPDATE drafts SET title = 'a'", "DELETE FROM drafts"
		fire               = "CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
		createAsksFunction = "CREATE FUNCTION asks(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';"
		stamp              = "ALTER TABLE drafts ADD changed timestamptz; CREATE FUNCTION stamp() RETURNS trigger " +
			"LANGUAGE plpgsql AS 'BEGIN NEW.changed = now(); RETURN NEW; END'; CREATE TRIGGER t BEFORE UPDATE ON drafts FOR EACH ROW EXECUTE FUNCTION stamp()"
		createPartTable = "CREATE TABLE part (id int PRIMARY KEY, draft uuid REFERENCES drafts ON DELETE "
	)
	conn := pgtest.Database(t).Connect(t, "postgres")
	for change, wantHardened := range map[string][2]bool{
		"SELECT 1": {false, false},
		fire + "CREATE TRIGGER t BEFORE INSERT ON drafts FOR EACH ROW EXECUTE FUNCTION fire()":                         {false, false},
		fire + "CREATE TRIGGER t BEFORE UPDATE OF n ON drafts FOR EACH ROW EXECUTE FUNCTION fire()":                    {true, false},
		fire + "CREATE TRIGGER t AFTER DELETE ON drafts EXECUTE FUNCTION fire(); ALTER TABLE drafts DISABLE TRIGGER t": {false, true},
		stamp: {false, false},
		stamp + "; " + createAsksFunction +
			"ALTER TABLE drafts ADD g text GENERATED ALWAYS AS (asks('a')) STORED": {true, false},
		"CREATE TRIGGER t BEFORE UPDATE ON drafts FOR EACH ROW EXECUTE FUNCTION tsvector_update_trigger('found', " +
			"'pg_catalog.english', 'body')": {false, false},
		createAsksFunction + "CREATE TRIGGER t BEFORE UPDATE ON drafts FOR EACH ROW WHEN (asks(NEW.title) = '') EXECUTE " +
			"FUNCTION suppress_redundant_updates_trigger()": {true, false},
		createAsksFunction +
			"ALTER TABLE drafts ADD CHECK (asks(title) IS NOT NULL)": {true, false},
		createAsksFunction +
			"ALTER TABLE drafts ADD g text GENERATED ALWAYS AS (asks(title)) STORED": {true, false},
		createAsksFunction +
			"CREATE INDEX ON drafts (asks(title))": {true, false},
		createAsksFunction +
			"CREATE INDEX ON drafts (n) WHERE asks(title) > 'a'": {true, false},
		"ALTER TABLE drafts ADD CHECK (table_to_xml('notes', true, true, '') IS NOT NULL)": {true, false},
		// a text compared with a row is converted to one
		createAsksFunction + "CREATE DOMAIN asked AS text CHECK (asks(VALUE) <> ''); ALTER TABLE drafts ADD w asked": {true, true},
		createAsksFunction +
			"CREATE INDEX ON drafts ((title || asks('a')))": {true, true},
		"CREATE DOMAIN tag AS text CHECK (VALUE <> ''); ALTER TABLE drafts ADD w tag":                      {false, false},
		"ALTER TABLE drafts ADD w short_text":                                                              {false, false},
		"ALTER TABLE drafts ADD CHECK (title::short_text <> '')":                                           {true, false},
		"ALTER TABLE drafts ADD CHECK (greatest(title, body) <> '')":                                       {true, false},
		"CREATE TYPE pair_of AS (a int, b int); ALTER TABLE drafts ADD CHECK (title::pair_of IS NOT NULL)": {true, false},
		"CREATE FUNCTION to_mood(text) RETURNS mood LANGUAGE sql AS 'SELECT NULL::mood'; CREATE CAST (text AS " +
			"mood) WITH FUNCTION to_mood(text) AS ASSIGNMENT; ALTER TABLE drafts ADD feeling mood, ADD feelings mood[]": {false, false},
		"CREATE TABLE heir () INHERITS (drafts)":                             {true, true},
		"CREATE TABLE whole (LIKE drafts); ALTER TABLE drafts INHERIT whole": {true, true},
		"CREATE EXTENSION hstore; CREATE OR REPLACE FUNCTION hstore(text[]) RETURNS hstore LANGUAGE sql AS " +
			"'SELECT NULL::hstore'; ALTER TABLE drafts ADD feeling hstore, ADD feelings hstore[]": {false, false},
		"ALTER TABLE drafts ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON drafts USING (true)":                {false, false},
		"ALTER TABLE drafts ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON drafts AS RESTRICTIVE USING (true)": {true, true},
		createPartTable + "CASCADE)":           {false, false},
		createPartTable + "SET NULL)":          {false, false},
		createPartTable + "SET DEFAULT)":       {false, true},
		createPartTable + "RESTRICT)" + asksOf: {false, false},
		createPartTable + "CASCADE)" + asksOf:  {false, false}, // checks do not run for deleted rows
		createPartTable + "SET NULL)" + asksOf: {false, true},
		fire + createPartTable +
			"CASCADE); CREATE TRIGGER t AFTER DELETE ON part FOR EACH ROW EXECUTE FUNCTION fire()": {false, true},
		fire + createPartTable +
			"CASCADE); CREATE TRIGGER t AFTER UPDATE ON part FOR EACH ROW EXECUTE FUNCTION fire()": {false, false},
		fire + createPartTable +
			"SET NULL); CREATE TRIGGER t AFTER UPDATE ON part FOR EACH ROW EXECUTE FUNCTION fire()": {false, true},
		fire + createPartTable + "CASCADE); CREATE TABLE leaf (p int REFERENCES part ON DELETE CASCADE); CREATE TRIGGER t " +
			"AFTER DELETE ON leaf FOR EACH ROW EXECUTE FUNCTION fire()": {false, true},
		fire + createPartTable + "SET NULL, UNIQUE (draft)); CREATE TABLE leaf (p uuid REFERENCES part (draft) ON UPDATE " +
			"CASCADE)": {false, true},
		fire + createPartTable +
			"CASCADE); CREATE TABLE heir () INHERITS (part)": {false, true},
		"CREATE TABLE part (id int PRIMARY KEY, title text, u uuid, FOREIGN KEY (u, title) REFERENCES drafts " +
			"(user_id, title) ON UPDATE CASCADE)": {true, false},
		"CREATE TABLE part (id int PRIMARY KEY, title text, u uuid, FOREIGN KEY (u, title) REFERENCES drafts " +
			"(user_id, title) ON UPDATE SET NULL)": {true, false},
		"CREATE TABLE part (id int PRIMARY KEY, title text, u uuid, FOREIGN KEY (u, title) REFERENCES drafts " +
			"(user_id, title) ON UPDATE SET DEFAULT)": {true, false},
		"CREATE TABLE part (id int PRIMARY KEY, title text, u uuid, FOREIGN KEY (u, title) REFERENCES drafts " +
			"(user_id, title))": {false, false},
		"ALTER TABLE drafts ADD UNIQUE (shout); CREATE TABLE part (id int PRIMARY KEY, s text REFERENCES drafts " +
			"(shout) ON UPDATE CASCADE)": {true, false},
	} {
		r := draftsRewriter(t, conn, RowSecurityMode, change)
		for i, sql := range []string{update, remove} {
			result, refusal := r.Rewrite(sql, false)
			if refusal != nil {
				t.Errorf("%s: %s: %v", change, sql, refusal)
			} else if (result.HardenedReason != "") != wantHardened[i] {
				t.Errorf("%s: %s: hardened %q", change, sql, result.HardenedReason)
			}
		}
		if strings.Contains(change, "feeling") {
			for _, sql := range []string{"UPDATE drafts SET feeling = title", "UPDATE drafts SET feelings[1] = title", "UPDATE drafts SET feelings = tags"} {
				if result, refusal := r.Rewrite(sql, false); refusal != nil || result.HardenedReason == "" {
					t.Errorf("%s: %s: %v", change, sql, refusal)
				}
			}
		}
	}
}

const asksOf = "; CREATE FUNCTION asks(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END'; " +
	"ALTER TABLE part ADD CHECK (asks(id) > 0)"

// Where a search selects the rows of a write, and no hardened plan is needed, the rewriter finds them by primary key on
// the signed path.
func TestWritesFoundByKey(t *testing.T) {
	r := draftsRewriter(t, pgtest.Database(t).Connect(t, "postgres"), AutoMode, "")
	const search = "found @@ 'a'::tsquery"
	keys := func(alias, condition string) string {
		return condition + " AND " + alias + ".id = ANY (ARRAY(SELECT " + alias + ".id FROM pgconsent_signed.visible_public_drafts AS " +
			alias + " WHERE " + condition + "))"
	}
	for sql, want := range map[string]string{
		"UPDATE drafts SET title = 'x' WHERE " +
			search: "UPDATE public.drafts SET title = 'x' WHERE " + keys("drafts", search),
		"UPDATE drafts SET title = lpad(body, n) WHERE n / 2 > 3 AND " +
			search + " RETURNING n / 2": "UPDATE public.drafts SET title = lpad(body, n) WHERE n / 2 > 3 AND " + keys("drafts", search) + " RETURNING n / 2",
		"DELETE FROM drafts d WHERE d.body ILIKE '%abc%'":      "DELETE FROM public.drafts d WHERE " + keys("d", "d.body ILIKE '%abc%'"),
		"DELETE FROM ONLY drafts d WHERE d.body ILIKE '%abc%'": "", // reads with ONLY get no keys either
		"DELETE FROM drafts d WHERE d.body ~ 'abc' AND n = 3 AND n / 2 = 1 RETURNING title": "DELETE FROM public.drafts d " +
			"WHERE d.body ~ 'abc' AND n = 3" + strings.TrimPrefix(keys("d", "d.body ~ 'abc' AND n = 3"), "d.body ~ 'abc' AND n = 3") + " AND n / 2 = 1 RETURNING title",
		"UPDATE drafts SET title = $2 WHERE found @@ plainto_tsquery('simple', $1)": "UPDATE public.drafts SET title = $2 " +
			"WHERE " + keys("drafts", "found @@ plainto_tsquery('simple', $1)"),
		"UPDATE drafts SET title = $2 WHERE found @@ plainto_tsquery('simple', $1) AND n = length($3) / 2": "", // it needs a hardened plan
		"DELETE FROM drafts d USING notes n WHERE d.body LIKE $1 AND n.id = d.note_id": "DELETE FROM public.drafts d USING public.notes n " +
			"WHERE " + keys("d", "d.body LIKE $1") + " AND n.id = d.note_id",
		"UPDATE drafts SET title = m.title FROM memories m WHERE m." + search +
			" AND m.id = drafts.id": "UPDATE public.drafts SET title = m.title FROM public.memories m WHERE m." +
			search + " AND m.id = ANY (ARRAY(SELECT m.id FROM pgconsent_signed.visible_public_memories AS m WHERE m." + search + ")) AND m.id = drafts.id",
		"UPDATE narrow SET body = 'x' WHERE body LIKE '%abc%' AND length(body) / 2 = 1": "UPDATE pgconsent_rows.public_narrow AS narrow " +
			"SET body = 'x' WHERE body LIKE '%abc%' " +
			"AND narrow.id = ANY (ARRAY(SELECT narrow.id FROM pgconsent_signed.visible_public_narrow AS narrow WHERE body LIKE '%abc%')) AND length(body) / 2 = 1",
		"UPDATE drafts SET title = $1 WHERE body LIKE $1":                                          "", // the parameter's type differs at the two places
		"UPDATE drafts SET title = 'x' WHERE " + search + " AND n = (SELECT id FROM notes)":        "", // it needs a hardened plan
		"UPDATE drafts SET body = DEFAULT WHERE " + search:                                         "",
		"UPDATE drafts SET title = 'x' WHERE id = $1":                                              "",
		"WITH d AS (DELETE FROM drafts WHERE " + search + " RETURNING id) SELECT id FROM d":        "",
		"INSERT INTO drafts (title) SELECT title FROM memories WHERE " + search:                    "",
		"UPDATE drafts SET title = 'x' FROM (SELECT id FROM notes FOR UPDATE) q WHERE " + search:   "",
		"UPDATE drafts SET title = 'x' WHERE " + search + "; SELECT 1":                             "",
		"PREPARE p AS DELETE FROM drafts WHERE " + search:                                          "",
		"UPDATE drafts SET title = 'x' FROM pg_class c WHERE " + search + " AND c.relname = title": "",
	} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil {
			if !strings.Contains(sql, "FOR UPDATE") {
				t.Errorf("%s: %v", sql, refusal)
			}
			continue
		}
		text := strings.ReplaceAll(result.Text, "pg_catalog.", "")
		switch {
		case want == "" && (result.NeedsSignature || len(result.SearchedByKey) > 0 || strings.Contains(text, "pgconsent_signed.visible_")):
			t.Errorf("%s: %s", sql, text)
		case want != "" && (text != want || len(result.SearchedByKey) != 1 || !result.NeedsSignature ||
			result.HardenedReason != "" || result.Path != verdict.PathRowSecurity):
			t.Errorf("%s: path %s, hardened %q, by key %v\n%s\n%s", sql, result.Path, result.HardenedReason, result.SearchedByKey, text, want)
		}
	}
}
