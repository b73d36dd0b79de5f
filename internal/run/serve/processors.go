package serve

import (
	"os"
	"runtime"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/run/config"
)

// LimitProcessors lets the process run Go code on at most half of the machine's processors at a time, unless GOMAXPROCS
// is set. PostgreSQL, beside which the process runs, needs the others, and each further thread costs more than it
// brings: a message wakes it, runs for some microseconds, and puts it to sleep again.
func LimitProcessors(c *config.Config) {
	if os.Getenv("GOMAXPROCS") != "" {
		return
	}
	allowed := runtime.GOMAXPROCS(0)
	if n := usedProcessors(runtime.NumCPU(), allowed, c.Audit); n < allowed {
		runtime.GOMAXPROCS(n)
	}
}

// usedProcessors returns how many of the machine's processors to use. allowed is Go's own choice, which follows the
// limit of a container.
func usedProcessors(machine, allowed int, a config.Audit) int {
	least := 1
	if a.Mode == string(audit.ModeStrict) && a.Sink != config.SinkDatabase {
		// Each statement waits for a write to the disk. With one processor, Go lets others run only some time after such a
		// system call has begun.
		least = 2
	}
	return min(max(least, machine/2), allowed)
}
