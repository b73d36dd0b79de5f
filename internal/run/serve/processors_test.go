package serve

import (
	"runtime"
	"testing"

	"github.com/pgconsent/pgconsent/internal/run/config"
)

func TestUsedProcessors(t *testing.T) {
	buffered, strict := config.Audit{Mode: "buffered", Sink: config.SinkFile}, config.Audit{Mode: "strict", Sink: config.SinkFile}
	for _, c := range []struct {
		machine, allowed int
		audit            config.Audit
		want             int
	}{
		{1, 1, buffered, 1}, {2, 2, buffered, 1}, {3, 3, buffered, 1}, {4, 4, buffered, 2}, {64, 64, buffered, 32},
		{1, 1, strict, 1}, {2, 2, strict, 2}, {3, 3, strict, 2}, {4, 4, strict, 2}, {8, 8, strict, 4},
		{2, 2, config.Audit{Mode: "strict", Sink: config.SinkDatabase}, 1}, {2, 2, config.Audit{Mode: "off"}, 1},
		{16, 2, buffered, 2}, {2, 1, strict, 1}, {16, 12, strict, 8}, // containers with a limit
	} {
		if got := usedProcessors(c.machine, c.allowed, c.audit); got != c.want {
			t.Errorf("%d of %d processors, %d allowed, audit %s; want %d", got, c.machine, c.allowed, c.audit.Mode, c.want)
		}
	}
}

// The environment decides, if it says how many.
func TestProcessorsOfTheEnvironment(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	c := &config.Config{Audit: config.Audit{Mode: "off"}}
	t.Setenv("GOMAXPROCS", "7")
	runtime.GOMAXPROCS(7)
	LimitProcessors(c)
	if got := runtime.GOMAXPROCS(0); got != 7 {
		t.Errorf("%d processors, and the environment says 7", got)
	}
	t.Setenv("GOMAXPROCS", "")
	LimitProcessors(c)
	if got, most := runtime.GOMAXPROCS(0), max(1, runtime.NumCPU()/2); got > most {
		t.Errorf("%d of %d processors", got, runtime.NumCPU())
	}
}
