package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	poolConnections = metricFamily{"pgconsent_pool_connections", "gauge", []string{"database", "state"},
		"Connections to the server that agents' sessions share: used by a session, or idle."}
	poolWaiting = metricFamily{"pgconsent_pool_waiting", "gauge", []string{"database"},
		"Sessions that wait for a connection of a pool."}
	poolTaken = metricFamily{"pgconsent_pool_taken_total", "counter", []string{"database"},
		"How often a session got a connection of a pool."}
	poolWaited = metricFamily{"pgconsent_pool_wait_seconds_total", "counter", []string{"database"},
		"How long sessions have waited for connections of pools, in all."}
	poolTimeouts = metricFamily{"pgconsent_pool_timeouts_total", "counter", []string{"database"},
		"Sessions that ended because no connection of their pool came free in time."}
)

// Pool has the counts of all connection pools of one database together.
type Pool struct {
	Database            string
	Used, Idle, Waiting int
	Taken, TimedOut     uint64
	WaitedSeconds       float64
}

// poolMetrics read the counts of pools at each scrape.
type poolMetrics struct {
	states *atomic.Pointer[func() []Pool]
}

func (m *poolMetrics) register(reg prometheus.Registerer) {
	m.states = &atomic.Pointer[func() []Pool]{}
	reg.MustRegister(m)
}

// WatchPools sets the function that returns the counts of pools, one [Pool] for each database. Each scrape calls it.
func (m *Metrics) WatchPools(readPools func() []Pool) {
	if m != nil {
		m.pools.states.Store(&readPools)
	}
}

func (f metricFamily) desc() *prometheus.Desc {
	return prometheus.NewDesc(f.name, f.help, f.labels, nil)
}

// Describe implements prometheus.Collector.
func (m *poolMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range []metricFamily{poolConnections, poolWaiting, poolTaken, poolWaited, poolTimeouts} {
		ch <- f.desc()
	}
}

// Collect implements prometheus.Collector.
func (m *poolMetrics) Collect(ch chan<- prometheus.Metric) {
	readPools := m.states.Load()
	if readPools == nil {
		return
	}
	for _, p := range (*readPools)() {
		for _, v := range []struct {
			family metricFamily
			kind   prometheus.ValueType
			value  float64
			labels []string
		}{
			{poolConnections, prometheus.GaugeValue, float64(p.Used), []string{p.Database, "used"}},
			{poolConnections, prometheus.GaugeValue, float64(p.Idle), []string{p.Database, "idle"}},
			{poolWaiting, prometheus.GaugeValue, float64(p.Waiting), []string{p.Database}},
			{poolTaken, prometheus.CounterValue, float64(p.Taken), []string{p.Database}},
			{poolWaited, prometheus.CounterValue, p.WaitedSeconds, []string{p.Database}},
			{poolTimeouts, prometheus.CounterValue, float64(p.TimedOut), []string{p.Database}},
		} {
			ch <- prometheus.MustNewConstMetric(v.family.desc(), v.kind, v.value, v.labels...)
		}
	}
}
