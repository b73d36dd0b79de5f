package rls_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/tool/doctor"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

const storedPolicy = `
version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  digest:
    rows:
      - own: { column: user_id, is: user }
      - consent: { every: [ memory_participants: { memory_id: id }, people: { id: person_id } ], status: consent_status, is: granted }
  far: { rows: [ { own: { column: user_id, is: user } } ], columns: { id: allow, name: { mask: { generalise: 1 } } } }
`

// Materialised views and foreign tables have no row security. Agents read a view that contains the rule instead, and no
// expression of an agent runs on a row before the rule.
func TestMaterializedViewsAndForeignTables(t *testing.T) {
	tier.All(t)
	// The npm packages for other major versions contain postgres_fdw, but need a libpq that the system may not have.
	if _, err := pgtest.Database(t).Connect(t, "postgres").Exec(context.Background(),
		"LOAD 'postgres_fdw'"); err != nil && strings.Contains(err.Error(), "could not load library") {
		t.Skipf("NOT TESTED: this server cannot load postgres_fdw: %v", err)
	}
	w := newWorld(t, "CREATE EXTENSION postgres_fdw",
		"SET ROLE app_owner; CREATE MATERIALIZED VIEW digest AS SELECT id, user_id, title, length(body) AS size FROM memories; RESET ROLE")
	w.exec(w.super, fmt.Sprintf(`CREATE SERVER loop FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%d', dbname '%s');
		CREATE USER MAPPING FOR PUBLIC SERVER loop OPTIONS (user 'postgres', password_required 'false');
		CREATE FOREIGN TABLE far (id uuid, user_id uuid, name text) SERVER loop OPTIONS (table_name 'people');
		ALTER FOREIGN TABLE far OWNER TO app_owner`, w.db.SocketDir, w.db.Port, w.db.Name))
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(storedPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	w.compile(file, rls.Options{})
	w.migrate()
	agent := w.agent(user1)
	w.exec(agent, "SET cpu_operator_cost = 0") // as the proxy sets it for such comparisons
	for _, prefix := range []string{"", "filtered_"} {
		digestView, farView := "pgconsent_rows."+prefix+"public_digest", "pgconsent_rows."+prefix+"public_far"
		w.want(agent, "SELECT title FROM "+digestView+" ORDER BY id", visibleTitles)
		w.want(agent, "SELECT count(*) FROM "+digestView+" WHERE 1 / (size - 6) IS NOT NULL", "2") // hidden rows have the size 6
		// The compared value does not depend on the row. PostgreSQL pushes the condition into the view, and computes
		// the value if some row is left.
		w.want(agent,
			"SELECT count(*) FROM "+digestView+" WHERE size = 6 AND title = (SELECT (1 / (count(*) - count(*)))::text FROM "+farView+")", "0")
		w.want(agent, "SELECT name FROM "+farView+" ORDER BY 1", "A,B,C,D")
		w.want(agent, "SELECT count(*) FROM "+farView+" WHERE 1 / (length(name || id) - 37) IS NULL AND id = '"+uuid(21)+"'", "0")
		w.wantRefusal(agent, "42703", "SELECT user_id FROM "+farView)
		w.want(w.agent(""), "SELECT count(*) FROM "+digestView, "0")
		w.want(w.agent(""), "SELECT count(*) FROM "+farView, "0")
		w.want(w.agent(user2), "SELECT title FROM "+digestView, "of user 2")
	}
	w.wantRefusal(agent, "42501", "SELECT * FROM public.digest")
	w.wantRefusal(agent, "42501", "SELECT * FROM public.far")
	w.want(agent, "SELECT relname || relkind::text FROM pgconsent_catalog.pg_class WHERE relnamespace = "+
		"'public'::regnamespace ORDER BY 1", "digestm,farf")
	w.want(agent, "SELECT column_name FROM pgconsent_catalog.is_columns WHERE table_name = 'far' ORDER BY 1", "id,name")
	for _, mode := range []rewrite.Mode{rewrite.InjectedMode, rewrite.RowSecurityMode, rewrite.AlwaysInjectedMode} {
		result, refusal := rewrite.New(w.snap, w.pol, mode).Rewrite("SELECT public.digest.title FROM digest ORDER BY id", false)
		if refusal != nil {
			t.Fatal(refusal)
		}
		w.want(agent, result.Text, visibleTitles)
	}
	found, err := doctor.RunChecks(context.Background(), w.super, doctor.Target{Policy: w.pol, Snapshot: w.snap, Plan: w.plan})
	if err != nil {
		t.Fatal(err)
	}
	if err := doctor.UnsafeError(found); err != nil {
		t.Error(err)
	}
	w.exec(w.owner, "UPDATE people SET consent_status = 'revoked' WHERE name = 'Ada'")
	w.want(agent, "SELECT title FROM pgconsent_rows.public_digest", "alone")
	if err := migrations.Down(context.Background(), w.owner, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
}
