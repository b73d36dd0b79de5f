package oracle

import (
	"os"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
)

// Quarry is a schema with vectors, apart from the others since it needs pgvector.
var Quarry = Schema{Name: "quarry", SearchPath: []string{"public"}, Attributes: map[string]string{"user": "4", "spaces": "{red,blue}"}}

// ByIndex is the schema in a database whose planner takes an index where it can.
func (s Schema) ByIndex() Schema {
	s.settings = []string{"enable_seqscan = off", "enable_bitmapscan = off", "enable_sort = off"}
	return s
}

// NeedsPgvector skips a test where the server has no pgvector, and fails it under REQUIRE_PGVECTOR=1.
func NeedsPgvector(t testing.TB) {
	t.Helper()
	a := instance.Ask(instance.Super(t, pgtest.Database(t)), "CREATE EXTENSION vector")
	switch {
	case a.Err == "":
	case os.Getenv("REQUIRE_PGVECTOR") != "":
		t.Fatalf("REQUIRE_PGVECTOR is set: %s", a.Err)
	default:
		t.Skipf("NOT TESTED, since pgvector is not installed: %s", a.Err)
	}
}
