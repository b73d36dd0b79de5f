package operations

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/pgconsent/pgconsent/internal/face/identity"
	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// Status is where the relationship of a subject stands.
type Status struct {
	consent.Record           // the last one
	Now            time.Time // by the database's clock
}

// Task is a partnership that waits for the agent's side.
type Task struct {
	ID         string
	Subject    string
	Categories []string
	DueAt      time.Time
}

// Change is what became of a command.
type Change struct {
	registry.Result
	Task *Task // the question that is open; nil: none
}

// Status is the relationship of a subject: their consent to everybody, about everything. One that has expired is a
// *consent.ExpiredError, and the status all the same.
func (d *Service) Status(ctx context.Context, c identity.Caller, subject string) (Status, error) {
	if err := RequireRole(c, identity.Subject, identity.Admin, identity.System); err != nil {
		return Status{}, err
	}
	r, err := d.registry(c)
	if err != nil {
		return Status{}, err
	}
	if subject, err = Whose(c, subject); err != nil {
		return Status{}, err
	}
	rec, now, err := r.Current(ctx, consent.Key{Subject: subject, Grantee: consent.Everybody, Scope: consent.Everything})
	if err != nil {
		return Status{}, err
	}
	s := Status{rec, now}
	if rec.StateAt(now) == consent.Expired {
		return s, consent.NewExpired("the consent has expired")
	}
	return s, nil
}

// Consents are the last records of all consents of a subject: the relationship, and those to grantees and about scopes.
func (d *Service) Consents(ctx context.Context, c identity.Caller, subject string) ([]Status, error) {
	if err := RequireRole(c, identity.Subject, identity.Admin, identity.System); err != nil {
		return nil, err
	}
	r, err := d.registry(c)
	if err != nil {
		return nil, err
	}
	if subject, err = Whose(c, subject); err != nil {
		return nil, err
	}
	records, now, err := r.CurrentOfSubject(ctx, subject)
	if err != nil {
		return nil, err
	}
	out := make([]Status, len(records))
	for i, rec := range records {
		out[i] = Status{rec, now}
	}
	return out, nil
}

// History are the records of a subject, oldest first: their own, or for an admin.
func (d *Service) History(ctx context.Context, c identity.Caller, subject string) ([]consent.Record, error) {
	if err := RequireRole(c, identity.Subject, identity.Admin); err != nil {
		return nil, err
	}
	r, err := d.registry(c)
	if err != nil {
		return nil, err
	}
	if subject, err = Whose(c, subject); err != nil {
		return nil, err
	}
	return r.History(ctx, subject)
}

// Change does a command in the name of the caller, who becomes its party. Subject may be empty for a subject's own. A
// subject may name another, whose guardian it is.
func (d *Service) Change(ctx context.Context, c identity.Caller, command consent.Command) (Change, error) {
	if c.Role == identity.Admin || c.Role == identity.Operator {
		return Change{}, forbidden()
	}
	r, err := d.registry(c)
	if err != nil {
		return Change{}, err
	}
	if command.Subject, command.By, err = Speaker(c, command.Subject); err != nil {
		return Change{}, err
	}
	if command.Do == consent.Interact && c.Role == identity.System {
		command.By.Role = consent.RoleApplication
	}
	if command.Request != "" {
		// Keys are each caller's own: one that somebody else has used tells nothing.
		command.Request = string(c.Role) + " " + cmp.Or(c.Subject, c.Agent, c.Name) + " " + command.Request
	}
	// Before the registry looks whether there is such a subject.
	if err := consent.CheckRole(command); err != nil {
		return Change{}, forbidden()
	}
	result, err := r.Do(ctx, command)
	if err != nil {
		if unasked, ok := errors.AsType[*consent.ValidationError](err); ok && unasked.NotRequested && c.Role == identity.Agent {
			err = consent.NewNotFound() // an agent knows of those who ask, and of nobody else whether there is a consent
		}
		return Change{}, uniformRefusal(err)
	}
	return Change{result, task(result.Consent, result.At)}, nil
}

// Pending are the partnerships that can be decided: for agents, who decide, and admins, who look.
func (d *Service) Pending(ctx context.Context, c identity.Caller) ([]Task, error) {
	if err := RequireRole(c, identity.Agent, identity.Admin); err != nil {
		return nil, err
	}
	r, err := d.registry(c)
	if err != nil {
		return nil, err
	}
	questions, err := r.Pending(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Task, len(questions))
	for i, q := range questions {
		out[i] = Task{taskID(q.Subject, q.DueAt), q.Subject, q.Categories, q.DueAt}
	}
	return out, nil
}

// Open is the question that is open about a consent; nil: none.
func (s Status) Open() *Task { return task(s.Consent, s.Now) }

func task(c consent.Consent, at time.Time) *Task {
	if !c.Pending(at) {
		return nil
	}
	return &Task{taskID(c.Subject, c.DueAt), c.Subject, c.RequestedCategories, c.DueAt}
}

// taskID names a question as long as it is open: it is decided until the same time however often it was deferred.
func taskID(subject string, due time.Time) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "partnership|%d|%s", due.UnixMicro(), subject))
	return "partnership-" + hex.EncodeToString(sum[:8])
}

// uniformRefusal makes one refusal of those that say which party may not.
func uniformRefusal(err error) error {
	var refused *consent.ForbiddenError
	if errors.As(err, &refused) {
		return forbidden()
	}
	return err
}

// Records are the records of all subjects with greater numbers, oldest first, at most so many: for an admin.
func (d *Service) Records(ctx context.Context, c identity.Caller, after int64, most int) ([]consent.Record, error) {
	if err := RequireRole(c, identity.Admin); err != nil {
		return nil, err
	}
	r, err := d.registry(c)
	if err != nil {
		return nil, err
	}
	return r.Records(ctx, after, most)
}
