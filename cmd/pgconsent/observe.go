package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/tool/observe"
)

type observeCmd struct {
	Report observeReportCmd `cmd:"" help:"Report what would change if the observed tables were enforced."`
	Replay observeReplayCmd `cmd:"" help:"Check the statements of a PostgreSQL log against a policy, without running them."`
}

type observeReportCmd struct {
	Since time.Duration `placeholder:"DURATION" help:"Only observations since then, as 24h. Default: everything in the audit log."`
}

func (observeReportCmd) Help() string {
	return `Reads the observations in the audit log: counts and fingerprints, no texts and no rows. Exit code 1 if enforcing would
change an answer that was observed.

  pgconsent observe report
  pgconsent observe report --since 24h --json`
}

func (r observeReportCmd) Run(s *session) error {
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	if c.Audit.Mode == string(audit.ModeOff) {
		return errors.New("the audit log is off, and so there are no observations")
	}
	var since time.Time
	if r.Since > 0 {
		since = time.Now().Add(-r.Since)
	}
	var report *observe.Report
	if err := s.withAuditSource(c, c.Audit, func(source audit.Source) (err error) {
		report, err = observe.ReadReport(source, since)
		return err
	}); err != nil {
		return err
	}
	if s.jsonOutput {
		if err := s.printJSON(report); err != nil {
			return err
		}
	} else {
		report.Print(s.out)
	}
	for _, t := range report.Tables {
		if t.Refused+t.ColumnChanges+t.DifferingExecutions > 0 {
			return errSilent
		}
	}
	return nil
}

type observeReplayCmd struct {
	Policy   string   `placeholder:"FILE" help:"The candidate: a file or folder. Default: that of the configuration."`
	Database string   `placeholder:"NAME" help:"The database whose catalog counts. Default: the only one."`
	As       string   `placeholder:"AGENT" help:"Evaluate contracts too, for this agent."`
	Set      []string `placeholder:"NAME=VALUE" sep:"none" help:"With --as: a setting of the agent's session, or another value for an attribute; empty: the attribute is missing. May be given several times."`
	ShowSQL  bool     `name:"show-sql" help:"Print one statement of each shape, as the log has it, with its literals."`

	Audit bool          `help:"Read the decisions of the audit instead of a log of the server."`
	Since time.Duration `placeholder:"DURATION" help:"With --audit: only decisions since then, as 24h. Default: everything."`

	Log string `arg:"" optional:"" help:"A log of the server: stderr, csvlog or jsonlog, with log_statement or log_min_duration_statement. - is stdin."`
}

func (observeReplayCmd) Help() string {
	return `Each statement is checked as if an agent sent it, against the current catalog. The database is only asked for its catalog.
The output has no literals, unless --show-sql asks for them. Exit code 1 if a statement is refused.

Contracts are asked with --as: their answer depends on the session. Attributes that the database works out have the values of now.

With --audit what the audit has recorded is judged: tables, columns, sources, ` +
		`functions and contracts, by the attributes of the record. It has
no texts; of what depends on them is said that it cannot be told.

  pgconsent observe replay --policy candidate.yaml /var/log/postgresql/postgresql.log
  pgconsent observe replay --as mentor --set app.current_session=42 server.log
  pgconsent observe replay --audit --since 24h --policy candidate.yaml
  zcat old.csv.gz | pgconsent observe replay --json -`
}

func (r observeReplayCmd) Run(s *session) error {
	switch {
	case r.Audit && (r.Log != "" || r.As != "" || len(r.Set) > 0 || r.ShowSQL):
		return usageError{
			errors.New("--audit takes the place of a log, and goes with neither --as, --set nor --show-sql: " +
				"records name their agents, and have no texts")}
	case !r.Audit && r.Log == "":
		return usageError{errors.New("name a log of the server, or say --audit")}
	case !r.Audit && r.Since > 0:
		return usageError{errors.New("--since goes with --audit")}
	}
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	var attributes map[string]string
	if r.As != "" {
		agent, err := findAgent(c, r.As)
		if err != nil {
			return err
		}
		if r.Database != "" && r.Database != agent.Database {
			return usageError{fmt.Errorf("agent %s is of database %s", r.As, agent.Database)}
		}
		attributes, r.Database = agent.Attributes, agent.Database
	} else if len(r.Set) > 0 {
		return usageError{errors.New("--set goes with --as")}
	}
	names, err := chooseDatabases(c, r.Database)
	if err != nil {
		return err
	}
	if len(names) != 1 {
		return usageError{errors.New("the configuration has several databases: say which with --database")}
	}
	if r.Audit {
		return r.judgeAudit(s, c, names[0])
	}
	in := s.in
	if r.Log != "-" {
		file, err := os.Open(r.Log)
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		defer func() { _ = file.Close() }()
		in = io.Reader(file)
	}
	return s.forEachDatabase(c, names[0], asControl, func(t targetDatabase) error {
		policyBuild, err := r.compileCandidate(s, t)
		if err != nil {
			return err
		}
		replay := observe.NewLogReplay(policyBuild.policy, policyBuild.snapshot, r.ShowSQL)
		if r.As != "" {
			values, err := attributeValues(s.ctx, t.conn, policyBuild.policy, attributes, r.Set)
			if err != nil {
				return err
			}
			replay.UseAttributes(values)
		}
		if err := observe.EachStatement(in, replay.Add); err != nil {
			return err
		}
		replay.Sort()
		if s.jsonOutput {
			if err := s.printJSON(replay); err != nil {
				return err
			}
		} else {
			replay.Print(s.out)
		}
		if replay.Refused > 0 {
			return errSilent
		}
		return nil
	})
}

// compileCandidate compiles the policy by which the recorded statements are judged.
func (r observeReplayCmd) compileCandidate(s *session, t targetDatabase) (compiledPolicy, error) {
	if r.Policy != "" {
		candidate := *t.config
		candidate.Policy = r.Policy
		t.config = &candidate
	}
	return s.compile(t)
}

// judgeAudit judges the recorded statements in a database's audit by the policy.
func (r observeReplayCmd) judgeAudit(s *session, c *config.Config, database string) error {
	if c.Audit.Mode == string(audit.ModeOff) {
		return errors.New("the audit log is off: there are no decisions")
	}
	var since time.Time
	if r.Since > 0 {
		since = time.Now().Add(-r.Since)
	}
	return s.forEachDatabase(c, database, asControl, func(t targetDatabase) error {
		policyBuild, err := r.compileCandidate(s, t)
		if err != nil {
			return err
		}
		auditReplay := observe.NewAuditReplay(policyBuild.policy, policyBuild.snapshot, database)
		if err := s.withAuditSource(c, c.Audit,
			func(source audit.Source) error { return auditReplay.Read(source, since) }); err != nil {
			return err
		}
		if s.jsonOutput {
			if err := s.printJSON(auditReplay); err != nil {
				return err
			}
		} else {
			auditReplay.Print(s.out)
		}
		if auditReplay.Counts[observe.OutcomeBecomesRefused] > 0 {
			return errSilent
		}
		return nil
	})
}
