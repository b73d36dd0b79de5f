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
	Report observeReportCmd `cmd:"" help:"Say what enforcing the tables that are observed would change."`
	Replay observeReplayCmd `cmd:"" help:"Judge the statements of a PostgreSQL log by a policy, running none."`
}

type observeReportCmd struct {
	Since time.Duration `placeholder:"DURATION" help:"Only what was seen since then, as 24h. Default: everything in the audit log."`
}

func (observeReportCmd) Help() string {
	return `Reads the audit log, which holds what was observed: counts and fingerprints, no texts and no rows. Exit code 1 if enforcing would
change something that was seen.

  pgconsent observe report
  pgconsent observe report --since 24h --json`
}

func (r observeReportCmd) Run(s *session) error {
	c, err := s.load()
	if err != nil {
		return err
	}
	if c.Audit.Mode == string(audit.Off) {
		return errors.New("the audit log is off: what is observed is recorded there")
	}
	var since time.Time
	if r.Since > 0 {
		since = time.Now().Add(-r.Since)
	}
	var report *observe.Report
	if err := s.source(c, c.Audit, func(from audit.Source) (err error) {
		report, err = observe.Read(from, since)
		return err
	}); err != nil {
		return err
	}
	if s.json {
		if err := s.print(report); err != nil {
			return err
		}
	} else {
		report.Print(s.out)
	}
	for _, t := range report.Tables {
		if t.Refused+t.Columns+t.Differs > 0 {
			return errSilent
		}
	}
	return nil
}

type observeReplayCmd struct {
	Policy   string   `placeholder:"FILE" help:"The candidate: a file or folder. Default: that of the configuration."`
	Database string   `placeholder:"NAME" help:"The database whose catalog counts. Default: the only one."`
	As       string   `placeholder:"AGENT" help:"Ask contracts too, as this agent."`
	Set      []string `placeholder:"NAME=VALUE" sep:"none" help:"With --as: a setting that the agent has made, or an attribute's value in place of what it is; an empty one is missing. May be given several times."`
	ShowSQL  bool     `name:"show-sql" help:"Print one statement of each shape, as the log has it, with its literals."`

	Audit bool          `help:"The decisions of the audit, in place of a log of the server."`
	Since time.Duration `placeholder:"DURATION" help:"With --audit: only what was decided since then, as 24h. Default: everything."`

	Log string `arg:"" optional:"" help:"A log of the server: stderr, csvlog or jsonlog, with log_statement or log_min_duration_statement. - is stdin."`
}

func (observeReplayCmd) Help() string {
	return `Every statement is judged as if an agent sent it, against the catalog as it is now. Nothing is sent to the database but questions
about its catalog. What is printed has no literals, unless --show-sql asks for them. Exit code 1 if one is refused.

Contracts are asked with --as: their answer depends on the session. Attributes that the database works out have the values of now.

With --audit what the audit has recorded is judged: tables, columns, sources, functions and contracts, by the attributes of the record. It has
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
				"records say whose they are, and have no texts")}
	case !r.Audit && r.Log == "":
		return usageError{errors.New("name a log of the server, or say --audit")}
	case !r.Audit && r.Since > 0:
		return usageError{errors.New("--since goes with --audit")}
	}
	c, err := s.load()
	if err != nil {
		return err
	}
	var attributes map[string]string
	if r.As != "" {
		agent, err := agentOf(c, r.As)
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
	names, err := chosen(c, r.Database)
	if err != nil {
		return err
	}
	if len(names) != 1 {
		return usageError{errors.New("the configuration has several databases: say which with --database")}
	}
	if r.Audit {
		return r.recall(s, c, names[0])
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
	return s.each(c, names[0], asControl, func(t target) error {
		built, err := r.candidate(s, t)
		if err != nil {
			return err
		}
		replay := observe.NewLogReplay(built.policy, built.snapshot, r.ShowSQL)
		if r.As != "" {
			values, err := valuesOf(s.ctx, t.conn, built.policy, attributes, r.Set)
			if err != nil {
				return err
			}
			replay.AskContractsAs(values)
		}
		if err := observe.Statements(in, replay.Add); err != nil {
			return err
		}
		replay.Sort()
		if s.json {
			if err := s.print(replay); err != nil {
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

// candidate compiles the policy that judges.
func (r observeReplayCmd) candidate(s *session, t target) (compiled, error) {
	if r.Policy != "" {
		candidate := *t.config
		candidate.Policy = r.Policy
		t.config = &candidate
	}
	return s.compile(t)
}

// recall judges what the audit has recorded of a database.
func (r observeReplayCmd) recall(s *session, c *config.Config, database string) error {
	if c.Audit.Mode == string(audit.Off) {
		return errors.New("the audit log is off: there is nothing to judge")
	}
	var since time.Time
	if r.Since > 0 {
		since = time.Now().Add(-r.Since)
	}
	return s.each(c, database, asControl, func(t target) error {
		built, err := r.candidate(s, t)
		if err != nil {
			return err
		}
		recall := observe.NewAuditReplay(built.policy, built.snapshot, database)
		if err := s.source(c, c.Audit, func(from audit.Source) error { return recall.Read(from, since) }); err != nil {
			return err
		}
		if s.json {
			if err := s.print(recall); err != nil {
				return err
			}
		} else {
			recall.Print(s.out)
		}
		if recall.Counts[observe.BecomesRefused] > 0 {
			return errSilent
		}
		return nil
	})
}
