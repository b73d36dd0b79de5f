package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/tool/why"
)

type whyCmd struct {
	As  string   `required:"" placeholder:"AGENT" help:"The agent."`
	Set []string `placeholder:"NAME=VALUE" sep:"none" help:"A setting of the agent's session, or an attribute of the user for whom it acts. May be given several times."`

	Table string   `arg:"" help:"The table, as name or schema.name."`
	Key   []string `arg:"" help:"The primary key, a value for each of its columns, or COLUMN=VALUE."`
}

func (whyCmd) Help() string {
	return `Evaluates the rule of the table block by block, with the record that decides, and asks row security as the agent's role
whether it agrees. It shows rows that the agent does not see: it logs in as roles.migrate, and is for the owner alone. It
reads one snapshot and changes nothing. Exit code 1 if there is no such row, or if row security disagrees.

  pgconsent why --as chat memories 7d0e0000-0000-4000-8000-000000000003
  pgconsent why --as chat memory_participants memory_id=7d0e… person_id=be00…
  pgconsent why --as mentor --set app.stage=2 --json facts 42`
}

func (w whyCmd) Run(s *session) error {
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	agent, err := findAgent(c, w.As)
	if err != nil {
		return err
	}
	settings, err := parseSettings(w.Set)
	if err != nil {
		return err
	}
	attributes, settings := splitUserSettings(agent, settings)
	return s.forEachDatabase(c, agent.Database, asMigrate, func(t targetDatabase) error {
		policyBuild, err := s.compileServedPolicy(t)
		if err != nil {
			return err
		}
		answer, err := why.Explain(s.ctx, t.conn, why.Question{
			Policy: policyBuild.policy, Snapshot: policyBuild.snapshot, Agent: w.As, Attributes: attributes, Settings: settings,
			Table: w.Table, Key: w.Key,
			AgentRole: t.config.Roles.Agent,
			ConnectAgent: func(ctx context.Context) (*pgx.Conn, error) {
				dsn, err := c.ConnString(t.config, t.config.Roles.Agent, t.config.Secrets.Agent)
				if err != nil {
					return nil, err
				}
				conn, err := pgx.Connect(ctx, dsn)
				if err != nil {
					return nil, sqlstate.LoginFailedError(t.config.Roles.Agent, err)
				}
				return conn, nil
			},
		})
		if err != nil {
			return err
		}
		if s.jsonOutput {
			if err := s.printJSON(answer); err != nil {
				return err
			}
		} else {
			why.Printer{Out: s.out, UsesColours: s.stdoutIsTerminal}.Print(answer)
		}
		if len(answer.Rows) == 0 || !answer.AgreesWithRowSecurity() {
			return errSilent
		}
		return nil
	})
}

// findAgent returns the agent with this name in the configuration.
func findAgent(c *config.Config, name string) (*config.Agent, error) {
	agent, ok := c.Agents[name]
	if !ok {
		return nil, usageError{fmt.Errorf("there is no agent %q in the configuration: it has %s",
			name, strings.Join(slices.Sorted(maps.Keys(c.Agents)), ", "))}
	}
	return agent, nil
}

// parseSettings parses settings of the form NAME=VALUE.
func parseSettings(settingTexts []string) ([]why.Setting, error) {
	var out []why.Setting
	for _, s := range settingTexts {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, usageError{errors.New("--set takes NAME=VALUE")}
		}
		out = append(out, why.Setting{Name: name, Value: value})
	}
	return out, nil
}

// splitUserSettings separates the settings of attributes of the user whom the agent represents from all other settings.
// It returns the agent's attributes together with these.
func splitUserSettings(agent *config.Agent, assignments []why.Setting) (attributes map[string]string,
	settings []why.Setting) {
	if agent.ActsFor == nil {
		return agent.Attributes, assignments
	}
	attributes = map[string]string{}
	maps.Copy(attributes, agent.Attributes)
	for _, setting := range assignments {
		if slices.Contains(agent.ActsFor.Attributes, setting.Name) {
			attributes[setting.Name] = setting.Value
		} else {
			settings = append(settings, setting)
		}
	}
	return attributes, settings
}
