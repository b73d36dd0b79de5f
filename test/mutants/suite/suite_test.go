package suite

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/noninterference"
	"github.com/pgconsent/pgconsent/test/oracle"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// Each enforcement layer alone, the injected conditions or row security, must answer as a filtered copy does.
func TestEachLayerAlone(t *testing.T) {
	tier.All(t)
	oracle.Run(t, oracle.Options{Schemas: []string{"works", "clinic"}, Modes: []instance.Mode{instance.InjectedOnly, instance.RLS}, EveryNth: 8, Quick: true})
}

// Twins must answer alike, a session without a seal must read nothing, and an empty lookup table must hide rows.
func TestTwins(t *testing.T) {
	tier.All(t)
	r := noninterference.Run(t, noninterference.Config{
		Cases: 900, Seed: 5, PerData: 30, PerTable: 4, Wide: true, Quick: true,
		Modes: []instance.Mode{instance.RLS, instance.InjectedOnly, instance.SignedViews},
	})
	t.Log(r)
}

// The same for values that a contract does not allow, or that show by key only.
func TestValues(t *testing.T) {
	tier.All(t)
	t.Log(noninterference.Values(t, noninterference.Config{Cases: 300, Seed: 5, PerData: 100, Quick: true, Modes: []instance.Mode{instance.RLS}}))
}

// Each layer alone must answer as a filtered copy does for the world arcive, whose tables are larger and whose policy
// lists functions.
func TestArchive(t *testing.T) {
	tier.All(t)
	oracle.Run(t, oracle.Options{Schemas: []string{"arcive"}, Modes: []instance.Mode{instance.InjectedOnly, instance.RLS}, EveryNth: 7, Quick: true})
}
