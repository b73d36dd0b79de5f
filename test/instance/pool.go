package instance

import (
	"hash/fnv"
	"os"
	"testing"

	"github.com/pgconsent/pgconsent/proxy"
	"github.com/pgconsent/pgconsent/test/tier"
)

// PoolFor returns how the sessions of a test share connections to the server, and nil if they do not. A hash of the
// test's name decides, so that about half of the tests share them. PGCONSENT_POOL=session or =transaction decides for
// all tests.
func PoolFor(t testing.TB) *proxy.PoolSettings {
	t.Helper()
	if !IsPooled(t) {
		return nil
	}
	t.Log("sessions share connections to the server: PGCONSENT_POOL=transaction")
	return &proxy.PoolSettings{Size: 64, Wait: tier.Patience}
}

// IsPooled reports whether the sessions of a test share connections to the server, as PoolFor decides.
func IsPooled(t testing.TB) bool {
	t.Helper()
	switch mode := os.Getenv("PGCONSENT_POOL"); mode {
	case "":
		name := fnv.New32()
		_, _ = name.Write([]byte(t.Name()))
		return name.Sum32()%2 == 1
	case "session", "transaction":
		return mode == "transaction"
	default:
		t.Fatalf("PGCONSENT_POOL=%s: it is session or transaction", mode)
		return false
	}
}
