package registry

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// Records returns at most limit records of all subjects with numbers greater than after, oldest first. Records of
// erased subjects have the event and the time, but no name.
func (r *Registry) Records(ctx context.Context, after int64, limit int) (out []consent.Record, err error) {
	err = r.snapshot(ctx, func(ctx context.Context, tx pgx.Tx, id uuid, _ time.Time) error {
		out = nil
		rows, err := tx.Query(ctx, `SELECT r.number, s.subject, r.recorded_at, r.event, r.state, r.stream
			FROM pgconsent.consent_record AS r JOIN pgconsent.subject AS s ON s.ref = r.subject
			WHERE r.number > $1 ORDER BY r.number LIMIT $2`, after, limit)
		if err != nil {
			return databaseError("read consent records", err)
		}
		type found struct {
			Number  int64
			Subject *string
			At      time.Time
			Event   string
			State   string
			Stream  *string
		}
		foundRecords, err := pgx.CollectRows(rows, pgx.RowToStructByPos[found])
		if err != nil {
			return databaseError("read consent records", err)
		}
		recordsBySubject := map[string][]int64{}
		for _, f := range foundRecords {
			if f.Subject != nil {
				recordsBySubject[*f.Subject] = append(recordsBySubject[*f.Subject], f.Number)
				continue
			}
			rec := consent.Record{Number: f.Number, At: f.At.UTC(), Event: consent.Event(f.Event), Erased: true}
			rec.Subject, rec.Grantee, rec.Scope, rec.State = ErasedName, ErasedName, ErasedName, consent.State(f.State)
			if f.Stream != nil {
				rec.Stream = consent.Stream(*f.Stream)
			}
			out = append(out, rec)
		}
		for subject, numbers := range recordsBySubject {
			records, err := r.readRecords(ctx, tx, id, subject, "number = ANY ($2)", numbers)
			if err != nil {
				return err
			}
			out = append(out, records...)
		}
		slices.SortFunc(out, func(a, b consent.Record) int { return int(a.Number - b.Number) })
		return nil
	})
	return out, err
}
