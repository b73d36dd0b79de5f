package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pgconsent/pgconsent/internal/memory/generalize"
	"github.com/pgconsent/pgconsent/internal/memory/privacy"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

type generalizeInput struct {
	Source          string    `json:"source" jsonschema:"the private memory, as episode:ID; it stays private"`
	Belief          string    `json:"belief" jsonschema:"what was learned, without names, dates, places and details that could identify somebody"`
	AccessGrants    *[]string `json:"access_grants,omitempty" jsonschema:"who may see the belief: ids, roles, contexts, or * for everybody. Left out: the context's grants. Empty: nobody but the owner."`
	AbstractionNote string    `json:"abstraction_note,omitempty" jsonschema:"how it was abstracted, for the owner; checked as the belief is"`
	AcceptWarnings  bool      `json:"accept_warnings,omitempty" jsonschema:"true: accept the text in spite of warnings about possible names. Ask your user if you are not sure."`
	Check           bool      `json:"check,omitempty" jsonschema:"true: check the text, and store nothing"`
	Kind            string    `json:"kind,omitempty" jsonschema:"the kind of the source, if its id does not begin with it"`
	Context         string    `json:"context,omitempty" jsonschema:"the context of this belief; left out: the one that was entered with context_enter"`
	Reason          string    `json:"reason,omitempty" jsonschema:"why; stored with the time"`
}

type generalizeOutput struct {
	Made     bool              `json:"made" jsonschema:"false: it was only checked"`
	Repeated bool              `json:"repeated" jsonschema:"it was made before, from the same source"`
	Memory   *memoryInfo       `json:"memory,omitempty" jsonschema:"the belief"`
	Report   generalize.Report `json:"report"`
}

func generalizeTools() []Tool {
	return []Tool{NewTool(Tool{
		Name: "memory_generalize", Title: "Share what was learned", IsIdempotent: true, RunsStatements: true,
		Roles:        []identity.Role{identity.Agent},
		IsOfferedFor: func(d *Database) bool { return privacySection(d) != nil && privacySection(d).Generalize != nil },
		Description: "Makes a belief that others may see from a private memory of your own store. A text that " +
			"names those whom the memory is about, or their aliases, in whatever form, is refused (PC422): say it " +
			"in other words. Dates, places and rare details are warned of in the report: try with check first, " +
			"and consider whether they identify the source. Only the owner of the store learns from which memory it was made.",
	}, storeGeneralization)}
}

func storeGeneralization(ctx context.Context, c *Call, in generalizeInput) (out generalizeOutput, err error) {
	g := privacy.Generalization{Source: in.Source, Kind: in.Kind, Belief: in.Belief, Note: in.AbstractionNote,
		Context: in.Context, Reason: in.Reason, AcceptsWarnings: in.AcceptWarnings, CheckOnly: in.Check}
	if in.AccessGrants != nil {
		g.Access = append([]string{}, *in.AccessGrants...)
	}
	result, err := c.privacyService().AddBelief(ctx, c.Caller, g)
	var blockedRefusal *privacy.BlockedError
	if errors.As(err, &blockedRefusal) {
		return out, blockedError{blockedRefusal}
	}
	if err != nil {
		return out, err
	}
	out = generalizeOutput{Repeated: result.AlreadyExisted, Report: result.Report}
	if result.Memory != nil {
		m := memoryOf(*result.Memory)
		out.Made, out.Memory = true, &m
	}
	return out, nil
}

// blockedError is a refusal with a detail that lists the findings, which quote only the caller's own text.
type blockedError struct{ *privacy.BlockedError }

// Unwrap returns the *sqlstate.Error, with the findings as its detail.
func (t blockedError) Unwrap() error {
	e := *sqlstate.AsError(t.BlockedError)
	var found []string
	for _, f := range t.Report.Findings {
		if f.Level != generalize.LevelAdvisory && len(found) < 20 {
			found = append(found, fmt.Sprintf("%s %q: %s", f.Level, f.Text, f.Message))
		}
	}
	e.Detail = strings.Join(found, "; ")
	return &e
}
