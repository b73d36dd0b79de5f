package rewrite

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rls"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// fixture is the arcive world with testdata/schema.sql, migrated under testdata/policy.yaml.
var fixture struct {
	once sync.Once
	snap *catalog.Snapshot
	pol  *policy.Policy
}

func buildFixture(ctx context.Context, conn *pgx.Conn) error {
	for _, file := range []string{"../examples/worlds/arcive/extensions.sql", "../examples/worlds/arcive/schema.sql", "testdata/schema.sql"} {
		sql, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if _, err := conn.PgConn().Exec(ctx, string(sql)).ReadAll(); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	snap, err := pgcatalog.Load(ctx, conn, []string{"public"})
	if err != nil {
		return err
	}
	doc, err := policy.Load("testdata/policy.yaml")
	if err != nil {
		return err
	}
	pol, err := policy.Compile(doc, snap, policy.WithViews(RewriteViewQuery))
	if err != nil {
		return err
	}
	fixture.snap, fixture.pol = snap, pol
	return migrations.Up(ctx, conn, migrations.Options{}, rls.Generate(pol, snap, rls.Options{}))
}

// database returns a copy of the fixture's database.
func database(t testing.TB) *pgtest.DB {
	t.Helper()
	return pgtest.Template(t, "rewrite", buildFixture)
}

// rewriter returns a rewriter over the fixture.
func rewriter(t testing.TB, mode Mode) *Rewriter {
	t.Helper()
	fixture.once.Do(func() { database(t) })
	if fixture.pol == nil {
		t.Fatal("the fixture could not be built")
	}
	return New(fixture.snap, fixture.pol, mode)
}

// altered returns a rewriter over the fixture after a change of its schema, and a connection to it.
func altered(t *testing.T, mode Mode, change string) (*Rewriter, *pgx.Conn) {
	t.Helper()
	conn := database(t).Connect(t, "postgres")
	if _, err := conn.PgConn().Exec(context.Background(), change).ReadAll(); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(context.Background(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := policy.Load("testdata/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pol, err := policy.Compile(doc, snap, policy.WithViews(RewriteViewQuery))
	if err != nil {
		t.Fatal(err)
	}
	return New(snap, pol, mode), conn
}
