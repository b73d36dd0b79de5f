package rls_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

const viewPolicy = `
version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  memories:
    rows:
      - own: { column: user_id, is: user }
      - consent: { every: [ memory_participants: { memory_id: id }, people: { id: person_id } ], status: consent_status, is: granted }
  people:
    rows: [ { own: { column: user_id, is: user } }, { status: { column: consent_status, is: granted } } ]
    columns: { id: allow, name: { mask: { generalise: 2 } } }
  memory_participants: { rows: [ { visible: { memories: { id: memory_id } } }, { visible: { people: { id: person_id } } } ] }
views: { top: {}, names: {}, relations: {} }
functions: { match_memories: { pin: { respect_consent: true } } }
`

const viewSchema = `
SET ROLE app_owner;
CREATE VIEW beneath AS SELECT m.id, m.title, p.person_id FROM memories m LEFT JOIN memory_participants p ON p.memory_id = m.id;
CREATE VIEW top AS WITH t AS (SELECT title, person_id FROM beneath) SELECT t.title, (SELECT count(*) FROM match_memories('', 100)) AS matches
FROM t WHERE t.title LIKE 'w%' OR t.title LIKE 'a%';
CREATE VIEW relations AS SELECT relname, pg_get_viewdef(oid) AS definition FROM pg_class WHERE relkind = 'v' AND relnamespace = 'public'::regnamespace;
CREATE VIEW names AS SELECT p.name, p.id IN (SELECT person_id FROM beneath) AS present FROM people p;
ALTER TABLE people RENAME COLUMN is_self TO self;
RESET ROLE`

func viewWorld(t *testing.T, o rls.Options) *world {
	t.Helper()
	w := newWorld(t, viewSchema)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(viewPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	w.compile(file, o)
	return w.migrate()
}

// A listed view shows the result of its query over the visible rows and columns, also if it reads views that are not
// listed.
func TestViews(t *testing.T) {
	w := viewWorld(t, rls.Options{})
	agent := w.agent(user1)
	for _, prefix := range []string{"", "filtered_"} {
		w.want(agent, "SELECT title || matches FROM pgconsent_rows."+prefix+"public_top ORDER BY 1", "alone2,with Ada2")
		w.want(agent, "SELECT name || present FROM pgconsent_rows."+prefix+"public_names", "Adtrue")
		w.want(agent, "SELECT string_agg(relname, ',' ORDER BY relname) || count(definition) FROM pgconsent_rows."+
			prefix+"public_relations", "names,relations,top3")
		w.want(w.agent(""), "SELECT count(*) FROM pgconsent_rows."+prefix+"public_top", "0")
		w.want(w.agent(user2), "SELECT name FROM pgconsent_rows."+prefix+"public_names", "Ev")
	}
	w.wantRefusal(agent, "42501", "SELECT * FROM public.top")
	w.exec(w.owner, "UPDATE people SET consent_status = 'revoked' WHERE name = 'Ada'")
	w.want(agent, "SELECT title || matches FROM pgconsent_rows.public_top ORDER BY 1", "alone1")
	w.want(agent, "SELECT count(*) FROM pgconsent_rows.filtered_public_names", "0")

	// Each enforcement layer works without the other.
	w.exec(w.owner, "ALTER TABLE memories DISABLE ROW LEVEL SECURITY; ALTER TABLE people DISABLE ROW LEVEL "+
		"SECURITY; ALTER TABLE memory_participants DISABLE ROW LEVEL SECURITY")
	w.want(agent, "SELECT title FROM pgconsent_rows.filtered_public_top ORDER BY 1", "alone")
	w.want(agent, "SELECT count(*) FROM pgconsent_rows.filtered_public_names", "0")
	w.want(agent, "SELECT count(*) > 3 FROM pgconsent_rows.public_top", "t")

	if err := migrations.Down(context.Background(), w.owner, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	w.want(w.super, "SELECT count(*) FROM pg_views WHERE schemaname LIKE 'pgconsent%'", "0")
}

// The definitions of views as agents see them.
const (
	topDefinition   = " SELECT title,\n    matches\n   FROM public.top;"
	namesDefinition = " SELECT name,\n    present\n   FROM public.names;"
)

func TestShadowsOfViews(t *testing.T) {
	w := viewWorld(t, rls.Options{})
	agent := w.agent(user1)
	for sql, want := range map[string]string{
		"SELECT relname FROM pgconsent_catalog.pg_class WHERE relkind = 'v' AND relnamespace = " +
			"'public'::regnamespace ORDER BY 1": "names,relations,top",
		"SELECT table_name || ' ' || table_type FROM pgconsent_catalog.is_tables WHERE table_schema = 'public' " +
			"AND table_type = 'VIEW' ORDER BY 1": "names VIEW,relations VIEW,top VIEW",
		"SELECT column_name FROM pgconsent_catalog.is_columns WHERE table_name = 'top' ORDER BY ordinal_position":      "title,matches",
		"SELECT attname FROM pgconsent_catalog.pg_attribute WHERE attrelid = 'public.names'::regclass ORDER BY attnum": "name,present",
		"SELECT table_name || ' ' || check_option || ' ' || is_updatable FROM pgconsent_catalog.is_views WHERE " +
			"table_schema = 'public' ORDER BY 1": "names NONE YES,relations NONE YES,top NONE NO",
		"SELECT count(*) FROM pgconsent_catalog.is_views WHERE view_definition IS NULL":   "0",
		"SELECT view_definition FROM pgconsent_catalog.is_views WHERE table_name = 'top'": topDefinition,
		"SELECT schemaname || '.' || viewname FROM pgconsent_catalog.pg_views WHERE schemaname = 'public' " +
			"ORDER BY 1": "public.names,public.relations,public.top",
		"SELECT count(*) FROM pgconsent_catalog.pg_views WHERE definition IS NULL":                                                           "0",
		"SELECT definition FROM pgconsent_catalog.pg_views WHERE viewname = 'top'":                                                           topDefinition,
		"SELECT pgconsent_catalog.pg_get_viewdef('public.people'::regclass)":                                                                 "NULL",
		"SELECT pgconsent_catalog.pg_get_viewdef('public.names', true)":                                                                      namesDefinition,
		"SELECT pgconsent_catalog.pg_get_viewdef('public.beneath')":                                                                          "NULL",
		"SELECT count(*) FROM pgconsent_catalog.pg_matviews":                                                                                 "0",
		"SELECT pgconsent_catalog.pg_get_viewdef('public.top'::regclass)":                                                                    topDefinition,
		"SELECT count(*) FROM pgconsent_catalog.pg_class WHERE relname LIKE '%public\\_%' AND relname NOT LIKE 'pg%' OR relname = 'beneath'": "0",
	} {
		w.want(agent, sql, want)
	}
}

// A view that reads or calls something agents may not use is refused, with its position in the policy.
func TestViewsThatAgentsMayNotRead(t *testing.T) {
	w := newWorld(t, viewSchema+`;
		CREATE VIEW edges AS SELECT * FROM memory_edges; CREATE VIEW over_edges AS SELECT 1 AS a FROM edges;
		CREATE FUNCTION leak() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE VIEW calls AS SELECT leak() AS a;
		CREATE VIEW sleeps AS SELECT pg_sleep(1)::text AS a; CREATE VIEW hidden AS SELECT id, consent_status FROM people;
		CREATE VIEW statistics AS SELECT rolname FROM pg_authid; CREATE VIEW places AS SELECT ctid AS c FROM memories;
		CREATE VIEW named AS SELECT p.who FROM people AS p (who); CREATE MATERIALIZED VIEW stored AS SELECT 1 AS a`)
	for view, want := range map[string]string{
		"edges":      `p.yaml:13:10: view public.edges reads public.memory_edges, which the policy does not list (`,
		"over_edges": `p.yaml:13:10: view public.edges reads public.memory_edges, which the policy does not list (`,
		"calls":      `p.yaml:13:10: view calls cannot be read by agents: function `,
		"sleeps":     `p.yaml:13:10: view sleeps cannot be read by agents: function `,
		"statistics": `p.yaml:13:10: view statistics cannot be read by agents: relation `,
		"places":     `p.yaml:13:10: view places cannot be read by agents: system columns`,
		"hidden": `p.yaml:13:10: view public.hidden reads public.people.consent_status, ` +
			`which is hidden from agents (show the column to agents, or make a view without it)`,
		"named": `p.yaml:13:10: view named cannot be read by agents: ` +
			`table "p" has 2 columns available but 5 columns specified (Agents see 2 columns of public.people: give as many names after p, or none.)`,
		"stored": `p.yaml:13:10: public.stored is a materialised view (list it under tables)`,
		"people": `p.yaml:13:10: public.people is a table (list it under tables)`,
		"tip":    `p.yaml:13:10: the database has no view "tip" on the search path public (did you mean "top"?)`,
	} {
		doc, err := policy.Parse("p.yaml",
			[]byte(strings.Replace(viewPolicy, "views: { top: {}, names: {}, relations: {} }", "views: { "+view+": {} }", 1)))
		if err != nil {
			t.Fatal(err)
		}
		w.compile("testdata/policy.yaml", rls.Options{})
		_, err = policy.Compile(doc, w.snap, policy.WithViews(rewrite.RewriteViewQuery))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", view, err, want)
		}
	}
	doc, err := policy.Parse("p.yaml", []byte(viewPolicy))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := policy.Compile(doc, w.snap); err == nil {
		t.Error("a policy with views compiles without a judge of views")
	}
}

// A view without columns still tells how many rows there are.
func TestViewsWithoutColumns(t *testing.T) {
	w := newWorld(t, viewSchema+`; CREATE VIEW many AS SELECT FROM people`)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(viewPolicy, "views: { ", "views: { many: {}, ", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	w.compile(file, rls.Options{})
	w.migrate()
	for _, view := range []string{"public_many", "filtered_public_many"} {
		w.want(w.agent(user1), "SELECT count(*) FROM pgconsent_rows."+view, "1")
	}
}
