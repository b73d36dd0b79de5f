package starter_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/tool/starter"
)

// Roles belong to the whole server. The first database's agent and control roles have the usual names. A second
// database of the same server gets login roles of its own, since each role has one password.
func TestASecondDatabaseHasLoginsOfItsOwn(t *testing.T) {
	for _, c := range []struct {
		servesOthers   bool
		agent, control string
	}{
		{false, "pgconsent_agent", "pgconsent_control"},
		{true, "pgconsent_agent_shop", "pgconsent_control_shop"},
	} {
		file := filepath.Join(t.TempDir(), config.DefaultFile)
		text := (&starter.Proposal{}).Configuration(starter.Connection{Database: "shop", Host: "db", Port: 5432, TLS: "require",
			Role: "boss", Owners: []string{"boss"}, SearchPath: []string{"public"}, ServesOthers: c.servesOthers})
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		loadedConfig, err := config.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		want := config.Roles{Agent: c.agent, Control: c.control, Reader: "pgconsent_reader", Rows: "pgconsent_rows", Migrate: "boss"}
		if got := loadedConfig.Databases["shop"].Roles; got != want {
			t.Errorf("beside others %t: %+v, want %+v", c.servesOthers, got, want)
		}
	}
}
