package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	upstreamUp = metricFamily{"pgconsent_upstream_up", "gauge", []string{"database"},
		"1 when the control connection to the database is alive."}
	servingDatabase = metricFamily{"pgconsent_serving", "gauge", []string{"database"},
		"1 when agents of the database are served; 0 when the state of the database could not be verified."}
	policyInfo = metricFamily{"pgconsent_policy_info", "gauge", []string{"database", "policy", "catalog"},
		"1 for the active versions (hashes) of policy and catalog."}
	observedTables = metricFamily{"pgconsent_observed_tables", "gauge", []string{"database"},
		"Tables that the policy only observes: they are not protected."}
	signedPath = metricFamily{"pgconsent_signed_path", "gauge", []string{"database"},
		"1 while statements may take the signed path; 0 while they may not, and all of them read under row security."}
	suspendedTables = metricFamily{"pgconsent_suspended_tables", "gauge", []string{"database"},
		"Tables and views that are not served: they, or what they depend on, are not as they were when the policy was installed."}
	pausedDatabase = metricFamily{"pgconsent_paused", "gauge", []string{"database"},
		"1 while new statements of agents wait, because an operator has paused the database."}
	policyPending = metricFamily{"pgconsent_policy_pending", "gauge", []string{"database"},
		"1 when a changed policy waits for pgconsent migrate."}
	refreshTotal = metricFamily{"pgconsent_refresh_total", "counter", []string{"database", "result"},
		"Checks of catalog, installed policy, keys and clock, by result."}
)

// databaseMetrics report the state of each configured database.
type databaseMetrics struct {
	upstreamUp, serving, policyInfo, observedTables, pending, suspendedTables, signedPaths, paused *prometheus.GaugeVec
	refreshes                                                                                      *prometheus.CounterVec

	mu       sync.Mutex
	versions map[string][2]string // by database: the versions of policy and catalog in pgconsent_policy_info
}

func (m *databaseMetrics) register(reg prometheus.Registerer) {
	m.upstreamUp, m.serving, m.policyInfo = newGaugeVec(upstreamUp), newGaugeVec(servingDatabase), newGaugeVec(policyInfo)
	m.observedTables, m.pending = newGaugeVec(observedTables), newGaugeVec(policyPending)
	m.suspendedTables, m.signedPaths = newGaugeVec(suspendedTables), newGaugeVec(signedPath)
	m.paused, m.refreshes = newGaugeVec(pausedDatabase), newCounterVec(refreshTotal)
	m.versions = map[string][2]string{}
	reg.MustRegister(m.upstreamUp, m.serving, m.policyInfo, m.observedTables, m.pending, m.suspendedTables,
		m.signedPaths, m.paused, m.refreshes)
}

// SetUpstreamUp publishes whether the control connection to a configured database is alive.
func (m *Metrics) SetUpstreamUp(database string, up bool) {
	if m != nil {
		m.databases.upstreamUp.WithLabelValues(database).Set(boolean(up))
	}
}

// SetServing publishes whether agents of a configured database are served.
func (m *Metrics) SetServing(database string, isServing bool) {
	if m != nil {
		m.databases.serving.WithLabelValues(database).Set(boolean(isServing))
	}
}

// SetActivePolicy publishes the active versions of policy and catalog, and removes the series of the previous versions.
func (m *Metrics) SetActivePolicy(database, policy, catalog string) {
	if m == nil {
		return
	}
	m.databases.mu.Lock()
	defer m.databases.mu.Unlock()
	if previous, ok := m.databases.versions[database]; ok {
		m.databases.policyInfo.DeleteLabelValues(database, previous[0], previous[1])
	}
	m.databases.versions[database] = [2]string{policy, catalog}
	m.databases.policyInfo.WithLabelValues(database, policy, catalog).Set(1)
}

// SetPolicyPending publishes whether pgconsent migrate must install a changed policy.
func (m *Metrics) SetPolicyPending(database string, isPending bool) {
	if m != nil {
		m.databases.pending.WithLabelValues(database).Set(boolean(isPending))
	}
}

// SetSuspendedTables publishes how many tables and views of a database are suspended, while agents can use the others.
func (m *Metrics) SetSuspendedTables(database string, tables int) {
	if m != nil {
		m.databases.suspendedTables.WithLabelValues(database).Set(float64(tables))
	}
}

// SetSignedPath publishes whether statements on a database may use the signed views instead of row security.
func (m *Metrics) SetSignedPath(database string, isOpen bool) {
	if m != nil {
		m.databases.signedPaths.WithLabelValues(database).Set(boolean(isOpen))
	}
}

// SetPaused publishes whether new statements of agents on a configured database have to wait.
func (m *Metrics) SetPaused(database string, isPaused bool) {
	if m != nil {
		m.databases.paused.WithLabelValues(database).Set(boolean(isPaused))
	}
}

// SetObservedTables publishes how many tables of a database the policy observes only.
func (m *Metrics) SetObservedTables(database string, tables int) {
	if m != nil {
		m.databases.observedTables.WithLabelValues(database).Set(float64(tables))
	}
}

// CountRefresh counts a refresh of a database's state, and whether it succeeded.
func (m *Metrics) CountRefresh(database string, ok bool) {
	if m != nil {
		m.databases.refreshes.WithLabelValues(database, result(ok)).Inc()
	}
}
