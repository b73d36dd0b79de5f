package demos

import (
	"context"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// Other tests may run migrate on the same server, which grants rights in their databases to the demo's roles. The
// demo's roles must be removable all the same.
func TestDemoIsRemovedDespiteGrantedRights(t *testing.T) {
	other := pgtest.Database(t)
	conn := other.Connect(t, "postgres")
	t.Run("demo", func(t *testing.T) {
		StartDemo(t, "../../examples/air")
		if _, err := conn.Exec(context.Background(), `DO $$ DECLARE role text; BEGIN
			FOR role IN SELECT rolname FROM pg_roles WHERE rolname LIKE 'pgconsent\_demo\_%' LOOP
				EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO %I; GRANT CREATE ON SCHEMA public TO %2$I', current_database(), role);
			END LOOP; END $$`); err != nil {
			t.Fatal(err)
		}
	})
	var roleCount int
	if err := conn.QueryRow(context.Background(),
		`SELECT count(*) FROM pg_roles WHERE rolname LIKE 'pgconsent\_demo\_%'`).Scan(&roleCount); err != nil || roleCount != 0 {
		t.Errorf("%d roles are left, %v", roleCount, err)
	}
}
