package operations

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/services/identity"
)

// ConsentStatus is the newest record of a consent, and the time at which it was read.
type ConsentStatus struct {
	consent.Record           // the newest record of the consent
	Now            time.Time // the time by the database's clock
}

// PartnershipTask is a requested partnership that waits for the decision of the agent's side.
type PartnershipTask struct {
	ID         string
	Subject    string
	Categories []string
	DueAt      time.Time
}

// ConsentChange is the result of a command that changes a consent.
type ConsentChange struct {
	registry.Result
	Task *PartnershipTask // the request for a partnership that is still open; nil: none is
}

// Status returns a subject's relationship: the consent to everybody, about everything. If that consent has expired,
// Status returns both the status and a *consent.ExpiredError.
func (d *Service) Status(ctx context.Context, caller identity.Caller, subject string) (ConsentStatus, error) {
	if err := RequireRole(caller, identity.Subject, identity.Admin, identity.System); err != nil {
		return ConsentStatus{}, err
	}
	r, err := d.registry(caller)
	if err != nil {
		return ConsentStatus{}, err
	}
	if subject, err = SubjectOf(caller, subject); err != nil {
		return ConsentStatus{}, err
	}
	rec, now, err := r.CurrentRecord(ctx, consent.Key{Subject: subject, Grantee: consent.AnyGrantee,
		Scope: consent.AnyScope})
	if err != nil {
		return ConsentStatus{}, err
	}
	s := ConsentStatus{rec, now}
	if rec.StateAt(now) == consent.StateExpired {
		return s, consent.NewExpired("the consent has expired")
	}
	return s, nil
}

// Consents returns the newest record of each consent of a subject: the relationship, and the consents to single
// grantees or about single scopes.
func (d *Service) Consents(ctx context.Context, caller identity.Caller, subject string) ([]ConsentStatus, error) {
	if err := RequireRole(caller, identity.Subject, identity.Admin, identity.System); err != nil {
		return nil, err
	}
	r, err := d.registry(caller)
	if err != nil {
		return nil, err
	}
	if subject, err = SubjectOf(caller, subject); err != nil {
		return nil, err
	}
	records, now, err := r.CurrentOfSubject(ctx, subject)
	if err != nil {
		return nil, err
	}
	out := make([]ConsentStatus, len(records))
	for i, rec := range records {
		out[i] = ConsentStatus{rec, now}
	}
	return out, nil
}

// History returns the records of a subject, oldest first. Only the subject and admins may call it.
func (d *Service) History(ctx context.Context, caller identity.Caller, subject string) ([]consent.Record, error) {
	if err := RequireRole(caller, identity.Subject, identity.Admin); err != nil {
		return nil, err
	}
	r, err := d.registry(caller)
	if err != nil {
		return nil, err
	}
	if subject, err = SubjectOf(caller, subject); err != nil {
		return nil, err
	}
	return r.History(ctx, subject)
}

// Change changes a consent in the name of the caller. An empty subject means the caller; only a guardian may name
// another subject.
func (d *Service) Change(ctx context.Context, caller identity.Caller, command consent.Command) (ConsentChange, error) {
	if caller.Role == identity.Admin || caller.Role == identity.Operator {
		return ConsentChange{}, newForbiddenError()
	}
	r, err := d.registry(caller)
	if err != nil {
		return ConsentChange{}, err
	}
	if command.Subject, command.Caller, err = PartyFor(caller, command.Subject); err != nil {
		return ConsentChange{}, err
	}
	if command.Action == consent.ActionInteract && caller.Role == identity.System {
		command.Caller.Role = consent.RoleApplication
	}
	if command.RequestKey != "" {
		// The caller becomes part of the key, so that callers cannot see that another caller has used the same key.
		command.RequestKey = string(caller.Role) + " " + cmp.Or(caller.Subject, caller.Agent, caller.Name) + " " +
			command.RequestKey
	}
	// The role is checked before the registry looks up the subject.
	if err := consent.CheckRole(command); err != nil {
		return ConsentChange{}, newForbiddenError()
	}
	result, err := r.Execute(ctx, command)
	if err != nil {
		if unasked, ok := errors.AsType[*consent.ValidationError](err); ok && unasked.NotRequested &&
			caller.Role == identity.Agent {
			// An agent may know of the subjects who asked for a partnership. It must not learn whether anybody else has a
			// consent.
			err = consent.NewNotFound()
		}
		return ConsentChange{}, uniformRefusal(err)
	}
	return ConsentChange{result, requestedPartnership(result.Consent, result.RecordedAt)}, nil
}

// PendingPartnerships returns the partnerships that wait for a decision. Only agents, who decide, and admins may call
// it.
func (d *Service) PendingPartnerships(ctx context.Context, caller identity.Caller) ([]PartnershipTask, error) {
	if err := RequireRole(caller, identity.Agent, identity.Admin); err != nil {
		return nil, err
	}
	r, err := d.registry(caller)
	if err != nil {
		return nil, err
	}
	questions, err := r.PendingPartnerships(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]PartnershipTask, len(questions))
	for i, q := range questions {
		out[i] = PartnershipTask{taskID(q.Subject, q.DueAt), q.Subject, q.Categories, q.DueAt}
	}
	return out, nil
}

// OpenTask returns the subject's open request for a partnership, and nil if there is none.
func (s ConsentStatus) OpenTask() *PartnershipTask { return requestedPartnership(s.Consent, s.Now) }

// requestedPartnership returns the partnership that a consent requests, and nil if it requests none.
func requestedPartnership(c consent.Consent, at time.Time) *PartnershipTask {
	if !c.IsPendingAt(at) {
		return nil
	}
	return &PartnershipTask{taskID(c.Subject, c.DueAt), c.Subject, c.RequestedCategories, c.DueAt}
}

// taskID returns the id of an open request, which depends on the subject and the deadline only. Deferring the request
// changes neither, so that the id stays the same.
func taskID(subject string, dueAt time.Time) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "partnership|%d|%s", dueAt.UnixMicro(), subject))
	return "partnership-" + hex.EncodeToString(sum[:8])
}

// uniformRefusal replaces a *consent.ForbiddenError, whose text names the party, by an error with one fixed text.
func uniformRefusal(err error) error {
	var refused *consent.ForbiddenError
	if errors.As(err, &refused) {
		return newForbiddenError()
	}
	return err
}

// Records returns up to limit records of all subjects whose numbers are greater than after, oldest first. Only admins
// may call it.
func (d *Service) Records(ctx context.Context, c identity.Caller, after int64, limit int) ([]consent.Record, error) {
	if err := RequireRole(c, identity.Admin); err != nil {
		return nil, err
	}
	r, err := d.registry(c)
	if err != nil {
		return nil, err
	}
	return r.Records(ctx, after, limit)
}
