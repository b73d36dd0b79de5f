package serve

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// The heap of a sidecar is small and lives long, what statements leave is smaller and lives for a moment: the runtime's
// default, which collects when as much as is in use has been left, would have it look through the same things again and
// again. So more may be left while little is in use.
const (
	maxGarbage     = 64 << 20 // that is waited for; where more is in use, as much as that, as by default
	maxGCPercent   = 400
	usualGCPercent = 100
)

// SpareCollections has garbage collected less often while the heap is small, until stop is called. It does nothing
// where the environment has GOGC. A limit by GOMEMLIMIT goes before it.
func SpareCollections() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	c := &collections{percent: usualGCPercent}
	c.adjust()
	runtime.SetFinalizer(&collected{c}, (*collected).again)
	return func() {
		if !c.stopped.Swap(true) {
			debug.SetGCPercent(usualGCPercent)
		}
	}
}

// collections follows the size of the heap.
type collections struct {
	percent int
	stopped atomic.Bool
}

// collected is found to be garbage by each collection.
type collected struct{ *collections }

func (c *collected) again() {
	if c.stopped.Load() {
		return
	}
	c.adjust()
	runtime.SetFinalizer(c, (*collected).again)
}

// adjust sets what the next collection waits for.
func (c *collections) adjust() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if p := gcPercent(sample[0].Value.Uint64()); p != c.percent {
		c.percent = p
		debug.SetGCPercent(p)
	}
}

// gcPercent is how much garbage may be left, as a percentage of what is in use.
func gcPercent(live uint64) int {
	percent := maxGarbage * 100 / max(live, 1)
	return int(min(max(percent, usualGCPercent), maxGCPercent)) / 10 * 10 // in steps: to set it stops the world
}
