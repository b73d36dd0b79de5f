package main

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

type agentCmd struct {
	Add     agentAddCmd     `cmd:"" help:"Give an agent of the configuration a password, a new one if it has one."`
	List    agentListCmd    `cmd:"" help:"Agents, their databases, and whether they can log in."`
	Disable agentDisableCmd `cmd:"" help:"Take an agent's login away; its sessions end."`
}

type agentAddCmd struct {
	Name         string `arg:"" help:"As in agents: of the configuration."`
	PasswordFile string `placeholder:"FILE" help:"Take the password from this file (mode 0600) instead of making one."`
}

func (agentAddCmd) Help() string {
	return `The password is printed once and kept nowhere: the credentials file holds a verifier from which it cannot be
derived. A running serve notices at once. An agent with auth: jwt or cert has none, and is enabled again if it was
disabled.

  pgconsent agent add chat
  pgconsent agent add chat --password-file chat.pw`
}

func (a agentAddCmd) Run(s *session) error {
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	agent, ok := c.Agents[a.Name]
	if !ok {
		return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonIdentity, "there is no agent %q in %s", a.Name, c.Path).
			WithHint("List it first, with what its credential is worth: agents: { %s: { database: %s, attributes: { user: … } } }",
				a.Name, slices.Sorted(maps.Keys(c.Databases))[0])
	}
	if agent.Auth != config.AuthPassword {
		return a.enableWithoutPassword(s, c, agent)
	}
	password, err := passwordFrom(a.PasswordFile)
	if err != nil {
		return err
	}
	verifier, err := config.NewVerifier(password)
	if err != nil {
		return err
	}
	if err := config.SetCredential(c.Credentials, config.Credential{Name: a.Name, Verifier: verifier}); err != nil {
		return err
	}
	if a.PasswordFile != "" {
		password = "" // the operator already has the password, in the file
	}
	dsn := clientDSN(c, a.Name, password, agent.Database)
	if s.jsonOutput {
		return s.printJSON(map[string]string{"agent": a.Name, "database": agent.Database, "dsn": dsn})
	}
	_, err = fmt.Fprintln(s.out, dsn)
	return err
}

// passwordFrom returns the password in a file, or a random password if the file name is "".
func passwordFrom(file string) (string, error) {
	if file != "" {
		return config.ReadSecret(file)
	}
	random := make([]byte, 24)
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(random), nil
}

// enableWithoutPassword allows an agent to log in with tokens of an identity provider, or with a certificate.
func (a agentAddCmd) enableWithoutPassword(s *session, c *config.Config, agent *config.Agent) error {
	if a.PasswordFile != "" {
		hint := "It logs in with its certificate."
		if agent.Auth == config.AuthToken {
			hint = fmt.Sprintf("A token of %s is its password.", c.JWT.Issuer)
		}
		return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonIdentity,
			"agent %s has auth: %s, and no password of its own", a.Name, agent.Auth).
			WithHint("%s For a password of its own write auth: scram.", hint)
	}
	if err := config.EnableWithoutPassword(c.Credentials, a.Name); err != nil {
		return err
	}
	dsn := clientDSN(c, a.Name, "", agent.Database)
	if s.jsonOutput {
		return s.printJSON(map[string]string{"agent": a.Name, "database": agent.Database, "dsn": dsn})
	}
	_, err := fmt.Fprintln(s.out, dsn)
	return err
}

// clientDSN returns the connection string by which clients reach serve, as far as the configuration tells its parts. If
// serve listens on several addresses, it has the first.
func clientDSN(c *config.Config, name, password, database string) string {
	address := c.Listen.First()
	u := url.URL{Scheme: "postgres", User: url.User(name), Host: address, Path: "/" + database}
	if password != "" {
		u.User = url.UserPassword(name, password)
	}
	if config.IsSocketPath(address) {
		folder, name := filepath.Split(address)
		query := url.Values{"host": {filepath.Clean(folder)}}
		if port, ok := strings.CutPrefix(name, ".s.PGSQL."); ok {
			query.Set("port", port)
		}
		u.Host, u.RawQuery = "", query.Encode()
	} else if host, port, err := net.SplitHostPort(address); err == nil && host == "" {
		u.Host = net.JoinHostPort("localhost", port)
	}
	return u.String()
}

type agentListCmd struct{}

// agentInfo describes an agent as "agent list" prints it.
type agentInfo struct {
	Name     string `json:"name"`
	Database string `json:"database"`
	Login    string `json:"login"`
}

// loginStates returns for each agent of the configuration whether it can log in: "yes", "disabled" or "none".
func loginStates(c *config.Config) (map[string]string, error) {
	lines, err := config.ReadCredentials(c.Credentials)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for name, a := range c.Agents {
		if out[name] = "none"; a.Auth != config.AuthPassword {
			out[name] = "yes"
		}
	}
	for _, l := range lines {
		if _, ok := c.Agents[l.Name]; !ok {
			continue
		}
		if out[l.Name] = "yes"; l.Disabled {
			out[l.Name] = "disabled"
		}
	}
	return out, nil
}

func (agentListCmd) Run(s *session) error {
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	login, err := loginStates(c)
	if err != nil {
		return err
	}
	agents := []agentInfo{}
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		agents = append(agents, agentInfo{name, c.Agents[name].Database, login[name]})
	}
	if s.jsonOutput {
		return s.printJSON(agents)
	}
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "agent\tdatabase\tlogin")
	for _, a := range agents {
		fmt.Fprintf(w, "%s\t%s\t%s\n", a.Name, a.Database, a.Login)
	}
	return w.Flush()
}

type agentDisableCmd struct {
	Name string `arg:"" help:"The agent."`
}

func (agentDisableCmd) Help() string {
	return `"pgconsent agent add" gives it a new password and enables it again. The tokens or
certificates of an agent with auth: jwt or cert are refused until "pgconsent agent add".`
}

func (a agentDisableCmd) Run(s *session) error {
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	if agent, ok := c.Agents[a.Name]; ok && agent.Auth != config.AuthPassword {
		err = config.DisableWithoutPassword(c.Credentials, a.Name, agent.Auth)
	} else {
		err = config.DisableCredential(c.Credentials, a.Name)
	}
	if err != nil {
		return err
	}
	if s.jsonOutput {
		return s.printJSON(map[string]string{"agent": a.Name, "login": "disabled"})
	}
	_, err = fmt.Fprintf(s.out, "%s can no longer log in\n", a.Name)
	return err
}
