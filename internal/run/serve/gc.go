package serve

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// The heap of a sidecar is small and lives long, and statements leave little garbage. By default the runtime collects
// when the garbage is as large as the live heap: it would go through the same small heap again and again. So more garbage
// may be left while the heap is small.
const (
	maxGarbage       = 64 << 20 // before a collection; where the live heap is larger, as much as that, as by default
	maxGCPercent     = 400
	defaultGCPercent = 100
)

// ReduceGC has garbage collected less often while the heap is small, until stop is called. It does nothing where the
// environment sets GOGC. A limit by GOMEMLIMIT takes precedence.
func ReduceGC() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	t := &gcTuner{percent: defaultGCPercent}
	t.adjust()
	runtime.SetFinalizer(&gcSentinel{t}, (*gcSentinel).collected)
	return func() {
		if !t.stopped.Swap(true) {
			debug.SetGCPercent(defaultGCPercent)
		}
	}
}

// gcTuner follows the size of the heap.
type gcTuner struct {
	percent int
	stopped atomic.Bool
}

// gcSentinel is garbage for each collection, whose finalizer adjusts the next one.
type gcSentinel struct{ *gcTuner }

func (s *gcSentinel) collected() {
	if s.stopped.Load() {
		return
	}
	s.adjust()
	runtime.SetFinalizer(s, (*gcSentinel).collected)
}

// adjust sets when the next collection begins.
func (t *gcTuner) adjust() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if p := gcPercent(sample[0].Value.Uint64()); p != t.percent {
		t.percent = p
		debug.SetGCPercent(p)
	}
}

// gcPercent is how much garbage may be left, as a percentage of the live heap.
func gcPercent(live uint64) int {
	percent := maxGarbage * 100 / max(live, 1)
	// Steps of 10 keep the change rare: setting the percentage stops the world.
	return int(min(max(percent, defaultGCPercent), maxGCPercent)) / 10 * 10
}
