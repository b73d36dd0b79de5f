package registry

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// querier reads: it is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// findPartyByName finds a party by its name.
func (w *recordWriter) findPartyByName(ctx context.Context, tx pgx.Tx, name string) (party, bool, error) {
	if p, ok := w.partyByName[name]; ok {
		return p, true, nil
	}
	p, ok, err := findParty(ctx, tx, w.registry.Keys, w.id, name)
	if ok && err == nil {
		w.partyByName[name] = p
	}
	return p, ok, err
}

func findParty(ctx context.Context, q querier, k Keys, registry uuid, name string) (party, bool, error) {
	p := party{name: name}
	var wrapped []byte
	err := q.QueryRow(ctx, "SELECT ref, key, pseudonym_key FROM pgconsent.subject WHERE subject = $1",
		name).Scan(&p.reference,
		&wrapped, &p.pseudonymKey)
	if errors.Is(err, pgx.ErrNoRows) {
		return party{}, false, nil
	}
	if err != nil {
		return party{}, false, databaseError("look a subject up", err)
	}
	if p.key, err = k.unwrap(registry, p.reference, wrapped, p.pseudonymKey); err != nil {
		return party{}, false, newTamperedError(err.Error())
	}
	return p, true, nil
}

// findOrMakeParty returns the party with a name, and gives it a reference if it has none yet.
func (w *recordWriter) findOrMakeParty(ctx context.Context, tx pgx.Tx, name string, subject party) (party, error) {
	if name == subject.name {
		w.partyByName[name] = subject
		return subject, nil
	}
	p, ok, err := w.findPartyByName(ctx, tx, name)
	if err != nil || ok {
		return p, err
	}
	p = newParty(name)
	return p, w.insertParty(ctx, tx, p)
}

func (w *recordWriter) insertParty(ctx context.Context, tx pgx.Tx, p party) error {
	if _, err := tx.Exec(ctx, "SELECT pgconsent.consent_name($1, $2, $3)", p.reference, p.name,
		w.registry.Keys.wrap(w.id, p)); err != nil {
		return databaseError("record a subject", err)
	}
	w.partyByName[p.name] = p
	return nil
}

// readSituation returns what [consent.Decide] needs to know about the state. It reads the records, because somebody may
// have changed the table of current consents.
func (w *recordWriter) readSituation(ctx context.Context, tx pgx.Tx, key consent.Key,
	subject party) (consent.Situation, error) {
	var s consent.Situation
	command := w.command
	guardian := command.Guardian
	if command.Caller.Role == consent.RoleGuardian {
		guardian = command.Caller.ID
	}
	if guardian != "" {
		p, ok, err := w.findPartyByName(ctx, tx, guardian)
		if err != nil {
			return s, err
		}
		if ok {
			if s.IsGuardian, err = w.isGuardian(ctx, tx, subject, p); err != nil {
				return s, err
			}
		}
	}
	if command.Caller.Role == consent.RoleGuardian && !s.IsGuardian {
		return s, nil // Decide refuses a caller who is no guardian, so no record is needed
	}
	if command.Action != consent.ActionAppoint && command.Action != consent.ActionDismiss {
		var err error
		if s.Consent, err = w.lastConsent(ctx, tx, key, subject); err != nil {
			return s, err
		}
	}
	if command.Action == consent.ActionDecide {
		var err error
		if s.PartnershipAsker, err = w.findPartnershipAsker(ctx, tx, subject); err != nil {
			return s, err
		}
	}
	return s, nil
}

// isGuardian reports whether the records say that a party is a guardian of the subject. It returns an error if the
// record was altered.
func (w *recordWriter) isGuardian(ctx context.Context, tx pgx.Tx, subject, guardian party) (bool, error) {
	var e recordEntry
	err := e.scan(tx.QueryRow(ctx, "SELECT "+recordColumns+" FROM "+fromRecords+` WHERE subject = $1
		AND grantee = $2 AND event IN ('appointed', 'dismissed')
		ORDER BY number DESC LIMIT 1`, subject.reference, guardian.reference))
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, databaseError("look a guardian up", err)
	}
	if reason := e.findProblem(w.registry.Keys, w.id); reason != "" {
		return false, newTamperedError(reason)
	}
	return e.Event == string(consent.EventAppointed), nil
}

// lastConsent returns the consent after the last record with a key, or nil if there is no such record.
func (w *recordWriter) lastConsent(ctx context.Context, tx pgx.Tx, key consent.Key, subject party) (*consent.Consent,
	error) {
	var grantee *uuid
	if key.Grantee != consent.AnyGrantee {
		p, ok, err := w.findKnownParty(ctx, tx, key.Grantee, subject)
		if err != nil || !ok {
			return nil, err
		}
		grantee = &p.reference
	}
	e, ok, err := lastRecord(ctx, tx, subject, grantee, key.Scope)
	if err != nil || !ok {
		return nil, err
	}
	before := e.consent(key)
	if reason := e.findProblem(w.registry.Keys, w.id); reason != "" {
		if !endsConsent(w.command) {
			return nil, newTamperedError(reason)
		}
		w.tampering = cmp.Or(w.tampering, error(newTamperedError(reason)))
		before = untrustedConsent(key, before)
	}
	return &before, nil
}

// untrustedConsent returns a consent in place of one whose record was altered. It counts as given, so that its end is
// recorded and all older data become void.
func untrustedConsent(key consent.Key, recordedConsent consent.Consent) consent.Consent {
	c := consent.Consent{Key: key, State: consent.StateGiven, Stream: recordedConsent.Stream, Categories: []string{},
		Purposes: []string{}, VoidBefore: recordedConsent.VoidBefore}
	if c.Stream == "" && key.Grantee == consent.AnyGrantee && key.Scope == consent.AnyScope {
		c.Stream = consent.StreamTemporary
	}
	return c
}

// findKnownParty finds a party by its name; for the subject's name it returns the subject.
func (w *recordWriter) findKnownParty(ctx context.Context, tx pgx.Tx, name string, subject party) (party, bool, error) {
	if name == subject.name {
		return subject, true, nil
	}
	return w.findPartyByName(ctx, tx, name)
}

func lastRecord(ctx context.Context, q querier, subject party, grantee *uuid, scope string) (recordEntry, bool, error) {
	var e recordEntry
	err := e.scan(q.QueryRow(ctx, "SELECT "+recordColumns+` FROM `+fromRecords+` WHERE subject = $1
		AND grantee IS NOT DISTINCT FROM $2 AND scope IS NOT DISTINCT FROM $3
		AND event NOT IN ('appointed', 'dismissed', 'erased') ORDER BY number DESC LIMIT 1`, subject.reference, grantee, subject.scope(scope)))
	if errors.Is(err, pgx.ErrNoRows) {
		return e, false, nil
	}
	if err != nil {
		return e, false, databaseError("read the last consent record of a subject", err)
	}
	return e, true, nil
}

// findPartnershipAsker returns the party that requested the partnership last.
func (w *recordWriter) findPartnershipAsker(ctx context.Context, tx pgx.Tx, subject party) (consent.Party, error) {
	var e recordEntry
	err := e.scan(tx.QueryRow(ctx, "SELECT "+recordColumns+" FROM "+
		fromRecords+" WHERE subject = $1 AND event = 'requested' ORDER BY number DESC LIMIT 1", subject.reference))
	var d recordDetails
	switch {
	case errors.Is(err, pgx.ErrNoRows): // nobody has requested a partnership
	case err != nil:
		return consent.Party{}, databaseError("look up who asked", err)
	default:
		if reason := e.findProblem(w.registry.Keys, w.id); reason != "" {
			return consent.Party{}, newTamperedError(reason)
		}
		if d, err = subject.openDetails(w.id, e.Number, e.Sealed); err != nil {
			return consent.Party{}, newTamperedError(err.Error())
		}
	}
	names, err := namesOf(ctx, tx, []string{d.RecordedByRef})
	return consent.Party{Role: d.RecordedByRole, ID: names[d.RecordedByRef]}, err
}

// namesOf returns the names of references, which are in hex. The name of an erased person is "".
func namesOf(ctx context.Context, q querier, refs []string) (map[string]string, error) {
	var ids []uuid
	for _, r := range refs {
		if b, err := hex.DecodeString(r); err == nil && len(b) == 16 {
			ids = append(ids, uuid(b))
		}
	}
	out := map[string]string{}
	rows, err := q.Query(ctx, "SELECT ref, subject FROM pgconsent.subject WHERE ref = ANY ($1) AND subject IS NOT NULL", ids)
	if err != nil {
		return nil, databaseError("look names up", err)
	}
	var ref uuid
	var name string
	_, err = pgx.ForEachRow(rows, []any{&ref, &name}, func() error {
		out[hex.EncodeToString(ref[:])] = name
		return nil
	})
	if err != nil {
		return nil, databaseError("look names up", err)
	}
	return out, nil
}
