package rls_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/rls"
)

// A statement that the proxy decided before DDL fails after it. This holds for all that agents may read: tables,
// partitions, materialised views, pgconsent's views, signed views, and groups.
func TestNothingIsReadUnderAnOlderCatalog(t *testing.T) {
	w := newWorld(t, `SET ROLE app_owner;
CREATE MATERIALIZED VIEW digest AS SELECT id, user_id, title FROM memories;
CREATE TABLE events (id int, user_id uuid) PARTITION BY RANGE (id);
CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (0) TO (10);
CREATE TABLE narrow (id int PRIMARY KEY, user_id uuid, secret text);
CREATE TABLE visits (id int PRIMARY KEY, user_id uuid, person int, kind text);
CREATE VIEW titles AS SELECT title FROM memories;
RESET ROLE`)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(`version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  memories: { rows: [ { own: { column: user_id, is: user } } ] }
  digest: { rows: [ { own: { column: user_id, is: user } } ] }
  events: { rows: [ { own: { column: user_id, is: user } } ] }
  narrow: { rows: [ { own: { column: user_id, is: user } } ], columns: { id: allow } }
  visits: { rows: [ { own: { column: user_id, is: user } } ], aggregate: { subject: person, rows: [ open ], dimensions: { kind: allow } } }
views: { titles: {} }
`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.compile(file, rls.Options{SignedViews: true})
	w.migrate()
	agent := w.agent("")
	sessionClaims := claims(agent, user1)
	var err error
	if sessionClaims.Catalog, err = query(w.super, "SELECT pgconsent.catalog_version()"); err != nil {
		t.Fatal(err)
	}
	w.setSeal(agent, w.key().Seal(sessionClaims))
	// The other signed views are only read by conditions on the rows of these.
	readableRelations, err := query(w.super, `SELECT c.oid::regclass FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pgconsent_catalog')
		  AND has_any_column_privilege('`+migrations.DefaultAgentRole+`', c.oid, 'SELECT') AND has_schema_privilege('`+migrations.DefaultAgentRole+`', n.oid, 'USAGE')
		  AND (n.nspname <> 'pgconsent_signed' OR c.relname ~ '^(visible|group)_') ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"public.memories", "public.events_1", "pgconsent_rows.public_digest",
		"pgconsent_rows.filtered_public_narrow", "pgconsent_rows.public_titles", "pgconsent_signed.visible_public_memories", "pgconsent_signed.group_public_visits"} {
		if !strings.Contains(","+readableRelations+",", ","+strings.TrimPrefix(name, "public.")+",") {
			t.Errorf("agents cannot read %s, of %s", name, readableRelations)
		}
	}
	signedCount := func(relation string) string { return w.key().Sign("p1", "SELECT count(*) FROM "+relation) }
	for _, relation := range strings.Split(readableRelations, ",") {
		w.exec(agent, signedCount(relation))
	}
	w.exec(w.super, "INSERT INTO pgconsent.catalog_change (xid) VALUES (pg_current_xact_id())") // as the event trigger does
	for _, relation := range strings.Split(readableRelations, ",") {
		w.wantRefusal(agent, "40001", signedCount(relation))
	}
}
