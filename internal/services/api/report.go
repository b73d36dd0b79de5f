package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/services/operations"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// reportAnswer is a report to a data subject, as pgconsent dsar writes it.
type reportAnswer struct {
	Body json.RawMessage `doc:"As docs/schema/dsar.json has it."`
}

type reportQuery struct {
	UserQuery
	Data bool `query:"data" default:"false" doc:"With a copy of the rows."`
}

// decisionsQuery has the parameters of a list of decisions, which is read in pages from the newest to the oldest.
type decisionsQuery struct {
	Before int64 `query:"before" minimum:"0" default:"0" doc:"Only records with a smaller number; 0: from the newest."`
	Limit  int   `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"How many at most."`
}

// DecisionRecords has audit records of decisions, newest first, and the records of their outcomes. The decision about a
// statement that still runs has no outcome.
type DecisionRecords struct{ Decisions, Outcomes []audit.Record }

type decisionsAnswer struct {
	Body struct {
		Decisions []json.RawMessage `json:"decisions" doc:"Records as docs/reference/audit.md has them, newest first. Persons are references."`
		Outcomes  []json.RawMessage `json:"outcomes" doc:"What became of them: records with rows, bytes and sqlstate. decision is the seq of the decision."`
		Next      *uint64           `json:"next" doc:"The value of before for the next page; null: this is the last."`
	}
}

// addReportOperations adds the operations that report how data were used.
func addReportOperations(s *Server) {
	addOperation(s, Operation{ID: "dsar", Method: http.MethodGet, Path: "/v1/dsar", Tag: "audit",
		Roles: []identity.Role{identity.Subject, identity.Admin}, Errors: []int{http.StatusNotFound},
		Summary: "The report to a data subject",
		Description: "Lawful basis, categories, purposes, retention, the history of consents, and which agents " +
			"had the data and when. It is recorded that it was made."}, s.answerReport)
	addOperation(s, Operation{ID: "audit-decisions", Method: http.MethodGet, Path: "/v1/audit", Tag: "audit",
		Roles: []identity.Role{identity.Admin, identity.Operator}, AboutEverybody: true,
		Summary: "Decisions about agents' statements",
		Description: "The audit's records of decisions about statements on the caller's database, in pages, and of " +
			"what became of them: how many rows were sent."}, s.answerDecisions)
}

// answerReport handles the request for the report to a data subject.
func (s *Server) answerReport(ctx context.Context, c *Call, in *reportQuery) (*reportAnswer, error) {
	subject, err := operations.SubjectOf(c.Caller, in.UserID)
	if err != nil {
		return nil, err
	}
	c.AddAuditSubjects(subject)
	if s.MakeReport == nil {
		return nil, newNoAuditError()
	}
	r, err := s.MakeReport(ctx, c.Caller, subject, in.Data)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		return nil, err
	}
	return &reportAnswer{b.Bytes()}, nil
}

// answerDecisions handles the request for a page of the decisions of the caller's database.
func (s *Server) answerDecisions(ctx context.Context, c *Call, in *decisionsQuery) (*decisionsAnswer, error) {
	if s.ReadDecisions == nil {
		return nil, newNoAuditError()
	}
	found, err := s.ReadDecisions(ctx, c.Caller.Database, uint64(in.Before), in.Limit)
	if err != nil {
		return nil, err
	}
	out := &decisionsAnswer{}
	out.Body.Decisions = []json.RawMessage{}
	for _, d := range found.Decisions {
		out.Body.Decisions = append(out.Body.Decisions, d.Line)
	}
	out.Body.Outcomes = []json.RawMessage{}
	for _, o := range found.Outcomes {
		out.Body.Outcomes = append(out.Body.Outcomes, o.Line)
	}
	if n := len(found.Decisions); n == in.Limit {
		out.Body.Next = &found.Decisions[n-1].Seq
	}
	return out, nil
}

// newNoAuditError returns the error of an operation that needs the audit, if none is configured.
func newNoAuditError() error {
	return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "no audit is kept here").
		WithHint("audit: { mode: strict, file: audit/ }")
}
