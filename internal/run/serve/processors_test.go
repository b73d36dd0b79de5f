package serve

import (
	"runtime"
	"testing"
)

func TestUsedProcessors(t *testing.T) {
	for _, c := range []struct{ machine, allowed, want int }{
		{1, 1, 1}, {2, 2, 1}, {3, 3, 1}, {4, 4, 2}, {64, 64, 32},
		{16, 2, 2}, {2, 1, 1}, {16, 12, 8}, // containers with a limit
	} {
		if got := usedProcessors(c.machine, c.allowed); got != c.want {
			t.Errorf("%d of %d processors, %d allowed; want %d", got, c.machine, c.allowed, c.want)
		}
	}
}

// The environment decides, if it says how many.
func TestProcessorsOfTheEnvironment(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	t.Setenv("GOMAXPROCS", "7")
	runtime.GOMAXPROCS(7)
	LimitProcessors()
	if got := runtime.GOMAXPROCS(0); got != 7 {
		t.Errorf("%d processors, and the environment says 7", got)
	}
	t.Setenv("GOMAXPROCS", "")
	LimitProcessors()
	if got, most := runtime.GOMAXPROCS(0), max(1, runtime.NumCPU()/2); got > most {
		t.Errorf("%d of %d processors", got, runtime.NumCPU())
	}
}
