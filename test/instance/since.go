package instance

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// RequireServerVersion skips a test that needs this major version of PostgreSQL on an older server.
func RequireServerVersion(t testing.TB, major int) {
	t.Helper()
	if have := pgtest.Binaries().Major; have < major {
		t.Skipf("NOT TESTED: PostgreSQL %d has it, the server at hand is %d (make matrix)", major, have)
	}
}
