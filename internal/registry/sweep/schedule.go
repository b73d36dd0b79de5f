package sweep

import (
	"context"
	"sync"
	"time"
)

// RunEvery sweeps, and delivers messages, until ctx ends: after each period, and soon after something was withdrawn.
// Several proxies may do so on one database; one of them is at work at a time. told is told of each sweep and of each
// delivery, one after the other. No receiver of messages keeps the sweeper waiting.
func (s *Sweeper) RunEvery(ctx context.Context, period time.Duration, o *Outbox, told func(Report, Delivery, error)) {
	const look, patience = 10 * time.Second, 5 * time.Minute
	pause := min(look, max(period/4, time.Second))
	var one sync.Mutex
	tell := func(r Report, d Delivery, err error) {
		one.Lock()
		defer one.Unlock()
		if told != nil && ctx.Err() == nil {
			told(r, d, err)
		}
	}
	var wait sync.WaitGroup
	defer wait.Wait()
	swept := make(chan struct{}, 1) // there may be messages
	if o != nil {
		wait.Go(func() {
			for ctx.Err() == nil {
				delivered, err := o.Deliver(ctx)
				tell(Report{}, delivered, err)
				select {
				case <-ctx.Done():
				case <-swept:
				case <-time.After(pause):
				}
			}
		})
	}
	var held time.Time // after a failure
	for ctx.Err() == nil {
		var report Report
		due, err := s.due(ctx, period)
		if err == nil && due && time.Now().After(held) {
			report, err = s.Run(ctx, false)
			if err != nil || len(report.Failures) > 0 {
				held = time.Now().Add(patience)
			}
			select {
			case swept <- struct{}{}:
			default:
			}
		}
		tell(report, Delivery{}, err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// due tells whether the period is over, or something waits. A last sweep that is still to come, or that came further
// than the records, was none.
func (s *Sweeper) due(ctx context.Context, period time.Duration) (bool, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var now time.Time
	var over bool
	if err := conn.QueryRow(ctx,
		"SELECT pgconsent.consent_now(), COALESCE(finished_at + $1::interval <= pgconsent.consent_now() OR "+
			"finished_at > pgconsent.consent_now() + interval '1 minute' OR epoch > pgconsent.consent_epoch(), "+
			"true) FROM pgconsent.sweep_state", seconds(period)).Scan(&now, &over); err != nil {
		return false, dbError("look at the last sweep", err)
	}
	if over {
		return true, nil
	}
	waiting, err := lag(ctx, conn, now)
	return waiting > 0, err
}
