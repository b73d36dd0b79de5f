package serve

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/test/tier"
)

func TestGCPercent(t *testing.T) {
	for liveBytes, want := range map[uint64]int{0: 400, 1 << 20: 400, 16 << 20: 400, 20 << 20: 320, 32 << 20: 200,
		64 << 20: 100, 1 << 30: 100, 1 << 40: 100} {
		if got := gcPercent(liveBytes); got != want {
			t.Errorf("with %d MiB in use %d %%, not %d", liveBytes>>20, got, want)
		}
	}
}

// When the heap has become large, the GC percentage is Go's default again, and no more garbage than that remains.
func TestGCFollowsTheHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(defaultGCPercent)
	defer debug.SetGCPercent(before)
	stop := ReduceGC()
	defer stop()
	currentPercent := func() int {
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(sample)
		return int(sample[0].Value.Uint64())
	}
	waitForPercent := func(description string, ok func(int) bool) {
		t.Helper()
		for end := time.Now().Add(tier.Patience); !ok(currentPercent()); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("with %s it is %d %%", description, currentPercent())
			}
			runtime.GC()
		}
	}
	waitForPercent("little in use", func(p int) bool { return p > defaultGCPercent })
	largeHeap := make([]byte, 2*maxGarbageBytes)
	waitForPercent("much in use", func(p int) bool { return p == defaultGCPercent })
	runtime.KeepAlive(largeHeap)
	waitForPercent("little in use again", func(p int) bool { return p > defaultGCPercent })
	stop()
	waitForPercent("the tuner stopped", func(p int) bool { return p == defaultGCPercent })
}

func TestGCOfTheEnvironment(t *testing.T) {
	t.Setenv("GOGC", "70")
	before := debug.SetGCPercent(70)
	defer debug.SetGCPercent(before)
	ReduceGC()()
	if p := debug.SetGCPercent(70); p != 70 {
		t.Errorf("the environment's 70 %% became %d", p)
	}
}

// What a burst has left goes back to the system when the process is idle, without a collection that somebody asks for.
func TestIdleProcessReturnsMemory(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(defaultGCPercent)
	defer debug.SetGCPercent(before)
	stop := ReduceGC()
	defer stop()
	const burst = 48 << 20
	keptBytes := func() uint64 {
		samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
			{Name: "/memory/classes/heap/unused:bytes"}}
		metrics.Read(samples)
		return samples[0].Value.Uint64() + samples[1].Value.Uint64() + samples[2].Value.Uint64()
	}
	runtime.GC()
	debug.FreeOSMemory()
	keptBefore := keptBytes()
	var pieces [][]byte
	for range burst / (16 << 10) {
		pieces = append(pieces, make([]byte, 16<<10))
	}
	if kept := keptBytes(); kept < keptBefore+burst/2 {
		t.Fatalf("%d bytes, and %d before a burst of %d", kept, keptBefore, burst)
	}
	runtime.KeepAlive(pieces)
	for end := time.Now().Add(tier.Patience); keptBytes() > keptBefore+burst/4; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the idle process keeps %d bytes, and had %d before the burst", keptBytes(), keptBefore)
		}
	}
}
