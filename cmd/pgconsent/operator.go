package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

type operatorCmd struct {
	Add     operatorAddCmd     `cmd:"" help:"Give an operator of the configuration a password, a new one if there is one."`
	List    operatorListCmd    `cmd:"" help:"Operators, and whether they can log in."`
	Disable operatorDisableCmd `cmd:"" help:"Take an operator's login away, also from sessions that are open."`
}

type operatorAddCmd struct {
	Name         string `arg:"" help:"As in admin.users of the configuration."`
	PasswordFile string `placeholder:"FILE" help:"Take the password from this file (mode 0600) instead of making one."`
}

func (operatorAddCmd) Help() string {
	return `Operators use the admin console: psql and the database name pgconsent, where agents connect. It shows sessions,
metrics and versions, and takes RELOAD, PAUSE, RESUME and KILL; it has no rows. List the operator first:

  admin: { users: [ops] }

The password is printed once and kept nowhere. A running serve notices at once; after a change of the configuration
it needs SIGHUP.

  pgconsent operator add ops
  psql "$(pgconsent operator add ops)" -c "SHOW SESSIONS"`
}

func (a operatorAddCmd) Run(s *session) error {
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	if !slices.Contains(c.Admin.Users, a.Name) {
		return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonIdentity,
			"there is no operator %q in %s", a.Name, c.Path).
			WithHint("List it first: admin: { users: [%s] }", strings.Join(append(c.Admin.Users, a.Name), ", "))
	}
	password, err := passwordFrom(a.PasswordFile)
	if err != nil {
		return err
	}
	verifier, err := config.NewVerifier(password)
	if err != nil {
		return err
	}
	if err := config.SetCredential(c.Admin.Credentials, config.Credential{Name: a.Name, Verifier: verifier}); err != nil {
		return err
	}
	if a.PasswordFile != "" {
		password = "" // the operator already has the password, in the file
	}
	dsn := clientDSN(c, a.Name, password, config.AdminDatabase)
	if s.jsonOutput {
		return s.printJSON(map[string]string{"operator": a.Name, "dsn": dsn})
	}
	_, err = fmt.Fprintln(s.out, dsn)
	return err
}

type operatorListCmd struct{}

// operatorInfo describes an operator as "operator list" prints it.
type operatorInfo struct {
	Name  string `json:"name"`
	Login string `json:"login"`
}

func (operatorListCmd) Run(s *session) error {
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	lines, err := config.ReadCredentials(c.Admin.Credentials)
	if err != nil {
		return err
	}
	operators := []operatorInfo{}
	for _, name := range slices.Sorted(slices.Values(c.Admin.Users)) {
		o := operatorInfo{name, "none"}
		for _, l := range lines {
			switch {
			case l.Name == name && l.Disabled:
				o.Login = "disabled"
			case l.Name == name:
				o.Login = "yes"
			}
		}
		operators = append(operators, o)
	}
	if s.jsonOutput {
		return s.printJSON(operators)
	}
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "operator\tlogin")
	for _, o := range operators {
		fmt.Fprintf(w, "%s\t%s\n", o.Name, o.Login)
	}
	return w.Flush()
}

type operatorDisableCmd struct {
	Name string `arg:"" help:"The operator."`
}

func (operatorDisableCmd) Help() string {
	return `A session of the operator that is open runs no further command. "pgconsent operator add" gives a new password
and enables the login again. Without operators in admin.users there is no admin console.`
}

func (a operatorDisableCmd) Run(s *session) error {
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	if err := config.DisableCredential(c.Admin.Credentials, a.Name); err != nil {
		return err
	}
	if s.jsonOutput {
		return s.printJSON(map[string]string{"operator": a.Name, "login": "disabled"})
	}
	_, err = fmt.Fprintf(s.out, "%s can no longer log in\n", a.Name)
	return err
}
