package registry

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// findByName finds a party by its name.
func (w *writer) findByName(ctx context.Context, tx pgx.Tx, name string) (party, bool, error) {
	if p, ok := w.names[name]; ok {
		return p, true, nil
	}
	p, ok, err := findParty(ctx, tx, w.registry.Keys, w.id, name)
	if ok && err == nil {
		w.names[name] = p
	}
	return p, ok, err
}

func findParty(ctx context.Context, q querier, k Keys, registry uuid, name string) (party, bool, error) {
	p := party{name: name}
	var wrapped []byte
	err := q.QueryRow(ctx, "SELECT ref, key, pseudonym_key FROM pgconsent.subject WHERE subject = $1", name).Scan(&p.ref,
		&wrapped, &p.pseudonymKey)
	if errors.Is(err, pgx.ErrNoRows) {
		return party{}, false, nil
	}
	if err != nil {
		return party{}, false, dbError("look a subject up", err)
	}
	if p.key, err = k.unwrap(registry, p.ref, wrapped, p.pseudonymKey); err != nil {
		return party{}, false, newTamperedError(err.Error())
	}
	return p, true, nil
}

// findOrMake returns a party by its name, and makes a reference to it if there is none.
func (w *writer) findOrMake(ctx context.Context, tx pgx.Tx, name string, subject party) (party, error) {
	if name == subject.name {
		w.names[name] = subject
		return subject, nil
	}
	p, ok, err := w.findByName(ctx, tx, name)
	if err != nil || ok {
		return p, err
	}
	p = newParty(name)
	return p, w.insertParty(ctx, tx, p)
}

func (w *writer) insertParty(ctx context.Context, tx pgx.Tx, p party) error {
	if _, err := tx.Exec(ctx, "SELECT pgconsent.consent_name($1, $2, $3)", p.ref, p.name,
		w.registry.Keys.wrap(w.id, p)); err != nil {
		return dbError("record a subject", err)
	}
	w.names[p.name] = p
	return nil
}

// readSituation returns what the records say before a command. It reads the records, not the table of current consents,
// which somebody may have changed.
func (w *writer) readSituation(ctx context.Context, tx pgx.Tx, key consent.Key, subject party) (consent.Situation, error) {
	var s consent.Situation
	c := w.command
	guardian := c.Guardian
	if c.By.Role == consent.RoleGuardian {
		guardian = c.By.ID
	}
	if guardian != "" {
		p, ok, err := w.findByName(ctx, tx, guardian)
		if err != nil {
			return s, err
		}
		if ok {
			if s.IsGuardian, err = w.isGuardian(ctx, tx, subject, p); err != nil {
				return s, err
			}
		}
	}
	if c.By.Role == consent.RoleGuardian && !s.IsGuardian {
		return s, nil // a command about no guardian is refused before any record is read
	}
	if c.Do != consent.Appoint && c.Do != consent.Dismiss {
		var err error
		if s.Consent, err = w.lastConsent(ctx, tx, key, subject); err != nil {
			return s, err
		}
	}
	if c.Do == consent.DecidePartnership {
		var err error
		if s.PartnershipAsker, err = w.findPartnershipAsker(ctx, tx, subject); err != nil {
			return s, err
		}
	}
	return s, nil
}

// isGuardian tells whether the records say that somebody is a guardian of the subject. An altered record makes nobody a
// guardian.
func (w *writer) isGuardian(ctx context.Context, tx pgx.Tx, subject, guardian party) (bool, error) {
	var e entry
	err := e.scan(tx.QueryRow(ctx, "SELECT "+recordColumns+" FROM "+fromRecords+` WHERE subject = $1
		AND grantee = $2 AND event IN ('appointed', 'dismissed')
		ORDER BY number DESC LIMIT 1`, subject.ref, guardian.ref))
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, dbError("look a guardian up", err)
	}
	if why := e.findProblem(w.registry.Keys, w.id); why != "" {
		return false, newTamperedError(why)
	}
	return e.Event == string(consent.EventAppointed), nil
}

// lastConsent returns the consent as the last record of a key leaves it; nil: the key has no record.
func (w *writer) lastConsent(ctx context.Context, tx pgx.Tx, key consent.Key, subject party) (*consent.Consent, error) {
	var grantee *uuid
	if key.Grantee != consent.Everybody {
		p, ok, err := w.findKnown(ctx, tx, key.Grantee, subject)
		if err != nil || !ok {
			return nil, err
		}
		grantee = &p.ref
	}
	e, ok, err := lastRecord(ctx, tx, subject, grantee, key.Scope)
	if err != nil || !ok {
		return nil, err
	}
	before := e.consent(key)
	if why := e.findProblem(w.registry.Keys, w.id); why != "" {
		if !endsConsent(w.command) {
			return nil, newTamperedError(why)
		}
		w.tampering = cmp.Or(w.tampering, error(newTamperedError(why)))
		before = untrustedConsent(key, before)
	}
	return &before, nil
}

// untrustedConsent is a consent whose records cannot be trusted: it is taken for active, so that its end is recorded
// and all older data are void.
func untrustedConsent(key consent.Key, said consent.Consent) consent.Consent {
	c := consent.Consent{Key: key, State: consent.Given, Stream: said.Stream, Categories: []string{},
		Purposes: []string{}, VoidBefore: said.VoidBefore}
	if c.Stream == "" && key.Grantee == consent.Everybody && key.Scope == consent.Everything {
		c.Stream = consent.Temporary
	}
	return c
}

// findKnown finds a party by its name. The subject is known already.
func (w *writer) findKnown(ctx context.Context, tx pgx.Tx, name string, subject party) (party, bool, error) {
	if name == subject.name {
		return subject, true, nil
	}
	return w.findByName(ctx, tx, name)
}

func lastRecord(ctx context.Context, q querier, subject party, grantee *uuid, scope string) (entry, bool, error) {
	var e entry
	err := e.scan(q.QueryRow(ctx, "SELECT "+recordColumns+` FROM `+fromRecords+` WHERE subject = $1
		AND grantee IS NOT DISTINCT FROM $2 AND scope IS NOT DISTINCT FROM $3
		AND event NOT IN ('appointed', 'dismissed', 'erased') ORDER BY number DESC LIMIT 1`, subject.ref, grantee, subject.scope(scope)))
	if errors.Is(err, pgx.ErrNoRows) {
		return e, false, nil
	}
	if err != nil {
		return e, false, dbError("read the last consent record of a subject", err)
	}
	return e, true, nil
}

// findPartnershipAsker returns the party that last asked for the partnership.
func (w *writer) findPartnershipAsker(ctx context.Context, tx pgx.Tx, subject party) (consent.Party, error) {
	var e entry
	err := e.scan(tx.QueryRow(ctx, "SELECT "+recordColumns+" FROM "+
		fromRecords+" WHERE subject = $1 AND event = 'requested' ORDER BY number DESC LIMIT 1", subject.ref))
	var d details
	switch {
	case errors.Is(err, pgx.ErrNoRows): // nobody has asked for it
	case err != nil:
		return consent.Party{}, dbError("look up who asked", err)
	default:
		if why := e.findProblem(w.registry.Keys, w.id); why != "" {
			return consent.Party{}, newTamperedError(why)
		}
		if d, err = subject.open(w.id, e.Number, e.Sealed); err != nil {
			return consent.Party{}, newTamperedError(err.Error())
		}
	}
	names, err := namesOf(ctx, tx, []string{d.RecordedByRef})
	return consent.Party{Role: d.By, ID: names[d.RecordedByRef]}, err
}

// namesOf returns the names of references in hex; "" for erased persons.
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
		return nil, dbError("look names up", err)
	}
	var ref uuid
	var name string
	_, err = pgx.ForEachRow(rows, []any{&ref, &name}, func() error {
		out[hex.EncodeToString(ref[:])] = name
		return nil
	})
	if err != nil {
		return nil, dbError("look names up", err)
	}
	return out, nil
}
