package instance

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// A change of a shared value by a test is found in the end.
func TestChangesOfSharedValuesAreFound(t *testing.T) {
	db := pgtest.Database(t)
	Exec(t, db, "CREATE TABLE notes (id serial PRIMARY KEY, body text); INSERT INTO notes (body) VALUES ('a'), "+
		"('b'); CREATE SCHEMA pgconsent; CREATE TABLE pgconsent.ours (id int)")
	said := func() string {
		t.Helper()
		out, err := databaseContents(db)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := said()
	Exec(t, db, "SELECT * FROM notes; BEGIN; UPDATE notes SET body = 'c'; ROLLBACK; INSERT INTO pgconsent.ours "+
		"VALUES (1); CREATE TEMP TABLE t AS TABLE notes")
	if after := said(); after != before {
		t.Errorf("nothing was changed:\n%s\n%s", before, after)
	}
	for _, sql := range []string{
		"UPDATE notes SET body = 'c' WHERE id = 1", "DELETE FROM notes WHERE id = 2",
		"SELECT nextval('notes_id_seq')", "GRANT SELECT ON notes TO PUBLIC", "CREATE TABLE more (id int)",
		"CREATE FUNCTION f() RETURNS int LANGUAGE sql RETURN 1",
	} {
		if Exec(t, db, sql); said() == before {
			t.Errorf("%s: it was not found", sql)
		}
		before = said()
	}
}

// Each reader has a tap of its own before the proxy that they share, which is started once and stopped in the end.
func TestReadersShareOneProxy(t *testing.T) {
	started := 0
	read := func(t *testing.T, sql string) *Proxy {
		p := Shared(t, "readers", func(t testing.TB) (*Proxy, *pgtest.DB) {
			started++
			db := pgtest.Database(t)
			Exec(t, db, "CREATE TABLE notes (id int PRIMARY KEY, owner text NOT NULL); INSERT INTO notes VALUES (1, '"+Marker+"')")
			return Start(t, Both, Database{Name: "notes", DB: db, SearchPath: []string{"public"},
				Policy: "version: 1\nattributes: { user: { type: text, source: credential } }\n" +
					"tables:\n  notes: { rows: [ own: { column: owner, is: user } ] }\n"}, map[string]string{"user": Marker}), db
		}).WithOwnTap(t)
		if a := Ask(p.Agent(t, "agent", "notes"), sql); a.Err != "" {
			t.Error(a.Err)
		}
		return p
	}
	t.Run("finds the marker", func(t *testing.T) {
		if found, _ := read(t, "SELECT owner FROM notes").Tap().MarkerHits(); len(found) == 0 {
			t.Error("the marker was not found")
		}
	})
	t.Run("does not", func(t *testing.T) { read(t, "SELECT id FROM notes").Tap().RequireNoMarker(t) })
	if started != 1 {
		t.Errorf("started %d times", started)
	}
}
