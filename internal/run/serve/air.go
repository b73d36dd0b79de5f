package serve

import (
	"context"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry/air"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/run/metrics"
)

// interactionsCleanPeriod is the time between two removals of expired sessions of interactions.
const interactionsCleanPeriod = time.Minute

func newTracker(c config.AIR) *air.Tracker {
	after, window, idle, keep := c.Durations()
	return air.New(air.Config{
		ReminderAfter: after, MaxMessages: c.MessageThreshold, Window: window, SessionGap: idle, KeepFor: keep,
		MaxSessions: c.Sessions,
		Reminder:    c.Reminder,
	})
}

// cleanInteractions removes expired sessions of interactions, and repeats this until ctx is canceled.
func (s *Service) cleanInteractions(ctx context.Context) {
	tick := time.NewTicker(interactionsCleanPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s.reminders.RemoveIdleSessions(now)
		}
	}
}

// countReminders publishes the tracker's counts of interactions and reminders as metrics.
func (s *Service) countReminders() {
	c := s.reminders.Counts(time.Now())
	s.metrics.PublishReminders(metrics.ReminderCounts{Interactions: c.Interactions, RemindersByTime: c.RemindersByTime,
		RemindersByMessages: c.RemindersByMessages,
		RefusedInteractions: c.RefusedInteractions, ActiveSessions: c.ActiveSessions})
}
