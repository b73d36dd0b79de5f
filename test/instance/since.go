package instance

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// RequireServerVersion skips the test if the test server's major version of PostgreSQL is older than this one.
func RequireServerVersion(t testing.TB, major int) {
	t.Helper()
	if have := pgtest.Binaries().Major; have < major {
		t.Skipf("NOT TESTED: PostgreSQL %d has it, the server at hand is %d (make matrix)", major, have)
	}
}
