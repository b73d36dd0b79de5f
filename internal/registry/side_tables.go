package registry

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// checkSideTables compares the other tables of the registry with the records: messages to users, subjects whose rows
// are to be deleted, and the progress of the sweeper. Messages are removed 30 days after they were sent, and erased
// subjects when their rows are deleted; after that nobody can tell whether one is missing. The control role can read
// these tables.
func checkSideTables(ctx context.Context, tx pgx.Tx, keys Keys, id uuid) ([]Finding, error) {
	var isReadable bool
	if err := tx.QueryRow(ctx, `SELECT count(*) = 5 AND bool_and(has_table_privilege(c.oid, 'SELECT'))
		FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE n.nspname = 'pgconsent'
		AND c.relname IN ('outbox', 'sweep_erased', 'sweep_note', 'sweep_state', 'change')`).Scan(&isReadable); err != nil {
		return nil, databaseError("verify the tables beside the consent registry", err)
	}
	if !isReadable {
		return []Finding{
			{0, "the tables beside the records cannot be read: a table is missing, or a right was revoked " +
				"(pgconsent migrate grants it)"}}, nil
	}
	rows, err := tx.Query(ctx, `
		(SELECT o.number, 'a message to a user differs from the record' FROM pgconsent.outbox AS o
			LEFT JOIN pgconsent.consent_record AS r ON r.number = o.number LEFT JOIN pgconsent.subject AS s ON s.ref = r.subject
		WHERE (o.recorded_at, o.subject, o.event, o.state, o.stream, o.categories, o.expires_at)
			IS DISTINCT FROM (r.recorded_at, s.subject, r.event, r.state, r.stream, r.categories, r.expires_at)
		ORDER BY o.number LIMIT $1)
		UNION ALL
		(SELECT r.number, 'its message to the user was taken away' FROM pgconsent.consent_record AS r
		JOIN pgconsent.subject AS s ON s.ref = r.subject AND s.subject IS NOT NULL
		WHERE r.event IN ('warned', 'expired', 'approved', 'rejected', 'deferred', 'lapsed', 'revoked', 'deleted', 'anonymised')
		AND r.recorded_at > clock_timestamp() - interval '720 hours'
		AND NOT EXISTS (SELECT FROM pgconsent.outbox AS o WHERE o.number = r.number) ORDER BY r.number LIMIT $1)
		UNION ALL
		(SELECT o.number, 'its message to the user is put off' FROM pgconsent.outbox AS o
		WHERE o.sent_at IS NULL AND o.next_at > GREATEST(clock_timestamp(),
			(SELECT max(r.recorded_at) FROM pgconsent.consent_record AS r)) + interval '24 hours' ORDER BY o.number LIMIT $1)
		UNION ALL
		(SELECT 0, 'somebody''s rows are to be deleted (sweep_erased), and no record says that they were erased then'
		FROM pgconsent.sweep_erased AS e
		WHERE NOT EXISTS (SELECT FROM pgconsent.consent_record AS r WHERE r.event = 'erased' AND r.recorded_at = e.erased_at) LIMIT $1)
		UNION ALL
		SELECT 0, 'what tells which snapshots are older than a withdrawal was emptied (change)'
		WHERE pgconsent.changed_since('9000000000000000000:9000000000000000000:'::pg_snapshot)
		UNION ALL
		-- A restore puts all records in by one transaction, which is not the one that changed something.
		(SELECT r.number, 'what tells which snapshots are older than it was taken away (change)' FROM pgconsent.consent_record AS r
		JOIN pgconsent.consent_record AS f ON f.number = 1
		WHERE r.event IN ('withdrawn', 'revoked', 'degraded') AND r.recorded_at > clock_timestamp() - interval '55 minutes' AND r.xmin <> f.xmin
		AND NOT EXISTS (SELECT FROM pgconsent.change AS c WHERE c.xid::xid = r.xmin) ORDER BY r.number LIMIT $1)
		UNION ALL
		SELECT 0, 'the sweeper is said to have come further than the records (sweep_state)'
		FROM pgconsent.sweep_state AS w WHERE w.epoch > pgconsent.consent_epoch()
		UNION ALL
		SELECT 0, 'the sweeper is said to have run at a time that is to come (sweep_state)' FROM pgconsent.sweep_state AS w
		WHERE w.finished_at > pgconsent.consent_now() + interval '1 minute'`, maxFindings)
	if err != nil {
		return nil, databaseError("verify the tables beside the consent registry", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Finding])
	if err != nil {
		return nil, databaseError("verify the tables beside the consent registry", err)
	}
	rows, err = tx.Query(ctx, "SELECT n.subject, COALESCE(n.code, '') FROM pgconsent.sweep_note AS n")
	if err != nil {
		return nil, databaseError("verify the tables beside the consent registry", err)
	}
	notes, forgedCount := NoteSigner{keys, id}, 0
	var subject, code string
	if _, err := pgx.ForEachRow(rows, []any{&subject, &code}, func() error {
		if _, ok := notes.Verify(subject, code); !ok {
			forgedCount++
		}
		return nil
	}); err != nil {
		return nil, databaseError("verify the tables beside the consent registry", err)
	}
	if forgedCount > 0 {
		out = append(out, Finding{0, fmt.Sprintf("%d notes of deletions were not made by a sweep (sweep_note)", forgedCount)})
	}
	return out, nil
}
