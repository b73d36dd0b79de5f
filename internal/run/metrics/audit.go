package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	auditQueue = metricFamily{"pgconsent_audit_queue_length", "gauge", nil, "Audit records waiting to be written."}
	auditLag   = metricFamily{"pgconsent_audit_lag_seconds", "gauge", nil,
		"Age of the oldest record when the last group was made durable, or when a record was refused because the " +
			"disk does not answer."}
	auditFailures = metricFamily{"pgconsent_audit_failures_total", "counter",
		nil, "Audit records that could not be written; each refused a statement, unless its answer had already gone out."}
	auditAnchor = metricFamily{"pgconsent_audit_anchor_failures_total", "counter", nil,
		"Times the head of the audit could not be written to its anchor file."}
)

// auditMetrics report the state of the audit log.
type auditMetrics struct {
	queueLength, lagSeconds  prometheus.Gauge
	failures, anchorFailures prometheus.Counter
}

func (m *auditMetrics) register(reg prometheus.Registerer) {
	*m = auditMetrics{queueLength: newGauge(auditQueue), lagSeconds: newGauge(auditLag), failures: counter(auditFailures),
		anchorFailures: counter(auditAnchor)}
	reg.MustRegister(m.queueLength, m.lagSeconds, m.failures, m.anchorFailures)
}

// SetAuditQueue publishes the number of records that wait to be written.
func (m *Metrics) SetAuditQueue(n int) {
	if m != nil {
		m.audit.queueLength.Set(float64(n))
	}
}

// AuditSynced publishes how long the oldest record of a group waited until the group was durable.
func (m *Metrics) AuditSynced(lag time.Duration) {
	if m != nil {
		m.audit.lagSeconds.Set(lag.Seconds())
	}
}

// AuditFailed counts n records that could not be written.
func (m *Metrics) AuditFailed(n int) {
	if m != nil && n > 0 {
		m.audit.failures.Add(float64(n))
	}
}

// AuditAnchorFailed counts a failure to write the number and hash of the newest record to the anchor file.
func (m *Metrics) AuditAnchorFailed() {
	if m != nil {
		m.audit.anchorFailures.Inc()
	}
}
