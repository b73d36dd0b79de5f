package serve

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// The heap of the sidecar is small, lives long, and statements leave little garbage. By default, Go collects when there
// is as much garbage as live memory, and so would scan the same small heap again and again. Therefore more garbage is
// allowed while the heap is small.
const (
	// how much garbage is allowed before a collection begins; for a larger live heap, Go's default allows as much garbage
	// as live memory
	maxGarbageBytes  = 64 << 20
	maxGCPercent     = 400
	defaultGCPercent = 100
)

// Memory that a burst of logins or statements has left goes back to the system once the process is idle: once it has
// allocated less than idleBytes in an idleInterval.
const (
	idleInterval = 2 * time.Second
	idleBytes    = 512 << 10
	minReturned  = 4 << 20 // how much must have been allocated since memory was returned last
	// Collections before the one that returns memory. Each halves the stacks of which less than a quarter is used, such as
	// those of sessions that wait after a large statement.
	shrinkingCollections = 2
)

// ReduceGC makes garbage collections rarer while the heap is small, and returns memory to the system when the process
// is idle, until stop is called. It does nothing if GOGC is set. A limit by GOMEMLIMIT takes precedence.
func ReduceGC() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	t := &gcTuner{percent: defaultGCPercent}
	t.setPercent()
	runtime.SetFinalizer(&gcSentinel{t}, (*gcSentinel).onCollected)
	stopped := make(chan struct{})
	go returnMemoryWhenIdle(stopped)
	return func() {
		if !t.isStopped.Swap(true) {
			close(stopped)
			debug.SetGCPercent(defaultGCPercent)
		}
	}
}

// gcTuner adapts the percentage at which the next collection begins to the size of the heap.
type gcTuner struct {
	percent   int
	isStopped atomic.Bool
}

// gcSentinel is an unreachable object. Its finalizer runs at each collection, and adjusts the percentage for the next
// one.
type gcSentinel struct{ *gcTuner }

func (s *gcSentinel) onCollected() {
	if s.isStopped.Load() {
		return
	}
	s.setPercent()
	runtime.SetFinalizer(s, (*gcSentinel).onCollected)
}

// setPercent sets the percentage at which the next collection begins.
func (t *gcTuner) setPercent() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if p := gcPercent(sample[0].Value.Uint64()); p != t.percent {
		t.percent = p
		debug.SetGCPercent(p)
	}
}

// gcPercent returns how much garbage is allowed, as a percentage of the live heap.
func gcPercent(liveBytes uint64) int {
	percent := maxGarbageBytes * 100 / max(liveBytes, 1)
	// Rounding to steps of 10 makes changes rare, since each change stops the world.
	return int(min(max(percent, defaultGCPercent), maxGCPercent)) / 10 * 10
}

// returnMemoryWhenIdle collects garbage and returns free memory to the system each time the process becomes idle.
func returnMemoryWhenIdle(stopped <-chan struct{}) {
	ticker := time.NewTicker(idleInterval)
	defer ticker.Stop()
	allocated := allocatedBytes()
	returnedAt := uint64(0) // what had been allocated when memory was returned last
	for {
		select {
		case <-stopped:
			return
		case <-ticker.C:
		}
		now := allocatedBytes()
		if now-allocated < idleBytes && now-returnedAt >= minReturned {
			for range shrinkingCollections {
				runtime.GC()
			}
			debug.FreeOSMemory()
			returnedAt = now
		}
		allocated = now
	}
}

// allocatedBytes returns how many bytes the process has allocated on the heap since its start.
func allocatedBytes() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
