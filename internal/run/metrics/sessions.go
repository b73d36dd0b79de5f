package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	sessionsOpen  = metricFamily{"pgconsent_sessions_open", "gauge", []string{"kind"}, "Client sessions open now."}
	sessionsTotal = metricFamily{"pgconsent_sessions_total", "counter", []string{"kind"},
		"Client sessions accepted since the start."}
	statementsTotal = metricFamily{"pgconsent_statements_total", "counter", []string{"verdict", "reason", "tag"},
		"Executions of agents' statements by verdict, reason of the refusal and class of statement."}
	addedSeconds = metricFamily{"pgconsent_added_seconds", "histogram", nil,
		"Time an execution spent in pgconsent, from the last byte of the request read to the last byte of the " +
			"answer written, the wait for the server left out."}
	rowsTotal    = metricFamily{"pgconsent_rows_total", "counter", nil, "Rows relayed to agents."}
	bytesTotal   = metricFamily{"pgconsent_bytes_total", "counter", nil, "Bytes of rows relayed to agents."}
	sealRenewals = metricFamily{"pgconsent_seal_renewals_total", "counter", []string{"result"},
		"Seals made for sessions: first ones and renewals."}
	limitedExecutions = metricFamily{"pgconsent_limited_total", "counter", []string{"limit"},
		"Executions that a limit of the policy refused or ended: a rate per minute, or the size of one result; " +
			"and transactions that lasted too long."}
	revocationsTotal = metricFamily{"pgconsent_revocations_total", "counter", nil,
		"Sessions ended by pgconsent because an agent was disabled or changed, or a database became unsafe."}
)

// sessionMetrics count sessions of clients and their statements.
type sessionMetrics struct {
	open                                        *prometheus.GaugeVec
	total, statements, seals, limitedExecutions *prometheus.CounterVec
	rows, bytes, revocations                    prometheus.Counter
	addedSeconds                                prometheus.Histogram
}

func (m *sessionMetrics) register(reg prometheus.Registerer) {
	*m = sessionMetrics{
		open: gauges(sessionsOpen), total: counters(sessionsTotal), statements: counters(statementsTotal),
		seals: counters(sealRenewals), limitedExecutions: counters(limitedExecutions), rows: counter(rowsTotal), bytes: counter(bytesTotal),
		revocations: counter(revocationsTotal), addedSeconds: histogram(addedSeconds),
	}
	reg.MustRegister(m.open, m.total, m.statements, m.seals, m.limitedExecutions, m.rows, m.bytes, m.revocations, m.addedSeconds)
	// A series that exists from the start reads as 0, not as absent.
	for _, k := range []SessionKind{Agent, Owner, Refused} {
		m.open.WithLabelValues(string(k))
		m.total.WithLabelValues(string(k))
	}
	for _, r := range []string{"ok", "failed"} {
		m.seals.WithLabelValues(r)
	}
	for _, l := range Limits {
		m.limitedExecutions.WithLabelValues(l)
	}
}

// SessionOpened counts a client connection once its kind is known. Each call has its [Metrics.SessionClosed].
func (m *Metrics) SessionOpened(k SessionKind) {
	if m == nil {
		return
	}
	m.sessions.open.WithLabelValues(kindLabel(k)).Inc()
	m.sessions.total.WithLabelValues(kindLabel(k)).Inc()
}

// SessionClosed ends what SessionOpened began.
func (m *Metrics) SessionClosed(k SessionKind) {
	if m != nil {
		m.sessions.open.WithLabelValues(kindLabel(k)).Dec()
	}
}

// Statement counts one execution: verdict is [Allow] or [Deny], reason a sqlstate.Reason ("" for none), tag the
// statement kind as the rewriter names it.
func (m *Metrics) Statement(verdict, reason, tag string) {
	if m == nil {
		return
	}
	if verdict != Allow {
		verdict = Deny
	}
	m.sessions.statements.WithLabelValues(verdict, reasonLabel(reason), TagClass(tag)).Inc()
}

// Added records the time one execution spent in pgconsent, the wait for the server left out.
func (m *Metrics) Added(d time.Duration) {
	if m != nil {
		m.sessions.addedSeconds.Observe(max(d, 0).Seconds())
	}
}

// Rows counts rows relayed to an agent and their bytes.
func (m *Metrics) Rows(rows, bytes int64) {
	if m != nil && rows >= 0 && bytes >= 0 {
		m.sessions.rows.Add(float64(rows))
		m.sessions.bytes.Add(float64(bytes))
	}
}

// SealRenewed counts a seal made for a session, or the failure to make one.
func (m *Metrics) SealRenewed(ok bool) {
	if m != nil {
		m.sessions.seals.WithLabelValues(result(ok)).Inc()
	}
}

// Limited counts an execution that a limit refused or ended.
func (m *Metrics) Limited(limit string) {
	if m != nil {
		if !slices.Contains(Limits, limit) {
			limit = "other"
		}
		m.sessions.limitedExecutions.WithLabelValues(limit).Inc()
	}
}

// Revoked counts a session ended by pgconsent.
func (m *Metrics) Revoked() {
	if m != nil {
		m.sessions.revocations.Inc()
	}
}
