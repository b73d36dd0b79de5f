package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// The first five metrics have the same names as in the consent service that pgconsent replaces.
var (
	consentActive = metricFamily{"consent_active_users", "gauge",
		nil, "Users whose consent to a stream is given and has not expired."}
	consentStreams = metricFamily{"consent_stream_distribution", "gauge", []string{"stream"},
		"Percent of the active users in each stream."}
	consentSuccess = metricFamily{"consent_partnership_success_rate", "gauge",
		nil, "Partnerships approved, divided by those decided (approved or rejected); 0 before the first."}
	consentAge    = metricFamily{"consent_average_age_days", "gauge", nil, "Days since the active consents were given, on average."}
	consentExpiry = metricFamily{"consent_expiry_rate", "gauge", nil, "Consents that expired in the last 24 hours."}

	sweepsTotal = metricFamily{"pgconsent_sweeps_total", "counter", []string{"result"}, "Sweeps of a database by this process."}
	sweptRows   = metricFamily{"pgconsent_swept_rows_total", "counter", []string{"action"},
		"Rows that this process deleted or made anonymous."}
	sweptAt = metricFamily{"pgconsent_sweep_finished_seconds", "gauge", nil,
		"When the last sweep was finished, in seconds since 1970; of several databases the oldest, 0 if one was never swept."}
	sweepLag = metricFamily{"pgconsent_sweep_lag_seconds", "gauge",
		nil, "How long the oldest withdrawal, expiry or erasure has waited until its rows are deleted or made anonymous; " +
			"agents have not seen the rows since its instant."}
	outboxQueue = metricFamily{"pgconsent_outbox_queue_length", "gauge", nil, "Messages to users that were not delivered yet."}
	outboxAge   = metricFamily{"pgconsent_outbox_oldest_seconds", "gauge", nil, "Age of the oldest of them."}
	outboxTotal = metricFamily{"pgconsent_outbox_deliveries_total", "counter", []string{"result"},
		"Attempts to deliver a message to the webhook."}
)

// ConsentCounts has counts of one consent registry.
type ConsentCounts struct {
	Streams            map[string]int // number of active users by stream
	AgeDays            float64        // sum of the ages of all active consents
	Approved, Rejected int            // numbers of partnerships that were approved and rejected
	Expired            int            // number of consents that expired in the last 24 hours
	SweptAt            float64        // time of the last sweep, in seconds since 1970; 0: there was none
	LagSeconds         float64
	WaitingMessages    int // number of messages that wait to be delivered
	WaitingSeconds     float64
}

// streamNames are the values of the label stream.
var streamNames = []string{"TEMPORARY", "PARTNERED", "ANONYMOUS"}

// consentMetrics report the state of consent registries, of sweeps and of messages.
type consentMetrics struct {
	activeConsents, approvalRate, averageAge, expiryRate, sweptAt, sweepLag, outboxQueue, outboxAge prometheus.Gauge
	streams                                                                                         *prometheus.GaugeVec
	sweeps, sweptRows, deliveries                                                                   *prometheus.CounterVec
}

func (m *consentMetrics) register(reg prometheus.Registerer) {
	*m = consentMetrics{
		activeConsents: newGauge(consentActive), approvalRate: newGauge(consentSuccess), averageAge: newGauge(consentAge),
		expiryRate: newGauge(consentExpiry),
		sweptAt:    newGauge(sweptAt), sweepLag: newGauge(sweepLag), outboxQueue: newGauge(outboxQueue),
		outboxAge: newGauge(outboxAge),
		streams:   newGaugeVec(consentStreams), sweeps: newCounterVec(sweepsTotal), sweptRows: newCounterVec(sweptRows),
		deliveries: newCounterVec(outboxTotal),
	}
	reg.MustRegister(m.activeConsents, m.approvalRate, m.averageAge, m.expiryRate, m.sweptAt, m.sweepLag, m.outboxQueue,
		m.outboxAge, m.streams, m.sweeps,
		m.sweptRows, m.deliveries)
	for _, s := range streamNames {
		m.streams.WithLabelValues(s)
	}
	for _, r := range []string{"ok", "failed"} {
		m.sweeps.WithLabelValues(r)
		m.deliveries.WithLabelValues(r)
	}
	for _, a := range []string{"deleted", "anonymised"} {
		m.sweptRows.WithLabelValues(a)
	}
}

// SetConsentCounts publishes the sums of the counts of all registries.
func (m *Metrics) SetConsentCounts(registries []ConsentCounts) {
	if m == nil || len(registries) == 0 {
		return
	}
	var sum ConsentCounts
	activeCount, byStream := 0, map[string]int{}
	sum.SweptAt = registries[0].SweptAt
	for _, c := range registries {
		for s, n := range c.Streams {
			byStream[s] += n
			activeCount += n
		}
		sum.AgeDays += c.AgeDays
		sum.Approved += c.Approved
		sum.Rejected += c.Rejected
		sum.Expired += c.Expired
		sum.WaitingMessages += c.WaitingMessages
		sum.SweptAt = min(sum.SweptAt, c.SweptAt)
		sum.LagSeconds = max(sum.LagSeconds, c.LagSeconds)
		sum.WaitingSeconds = max(sum.WaitingSeconds, c.WaitingSeconds)
	}
	m.consent.activeConsents.Set(float64(activeCount))
	for _, s := range streamNames {
		m.consent.streams.WithLabelValues(s).Set(100 * ratioOrZero(float64(byStream[s]), activeCount))
	}
	m.consent.approvalRate.Set(ratioOrZero(float64(sum.Approved), sum.Approved+sum.Rejected))
	m.consent.averageAge.Set(ratioOrZero(sum.AgeDays, activeCount))
	m.consent.expiryRate.Set(float64(sum.Expired))
	m.consent.sweptAt.Set(sum.SweptAt)
	m.consent.sweepLag.Set(sum.LagSeconds)
	m.consent.outboxQueue.Set(float64(sum.WaitingMessages))
	m.consent.outboxAge.Set(sum.WaitingSeconds)
}

func ratioOrZero(count float64, total int) float64 {
	if total == 0 {
		return 0
	}
	return count / float64(total)
}

// CountSweep counts a sweep, which removes expired data, and the rows that it has deleted or anonymised.
func (m *Metrics) CountSweep(ok bool, deleted, anonymised int64) {
	if m != nil {
		m.consent.sweeps.WithLabelValues(result(ok)).Inc()
		m.consent.sweptRows.WithLabelValues("deleted").Add(float64(deleted))
		m.consent.sweptRows.WithLabelValues("anonymised").Add(float64(anonymised))
	}
}

// CountDeliveries counts attempts to deliver messages to the webhook.
func (m *Metrics) CountDeliveries(sentCount, failedCount int) {
	if m != nil {
		m.consent.deliveries.WithLabelValues("ok").Add(float64(sentCount))
		m.consent.deliveries.WithLabelValues("failed").Add(float64(failedCount))
	}
}
