package registry

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// snapshot calls f with a read-only transaction that sees one snapshot of the registry.
func (r *Registry) snapshot(ctx context.Context,
	f func(ctx context.Context, tx pgx.Tx, id uuid, now time.Time) error) error {
	return r.readSnapshot(ctx, false, f)
}

// readSnapshot is [Registry.snapshot], but if isLong is true, f may take as long as it needs.
func (r *Registry) readSnapshot(ctx context.Context, isLong bool,
	f func(ctx context.Context, tx pgx.Tx, id uuid, now time.Time) error) error {
	return r.tryWithConnection(ctx, isLong, queryTimeoutError, func(ctx context.Context, conn *pgx.Conn) error {
		// An event trigger on login may have changed the search path, so it is set again.
		tx, err := conn.BeginTx(ctx, pgx.TxOptions{
			BeginQuery: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path = pg_catalog"})
		if err != nil {
			return databaseError("read consents", err)
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
		var id uuid
		var now time.Time
		if err := tx.QueryRow(ctx, "SELECT id, pgconsent.consent_now() FROM pgconsent.consent_registry").Scan(&id,
			&now); err != nil {
			return databaseError("read consents", err)
		}
		return f(ctx, tx, id, now.UTC())
	})
}

// CurrentRecord returns the last record of a consent, and the database's time. If there is no such record, the error is
// a *consent.NotFoundError.
func (r *Registry) CurrentRecord(ctx context.Context, key consent.Key) (consent.Record, time.Time, error) {
	current, now, err := r.CurrentOfSubject(ctx, key.Subject)
	if err != nil {
		return consent.Record{}, now, err
	}
	for _, rec := range current {
		if rec.Key == key {
			return rec, now, nil
		}
	}
	return consent.Record{}, now, consent.NewNotFound()
}

// CurrentOfSubject returns the last record of each consent of a subject, those with a stream first, and the database's
// time.
func (r *Registry) CurrentOfSubject(ctx context.Context, subject string) (out []consent.Record, now time.Time, err error) {
	err = r.snapshot(ctx, func(ctx context.Context, tx pgx.Tx, id uuid, clock time.Time) error {
		now = clock
		out, err = r.readRecords(ctx, tx, id, subject,
			"number IN (SELECT c.number FROM pgconsent.consent_current AS c WHERE c.subject = $2)", subject)
		return err
	})
	if err == nil && len(out) == 0 {
		err = consent.NewNotFound()
	}
	return out, now, err
}

// History returns all records of a subject, oldest first. If there is none, the error is a *consent.NotFoundError.
func (r *Registry) History(ctx context.Context, subject string) (out []consent.Record, err error) {
	err = r.snapshot(ctx, func(ctx context.Context, tx pgx.Tx, id uuid, _ time.Time) error {
		out, err = r.readRecords(ctx, tx, id, subject, "true")
		return err
	})
	if err == nil && len(out) == 0 {
		err = consent.NewNotFound()
	}
	return out, err
}

// readRecords reads the records of a subject that meet a condition, and decrypts their details.
func (r *Registry) readRecords(ctx context.Context, tx pgx.Tx, id uuid, subject, where string,
	args ...any) ([]consent.Record, error) {
	p, ok, err := findParty(ctx, tx, r.Keys, id, subject)
	if err != nil || !ok {
		return nil, err
	}
	rows, err := tx.Query(ctx, "SELECT "+recordColumns+" FROM "+fromRecords+" WHERE subject = $1 AND "+where+" ORDER BY number",
		append([]any{p.reference}, args...)...)
	if err != nil {
		return nil, databaseError("read consent records", err)
	}
	entries, err := pgx.CollectRows(rows, scanEntry)
	if err != nil {
		return nil, databaseError("read consent records", err)
	}
	details := make([]recordDetails, len(entries))
	var refs []string
	for i, e := range entries {
		if reason := e.findProblem(r.Keys, id); reason != "" {
			return nil, newTamperedError(reason)
		}
		if details[i], err = p.openDetails(id, e.Number, e.Sealed); err != nil {
			return nil, newTamperedError(err.Error())
		}
		refs = append(refs, details[i].Grantor, details[i].RecordedByRef, details[i].Guardian)
		if e.Grantee != nil {
			refs = append(refs, hex.EncodeToString(e.Grantee[:]))
		}
	}
	names, err := namesOf(ctx, tx, refs)
	if err != nil {
		return nil, err
	}
	name := func(ref string) string {
		if n, ok := names[ref]; ok || ref == "" {
			return n
		}
		return ErasedName
	}
	out := make([]consent.Record, len(entries))
	for i, e := range entries {
		d := details[i]
		key := consent.Key{Subject: p.name, Grantee: consent.AnyGrantee, Scope: d.Scope}
		if e.Grantee != nil {
			key.Grantee = name(hex.EncodeToString(e.Grantee[:]))
		}
		out[i] = consent.Record{
			Number: e.Number, At: e.RecordedAt.UTC(), Event: consent.Event(e.Event), Consent: e.consent(key),
			Details: consent.Details{
				Grantor: name(d.Grantor), RecordedBy: consent.Party{
					Role: d.RecordedByRole, ID: name(d.RecordedByRef)}, Via: d.Via, Reason: d.Reason, Evidence: d.Evidence,
				Guardian: name(d.Guardian),
			},
		}
	}
	return out, nil
}

// ErasedName stands for the name of an erased person.
const ErasedName = "(erased)"

func scanEntry(row pgx.CollectableRow) (recordEntry, error) {
	var e recordEntry
	return e, row.Scan(e.fields()...)
}

// PendingPartnership is a requested partnership about which the agent's side has not decided.
type PendingPartnership struct {
	Subject    string
	Categories []string // the requested categories
	DueAt      time.Time
}

// PendingPartnerships returns the requested partnerships that can still be decided, those with the earliest deadline
// first.
func (r *Registry) PendingPartnerships(ctx context.Context) (out []PendingPartnership, err error) {
	err = r.snapshot(ctx, func(ctx context.Context, tx pgx.Tx, _ uuid, now time.Time) error {
		rows, err := tx.Query(ctx,
			"SELECT subject, asked, due_at FROM pgconsent.consent_current WHERE due_at > $1 ORDER BY due_at, subject", now)
		if err != nil {
			return databaseError("read the requested partnerships", err)
		}
		if out, err = pgx.CollectRows(rows, pgx.RowToStructByPos[PendingPartnership]); err != nil {
			return databaseError("read the requested partnerships", err)
		}
		return nil
	})
	return out, err
}

// DueCommands returns at most limit commands that record what time alone has caused: expired consents, requests whose
// deadline has passed, and warnings.
func (r *Registry) DueCommands(ctx context.Context, limit int) (out []consent.Command, err error) {
	warning := r.Settings.WarningTime
	if warning == 0 {
		warning = consent.DefaultWarningTime
	}
	err = r.snapshot(ctx, func(ctx context.Context, tx pgx.Tx, _ uuid, now time.Time) error {
		rows, err := tx.Query(ctx, `
			(SELECT 'expire', subject, grantee, scope FROM pgconsent.consent_current
			WHERE state = 'given' AND expires_at <= $1 ORDER BY expires_at LIMIT $3)
			UNION ALL
			(SELECT 'lapse', subject, grantee, scope FROM pgconsent.consent_current WHERE due_at <= $1 ORDER BY due_at LIMIT $3)
			UNION ALL
			(SELECT 'warn', subject, grantee, scope FROM pgconsent.consent_current WHERE state = 'given' AND expires_at > $1 AND expires_at <= $2
				AND warned_at IS NULL ORDER BY expires_at LIMIT $3)
			LIMIT $3`, now, now.Add(warning), limit)
		if err != nil {
			return databaseError("read what is due", err)
		}
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (consent.Command, error) {
			command := consent.Command{Caller: consent.Party{Role: consent.RoleSystem}, Interface: "sweep"}
			return command, row.Scan(&command.Action, &command.Subject, &command.Grantee, &command.Scope)
		})
		if err != nil {
			return databaseError("read what is due", err)
		}
		return nil
	})
	return out, err
}

// LastRecordNumber returns the number of the last record, or 0 if there is none.
func (r *Registry) LastRecordNumber(ctx context.Context) (number int64, err error) {
	err = r.withConnection(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if err := conn.QueryRow(ctx, "SELECT pgconsent.consent_epoch()").Scan(&number); err != nil {
			return databaseError("read the consent epoch", err)
		}
		return nil
	})
	return number, err
}
