package suite

import (
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/noninterference"
	"github.com/pgconsent/pgconsent/test/oracle"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// Each wall alone answers as the filtered copy.
func TestWallsAlone(t *testing.T) {
	oracle.Run(t, oracle.Options{Schemas: []string{"works", "clinic"}, Modes: []instance.Mode{instance.Injected, instance.RLS}, Every: 8, Quick: true})
}

// So does the archive, whose tables are larger and whose policy publishes functions.
func TestArchive(t *testing.T) {
	oracle.Run(t, oracle.Options{Schemas: []string{"arcive"}, Modes: []instance.Mode{instance.Injected, instance.RLS}, Every: 7, Quick: true})
}

// Twins are not told apart, nothing is readable without a seal, and empty helpers hide.
func TestTwins(t *testing.T) {
	r := noninterference.Run(t, noninterference.Config{
		Cases: 1200, Seed: 5, PerData: 40, PerTable: 3, Quick: true, For: 50 * time.Second,
		Modes: []instance.Mode{instance.RLS, instance.Both, instance.Gate},
	})
	t.Log(r)
}
