package policytest

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

const live = `version: 1
attributes: { tenant: { type: integer, source: credential } }
tables:
  notes: { rows: [ own: { column: tenant, is: tenant }, visible: { people: { id: about } } ],
    write: { commands: [insert], columns: [id, body], stamp: { tenant: { attribute: tenant } }, accept: [conflicts] } }
  people: { rows: open }
`

// The schema of a database in use is dumped without rows, and without what pgconsent migrate has installed. Row
// policies of others remain.
func TestSchemaOfADatabase(t *testing.T) {
	tier.All(t)
	db := pgtest.Database(t)
	super := db.Connect(t, "postgres")
	if _, err := super.Exec(t.Context(), `
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE TABLE people (id integer PRIMARY KEY, name text);
CREATE TABLE notes (id integer PRIMARY KEY, tenant integer, about integer REFERENCES people, body text);
CREATE VIEW names AS SELECT name FROM people;
CREATE POLICY theirs ON people USING (id > 0);
ALTER TABLE people ENABLE ROW LEVEL SECURITY;
INSERT INTO people VALUES (1, 'HIDDENMARK');
`); err != nil {
		t.Fatal(err)
	}
	doc, err := policy.Parse("policy.yaml", []byte(live))
	if err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(t.Context(), super, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(doc, snap)
	if err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(t.Context(), super, migrations.Options{}, rls.Generate(p, snap, rls.Options{})); err != nil {
		t.Fatal(err)
	}
	schema, err := DumpSchema(t.Context(), []string{"PGHOST=" + db.SocketDir, "PGPORT=" + strconv.Itoa(db.Port), "PGUSER=postgres", "PGDATABASE=" + db.Name})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(schema.SQL, "pgconsent") || strings.Contains(schema.SQL, "HIDDENMARK") || !strings.Contains(schema.Extensions, "pg_trgm") {
		t.Errorf("the schema is\n%s\n%s", schema.Extensions, schema.SQL)
	}
	if !strings.Contains(schema.SQL, "CREATE POLICY theirs") ||
		!strings.Contains(schema.SQL, "ALTER TABLE public.people ENABLE ROW LEVEL SECURITY") ||
		strings.Contains(schema.SQL, "ALTER TABLE public.notes ENABLE ROW") {
		t.Errorf("row security is not what it was:\n%s", schema.SQL)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"policy.yaml": live, FileName: `version: 1
database: app
callers: { chat: { attributes: { tenant: 1 } } }
given:
  - INSERT INTO people VALUES (1, 'Ann')
  - { notes: [ { id: 1, tenant: 1, about: 1 }, { id: 2, tenant: 2, about: 1 }, { id: 3, tenant: 1 } ] }
tests: [ { name: a, as: chat, then: { sees: { notes: [1], people: [1] } } } ]
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := NewServerOn(t.Context(), dsn("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	r, err := Run(t.Context(), s, filepath.Join(dir, FileName), Options{Dump: func(_ context.Context, name string) (Schema, error) {
		if name != "app" {
			t.Errorf("asked for %s", name)
		}
		return schema, nil
	}})
	if err != nil || !r.HasPassed() || len(r.Results) != 1 {
		t.Errorf("%+v %v", r, err)
	}
	if r, err = Run(t.Context(), s, filepath.Join(dir, FileName), Options{}); err != nil ||
		!strings.Contains(r.Problems.Error(), ":2:11: there is no configuration that says where database app is (run it with --config)") {
		t.Errorf("%v %v", r.Problems, err)
	}
}
