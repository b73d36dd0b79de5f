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

// Each enforcement layer alone answers as the filtered copy.
func TestEachLayerAlone(t *testing.T) {
	tier.All(t)
	oracle.Run(t, oracle.Options{Schemas: []string{"works", "clinic"}, Modes: []instance.Mode{instance.InjectedOnly, instance.RLS}, EveryNth: 8, Quick: true})
}

// Twins are not told apart, nothing is readable without a seal, and empty lookup tables hide.
func TestTwins(t *testing.T) {
	tier.All(t)
	r := noninterference.Run(t, noninterference.Config{
		Cases: 900, Seed: 5, PerData: 30, PerTable: 4, Wide: true, Quick: true,
		Modes: []instance.Mode{instance.RLS, instance.InjectedOnly, instance.SignedViews},
	})
	t.Log(r)
}

// The same holds for values that a contract leaves out, or that exist by key.
func TestValues(t *testing.T) {
	tier.All(t)
	t.Log(noninterference.Values(t, noninterference.Config{Cases: 300, Seed: 5, PerData: 100, Quick: true, Modes: []instance.Mode{instance.RLS}}))
}

// So does the archive, whose tables are larger and whose policy publishes functions.
func TestArchive(t *testing.T) {
	tier.All(t)
	oracle.Run(t, oracle.Options{Schemas: []string{"arcive"}, Modes: []instance.Mode{instance.InjectedOnly, instance.RLS}, EveryNth: 7, Quick: true})
}
