// Package metrics defines the names, labels and help texts of all metrics. No other package defines metrics.
//
// The values of labels are limited: a value that is not in the list of its label counts as "other", and the names of
// databases come from the configuration. No metric names an agent, an attribute, a table, a statement or a row
// (invariant I9 in docs/explanation/invariants.md).
//
// The methods may be called on a nil *Metrics, which counts nothing.
package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// SessionKind is the kind of a client connection.
type SessionKind string

// The kinds of sessions.
const (
	Agent    SessionKind = "agent"    // an agent, whose statements are decided and recorded
	Owner    SessionKind = "owner"    // an owner, whose messages the proxy relays without parsing them
	Operator SessionKind = "operator" // an operator at the admin console
	Refused  SessionKind = "refused"  // a client that is none of these, or has a wrong credential
)

// Values of the label verdict.
const (
	VerdictAllow = "allow"
	VerdictDeny  = "deny"
)

// Reasons are the values of the label reason: the reasons of package sqlstate, "none" for an allowed statement, and
// "other".
var Reasons = []string{
	"none", "syntax", "bounds", "statement", "construct", "relation", "column", "function", "setting", "transaction",
	"proof", "stale", "contract", "limit", "audit", "protocol", "identity", "upstream", "consent", "internal", "other",
}

// Limits are the values of the label limit, besides "other".
var Limits = []string{"statements", "rows", "by_key", "result_rows", "result_bytes", "transaction_timeout"}

// metricFamily describes a metric, as in docs/reference/metrics.md.
type metricFamily struct {
	name   string
	kind   string // counter, gauge or histogram
	labels []string
	help   string
}

var families = []metricFamily{
	sessionsOpen, sessionsTotal, statementsTotal, cacheHits, cacheMisses, cacheBytes, cacheEntries, decideSeconds,
	addedSeconds, rowsTotal, bytesTotal, upstreamUp, servingDatabase, sealRenewals, auditQueue, auditLag, auditFailures,
	auditAnchor,
	policyInfo, observedTables, policyPending, suspendedTables, signedPath, pausedDatabase, refreshTotal, revocationsTotal, limitedExecutions,
	consentActive, consentStreams, consentSuccess, consentAge, consentExpiry,
	sweepsTotal, sweptRows, sweptAt, sweepLag, outboxQueue, outboxAge, outboxTotal,
	reminderInteractions, remindersSent, reminderRate, activeInteractionSessions, remindersByTime,
	remindersByMessageCount, refusedInteractions,
	poolConnections, poolWaiting, poolTaken, poolWaited, poolTimeouts,
}

// Metrics counts events. [New] makes one; a nil *Metrics counts nothing.
type Metrics struct {
	sessions  sessionMetrics
	cache     cacheMetrics
	databases databaseMetrics
	audit     auditMetrics
	consent   consentMetrics
	reminders reminderMetrics
	pools     poolMetrics
}

// New makes the metrics and registers them with reg.
func New(reg prometheus.Registerer) *Metrics {
	m := &Metrics{}
	m.sessions.register(reg)
	m.cache.register(reg)
	m.databases.register(reg)
	m.audit.register(reg)
	m.consent.register(reg)
	m.reminders.register(reg)
	m.pools.register(reg)
	return m
}

func newGaugeVec(f metricFamily) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: f.name, Help: f.help}, f.labels)
}

func newCounterVec(f metricFamily) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.name, Help: f.help}, f.labels)
}

func newGauge(f metricFamily) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: f.name, Help: f.help})
}

func counter(f metricFamily) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: f.name, Help: f.help})
}

// newHistogram returns a histogram with buckets from 1 µs, the time that a cache hit takes, to one second.
func newHistogram(f metricFamily) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: f.name, Help: f.help, Buckets: []float64{
		1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.25, 1,
	}})
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func result(ok bool) string {
	if ok {
		return "ok"
	}
	return "failed"
}

func kindLabel(k SessionKind) string {
	switch k {
	case Agent, Owner, Operator:
		return string(k)
	default:
		return string(Refused)
	}
}

func reasonLabel(reason string) string {
	switch {
	case reason == "":
		return "none"
	case slices.Contains(Reasons, reason):
		return reason
	default:
		return "other"
	}
}

// TagClasses are the values of the label tag.
var TagClasses = []string{"select", "copy", "transaction", "setting", "write", "multi", "empty", "other"}

// TagClass returns the value of the label tag for the command tag of a statement. It is one of [TagClasses].
func TagClass(tag string) string {
	switch tag {
	case "":
		return "empty"
	case "SELECT", "VALUES", "TABLE", "WITH":
		return "select"
	case "COPY":
		return "copy"
	case "BEGIN", "START TRANSACTION", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "ROLLBACK TO", "PREPARE TRANSACTION":
		return "transaction"
	case "SET", "RESET", "SHOW", "DISCARD", "DISCARD ALL":
		return "setting"
	case "INSERT", "UPDATE", "DELETE", "MERGE":
		return "write"
	case "multi":
		return "multi"
	default:
		return "other"
	}
}
