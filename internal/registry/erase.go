package registry

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// eraseSubject ends every consent of the subject, and then destroys the subject's name and key, without which nobody
// can read the sealed details. Records of other subjects that name this one as grantee or guardian keep the reference.
func (w *recordWriter) eraseSubject(ctx context.Context, tx pgx.Tx, subject party, isKnown bool) (Result, []newRecord,
	error) {
	situation, err := w.readSituation(ctx, tx, consent.Key{
		Subject: subject.name, Grantee: consent.AnyGrantee, Scope: consent.AnyScope}, subject)
	if err != nil {
		return Result{}, nil, err
	}
	// A caller that may not erase is refused first, whether the subject has records or not.
	var notFound *consent.NotFoundError
	if _, err := consent.Decide(w.registry.Settings, w.recordTime, situation, w.command); err != nil && !errors.As(err,
		&notFound) {
		return Result{}, nil, err
	}
	if !isKnown {
		return Result{}, nil, consent.NewNotFound()
	}
	rows, err := tx.Query(ctx,
		"SELECT grantee, scope FROM pgconsent.consent_current WHERE subject = $1 ORDER BY grantee, scope", subject.name)
	if err != nil {
		return Result{}, nil, databaseError("read what is to be erased", err)
	}
	keys, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (consent.Key, error) {
		k := consent.Key{Subject: subject.name}
		return k, row.Scan(&k.Grantee, &k.Scope)
	})
	if err != nil {
		return Result{}, nil, databaseError("read what is to be erased", err)
	}
	var steps []consent.Step
	for _, key := range keys {
		before, err := w.lastConsent(ctx, tx, key, subject)
		if err != nil {
			return Result{}, nil, err
		}
		if before == nil {
			continue
		}
		command := w.command
		command.Action, command.Grantee, command.Scope = consent.ActionRevoke, key.Grantee, key.Scope
		endSteps, err := consent.Decide(w.registry.Settings, w.recordTime,
			consent.Situation{Consent: before, IsGuardian: situation.IsGuardian}, command)
		if err != nil {
			return Result{}, nil, err
		}
		steps = append(steps, endSteps...)
	}
	state := consent.StateWithdrawn
	if w.command.Caller.Role != consent.RoleSubject && w.command.Caller.Role != consent.RoleGuardian {
		state = consent.StateRevoked
	}
	erasedConsent := consent.Consent{Key: consent.Key{Subject: subject.name, Grantee: consent.AnyGrantee,
		Scope: consent.AnyScope}, State: state, Controller: w.registry.Settings.Controller}
	steps = append(steps, consent.Step{Event: consent.EventErased, Consent: erasedConsent, RecordedBy: w.command.Caller})
	entries, err := w.signSteps(ctx, tx, subject, steps)
	if err != nil {
		return Result{}, nil, err
	}
	return Result{Consent: erasedConsent, RecordNumber: w.lastHead.Number, RecordedAt: w.recordTime}, entries, nil
}

// findErasure finds the erasure that an earlier attempt made without an answer to its commit.
func (w *recordWriter) findErasure(ctx context.Context, tx pgx.Tx) (Result, []newRecord, error) {
	out := Result{IsRepeated: true}
	err := tx.QueryRow(ctx,
		"SELECT number, recorded_at FROM pgconsent.consent_record WHERE subject = $1 AND event = 'erased'",
		*w.erasedSubject).Scan(&out.RecordNumber, &out.RecordedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return Result{}, nil, consent.NewNotFound()
	}
	if err != nil {
		return Result{}, nil, databaseError("look for an erasure", err)
	}
	return out, nil, nil
}
