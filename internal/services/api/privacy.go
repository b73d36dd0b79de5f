package api

import (
	"context"
	"net/http"

	"github.com/pgconsent/pgconsent/internal/memory/privacy"
	"github.com/pgconsent/pgconsent/internal/services/identity"
)

const tagPrivacy = "privacy"

// Memory is a memory without its text.
type Memory struct {
	ID            string   `json:"id"`
	Kind          string   `json:"kind" doc:"As the policy names the table."`
	Store         string   `json:"store" doc:"The store that it is in."`
	SourceEntity  string   `json:"source_entity,omitempty" doc:"The entity that told it."`
	ToldFrom      string   `json:"told_from,omitempty" doc:"The memory from which it was told."`
	SubjectIDs    []string `json:"subject_ids"`
	AccessGrants  []string `json:"access_grants"`
	ConsentGrants []string `json:"consent_grants" doc:"Who is said to have consented: evidence only, without effect unless there is a record."`
}

// MemoryGrants is a memory with the grants that a change has added to it and removed from it.
type MemoryGrants struct {
	Memory
	Granted []string `json:"granted" doc:"Ids that were added."`
	Revoked []string `json:"revoked" doc:"Ids that were removed."`
}

// PrivacyConsent is a recorded consent to the use of memories.
type PrivacyConsent struct {
	ID       string `json:"id"`
	Store    string `json:"store"`
	Grantor  string `json:"grantor" doc:"The caller who had it recorded."`
	For      string `json:"for,omitempty" doc:"The person for whom a guardian consented."`
	Grantee  string `json:"grantee"`
	Scope    string `json:"scope"`
	Revoked  bool   `json:"revoked"`
	Repeated bool   `json:"repeated" doc:"It was recorded before."`
}

func memoryOf(m privacy.Memory) Memory {
	return Memory{m.ID, m.Kind, m.Store, m.Source, m.ToldFrom, m.Subjects, m.Access, m.Consent}
}

func privacyConsent(c privacy.RecordedConsent) PrivacyConsent {
	return PrivacyConsent{c.ID, c.Store, c.Grantor, c.OnBehalfOf, c.Grantee, c.Scope, c.Revoked, c.Repeated}
}

type (
	memoryRequest struct {
		Idempotent
		Body struct {
			Kind          string    `json:"kind,omitempty" maxLength:"32" doc:"Default: the first kind of the policy."`
			Store         string    `json:"store,omitempty" minLength:"1" maxLength:"256" doc:"The store. Default: the context's, else the caller's own."`
			Content       string    `json:"content" minLength:"1" maxLength:"60000"`
			SourceEntity  string    `json:"source_entity,omitempty" minLength:"1" maxLength:"256" doc:"The entity that told it. Only the owner of the store can name another."`
			ToldFrom      string    `json:"told_from,omitempty" minLength:"1" maxLength:"256" doc:"The memory of the same kind from which it was told. Only those who see that one see this one."`
			SubjectIDs    []string  `json:"subject_ids,omitempty" maxItems:"256"`
			AccessGrants  *[]string `json:"access_grants,omitempty" maxItems:"256" doc:"Left out: the context's grants, else the entity that told it. Empty: nobody but the owner."`
			ConsentGrants []string  `json:"consent_grants,omitempty" maxItems:"256"`
			Context       string    `json:"context,omitempty" minLength:"1" maxLength:"256" doc:"The context of this call."`
			Reason        string    `json:"reason,omitempty" maxLength:"256"`
		}
	}
	memoryAnswer  struct{ Body Memory }
	changeRequest struct {
		Idempotent
		Body struct {
			ID            string   `json:"id" minLength:"1" maxLength:"256"`
			Kind          string   `json:"kind,omitempty" maxLength:"32" doc:"Default: as the id begins, else any."`
			Grantees      []string `json:"who" minItems:"1" maxItems:"256" doc:"The grantees to add or to remove."`
			ConsentGrants []string `json:"consent_grants,omitempty" maxItems:"256" doc:"With a grant: who is said to have consented. Evidence only, without effect unless there is a record."`
			Reason        string   `json:"reason,omitempty" maxLength:"256" doc:"Why: it is noted with the change."`
		}
	}
	grantsChanged struct{ Body MemoryGrants }
	giveRequest   struct {
		Idempotent
		Body struct {
			Grantor string `json:"grantor,omitempty" minLength:"1" maxLength:"256" doc:"Who consents: the caller, which is the default, or somebody whose guardian it is."`
			Grantee string `json:"grantee" minLength:"1" maxLength:"256"`
			Scope   string `json:"scope,omitempty" minLength:"1" maxLength:"256" doc:"A memory, or a context. Default: everything."`
			Store   string `json:"store,omitempty" minLength:"1" maxLength:"256" doc:"Default: the store that scope and grantor imply."`
			Reason  string `json:"reason,omitempty" maxLength:"256" doc:"Why: it is noted with the change."`
		}
	}
	withdrawRequest struct {
		Idempotent
		Body struct {
			ID      string `json:"id,omitempty" minLength:"1" maxLength:"256" doc:"One record. Left out: all of the grantor to the grantee."`
			Grantor string `json:"grantor,omitempty" minLength:"1" maxLength:"256"`
			Grantee string `json:"grantee,omitempty" minLength:"1" maxLength:"256"`
			Scope   string `json:"scope,omitempty" minLength:"1" maxLength:"256"`
			Store   string `json:"store,omitempty" minLength:"1" maxLength:"256"`
			Reason  string `json:"reason,omitempty" maxLength:"256"`
		}
	}
	givenAnswer struct {
		Status int
		Body   PrivacyConsent
	}
	withdrawnAnswer struct {
		Body struct {
			Consents []PrivacyConsent `json:"consents"`
		}
	}
	auditRequest struct {
		Subject string `query:"subject" minLength:"1" maxLength:"256" doc:"The subject of the memories."`
		ID      string `query:"id" minLength:"1" maxLength:"256" doc:"Instead: one memory."`
		Kind    string `query:"kind" maxLength:"32" doc:"Of that memory."`
		After   string `query:"after" maxLength:"4096" doc:"The next of the previous page."`
	}
	auditAnswer struct{ Body privacy.AuditReport }
)

// privacyService returns the operations on memories for the caller's database.
func (s *Server) privacyService(c identity.Caller) (*privacy.Service, error) {
	db, err := s.Service.Database(c)
	if err != nil {
		return nil, err
	}
	return db.Privacy, nil
}

func addPrivacyOperations(s *Server) {
	agents := []identity.Role{identity.Agent}
	addOperation(s, Operation{
		ID: "memory-create", Method: http.MethodPost, Path: "/v1/memories", Tag: tagPrivacy, Roles: agents,
		Writes: true, HasIdempotencyKey: true, Status: http.StatusCreated, Errors: []int{404, 409},
		Summary: "Make a memory",
		Description: "With its subjects, its source and its grants. The policy has the default grants, and refuses " +
			"more than the consents of those concerned allow.",
	}, func(ctx context.Context, c *Call, in *memoryRequest) (*memoryAnswer, error) {
		d, err := s.privacyService(c.Caller)
		if err != nil {
			return nil, err
		}
		b := in.Body
		n := privacy.NewMemory{Kind: b.Kind, Store: b.Store, Content: b.Content, Source: b.SourceEntity, ToldFrom: b.ToldFrom,
			Subjects: b.SubjectIDs, Consent: b.ConsentGrants, Context: b.Context, Reason: b.Reason}
		if b.AccessGrants != nil {
			if n.Access = *b.AccessGrants; n.Access == nil {
				n.Access = []string{}
			}
		}
		m, err := d.AddMemory(ctx, c.Caller, n)
		if err != nil {
			return nil, err
		}
		c.AddAuditSubjects(m.Subjects...)
		return &memoryAnswer{memoryOf(*m)}, nil
	})
	change := func(id, path, summary, description string,
		operation func(*privacy.Service) func(context.Context, identity.Caller, privacy.GrantChange) (*privacy.GrantResult,
			error)) {
		addOperation(s, Operation{ID: id, Method: http.MethodPost, Path: path, Tag: tagPrivacy, Roles: agents, Writes: true,
			HasIdempotencyKey: true, Errors: []int{404, 409}, Summary: summary, Description: description},
			func(ctx context.Context, c *Call, in *changeRequest) (*grantsChanged, error) {
				d, err := s.privacyService(c.Caller)
				if err != nil {
					return nil, err
				}
				out, err := operation(d)(ctx, c.Caller,
					privacy.GrantChange{ID: in.Body.ID, Kind: in.Body.Kind, Grantees: in.Body.Grantees,
						Consent: in.Body.ConsentGrants, Reason: in.Body.Reason})
				if err != nil {
					return nil, err
				}
				c.AddAuditSubjects(out.Subjects...)
				return &grantsChanged{MemoryGrants{memoryOf(out.Memory), out.Granted, out.Revoked}}, nil
			})
	}
	change("privacy-grant", "/v1/privacy/grant", "Grant a memory to more grantees",
		"Each subject, and the entity that told it, must have an active consent to each grantee. Present grants "+
			"stay.",
		func(d *privacy.Service) func(context.Context, identity.Caller, privacy.GrantChange) (*privacy.GrantResult, error) {
			return d.Grant
		})
	change("privacy-revoke", "/v1/privacy/revoke", "Remove grants from a memory",
		"It takes effect before the call returns. Ids without a grant are ignored.",
		func(d *privacy.Service) func(context.Context, identity.Caller, privacy.GrantChange) (*privacy.GrantResult, error) {
			return d.Revoke
		})
	addOperation(s, Operation{
		ID: "privacy-consent", Method: http.MethodPost, Path: "/v1/privacy/consents", Tag: tagPrivacy, Roles: agents,
		Writes: true, HasIdempotencyKey: true, Status: http.StatusCreated, Errors: []int{404, 409},
		OtherStatuses: map[int]string{http.StatusOK: "It was recorded already."}, Summary: "Record a consent",
		Description: "It allows a grantee to see memories about the grantor that are granted to it. Only the grantor or " +
			"its guardian records it, by its own credential.",
	}, func(ctx context.Context, c *Call, in *giveRequest) (*givenAnswer, error) {
		d, err := s.privacyService(c.Caller)
		if err != nil {
			return nil, err
		}
		out, err := d.RecordConsent(ctx, c.Caller, privacy.ConsentRequest{
			Grantor: in.Body.Grantor, Grantee: in.Body.Grantee, Scope: in.Body.Scope, Store: in.Body.Store, Reason: in.Body.Reason})
		if err != nil {
			return nil, err
		}
		c.AddAuditSubjects(out.Grantor)
		status := http.StatusCreated
		if out.Repeated {
			status = http.StatusOK
		}
		return &givenAnswer{status, privacyConsent(*out)}, nil
	})
	addOperation(s, Operation{
		ID: "privacy-withdraw", Method: http.MethodPost, Path: "/v1/privacy/consents/revoke", Tag: tagPrivacy,
		Roles: agents, Writes: true, HasIdempotencyKey: true, Errors: []int{404, 409},
		Summary:     "Revoke consents",
		Description: "The caller's own, or of somebody whose guardian it is. It takes effect before the call returns.",
	}, func(ctx context.Context, c *Call, in *withdrawRequest) (*withdrawnAnswer, error) {
		d, err := s.privacyService(c.Caller)
		if err != nil {
			return nil, err
		}
		list, err := d.WithdrawConsent(ctx, c.Caller,
			privacy.ConsentRequest{ID: in.Body.ID, Grantor: in.Body.Grantor, Grantee: in.Body.Grantee, Scope: in.Body.Scope,
				Store: in.Body.Store, Reason: in.Body.Reason})
		if err != nil {
			return nil, err
		}
		out := &withdrawnAnswer{}
		for _, one := range list {
			c.AddAuditSubjects(one.Grantor)
			out.Body.Consents = append(out.Body.Consents, privacyConsent(one))
		}
		return out, nil
	})
	addOperation(s, Operation{
		ID: "privacy-audit", Method: http.MethodGet, Path: "/v1/privacy/audit", Tag: tagPrivacy,
		Roles: []identity.Role{identity.Agent, identity.Subject}, Errors: []int{404},
		Summary: "Who sees a memory, or the memories about a subject",
		Description: "With the grants and consents by which they see it, and the history of the grants. It answers the owner of the " +
			"store, the subject and its guardian; for anybody else nothing is found. Texts are not included.",
	}, func(ctx context.Context, c *Call, in *auditRequest) (*auditAnswer, error) {
		d, err := s.privacyService(c.Caller)
		if err != nil {
			return nil, err
		}
		out, err := d.Audit(ctx, c.Caller, privacy.AuditQuery{Subject: in.Subject, ID: in.ID, Kind: in.Kind, After: in.After})
		if err != nil {
			return nil, err
		}
		if in.Subject != "" {
			c.AddAuditSubjects(in.Subject)
		}
		return &auditAnswer{*out}, nil
	})
}
