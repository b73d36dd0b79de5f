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

// A statement that was decided before DDL was committed is not answered after that, even if no proxy has noticed the
// DDL. The database refuses the statement, regardless of the rows.
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

	// Once the proxy has noticed the DDL, it makes a new seal, and statements with an unchanged meaning work again.
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

	// DDL that cannot change any verdict is not counted.
	w.exec("CREATE TEMPORARY TABLE of_mine (id int); DROP TABLE of_mine; COMMENT ON TABLE public.memories IS 'x'; ANALYZE public.memories")
	c.want(titles, "lake", "sea")

	// DDL that is rolled back is not counted.
	w.exec("BEGIN; CREATE INDEX never ON public.memories (id); ROLLBACK; BEGIN; SAVEPOINT a; CREATE INDEX never " +
		"ON public.memories (id); ROLLBACK TO a; COMMIT")
	c.want(titles, "lake", "sea")

	// ROLLBACK TO a savepoint also removes the note about DDL after the savepoint. Later DDL is noted again.
	w.exec("BEGIN; SAVEPOINT a; CREATE INDEX never ON public.memories (id); ROLLBACK TO a; CREATE INDEX others ON public.memories (id); COMMIT")
	if _, err := c.run(c.Decide(t.Context(), titles, verdict.Simple)); err == nil {
		t.Error("DDL after a savepoint was rolled back to is not noted")
	}
}

// PostgreSQL makes a cached plan anew if what it reads is altered, and the new plan is refused with 40001.
func TestCachedPlansAfterDDL(t *testing.T) {
	w := start(t, func(w *world) { w.cfg.ProbeInterval, w.cfg.StaleAfter = time.Hour, time.Hour })
	w.db0(t).stopListening(t)
	c := w.client("caregiver")
	v := c.Decide(t.Context(), titles, verdict.Extended)
	if _, err := c.server.Prepare(t.Context(), "kept", v.Text, nil); err != nil {
		t.Fatal(err)
	}
	execute := func() error { return c.server.ExecPrepared(t.Context(), "kept", nil, nil, nil).Read().Err }
	for range 8 { // after that, PostgreSQL uses a cached plan
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

// The database notifies the proxy of DDL. The proxy refreshes its catalogs at once, and statements wait for that.
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

// DDL that happens while the proxy does not listen is found when it listens again.
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

// Many rows of pgconsent.catalog_change are replaced by one, with the same version.
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

// A DDL statement succeeds even if pgconsent's trigger cannot record it in catalog_change.
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

// stopListening stops the proxy from receiving notifications, so that only what the database itself notices has an
// effect.
func (d *database) stopListening(t *testing.T) {
	t.Helper()
	d.enforcer.stop()
	d.enforcer.goroutines.Wait()
}

// A rewrite rule that runs another statement instead is planned with a check of the table that the statement names.
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

// If the clock of the database or of the proxy jumps, a statement that is planned with an old seal fails, and does not
// return an empty result, whatever rows there are. The proxy then refreshes at once and makes seals by the new time. So
// do all other sessions at the next refresh.
func TestMovedClocks(t *testing.T) {
	for name, jump := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := start(t, func(w *world) { w.cfg.ProbeInterval, w.cfg.StaleAfter = time.Hour, time.Hour })
			d := w.db0(t)
			d.stopListening(t)
			c, other := w.client("caregiver"), w.client("caregiver")
			c.want(titles, "lake", "sea")
			// Simulates that the database's clock has jumped.
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
