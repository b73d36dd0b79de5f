package enforce

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/test/tier"
)

// What was decided before DDL was committed is not answered after it, whether or not anybody has noticed: the database
// refuses it, and does so whatever rows there are.
func TestStatementsDecidedBeforeDDLAreRefused(t *testing.T) {
	w := start(t, func(w *world) { w.cfg.ProbeInterval, w.cfg.StaleAfter = time.Hour, time.Hour })
	w.db0(t).stopListening(t)
	c := w.client("caregiver")
	before := c.Decide(t.Context(), titles, verdict.Simple)
	none := c.Decide(t.Context(), "SELECT title FROM memories WHERE false", verdict.Simple)
	c.want(titles, "lake", "sea")

	w.exec("CREATE FUNCTION public.leaks(public.memories) RETURNS text LANGUAGE sql AS 'SELECT ''all of it'''")
	for _, v := range []*verdict.Verdict{before, none,
		c.Decide(t.Context(), "SELECT m.title FROM memories AS m JOIN people AS p ON p.id = m.id", verdict.Simple)} {
		rows, err := c.run(v)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "40001" {
			t.Errorf("%s: %v, %v; want SQLSTATE 40001", v.Original, rows, err)
		}
	}

	// Once it is noticed a new seal says so, and what means the same goes on.
	if c.sealed.IsStale() {
		t.Error("nobody has looked, and a seal is stale")
	}
	if err := w.db0(t).refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !c.sealed.IsStale() {
		t.Error("a seal of the older catalogs is not stale")
	}
	c.seal()
	c.want(titles, "lake", "sea")

	// What changes nothing that could be decided otherwise does not count.
	w.exec("CREATE TEMPORARY TABLE of_mine (id int); DROP TABLE of_mine; COMMENT ON TABLE public.memories IS 'x'; ANALYZE public.memories")
	c.want(titles, "lake", "sea")

	// DDL that is rolled back has not been.
	w.exec("BEGIN; CREATE INDEX never ON public.memories (id); ROLLBACK; BEGIN; SAVEPOINT a; CREATE INDEX never " +
		"ON public.memories (id); ROLLBACK TO a; COMMIT")
	c.want(titles, "lake", "sea")

	// A savepoint that goes takes its note along, and what comes after it is noted again.
	w.exec("BEGIN; SAVEPOINT a; CREATE INDEX never ON public.memories (id); ROLLBACK TO a; CREATE INDEX others ON public.memories (id); COMMIT")
	if _, err := c.run(c.Decide(t.Context(), titles, verdict.Simple)); err == nil {
		t.Error("DDL after a savepoint was rolled back to is not noted")
	}
}

// A plan that the server keeps is made anew where what it reads is altered; else it means what it meant.
func TestCachedPlansAfterDDL(t *testing.T) {
	w := start(t, func(w *world) { w.cfg.ProbeInterval, w.cfg.StaleAfter = time.Hour, time.Hour })
	w.db0(t).stopListening(t)
	c := w.client("caregiver")
	v := c.Decide(t.Context(), titles, verdict.Extended)
	if _, err := c.server.Prepare(t.Context(), "kept", v.Text, nil); err != nil {
		t.Fatal(err)
	}
	execute := func() error { return c.server.ExecPrepared(t.Context(), "kept", nil, nil, nil).Read().Err }
	for range 8 { // the server keeps its plan
		if err := execute(); err != nil {
			t.Fatal(err)
		}
	}
	w.exec("ALTER TABLE public.memories ADD COLUMN more text")
	var pg *pgconn.PgError
	if err := execute(); !errors.As(err, &pg) || pg.Code != "40001" {
		t.Errorf("%v, want SQLSTATE 40001", err)
	}
}

// The database tells of DDL, so that a look comes at once; statements wait for it.
func TestDDLIsAnnounced(t *testing.T) {
	w := start(t, func(w *world) { w.cfg.ProbeInterval, w.cfg.StaleAfter = time.Hour, time.Hour })
	d := w.db0(t)
	eventually(t, "listening", func() bool {
		var n int
		if err := w.dba.QueryRow(t.Context(),
			"SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgconsent listener' AND query LIKE "+
				"'LISTEN%' AND state = 'idle' AND datname = current_database()").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 1 && d.pendingProbe.Load() == nil
	})
	before := d.servingState.Load().catalogVersion
	w.exec("CREATE INDEX another ON public.memories (id)")
	eventually(t, "a look", func() bool { return d.servingState.Load().catalogVersion > before })
	c := w.client("caregiver")
	c.want(titles, "lake", "sea")
}

// What is told while nobody listens is looked at when somebody does again.
func TestDDLWhileNotListening(t *testing.T) {
	tier.All(t)
	w := start(t, func(w *world) { w.cfg.ProbeInterval, w.cfg.StaleAfter = time.Hour, time.Hour })
	d := w.db0(t)
	const listening = " FROM pg_stat_activity WHERE application_name = 'pgconsent listener' AND query LIKE " +
		"'LISTEN%' AND state = 'idle' AND datname = current_database()"
	eventually(t, "listening", func() bool {
		var n int
		if err := w.dba.QueryRow(t.Context(), "SELECT count(*)"+listening).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 1 && d.pendingProbe.Load() == nil
	})
	before := d.servingState.Load().catalogVersion
	w.exec("SELECT pg_terminate_backend(pid, 10000)" + listening)
	w.exec("CREATE INDEX another ON public.memories (id)")
	eventually(t, "a look", func() bool { return d.servingState.Load().catalogVersion > before })
}

// Many rows are added up, and the version stays.
func TestCatalogChangesAreSummed(t *testing.T) {
	w := start(t, func(w *world) { w.cfg.ProbeInterval = time.Hour })
	version := func() (v, rows int) {
		t.Helper()
		if err := w.dba.QueryRow(t.Context(),
			"SELECT pgconsent.catalog_version(), (SELECT count(*) FROM pgconsent.catalog_change)").Scan(&v, &rows); err != nil {
			t.Fatal(err)
		}
		return v, rows
	}
	was, _ := version()
	for range 3 {
		w.exec("CREATE INDEX another ON public.memories (id)")
		w.exec("DROP INDEX public.another")
	}
	for range 2 {
		w.exec("SELECT pgconsent.add_catalog_changes()")
		if v, rows := version(); v != was+6 || rows != 1 {
			t.Errorf("version %d in %d rows, want %d in one", v, rows, was+6)
		}
	}
}

// DDL goes on where it cannot be noted.
func TestDDLNeverFailsForUs(t *testing.T) {
	w := start(t, func(w *world) { w.cfg.ProbeInterval = time.Hour })
	w.exec("ALTER TABLE pgconsent.catalog_change ADD CONSTRAINT no CHECK (false) NOT VALID")
	w.exec("CREATE INDEX another ON public.memories (id)")
	w.exec("DROP INDEX public.another")
}

func (w *world) db0(t *testing.T) *database {
	t.Helper()
	return w.databases["memories"]
}

// stopListening leaves the database with what it notices by itself.
func (d *database) stopListening(t *testing.T) {
	t.Helper()
	d.enforcer.stop()
	d.enforcer.goroutines.Wait()
}

// A rule of the owner's that answers in a statement's place is planned with the table that the statement names.
func TestRewriteRulesAfterDDL(t *testing.T) {
	w := start(t, func(w *world) { w.cfg.ProbeInterval, w.cfg.StaleAfter = time.Hour, time.Hour })
	w.db0(t).stopListening(t)
	w.exec("GRANT INSERT, UPDATE, DELETE ON public.memories TO pgconsent_agent")
	for _, q := range []struct{ rule, sql string }{
		{"ON DELETE TO public.memories DO INSTEAD SELECT 'opened'::text AS title", "DELETE FROM public.memories"},
		{"ON UPDATE TO public.memories DO INSTEAD SELECT 'opened'::text AS title", "UPDATE public.memories SET title = ''"},
		{"ON INSERT TO public.memories DO INSTEAD SELECT 'opened'::text AS title", "INSERT INTO public.memories (id) VALUES (9)"},
		{"ON UPDATE TO public.memories DO ALSO SELECT 'opened'::text AS title", "UPDATE public.memories SET title = title"},
	} {
		if err := w.db0(t).refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		c := w.client("caregiver")
		w.exec("CREATE RULE opens AS " + q.rule)
		results, err := c.server.Exec(t.Context(), q.sql).ReadAll()
		t.Logf("%s: %v %v", q.rule, len(results), err)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "40001" {
			t.Errorf("%s: %v, want SQLSTATE 40001", q.rule, err)
		}
		w.exec("DROP RULE opens ON public.memories")
	}
}

// Where the database's clock was moved, or ours, what is planned under the seal of before is an error and no empty
// answer, whatever rows there are. The proxy is told, looks at once, and seals by the new time; so does every other
// session at the next look.
func TestMovedClocks(t *testing.T) {
	for name, jump := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := start(t, func(w *world) { w.cfg.ProbeInterval, w.cfg.StaleAfter = time.Hour, time.Hour })
			d := w.db0(t)
			d.stopListening(t)
			c, other := w.client("caregiver"), w.client("caregiver")
			c.want(titles, "lake", "sea")
			// As if both clocks had shown the same until now: the database's is another by this much.
			v := *d.servingState.Load()
			v.clockOffset -= jump
			d.servingState.Store(&v)
			for _, one := range []*client{c, other} {
				one.seal()
			}
			for _, sql := range []string{titles, "SELECT count(*) FROM memories",
				"SELECT title FROM memories WHERE false", "SELECT EXISTS (SELECT FROM people)"} {
				got, err := c.run(c.Decide(t.Context(), sql, verdict.Simple))
				var pg *pgconn.PgError
				if !errors.As(err, &pg) || pg.Code != "40001" || !strings.Contains(pg.Message, "of another time") {
					t.Errorf("%s: %v, %v; want SQLSTATE 40001", sql, got, err)
				}
			}
			if c.sealed.IsStale() || other.sealed.IsStale() {
				t.Error("nobody has looked, and a seal is stale")
			}
			c.sealed.ReportExpired()
			if !c.sealed.IsStale() {
				t.Error("the seal that the database refused is not stale")
			}
			if err := d.refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !other.sealed.IsStale() {
				t.Error("the seal of another session is not stale")
			}
			if !strings.Contains(w.log.String(), "a clock was moved") || !strings.Contains(w.log.String(), "by="+jump.String()) {
				t.Error("the log does not say that a clock was moved, and by how much")
			}
			for _, one := range []*client{c, other} {
				one.seal()
				one.want(titles, "lake", "sea")
				if one.sealed.IsStale() {
					t.Error("the new seal is stale")
				}
			}
		})
	}
}
