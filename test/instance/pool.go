package instance

import (
	"hash/fnv"
	"os"
	"testing"

	"github.com/pgconsent/pgconsent/proxy"
	"github.com/pgconsent/pgconsent/test/tier"
)

// PoolFor says whether the sessions of a test share connections to the server: those of every second test do, by its
// name. PGCONSENT_POOL says it for all tests: session, or transaction.
func PoolFor(t testing.TB) *proxy.PoolSettings {
	t.Helper()
	mode := os.Getenv("PGCONSENT_POOL")
	if mode == "" {
		name := fnv.New32()
		_, _ = name.Write([]byte(t.Name()))
		mode = []string{"session", "transaction"}[name.Sum32()%2]
	}
	switch mode {
	case "session":
		return nil
	case "transaction":
		t.Log("sessions share connections to the server: PGCONSENT_POOL=transaction")
		return &proxy.PoolSettings{Size: 64, Wait: tier.Patience}
	default:
		t.Fatalf("PGCONSENT_POOL=%s: it is session or transaction", mode)
		return nil
	}
}
