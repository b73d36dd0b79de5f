package serve

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/registry/sweep"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/run/metrics"
	"github.com/pgconsent/pgconsent/internal/services/operations"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// NewOutbox returns the outbox that sends the messages of a registry to the webhook. It returns nil if no webhook is
// configured.
func NewOutbox(cfg *config.Config, r *registry.Registry) (*sweep.Outbox, error) {
	w := cfg.Consent.Webhook
	if w == nil {
		return nil, nil
	}
	secret, err := config.ReadSecret(w.Secret)
	if err != nil {
		return nil, err
	}
	if secret == "" {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "the secret of consent.webhook is empty").
			WithHint("A random line in a file that only pgconsent can read: openssl rand -hex 32 > webhook.pw")
	}
	return &sweep.Outbox{Registry: r, URL: w.URL, Secret: []byte(secret)}, nil
}

// sweepScheduler has the sweepers of all databases, which remove expired data, and the last results of their sweeps.
type sweepScheduler struct {
	service  *Service
	period   time.Duration
	list     []*sweep.Sweeper
	outboxes []*sweep.Outbox // outbox of each sweeper, with the same index; nil: no webhook
	metrics  *metrics.Metrics

	mu         sync.Mutex
	lastCount  time.Time
	lastSweeps map[string]operations.SweepState // result of the last sweep, by database
}

// newSweepers makes a sweeper for each database. It returns nil if no consent registry is configured.
func (s *Service) newSweepers(cfg *config.Config, counts *metrics.Metrics) (*sweepScheduler, error) {
	if cfg.Consent == nil {
		return nil, nil
	}
	out := &sweepScheduler{service: s, period: cfg.Consent.SweepInterval(), metrics: counts}
	for _, name := range sortedKeys(cfg.Databases) {
		r, err := OpenRegistry(cfg, name)
		if err != nil {
			return nil, err
		}
		box, err := NewOutbox(cfg, r)
		if err != nil {
			return nil, err
		}
		log := s.log.With("database", name)
		if box != nil {
			box.Log = log
		}
		out.list = append(out.list, &sweep.Sweeper{Registry: r, Log: log})
		out.outboxes = append(out.outboxes, box)
	}
	return out, nil
}

// run sweeps all databases periodically until ctx is canceled. It tries a database again that did not respond.
func (w *sweepScheduler) run(ctx context.Context) {
	var wait sync.WaitGroup
	for i, sweeper := range w.list {
		wait.Go(func() {
			defer sweeper.Registry.Close()
			sweeper.RunEvery(ctx, w.period, w.outboxes[i], func(r sweep.Report, d sweep.DeliveryCounts, err error) {
				w.metrics.CountDeliveries(d.Sent, d.Failed)
				w.storeResult(sweeper.Registry.Database, r, err)
				if err != nil {
					w.metrics.CountSweep(false, 0, 0)
					sweeper.Log.Error("sweep", "error", err)
					return
				}
				if r.RecordedEvents == nil || r.SweepRunning { // no sweep was due, or another proxy was sweeping
					return
				}
				var deleted, anonymised int64
				for _, t := range r.Tables {
					deleted, anonymised = deleted+t.Deleted, anonymised+t.Anonymised
				}
				w.metrics.CountSweep(len(r.Failures) == 0, deleted, anonymised)
				sweeper.Log.Info("swept", "recorded", fmt.Sprint(r.RecordedEvents), "deleted", deleted, "anonymised",
					anonymised, "failures", len(r.Failures))
			})
		})
	}
	wait.Wait()
}

// storeResult stores the result of a sweep for the overview of operators.
func (w *sweepScheduler) storeResult(database string, r sweep.Report, err error) {
	s := operations.SweepState{Interval: w.period, At: time.Now(), Busy: r.SweepRunning, Failures: len(r.Failures),
		Recorded: r.RecordedEvents}
	switch {
	case err != nil:
		s.Problem = "the sweep could not begin: the log says why"
	case r.RecordedEvents == nil && !r.SweepRunning: // no sweep was due
		return
	}
	for _, t := range r.Tables {
		s.Deleted, s.Anonymised = s.Deleted+t.Deleted, s.Anonymised+t.Anonymised
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lastSweeps == nil {
		w.lastSweeps = map[string]operations.SweepState{}
	}
	w.lastSweeps[database] = s
}

// lastSweep returns the result of the last sweep of a database, for the overview of operators.
func (w *sweepScheduler) lastSweep(database string) *operations.SweepState {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.lastSweeps[database]
	s.Interval = w.period
	return &s
}

// updateCounts updates the metrics of the registries, at most every few seconds. If a database does not respond, its
// old values stay.
func (w *sweepScheduler) updateCounts(ctx context.Context) {
	const countEvery = 5 * time.Second
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.lastCount) < countEvery {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var counts []metrics.ConsentCounts
	for _, sweeper := range w.list {
		numbers, err := sweeper.Counts(ctx)
		if err != nil {
			sweeper.Log.Warn("consents were not counted", "error", err)
			return
		}
		counts = append(counts, numbers)
	}
	w.metrics.SetConsentCounts(counts)
	w.lastCount = time.Now()
}
