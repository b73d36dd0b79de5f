package rewrite

import (
	"context"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/policy"
)

// A policy is refused if it lists a view that reads a table which agents may only count in groups. The error is about
// the view itself, and a retry cannot help.
func TestViewsDoNotCountInGroups(t *testing.T) {
	for _, query := range []string{"SELECT kind, count(*) FROM events GROUP BY kind",
		"SELECT avg(amount) FROM events JOIN people ON people.id = person", "SELECT * FROM (SELECT max(level) FROM events) AS x"} {
		conn := pgtest.Database(t).Connect(t, "postgres")
		if _, err := conn.PgConn().Exec(context.Background(), countedSchema+"; CREATE VIEW totals AS "+query).ReadAll(); err != nil {
			t.Fatal(err)
		}
		snap, err := pgcatalog.Load(context.Background(), conn, []string{"public"})
		if err != nil {
			t.Fatal(err)
		}
		doc, err := policy.Parse("policy.yaml", []byte(countedPolicy+"views: { totals: {} }\n"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = policy.Compile(doc, snap, policy.WithViews(RewriteViewQuery))
		if err == nil || !strings.Contains(err.Error(), `a view cannot aggregate over "public.events"`) ||
			!strings.Contains(err.Error(), "let agents send its query themselves") {
			t.Errorf("%s: %v", query, err)
		}
	}
}
