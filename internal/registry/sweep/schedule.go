package sweep

import (
	"context"
	"sync"
	"time"
)

// RunEvery sweeps and delivers messages until ctx ends: in each period, and soon after a withdrawal. Several proxies
// may call it for one database; only one of them sweeps at a time. It calls report after each sweep and each delivery,
// one call at a time. A slow receiver of messages does not delay sweeps.
func (s *Sweeper) RunEvery(ctx context.Context, period time.Duration, o *Outbox, report func(Report, DeliveryCounts,
	error)) {
	const look, patience = 10 * time.Second, 5 * time.Minute
	pause := min(look, max(period/4, time.Second))
	var reportLock sync.Mutex
	reportOnce := func(r Report, d DeliveryCounts, err error) {
		reportLock.Lock()
		defer reportLock.Unlock()
		if report != nil && ctx.Err() == nil {
			report(r, d, err)
		}
	}
	var wait sync.WaitGroup
	defer wait.Wait()
	sweepSignal := make(chan struct{}, 1) // signals that a sweep may have queued messages
	if o != nil {
		wait.Go(func() {
			for ctx.Err() == nil {
				deliveredCount, err := o.Deliver(ctx)
				reportOnce(Report{}, deliveredCount, err)
				select {
				case <-ctx.Done():
				case <-sweepSignal:
				case <-time.After(pause):
				}
			}
		})
	}
	var pausedUntil time.Time // after a failure, no sweep begins before this time
	for ctx.Err() == nil {
		var report Report
		isDue, err := s.isDue(ctx, period)
		if err == nil && isDue && time.Now().After(pausedUntil) {
			report, err = s.Run(ctx, false)
			if err != nil || len(report.Failures) > 0 {
				pausedUntil = time.Now().Add(patience)
			}
			select {
			case sweepSignal <- struct{}{}:
			default:
			}
		}
		reportOnce(report, DeliveryCounts{}, err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// isDue reports whether the period is over, or rows wait to be removed. If the last sweep is in the future or beyond
// the last record, the period counts as over.
func (s *Sweeper) isDue(ctx context.Context, period time.Duration) (bool, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var now time.Time
	var isOver bool
	if err := conn.QueryRow(ctx,
		"SELECT pgconsent.consent_now(), COALESCE(finished_at + $1::interval <= pgconsent.consent_now() OR "+
			"finished_at > pgconsent.consent_now() + interval '1 minute' OR epoch > pgconsent.consent_epoch(), "+
			"true) FROM pgconsent.sweep_state", secondsText(period)).Scan(&now, &isOver); err != nil {
		return false, databaseError("look at the last sweep", err)
	}
	if isOver {
		return true, nil
	}
	lag, err := removalLag(ctx, conn, now)
	return lag > 0, err
}
