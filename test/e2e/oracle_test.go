package e2e

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// filteredCopy returns a copy of the world's database from which the rows hidden from agents of user 1 were deleted.
func filteredCopy(t testing.TB) *pgtest.DB {
	t.Helper()
	filter := filterSQL(t)
	return pgtest.Template(t, "arcive filtered", func(ctx context.Context, conn *pgx.Conn) error {
		if err := loadArcive(ctx, conn); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, filter)
		return err
	})
}

// filterSQL returns SQL that deletes the rows hidden from agents of user 1.
func filterSQL(t testing.TB) string {
	t.Helper()
	var script string
	for _, name := range []string{"visible.sql", "filter.sql"} {
		text, err := os.ReadFile("../oracle/testdata/arcive/" + name)
		if err != nil {
			t.Fatal(err)
		}
		script += string(text)
	}
	return script
}
