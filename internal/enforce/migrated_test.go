package enforce

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

const dropEventTriggers = "DROP EVENT TRIGGER IF EXISTS zz_pgconsent_ddl; DROP EVENT TRIGGER IF EXISTS zz_pgconsent_drop"

// TestMigratedColumnsAreServed: after pgconsent migrate, the next refresh of every proxy includes the columns that
// waited for it. This holds in every mode, and whether or not the database reports DDL. The catalog snapshot may be
// unchanged: without signed views, migrate only records that the column is known.
func TestMigratedColumnsAreServed(t *testing.T) {
	for name, mode := range map[string]rewrite.Mode{
		"injected": rewrite.InjectedMode, "row security": rewrite.RowSecurityMode, "auto": rewrite.AutoMode, "signed": rewrite.AlwaysSignedMode,
	} {
		for _, tracked := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", DDL is reported", false: ", DDL is not reported"}[tracked], func(t *testing.T) {
				if !tracked && mode != rewrite.RowSecurityMode {
					tier.All(t)
				}
				signed := rls.Options{SignedViews: mode.UsesSignedPath()}
				var w *world
				migrate := func() {
					t.Helper()
					if err := installWith(context.Background(), w.dba, rules, signed); err != nil {
						t.Fatal(err)
					}
					if !tracked {
						w.exec(dropEventTriggers)
					}
				}
				w = start(t, func(made *world) {
					w = made
					w.cfg.RewriteMode, w.cfg.ProbeInterval, w.cfg.StaleAfter = mode, time.Hour, time.Hour
					migrate()
				})
				another, err := New(t.Context(), w.cfg)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(another.Close)
				proxies := []*world{w, {t: t, db: w.db, dba: w.dba, cfg: w.cfg, Enforcer: another}}
				for _, p := range proxies {
					p.db0(t).stopListening(t)
				}
				look := func(p *world) *state {
					t.Helper()
					d := p.db0(t)
					if err := d.refresh(t.Context()); err != nil {
						t.Fatal(err)
					}
					return d.state
				}
				w.exec("ALTER TABLE public.memories ADD COLUMN note text DEFAULT 'new'")
				for _, p := range proxies {
					if got := tablesWithWaitingColumns(look(p).snapshot); got != "public.memories" {
						t.Fatalf("columns wait in %q", got)
					}
				}
				migrate()
				for i, p := range proxies {
					s := look(p)
					if got := tablesWithWaitingColumns(s.snapshot); got != "" {
						t.Errorf("proxy %d: columns of %s wait after migrate", i, got)
					}
					p.client("caregiver").want("SELECT note FROM memories", "new", "new")
					if again := look(p); again != s {
						t.Errorf("proxy %d: nothing has changed, and the state is another", i)
					}
				}
				var stored string
				if err := w.dba.QueryRow(t.Context(), "SELECT concerned FROM pgconsent.installed_catalog").Scan(&stored); err != nil {
					t.Fatal(err)
				}
				if stored != w.db0(t).state.versions.Catalog {
					t.Error("the catalogs that are stored for proxies which start later are not those that are served")
				}
			})
		}
	}
}

// TestChangesThatNoSnapshotHasAreChecked: what Check examines may change without a change of the catalog snapshot. The
// next refresh calls Check, and later refreshes do not.
func TestChangesThatNoSnapshotHasAreChecked(t *testing.T) {
	for _, tracked := range []bool{true, false} {
		t.Run(map[bool]string{true: "DDL is reported", false: "DDL is not reported"}[tracked], func(t *testing.T) {
			asked := 0
			w := start(t, func(w *world) {
				w.cfg.ProbeInterval, w.cfg.StaleAfter = time.Hour, time.Hour
				w.cfg.Check = func(context.Context, *pgx.Conn, Target) error { asked++; return nil }
				if !tracked {
					w.exec(dropEventTriggers)
				}
			})
			d := w.db0(t)
			d.stopListening(t)
			look := func(what string, want bool) {
				t.Helper()
				d.mu.Lock()
				d.checkedAt, d.lastFingerprints.readAt = time.Now(), time.Time{} // Check is not due, the catalogs are
				d.mu.Unlock()
				before := asked
				if err := d.refresh(t.Context()); err != nil {
					t.Fatal(err)
				}
				if (asked > before) != want {
					t.Errorf("%s: Check is asked: %t", what, !want)
				}
			}
			look("nothing", false)
			for _, sql := range []string{
				"ALTER POLICY pgconsent_select ON public.memories USING (true)",
				"GRANT DELETE ON public.memories TO PUBLIC",
				"GRANT UPDATE (title) ON public.memories TO pgconsent_agent",
				"ALTER FUNCTION pgconsent_signed.row_is_current(xid, bool) COST 7",
				"CREATE OR REPLACE VIEW pgconsent.waiting AS " +
					"SELECT NULL::oid AS attrelid, NULL::int2 AS attnum, NULL::name AS attname, NULL::name AS nspname, NULL::name AS relname WHERE false",
				"UPDATE pg_policy SET polpermissive = polpermissive WHERE polname = 'pgconsent_select'",
			} {
				w.exec(sql)
				look(sql, true)
				look("nothing since "+sql, false)
			}
			for _, sql := range []string{
				"CREATE TEMPORARY TABLE passing (id int)", "DROP TABLE passing", "CREATE TABLE public.alone (id int)",
				"TRUNCATE public.alone", "VACUUM FULL public.alone",
			} {
				w.exec(sql)
				look(sql, false)
			}
		})
	}
}
