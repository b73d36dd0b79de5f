package registry

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// beside compares what the registry's neighbours keep of its records: messages to users, who is to be deleted, and how far the sweeper
// came. What is missing from them nobody can tell: messages are sent and dropped, and rows go. The control role of a database reads them.
func beside(ctx context.Context, tx pgx.Tx) ([]Finding, error) {
	var readable bool
	if err := tx.QueryRow(ctx, `SELECT COALESCE(bool_and(has_table_privilege(c.oid, 'SELECT')), false) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE n.nspname = 'pgconsent' AND c.relname IN ('outbox', 'sweep_erased', 'sweep_state')`).Scan(&readable); err != nil || !readable {
		return nil, err
	}
	rows, err := tx.Query(ctx, `
		(SELECT o.number, 'a message to a user says something else than it' FROM pgconsent.outbox AS o
			LEFT JOIN pgconsent.consent_record AS r ON r.number = o.number LEFT JOIN pgconsent.subject AS s ON s.ref = r.subject
		WHERE (o.recorded_at, o.subject, o.event, o.state, o.stream, o.categories, o.expires_at) IS DISTINCT FROM (r.recorded_at, s.subject, r.event, r.state, r.stream, r.categories, r.expires_at)
		ORDER BY o.number LIMIT $1)
		UNION ALL
		(SELECT 0, 'somebody''s rows are to be deleted (sweep_erased), and no record says that they were erased then' FROM pgconsent.sweep_erased AS e
		WHERE NOT EXISTS (SELECT FROM pgconsent.consent_record AS r WHERE r.event = 'erased' AND r.recorded_at = e.erased_at) LIMIT $1)
		UNION ALL
		SELECT 0, 'the sweeper is said to have come further than the records (sweep_state)' FROM pgconsent.sweep_state AS w WHERE w.epoch > pgconsent.consent_epoch()
		UNION ALL
		SELECT 0, 'the sweeper is said to have run at a time that is to come (sweep_state)' FROM pgconsent.sweep_state AS w WHERE w.finished_at > pgconsent.consent_now() + interval '1 minute'`, mostFindings)
	if err != nil {
		return nil, failed("verify what is kept beside the consent registry", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Finding])
	if err != nil {
		return nil, failed("verify what is kept beside the consent registry", err)
	}
	return out, nil
}
