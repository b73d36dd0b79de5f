package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/internal/tool/doctor"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

type doctorCmd struct {
	Database string `placeholder:"NAME" help:"Only this database. Default: all."`
}

func (doctorCmd) Help() string {
	return `Reads the catalogs as roles.control, tries as roles.agent what must not work, and checks whether the server lets owners in
without a password. Then it checks the audit: whether records can be written, and whether the newest is the anchored one.
Changes nothing. Exit code 1 if a database is unsafe, 3 if none is but a check could not be made: serve refuses its agents
then. Advice says what could be faster, and what
keeps searches from their indexes; it changes no exit code.

  pgconsent doctor
  pgconsent doctor --json | jq '.[] | select(.severity == "unsafe")'`
}

// databaseFinding is a finding, and the database that it is about; "": all databases.
type databaseFinding struct {
	Database string `json:"database"`
	doctor.Finding
}

func (d doctorCmd) Run(s *session) error {
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	reports := []databaseFinding{}
	err = s.forEachDatabase(c, d.Database, asControl, func(t targetDatabase) error {
		policyBuild, err := s.compileServedPolicy(t)
		var policyProblems policy.Errors
		if errors.As(err, &policyProblems) {
			for _, m := range policyProblems {
				reports = append(reports, databaseFinding{t.name,
					doctor.Finding{ID: "policy", Severity: doctor.SeverityUnsafe, Problem: m.Error(),
						Fix: "Correct the policy or the database, and run pgconsent doctor again: the other checks could not be made."}})
			}
			return nil
		}
		if err != nil {
			return err
		}
		roles := t.config.Roles
		subject := doctor.Target{AgentRole: roles.Agent, ControlRole: roles.Control, ReaderRole: roles.Reader,
			RowsRole: roles.Rows, Owners: append([]string{}, t.config.Owners...),
			Policy: policyBuild.policy, Snapshot: policyBuild.snapshot, Plan: policyBuild.plan}
		findings, err := doctor.RunChecks(s.ctx, t.conn, subject)
		if err != nil {
			return err
		}
		missingIndexes, err := findMissingIndexes(t, policyBuild)
		if err != nil {
			return err
		}
		findings = append(findings, missingIndexes...)
		failingCalls, err := findFailingCalls(s.ctx, t, policyBuild)
		if err != nil {
			return err
		}
		findings = append(findings, failingCalls...)
		materializeAdvice, err := findWorthMaterializing(s.ctx, t, policyBuild)
		if err != nil {
			return err
		}
		findings = append(findings, materializeAdvice...)
		findings = append(findings, checkConsent(s.ctx, c, t.name, policyBuild.policy.HasLifecycles())...)
		loginFindings, err := d.tryLogins(s, c, t, subject)
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		if err != nil {
			// One of the findings so far may be the reason for the error.
			loginFindings = append(loginFindings, doctor.Finding{
				ID: "probe", Severity: doctor.SeverityUnknown, Problem: "it could not be tried whether the policy is enforced: " +
					errorText(err),
				Fix: "Correct the findings above, if there are any; upstream, roles and secrets of the " +
					"configuration say how pgconsent logs in."})
		}
		for _, f := range append(findings, loginFindings...) {
			reports = append(reports, databaseFinding{t.name, f})
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, f := range checkAudit(s.ctx, c) {
		reports = append(reports, databaseFinding{"", f})
	}
	unsafeCount, unknownCount := 0, 0
	for _, r := range reports {
		switch r.Severity {
		case doctor.SeverityUnsafe:
			unsafeCount++
		case doctor.SeverityUnknown:
			unknownCount++
		}
	}
	if s.jsonOutput {
		if err := s.printJSON(reports); err != nil {
			return err
		}
	} else {
		s.printFindings(reports)
	}
	if unsafeCount > 0 {
		if !s.jsonOutput {
			fmt.Fprintf(s.out, "\n%d unsafe: agents are not served until they are fixed\n", unsafeCount)
		}
		return errSilent
	}
	if unknownCount > 0 {
		if !s.jsonOutput {
			fmt.Fprintf(s.out, "\n%d could not be checked: agents are not served until they can be\n", unknownCount)
		}
		return errUnknown
	}
	return nil
}

// findMissingIndexes reports the indexes that "policy check" suggests. Without them, enforcing the policy takes longer.
func findMissingIndexes(t targetDatabase, policyBuild compiledPolicy) ([]doctor.Finding, error) {
	doc, err := policy.Load(t.config.Policy)
	if err != nil {
		return nil, err
	}
	warnings, err := policy.MissingIndexes(doc, policyBuild.snapshot, policy.WithViews(rewrite.RewriteViewQuery))
	if err != nil {
		return nil, err
	}
	var findings []doctor.Finding
	for _, w := range warnings {
		findings = append(findings, doctor.Finding{ID: "indexes", Severity: doctor.SeverityWarning, Problem: w.Message,
			Fix: w.Suggestion})
	}
	if len(findings) == 0 {
		findings = []doctor.Finding{{ID: "indexes", Severity: doctor.SeverityOK, Problem: "every lookup of a rule has an index"}}
	}
	return findings, nil
}

// findFailingCalls reports functions and triggers that fail for agents, as "policy check" does. Agents would only get
// "permission denied", and the policy is enforced anyway.
func findFailingCalls(ctx context.Context, t targetDatabase, policyBuild compiledPolicy) ([]doctor.Finding, error) {
	doc, err := policy.Load(t.config.Policy)
	if err != nil {
		return nil, err
	}
	var lintContext policy.LintContext
	if lintContext.FunctionUses, err = pgcatalog.FunctionUses(ctx, t.conn); err != nil {
		return nil, err
	}
	if lintContext.Triggers, err = pgcatalog.Triggers(ctx, t.conn); err != nil {
		return nil, err
	}
	warnings, err := policy.FailingCalls(doc, policyBuild.snapshot, lintContext,
		policy.WithViews(rewrite.RewriteViewQuery))
	if err != nil {
		return nil, err
	}
	var findings []doctor.Finding
	for _, w := range warnings {
		findings = append(findings, doctor.Finding{ID: "calls", Severity: doctor.SeverityWarning,
			Problem: fmt.Sprintf("%s:%d:%d: %s", w.File, w.Line, w.Column, w.Message), Fix: w.Suggestion})
	}
	if len(findings) == 0 {
		findings = []doctor.Finding{{ID: "calls", Severity: doctor.SeverityOK,
			Problem: "no function or trigger is known to reach for what agents may not"}}
	}
	return findings, nil
}

// findWorthMaterializing reports consent rules on large tables for which "materialize: true" is worth it. It reports
// nothing with enforcement: both, since the predicate in the rewritten statement then reads the subjects anyway.
func findWorthMaterializing(ctx context.Context, t targetDatabase, policyBuild compiledPolicy) ([]doctor.Finding,
	error) {
	if !t.autoPath {
		return nil, nil
	}
	doc, err := policy.Load(t.config.Policy)
	if err != nil {
		return nil, err
	}
	sizes, err := pgcatalog.Sizes(ctx, t.conn, rls.PredicateTables(policyBuild.policy))
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return nil, nil // pgconsent migrate has not run yet; another check reports that
	}
	if err != nil {
		return nil, err
	}
	adviceErrors, err := policy.WorthMaterializing(doc, policyBuild.snapshot, sizes,
		policy.WithViews(rewrite.RewriteViewQuery))
	if err != nil {
		return nil, err
	}
	var findings []doctor.Finding
	for _, w := range adviceErrors {
		findings = append(findings, doctor.Finding{ID: "could_materialize", Severity: doctor.SeverityAdvice,
			Problem: fmt.Sprintf("%s:%d:%d: %s", w.File, w.Line, w.Column, w.Message),
			Fix:     w.Suggestion + " and run pgconsent migrate (docs/reference/policy-materialize.md says what writers pay)"})
	}
	return findings, nil
}

// tryLogins logs in as clients would, and as the role of agents, and reports what fails.
func (doctorCmd) tryLogins(s *session, c *config.Config, t targetDatabase, subject doctor.Target) ([]doctor.Finding, error) {
	tlsConfig, err := c.Upstream.ClientTLS()
	if err != nil {
		return nil, err
	}
	network, address := c.Upstream.NetworkAddress()
	findings, err := doctor.CheckLogins(s.ctx, doctor.Upstream{
		Network: network, Address: address, TLS: tlsConfig, Database: t.config.Name}, t.config.Owners, subject)
	if err != nil {
		return findings, err
	}
	agent, err := c.ConnString(t.config, t.config.Roles.Agent, t.config.Secrets.Agent)
	if err != nil {
		return findings, err
	}
	probeFindings, err := doctor.RunProbes(s.ctx, t.conn, agent, subject)
	return append(findings, probeFindings...), err
}

func (s *session) printFindings(reports []databaseFinding) {
	lastDatabase := ""
	for _, r := range reports {
		if r.Database != lastDatabase && r.Database == "" {
			fmt.Fprintln(s.out, "all databases")
		} else if r.Database != lastDatabase {
			fmt.Fprintf(s.out, "database %s\n", r.Database)
		}
		lastDatabase = r.Database
		label, colour := "ok", "32"
		switch r.Severity {
		case doctor.SeverityUnsafe:
			label, colour = "UNSAFE", "31;1"
		case doctor.SeverityUnknown:
			label, colour = "UNKNOWN", "31;1"
		case doctor.SeverityNoSignedPath:
			label, colour = "UNSIGNED", "31"
		case doctor.SeverityWarning:
			label, colour = "warning", "33"
		case doctor.SeverityHardening:
			label, colour = "harden", "36"
		case doctor.SeverityAdvice:
			label, colour = "advice", "36"
		}
		fmt.Fprintf(s.out, "  %s  %s: %s\n", s.paint(colour, fmt.Sprintf("%-7s", label)), r.ID, r.Problem)
		if r.Fix != "" && r.Severity != doctor.SeverityOK {
			fmt.Fprintf(s.out, "           fix: %s\n", r.Fix)
		}
	}
}

// paint returns a text in a colour if stdout is a terminal that shows colours.
func (s *session) paint(colour, text string) string {
	if !s.stdoutIsTerminal {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
