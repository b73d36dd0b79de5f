package rls_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/rls"
)

// A write that can hide a visible row is recorded, however the row is written. Such a change ends snapshots. Other
// writes are not recorded.
func TestChangesAreNoted(t *testing.T) {
	w := migrated(t)
	control := w.db.Connect(t, migrations.DefaultControlRole)
	quotedMemoryID := func(n int) string { return "'" + uuid(n) + "'" }
	for _, c := range []struct {
		sql        string
		isRecorded bool
	}{
		{"UPDATE people SET consent_status = 'revoked' WHERE name = 'Ada'", true},
		{"UPDATE people SET consent_status = consent_status", false},
		{"UPDATE people SET name = name || ''", false},
		{"UPDATE people SET name = 'Ada L.' WHERE name = 'Ada'", false},
		{"UPDATE people SET consent_status = 'granted' WHERE false", false},
		{"INSERT INTO people (id, user_id, name, consent_status) VALUES ('" + uuid(901) + "', '" + user1 + "', 'New', 'pending')", false},
		{"INSERT INTO memories (id, user_id, title) VALUES (" + quotedMemoryID(902) + ", '" + user1 + "', 'new')", false},
		{"INSERT INTO memory_participants (memory_id, person_id) VALUES (" + quotedMemoryID(902) + ", '" + uuid(901) + "')", true},
		{"UPDATE memories SET title = 'newer' WHERE id = " + quotedMemoryID(902), false},
		{"UPDATE memories SET user_id = '" + user2 + "' WHERE id = " + quotedMemoryID(902), true},
		{"INSERT INTO people SELECT * FROM people WHERE name = 'New' ON CONFLICT (id) DO UPDATE SET consent_status = 'refused'", true},
		{"DELETE FROM memory_participants WHERE memory_id = " + quotedMemoryID(999), false},
		{"DELETE FROM memory_participants WHERE memory_id = " + quotedMemoryID(902), true},
		{"DELETE FROM memories WHERE id = " + quotedMemoryID(902), true},
		{"BEGIN; SAVEPOINT s; UPDATE people SET consent_status = 'x'; ROLLBACK TO s; COMMIT", false},
		{"BEGIN; SAVEPOINT s; UPDATE people SET consent_status = 'x'; ROLLBACK TO s; UPDATE people SET consent_status = 'y'; COMMIT", true},
		{"BEGIN; SAVEPOINT s; UPDATE people SET consent_status = 'a'; RELEASE s; UPDATE people SET consent_status = 'b'; COMMIT", true},
		{"BEGIN; UPDATE people SET consent_status = 'x'; ROLLBACK", false},
		{"SET session_replication_role = replica; UPDATE people SET consent_status = 'z'; RESET session_replication_role", true},
		// The owner's trigger changes a column that the UPDATE does not name.
		{`CREATE FUNCTION withdraw() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.consent_status := ''gone''; RETURN NEW; END';
			CREATE TRIGGER withdraw BEFORE UPDATE ON people FOR EACH ROW WHEN (NEW.name = 'Bob') EXECUTE FUNCTION withdraw()`, false},
		{"UPDATE people SET name = name WHERE name = 'Bob'", true},
		{"TRUNCATE memory_participants", true},
	} {
		var snapshot string
		if err := control.QueryRow(context.Background(), "SELECT pg_current_snapshot()::text").Scan(&snapshot); err != nil {
			t.Fatal(err)
		}
		conn := w.owner
		if c.sql[:3] == "SET" {
			conn = w.super
		}
		w.exec(conn, c.sql)
		var isRecorded bool
		if err := control.QueryRow(context.Background(), "SELECT pgconsent.changed_since($1::text::pg_snapshot)", snapshot).Scan(&isRecorded); err != nil {
			t.Fatal(err)
		}
		if isRecorded != c.isRecorded {
			t.Errorf("%s: noted %v", c.sql, isRecorded)
		}
	}
	if got, err := query(w.super, "SELECT count(*) FROM pgconsent.change WHERE xid <> '0'"); err != nil || got == "0" {
		t.Fatal(got, err)
	}
	w.exec(w.super, "UPDATE pgconsent.change SET made_at = made_at - interval '2 hours'")
	w.exec(control, "SELECT pgconsent.prune_changes()")
	if got, _ := query(w.super, "SELECT count(*) FROM pgconsent.change WHERE xid <> '0'"); got == "0" {
		t.Error("what was made long ago and committed just now is pruned")
	}
	w.exec(w.super, "UPDATE pgconsent.change SET seen_at = seen_at - interval '2 hours'")
	w.exec(control, "SELECT pgconsent.prune_changes()")
	if got, _ := query(w.super, "SELECT count(*) FROM pgconsent.change WHERE xid <> '0'"); got != "0" {
		t.Errorf("%s changes are kept", got)
	}
	agent := w.agent(user1)
	w.wantRefusal(agent, "42501", "SELECT * FROM pgconsent.change")
	w.wantRefusal(agent, "42501", "SELECT pgconsent.changed_since(pg_current_snapshot())")
	w.wantRefusal(agent, "42501", "SELECT pgconsent.prune_changes()")
}

// A transaction that is open when a snapshot is taken, and commits afterwards, is recorded as a change.
func TestCommitsAfterTheSnapshotAreNoted(t *testing.T) {
	w := migrated(t)
	control := w.db.Connect(t, migrations.DefaultControlRole)
	queryText := func(sql string, args ...any) (answer string) {
		t.Helper()
		if err := control.QueryRow(context.Background(), sql, args...).Scan(&answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	w.exec(w.owner, "BEGIN; UPDATE people SET consent_status = 'revoked'")
	snapshot := queryText("SELECT pg_current_snapshot()::text")
	if queryText("SELECT pgconsent.changed_since($1::text::pg_snapshot)::text", snapshot) != "false" {
		t.Error("noted before the commit")
	}
	w.exec(w.super, "CREATE TABLE elsewhere (id int)") // another transaction commits meanwhile
	w.exec(w.owner, "COMMIT")
	if queryText("SELECT pgconsent.changed_since($1::text::pg_snapshot)::text", snapshot) != "true" {
		t.Error("not noted after the commit")
	}
	if queryText("SELECT pgconsent.changed_since(pg_current_snapshot())::text") != "false" {
		t.Error("noted by a snapshot that shows it")
	}
}

// Triggers do not record a row that is written to a child table by the child's name. Such tables, and tables whose
// rules read them, must not be read under old snapshots. If an attribute is computed from such a table, no table may
// be.
func TestTablesWithChildrenAreUntracked(t *testing.T) {
	w := newWorld(t)
	if got := w.plan.UntrackedAttributeTable(); got != "" {
		t.Errorf("%s is not watched", got)
	}
	w.exec(w.owner, "CREATE TABLE apart (id int PRIMARY KEY, user_id uuid); CREATE TABLE beside (id int PRIMARY "+
		"KEY, apart_id int REFERENCES apart); CREATE TABLE refers (id int PRIMARY KEY, user_id uuid, person uuid "+
		"REFERENCES people); CREATE TABLE heirs () INHERITS (people)")
	text, err := os.ReadFile("testdata/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "policy.yaml")
	moreTables := "  apart: { rows: [ own: { column: user_id, is: user } ] }\n  beside: { rows: [ visible: { apart: { " +
		"id: apart_id } } ], write: { commands: [insert], columns: [apart_id] } }\n" +
		"  refers: { rows: [ own: { column: user_id, is: user } ], write: { commands: [insert], columns: " +
		"[person], stamp: { user_id: { attribute: user } } } }\nfunctions:"
	for _, c := range []struct {
		oldText, newText, wantUntracked string
		want                            []string
	}{
		{"functions:", moreTables, "", []string{"heirs", "memories", "memory_participants", "people", "refers"}},
		{"attributes: {",
			"attributes: { who: { type: text, source: query, query: { table: people, column: name, match: { " +
				"user_id: user } } },", "public.people", []string{"heirs", "memories", "memory_participants", "people"}},
	} {
		if err := os.WriteFile(file, []byte(strings.Replace(string(text), c.oldText, c.newText, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		w.compile(file, rls.Options{})
		if got := w.plan.UntrackedAttributeTable(); got != c.wantUntracked {
			t.Errorf("a table with children: %q, want %q", got, c.wantUntracked)
		}
		want := map[catalog.Name]bool{}
		for _, name := range c.want {
			want[catalog.Name{Schema: "public", Name: name}] = true
		}
		if diff := cmp.Diff(want, w.plan.UntrackedRelations()); diff != "" {
			t.Errorf("a table with children that others read (-want +got):\n%s", diff)
		}
	}
	w.exec(w.owner, "DROP TABLE heirs, refers; CREATE TABLE loose (id int PRIMARY KEY, user_id uuid); CREATE "+
		"TABLE kept () INHERITS (loose); CREATE TABLE grand () INHERITS (kept)")
	w.compile("testdata/children.yaml", rls.Options{})
	if got := w.plan.UntrackedAttributeTable(); got != "" {
		t.Errorf("a table with children that no other rule reads: %q", got)
	}
	want := map[catalog.Name]bool{}
	for _, name := range []string{"loose", "kept", "grand"} {
		want[catalog.Name{Schema: "public", Name: name}] = true
	}
	if diff := cmp.Diff(want, w.plan.UntrackedRelations()); diff != "" {
		t.Errorf("what is not noticed (-want +got):\n%s", diff)
	}
	// Changes of a view over such tables are not recorded either, through however many other views it reads them.
	w.exec(w.owner, "CREATE VIEW beneath AS SELECT id, user_id FROM loose; CREATE VIEW seen AS SELECT id FROM "+
		"beneath; CREATE VIEW names AS SELECT name FROM people")
	if text, err = os.ReadFile("testdata/children.yaml"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, "views: { seen: {}, names: {} }\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	w.compile(file, rls.Options{})
	for _, name := range []string{"beneath", "seen"} {
		want[catalog.Name{Schema: "public", Name: name}] = true
	}
	if diff := cmp.Diff(want, w.plan.UntrackedRelations()); diff != "" {
		t.Errorf("what is not noticed, views among it (-want +got):\n%s", diff)
	}
}

// All change triggers are row triggers: a change that a subscription applies fires no statement triggers.
func TestChangesAreNotedForEachRow(t *testing.T) {
	w := migrated(t)
	got, err := query(w.super, `SELECT coalesce(string_agg(tgrelid::regclass || ' ' || tgname, ', '), 'none') FROM pg_trigger
		WHERE tgname LIKE 'zz_pgconsent_change_%' AND tgtype & 1 = 0 AND tgname NOT LIKE '%_truncate'`)
	if err != nil || got != "none" {
		t.Errorf("triggers for statements: %s %v", got, err)
	}
}

// While a trigger of pgconsent is disabled, or fires only for some sessions, changed_since returns true.
func TestTriggersThatDoNotFireAreNoticed(t *testing.T) {
	w := migrated(t)
	control := w.db.Connect(t, migrations.DefaultControlRole)
	for _, c := range []struct {
		sql     string
		changed bool
	}{
		{"SELECT 1", false},
		{"ALTER TABLE people DISABLE TRIGGER ALL", true},
		{"ALTER TABLE people ENABLE TRIGGER ALL", true},
		{"ALTER TABLE people ENABLE ALWAYS TRIGGER zz_pgconsent_change_update, ENABLE ALWAYS TRIGGER " +
			"zz_pgconsent_change_delete, ENABLE ALWAYS TRIGGER zz_pgconsent_change_truncate", false},
	} {
		w.exec(w.super, c.sql)
		var changed bool
		if err := control.QueryRow(context.Background(), "SELECT pgconsent.changed_since(pg_current_snapshot())").Scan(&changed); err != nil {
			t.Fatal(err)
		}
		if changed != c.changed {
			t.Errorf("%s: changed %v", c.sql, changed)
		}
	}
}

// PredicateTables lists a table once, even if several rules read it: otherwise its rows would be counted several times.
func TestPredicateTablesAreListedOnce(t *testing.T) {
	w := newWorld(t)
	seenOIDs := map[uint32]bool{}
	for _, r := range rls.PredicateTables(w.pol) {
		if seenOIDs[r.OID] {
			t.Errorf("%s is there twice", r.Name)
		}
		seenOIDs[r.OID] = true
	}
}

// The subject of a row that counts only in groups decides which groups are large enough to be shown. A change of the
// subject is recorded. A change of another column that no rule reads is not.
func TestSubjectsOfGroupsAreNoted(t *testing.T) {
	w := newWorld(t, "SET ROLE app_owner; CREATE TABLE visits (id int PRIMARY KEY, person uuid, user_id uuid, kind text, amount int); RESET ROLE")
	w.exec(w.super, "INSERT INTO visits SELECT n, '"+uuid(77)+"', '"+user1+"', 'x', n FROM generate_series(1, 3) AS n")
	w.compileText(`version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  visits:
    rows: [ own: { column: user_id, is: user } ]
    aggregate: { subject: person, rows: [ status: { column: kind, is: x } ], minimum: 2, measures: { amount: { between: [0, 9] } } }
`)
	w.migrate()
	w.checkRecorded([]recordedCase{
		{"UPDATE visits SET person = '" + uuid(78) + "' WHERE id = 1", true},
		{"UPDATE visits SET person = NULL WHERE id = 1", true},
		{"UPDATE visits SET person = person", false},
		{"UPDATE visits SET amount = amount + 1", false},
		{"UPDATE visits SET kind = 'y' WHERE id = 2", true},
		{"UPDATE visits SET user_id = '" + user2 + "' WHERE id = 3", true},
		{"DELETE FROM visits", true},
	})
}

// The passing of time can hide rows if some rule reads the clock, in whichever table and block, and only then.
func TestTimeHidesRowsOfRulesThatReadTheClock(t *testing.T) {
	w := newWorld(t, "SET ROLE app_owner; CREATE TABLE visits (id int PRIMARY KEY, person uuid, user_id uuid, kind text, until timestamptz);"+
		"CREATE TABLE desks (user_id uuid, desk int, until timestamptz); CREATE TABLE papers (id int PRIMARY KEY, visit int, desk int); RESET ROLE")
	const policyHead = "version: 1\nattributes:\n  user: { type: uuid, source: credential }\n"
	const staffAttribute = "  desk: { type: integer, source: query, query: { table: desks, column: desk, match: { user_id: user }%s } }\n"
	const ownRule, clockRule = "own: { column: user_id, is: user }", `sql: "until > now()"`
	for name, c := range map[string]struct {
		policy                           string
		timeHides, timeChangesAttributes bool
	}{
		"nothing": {policyHead + "tables: { visits: { rows: [ " +
			ownRule + " ] }, papers: { rows: [ visible: { visits: { id: visit } } ] } }\n", false, false},
		"a rule": {policyHead + "tables: { papers: { rows: [ sql: \"id > 0\" ] }, visits: { rows: [ " +
			ownRule + ", " + clockRule + " ] } }\n", true, false},
		"the first of them": {policyHead + "tables: { visits: { rows: [ " + ownRule + ", " +
			clockRule + " ] }, papers: { rows: [ sql: \"id > 0\" ] } }\n", true, false},
		"one of another table": {policyHead +
			"tables: { papers: { rows: [ visible: { visits: { id: visit } } ] }, visits: { rows: [ any: [ " + ownRule + ", " + clockRule + " ] ] } }\n", true, false},
		"who counts in groups": {policyHead + "tables: { visits: { rows: [ " +
			ownRule + " ], aggregate: { subject: person, rows: [ " + clockRule + " ], minimum: 2 } } }\n", true, false},
		"no groups by it": {policyHead + "tables: { visits: { rows: [ " +
			ownRule + " ], aggregate: { subject: person, rows: [ status: { column: kind, is: x } ], minimum: 2 } } }\n", false, false},
		"an attribute": {policyHead + fmt.Sprintf(staffAttribute, ", rows: [ "+clockRule+" ]") +
			"tables: { papers: { rows: [ own: { column: desk, is: desk } ] } }\n", true, true},
		"none of an attribute": {policyHead + fmt.Sprintf(staffAttribute, "") + "tables: { papers: { rows: [ own: { column: desk, is: desk } ] } }\n", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w.compileText(c.policy)
			if got := w.plan.TimeCanHide(); got != c.timeHides {
				t.Errorf("time hides: %t", got)
			}
			if got := w.plan.TimeCanChangeAttributes(); got != c.timeChangesAttributes {
				t.Errorf("time changes attributes: %t", got)
			}
		})
	}
}

// compileText compiles a policy from its text.
func (w *world) compileText(text string) {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.compile(file, rls.Options{})
}
