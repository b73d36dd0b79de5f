package instance

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// Since skips a test of what came with a later major version of PostgreSQL than the server at hand, and says so.
func Since(t testing.TB, major int) {
	t.Helper()
	if have := pgtest.Binaries().Major; have < major {
		t.Skipf("NOT TESTED: PostgreSQL %d has it, the server at hand is %d (make matrix)", major, have)
	}
}
