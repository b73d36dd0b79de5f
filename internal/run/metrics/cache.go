package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	cacheHits = metricFamily{"pgconsent_rewrite_cache_hits_total", "counter",
		nil, "Statements whose verdict was in the rewrite cache."}
	cacheMisses = metricFamily{"pgconsent_rewrite_cache_misses_total", "counter", nil,
		"Statements that had to be parsed and judged."}
	cacheBytes    = metricFamily{"pgconsent_rewrite_cache_bytes", "gauge", nil, "Memory that the cached verdicts account for."}
	cacheEntries  = metricFamily{"pgconsent_rewrite_cache_entries", "gauge", nil, "Verdicts in the rewrite cache."}
	decideSeconds = metricFamily{"pgconsent_decide_seconds", "histogram", nil,
		"Time to judge a statement that was not in the cache."}
)

// cacheMetrics count how often the rewrite cache had the verdict on a statement.
type cacheMetrics struct {
	hits, misses   prometheus.Counter
	bytes, entries prometheus.Gauge
	decideSeconds  prometheus.Histogram
}

func (m *cacheMetrics) register(reg prometheus.Registerer) {
	*m = cacheMetrics{hits: counter(cacheHits), misses: counter(cacheMisses), bytes: newGauge(cacheBytes),
		entries: newGauge(cacheEntries), decideSeconds: newHistogram(decideSeconds)}
	reg.MustRegister(m.hits, m.misses, m.bytes, m.entries, m.decideSeconds)
}

// CacheHit counts a statement whose verdict was in the rewrite cache.
func (m *Metrics) CacheHit() {
	if m != nil {
		m.cache.hits.Inc()
	}
}

// CacheMiss counts a statement whose verdict was not in the rewrite cache. took is how long the rewriter needed for it.
func (m *Metrics) CacheMiss(took time.Duration) {
	if m != nil {
		m.cache.misses.Inc()
		m.cache.decideSeconds.Observe(took.Seconds())
	}
}

// CacheSize publishes the size of the rewrite cache.
func (m *Metrics) CacheSize(entries int, bytes uint64) {
	if m != nil {
		m.cache.entries.Set(float64(entries))
		m.cache.bytes.Set(float64(bytes))
	}
}
