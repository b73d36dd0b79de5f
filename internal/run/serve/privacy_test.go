package serve

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgconsent/pgconsent/internal/run/config"
)

// Grants in a database may name only the agents that log in to this database, also after a reload.
func TestGrantsNameTheAgentsOfTheirDatabase(t *testing.T) {
	configOf := func(agents map[string]string) *config.Config {
		cfg := &config.Config{Databases: map[string]*config.Database{"clinic": {}, "shop": {}}, Agents: map[string]*config.Agent{}}
		for agent, database := range agents {
			cfg.Agents[agent] = &config.Agent{Database: database, Attributes: config.Attributes{"user": "si:" + agent}}
		}
		return cfg
	}
	s := &Service{}
	firstConfig := configOf(map[string]string{"vet": "clinic", "nurse": "clinic", "till": "shop"})
	s.config.Store(firstConfig)
	clinic, err := s.privacyService(firstConfig, "clinic")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]string{"vet": {"user": "si:vet"}, "nurse": {"user": "si:nurse"}}
	if diff := cmp.Diff(want, clinic.AgentAttributes()); diff != "" {
		t.Error(diff)
	}
	s.config.Store(configOf(map[string]string{"nurse": "shop", "vet": "clinic"}))
	delete(want, "nurse")
	if diff := cmp.Diff(want, clinic.AgentAttributes()); diff != "" {
		t.Errorf("after a reload:\n%s", diff)
	}
}
