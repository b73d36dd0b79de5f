// Package metrics is the one place that names what pgconsent counts: every metric's name, labels and help.
//
// Label values are bounded: what is not in the list of its label counts as "other", and the names of databases come from
// the configuration. No metric carries an agent, an attribute, a table, a statement or a row (DESIGN invariant I9).
//
// The methods may be called on a nil *Metrics, which counts nothing.
package metrics

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// SessionKind says what a client connection turned out to be.
type SessionKind string

// The kinds of sessions.
const (
	Agent   SessionKind = "agent"   // decided, rewritten, recorded
	Owner   SessionKind = "owner"   // relayed unparsed
	Refused SessionKind = "refused" // neither, or a wrong credential
)

// The values of the label verdict.
const (
	Allow = "allow"
	Deny  = "deny"
)

// Reasons are the values of the label reason: sqlstate's, "none" for a statement that was allowed, and "other".
var Reasons = []string{
	"none", "syntax", "bounds", "statement", "construct", "relation", "column", "function", "setting", "transaction",
	"proof", "stale", "contract", "limit", "audit", "protocol", "identity", "upstream", "consent", "internal", "other",
}

// Limits are the values of the label limit.
var Limits = []string{"statements", "rows", "by_key", "result_rows", "result_bytes", "transaction_timeout"}

// family is a metric before it is registered: what docs/reference/metrics.md says of it.
type family struct {
	name   string
	kind   string // counter | gauge | histogram
	labels []string
	help   string
}

var (
	sessionsOpen  = family{"pgconsent_sessions_open", "gauge", []string{"kind"}, "Client sessions open now."}
	sessionsTotal = family{"pgconsent_sessions_total", "counter", []string{"kind"},
		"Client sessions accepted since the start."}
	statementsTotal = family{"pgconsent_statements_total", "counter", []string{"verdict", "reason", "tag"},
		"Executions of agents' statements by verdict, reason of the refusal and class of statement."}
	cacheHits = family{"pgconsent_rewrite_cache_hits_total", "counter",
		nil, "Statements whose verdict was in the rewrite cache."}
	cacheMisses = family{"pgconsent_rewrite_cache_misses_total", "counter", nil,
		"Statements that had to be parsed and judged."}
	cacheBytes    = family{"pgconsent_rewrite_cache_bytes", "gauge", nil, "Memory that the cached verdicts account for."}
	cacheEntries  = family{"pgconsent_rewrite_cache_entries", "gauge", nil, "Verdicts in the rewrite cache."}
	decideSeconds = family{"pgconsent_decide_seconds", "histogram", nil,
		"Time to judge a statement that was not in the cache."}
	addedSeconds = family{"pgconsent_added_seconds", "histogram", nil,
		"Time an execution spent in pgconsent, from the last byte of the request read to the last byte of the " +
			"answer written, the wait for the server left out."}
	rowsTotal  = family{"pgconsent_rows_total", "counter", nil, "Rows relayed to agents."}
	bytesTotal = family{"pgconsent_bytes_total", "counter", nil, "Bytes of rows relayed to agents."}
	upstreamUp = family{"pgconsent_upstream_up", "gauge", []string{"database"},
		"1 when the control connection to the database is alive."}
	serving = family{"pgconsent_serving", "gauge", []string{"database"},
		"1 when agents of the database are served; 0 when the state of the database could not be verified."}
	sealRenewals = family{"pgconsent_seal_renewals_total", "counter", []string{"result"},
		"Seals made for sessions: first ones and renewals."}
	auditQueue = family{"pgconsent_audit_queue_length", "gauge", nil, "Audit records waiting to be written."}
	auditLag   = family{"pgconsent_audit_lag_seconds", "gauge", nil,
		"Age of the oldest record when the last group was made durable, or when a record was refused because the " +
			"disk does not answer."}
	auditFailures = family{"pgconsent_audit_failures_total", "counter",
		nil, "Audit records that could not be written; each refused a statement, unless its answer had already gone out."}
	auditAnchor = family{"pgconsent_audit_anchor_failures_total", "counter", nil,
		"Times the head of the audit could not be written to its anchor file."}
	policyInfo = family{"pgconsent_policy_info", "gauge", []string{"database", "policy", "catalog"},
		"1 for the versions (hashes) of policy and catalog in force."}
	observed = family{"pgconsent_observed_tables", "gauge", []string{"database"},
		"Tables that the policy observes only: they are not protected."}
	signedPath = family{"pgconsent_signed_path", "gauge", []string{"database"},
		"1 while statements may take the signed path; 0 while it is shut, and all of them read under row security."}
	suspendedTables = family{"pgconsent_suspended_tables", "gauge", []string{"database"},
		"Tables and views that are not served: they, or what they depend on, are not as they were when the policy was installed."}
	policyPending = family{"pgconsent_policy_pending", "gauge", []string{"database"},
		"1 when a changed policy waits for pgconsent migrate."}
	refreshTotal = family{"pgconsent_refresh_total", "counter", []string{"database", "result"},
		"Checks of catalog, installed policy, keys and clock, by result."}
	limitedTotal = family{"pgconsent_limited_total", "counter", []string{"limit"},
		"Executions that a limit of the policy refused or ended: a rate per minute, or the size of one result; " +
			"and transactions that lasted too long."}
	revocationsTotal = family{"pgconsent_revocations_total", "counter", nil,
		"Sessions ended by pgconsent because an agent was disabled or changed, or a database became unsafe."}
)

var families = []family{
	sessionsOpen, sessionsTotal, statementsTotal, cacheHits, cacheMisses, cacheBytes, cacheEntries, decideSeconds,
	addedSeconds, rowsTotal, bytesTotal, upstreamUp, serving, sealRenewals, auditQueue, auditLag, auditFailures, auditAnchor,
	policyInfo, observed, policyPending, suspendedTables, signedPath, refreshTotal, revocationsTotal, limitedTotal,
	consentActive, consentStreams, consentSuccess, consentAge, consentExpiry,
	sweepsTotal, sweptRows, sweptAt, sweepLag, outboxQueue, outboxAge, outboxTotal,
	airInteractions, airReminders, airRate, airActive, airByTime, airByMessages, airRefused,
}

// Metrics counts. Make one with [New]; a nil one counts nothing.
type Metrics struct {
	sessionsOpen, upstreamUp, serving, policyInfo, observedTables, policyPending, suspended, signed *prometheus.GaugeVec
	sessionsTotal, statementsTotal, sealRenewals, refreshTotal, limited                             *prometheus.CounterVec
	cacheHits, cacheMisses, rowsTotal, bytesTotal                                                   prometheus.Counter
	auditFailures, auditAnchor, revocations                                                         prometheus.Counter
	cacheBytes, cacheEntries, auditQueue, auditLag                                                  prometheus.Gauge
	decideSeconds, addedSeconds                                                                     prometheus.Histogram

	consent consentMetrics
	air     airMetrics

	mu       sync.Mutex
	versions map[string][2]string // database → policy, catalog of its pgconsent_policy_info
}

// New registers every metric with reg.
func New(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		sessionsOpen:    gauges(sessionsOpen),
		sessionsTotal:   counters(sessionsTotal),
		statementsTotal: counters(statementsTotal),
		cacheHits:       counter(cacheHits),
		cacheMisses:     counter(cacheMisses),
		cacheBytes:      gauge(cacheBytes),
		cacheEntries:    gauge(cacheEntries),
		decideSeconds:   histogram(decideSeconds),
		addedSeconds:    histogram(addedSeconds),
		rowsTotal:       counter(rowsTotal),
		bytesTotal:      counter(bytesTotal),
		upstreamUp:      gauges(upstreamUp),
		serving:         gauges(serving),
		sealRenewals:    counters(sealRenewals),
		limited:         counters(limitedTotal),
		auditQueue:      gauge(auditQueue),
		auditLag:        gauge(auditLag),
		auditFailures:   counter(auditFailures),
		auditAnchor:     counter(auditAnchor),
		policyInfo:      gauges(policyInfo),
		observedTables:  gauges(observed),
		policyPending:   gauges(policyPending),
		suspended:       gauges(suspendedTables),
		signed:          gauges(signedPath),
		refreshTotal:    counters(refreshTotal),
		revocations:     counter(revocationsTotal),
		versions:        map[string][2]string{},
	}
	reg.MustRegister(m.sessionsOpen, m.sessionsTotal, m.statementsTotal, m.cacheHits, m.cacheMisses, m.cacheBytes,
		m.cacheEntries, m.decideSeconds, m.addedSeconds, m.rowsTotal, m.bytesTotal, m.upstreamUp, m.serving,
		m.sealRenewals, m.auditQueue, m.auditLag, m.auditFailures, m.auditAnchor, m.policyInfo, m.observedTables,
		m.policyPending, m.suspended, m.signed, m.refreshTotal,
		m.revocations, m.limited)
	m.consent.register(reg)
	m.air.register(reg)
	// A series that exists from the start reads as 0, not as absent.
	for _, k := range []SessionKind{Agent, Owner, Refused} {
		m.sessionsOpen.WithLabelValues(string(k))
		m.sessionsTotal.WithLabelValues(string(k))
	}
	for _, r := range []string{"ok", "failed"} {
		m.sealRenewals.WithLabelValues(r)
	}
	for _, l := range Limits {
		m.limited.WithLabelValues(l)
	}
	return m
}

func gauges(f family) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: f.name, Help: f.help}, f.labels)
}

func counters(f family) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.name, Help: f.help}, f.labels)
}

func gauge(f family) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: f.name, Help: f.help})
}

func counter(f family) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: f.name, Help: f.help})
}

// histogram has buckets from 1 µs, the cost of a cache hit, to a second.
func histogram(f family) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: f.name, Help: f.help, Buckets: []float64{
		1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.25, 1,
	}})
}

// SessionOpened counts a client connection once it is known what it is. Each call has its [Metrics.SessionClosed].
func (m *Metrics) SessionOpened(k SessionKind) {
	if m == nil {
		return
	}
	m.sessionsOpen.WithLabelValues(kindLabel(k)).Inc()
	m.sessionsTotal.WithLabelValues(kindLabel(k)).Inc()
}

// SessionClosed ends what SessionOpened began.
func (m *Metrics) SessionClosed(k SessionKind) {
	if m != nil {
		m.sessionsOpen.WithLabelValues(kindLabel(k)).Dec()
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
	m.statementsTotal.WithLabelValues(verdict, reasonLabel(reason), TagClass(tag)).Inc()
}

// CacheHit counts a verdict found in the cache.
func (m *Metrics) CacheHit() {
	if m != nil {
		m.cacheHits.Inc()
	}
}

// CacheMiss counts a statement judged anew, and how long that took.
func (m *Metrics) CacheMiss(took time.Duration) {
	if m != nil {
		m.cacheMisses.Inc()
		m.decideSeconds.Observe(took.Seconds())
	}
}

// CacheSize sets the size of the rewrite cache.
func (m *Metrics) CacheSize(entries int, bytes uint64) {
	if m != nil {
		m.cacheEntries.Set(float64(entries))
		m.cacheBytes.Set(float64(bytes))
	}
}

// Added records the time one execution spent in pgconsent, the wait for the server left out.
func (m *Metrics) Added(d time.Duration) {
	if m != nil {
		m.addedSeconds.Observe(max(d, 0).Seconds())
	}
}

// Rows counts rows relayed to an agent and their bytes.
func (m *Metrics) Rows(rows, bytes int64) {
	if m != nil && rows >= 0 && bytes >= 0 {
		m.rowsTotal.Add(float64(rows))
		m.bytesTotal.Add(float64(bytes))
	}
}

// UpstreamUp tells whether the control connection of a configured database is alive.
func (m *Metrics) UpstreamUp(database string, up bool) {
	if m != nil {
		m.upstreamUp.WithLabelValues(database).Set(boolean(up))
	}
}

// Serving tells whether agents of a configured database are served.
func (m *Metrics) Serving(database string, yes bool) {
	if m != nil {
		m.serving.WithLabelValues(database).Set(boolean(yes))
	}
}

// SealRenewed counts a seal made for a session, or the failure to make one.
func (m *Metrics) SealRenewed(ok bool) {
	if m != nil {
		m.sealRenewals.WithLabelValues(result(ok)).Inc()
	}
}

// AuditQueue sets how many records wait.
func (m *Metrics) AuditQueue(n int) {
	if m != nil {
		m.auditQueue.Set(float64(n))
	}
}

// AuditSynced sets how old the oldest record was when its group became durable.
func (m *Metrics) AuditSynced(lag time.Duration) {
	if m != nil {
		m.auditLag.Set(lag.Seconds())
	}
}

// AuditFailed counts records that could not be written.
func (m *Metrics) AuditFailed(n int) {
	if m != nil && n > 0 {
		m.auditFailures.Add(float64(n))
	}
}

// AuditAnchorFailed counts heads that could not be written to the anchor.
func (m *Metrics) AuditAnchorFailed() {
	if m != nil {
		m.auditAnchor.Inc()
	}
}

// PolicyInForce publishes the versions in force; the series of the versions before it disappears.
func (m *Metrics) PolicyInForce(database, policy, catalog string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.versions[database]; ok {
		m.policyInfo.DeleteLabelValues(database, old[0], old[1])
	}
	m.versions[database] = [2]string{policy, catalog}
	m.policyInfo.WithLabelValues(database, policy, catalog).Set(1)
}

// PolicyPending tells whether a changed policy waits for pgconsent migrate.
func (m *Metrics) PolicyPending(database string, yes bool) {
	if m != nil {
		m.policyPending.WithLabelValues(database).Set(boolean(yes))
	}
}

// Suspended tells how many tables and views of a database are not served while the others are.
func (m *Metrics) Suspended(database string, tables int) {
	if m != nil {
		m.suspended.WithLabelValues(database).Set(float64(tables))
	}
}

// SignedPath tells whether statements on a database may take the signed path.
func (m *Metrics) SignedPath(database string, open bool) {
	if m != nil {
		m.signed.WithLabelValues(database).Set(boolean(open))
	}
}

// Observed tells how many tables of a database the policy only observes.
func (m *Metrics) Observed(database string, tables int) {
	if m != nil {
		m.observedTables.WithLabelValues(database).Set(float64(tables))
	}
}

// Refreshed counts a check of a database's state.
func (m *Metrics) Refreshed(database string, ok bool) {
	if m != nil {
		m.refreshTotal.WithLabelValues(database, result(ok)).Inc()
	}
}

// Limited counts an execution that a limit refused or ended.
func (m *Metrics) Limited(limit string) {
	if m != nil {
		if !slices.Contains(Limits, limit) {
			limit = "other"
		}
		m.limited.WithLabelValues(limit).Inc()
	}
}

// Revoked counts a session ended by pgconsent.
func (m *Metrics) Revoked() {
	if m != nil {
		m.revocations.Inc()
	}
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
	case Agent, Owner:
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

// TagClass bounds a statement kind to one of [TagClasses].
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
