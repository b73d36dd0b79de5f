package main

import (
	"errors"
	"fmt"

	"github.com/pgconsent/pgconsent/internal/services/api"
)

type generalizeCmd struct {
	apiClient
	Source          string   `required:"" placeholder:"ID" help:"The private memory, as episode:0042. It stays as private as it is."`
	Belief          string   `required:"" placeholder:"TEXT" help:"What was learned, without details that identify anybody."`
	AccessGrants    []string `placeholder:"ID" help:"Who is to see the belief: several ids, or the flag several times; * is everybody. Default: what the context gives, else nobody."`
	AbstractionNote string   `placeholder:"TEXT" help:"How it was abstracted: for the owner. It is checked as well."`
	Check           bool     `help:"Check the texts, and store nothing."`
	AcceptWarnings  bool     `help:"Accept texts in spite of warnings about possible names."`
	Kind            string   `placeholder:"KIND" help:"The kind of the source. Default: as its id begins, else any."`
	MemoryContext   string   `name:"context" placeholder:"NAME" env:"PGCONSENT_CONTEXT" help:"The context that the belief goes into (see pgconsent context). Default: the one chosen with context enter."`
	Reason          string   `placeholder:"TEXT" help:"Why: it is noted."`
}

func (generalizeCmd) Help() string {
	return `Three checks compare the belief and the note with the memory:

  names          of those whom it is about and who told it, in whatever form, and its id: refused, nothing is made;
                 what only may be a name is refused as well, unless you say --accept-warnings
  details        dates, places, words with a capital letter, numbers, rare words: warned of. Do they make the source known?
  reversibility  how much of the memory's wording is left: advice

  export PGCONSENT_TOKEN=…                        an agent's: pgconsent token add NAME --role agent --agent AGENT
  pgconsent generalize --source episode:1001 --belief "Heart murmurs in small breeds need exercise monitoring" --check
  pgconsent generalize --source episode:1001 --belief "Heart murmurs in small breeds need exercise monitoring" --access-grants "*"

The belief is made in the store of the memory, and is about nobody. What it was drawn from is noted for the owner of the store alone.
This asks a running pgconsent serve, as whom the token is of. The policy decides, as for SQL.`
}

func (g generalizeCmd) Run(s *session) error {
	currentName, err := currentContext(s, g.apiClient, g.MemoryContext)
	if err != nil {
		return err
	}
	body := map[string]any{"source": g.Source, "belief": g.Belief}
	addNonEmpty(body, map[string]string{"abstraction_note": g.AbstractionNote, "kind": g.Kind, "context": currentName, "reason": g.Reason})
	if len(g.AccessGrants) > 0 {
		body["access_grants"] = g.AccessGrants
	}
	if g.Check {
		body["check"] = true
	}
	if g.AcceptWarnings {
		body["accept_warnings"] = true
	}
	var out api.GeneralizeAnswer
	if err := g.call(s, "POST", "/v1/generalize", nil, body, &out); err != nil {
		var refusal *apiError
		if errors.As(err, &refusal) && refusal.report != nil {
			if s.jsonOutput {
				_ = s.printJSON(api.GeneralizeAnswer{Report: *refusal.report})
			} else {
				printFindings(s, *refusal.report)
			}
		}
		return err
	}
	if s.jsonOutput {
		return s.printJSON(out)
	}
	switch {
	case out.Memory == nil:
		fmt.Fprintf(s.out, "%s; nothing was made.\n", out.Report.Verdict)
	case out.Repeated:
		fmt.Fprintf(s.out, "%s, in %s, was made already.\n", out.Memory.ID, out.Memory.Store)
	default:
		fmt.Fprintf(s.out, "%s, in %s\n", out.Memory.ID, out.Memory.Store)
	}
	if out.Memory != nil {
		printItem(s, "granted to", listOrNobody(out.Memory.AccessGrants))
	}
	printFindings(s, out.Report)
	return nil
}

// printFindings prints what the checks of a generalization found.
func printFindings(s *session, r api.GeneralizeReport) {
	for _, f := range r.Findings {
		label := f.Message
		if f.Text != "" {
			label = fmt.Sprintf("%q: %s", f.Text, f.Message)
		}
		printItem(s, f.Level, label)
	}
}
