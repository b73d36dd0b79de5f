package demo

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/world"
	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/run/serve"
)

// recordConsents records, in an empty consent registry, the relationships with which the world begins. Each change has
// a key made of the subject and the step, so that an interrupted start can continue.
func (f demoFolder) recordConsents(ctx context.Context, cfg *config.Config, progress func(string)) error {
	if f.world.Consents == "" {
		return nil
	}
	recordedPath := f.filePath("consents")
	if _, err := os.Stat(recordedPath); err == nil {
		return nil
	}
	subjects, err := f.querySubjects(ctx, cfg)
	if err != nil {
		return fmt.Errorf("world %s: world.yaml: consents: %w", f.world.Name, err)
	}
	r, err := serve.OpenRegistry(cfg, f.world.Name)
	if err != nil {
		return err
	}
	defer r.Close()
	agent := f.world.Agents[0].Name // every world has at least one agent
	for i, s := range subjects {
		if i%100 == 0 {
			progress(fmt.Sprintf("recording consents: %d of %d", i, len(subjects)))
		}
		for _, command := range s.consentCommands(agent) {
			command.RequestKey = "demo " + string(command.Action) + " " + s.id
			if _, err := r.Execute(ctx, command); err != nil {
				return fmt.Errorf("world %s: the consent of %s: %w", f.world.Name, s.id, err)
			}
		}
	}
	return os.WriteFile(recordedPath, []byte(time.Now().UTC().Format(time.RFC3339)+"\n"), 0o644)
}

// consentSubject is a person, and the relationship with which the person begins.
type consentSubject struct {
	id     string
	stream consent.Stream
}

// consentCommands returns the changes in the registry that lead to the subject's relationship. In a partnership, the
// agent makes the decision.
func (s consentSubject) consentCommands(agent string) []consent.Command {
	subjectParty := consent.Party{Role: consent.RoleSubject, ID: s.id}
	if s.stream != consent.StreamPartnered {
		return []consent.Command{{Action: consent.ActionGrant, Subject: s.id, Stream: s.stream, Caller: subjectParty,
			Interface: "demo"}}
	}
	return []consent.Command{
		{Action: consent.ActionGrant, Subject: s.id, Stream: consent.StreamTemporary, Caller: subjectParty,
			Interface: "demo"},
		{Action: consent.ActionUpgrade, Subject: s.id, Caller: subjectParty, Interface: "demo", Reason: "we work together"},
		{Action: consent.ActionDecide, Subject: s.id, Decision: consent.DecisionApprove,
			Caller: consent.Party{Role: consent.RoleAgent, ID: agent}, Interface: "demo"},
	}
}

// querySubjects runs the world's query for subjects with the owner's role.
func (f demoFolder) querySubjects(ctx context.Context, c *config.Config) ([]consentSubject, error) {
	return queryWorld(ctx, c, f.world.Name, f.world.Consents, func(row pgx.CollectableRow) (s consentSubject, err error) {
		err = row.Scan(&s.id, &s.stream)
		return s, err
	})
}

// applyConsent makes one change in the registry, as its subject.
func applyConsent(ctx context.Context, r *registry.Registry, c world.Consent) (string, error) {
	result, err := r.Execute(ctx, consent.Command{
		Action: consent.Action(c.Command), Subject: c.Subject, Scope: c.Scope, Stream: consent.Stream(c.Stream),
		Categories: c.Categories,
		Caller:     consent.Party{Role: consent.RoleSubject, ID: c.Subject}, Interface: "demo",
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: %s; record %d", c.Subject, result.Consent.State, result.RecordNumber), nil
}
