package enforce

import (
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// TestSlowProbes: while a probe waits for the server, agents are served as long as the database itself reports changes,
// and otherwise no longer than StaleAfter. The probe continues on its connection, and its result is used when it is
// complete.
func TestSlowProbes(t *testing.T) {
	for name, told := range map[string]bool{"with event triggers": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			w := start(t, func(w *world) { w.cfg.ProbeInterval, w.cfg.StaleAfter = 50*time.Millisecond, 500*time.Millisecond })
			d := w.db0(t)
			if !told {
				w.exec("ALTER EVENT TRIGGER zz_pgconsent_ddl DISABLE; ALTER EVENT TRIGGER zz_pgconsent_drop DISABLE")
				eventually(t, "a look that sees it", func() bool { v, refused := d.current(); return refused == nil && !v.tracksDDL })
			}
			c := w.client("caregiver")
			c.want(titles, "lake", "sea")
			d.mu.Lock()
			pid := d.conn.PgConn().PID()
			d.mu.Unlock()

			holder := w.db.Connect(t, "postgres")
			hold := func(sql string) {
				t.Helper()
				if _, err := holder.Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
			hold("BEGIN; LOCK TABLE pgconsent.installed IN ACCESS EXCLUSIVE MODE")
			eventually(t, "a look that waits, longer than what is known is good for", func() bool {
				return d.probing.Load() && d.servingState.Load().isStale(w.cfg.StaleAfter)
			})
			if w.Ready() == nil {
				t.Error("ready, and nobody knows how the database is")
			}
			if told {
				c.want(titles, "lake", "sea")
			} else {
				c.refused(titles, sqlstate.CannotConnectNow)
			}
			hold("COMMIT")
			eventually(t, "ready", func() bool { return w.Ready() == nil })
			if got := c.Decide(t.Context(), titles, verdict.Simple); !got.IsAllowed() {
				t.Error(got.Refusal)
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.conn.PgConn().PID() != pid {
				t.Error("the look has begun anew, on another connection")
			}
		})
	}
}
