package sweep

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/run/metrics"
)

// Counts returns the numbers of consents and pending work now, by the database's clock.
func (s *Sweeper) Counts(ctx context.Context) (metrics.ConsentCounts, error) {
	out := metrics.ConsentCounts{Streams: map[string]int{}}
	conn, err := s.connect(ctx)
	if err != nil {
		return out, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return out, databaseError("count consents", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	var now time.Time
	if err := tx.QueryRow(ctx, "SELECT pgconsent.consent_now()").Scan(&now); err != nil {
		return out, databaseError("count consents", err)
	}
	rows, err := tx.Query(ctx, `SELECT c.stream, count(*)::int4, COALESCE(sum(extract(epoch FROM $1 - c.given_at)), 0)::float8
		FROM pgconsent.consent_current AS c
		WHERE c.grantee = '*' AND c.scope = '*' AND c.stream IS NOT NULL AND c.state = 'given'
		AND (c.expires_at IS NULL OR c.expires_at > $1) GROUP BY 1`, now)
	if err != nil {
		return out, databaseError("count consents", err)
	}
	var stream string
	var n int
	var age float64
	if _, err := pgx.ForEachRow(rows, []any{&stream, &n, &age}, func() error {
		out.Streams[stream] = n
		out.AgeDays += age / 86400
		return nil
	}); err != nil {
		return out, databaseError("count consents", err)
	}
	// A consent expires at its time, even if no record says so yet.
	err = tx.QueryRow(ctx, `SELECT
		(SELECT count(*)::int4 FROM pgconsent.consent_record WHERE event = 'approved'),
		(SELECT count(*)::int4 FROM pgconsent.consent_record WHERE event = 'rejected'),
		(SELECT count(*)::int4 FROM pgconsent.consent_record WHERE event = 'expired' AND stream IS NOT NULL
			AND expires_at > $1::timestamptz - interval '24 hours')
		+ (SELECT count(*)::int4 FROM pgconsent.consent_current WHERE state = 'given' AND stream IS NOT NULL AND expires_at <= $1
			AND expires_at > $1::timestamptz - interval '24 hours'),
		(SELECT count(*)::int4 FROM pgconsent.outbox WHERE sent_at IS NULL),
		(SELECT COALESCE(GREATEST(extract(epoch FROM $1 - min(recorded_at)), 0), 0)::float8 FROM pgconsent.outbox WHERE sent_at IS NULL),
		(SELECT COALESCE(extract(epoch FROM finished_at), 0)::float8 FROM pgconsent.sweep_state)`, now).
		Scan(&out.Approved, &out.Rejected, &out.Expired, &out.WaitingMessages, &out.WaitingSeconds, &out.SweptAt)
	if err != nil {
		return out, databaseError("count consents", err)
	}
	out.LagSeconds, err = removalLag(ctx, tx, now)
	return out, err
}

// removalLag returns how many seconds ago the oldest change was made whose rows are not removed yet; 0: none waits.
func removalLag(ctx context.Context, tx interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, now time.Time) (seconds float64, err error) {
	err = tx.QueryRow(ctx, `SELECT CASE WHEN count(*) > 0 THEN GREATEST(extract(epoch FROM $1 - min(r.recorded_at)), 0.001) ELSE 0 END::float8
		FROM pgconsent.consent_record AS r
		WHERE r.number > (SELECT epoch FROM pgconsent.sweep_state) AND r.event IN ('withdrawn', 'revoked', 'expired', 'degraded', 'erased')
		AND pg_catalog.to_regprocedure('pgconsent.sweep_due()') IS NOT NULL`, now).Scan(&seconds)
	if err != nil {
		return 0, databaseError("look at the last sweep", err)
	}
	return seconds, nil
}
