package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// The first six metrics have the same names as in the consent service that pgconsent replaces.
var (
	reminderInteractions = metricFamily{"consent_air_total_interactions", "counter",
		nil, "Interactions tracked for reminders: those of API channels."}
	remindersSent = metricFamily{"consent_air_reminders_sent", "counter", nil, "Reminders given."}
	reminderRate  = metricFamily{"consent_air_reminder_rate_percent", "gauge",
		nil, "Percent of the interactions that were answered with a reminder."}
	activeInteractionSessions = metricFamily{"consent_air_active_sessions", "gauge", nil, "Sessions of interactions held now."}
	remindersByTime           = metricFamily{"consent_air_time_triggered", "counter", nil,
		"Reminders given for the time, or for both time and number of messages."}
	remindersByMessageCount = metricFamily{"consent_air_message_triggered", "counter", nil, "Reminders given for the number of messages."}
	refusedInteractions     = metricFamily{"pgconsent_air_refused_total", "counter", nil,
		"Interactions that were not tracked because there was no room for another session."}
)

// ReminderCounts has counts about reminders since the start of the process.
type ReminderCounts struct {
	Interactions, RemindersByTime, RemindersByMessages, RefusedInteractions uint64
	ActiveSessions                                                          int
}

// reminderMetrics report the counts that were published last, so that all values of a scrape are from the same moment.
type reminderMetrics struct {
	reminderCounts *atomic.Pointer[ReminderCounts]
}

func (m *reminderMetrics) register(reg prometheus.Registerer) {
	lastCounts := &atomic.Pointer[ReminderCounts]{}
	lastCounts.Store(&ReminderCounts{})
	m.reminderCounts = lastCounts
	count := func(f metricFamily, value func(*ReminderCounts) uint64) {
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: f.name, Help: f.help},
			func() float64 { return float64(value(lastCounts.Load())) }))
	}
	show := func(f metricFamily, value func(*ReminderCounts) float64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: f.name, Help: f.help},
			func() float64 { return value(lastCounts.Load()) }))
	}
	count(reminderInteractions, func(a *ReminderCounts) uint64 { return a.Interactions })
	count(remindersSent, func(a *ReminderCounts) uint64 { return a.RemindersByTime + a.RemindersByMessages })
	show(reminderRate, func(a *ReminderCounts) float64 {
		return 100 * ratioOrZero(float64(a.RemindersByTime+a.RemindersByMessages), int(a.Interactions))
	})
	show(activeInteractionSessions, func(a *ReminderCounts) float64 { return float64(a.ActiveSessions) })
	count(remindersByTime, func(a *ReminderCounts) uint64 { return a.RemindersByTime })
	count(remindersByMessageCount, func(a *ReminderCounts) uint64 { return a.RemindersByMessages })
	count(refusedInteractions, func(a *ReminderCounts) uint64 { return a.RefusedInteractions })
}

// PublishReminders publishes the counts about reminders.
func (m *Metrics) PublishReminders(a ReminderCounts) {
	if m != nil {
		m.reminders.reminderCounts.Store(&a)
	}
}
