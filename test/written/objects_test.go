package written

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// TestObjectsNameTheirDependencies: each object of a plan names the objects that it needs. If an object is dropped
// together with those that need it, all can be created again in order. No two objects have the same identity.
func TestObjectsNameTheirDependencies(t *testing.T) {
	for _, s := range sources() {
		// "kinds" has an object of each kind.
		if !tier.IsNightly() && s.name != "kinds" && s.name != "ciris" && (tier.Quick() || s.name != "docket" && s.name != "kernle") {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			db := pgtest.Database(t)
			for _, file := range s.schema {
				instance.Exec(t, db, instance.ReadRepoFile(t, file))
			}
			m := instance.Migrate(t, instance.Database{Name: s.name, DB: db, Policy: instance.ReadRepoFile(t, s.policy), SearchPath: s.searchPath},
				instance.Auto)
			conn := db.Connect(t, "postgres")
			objects := m.Plan.Objects(migrations.Found{PublicConnect: true})
			seenIDs := map[string]bool{}
			for _, o := range objects {
				if seenIDs[o.Identity] {
					t.Errorf("two objects are called %s", o.Identity)
				}
				seenIDs[o.Identity] = true
				if len(o.DropStatements) > 0 {
					checkRecreated(t, conn, o.Identity, dependentObjects(objects, o.Identity))
				}
			}
		})
	}
}

func dependentObjects(objects []rls.Object, identity string) []rls.Object {
	included := map[string]bool{identity: true}
	var out []rls.Object
	for _, o := range objects {
		if included[o.Identity] || slices.ContainsFunc(o.NeededObjects, func(need string) bool { return included[need] }) {
			included[o.Identity] = true
			out = append(out, o)
		}
	}
	return out
}

// checkRecreated drops objects, creates them again, and rolls both back.
func checkRecreated(t *testing.T, conn *pgx.Conn, identity string, objects []rls.Object) {
	t.Helper()
	tx, err := conn.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	for _, s := range append(migrations.DropAll(objects), migrations.MakeAll(objects)...) {
		if _, err := conn.PgConn().Exec(context.Background(), s.SQL).ReadAll(); err != nil {
			t.Errorf("%s, with %d others: %.100s: %v", identity, len(objects)-1, s.SQL, err)
			return
		}
	}
}
