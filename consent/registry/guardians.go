package registry

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/consent"
)

// Guardians are those who speak for somebody, by name.
func (r *Registry) Guardians(ctx context.Context, subject string) ([]string, error) {
	return r.appointed(ctx, "guardian", "subject", subject)
}

// Wards are those whom somebody speaks for, by name.
func (r *Registry) Wards(ctx context.Context, guardian string) ([]string, error) {
	return r.appointed(ctx, "subject", "guardian", guardian)
}

// appointed looks up what policies read, and asks the records as a change does: who changes the first changes no record.
func (r *Registry) appointed(ctx context.Context, who, of, name string) (out []string, err error) {
	err = r.snapshot(ctx, func(ctx context.Context, tx pgx.Tx, _ uuid, _ time.Time) error {
		rows, err := tx.Query(ctx, `
			SELECT g.`+who+` FROM pgconsent.consent_guardian AS g JOIN pgconsent.subject AS s ON s.subject = g.subject JOIN pgconsent.subject AS w ON w.subject = g.guardian
			WHERE g.`+of+` = $1 AND (SELECT r.event FROM pgconsent.consent_record AS r WHERE r.subject = s.ref AND r.grantee = w.ref AND r.event IN ($2, $3) ORDER BY r.number DESC LIMIT 1) = $2
			ORDER BY 1`, name, string(consent.EventAppointed), string(consent.EventDismissed))
		if err != nil {
			return failed("look guardians up", err)
		}
		if out, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return failed("look guardians up", err)
		}
		return nil
	})
	return out, err
}
