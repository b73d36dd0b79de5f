package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pgconsent/pgconsent/internal/services/api"
)

type contextCmd struct {
	Enter  contextEnterCmd  `cmd:"" help:"Enter a context: the memories that are added go into it. Its owner makes it, and adds participants."`
	Leave  contextLeaveCmd  `cmd:"" help:"Leave it."`
	List   contextListCmd   `cmd:"" help:"The contexts that the token's agent takes part in or owns."`
	Show   contextShowCmd   `cmd:"" help:"Show the context that was entered, or another."`
	Create contextCreateCmd `cmd:"" help:"Make a context in the agent's own store."`
}

func (contextCmd) Help() string {
	return `A context says who takes part and what new memories in it are granted to.

  pgconsent context enter ctx:bella_health --participants human:sean si:bella_agent --role care_agent
  pgconsent context list
  pgconsent context show

The server keeps no context between calls. What was entered stands in a file of yours, for the token, and goes with pgconsent privacy add;
PGCONSENT_CONTEXT and --context come before it. Connections of SQL enter one themselves, as context enter says.`
}

type contextEnterCmd struct {
	apiClient
	Name         string   `arg:"" name:"context" help:"Its name."`
	Participants []string `placeholder:"ID" help:"Of a new context; of one that is there, its owner adds them: several ids, or the flag several times."`
	Role         string   `placeholder:"ROLE" help:"The role to enter with, one of those of the token's credential; another gives no access."`
	Store        string   `placeholder:"ID" help:"The store, where several have a context of this name."`
	Reason       string   `placeholder:"TEXT" help:"Why participants are added: it is noted."`
}

func (c contextEnterCmd) Run(s *session) error {
	body := map[string]any{"context": c.Name}
	addNonEmpty(body, map[string]string{"role": c.Role, "store": c.Store, "reason": c.Reason})
	if len(c.Participants) > 0 {
		body["participants"] = c.Participants
	}
	var out api.EnteredContext
	if err := c.call(s, "POST", "/v1/contexts/enter", nil, body, &out); err != nil {
		return err
	}
	if err := rememberContext(s, c.apiClient, out.Context); err != nil {
		return err
	}
	return printEnteredContext(s, out)
}

func printEnteredContext(s *session, c api.EnteredContext) error {
	if s.jsonOutput {
		return s.printJSON(c)
	}
	if c.Created {
		fmt.Fprintf(s.out, "%s is made.\n", c.Context)
	}
	printContext(s, c.PrivacyContext)
	if !c.Created {
		printItem(s, "added", strings.Join(c.Added, ", "))
	}
	if c.RoleHeld != nil && !*c.RoleHeld {
		printItem(s, "role", c.Role+", which your credential does not have: it gives nothing")
	} else {
		printItem(s, "role", c.Role)
	}
	printItem(s, "by SQL", c.SQL)
	return nil
}

func printContext(s *session, c api.PrivacyContext) {
	ownMark := ""
	if c.Owner {
		ownMark = ", your own"
	}
	fmt.Fprintf(s.out, "%s, in %s%s\n", c.Context, c.Store, ownMark)
	printItem(s, "takes part", listOrNone(c.Participants))
	printItem(s, "new is for", listOrNobody(c.AccessGrants))
}

func listOrNone(list []string) string {
	if len(list) == 0 {
		return "nobody"
	}
	return strings.Join(list, ", ")
}

type contextCreateCmd struct {
	apiClient
	Name         string   `arg:"" name:"context" help:"Its name."`
	Participants []string `placeholder:"ID" help:"Who takes part: several ids, or the flag several times."`
	Access       []string `placeholder:"ID" help:"What new memories are granted to. Default: the participants and the context."`
	Store        string   `placeholder:"ID" help:"Default: the agent's own."`
	Reason       string   `placeholder:"TEXT" help:"Why: it is noted."`
}

func (c contextCreateCmd) Run(s *session) error {
	body := map[string]any{"context": c.Name}
	addNonEmpty(body, map[string]string{"store": c.Store, "reason": c.Reason})
	if len(c.Participants) > 0 {
		body["participants"] = c.Participants
	}
	if len(c.Access) > 0 {
		body["default_access_grants"] = c.Access
	}
	var out api.EnteredContext
	if err := c.call(s, "POST", "/v1/contexts", nil, body, &out); err != nil {
		return err
	}
	return printEnteredContext(s, out)
}

type contextListCmd struct{ apiClient }

func (c contextListCmd) Run(s *session) error {
	contexts, err := c.fetchContexts(s, "")
	if err != nil {
		return err
	}
	currentName, err := currentContext(s, c.apiClient, "")
	if err != nil {
		return err
	}
	if s.jsonOutput {
		return s.printJSON(map[string]any{"contexts": contexts, "current": currentName})
	}
	for _, entry := range contexts {
		printContext(s, entry)
		if entry.Context == currentName {
			printItem(s, "", "you are in it")
		}
	}
	if len(contexts) == 0 {
		fmt.Fprintln(s.out, "You take part in no context.")
	}
	return nil
}

func (f apiClient) fetchContexts(s *session, name string) ([]api.PrivacyContext, error) {
	var out struct {
		Contexts []api.PrivacyContext `json:"contexts"`
	}
	query := url.Values{}
	if name != "" {
		query.Set("context", name)
	}
	err := f.call(s, "GET", "/v1/contexts", query, nil, &out)
	return out.Contexts, err
}

type contextShowCmd struct {
	apiClient
	Name string `arg:"" optional:"" name:"context" help:"Its name. Default: the one chosen with context enter."`
}

func (c contextShowCmd) Run(s *session) error {
	name := c.Name
	if name == "" {
		var err error
		if name, err = currentContext(s, c.apiClient, os.Getenv("PGCONSENT_CONTEXT")); err != nil {
			return err
		}
	}
	if name == "" {
		if s.jsonOutput {
			return s.printJSON(map[string]any{"contexts": []api.PrivacyContext{}, "current": ""})
		}
		fmt.Fprintln(s.out, "You are in no context: pgconsent context enter NAME.")
		return nil
	}
	contexts, err := c.fetchContexts(s, name)
	if err != nil {
		return err
	}
	if s.jsonOutput {
		currentName, err := currentContext(s, c.apiClient, os.Getenv("PGCONSENT_CONTEXT"))
		if err != nil {
			return err
		}
		return s.printJSON(map[string]any{"contexts": contexts, "current": currentName})
	}
	for _, entry := range contexts {
		printContext(s, entry)
	}
	return nil
}

type contextLeaveCmd struct{ apiClient }

func (c contextLeaveCmd) Run(s *session) error {
	if err := rememberContext(s, c.apiClient, ""); err != nil {
		return err
	}
	if s.jsonOutput {
		return s.printJSON(map[string]any{"current": ""})
	}
	fmt.Fprintln(s.out, "You are in no context.")
	return nil
}

// The contexts that the user has entered are stored in a file, each under a hash of the server's address and the token.

func contextsFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("where to remember the context: %w (set PGCONSENT_CONTEXT)", err)
	}
	return filepath.Join(dir, "pgconsent", "contexts.json"), nil
}

func readContexts(path string) (map[string]string, error) {
	out := map[string]string{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("%s is not what pgconsent context enter has written: remove it", path)
	}
	return out, nil
}

func (f apiClient) contextKey(s *session) (string, error) {
	server, err := f.resolve(s)
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256([]byte("pgconsent context\x00" + server.baseURL + "\x00" + server.token))
	return fmt.Sprintf("%x", hash[:16]), nil
}

// currentContext returns contextName, or if it is empty the context that the user has entered with "context enter".
func currentContext(s *session, f apiClient, contextName string) (string, error) {
	if contextName != "" {
		return contextName, nil
	}
	path, err := contextsFile()
	if err != nil {
		return "", nil // there is no place for the file, so the user cannot have entered a context
	}
	contextNames, err := readContexts(path)
	if err != nil {
		return "", err
	}
	key, err := f.contextKey(s)
	return contextNames[key], err
}

// rememberContext stores which context the user has entered; "": none.
func rememberContext(s *session, f apiClient, name string) error {
	path, err := contextsFile()
	if err != nil {
		return err
	}
	key, err := f.contextKey(s)
	if err != nil {
		return err
	}
	contextNames, err := readContexts(path)
	if err != nil {
		return err
	}
	if name == "" {
		delete(contextNames, key)
	} else {
		contextNames[key] = name
	}
	text, err := json.MarshalIndent(contextNames, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tempFile, err := os.CreateTemp(filepath.Dir(path), ".contexts-*") // CreateTemp makes the file with mode 0600
	if err != nil {
		return err
	}
	_, err = tempFile.Write(append(text, '\n'))
	if e := tempFile.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(tempFile.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tempFile.Name())
	}
	return err
}
