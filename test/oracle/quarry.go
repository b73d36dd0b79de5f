package oracle

import (
	"os"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
)

// VectorSchema is a schema with vectors. It is not in Schemas, since it needs the extension pgvector.
var VectorSchema = Schema{Name: "quarry", SearchPath: []string{"public"}, Attributes: map[string]string{"user": "4", "spaces": "{red,blue}"}}

// WithIndexPlans returns the schema with settings by which the planner prefers indexes.
func (s Schema) WithIndexPlans() Schema {
	s.settings = []string{"enable_seqscan = off", "enable_bitmapscan = off", "enable_sort = off"}
	return s
}

// NeedsPgvector skips a test if the server does not have pgvector. With REQUIRE_PGVECTOR=1 it fails the test instead.
func NeedsPgvector(t testing.TB) {
	t.Helper()
	a := instance.Ask(instance.ConnectSuperuser(t, pgtest.Database(t)), "CREATE EXTENSION vector")
	switch {
	case a.Err == "":
	case os.Getenv("REQUIRE_PGVECTOR") != "":
		t.Fatalf("REQUIRE_PGVECTOR is set: %s", a.Err)
	default:
		t.Skipf("NOT TESTED, since pgvector is not installed: %s", a.Err)
	}
}
