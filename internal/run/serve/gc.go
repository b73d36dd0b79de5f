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
	// the garbage after which a collection begins; a larger live heap may have as much garbage as it is large, as by
	// default
	maxGarbageBytes  = 64 << 20
	maxGCPercent     = 400
	defaultGCPercent = 100
)

// ReduceGC makes garbage be collected less often while the heap is small, until stop is called. It does nothing if the
// environment sets GOGC. A limit by GOMEMLIMIT takes precedence.
func ReduceGC() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	t := &gcTuner{percent: defaultGCPercent}
	t.setPercent()
	runtime.SetFinalizer(&gcSentinel{t}, (*gcSentinel).onCollected)
	return func() {
		if !t.isStopped.Swap(true) {
			debug.SetGCPercent(defaultGCPercent)
		}
	}
}

// gcTuner adjusts the time of the next collection to the size of the heap.
type gcTuner struct {
	percent   int
	isStopped atomic.Bool
}

// gcSentinel is an object that each collection frees. Its finalizer adjusts the next collection.
type gcSentinel struct{ *gcTuner }

func (s *gcSentinel) onCollected() {
	if s.isStopped.Load() {
		return
	}
	s.setPercent()
	runtime.SetFinalizer(s, (*gcSentinel).onCollected)
}

// setPercent decides when the next collection begins.
func (t *gcTuner) setPercent() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if p := gcPercent(sample[0].Value.Uint64()); p != t.percent {
		t.percent = p
		debug.SetGCPercent(p)
	}
}

// gcPercent returns how much garbage may be left, as a percentage of the live heap.
func gcPercent(liveBytes uint64) int {
	percent := maxGarbageBytes * 100 / max(liveBytes, 1)
	// Steps of 10 keep the change rare: setting the percentage stops the world.
	return int(min(max(percent, defaultGCPercent), maxGCPercent)) / 10 * 10
}
