package main

import (
	"errors"
	"fmt"

	"github.com/pgconsent/pgconsent/policy"
)

type policyCmd struct {
	Check policyCheckCmd `cmd:"" help:"Lint the policy, and compare it with the database."`
}

type policyCheckCmd struct {
	File     string `arg:"" optional:"" help:"A policy by itself, compared with no database. Default: those of the configuration."`
	Database string `placeholder:"NAME" help:"Only this database. Default: all."`
	Offline  bool   `help:"Do not connect: unknown tables and columns are not found."`
}

func (policyCheckCmd) Help() string {
	return `Every problem is printed with its file, line and column. Exit code 1 if there is one.

  pgconsent policy check
  pgconsent policy check --offline
  pgconsent policy check worlds/arcive/policy.yaml`
}

// verdictOn is what policy check found about one policy.
type verdictOn struct {
	Database string          `json:"database,omitempty"`
	Policy   string          `json:"policy"`
	Compared bool            `json:"compared"` // with a database
	Version  string          `json:"version,omitempty"`
	Problems []*policy.Error `json:"problems"`
	Warnings []string        `json:"warnings"`
}

func (p policyCheckCmd) Run(s *session) error {
	var found []verdictOn
	if p.File != "" {
		_, err := policy.Load(p.File)
		v := verdictOn{Policy: p.File}
		if err := v.take(err); err != nil {
			return err
		}
		found = append(found, v)
	} else {
		c, err := s.load()
		if err != nil {
			return err
		}
		if p.Offline {
			names, err := chosen(c, p.Database)
			if err != nil {
				return err
			}
			for _, name := range names {
				v := verdictOn{Database: name, Policy: c.Databases[name].Policy}
				_, err := policy.Load(v.Policy)
				if err := v.take(err); err != nil {
					return err
				}
				found = append(found, v)
			}
		} else {
			err := s.each(c, p.Database, asMigrate, func(t target) error {
				v := verdictOn{Database: t.name, Policy: t.config.Policy, Compared: true}
				built, err := s.compile(t)
				if err == nil {
					v.Version, v.Warnings = built.policy.Version(), built.policy.Warnings()
				}
				if err := v.take(err); err != nil {
					return err
				}
				found = append(found, v)
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return s.verdicts(found)
}

// take keeps the problems of a policy and returns any other error.
func (v *verdictOn) take(err error) error {
	var problems policy.Errors
	var one *policy.Error
	v.Problems = []*policy.Error{}
	switch {
	case err == nil:
	case errors.As(err, &problems):
		v.Problems = problems
	case errors.As(err, &one):
		v.Problems = []*policy.Error{one}
	default:
		return err
	}
	return nil
}

func (s *session) verdicts(found []verdictOn) error {
	bad := false
	for _, v := range found {
		bad = bad || len(v.Problems) > 0
	}
	if s.json {
		if err := s.print(found); err != nil {
			return err
		}
	} else {
		for _, v := range found {
			for _, problem := range v.Problems {
				fmt.Fprintln(s.out, s.paint("31", problem.Error()))
			}
			for _, w := range v.Warnings {
				fmt.Fprintf(s.out, "%s: %s %s\n", v.Policy, s.paint("33", "warning:"), w)
			}
			switch {
			case len(v.Problems) > 0:
			case v.Compared:
				fmt.Fprintf(s.out, "%s: %s for database %s, version %s\n", v.Policy, s.paint("32", "ok"), v.Database, short(v.Version))
			default:
				fmt.Fprintf(s.out, "%s: %s, not compared with a database\n", v.Policy, s.paint("32", "ok"))
			}
		}
	}
	if bad {
		return errSilent
	}
	return nil
}
