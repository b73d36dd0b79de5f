package enforce

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

// withSignedViews starts an enforcer that serves the rules by signed views, which list columns.
func withSignedViews(t *testing.T) *world {
	t.Helper()
	return startWith(t, signedRules, func(w *world) { w.cfg.RewriteMode = rewrite.AutoMode })
}

// TestAlteredTablesAreSuspended: a listed table that has been altered since the policy was installed is suspended, and
// so is what depends on it. All other objects are served, and all of them once the change is undone.
func TestAlteredTablesAreSuspended(t *testing.T) {
	const people = "SELECT name FROM people"
	for name, change := range map[string]struct {
		alter, undo string
		people      bool // people is served meanwhile
	}{
		"a column that is computed": {
			"ALTER TABLE public.memories ADD COLUMN more text GENERATED ALWAYS AS (title) STORED", "ALTER TABLE public.memories DROP COLUMN more", true},
		"a column that a rule reads": {"ALTER TABLE public.people RENAME consent_status TO agreed",
			"ALTER TABLE public.people RENAME agreed TO consent_status", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := withSignedViews(t)
			d := w.db0(t)
			c := w.client("caregiver")
			prepared := c.Decide(t.Context(), people, verdict.Extended)
			memories := c.Decide(t.Context(), titles, verdict.Extended)
			w.exec(change.alter)
			eventually(t, "suspended", func() bool {
				v, refused := d.current()
				return refused == nil && !v.state.suspension.isEmpty()
			})
			if err := w.Ready(); err != nil {
				t.Errorf("not ready: %v", err)
			}
			if said := strings.Join(w.Degraded(), "\n"); !strings.Contains(said, "suspended: ") || !strings.Contains(said, "public.memories") {
				t.Errorf("what is limited: %q", said)
			}
			c.seal()
			e := c.refused(titles, sqlstate.ObjectNotInPrerequisiteState)
			if !strings.Contains(e.Message, "public.memories is suspended") || !strings.Contains(e.Hint, "pgconsent migrate") {
				t.Errorf("%s: %s", e.Message, e.Hint)
			}
			c.refused("SELECT count(*) FROM people JOIN memories ON true", sqlstate.ObjectNotInPrerequisiteState)
			if again := c.Recheck(t.Context(), memories); again.IsAllowed() || again.Refusal.Code != sqlstate.ObjectNotInPrerequisiteState {
				t.Errorf("what was prepared: %v", again.Refusal)
			}
			if change.people {
				c.want(people, "Eve")
				if again := c.Recheck(t.Context(), prepared); !again.IsAllowed() {
					t.Errorf("what was prepared on another table: %v", again.Refusal)
				}
			} else {
				c.refused(people, sqlstate.ObjectNotInPrerequisiteState)
			}
			if !strings.Contains(w.log.String(), "are suspended") || !strings.Contains(w.log.String(), "public.memories") {
				t.Error("the log does not say what is suspended")
			}
			if err := w.Reload(); err == nil {
				t.Error("the policy is reloaded over what is suspended")
			}
			w.exec(change.undo)
			eventually(t, "served again", func() bool { v, refused := d.current(); return refused == nil && v.state.suspension.isEmpty() })
			c.seal()
			c.want(titles, "lake", "sea")
			c.want(people, "Eve")
		})
	}
}

// TestStartWithAnAlteredSchema: a proxy that starts after such a change suspends the same tables as one that was
// running, and serves the others. It serves all of them once the change is undone.
func TestStartWithAnAlteredSchema(t *testing.T) {
	w := withSignedViews(t)
	w.client("caregiver").want(titles, "lake", "sea")
	eventually(t, "the catalogs are remembered", func() bool {
		var n int
		if err := w.dba.QueryRow(t.Context(), "SELECT count(*) FROM pgconsent.installed_catalog").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 1
	})
	w.Close()
	w.exec("ALTER TABLE public.memories ADD COLUMN more text GENERATED ALWAYS AS (title) STORED")
	restart := func() {
		t.Helper()
		e, err := New(t.Context(), w.cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		w.Enforcer = e
	}
	restart()
	if err := w.Ready(); err != nil {
		t.Fatalf("not ready: %v", err)
	}
	c := w.client("caregiver")
	if e := c.refused(titles, sqlstate.ObjectNotInPrerequisiteState); !strings.Contains(e.Message, "public.memories is suspended") {
		t.Error(e.Message)
	}
	c.want("SELECT name FROM people", "Eve")
	w.exec("ALTER TABLE public.memories DROP COLUMN more")
	d := w.db0(t)
	eventually(t, "served again", func() bool { v, refused := d.current(); return refused == nil && v.state.suspension.isEmpty() })
	c.seal()
	c.want(titles, "lake", "sea")

	// What was stored for another policy is not used.
	w.Close()
	w.exec("ALTER TABLE public.people RENAME consent_status TO agreed; UPDATE pgconsent.installed_catalog SET hash = 'other'")
	if e, err := New(t.Context(), w.cfg); err == nil {
		t.Cleanup(e.Close)
		if e.Ready() == nil {
			t.Error("what was remembered for another policy is used")
		}
	}
}

// TestCreatedAndDroppedFunctionsAndTables: if a function with the name of a listed one is created, or a listed function
// is dropped, its calls are suspended. If a listed table is dropped, with what the owner drops with it, statements that
// need it are suspended. All others are answered.
func TestCreatedAndDroppedFunctionsAndTables(t *testing.T) {
	const calling = rules + `  notes: { rows: [ { own: { column: user_id, is: user } } ] }
functions: { calm: { reads: nothing }, fixed: { reads: nothing } }
`
	installed := installation{more: `
		CREATE TABLE notes (id int PRIMARY KEY, user_id uuid);
		CREATE FUNCTION about(notes) RETURNS int LANGUAGE sql STABLE RETURN 1;
		CREATE FUNCTION calm() RETURNS int LANGUAGE sql STABLE RETURN 1;
		CREATE FUNCTION fixed() RETURNS int LANGUAGE sql IMMUTABLE RETURN 1`,
		policy: calling, options: rls.Options{SignedViews: true}}
	const calm, fixed, notes, people = "SELECT calm()", "SELECT fixed()", "SELECT count(*) FROM notes", "SELECT name FROM people"
	for _, c := range []struct {
		change    string
		suspended []string
	}{
		{"CREATE FUNCTION public.calm(int) RETURNS int LANGUAGE sql STABLE RETURN 1", []string{calm}},
		{"CREATE FUNCTION public.calm(text, public.people) RETURNS int LANGUAGE sql STABLE RETURN 1", []string{calm}},
		{"DROP FUNCTION public.calm()", []string{calm}},
		{"DROP FUNCTION public.calm(); CREATE FUNCTION public.calm(more int DEFAULT 1) RETURNS int LANGUAGE sql STABLE RETURN 1",
			[]string{calm}},
		{"DROP TABLE public.notes CASCADE", []string{notes, calm}}, // calm may read the table
		{"DROP TABLE public.notes CASCADE; DROP FUNCTION public.fixed()", []string{notes, calm, fixed}},
		// A call of these functions may look like a column of the table.
		{"CREATE FUNCTION public.calm(public.people) RETURNS int LANGUAGE sql STABLE RETURN 1",
			[]string{calm, fixed, notes, people, titles}},
		{"CREATE FUNCTION public.calm(VARIADIC anyarray) RETURNS int LANGUAGE sql AS 'SELECT 1'",
			[]string{calm, fixed, notes, people, titles}},
	} {
		t.Run(c.change, func(t *testing.T) {
			w := startWith(t, installed, func(w *world) { w.cfg.RewriteMode = rewrite.AutoMode })
			all := []string{calm, fixed, notes, people, titles}
			answered := func(c *client, sql string) {
				if _, err := c.query(sql); err != nil {
					t.Errorf("%s: %v", sql, err)
				}
			}
			for _, sql := range all {
				answered(w.client("caregiver"), sql)
			}
			w.exec(c.change)
			d := w.db0(t)
			eventually(t, "noticed", func() bool {
				v, refused := d.current()
				return refused != nil || !v.state.suspension.isEmpty()
			})
			if _, refused := d.current(); (refused != nil) != (len(c.suspended) == len(all)) {
				t.Fatalf("everybody is refused: %v", refused)
			} else if refused != nil {
				return
			}
			client := w.client("caregiver")
			for _, sql := range all {
				if slices.Contains(c.suspended, sql) {
					client.refused(sql, sqlstate.ObjectNotInPrerequisiteState)
				} else {
					answered(client, sql)
				}
			}
		})
	}
}

// TestChangesOfTheWholeDatabaseRefuseEverybody: if something else than a table has changed, or another policy is
// installed, all agents are refused.
func TestChangesOfTheWholeDatabaseRefuseEverybody(t *testing.T) {
	w := withSignedViews(t)
	d := w.db0(t)
	w.exec("ALTER TABLE public.people RENAME consent_status TO agreed; CREATE FUNCTION " +
		"public.title(public.people) RETURNS text LANGUAGE sql AS 'SELECT 1'")
	eventually(t, "refused", func() bool { _, refused := d.current(); return refused != nil })
	w.exec("DROP FUNCTION public.title(public.people)")
	eventually(t, "suspended", func() bool { v, refused := d.current(); return refused == nil && !v.state.suspension.isEmpty() })
	w.exec("UPDATE pgconsent.installed SET hash = 'x' || hash")
	eventually(t, "refused", func() bool { _, refused := d.current(); return refused != nil })
}

// TestUnsafeTablesAreSuspended: tables that Check reports as unsafe are suspended, and so is what depends on them,
// until Check no longer reports them.
func TestUnsafeTablesAreSuspended(t *testing.T) {
	var unsafe syncFlag
	var oid uint32
	w := start(t, func(w *world) {
		if err := w.dba.QueryRow(t.Context(), "SELECT 'public.memories'::regclass::oid").Scan(&oid); err != nil {
			t.Fatal(err)
		}
		w.cfg.Check = func(context.Context, *pgx.Conn, Target) error {
			if unsafe.get() {
				return UnsafeTables{Relations: []uint32{oid}, Cause: errors.New("row security is off")}
			}
			return nil
		}
	})
	c := w.client("caregiver")
	c.want(titles, "lake", "sea")
	for _, serves := range []bool{false, true} {
		before, refused := c.Snapshot(t.Context())
		if refused != nil {
			t.Fatal(refused)
		}
		unsafe.set(!serves)
		w.exec("CREATE INDEX ON public.people (name)") // so that Check is called at once
		eventually(t, "what Check says", func() bool { return w.db0(t).servingState.Load().state.suspension.isEmpty() == serves })
		if err := w.Ready(); err != nil {
			t.Error(err)
		}
		c.seal()
		if e := c.CheckSnapshot(t.Context(), before, true); e == nil || e.Code != sqlstate.SerializationFailure {
			t.Errorf("a cursor of before goes on: %v", e)
		}
		c.want("SELECT name FROM people", "Eve")
		if serves {
			c.want(titles, "lake", "sea")
		} else {
			c.refused(titles, sqlstate.ObjectNotInPrerequisiteState)
		}
	}
	// If Check reports a table that is not known, everything is refused.
	oid = 1
	unsafe.set(true)
	w.exec("CREATE INDEX ON public.people (name)")
	eventually(t, "refused", func() bool { return w.Ready() != nil })
}

// TestFunctionsCannotReadUnprotectedTables: while a table is not protected, everything is refused that may read it
// through functions of users: views, functions, and writes, which run triggers. If only its definition has changed,
// agents may still write to tables that have no connection with it.
func TestFunctionsCannotReadUnprotectedTables(t *testing.T) {
	const representingPolicy = `version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  memories:
    rows: [ { own: { column: user_id, is: user } } ]
    write: { commands: [insert, update, delete], columns: [id, title], stamp: { user_id: { attribute: user } }, accept: [conflicts, references] }
  people: { rows: [ { own: { column: user_id, is: user } } ] }
  notes: { rows: [ { own: { column: user_id, is: user } } ] }
views: { memories_view: {} }
functions: { calm: { reads: nothing }, fixed: { reads: nothing } }
`
	w := start(t, func(w *world) {
		w.exec(`CREATE VIEW memories_view AS SELECT id, title, user_id FROM memories; CREATE TABLE notes (id int PRIMARY KEY, user_id uuid);
			CREATE FUNCTION calm() RETURNS int LANGUAGE sql STABLE RETURN 1;
			CREATE FUNCTION fixed() RETURNS int LANGUAGE sql IMMUTABLE RETURN 1`)
		w.write(representingPolicy)
		if err := installWith(context.Background(), w.dba, representingPolicy, rls.Options{}); err != nil {
			t.Fatal(err)
		}
	})
	c, st := w.client("caregiver"), w.db0(t).servingState.Load().state
	notes := []catalog.Name{{Schema: "public", Name: "notes"}}
	const always, unprotected, never = "always", "unprotected", "never"
	for text, refused := range map[string]string{
		"SELECT id FROM notes":                always,
		"SELECT calm()":                       always,
		"SELECT title FROM memories_view":     unprotected,
		"UPDATE memories SET title = 'x'":     unprotected,
		"SELECT title, fixed() FROM memories": never,
		"SELECT name FROM people":             never,
	} {
		res, err := st.unsignedRewriter.Rewrite(text, false)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for kind, u := range map[string]func() (suspension, bool){
			"altered": func() (suspension, bool) {
				return newSuspension(st.policy, st.snapshot, suspensionCauses{alteredRelations: notes})
			},
			"unprotected": func() (suspension, bool) {
				return newSuspension(st.policy, st.snapshot, suspensionCauses{unsafeRelations: notes})
			},
		} {
			u, some := u()
			if !some {
				t.Fatal("everything is suspended")
			}
			if got, want := u.refusal(st.policy, res) != nil, refused == always || refused == kind; got != want {
				t.Errorf("%s, notes are %s: refused: %t, want %t", text, kind, got, want)
			}
		}
	}
	c.want("SELECT title FROM memories ORDER BY id", "lake", "hill", "sea")
}
