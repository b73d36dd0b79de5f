package registry

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// Guardians returns the guardians of a subject, sorted by name.
func (r *Registry) Guardians(ctx context.Context, subject string) ([]string, error) {
	return r.readGuardianTable(ctx, "guardian", "subject", subject)
}

// Wards returns the names of the subjects whose guardian a person is, sorted by name.
func (r *Registry) Wards(ctx context.Context, guardian string) ([]string, error) {
	return r.readGuardianTable(ctx, "subject", "guardian", guardian)
}

// readGuardianTable reads the table of guardians that policies read, and checks each row against the records. A row
// that somebody has only written into this table has no effect.
func (r *Registry) readGuardianTable(ctx context.Context, resultColumn, conditionColumn, name string) (out []string,
	err error) {
	err = r.snapshot(ctx, func(ctx context.Context, tx pgx.Tx, id uuid, _ time.Time) error {
		rows, err := tx.Query(ctx, `
			SELECT g.`+resultColumn+`, r.* FROM pgconsent.consent_guardian AS g JOIN pgconsent.subject AS s ON s.subject = g.subject
			JOIN pgconsent.subject AS w ON w.subject = g.guardian
			CROSS JOIN LATERAL (SELECT `+recordColumns+` FROM `+fromRecords+` WHERE subject = s.ref AND grantee = w.ref
			AND event IN ($2, $3) ORDER BY number DESC LIMIT 1) AS r
			WHERE g.`+conditionColumn+` = $1 AND r.event = $2 ORDER BY 1`, name, string(consent.EventAppointed), string(consent.EventDismissed))
		if err != nil {
			return databaseError("look guardians up", err)
		}
		var foundName string
		var e recordEntry
		if _, err = pgx.ForEachRow(rows, append([]any{&foundName}, e.fields()...), func() error {
			if reason := e.findProblem(r.Keys, id); reason != "" {
				return newTamperedError(reason)
			}
			out = append(out, foundName)
			return nil
		}); err != nil && !errors.As(err, new(*TamperedError)) {
			return databaseError("look guardians up", err)
		}
		return err
	})
	return out, err
}
