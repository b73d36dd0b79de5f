package metrics

import (
	"slices"
	"sync"
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
		"Sessions ended by pgconsent because an agent was disabled or changed, a database became unsafe, or an operator killed it."}
)

// sessionMetrics count clients' sessions and their statements.
type sessionMetrics struct {
	open                                                *prometheus.GaugeVec
	sessionsTotal, statements, seals, limitedExecutions *prometheus.CounterVec
	rows, bytes, revocations                            prometheus.Counter
	addedSeconds                                        prometheus.Histogram

	// the counter of allowed statements of each class in TagClasses, found once: most statements need no other
	allowed sync.Map
}

func (m *sessionMetrics) register(reg prometheus.Registerer) {
	m.open, m.sessionsTotal = newGaugeVec(sessionsOpen), newCounterVec(sessionsTotal)
	m.statements, m.seals = newCounterVec(statementsTotal), newCounterVec(sealRenewals)
	m.limitedExecutions, m.rows, m.bytes = newCounterVec(limitedExecutions), counter(rowsTotal), counter(bytesTotal)
	m.revocations, m.addedSeconds = counter(revocationsTotal), newHistogram(addedSeconds)
	reg.MustRegister(m.open, m.sessionsTotal, m.statements, m.seals, m.limitedExecutions, m.rows, m.bytes, m.revocations,
		m.addedSeconds)
	// A series that exists from the start has the value 0; otherwise it would be missing until the first event.
	for _, k := range []SessionKind{Agent, Owner, Operator, Refused} {
		m.open.WithLabelValues(string(k))
		m.sessionsTotal.WithLabelValues(string(k))
	}
	for _, r := range []string{"ok", "failed"} {
		m.seals.WithLabelValues(r)
	}
	for _, l := range Limits {
		m.limitedExecutions.WithLabelValues(l)
	}
}

// SessionOpened counts a client's connection when its kind is known. [Metrics.SessionClosed] must be called when it
// ends.
func (m *Metrics) SessionOpened(k SessionKind) {
	if m == nil {
		return
	}
	m.sessions.open.WithLabelValues(kindLabel(k)).Inc()
	m.sessions.sessionsTotal.WithLabelValues(kindLabel(k)).Inc()
}

// SessionClosed counts the end of a connection that [Metrics.SessionOpened] has counted.
func (m *Metrics) SessionClosed(k SessionKind) {
	if m != nil {
		m.sessions.open.WithLabelValues(kindLabel(k)).Dec()
	}
}

// CountStatement counts an execution of a statement. verdict is [VerdictAllow] or [VerdictDeny]; reason is a
// sqlstate.Reason, or "" for an allowed statement; tag is the command tag of the statement.
func (m *Metrics) CountStatement(verdict, reason, tag string) {
	if m == nil {
		return
	}
	class := TagClass(tag)
	if verdict != VerdictAllow || reason != "" {
		if verdict != VerdictAllow {
			verdict = VerdictDeny
		}
		m.sessions.statements.WithLabelValues(verdict, reasonLabel(reason), class).Inc()
		return
	}
	counter, ok := m.sessions.allowed.Load(class)
	if !ok {
		counter, _ = m.sessions.allowed.LoadOrStore(class, m.sessions.statements.WithLabelValues(verdict, reasonLabel(reason), class))
	}
	counter.(prometheus.Counter).Inc()
}

// RecordAddedTime records how long pgconsent itself needed for an execution, without the time of PostgreSQL.
func (m *Metrics) RecordAddedTime(d time.Duration) {
	if m != nil {
		m.sessions.addedSeconds.Observe(max(d, 0).Seconds())
	}
}

// CountRows counts rows and bytes that the proxy has sent to an agent.
func (m *Metrics) CountRows(rows, bytes int64) {
	if m != nil && rows >= 0 && bytes >= 0 {
		m.sessions.rows.Add(float64(rows))
		m.sessions.bytes.Add(float64(bytes))
	}
}

// SealRenewed counts an attempt to make a seal, which signs the attributes of a session for row security.
func (m *Metrics) SealRenewed(ok bool) {
	if m != nil {
		m.sessions.seals.WithLabelValues(result(ok)).Inc()
	}
}

// CountLimited counts an execution that was refused or ended because of a limit.
func (m *Metrics) CountLimited(limit string) {
	if m != nil {
		if !slices.Contains(Limits, limit) {
			limit = "other"
		}
		m.sessions.limitedExecutions.WithLabelValues(limit).Inc()
	}
}

// CountRevoked counts a session that the proxy has ended.
func (m *Metrics) CountRevoked() {
	if m != nil {
		m.sessions.revocations.Inc()
	}
}
