package rls_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

// written is a table that agents write, with an owner's trigger that spoils a stamp where the title asks for it.
const writeTables = `
CREATE TABLE topics (id int PRIMARY KEY, user_id uuid);
INSERT INTO topics VALUES (1, '` + user1 + `'), (2, '` + user2 + `');
CREATE TABLE drafts (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), user_id uuid NOT NULL, title text, body text DEFAULT 'empty', state text, seen_by uuid, note text,
  topic int REFERENCES topics, made int DEFAULT 1, n serial
);
CREATE FUNCTION derive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.seen_by := NEW.user_id;
  IF NEW.title = 'spoil' THEN NEW.state := 'final'; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER a_derive BEFORE INSERT ON drafts FOR EACH ROW EXECUTE FUNCTION derive();
INSERT INTO drafts (id, user_id, title, state) VALUES ('` + user2 + `', '` + user2 + `', 'of user 2', 'new');
ALTER TABLE topics OWNER TO app_owner;
ALTER TABLE drafts OWNER TO app_owner;
GRANT INSERT (title), UPDATE (title) ON drafts TO app_other;`

const writtenPolicy = `
version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  topics: { rows: [ { own: { column: user_id, is: user } } ] }
  drafts:
    rows: [ { own: { column: user_id, is: user } } ]
    write:
      commands: [insert, update, delete]
      columns: [title, body, topic, note]
      stamp: { user_id: { attribute: user }, state: { value: new } }
      immutable: [made]
      check: [ { any: [ { status: { column: note, is: kept } }, { status: { column: body, is: empty } }, { status: { column: body, is: full } } ] } ]
      accept: [sequences]
`

func writtenWorld(t *testing.T, before ...string) *world {
	t.Helper()
	w := newWorld(t, append([]string{writeTables}, before...)...)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(writtenPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	w.compile(file, rls.Options{})
	return w.migrate()
}

// Agents see all topics and all drafts, and update and delete only their own.
func TestCommandsHaveRulesOfTheirOwn(t *testing.T) {
	w := newWorld(t, writeTables)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(`
version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  topics: { rows: open }
  drafts:
    rows: [ visible: { topics: { id: topic } } ]
    write:
      commands: [insert, update, delete]
      columns: [title, body, topic, user_id]
      stamp: { state: { value: new } }
      accept: [sequences]
      insert: { rows: [ { status: { column: title, is: a } } ] }
      update: { rows: [ { own: { column: user_id, is: user } }, { visible: { topics: { id: topic }, where: [ { own: { column: user_id, is: user } } ] } } ] }
      delete: { rows: [ { own: { column: user_id, is: user } }, { status: { column: body, is: empty } } ] }
`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.compile(file, rls.Options{})
	w.migrate()
	w.want(w.owner, `WITH i AS (INSERT INTO public.drafts (title, user_id, topic, body) VALUES ('mine', '`+user1+`', 1, 'x'),
		('mine, her topic', '`+user1+`', 2, 'empty'), ('hers', '`+user2+`', 1, 'empty') RETURNING 1) SELECT count(*) FROM i`, "3")
	agent := w.agent(user1)
	const updateQuery = "WITH u AS (UPDATE public.drafts SET body = body RETURNING title) SELECT string_agg(title, ';') FROM u"
	w.want(agent, "SELECT string_agg(title, ';' ORDER BY title) FROM public.drafts", "hers;mine;mine, her topic")
	w.want(agent, updateQuery, "mine")
	w.want(agent, "WITH l AS (SELECT title FROM public.drafts FOR UPDATE) SELECT string_agg(title, ';') FROM l", "mine")
	w.wantRefusal(agent, "42501", "UPDATE public.drafts SET user_id = '"+user2+"'")
	w.wantRefusal(agent, "42501", "UPDATE public.drafts SET topic = 2")
	w.wantRefusal(agent, "42501", "INSERT INTO public.drafts (title, topic) VALUES ('b', 1)")
	w.wantRefusal(agent, "42501", "MERGE INTO public.drafts d USING (VALUES (1)) v ON title = 'hers' WHEN MATCHED THEN UPDATE SET body = 'y'")
	w.want(agent, "WITH d AS (DELETE FROM public.drafts RETURNING title) SELECT string_agg(title, ';') FROM d", "mine, her topic")
	w.want(w.agent(user2), "WITH d AS (DELETE FROM public.drafts RETURNING title) SELECT string_agg(title, ';') FROM d", "hers")
	w.want(agent, "WITH i AS (INSERT INTO public.drafts (title, topic, user_id) VALUES ('a', 1, '"+user2+
		"') RETURNING title) SELECT string_agg(title, ';') FROM i", "a")
}

func TestAgentWritesWhatThePolicyAllows(t *testing.T) {
	for name, before := range map[string]string{
		"row security was off": "SELECT 1",
		"row security was on":  "ALTER TABLE drafts ENABLE ROW LEVEL SECURITY; ALTER TABLE topics ENABLE ROW LEVEL SECURITY",
	} {
		t.Run(name, func(t *testing.T) {
			w := writtenWorld(t, before)
			agent := w.agent(user1)
			w.want(agent, "INSERT INTO public.drafts (title, user_id, state) VALUES ('a', '"+user2+
				"', 'final') RETURNING user_id || state || body || seen_by || n", user1+"newempty"+user1+"2")
			w.want(agent, "SELECT count(*) FROM public.drafts", "1")
			w.want(w.owner, "SELECT count(*) FROM public.drafts", "2")
			// No command of the agent sees rows of other users.
			w.want(agent, "WITH u AS (UPDATE public.drafts SET title = 'x' RETURNING 1) SELECT count(*) FROM u", "1")
			w.want(agent, "WITH u AS (DELETE FROM public.drafts WHERE title <> 'x' RETURNING 1) SELECT count(*) FROM u", "0")
			w.want(w.owner, "SELECT string_agg(title, ',' ORDER BY title) FROM public.drafts", "of user 2,x")
			// Columns.
			w.wantRefusal(agent, "42501", "UPDATE public.drafts SET user_id = '"+user2+"'")
			w.wantRefusal(agent, "42501", "UPDATE public.drafts SET state = 'final'")
			w.wantRefusal(agent, "42501", "UPDATE public.drafts SET made = 2")
			w.want(agent, "INSERT INTO public.drafts (title, made) VALUES ('made', 7) RETURNING made", "7")
			w.wantRefusal(agent, "42501", "INSERT INTO public.drafts (id) VALUES (gen_random_uuid())")
			w.wantRefusal(agent, "42501", "INSERT INTO public.drafts (seen_by) VALUES ('"+user1+"')")
			// A row is refused if a trigger of the owner changes a stamped value.
			w.wantRefusal(agent, "42501", "INSERT INTO public.drafts (title) VALUES ('spoil')")
			// The check applies to inserted and updated rows.
			w.wantRefusal(agent, "42501", "INSERT INTO public.drafts (body) VALUES ('other')")
			w.wantRefusal(agent, "42501", "INSERT INTO public.drafts (body) VALUES (NULL)")
			w.wantRefusal(agent, "42501", "UPDATE public.drafts SET body = 'other'")
			w.want(agent, "INSERT INTO public.drafts (body, note) VALUES ('other', 'kept') RETURNING body", "other")
			// Foreign keys to a visible, a hidden and a missing row.
			w.want(agent, "INSERT INTO public.drafts (topic) VALUES (1) RETURNING topic", "1")
			for _, topic := range []string{"2", "3"} {
				w.wantRefusal(agent, "42501", "INSERT INTO public.drafts (topic) VALUES ("+topic+")")
				w.wantRefusal(agent, "42501", "UPDATE public.drafts SET topic = "+topic)
			}
			// A foreign key that an UPDATE does not change may refer to a hidden row. Setting another value is refused
			// in the same way whether or not the row exists.
			id, err := query(w.owner,
				"UPDATE public.drafts SET topic = 2 WHERE id = (SELECT id FROM public.drafts WHERE user_id = '"+user1+"' LIMIT 1) RETURNING id::text")
			if err != nil {
				t.Fatal(err)
			}
			w.want(agent, "UPDATE public.drafts SET title = 'stays' WHERE id = '"+id+"' RETURNING topic", "2")
			w.want(agent, "UPDATE public.drafts SET topic = topic, title = 'stays' WHERE id = '"+id+"' RETURNING topic", "2")
			w.wantRefusal(agent, "42501", "UPDATE public.drafts SET topic = 2 WHERE id <> '"+id+"'")
			w.wantRefusal(agent, "42501", "UPDATE public.drafts SET topic = 3 WHERE id = '"+id+"'")
			w.want(agent, "UPDATE public.drafts SET topic = 1 WHERE id = '"+id+"' RETURNING topic", "1")
			w.wantRefusal(agent, "42501", "UPDATE public.drafts SET topic = 2 WHERE id = '"+id+"'")
			w.wantRefusal(agent, "42501", "INSERT INTO public.topics VALUES (9)")
			w.wantRefusal(agent, "42501", "TRUNCATE public.drafts")
			// Without a seal an agent writes nothing.
			stranger := w.agent("")
			w.wantRefusal(stranger, "42501", "INSERT INTO public.drafts (title) VALUES ('a')")
			w.want(stranger, "WITH u AS (UPDATE public.drafts SET title = 'y' RETURNING 1) SELECT count(*) FROM u", "0")
			w.want(stranger, "WITH u AS (DELETE FROM public.drafts RETURNING 1) SELECT count(*) FROM u", "0")
			// Rows of other roles are not stamped.
			w.want(w.owner, "INSERT INTO public.drafts (title, user_id, state) VALUES ('o', '"+user2+"', 'spoil') RETURNING state", "spoil")
			w.want(agent, "WITH u AS (DELETE FROM public.drafts RETURNING 1) SELECT count(*) FROM u", "4")
		})
	}
}

// A column may have any word of SQL or PL/pgSQL as its name. The functions and triggers that migrate makes read it as
// that column.
func TestColumnsNamedByAnyWord(t *testing.T) {
	tier.All(t)
	w := newWorld(t, `DO $$ BEGIN EXECUTE (SELECT 'CREATE TABLE words ("by" uuid, "loop" text[], ' || string_agg('"' || word || '" text', ', ') || ')'
		FROM (SELECT word FROM pg_get_keywords()
		  UNION SELECT unnest('{if,while,foreach,strict,elsif,exit,raise,perform,return,open,new,old,found,tg_op,allowed}'::text[])) AS k
		WHERE word NOT IN ('by', 'loop')); END $$;
		ALTER TABLE words OWNER TO app_owner`)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(`
version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  words:
    rows: [ { own: { column: by, is: user } } ]
    write:
      commands: [insert, update]
      stamp: { by: { attribute: user }, begin: { value: stamped, unless: [ sql: "\"execute\" IS NOT NULL" ] } }
      lists: { loop: { from: [ ids: [if] ], narrow: true } }
`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.compile(file, rls.Options{})
	w.migrate()
	agent := w.agent(user1)
	w.want(agent, `INSERT INTO pgconsent_rows.in_public_words ("if", "while", "loop", "declare", "strict", "select", "foreach", found, allowed)
		VALUES ('a', 'b', '{a}', 'c', 'd', 'e', 'f', 'g', 'h') RETURNING "while"`, "b")
	w.want(agent,
		`SELECT "if" || "while" || "loop"::text || "declare" || "strict" || "select" || "foreach" || found || allowed || "begin" FROM words`, "ab{a}cdefghstamped")
	w.want(agent, `UPDATE words SET "loop" = '{}', "execute" = 'x' RETURNING "by"::text`, user1)
	w.wantRefusal(agent, "42501", `UPDATE words SET "loop" = '{z}'`)
}

// Migrate --down removes the objects by which agents write, and the rights of other roles stay.
func TestWritesAreTakenAway(t *testing.T) {
	tier.All(t)
	w := newWorld(t, writeTables)
	const rightsQuery = `SELECT string_agg(x, ';' ORDER BY x) FROM (
		SELECT c.relname || ' ' || COALESCE(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", c.relowner))::text
		  FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'S')
		UNION ALL SELECT a.attname || ' ' || a.attacl::text FROM pg_attribute a
		  WHERE a.attacl IS NOT NULL AND a.attrelid = 'public.drafts'::regclass AND a.attacl::text <> '{}'
		UNION ALL SELECT t.tgname::text FROM pg_trigger t WHERE t.tgrelid = 'public.drafts'::regclass AND NOT t.tgisinternal
		UNION ALL SELECT p.polname::text FROM pg_policy p) AS r (x)`
	foundRights, err := query(w.super, rightsQuery)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(writtenPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	w.compile(file, rls.Options{})
	w.migrate()
	installedRights, err := query(w.super, rightsQuery)
	if err != nil || !strings.Contains(installedRights, "!pgconsent_stamp") || !strings.Contains(installedRights, "drafts_n_seq") {
		t.Fatalf("%s %v", installedRights, err)
	}
	for what, sql := range map[string]string{
		"trigger": `ALTER TABLE drafts DISABLE TRIGGER "!pgconsent_stamp"`,
		"column":  "GRANT UPDATE (user_id) ON drafts TO pgconsent_agent",
	} {
		w.exec(w.super, "BEGIN")
		w.exec(w.super, sql)
		drift, err := migrations.Drift(context.Background(), w.super)
		w.exec(w.super, "ROLLBACK")
		if err == nil && len(drift) == 0 {
			t.Errorf("%s: no drift after %s", what, sql)
		}
	}
	if err := migrations.Down(context.Background(), w.owner, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	w.want(w.super, rightsQuery, foundRights)
}

// A write that the proxy decided before DDL fails after it, whether or not the command reads rows. The same holds for
// reads.
func TestNothingIsWrittenUnderAnOlderCatalog(t *testing.T) {
	tier.All(t)
	for name, c := range map[string]struct {
		makeWorld func(t *testing.T) *world
		sql       []string // statements refused after DDL, and not before
	}{
		"a table": {func(t *testing.T) *world { return writtenWorld(t) }, []string{
			"INSERT INTO public.drafts (title) VALUES ('a')",
			"INSERT INTO public.drafts (title) VALUES ('b') RETURNING n", "UPDATE public.drafts SET title = 'x'",
			"DELETE FROM public.drafts", "SELECT n FROM public.drafts",
		}},
		"parts": {partitionedWorld, []string{"SELECT id FROM public.events", "SELECT id FROM parts.events_1",
			"SELECT id FROM public.cats", "SELECT id FROM pgconsent_rows.public_narrow"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := c.makeWorld(t)
			agent := w.agent("")
			sessionClaims := claims(agent, user1)
			var err error
			if sessionClaims.Catalog, err = query(w.super, "SELECT pgconsent.catalog_version()"); err != nil {
				t.Fatal(err)
			}
			w.setSeal(agent, w.key().Seal(sessionClaims))
			for _, sql := range c.sql {
				w.exec(agent, sql)
			}
			w.exec(w.super, "INSERT INTO pgconsent.catalog_change (xid) VALUES (pg_current_xact_id())") // as the event trigger does
			for _, sql := range c.sql {
				w.wantRefusal(agent, "40001", sql)
			}
		})
	}
}

// If a unique key contains a column that decides visibility, an INSERT conflicts with visible rows only. Where it would
// conflict with a hidden row, the policy refuses the new row first, with the same error as without a conflict.
func TestKeysWithColumnsThatDecideVisibility(t *testing.T) {
	w := newWorld(t, writeTables, `CREATE TABLE links (topic int REFERENCES topics, sku text, PRIMARY KEY (topic, sku));
INSERT INTO links VALUES (1, 'a'), (2, 'a'); ALTER TABLE links OWNER TO app_owner;`)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(`
version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  topics: { rows: [ { own: { column: user_id, is: user } } ] }
  links: { rows: [ { visible: { topics: { id: topic } } } ], write: { commands: [insert, update, delete], columns: [topic, sku] } }
`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.compile(file, rls.Options{})
	w.migrate()
	agent := w.agent(user1)
	w.want(agent, "INSERT INTO public.links VALUES (1, 'b') RETURNING sku", "b")
	w.wantRefusal(agent, "23505", "INSERT INTO public.links VALUES (1, 'a')")
	w.want(agent, "WITH i AS (INSERT INTO public.links VALUES (1, 'a') ON CONFLICT DO NOTHING RETURNING 1) SELECT count(*) FROM i", "0")
	for _, key := range []string{"(2, 'a')", "(2, 'z')", "(3, 'a')"} {
		for _, sql := range []string{"INSERT INTO public.links VALUES " + key, "INSERT INTO public.links VALUES " + key + " ON CONFLICT DO NOTHING",
			"INSERT INTO public.links VALUES " + key +
				" ON CONFLICT (topic, sku) DO UPDATE SET sku = excluded.sku", "UPDATE public.links SET (topic, sku) = " + key + " WHERE sku = 'a'"} {
			w.wantRefusal(agent, "42501", sql)
		}
	}
	w.want(w.owner, "SELECT string_agg(topic || sku, ',' ORDER BY topic, sku) FROM public.links", "1a,1b,2a")
}

// A foreign key that an UPDATE leaves unchanged is not checked. If agents cannot read every column of the row, they
// could guess the key, so it is checked like any other.
func TestKeysStayOnlyInRowsThatAgentsReadWhole(t *testing.T) {
	tier.All(t)
	const rowsText = "rows: [ own: { column: user_id, is: user } ]"
	for name, c := range map[string]struct {
		columnsText, contractText, columns string
		change                             string
		mayStay                            bool
	}{
		"read whole":   {columns: "[title, topic]", mayStay: true},
		"some columns": {columnsText: "columns: { id: allow, title: allow, topic: allow }, ", columns: "[title, topic]"},
		"under a contract": {columns: "[title, topic]",
			contractText: "objects: { draft: { table: drafts } }\ncontracts: { all: { by: user, values: { " + user1 + ": { allow: { draft: write } } } } }\n"},
		"a key that moves": {columns: "[title, topic, id]"},
		"children":         {columns: "[title, topic]", change: "CREATE TABLE heirs () INHERITS (drafts)"},
		"no primary key":   {columns: "[title, topic]", change: "ALTER TABLE drafts DROP CONSTRAINT drafts_pkey"},
		"a deferrable key": {columns: "[title, topic]", change: "ALTER TABLE drafts DROP CONSTRAINT drafts_pkey, ADD PRIMARY KEY (id) DEFERRABLE"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, writeTables, c.change)
			file := filepath.Join(t.TempDir(), "policy.yaml")
			text := "version: 1\nattributes: { user: { type: uuid, source: credential } }\ntables:\n  topics: { " +
				rowsText + " }\n  drafts: { " + rowsText + ", " + c.columnsText +
				"write: { commands: [insert, update], columns: " + c.columns +
				", stamp: { user_id: { attribute: user } }, accept: [conflicts, references, sequences] } }\n" + c.contractText
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			w.compile(file, rls.Options{})
			table, _ := w.pol.Table(catalog.Name{Schema: "public", Name: "drafts"})
			checkedKeys, mayStay := 0, 0
			for _, part := range predicate.Conjuncts(table.Write.UpdateCheck) {
				if r, ok := part.(predicate.Reference); ok {
					checkedKeys++
					if r.RowBefore.Relation != nil {
						mayStay++
					}
				}
			}
			if checkedKeys != 1 || mayStay == 1 != c.mayStay {
				t.Errorf("%d keys are asked, and %d may stay", checkedKeys, mayStay)
			}
		})
	}
}
