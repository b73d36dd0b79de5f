package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/tool/policydiff"
	"github.com/pgconsent/pgconsent/internal/tool/why"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
)

type policyDiffCmd struct {
	Policies []string `arg:"" name:"policy" help:"OLD and NEW, each a file or folder; or NEW alone, and OLD is that of the configuration."`
	Database string   `placeholder:"NAME" help:"The database whose rows are evaluated. Default: the only one."`
	As       []string `placeholder:"AGENT" help:"Only these agents. Default: all of the database."`
	Set      []string `placeholder:"NAME=VALUE" sep:"none" help:"A setting of the agents' sessions. May be given several times."`
	Value    []string `placeholder:"NAME=VALUE" sep:"none" help:"The value of an attribute that is not in the credential. May be given several times."`
	Samples  int      `default:"3" placeholder:"N" help:"How many keys to show of the rows that appear and disappear. Default: ${default}."`
	Reveals  bool     `help:"Exit with 1 if agents gain anything."`
}

func (policyDiffCmd) Help() string {
	return `Evaluates both policies on every row, for every agent, as roles.migrate, in one snapshot, and installs nothing. Tables whose
rule is the same are not read. The samples are keys of rows that agents do not see: this is for the owner alone.

  pgconsent policy diff next.yaml
  pgconsent policy diff policy.yaml next.yaml --samples 10 --as chat
  pgconsent policy diff next.yaml --reveals --json`
}

func (p policyDiffCmd) Run(s *session) error {
	if len(p.Policies) > 2 {
		return usageError{errors.New("policy diff takes NEW, or OLD and NEW")}
	}
	if p.Samples < 0 {
		return usageError{errors.New("--samples is a number of keys")}
	}
	values := map[string]string{}
	valueSettings, err := parseSettings(p.Value)
	if err != nil {
		return usageError{errors.New("--value takes NAME=VALUE")}
	}
	for _, v := range valueSettings {
		values[v.Name] = v.Value
	}
	settings, err := parseSettings(p.Set)
	if err != nil {
		return err
	}
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	name := p.Database
	if name == "" {
		databaseNames := slices.Sorted(maps.Keys(c.Databases))
		if len(databaseNames) != 1 {
			return usageError{fmt.Errorf("the configuration has several databases: choose with --database: %s",
				strings.Join(databaseNames, ", "))}
		}
		name = databaseNames[0]
	}
	agents, err := p.chosenAgents(c, name)
	if err != nil {
		return err
	}
	mayReveal := false
	err = s.forEachDatabase(c, name, asMigrate, func(t targetDatabase) error {
		report, err := p.comparePolicies(s, t, policydiff.Options{
			Agents: agents, AttributeValues: values, SampleSize: p.Samples, ReportProgress: s.percentProgress()}, settings)
		if err != nil {
			return err
		}
		mayReveal = report.MayReveal()
		if s.jsonOutput {
			return s.printJSON(report)
		}
		policydiff.Printer{Out: s.out, UsesColours: s.stdoutIsTerminal}.Print(report)
		return nil
	})
	var problems policy.Errors
	if errors.As(err, &problems) && !s.jsonOutput {
		for _, problem := range problems {
			fmt.Fprintln(s.out, s.paint("31", problem.Error()))
		}
		return errSilent
	}
	if err != nil {
		return err
	}
	if p.Reveals && mayReveal {
		return errSilent
	}
	return nil
}

// chosenAgents returns the chosen agents of the database, with the attributes of their credentials.
func (p policyDiffCmd) chosenAgents(c *config.Config, database string) (map[string]map[string]string, error) {
	agents, agentNames := map[string]map[string]string{}, []string{}
	for _, agent := range slices.Sorted(maps.Keys(c.Agents)) {
		a := c.Agents[agent]
		if a.Database != database {
			continue
		}
		if agentNames = append(agentNames, agent); len(p.As) == 0 || slices.Contains(p.As, agent) {
			agents[agent] = a.Attributes
		}
	}
	for _, agent := range p.As {
		if !slices.Contains(agentNames, agent) {
			return nil, usageError{fmt.Errorf("database %s has no agent %q: it has %s", database, agent, strings.Join(agentNames, ", "))}
		}
	}
	return agents, nil
}

// comparePolicies evaluates both policies on the data of a database.
func (p policyDiffCmd) comparePolicies(s *session, t targetDatabase, o policydiff.Options,
	settings []why.Setting) (*policydiff.Report, error) {
	paths := p.Policies
	if len(paths) == 1 {
		paths = []string{t.config.Policy, paths[0]}
	}
	var sides [2]policydiff.PolicyVersion
	for i, path := range paths {
		target, config := t, *t.config
		config.Policy = path
		target.config = &config
		policyBuild, err := s.compile(target)
		if err != nil {
			return nil, err
		}
		sides[i] = policydiff.PolicyVersion{Path: path, Policy: policyBuild.policy}
	}
	installedPolicy, err := migrations.ReadInstalled(s.ctx, t.conn)
	if err != nil && !errors.Is(err, migrations.ErrNotInstalled) {
		return nil, err
	}
	derivedAttributes := map[string]map[string]string{}
	for _, side := range sides {
		if side.Policy.Version() != installedPolicy.PolicyVersion {
			continue
		}
		// If the other policy has an attribute of the same name, it gets the value that the installed policy computes.
		for agent, attributes := range o.Agents {
			if derivedAttributes[agent], err = attributesOf(s.ctx, t.conn, side.Policy, attributes, settings); err != nil {
				return nil, err
			}
		}
	}
	o.Old, o.New, o.LiveAttributes = sides[0], sides[1], derivedAttributes
	report, err := policydiff.Compare(s.ctx, t.conn, o)
	if err != nil {
		return nil, err
	}
	report.Database = t.name
	if installedPolicy.PolicyVersion != report.OldVersion {
		report.Notes = append(report.Notes, fmt.Sprintf("%s is not the policy that is installed", paths[0]))
	}
	return report, nil
}

// attributesOf returns the attributes of an agent's session under the installed policy.
func attributesOf(ctx context.Context, conn *pgx.Conn, p *policy.Policy, ownAttributes map[string]string,
	settings []why.Setting) (map[string]string, error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	return why.AttributeValues(ctx, tx, p, ownAttributes, settings)
}

// percentProgress returns a function that shows on stderr the progress of long steps in percent.
func (s *session) percentProgress() func(label string, done, total int64) {
	start, lastReport, lastDatabase := time.Now(), time.Time{}, ""
	return func(label string, done, total int64) {
		if label != lastDatabase {
			start, lastDatabase = time.Now(), label
		}
		if s.jsonOutput || time.Since(start) < time.Second || time.Since(lastReport) < time.Second || total == 0 {
			return
		}
		lastReport = time.Now()
		fmt.Fprintf(s.err, "%s: %d %%\n", label, 100*done/total)
	}
}
