package instance_test

import (
	"context"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const rules = `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  notes: { rows: [ own: { column: owner, is: user } ] }
`

func notes(t *testing.T) instance.Database {
	db := pgtest.Template(t, "notes", func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `CREATE TABLE notes (id int PRIMARY KEY, owner text NOT NULL); INSERT INTO notes VALUES (1, 'me'), (2, 'you');
			DO $$ BEGIN CREATE ROLE notes_clerk; EXCEPTION WHEN duplicate_object THEN END $$; GRANT SELECT ON notes TO notes_clerk`)
		return err
	})
	return instance.Database{Name: "notes", DB: db, Policy: rules, SearchPath: []string{"public"}}
}

// A copy of a migrated database equals a database that was migrated itself. It has the rights on the database, and the
// statements that undo them. And copies have the same objects, by the same numbers.
func TestCopiesAreAsIfMigrated(t *testing.T) {
	tier.All(t)
	itself, first, second := notes(t), notes(t), notes(t)
	if itself.DB.Connect(t, "postgres"); itself.DB.UnchangedTemplate() != "" || first.DB.UnchangedTemplate() == "" {
		t.Fatal("it is not told which copies may have been changed")
	}
	want := instance.Migrate(t, itself, instance.Both)
	got := []*instance.Migrated{instance.Migrate(t, first, instance.Both), instance.Migrate(t, second, instance.Both)}
	if first.DB.Template() == itself.DB.Template() || first.DB.Template() != second.DB.Template() {
		t.Fatalf("copies of %s and %s: not of what was migrated once", first.DB.Template(), second.DB.Template())
	}
	if got[0] != got[1] || got[0].Plan.Hash() != want.Plan.Hash() || got[0].Policy.Version() != want.Policy.Version() {
		t.Error("the policy became something else")
	}
	ctx := context.Background()
	var states, prints []string
	for _, d := range []instance.Database{itself, first, second} {
		conn := d.DB.Connect(t, "postgres")
		var state string
		if err := conn.QueryRow(ctx, `SELECT jsonb_pretty(jsonb_build_object(
			'rights', (SELECT array_agg(x ORDER BY x) FROM (SELECT x::text FROM pg_database, unnest(datacl) AS x WHERE datname = current_database()) AS a (x)),
			'undo', (SELECT array_agg(sql ORDER BY sql) FROM pgconsent.installed_undo),
			'privileges', (SELECT array_agg(p::text ORDER BY p::text) FROM pgconsent.installed_privilege AS p),
			'objects', (SELECT array_agg(o.identity || o.fingerprint ORDER BY o.identity) FROM pgconsent.installed_object AS o),
			'here', has_database_privilege('pgconsent_agent', current_database(), 'TEMPORARY'),
			'clerk', has_database_privilege('notes_clerk', current_database(), 'TEMPORARY')))`).
			Scan(&state); err != nil {
			t.Fatal(err)
		}
		states = append(states, regexp.MustCompile(`\b`+d.DB.Name+`\b`).ReplaceAllString(state, "NAME"))
		print, err := pgcatalog.Fingerprint(ctx, conn)
		if err != nil {
			t.Fatal(err)
		}
		prints = append(prints, print)
	}
	if states[0] != states[1] || states[0] != states[2] {
		t.Errorf("migrated itself:\n%s\na copy:\n%s\nanother:\n%s", states[0], states[1], states[2])
	}
	var seen struct{ Here, Clerk bool }
	if err := json.Unmarshal([]byte(states[1]), &seen); err != nil || seen.Here || !seen.Clerk {
		t.Errorf("%v, the agents' role may make temporary tables: %t; a role of the database's own: %t", err, seen.Here, seen.Clerk)
	}
	if prints[1] != prints[2] {
		t.Error("two copies have other objects")
	}
	if got := instance.Start(t, instance.Both, notes(t), map[string]string{"user": "me"}); got != nil {
		if a := instance.Ask(got.Agent(t, "agent", "notes"), "SELECT id FROM notes"); a.Err != "" || len(a.Results) != 1 || len(a.Results[0].Rows) != 1 {
			t.Errorf("an agent got %s", a)
		}
	}
	for _, d := range []instance.Database{itself, second} {
		conn := d.DB.Connect(t, "postgres")
		if err := migrations.Down(ctx, conn, migrations.Options{}); err != nil {
			t.Fatal(err)
		}
		var may bool
		if err := conn.QueryRow(ctx, "SELECT has_database_privilege('public', current_database(), 'TEMPORARY')").Scan(&may); err != nil || !may {
			t.Errorf("%s was not put back: %t, %v", d.DB.Name, may, err)
		}
	}
	var may bool
	if err := first.DB.Connect(t, "postgres").QueryRow(ctx,
		"SELECT has_database_privilege('public', current_database(), 'TEMPORARY')").Scan(&may); err != nil || may {
		t.Errorf("what was undone in another copy was undone here: %t, %v", may, err)
	}
}

// The worlds' policies become the same whether they are read before they are installed or afterwards.
func TestPoliciesAreTheSameAfterMigrate(t *testing.T) {
	tier.All(t)
	w, err := world.Open("arcive")
	if err != nil {
		t.Fatal(err)
	}
	text, err := w.File("policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := instance.Database{Name: "arcive", Policy: string(text), SearchPath: []string{"public"},
		DB: pgtest.Template(t, "arcive", func(ctx context.Context, conn *pgx.Conn) error {
			return w.Load(ctx, conn, nil)
		})}
	before := instance.Compile(t, d, instance.Auto)
	if again := instance.Compile(t, d, instance.Auto); again != before {
		t.Error("it was read twice")
	}
	after := instance.Migrate(t, d, instance.Auto)
	if after == before || after.Policy.Version() != before.Policy.Version() || after.Plan.Hash() != before.Plan.Hash() {
		t.Errorf("version %s and hash %s became %s and %s", before.Policy.Version(), before.Plan.Hash(), after.Policy.Version(), after.Plan.Hash())
	}
}
