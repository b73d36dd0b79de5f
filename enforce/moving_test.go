package enforce

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/test/tier"
)

// storm changes the catalogs again and again, in ways that no policy speaks of, until the test calls the function that it returns.
func storm(t *testing.T, w *world, statements ...string) (calm func()) {
	t.Helper()
	w.exec("CREATE SCHEMA IF NOT EXISTS elsewhere; CREATE TABLE elsewhere.staging (id int PRIMARY KEY, note text)")
	conn := w.db.Connect(t, "postgres")
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			for _, sql := range statements {
				if _, err := conn.Exec(context.WithoutCancel(ctx), sql); err != nil {
					t.Errorf("%s: %v", sql, err)
					return
				}
			}
			time.Sleep(time.Millisecond)
		}
	})
	return sync.OnceFunc(func() { cancel(); done.Wait() })
}

// TestNobodyNoticesWhatNoPolicySpeaksOf: while others' tables are emptied, made and dropped faster than catalogs are read, agents are
// served, and what does concern them is seen.
func TestNobodyNoticesWhatNoPolicySpeaksOf(t *testing.T) {
	for name, statements := range map[string][]string{
		"TRUNCATE": {"TRUNCATE elsewhere.staging"},
		"DDL":      {"CREATE TABLE elsewhere.made (id int PRIMARY KEY, note text)", "CREATE INDEX ON elsewhere.made (note)", "DROP TABLE elsewhere.made"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "TRUNCATE" {
				tier.All(t)
			}
			w := start(t, nil)
			d := w.databases["memories"]
			calm := storm(t, w, statements...)
			defer calm()
			moved := map[string]bool{}
			for until := time.Now().Add(tier.Patience); len(moved) < 6; {
				if time.Now().After(until) {
					t.Fatalf("only %d states of the catalogs were seen", len(moved))
				}
				if err := d.refresh(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, refused := d.current(); refused != nil {
					t.Fatal(refused)
				}
				d.mu.Lock()
				moved[d.seen.fingerprint] = true
				d.mu.Unlock()
			}
			before := d.view.Load().state.versions.Catalog
			w.exec("CREATE TABLE public.listed_by_nobody (id int)")
			eventually(t, "what is new to be read", func() bool { return d.view.Load().state.versions.Catalog != before })
			w.exec("ALTER TABLE public.people RENAME consent_status TO agreed")
			eventually(t, "a refusal", func() bool { _, refused := d.current(); return refused != nil })
			if strings.Contains(w.log.String(), "cannot be reached") {
				t.Error("the log says that the database cannot be reached")
			}
		})
	}
}

// TestWhatIsUnsafeRefusesAlsoWhileCatalogsMove: while each look finds other catalogs, what the state in force depends on is examined.
func TestWhatIsUnsafeRefusesAlsoWhileCatalogsMove(t *testing.T) {
	var unsafe atomic.Bool
	w := start(t, func(w *world) {
		w.cfg.Refresh, w.cfg.maxStale = time.Hour, time.Hour
		w.cfg.Check = func(context.Context, *pgx.Conn, Target) error {
			if unsafe.Load() {
				return errors.New("row security is off")
			}
			return nil
		}
	})
	d := w.databases["memories"]
	d.stopListening(t)
	calm := storm(t, w, "DO $$ BEGIN EXECUTE format('CREATE TABLE public.made_%s ()', pg_catalog.txid_current()); END $$")
	defer calm()
	for until := time.Now().Add(tier.Patience); !errors.Is(d.refresh(t.Context()), errMoving); {
		if time.Now().After(until) {
			t.Fatal("no look met catalogs that change")
		}
	}
	if _, refused := d.current(); refused != nil {
		t.Errorf("catalogs that move: %v", refused)
	}
	unsafe.Store(true)
	if err := d.refresh(t.Context()); err == nil {
		t.Error("what is unsafe was not seen")
	}
	if _, refused := d.current(); refused == nil {
		t.Error("agents are served over what is unsafe")
	}
}
