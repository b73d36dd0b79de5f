package api

import (
	"context"
	"net/http"

	"github.com/pgconsent/pgconsent/internal/memory/generalize"
	"github.com/pgconsent/pgconsent/internal/memory/privacy"
	"github.com/pgconsent/pgconsent/internal/services/identity"
)

// GeneralizeFinding is a part of a text that may identify somebody.
type GeneralizeFinding struct {
	Check   string `json:"check" enum:"entity_name,specificity,reversibility"`
	Level   string `json:"level" enum:"block,warn,advisory"`
	Kind    string `json:"kind" doc:"name, source, date, place, capitalized, contact, number, detail, overlap"`
	Text    string `json:"text,omitempty" doc:"As the request has it."`
	Message string `json:"message"`
}

// GeneralizeReport is the result of the checks of a generalized text.
type GeneralizeReport struct {
	Verdict    string              `json:"verdict" enum:"blocked,warned,clear"`
	Findings   []GeneralizeFinding `json:"findings"`
	Overlap    float64             `json:"overlap" doc:"The share of the text's words that the source has too."`
	LongestRun int                 `json:"longest_run" doc:"The longest run of words that both have in the same order."`
}

// GeneralizeAnswer is the belief that a call made from memories, and the result of the checks of its text.
type GeneralizeAnswer struct {
	Made     bool             `json:"made" doc:"false: the text was only checked."`
	Repeated bool             `json:"repeated" doc:"It was made before, from the same source."`
	Memory   *Memory          `json:"memory,omitempty" doc:"The belief."`
	Report   GeneralizeReport `json:"report"`
}

func generalizeReport(r generalize.Report) GeneralizeReport {
	out := GeneralizeReport{Verdict: r.Verdict, Findings: []GeneralizeFinding{}, Overlap: r.Overlap,
		LongestRun: r.LongestRun}
	for _, f := range r.Findings {
		out.Findings = append(out.Findings, GeneralizeFinding{string(f.Check), string(f.Level), f.Kind, f.Text, f.Message})
	}
	return out
}

type (
	generalizeRequest struct {
		Idempotent
		Body struct {
			Source          string    `json:"source" minLength:"1" maxLength:"256" doc:"The memory's id. It stays as private as it is."`
			Kind            string    `json:"kind,omitempty" maxLength:"32" doc:"Of the source. Default: as its id begins, else any."`
			Belief          string    `json:"belief" minLength:"1" maxLength:"16384" doc:"What was learned."`
			AccessGrants    *[]string `json:"access_grants,omitempty" maxItems:"256" doc:"Who may see the belief; * is everybody. Left out: the context's grants."`
			AbstractionNote string    `json:"abstraction_note,omitempty" maxLength:"4096" doc:"How it was abstracted. It is checked as the belief is, and is for the owner."`
			AcceptWarnings  bool      `json:"accept_warnings,omitempty" doc:"Accept the text in spite of warnings about possible names."`
			Check           bool      `json:"check,omitempty" doc:"Check the text, and store nothing."`
			Context         string    `json:"context,omitempty" minLength:"1" maxLength:"256" doc:"The context that the caller is in, of this call alone."`
			Reason          string    `json:"reason,omitempty" maxLength:"256"`
		}
	}
	generalizeAnswer struct {
		Status int
		Body   GeneralizeAnswer
	}
	drawnRequest struct {
		After string `query:"after" maxLength:"4096" doc:"The next of the previous page."`
	}
	drawnAnswer struct{ Body privacy.DerivedBeliefs }
)

func addGeneralizeOperations(s *Server) {
	addOperation(s, Operation{
		ID: "memory-generalize", Method: http.MethodPost, Path: "/v1/generalize", Tag: tagPrivacy,
		Roles: []identity.Role{identity.Agent}, Writes: true, HasIdempotencyKey: true,
		Status: http.StatusCreated, Errors: []int{404, 409}, OtherStatuses: map[int]string{
			http.StatusOK: "It was made before, or only checked."},
		Summary: "Make a belief from a private memory",
		Description: "In the store of the memory, about nobody. A text that names those whom the memory is about " +
			"is refused (PrivacyBlockedError, with the report). " +
			"Dates, places and rare details are warned of in the report, and the belief is made. Which memory it " +
			"was drawn from is noted for the owner of the store alone.",
	}, func(ctx context.Context, c *Call, in *generalizeRequest) (*generalizeAnswer, error) {
		d, err := s.privacyService(c.Caller)
		if err != nil {
			return nil, err
		}
		b := in.Body
		g := privacy.Generalization{Source: b.Source, Kind: b.Kind, Belief: b.Belief, Note: b.AbstractionNote,
			Context: b.Context, Reason: b.Reason, AcceptsWarnings: b.AcceptWarnings, CheckOnly: b.Check}
		if b.AccessGrants != nil {
			g.Access = append([]string{}, *b.AccessGrants...)
		}
		result, err := d.AddBelief(ctx, c.Caller, g)
		if err != nil {
			return nil, err
		}
		c.AddAuditSubjects(result.Subjects...)
		out := &generalizeAnswer{Status: http.StatusOK,
			Body: GeneralizeAnswer{Repeated: result.AlreadyExisted, Report: generalizeReport(result.Report)}}
		if result.Memory != nil {
			m := memoryOf(*result.Memory)
			out.Body.Made, out.Body.Memory = true, &m
			if !result.AlreadyExisted {
				out.Status = http.StatusCreated
			}
		}
		return out, nil
	})
	addOperation(s, Operation{
		ID: "memory-generalized", Method: http.MethodGet, Path: "/v1/generalize", Tag: tagPrivacy,
		Roles: []identity.Role{identity.Agent, identity.Subject}, Errors: []int{404},
		Summary: "Beliefs that were drawn from private memories",
		Description: "Of the caller's own stores, the newest first: which memory, into what text, when, by whom, " +
			"and who sees it now. Of others' there are none.",
	}, func(ctx context.Context, c *Call, in *drawnRequest) (*drawnAnswer, error) {
		d, err := s.privacyService(c.Caller)
		if err != nil {
			return nil, err
		}
		out, err := d.ListDerivedBeliefs(ctx, c.Caller, in.After)
		if err != nil {
			return nil, err
		}
		return &drawnAnswer{*out}, nil
	})
}
