package instance

import (
	"hash/fnv"
	"os"
	"testing"

	"github.com/pgconsent/pgconsent/proxy"
	"github.com/pgconsent/pgconsent/test/tier"
)

// PoolFor returns how the sessions of a test share connections to the server; nil: they do not. Every second test
// shares them, chosen by a hash of its name. PGCONSENT_POOL decides for all tests if it is session or transaction.
func PoolFor(t testing.TB) *proxy.PoolSettings {
	t.Helper()
	if !IsPooled(t) {
		return nil
	}
	t.Log("sessions share connections to the server: PGCONSENT_POOL=transaction")
	return &proxy.PoolSettings{Size: 64, Wait: tier.Patience}
}

// IsPooled tells whether the sessions of a test share connections, by PoolFor.
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
