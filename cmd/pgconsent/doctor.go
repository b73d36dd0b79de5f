package main

import (
	"fmt"

	"github.com/pgconsent/pgconsent/doctor"
)

type doctorCmd struct {
	Database string `placeholder:"NAME" help:"Only this database. Default: all."`
}

func (doctorCmd) Help() string {
	return `Looks at the catalogs as roles.control, and tries as roles.agent what must not work. Changes nothing. Exit code 1 if a
database is unsafe: serve refuses its agents then.

  pgconsent doctor
  pgconsent doctor --json | jq '.[] | select(.severity == "unsafe")'`
}

// report is a finding with its database.
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
		built, err := s.compile(t)
		if err != nil {
			return err
		}
		roles := t.config.Roles
		subject := doctor.Subject{AgentRole: roles.Agent, ControlRole: roles.Control, ReaderRole: roles.Reader,
			Policy: built.policy, Snapshot: built.snapshot, Plan: built.plan}
		found, err := doctor.Examine(s.ctx, t.conn, subject)
		if err != nil {
			return err
		}
		agent, err := c.ConnString(t.config, roles.Agent, t.config.Secrets.Agent)
		if err != nil {
			return err
		}
		probed, err := doctor.Probe(s.ctx, t.conn, agent, subject)
		if err != nil {
			return err
		}
		for _, f := range append(found, probed...) {
			reports = append(reports, report{t.name, f})
		}
		return nil
	})
	if err != nil {
		return err
	}
	unsafe := 0
	for _, r := range reports {
		if r.Severity == doctor.Unsafe {
			unsafe++
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
	return nil
}

func (s *session) findings(reports []report) {
	last := ""
	for _, r := range reports {
		if r.Database != last {
			fmt.Fprintf(s.out, "database %s\n", r.Database)
			last = r.Database
		}
		mark, colour := "ok", "32"
		switch r.Severity {
		case doctor.Unsafe:
			mark, colour = "UNSAFE", "31;1"
		case doctor.Warning:
			mark, colour = "warning", "33"
		case doctor.Hardening:
			mark, colour = "harden", "36"
		}
		fmt.Fprintf(s.out, "  %s  %s\n", s.paint(colour, fmt.Sprintf("%-7s", mark)), r.What)
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
