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
	return `Looks at the catalogs as roles.control, tries as roles.agent what must not work, and whether the server lets owners in
without a password. Then at the records of the audit: whether they can be written, and end as they were anchored. Changes
nothing. Exit code 1 if a database is unsafe, 3 if nothing is but something could not be told: serve refuses its agents
then. Advice says what could be faster, and what
keeps searches from their indexes; it changes no exit code.

  pgconsent doctor
  pgconsent doctor --json | jq '.[] | select(.severity == "unsafe")'`
}

// report is a finding with its database; "": it is about all of them.
type report struct {
	Database string `json:"database"`
	doctor.Finding
}

func (d doctorCmd) Run(s *session) error {
	c, err := s.load()
	if err != nil {
		return err
	}
	reports := []report{}
	err = s.each(c, d.Database, asControl, func(t target) error {
		built, err := s.compileServed(t)
		var misfits policy.Errors
		if errors.As(err, &misfits) {
			for _, m := range misfits {
				reports = append(reports, report{t.name, doctor.Finding{ID: "policy", Severity: doctor.Unsafe, What: m.Error(),
					Fix: "Put the policy right, or the database, and run pgconsent doctor again: the rest could not be checked."}})
			}
			return nil
		}
		if err != nil {
			return err
		}
		roles := t.config.Roles
		subject := doctor.Target{AgentRole: roles.Agent, ControlRole: roles.Control, ReaderRole: roles.Reader,
			RowsRole: roles.Rows,
			Policy:   built.policy, Snapshot: built.snapshot, Plan: built.plan}
		found, err := doctor.Examine(s.ctx, t.conn, subject)
		if err != nil {
			return err
		}
		missing, err := missingIndexes(t, built)
		if err != nil {
			return err
		}
		found = append(found, missing...)
		failing, err := failingCalls(s.ctx, t, built)
		if err != nil {
			return err
		}
		found = append(found, failing...)
		worth, err := worthKeeping(s.ctx, t, built)
		if err != nil {
			return err
		}
		found = append(found, worth...)
		found = append(found, lookAtConsent(s.ctx, c, t.name, built.policy.HasLifecycles())...)
		tried, err := d.try(s, c, t, subject)
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		if err != nil {
			// What the examination found may be why.
			tried = append(tried, doctor.Finding{
				ID: "probe", Severity: doctor.Unknown, What: "it could not be tried whether the policy is enforced: " + message(err),
				Fix: "Put right what stands above, if anything does; upstream, roles and secrets of the " +
					"configuration say how pgconsent logs in."})
		}
		for _, f := range append(found, tried...) {
			reports = append(reports, report{t.name, f})
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, f := range lookAtAudit(s.ctx, c) {
		reports = append(reports, report{"", f})
	}
	unsafe, unknown := 0, 0
	for _, r := range reports {
		switch r.Severity {
		case doctor.Unsafe:
			unsafe++
		case doctor.Unknown:
			unknown++
		}
	}
	if s.json {
		if err := s.print(reports); err != nil {
			return err
		}
	} else {
		s.findings(reports)
	}
	if unsafe > 0 {
		if !s.json {
			fmt.Fprintf(s.out, "\n%d unsafe: agents are not served until that is fixed\n", unsafe)
		}
		return errSilent
	}
	if unknown > 0 {
		if !s.json {
			fmt.Fprintf(s.out, "\n%d could not be told: agents are not served until it can\n", unknown)
		}
		return errUntold
	}
	return nil
}

// missingIndexes are those that policy check names. The policy is enforced without them.
func missingIndexes(t target, built compiled) ([]doctor.Finding, error) {
	doc, err := policy.Load(t.config.Policy)
	if err != nil {
		return nil, err
	}
	warnings, err := policy.MissingIndexes(doc, built.snapshot, policy.WithViews(rewrite.Definition))
	if err != nil {
		return nil, err
	}
	var found []doctor.Finding
	for _, w := range warnings {
		found = append(found, doctor.Finding{ID: "indexes", Severity: doctor.Warning, What: w.Message, Fix: w.Suggestion})
	}
	if len(found) == 0 {
		found = []doctor.Finding{{ID: "indexes", Severity: doctor.OK, What: "every lookup of a rule has an index"}}
	}
	return found, nil
}

// failingCalls are the functions and triggers of which policy check says that they fail for agents: an agent is told
// that permission is denied, and no more. The policy is enforced.
func failingCalls(ctx context.Context, t target, built compiled) ([]doctor.Finding, error) {
	doc, err := policy.Load(t.config.Policy)
	if err != nil {
		return nil, err
	}
	var around policy.LintContext
	if around.FunctionUses, err = pgcatalog.Used(ctx, t.conn); err != nil {
		return nil, err
	}
	if around.Triggers, err = pgcatalog.Triggers(ctx, t.conn); err != nil {
		return nil, err
	}
	warnings, err := policy.FailingCalls(doc, built.snapshot, around, policy.WithViews(rewrite.Definition))
	if err != nil {
		return nil, err
	}
	var found []doctor.Finding
	for _, w := range warnings {
		found = append(found, doctor.Finding{ID: "calls", Severity: doctor.Warning,
			What: fmt.Sprintf("%s:%d:%d: %s", w.File, w.Line, w.Column, w.Message), Fix: w.Suggestion})
	}
	if len(found) == 0 {
		found = []doctor.Finding{{ID: "calls", Severity: doctor.OK,
			What: "no function or trigger is known to reach for what agents may not"}}
	}
	return found, nil
}

// worthKeeping names the consents of large tables whose answers pay to be kept. In the mode both a predicate in the
// text looks at the subjects whatever is kept.
func worthKeeping(ctx context.Context, t target, built compiled) ([]doctor.Finding, error) {
	if !t.doors {
		return nil, nil
	}
	doc, err := policy.Load(t.config.Policy)
	if err != nil {
		return nil, err
	}
	sizes, err := pgcatalog.Sizes(ctx, t.conn, rls.Tables(built.policy))
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return nil, nil // pgconsent migrate has not run, which another check says
	}
	if err != nil {
		return nil, err
	}
	worth, err := policy.WorthMaterializing(doc, built.snapshot, sizes, policy.WithViews(rewrite.Definition))
	if err != nil {
		return nil, err
	}
	var found []doctor.Finding
	for _, w := range worth {
		found = append(found, doctor.Finding{ID: "keep", Severity: doctor.Advice,
			What: fmt.Sprintf("%s:%d:%d: %s", w.File, w.Line, w.Column, w.Message),
			Fix:  w.Suggestion + " and run pgconsent migrate (docs/reference/policy-kept.md says what writers pay)"})
	}
	return found, nil
}

// try logs in as the clients would, and as the agent role.
func (doctorCmd) try(s *session, c *config.Config, t target, subject doctor.Target) ([]doctor.Finding, error) {
	secure, err := c.Upstream.ClientTLS()
	if err != nil {
		return nil, err
	}
	network, address := c.Upstream.Dial()
	found, err := doctor.CheckLogins(s.ctx, doctor.Upstream{
		Network: network, Address: address, TLS: secure, Database: t.config.Name}, t.config.Owners, subject)
	if err != nil {
		return found, err
	}
	agent, err := c.ConnString(t.config, t.config.Roles.Agent, t.config.Secrets.Agent)
	if err != nil {
		return found, err
	}
	probed, err := doctor.Probe(s.ctx, t.conn, agent, subject)
	return append(found, probed...), err
}

func (s *session) findings(reports []report) {
	last := ""
	for _, r := range reports {
		if r.Database != last && r.Database == "" {
			fmt.Fprintln(s.out, "all databases")
		} else if r.Database != last {
			fmt.Fprintf(s.out, "database %s\n", r.Database)
		}
		last = r.Database
		mark, colour := "ok", "32"
		switch r.Severity {
		case doctor.Unsafe:
			mark, colour = "UNSAFE", "31;1"
		case doctor.Unknown:
			mark, colour = "UNKNOWN", "31;1"
		case doctor.NoSignedPath:
			mark, colour = "NO GATE", "31"
		case doctor.Warning:
			mark, colour = "warning", "33"
		case doctor.Hardening:
			mark, colour = "harden", "36"
		case doctor.Advice:
			mark, colour = "advice", "36"
		}
		fmt.Fprintf(s.out, "  %s  %s: %s\n", s.paint(colour, fmt.Sprintf("%-7s", mark)), r.ID, r.What)
		if r.Fix != "" && r.Severity != doctor.OK {
			fmt.Fprintf(s.out, "           fix: %s\n", r.Fix)
		}
	}
}

func (s *session) paint(colour, text string) string {
	if !s.terminal {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
