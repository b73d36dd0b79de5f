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

// storm runs DDL that does not affect the policy's objects again and again, until the test calls the returned function.
func storm(t *testing.T, w *world, statements ...string) (calm func()) {
	t.Helper()
	w.exec("CREATE SCHEMA IF NOT EXISTS elsewhere; CREATE SEQUENCE IF NOT EXISTS elsewhere.rounds")
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

// nobodys is DDL on objects that the policy does not list. All of it can be repeated. Some tables are in a schema of
// their own, and some in that of listed tables.
var nobodys = []string{
	"TRUNCATE elsewhere.staging",
	"CREATE TABLE elsewhere.made (id serial PRIMARY KEY, note text DEFAULT 'x' CHECK (note <> ''), parent int REFERENCES elsewhere.staging)",
	"CREATE INDEX made_note ON elsewhere.made (note)",
	"REINDEX TABLE elsewhere.made",
	"DROP INDEX elsewhere.made_note",
	"ALTER TABLE elsewhere.made ADD COLUMN more int, ALTER COLUMN note SET NOT NULL",
	"ALTER TABLE elsewhere.made DROP COLUMN more, DROP CONSTRAINT made_note_check",
	"CREATE STATISTICS elsewhere.counted ON id, note FROM elsewhere.made",
	"DROP STATISTICS elsewhere.counted",
	"CREATE TRIGGER noted BEFORE UPDATE ON elsewhere.made FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
	"DROP TRIGGER noted ON elsewhere.made",
	"DROP TABLE elsewhere.made",
	"CREATE TABLE public.made_beside AS SELECT 1 AS id",
	"ALTER TABLE public.made_beside RENAME TO renamed_beside",
	"DROP TABLE public.renamed_beside",
	"CREATE TABLE elsewhere.parted (id int) PARTITION BY LIST (id)",
	"CREATE TABLE elsewhere.one PARTITION OF elsewhere.parted FOR VALUES IN (1)",
	"CREATE TABLE elsewhere.two (id int)",
	"ALTER TABLE elsewhere.parted ATTACH PARTITION elsewhere.two DEFAULT",
	"ALTER TABLE elsewhere.parted DETACH PARTITION elsewhere.one",
	"DROP TABLE elsewhere.parted, elsewhere.one",
	"CREATE FUNCTION elsewhere.made(int) RETURNS int LANGUAGE sql AS 'SELECT $1'",
	"CREATE OR REPLACE FUNCTION elsewhere.made(int) RETURNS int LANGUAGE sql AS 'SELECT 2'",
	"DROP FUNCTION elsewhere.made(int)",
	"CREATE TYPE elsewhere.mood AS ENUM ('sad', 'glad')",
	"DROP TYPE elsewhere.mood",
	"CREATE SEQUENCE elsewhere.counter",
	"DROP SEQUENCE elsewhere.counter",
	"CREATE SCHEMA another",
}

// TestUnlistedObjectsDisturbNoAgent: while unlisted objects are created, altered, truncated and dropped continuously,
// agents are served with their present seals, and changes that concern them are noticed.
func TestUnlistedObjectsDisturbNoAgent(t *testing.T) {
	w := start(t, func(w *world) { w.cfg.ProbeInterval = 50 * time.Millisecond })
	d := w.databases["memories"]
	version := func() (n int64) {
		t.Helper()
		if err := w.dba.QueryRow(t.Context(), "SELECT pgconsent.catalog_version()").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	w.exec("CREATE SCHEMA elsewhere; CREATE TABLE elsewhere.staging (id int PRIMARY KEY, note text)")
	for _, sql := range nobodys {
		before := version()
		w.exec(sql)
		if version() != before {
			t.Errorf("%s: is noted as if it concerned agents", sql)
		}
	}
	c := w.client("caregiver")
	rounds := 0
	calm := storm(t, w, append(nobodys[:len(nobodys)-1:len(nobodys)-1], "SELECT nextval('elsewhere.rounds')")...)
	defer calm()
	for until := time.Now().Add(tier.Patience); rounds < tier.Count(2, 6, 60); {
		if time.Now().After(until) {
			t.Fatalf("the statements were run %d times only", rounds)
		}
		if _, refused := d.current(); refused != nil {
			t.Fatal(refused)
		}
		c.want(titles, "lake", "sea")
		if err := w.dba.QueryRow(t.Context(), "SELECT last_value FROM elsewhere.rounds").Scan(&rounds); err != nil {
			t.Fatal(err)
		}
	}
	if c.sealed.IsStale() {
		t.Error("a seal is stale by what concerns nobody")
	}
	w.exec("ALTER TABLE public.people RENAME consent_status TO agreed")
	eventually(t, "a table that is suspended", func() bool { v, refused := d.current(); return refused == nil && !v.state.suspension.isEmpty() })
	if strings.Contains(w.log.String(), "cannot be reached") {
		t.Error("the log says that the database cannot be reached")
	}
}

// TestChangesThatConcernAgentsAreNoted: a transaction with a change that may change the meaning of an agent's statement
// records this in pgconsent.catalog_change.
func TestChangesThatConcernAgentsAreNoted(t *testing.T) {
	w := start(t, func(w *world) { w.cfg.ProbeInterval, w.cfg.StaleAfter = time.Hour, time.Hour })
	w.db0(t).stopListening(t)
	w.exec("CREATE SCHEMA elsewhere; CREATE TABLE elsewhere.part (LIKE public.memories)")
	for _, sql := range []string{
		"CREATE INDEX made ON public.memories (id)",
		"DROP INDEX public.made",
		"ALTER TABLE public.memories ADD COLUMN more text",
		"ALTER TABLE public.memories DROP COLUMN more",
		"CREATE TRIGGER noted BEFORE UPDATE ON public.memories FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
		"DROP TRIGGER noted ON public.memories",
		"CREATE POLICY own ON public.memories USING (true)",
		"DROP POLICY own ON public.memories",
		"CREATE STATISTICS counted ON id, title FROM public.memories",
		"DROP STATISTICS counted",
		"CREATE TABLE elsewhere.memories (id int)", // has the name of a listed table
		"ALTER TABLE elsewhere.memories ADD COLUMN more text",
		"DROP TABLE elsewhere.memories",
		"CREATE TABLE elsewhere.child () INHERITS (public.memories)",
		"ALTER TABLE elsewhere.part INHERIT public.memories",
		"ALTER TABLE elsewhere.part ADD COLUMN more text",
		"CREATE TABLE elsewhere.points (memory int REFERENCES public.memories (id) ON DELETE CASCADE)",
		"ALTER TABLE elsewhere.points ADD COLUMN more text",
		"CREATE TABLE elsewhere.read (id int); CREATE VIEW public.reads AS SELECT id FROM elsewhere.read",
		"ALTER TABLE elsewhere.read ADD COLUMN more text",
		"DROP VIEW public.reads",
		"CREATE FUNCTION public.made(int) RETURNS int LANGUAGE sql AS 'SELECT $1'",
		"CREATE OR REPLACE FUNCTION public.made(int) RETURNS int LANGUAGE sql AS 'SELECT 2'",
		"DROP FUNCTION public.made(int)",
		"CREATE TYPE public.mood AS ENUM ('sad', 'glad')",
		"ALTER TYPE public.mood ADD VALUE 'calm'",
		"DROP TYPE public.mood",
		"CREATE FUNCTION elsewhere.used(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1'; CREATE INDEX used " +
			"ON public.memories (elsewhere.used(id::int))",
		"CREATE OR REPLACE FUNCTION elsewhere.used(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1'",
		"CREATE OPERATOR elsewhere.<<< (LEFTARG = int, RIGHTARG = int, FUNCTION = int4lt)",
		"GRANT SELECT ON elsewhere.read TO PUBLIC",
		"GRANT USAGE ON SCHEMA elsewhere TO PUBLIC",
		"CREATE FUNCTION elsewhere.reached(int) RETURNS int LANGUAGE sql AS 'SELECT $1'",
		"CREATE TYPE elsewhere.reachable AS ENUM ('sad')",
		"DROP TYPE elsewhere.reachable",
		"ALTER SCHEMA elsewhere RENAME TO other",
		"DROP TABLE public.people CASCADE",
	} {
		var before, after int64
		if err := w.dba.QueryRow(t.Context(), "SELECT pgconsent.catalog_version()").Scan(&before); err != nil {
			t.Fatal(err)
		}
		w.exec(sql)
		if err := w.dba.QueryRow(t.Context(), "SELECT pgconsent.catalog_version()").Scan(&after); err != nil {
			t.Fatal(err)
		}
		if after == before {
			t.Errorf("%s: is not noted", sql)
		}
	}
}

// TestUnsafeDatabaseRefusesWhileCatalogsChange: if each refresh finds changed catalogs, Check is still called for the
// active state.
func TestUnsafeDatabaseRefusesWhileCatalogsChange(t *testing.T) {
	var unsafe atomic.Bool
	w := start(t, func(w *world) {
		w.cfg.ProbeInterval, w.cfg.StaleAfter = time.Hour, time.Hour
		w.cfg.Check = func(context.Context, *pgx.Conn, Target) error {
			if unsafe.Load() {
				return errors.New("row security is off")
			}
			return nil
		}
	})
	d := w.databases["memories"]
	d.stopListening(t)
	calm := storm(t, w, "DO $$ BEGIN EXECUTE format('CREATE FUNCTION public.made_%s() RETURNS int LANGUAGE sql AS "+
		"''SELECT 1''', pg_catalog.txid_current()); END $$")
	defer calm()
	for until := time.Now().Add(tier.Patience); !errors.Is(d.refresh(t.Context()), errCatalogsChanging); {
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

// TestDroppedObjectsDuringAReadRefuseNobody: if an object that does not concern agents is dropped while the catalogs
// are read, the active state stays as it is.
func TestDroppedObjectsDuringAReadRefuseNobody(t *testing.T) {
	w := start(t, func(w *world) { w.cfg.ProbeInterval, w.cfg.StaleAfter = time.Hour, time.Hour })
	d := w.db0(t)
	d.stopListening(t)
	calm := storm(t, w, "CREATE TABLE elsewhere.made (id serial PRIMARY KEY, note text DEFAULT 'x' CHECK (note <> ''))", "DROP TABLE elsewhere.made")
	defer calm()
	for range tier.Count(10, 40, 400) {
		d.mu.Lock()
		d.catalogsReadAt, d.lastFingerprints.readAt = time.Time{}, time.Time{} // so that all catalogs are due to be read
		d.mu.Unlock()
		if err := d.refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, refused := d.current(); refused != nil {
			t.Fatal(refused)
		}
	}
}
