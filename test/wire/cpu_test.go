package wire_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// hertz is the unit of CPU times in /proc (USER_HZ), which is 100 on every architecture that Go supports.
const hertz = 100

// processTimes has what /proc says about a process.
type processTimes struct {
	parent       int
	ownSeconds   float64 // CPU seconds of all of its threads
	childSeconds float64 // CPU seconds of its children that have ended
}

// readProcessTimes reads the times of a process; false: it has ended. See proc(5).
func readProcessTimes(pid int) (processTimes, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processTimes{}, false
	}
	_, after, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(after)
	if len(fields) < 15 {
		return processTimes{}, false
	}
	seconds := func(i int) float64 {
		n, _ := strconv.ParseFloat(fields[i], 64)
		return n / hertz
	}
	parent, _ := strconv.Atoi(fields[1])
	return processTimes{parent, seconds(11) + seconds(12), seconds(13) + seconds(14)}, true
}

// cpu returns the CPU time of a process with all its threads, in seconds. For pid 0, which means no process, it returns
// 0.
func cpu(t *testing.T, pid int) float64 {
	t.Helper()
	if pid == 0 {
		return 0
	}
	p, ok := readProcessTimes(pid)
	if !ok {
		t.Fatalf("process %d is gone", pid)
	}
	return p.ownSeconds
}

// serverCPU returns the CPU time of a PostgreSQL server with all processes that it has had.
func serverCPU(t *testing.T, postmaster int) float64 {
	t.Helper()
	p, ok := readProcessTimes(postmaster)
	if !ok {
		t.Fatal("the server is gone")
	}
	sum := p.ownSeconds + p.childSeconds
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		pid, _ := strconv.Atoi(filepath.Base(e))
		if child, ok := readProcessTimes(pid); ok && child.parent == postmaster {
			sum += child.ownSeconds
		}
	}
	return sum
}

// residentMemory returns the memory of a process, in bytes.
func residentMemory(t *testing.T, pid int) float64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(b))
	pages, _ := strconv.ParseFloat(fields[1], 64)
	return pages * float64(os.Getpagesize())
}
