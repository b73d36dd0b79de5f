package enforce

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/sqlstate"
	"github.com/pgconsent/pgconsent/test/tier"
	"github.com/pgconsent/pgconsent/verdict"
)

// doors serves the rules by doors, whose views list columns.
func doors(t *testing.T) *world {
	t.Helper()
	return start(t, func(w *world) {
		w.cfg.Mode = rewrite.Doors
		if err := installWith(context.Background(), w.dba, rules, rls.Options{Doors: true}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestWhatIsAlteredIsSuspendedByItself: a listed table that is not as it was when the policy was installed is not
// served, nor is what depends on it; all else is, and so is all of it once the change is undone.
func TestWhatIsAlteredIsSuspendedByItself(t *testing.T) {
	const people = "SELECT name FROM people"
	for name, change := range map[string]struct {
		alter, undo string
		people      bool // are served meanwhile
	}{
		"a column more":              {"ALTER TABLE public.memories ADD COLUMN more text", "ALTER TABLE public.memories DROP COLUMN more", true},
		"a column of another type":   {"ALTER TABLE public.memory_participants ADD COLUMN more int; ALTER TABLE public.memories ADD COLUMN note int; ALTER TABLE public.memories ALTER COLUMN note TYPE text", "ALTER TABLE public.memories DROP COLUMN note; ALTER TABLE public.memory_participants DROP COLUMN more", true},
		"a column that a rule reads": {"ALTER TABLE public.people RENAME consent_status TO agreed", "ALTER TABLE public.people RENAME agreed TO consent_status", false},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "a column of another type" {
				tier.All(t)
			}
			w := doors(t)
			d := w.db0(t)
			c := w.client("caregiver")
			prepared := c.Decide(t.Context(), people, verdict.Extended)
			memories := c.Decide(t.Context(), titles, verdict.Extended)
			w.exec(change.alter)
			eventually(t, "suspended", func() bool {
				v, refused := d.current()
				return refused == nil && !v.state.suspended.none()
			})
			if err := w.Ready(); err != nil {
				t.Errorf("not ready: %v", err)
			}
			c.seal()
			e := c.refused(titles, sqlstate.ObjectNotInPrerequisiteState)
			if !strings.Contains(e.Message, "public.memories is suspended") || !strings.Contains(e.Hint, "pgconsent migrate") {
				t.Errorf("%s: %s", e.Message, e.Hint)
			}
			c.refused("SELECT count(*) FROM people JOIN memories ON true", sqlstate.ObjectNotInPrerequisiteState)
			if again := c.Recheck(t.Context(), memories); again.Allowed() || again.Refusal.Code != sqlstate.ObjectNotInPrerequisiteState {
				t.Errorf("what was prepared: %v", again.Refusal)
			}
			if change.people {
				c.want(people, "Eve")
				if again := c.Recheck(t.Context(), prepared); !again.Allowed() {
					t.Errorf("what was prepared on another table: %v", again.Refusal)
				}
			} else {
				c.refused(people, sqlstate.ObjectNotInPrerequisiteState)
			}
			if !strings.Contains(w.log.String(), "tables are suspended") || !strings.Contains(w.log.String(), "public.memories") {
				t.Error("the log does not say what is suspended")
			}
			if err := w.Reload(); err == nil {
				t.Error("the policy is reloaded over what is suspended")
			}
			w.exec(change.undo)
			eventually(t, "served again", func() bool { v, refused := d.current(); return refused == nil && v.state.suspended.none() })
			c.seal()
			c.want(titles, "lake", "sea")
			c.want(people, "Eve")
		})
	}
}

// TestWhatConcernsAllIsNotSuspended: where what has changed is no table, or another policy is installed, nobody is
// served.
func TestWhatConcernsAllIsNotSuspended(t *testing.T) {
	w := doors(t)
	d := w.db0(t)
	w.exec("ALTER TABLE public.memories ADD COLUMN more text; CREATE FUNCTION public.title(public.people) RETURNS text LANGUAGE sql AS 'SELECT 1'")
	eventually(t, "refused", func() bool { _, refused := d.current(); return refused != nil })
	w.exec("DROP FUNCTION public.title(public.people)")
	eventually(t, "suspended", func() bool { v, refused := d.current(); return refused == nil && !v.state.suspended.none() })
	w.exec("UPDATE pgconsent.installed SET hash = 'x' || hash")
	eventually(t, "refused", func() bool { _, refused := d.current(); return refused != nil })
}

// TestWhatIsUnsafeIsSuspendedByItself: where Check says which tables are not safe, these are not served, nor is what
// depends on them, until it takes that back.
func TestWhatIsUnsafeIsSuspendedByItself(t *testing.T) {
	var unsafe syncFlag
	var oid uint32
	w := start(t, func(w *world) {
		if err := w.dba.QueryRow(t.Context(), "SELECT 'public.memories'::regclass::oid").Scan(&oid); err != nil {
			t.Fatal(err)
		}
		w.cfg.Check = func(context.Context, *pgx.Conn, Target) error {
			if unsafe.get() {
				return Unfit{Relations: []uint32{oid}, Why: errors.New("row security is off")}
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
		w.exec("CREATE INDEX ON public.people (name)") // Check is asked at once
		eventually(t, "what Check says", func() bool { return w.db0(t).view.Load().state.suspended.none() == serves })
		if err := w.Ready(); err != nil {
			t.Error(err)
		}
		c.seal()
		if e := c.Fresh(t.Context(), before, true); e == nil || e.Code != sqlstate.SerializationFailure {
			t.Errorf("a cursor of before goes on: %v", e)
		}
		c.want("SELECT name FROM people", "Eve")
		if serves {
			c.want(titles, "lake", "sea")
		} else {
			c.refused(titles, sqlstate.ObjectNotInPrerequisiteState)
		}
	}
	// One that nobody knows is no table by itself.
	oid = 1
	unsafe.set(true)
	w.exec("CREATE INDEX ON public.people (name)")
	eventually(t, "refused", func() bool { return w.Ready() != nil })
}
