package e2e

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// filteredCopy is a database like the world's, from which the rows hidden from agents of user 1 were deleted.
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

// filterSQL deletes the rows that agents of user 1 may not see.
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
