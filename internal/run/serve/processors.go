package serve

import (
	"os"
	"runtime"
)

// LimitProcessors lets the process run Go code on at most half of the machine's processors at a time, unless GOMAXPROCS
// is set. PostgreSQL, beside which the process runs, needs the others, and each further thread costs more than it
// brings: a message wakes it, runs for some microseconds, and puts it to sleep again.
func LimitProcessors() {
	if os.Getenv("GOMAXPROCS") != "" {
		return
	}
	allowed := runtime.GOMAXPROCS(0)
	if n := usedProcessors(runtime.NumCPU(), allowed); n < allowed {
		runtime.GOMAXPROCS(n)
	}
}

// usedProcessors returns how many of the machine's processors to use. allowed is Go's own choice, which follows the
// limit of a container.
func usedProcessors(machine, allowed int) int { return min(max(1, machine/2), allowed) }
