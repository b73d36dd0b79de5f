package api

import (
	"context"
	"net/http"

	"github.com/pgconsent/pgconsent/internal/memory/privacy"
	"github.com/pgconsent/pgconsent/internal/services/identity"
)

// PrivacyContext is a context that the caller takes part in or owns.
type PrivacyContext struct {
	Context      string   `json:"context"`
	Store        string   `json:"store"`
	Participants []string `json:"participants"`
	AccessGrants []string `json:"default_access_grants" doc:"The grants of new memories."`
	Owner        bool     `json:"owner" doc:"The store is the caller's own."`
	Enters       bool     `json:"enters" doc:"The caller may enter it."`
}

// EnteredContext is a context that the caller has entered.
type EnteredContext struct {
	PrivacyContext
	Created  bool     `json:"created"`
	Added    []string `json:"added" doc:"Participants that were not there before."`
	Role     string   `json:"role,omitempty"`
	RoleHeld *bool    `json:"role_held,omitempty" doc:"False: the caller's credential does not have the role, and it gives nothing."`
	SQL      string   `json:"sql" doc:"The statement that enters it in a connection of SQL. Calls of this API pass context themselves."`
}

func privacyContext(c privacy.Context) PrivacyContext {
	return PrivacyContext{c.Name, c.Store, c.Participants, c.Access, c.Owner, c.MayEnter}
}

type (
	contextsAnswer struct {
		Body struct {
			Contexts []PrivacyContext `json:"contexts"`
		}
	}
	contextsRequest struct {
		Context string `query:"context" maxLength:"256" doc:"Only those of this name. Default: all."`
	}
	enterRequest struct {
		Idempotent
		Body struct {
			Context      string    `json:"context" minLength:"1" maxLength:"256"`
			Store        string    `json:"store,omitempty" minLength:"1" maxLength:"256" doc:"The store, where several have the name or to make a context. Default: the caller's own."`
			Participants []string  `json:"participants,omitempty" maxItems:"256" doc:"Of a new context; of one that is there, its owner adds them."`
			AccessGrants *[]string `json:"default_access_grants,omitempty" maxItems:"256" doc:"Of a new context. Default: its participants and itself."`
			Role         string    `json:"role,omitempty" maxLength:"256" doc:"The role to enter with, one of the caller's credential."`
			Reason       string    `json:"reason,omitempty" maxLength:"256"`
		}
	}
	enteredAnswer struct {
		Status int
		Body   EnteredContext
	}
)

func addContextOperations(s *Server) {
	agents := []identity.Role{identity.Agent}
	addOperation(s, Operation{
		ID: "context-list", Method: http.MethodGet, Path: "/v1/contexts", Tag: tagPrivacy, Roles: agents, Errors: []int{404},
		Summary: "The caller's contexts", Description: "Those that it takes part in, and those of its own stores.",
	}, func(ctx context.Context, c *Call, in *contextsRequest) (*contextsAnswer, error) {
		d, err := s.privacyService(c.Caller)
		if err != nil {
			return nil, err
		}
		list, err := d.Contexts(ctx, c.Caller)
		if in.Context != "" {
			list, err = d.ContextsNamed(ctx, c.Caller, in.Context)
		}
		if err != nil {
			return nil, err
		}
		out := &contextsAnswer{}
		out.Body.Contexts = []PrivacyContext{}
		for _, item := range list {
			out.Body.Contexts = append(out.Body.Contexts, privacyContext(item))
		}
		return out, nil
	})
	enter := func(o Operation, operation func(*privacy.Service) func(context.Context, identity.Caller,
		privacy.ContextRequest) (*privacy.EnteredContext, error)) {
		o.Method, o.Tag, o.Roles = http.MethodPost, tagPrivacy, agents
		o.Writes, o.HasIdempotencyKey, o.Errors = true, true, []int{404, 409}
		addOperation(s, o, func(ctx context.Context, c *Call, in *enterRequest) (*enteredAnswer, error) {
			d, err := s.privacyService(c.Caller)
			if err != nil {
				return nil, err
			}
			b := in.Body
			e := privacy.ContextRequest{Context: b.Context, Store: b.Store, Participants: b.Participants, Role: b.Role, Reason: b.Reason}
			if b.AccessGrants != nil {
				if e.Access = *b.AccessGrants; e.Access == nil {
					e.Access = []string{}
				}
			}
			out, err := operation(d)(ctx, c.Caller, e)
			if err != nil {
				return nil, err
			}
			c.AddAuditSubjects(out.Added...)
			status := http.StatusOK
			if out.Created {
				status = http.StatusCreated
			}
			return &enteredAnswer{status, EnteredContext{
				privacyContext(out.Context), out.Created, out.Added, out.Role, out.CredentialHasRole, out.Setting}}, nil
		})
	}
	enter(Operation{ID: "context-enter", Path: "/v1/contexts/enter",
		OtherStatuses: map[int]string{http.StatusCreated: "It was made."}, Summary: "Enter a context",
		Description: "Returns the context and the grants of new memories in it. No context is kept between " +
			"calls: a call that makes a memory names it. The owner of a store makes the context if there is none, " +
			"and adds participants; nobody else can."},
		func(d *privacy.Service) func(context.Context, identity.Caller, privacy.ContextRequest) (*privacy.EnteredContext, error) {
			return d.EnterContext
		})
	enter(Operation{ID: "context-create", Path: "/v1/contexts", Status: http.StatusCreated, Summary: "Make a context",
		Description: "In a store of the caller's own."},
		func(d *privacy.Service) func(context.Context, identity.Caller, privacy.ContextRequest) (*privacy.EnteredContext, error) {
			return d.MakeContext
		})
}
