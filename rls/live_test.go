package rls_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rls"
)

// A second row can make an attribute ambiguous, which hides the rows that it showed. If a key permits only one row, it
// cannot.
func TestRowsThatMakeAnAttributeAmbiguousAreNoted(t *testing.T) {
	w := newWorld(t, "SET ROLE app_owner; CREATE TABLE desks (user_id uuid, desk int); CREATE TABLE rooms "+
		"(user_id uuid PRIMARY KEY, room int); CREATE TABLE papers (desk int, room int); RESET ROLE")
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(`version: 1
attributes:
  user: { type: uuid, source: credential }
  desk: { type: integer, source: query, query: { table: desks, column: desk, match: { user_id: user } } }
  room: { type: integer, source: query, query: { table: rooms, column: room, match: { user_id: user } } }
tables: { papers: { rows: [ own: { column: desk, is: desk }, own: { column: room, is: room } ] } }
`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.compile(file, rls.Options{})
	w.migrate()
	w.checkRecorded([]recordedCase{
		{"INSERT INTO desks VALUES ('" + user1 + "', 2)", true},
		{"INSERT INTO rooms VALUES ('" + user1 + "', 2)", false},
		{"UPDATE rooms SET room = 3", true},
		{"DELETE FROM desks", true},
	})
}

// The function that computes live attributes belongs to the reader role and cannot be called by agents. Its drift is
// noticed, and it is dropped with its policy.
func TestLiveFunction(t *testing.T) {
	ctx := context.Background()
	db := pgtest.Database(t)
	conn := db.Connect(t, "postgres")
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	queryText := func(conn *pgx.Conn, sql string) (out string) {
		if err := conn.QueryRow(ctx, sql).Scan(&out); err != nil {
			return err.Error()
		}
		return out
	}
	exec("CREATE TABLE sessions (id int PRIMARY KEY, stage int); CREATE TABLE notes (id int PRIMARY KEY, session " +
		"int); INSERT INTO sessions VALUES (1, 3)")
	snap, err := pgcatalog.Load(ctx, conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	installPolicy := func(attributes, rows string) {
		t.Helper()
		doc, err := policy.Parse("policy.yaml",
			[]byte("version: 1\nattributes: { user: { type: integer, source: credential }"+attributes+" }\ntables: { notes: { rows: [ "+rows+" ] } }"))
		if err != nil {
			t.Fatal(err)
		}
		pol, err := policy.Compile(doc, snap)
		if err != nil {
			t.Fatal(err)
		}
		if err := migrations.Up(ctx, conn, migrations.Options{}, rls.Generate(pol, snap, rls.Options{})); err != nil {
			t.Fatal(err)
		}
		if drift, err := migrations.Drift(ctx, conn); err != nil || len(drift) > 0 {
			t.Fatalf("drift after migrate: %v, %v", drift, err)
		}
	}
	const liveQuery = "SELECT COALESCE(pgconsent.live('stage', '{user=1}', NULL), 'missing')"
	installPolicy(", stage: { type: integer, source: query, query: { table: sessions, column: stage, match: { id: user } } }",
		"own: { column: session, is: stage }")
	if got := queryText(conn, liveQuery); got != "3" {
		t.Errorf("stage is %s", got)
	}
	if got := queryText(conn, "SELECT pg_get_userbyid(proowner)::text FROM pg_proc WHERE proname = 'live' AND "+
		"pronamespace = 'pgconsent'::regnamespace"); got != "pgconsent_reader" {
		t.Errorf("the function is %s's", got)
	}
	agent := db.Connect(t, migrations.DefaultAgentRole)
	for _, sql := range []string{liveQuery, "SELECT pgconsent.claim('a', '{a=b}')",
		"SELECT stage::text FROM pgconsent.h_public_sessions", "SELECT stage::text FROM public.sessions"} {
		if got := queryText(agent, sql); got == "3" || got == "b" || got == "missing" {
			t.Errorf("the agent's role gets %s by %s", got, sql)
		}
	}
	for _, user := range []string{"'{user=2}'", "'{}'", "NULL"} {
		if got := queryText(conn, "SELECT COALESCE(pgconsent.live('stage', "+user+", NULL), 'missing')"); got != "missing" {
			t.Errorf("stage of %s is %s", user, got)
		}
	}
	exec("ALTER FUNCTION pgconsent.live(text, text[], text[]) VOLATILE")
	if drift, err := migrations.Drift(ctx, conn); err != nil || len(drift) != 1 {
		t.Errorf("drift: %v, %v", drift, err)
	}
	installPolicy("", "own: { column: session, is: user }")
	if got := queryText(conn, liveQuery); got != "missing" {
		t.Errorf("without the attribute it is %s", got)
	}
	installPolicy(", stage: { type: integer, source: query, query: { table: sessions, column: stage, match: { id: user } } }",
		"own: { column: session, is: stage }")
	if err := migrations.Down(ctx, conn, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	if got := queryText(conn, "SELECT count(*)::text FROM pg_namespace WHERE nspname LIKE 'pgconsent%'"); got != "0" {
		t.Errorf("%s schemas are left", got)
	}
}
