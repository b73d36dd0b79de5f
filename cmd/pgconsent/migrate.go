package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
)

type migrateCmd struct {
	Database  string `placeholder:"NAME" help:"Only this database. Default: all."`
	DryRun    bool   `xor:"mode" help:"Print the SQL, with reasons, and change nothing."`
	RotateKey bool   `xor:"mode" help:"Make a new key for the seals of sessions, and nothing else. The old one goes after two minutes."`
	Down      bool   `xor:"mode" help:"Remove everything that migrate installed, and restore what it found."`

	DiscardConsent bool `help:"With --down: remove the consent records as well, which prove who has consented to what."`
	DiscardAudit   bool `help:"With --down: remove the audit's records as well, where they are in the database."`
}

func (migrateCmd) Help() string {
	return `Logs in as roles.migrate of the configuration (the first owner, if it says nothing), and works in one transaction. A
second run changes nothing. Warnings about the policy are printed on stderr, as by policy check.

  pgconsent migrate --dry-run > review.sql
  pgconsent migrate
  pgconsent migrate --rotate-key
  pgconsent migrate --down

It changes only the objects that differ from the installed ones, and locks the tables of these alone: agents of other
tables are served meanwhile. --dry-run prints what differs.

It waits for no lock longer than 200 ms, since others would queue behind it: it gives way, says who holds the lock, and tries again.
Interrupted, it has changed nothing. At the end it says how many proxies serve what was installed.

Where the configuration has a section consent, migrate makes the key file that it names, once: keep a copy of it.`
}

func (m migrateCmd) Run(s *session) error {
	if m.DiscardConsent && !m.Down {
		return usageError{errors.New("--discard-consent goes with --down")}
	}
	if m.DiscardAudit && !m.Down {
		return usageError{errors.New("--discard-audit goes with --down")}
	}
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	return s.forEachDatabase(c, m.Database, asMigrate, func(t targetDatabase) error {
		options, err := s.migrationOptions(t.config)
		if err != nil {
			return err
		}
		if m.Down {
			if m.DiscardConsent {
				if _, err := t.conn.Exec(s.ctx, "SET pgconsent.discard_consent = 'yes'"); err != nil {
					return err
				}
			}
			if m.DiscardAudit {
				if _, err := t.conn.Exec(s.ctx, "SET pgconsent.discard_audit = 'yes'"); err != nil {
					return err
				}
			}
			if err := migrations.Down(s.ctx, t.conn, options); err != nil {
				return withHint(err)
			}
			if err := endConsent(s.ctx, c, t); err != nil {
				return err
			}
			return s.printMigrateResult(t.name, "removed", "", nil)
		}
		if m.RotateKey {
			kid, err := migrations.RotateKey(s.ctx, t.conn)
			if err != nil {
				return err
			}
			return s.printMigrateResult(t.name, fmt.Sprintf("key %d", kid), "", nil)
		}
		policyBuild, err := s.compile(t)
		if err != nil {
			return err
		}
		if err := s.printWarnings(t, policyBuild); err != nil {
			return err
		}
		if m.DryRun {
			sql, err := migrations.Render(s.ctx, t.conn, options, policyBuild.plan)
			if err != nil {
				return err
			}
			if s.jsonOutput {
				return s.printJSON(map[string]string{"database": t.name, "sql": sql})
			}
			_, err = fmt.Fprintf(s.out, "-- database %s\n%s", t.config.Name, sql)
			return err
		}
		var changed migrations.Changed
		options.OnChange = func(c migrations.Changed) { changed = c }
		if err := migrations.Up(s.ctx, t.conn, options, policyBuild.plan); err != nil {
			return err
		}
		if err := s.fillMaterialized(t, policyBuild); err != nil {
			return err
		}
		if err := s.createConsentKey(c, t); err != nil {
			return err
		}
		if err := s.printMigrateResult(t.name, "installed", policyBuild.policy.Version(), &changed); err != nil {
			return err
		}
		return s.reportServing(t, policyBuild.plan.Hash())
	})
}

// serveTimeout is how long migrate waits until running proxies use a newly installed policy.
const serveTimeout = 10 * time.Second

// reportServing prints how many proxies use the installed policy.
func (s *session) reportServing(t targetDatabase, hash string) error {
	serving, proxies, err := migrations.AwaitServing(s.ctx, t.conn, hash, serveTimeout)
	if err != nil {
		return err
	}
	switch {
	case proxies == 0:
		fmt.Fprintf(s.err, "database %s: no proxy is connected\n", t.name)
	case serving == proxies:
		fmt.Fprintf(s.err, "database %s: %d of %d proxies serve it\n", t.name, serving, proxies)
	default:
		fmt.Fprintf(s.err,
			"database %s: %d of %d proxies serve it; the others have another policy file, or have not refreshed "+
				"their catalog yet: their logs tell\n", t.name, serving, proxies)
	}
	return nil
}

// fillMaterialized computes and stores the answers that the policy materializes, and reports how many rows are left. If
// it is interrupted, the next run continues.
func (s *session) fillMaterialized(t targetDatabase, policyBuild compiledPolicy) error {
	lastReport := time.Time{}
	return migrations.FillAll(s.ctx, t.conn, policyBuild.plan.Fills(), func(f migrations.Fill, remainingRows int64) {
		if remainingRows == 0 || time.Since(lastReport) > time.Second {
			lastReport = time.Now()
			fmt.Fprintf(s.err, "database %s: materializing the consents of %s: %d rows left\n",
				t.name, f.Relation, remainingRows)
		}
	})
}

// printWarnings prints the warnings about a policy on stderr, so that they do not mix with the output.
func (s *session) printWarnings(t targetDatabase, policyBuild compiledPolicy) error {
	doc, err := policy.Load(t.config.Policy)
	if err != nil {
		return err
	}
	warnings, err := s.lintPolicy(t, doc, policyBuild)
	for _, w := range warnings {
		fmt.Fprintf(s.err, "%s %s\n", s.paint("33", "warning:"), w)
	}
	return err
}

// migrateResult is the result of migrate in JSON output.
type migrateResult struct {
	Database string              `json:"database"`
	Result   string              `json:"result"`
	Policy   string              `json:"policy"`
	Changed  *migrations.Changed `json:"changed,omitempty"`
}

func (s *session) printMigrateResult(database, label, policy string, changed *migrations.Changed) error {
	if s.jsonOutput {
		return s.printJSON(migrateResult{database, label, policy, changed})
	}
	if policy != "" {
		label += ", policy " + shortVersion(policy)
	}
	if changed != nil {
		label += fmt.Sprintf(": %d of %d objects changed, of %d of %d tables", changed.Objects, changed.AllObjects,
			changed.Tables, changed.AllTables)
	}
	_, err := fmt.Fprintf(s.out, "database %s: %s\n", database, label)
	return err
}

func (s *session) migrationOptions(db *config.Database) (migrations.Options, error) {
	agent, err := config.ReadSecret(db.Secrets.Agent)
	if err != nil {
		return migrations.Options{}, err
	}
	controlSecret, err := config.ReadSecret(db.Secrets.Control)
	if err != nil {
		return migrations.Options{}, err
	}
	return migrations.Options{
		OnWait: func(holders []migrations.Holder) {
			for _, h := range holders {
				fmt.Fprintf(s.err, "database %s: nothing is changed yet; waiting for %s\n", db.Name, h)
			}
		},
		AgentRole: db.Roles.Agent, ControlRole: db.Roles.Control, ReaderRole: db.Roles.Reader, RowsRole: db.Roles.Rows,
		AgentPassword: agent, ControlPassword: controlSecret,
	}, nil
}

// shortVersion returns the beginning of a policy version, for output that people read.
func shortVersion(version string) string { return version[:min(len(version), 12)] }
