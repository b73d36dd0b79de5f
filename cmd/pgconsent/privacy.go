package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/memory/privacy"
	"github.com/pgconsent/pgconsent/internal/services/api"
)

type privacyCmd struct {
	Add     privacyAddCmd     `cmd:"" help:"Store a memory, with its subjects and grants."`
	Grant   privacyGrantCmd   `cmd:"" help:"Grant a memory to more grantees."`
	Revoke  privacyRevokeCmd  `cmd:"" help:"Remove grants from a memory."`
	Consent privacyConsentCmd `cmd:"" help:"Record a consent of the token's agent, or one that it gives as a guardian."`
	Retract privacyRetractCmd `cmd:"" help:"Revoke a consent."`
	Audit   privacyAuditCmd   `cmd:"" help:"Report who sees a memory, or the memories about a subject, and by which grant."`
}

func (privacyCmd) Help() string {
	return `Memories are private to their owner. Others see a memory that is granted to them, to one of their roles or contexts, or to
everybody, if each of its subjects has a consent on record. Granting more than the memory's source and context do needs the
consent of its subjects and of the entity that told it.

  export PGCONSENT_TOKEN=…                        an agent's: pgconsent token add NAME --role agent --agent AGENT
  pgconsent privacy add "Bella has a heart murmur" --subject dog:bella --access human:sean si:bella_agent --source human:sean
  pgconsent privacy grant episode:0042 --to si:new_vet --consent human:sean --reason "the vet has moved"
  pgconsent privacy revoke episode:0042 --from si:old_agent
  pgconsent privacy consent --to si:new_vet --scope ctx:bella_health
  pgconsent privacy audit --subject dog:bella

These ask a running pgconsent serve, as whom the token is of. The policy decides, as for SQL.`
}

type privacyAddCmd struct {
	apiClient
	Text          string   `arg:"" help:"The text of the memory."`
	Kind          string   `placeholder:"KIND" help:"A kind of the policy. Default: its first."`
	Subject       []string `placeholder:"ID" help:"Whom the memory is about: several ids, or the flag several times."`
	Access        []string `placeholder:"ID" help:"To whom it is granted. Default: the context's grants, else the entity that told it."`
	Private       bool     `help:"Grant it to nobody, in spite of the context's grants."`
	Consent       []string `placeholder:"ID" help:"Who is said to have consented: evidence only, without effect unless there is a record."`
	Source        string   `placeholder:"ID" help:"The entity that told it. Only the owner of the store can name another."`
	Told          string   `name:"told-from" placeholder:"MEMORY" help:"The memory from which it was told: only those who see that one see this one."`
	Store         string   `placeholder:"ID" help:"The store to put it in. Default: the context's, else the agent's own."`
	MemoryContext string   `name:"context" placeholder:"NAME" env:"PGCONSENT_CONTEXT" help:"The context that the memory goes into (see pgconsent context). Default: the one chosen with context enter."`
	Reason        string   `placeholder:"TEXT" help:"Why: it is noted."`
}

func (p privacyAddCmd) Run(s *session) error {
	if p.Private && len(p.Access) > 0 {
		return usageError{errors.New("--private and --access do not go together")}
	}
	currentName, err := currentContext(s, p.apiClient, p.MemoryContext)
	if err != nil {
		return err
	}
	body := map[string]any{"content": p.Text}
	addNonEmpty(body, map[string]string{"kind": p.Kind, "store": p.Store, "source_entity": p.Source, "told_from": p.Told,
		"context": currentName, "reason": p.Reason})
	for name, list := range map[string][]string{"subject_ids": p.Subject, "access_grants": p.Access,
		"consent_grants": p.Consent} {
		if len(list) > 0 {
			body[name] = list
		}
	}
	if p.Private {
		body["access_grants"] = []string{}
	}
	var out api.Memory
	if err := p.call(s, "POST", "/v1/memories", nil, body, &out); err != nil {
		return err
	}
	if s.jsonOutput {
		return s.printJSON(out)
	}
	fmt.Fprintf(s.out, "%s, in %s\n", out.ID, out.Store)
	printItem(s, "source", out.SourceEntity)
	printItem(s, "told from", out.ToldFrom)
	printItem(s, "about", strings.Join(out.SubjectIDs, ", "))
	printItem(s, "granted to", listOrNobody(out.AccessGrants))
	return nil
}

// addNonEmpty adds the non-empty values to a request body.
func addNonEmpty(body map[string]any, values map[string]string) {
	for name, value := range values {
		if value != "" {
			body[name] = value
		}
	}
}

func printItem(s *session, label, value string) {
	if value != "" {
		fmt.Fprintf(s.out, "  %-11s %s\n", label, value)
	}
}

func listOrNobody(list []string) string {
	if len(list) == 0 {
		return "nobody but the owner"
	}
	return strings.Join(list, ", ")
}

type privacyGrantCmd struct {
	apiClient
	ID      string   `arg:"" name:"memory" help:"The memory's id."`
	To      []string `required:"" placeholder:"ID" help:"To whom: an entity, a role, a context, or * for everybody."`
	Consent []string `placeholder:"ID" help:"Who is said to have consented: evidence only, without effect unless there is a record."`
	Kind    string   `placeholder:"KIND" help:"The kind of the memory. Default: as its id begins, else any."`
	Reason  string   `placeholder:"TEXT" help:"Why: it is noted."`
}

func (p privacyGrantCmd) Run(s *session) error {
	body := map[string]any{"id": p.ID, "who": p.To}
	if len(p.Consent) > 0 {
		body["consent_grants"] = p.Consent
	}
	return p.change(s, "/v1/privacy/grant", body, p.Kind, p.Reason)
}

type privacyRevokeCmd struct {
	apiClient
	ID     string   `arg:"" name:"memory" help:"The memory's id."`
	From   []string `required:"" placeholder:"ID" help:"From whom."`
	Kind   string   `placeholder:"KIND" help:"The kind of the memory. Default: as its id begins, else any."`
	Reason string   `placeholder:"TEXT" help:"Why: it is noted."`
}

func (p privacyRevokeCmd) Run(s *session) error {
	return p.change(s, "/v1/privacy/revoke", map[string]any{"id": p.ID, "who": p.From}, p.Kind, p.Reason)
}

func (f apiClient) change(s *session, path string, body map[string]any, kind, reason string) error {
	addNonEmpty(body, map[string]string{"kind": kind, "reason": reason})
	var out api.MemoryGrants
	if err := f.call(s, "POST", path, nil, body, &out); err != nil {
		return err
	}
	if s.jsonOutput {
		return s.printJSON(out)
	}
	switch {
	case len(out.Granted) > 0:
		fmt.Fprintf(s.out, "%s is granted to %s as well.\n", out.ID, strings.Join(out.Granted, ", "))
	case len(out.Revoked) > 0:
		fmt.Fprintf(s.out, "%s is not granted to %s any more.\n", out.ID, strings.Join(out.Revoked, ", "))
	default:
		fmt.Fprintf(s.out, "%s: it was so already.\n", out.ID)
	}
	printItem(s, "granted to", listOrNobody(out.AccessGrants))
	return nil
}

type privacyConsentCmd struct {
	apiClient
	To     string `required:"" placeholder:"ID" help:"The grantee that may see what is granted to it: an entity, a role, or * for everybody."`
	For    string `placeholder:"ID" help:"For whom the agent consents, as their guardian. Default: for itself."`
	Scope  string `placeholder:"ID" help:"A memory or a context. Default: everything."`
	Store  string `placeholder:"ID" help:"The store. Default: as scope and grantor imply."`
	Reason string `placeholder:"TEXT" help:"Why: it is noted."`
}

func (p privacyConsentCmd) Run(s *session) error {
	body := map[string]any{"grantee": p.To}
	addNonEmpty(body, map[string]string{"grantor": p.For, "scope": p.Scope, "store": p.Store, "reason": p.Reason})
	var out api.PrivacyConsent
	if err := p.call(s, "POST", "/v1/privacy/consents", nil, body, &out); err != nil {
		return err
	}
	if s.jsonOutput {
		return s.printJSON(out)
	}
	repeatedNote := ""
	if out.Repeated {
		repeatedNote = " already"
	}
	fmt.Fprintf(s.out, "%s: %s has%s consented that %s sees what is granted to it, about %s, in %s.\n", out.ID,
		out.Grantor, repeatedNote, out.Grantee, out.Scope, out.Store)
	return nil
}

type privacyRetractCmd struct {
	apiClient
	ID     string `arg:"" optional:"" name:"record" help:"The record. Instead: --from, and --for and --scope."`
	From   string `placeholder:"ID" help:"Revoke every consent to this grantee."`
	For    string `placeholder:"ID" help:"Whose consent: that of somebody whose guardian the agent is. Default: its own, and those it gave as a guardian."`
	Scope  string `placeholder:"ID" help:"Only consents about this."`
	Store  string `placeholder:"ID" help:"Only in this store."`
	Reason string `placeholder:"TEXT" help:"Why: it is noted."`
}

func (p privacyRetractCmd) Run(s *session) error {
	if (p.ID == "") == (p.From == "") {
		return usageError{errors.New("which consent? Name the record, or the grantee with --from")}
	}
	body := map[string]any{}
	addNonEmpty(body, map[string]string{"id": p.ID, "grantee": p.From, "grantor": p.For, "scope": p.Scope,
		"store": p.Store, "reason": p.Reason})
	var out struct {
		Consents []api.PrivacyConsent `json:"consents"`
	}
	if err := p.call(s, "POST", "/v1/privacy/consents/revoke", nil, body, &out); err != nil {
		return err
	}
	if s.jsonOutput {
		return s.printJSON(out)
	}
	for _, c := range out.Consents {
		repeatedNote := ""
		if c.Repeated {
			repeatedNote = " already"
		}
		fmt.Fprintf(s.out, "%s, to %s about %s, is revoked%s.\n", c.ID, c.Grantee, c.Scope, repeatedNote)
	}
	return nil
}

type privacyAuditCmd struct {
	apiClient
	ID      string   `arg:"" optional:"" name:"memory" help:"A memory. Instead: --subject."`
	Subject []string `placeholder:"ID" help:"Whom memories are about."`
	Kind    string   `placeholder:"KIND" help:"The kind of the memory. Default: as its id begins, else any."`
}

func (privacyAuditCmd) Help() string {
	return `Answers the owner of the memories, the subject and its guardian; anybody else is told that nothing was found. The database is
asked for each agent of the configuration and for each grantee. Texts are not shown.`
}

func (p privacyAuditCmd) Run(s *session) error {
	if (p.ID == "") == (len(p.Subject) == 0) || len(p.Subject) > 1 {
		return usageError{errors.New("name a memory, or one subject with --subject")}
	}
	query := url.Values{}
	if p.ID != "" {
		query.Set("id", p.ID)
	} else {
		query.Set("subject", p.Subject[0])
	}
	if p.Kind != "" {
		query.Set("kind", p.Kind)
	}
	var out privacy.AuditReport
	for {
		var page privacy.AuditReport
		if err := p.call(s, "GET", "/v1/privacy/audit", query, nil, &page); err != nil {
			return err
		}
		page.Rows = append(out.Rows, page.Rows...)
		if out = page; out.Next == "" {
			break
		}
		if !s.jsonOutput {
			fmt.Fprintf(s.err, "%d memories until now\n", len(out.Rows))
		}
		query.Set("after", out.Next)
	}
	if s.jsonOutput {
		return s.printJSON(out)
	}
	for i, row := range out.Rows {
		if i > 0 {
			fmt.Fprintln(s.out)
		}
		fmt.Fprintf(s.out, "%s, in %s of %s\n", row.ID, row.Store, row.Owner)
		moreSubjects := ""
		if row.OtherSubjects > 0 {
			moreSubjects = fmt.Sprintf(" and %d more", row.OtherSubjects)
		}
		printItem(s, "about", strings.Join(row.Subjects, ", ")+moreSubjects)
		printItem(s, "granted to", listOrNobody(row.Access))
		for _, v := range row.Viewers {
			printItem(s, "sees it", describeViewer(v))
		}
		for _, v := range row.WithoutConsent {
			printItem(s, "does not", v.Entity+", granted to "+v.Grant+": no consent of "+strings.Join(v.Missing, ", "))
		}
		for _, e := range row.History {
			line := e.At.UTC().Format(time.DateTime) + " " + e.Action + " " + strings.Join(e.Grantees, ", ") + " by " + e.By
			if e.Reason != "" {
				line += ": " + e.Reason
			}
			printItem(s, "noted", line)
		}
	}
	return nil
}

// describeViewer says in one line who sees a memory, and which grant and consent allow it.
func describeViewer(v privacy.Viewer) string {
	out := v.Entity
	if len(v.Agents) > 0 {
		out += " (" + strings.Join(v.Agents, ", ") + ")"
	}
	if v.Context != "" {
		out += " in " + v.Context
	}
	switch v.Through {
	case "owner":
		out += ": its own"
	case "grant":
		out += ": granted to " + v.Grant
	default:
		out += ": by the policy"
	}
	for _, c := range v.Consents {
		grantor := c.Grantor
		if c.Guardian {
			grantor += " for " + c.Subject
		}
		out += "; consent " + c.Record + " of " + grantor
		if c.Scope != "" {
			out += ", about " + c.Scope
		}
	}
	return out
}
