package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

type tokenCmd struct {
	Add    tokenAddCmd    `cmd:"" help:"Make a token and print it, once."`
	List   tokenListCmd   `cmd:"" help:"List tokens with their owners, and whether they are valid."`
	Revoke tokenRevokeCmd `cmd:"" help:"Make a token invalid."`
}

type tokenAddCmd struct {
	Name     string `arg:"" help:"The token's name, as records have it."`
	Role     string `required:"" enum:"subject,admin,agent,system,operator" placeholder:"ROLE" help:"subject, admin, agent, system or operator."`
	Subject  string `placeholder:"ID" help:"The data subject; with --role subject."`
	Agent    string `placeholder:"NAME" help:"An agent of the configuration; with --role agent."`
	Database string `placeholder:"NAME" help:"As in databases: of the configuration; needed where there are several."`
	Replace  bool   `help:"Replace the token of this name, which is then no longer valid."`
}

func (tokenAddCmd) Help() string {
	return `The token is printed once and kept nowhere: the file http.tokens holds its SHA-256. A running serve notices at once.

  pgconsent token add alice --role subject --subject alice
  pgconsent token add backend --role system
  pgconsent token add assistant --role agent --agent assistant
  pgconsent token add auditor --role admin`
}

func (a tokenAddCmd) Run(s *session) error {
	c, path, err := s.tokensFilePath()
	if err != nil {
		return err
	}
	token, sum, err := identity.NewToken()
	if err != nil {
		return err
	}
	entry := identity.Token{Name: a.Name, Role: identity.Role(a.Role), Subject: a.Subject, Agent: a.Agent,
		Database: a.Database, SHA256: sum}
	if err := identity.AddToken(path, c, entry, a.Replace); err != nil {
		return err
	}
	if s.jsonOutput {
		return s.printJSON(map[string]string{"name": a.Name, "role": a.Role, "token": token})
	}
	_, err = fmt.Fprintln(s.out, token)
	return err
}

type tokenListCmd struct{}

// tokenJSON is a token in JSON output.
type tokenJSON struct {
	Name     string `json:"name"`
	Role     string `json:"role"`
	Subject  string `json:"subject,omitempty"`
	Agent    string `json:"agent,omitempty"`
	Database string `json:"database,omitempty"`
	Valid    bool   `json:"valid"`
}

func (tokenListCmd) Run(s *session) error {
	_, path, err := s.tokensFilePath()
	if err != nil {
		return err
	}
	tokens, err := identity.ReadTokens(path)
	if err != nil {
		return err
	}
	tokenList := []tokenJSON{}
	for _, t := range tokens {
		tokenList = append(tokenList, tokenJSON{t.Name, string(t.Role), t.Subject, t.Agent, t.Database, !t.Disabled})
	}
	if s.jsonOutput {
		return s.printJSON(tokenList)
	}
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "token\trole\tof\tdatabase\tvalid")
	for _, t := range tokenList {
		validity := "yes"
		if !t.Valid {
			validity = "revoked"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", t.Name, t.Role, t.Subject+t.Agent, t.Database, validity)
	}
	return w.Flush()
}

type tokenRevokeCmd struct {
	Name string `arg:"" help:"The token's name."`
}

func (tokenRevokeCmd) Help() string {
	return `A running serve refuses it at the next call. "pgconsent token add" of the same name makes a new one.`
}

func (a tokenRevokeCmd) Run(s *session) error {
	_, path, err := s.tokensFilePath()
	if err != nil {
		return err
	}
	if err := identity.RevokeToken(path, a.Name); err != nil {
		return err
	}
	if s.jsonOutput {
		return s.printJSON(map[string]any{"name": a.Name, "valid": false})
	}
	_, err = fmt.Fprintf(s.out, "%s is no longer valid\n", a.Name)
	return err
}

// tokensFilePath returns the configuration and the path of the file with its tokens.
func (s *session) tokensFilePath() (*config.Config, string, error) {
	c, err := s.loadConfig()
	if err != nil {
		return nil, "", err
	}
	if c.HTTP.Tokens == "" {
		return nil, "", sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "%s names no file for tokens", c.Path).
			WithHint("http: { tokens: tokens.yaml }")
	}
	return c, c.HTTP.Tokens, nil
}
