package serve

import (
	"os"
	"runtime"
	"sync/atomic"

	"github.com/pgconsent/pgconsent/internal/run/metrics"
	"github.com/pgconsent/pgconsent/proxy"
)

// A login allocates up to 60 KB, of which a session keeps 6 to 8. Go puts both onto the same pages, and never moves what
// stays. So the garbage of a thousand logins would double the memory of their sessions for as long as these live. It is
// collected after this many logins, or a sixteenth of the open sessions if that is more: the next logins then use the
// memory again.
const (
	minCollectedLogins = 64
	collectedShare     = 16
)

// loginCollector collects garbage while clients log in. It learns of logins as the proxy's metrics.
type loginCollector struct {
	proxy.Metrics
	open, uncollected atomic.Int64 // open sessions, and logins since the last collection
	isCollecting      atomic.Bool
}

// collectAtLogins returns metrics for the proxy that count the same, and collect garbage while clients log in. Like
// [ReduceGC], it changes nothing if GOGC is set.
func collectAtLogins(m proxy.Metrics) proxy.Metrics {
	if os.Getenv("GOGC") != "" {
		return m
	}
	return &loginCollector{Metrics: m}
}

// SessionOpened implements [proxy.Metrics].
func (c *loginCollector) SessionOpened(kind metrics.SessionKind) {
	c.Metrics.SessionOpened(kind)
	if kind == metrics.Refused {
		return
	}
	open := c.open.Add(1)
	if c.uncollected.Add(1) < max(minCollectedLogins, open/collectedShare) || c.isCollecting.Swap(true) {
		return
	}
	c.uncollected.Store(0)
	go func() {
		defer c.isCollecting.Store(false)
		runtime.GC()
	}()
}

// SessionClosed implements [proxy.Metrics].
func (c *loginCollector) SessionClosed(kind metrics.SessionKind) {
	c.Metrics.SessionClosed(kind)
	if kind != metrics.Refused {
		c.open.Add(-1)
	}
}
