package available_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// throttle limits a process and its descendants to a share of one processor until ctx ends. It stops them while they
// have used more.
func throttle(ctx context.Context, pid int, share float64) {
	const interval = 5 * time.Millisecond
	start, usedBefore := time.Now(), time.Duration(0)
	for ; ctx.Err() == nil; time.Sleep(interval) {
		pids, used := processTree(pid)
		if usedBefore == 0 {
			usedBefore = used
		}
		signal := syscall.SIGCONT
		if used-usedBefore > time.Duration(share*float64(time.Since(start))) {
			signal = syscall.SIGSTOP
		}
		for _, p := range pids {
			_ = syscall.Kill(p, signal)
		}
	}
	pids, _ := processTree(pid)
	for _, p := range pids {
		_ = syscall.Kill(p, syscall.SIGCONT)
	}
}

// processTree returns a process with its descendants, and the processor time that they and their ended children have
// used. See proc_pid_stat(5).
func processTree(root int) (pids []int, used time.Duration) {
	const tick = 10 * time.Millisecond // sysconf(_SC_CLK_TCK) is 100 on Linux
	parents, times := map[int]int{}, map[int]time.Duration{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest) // the first is the state, the third field of the file
		if len(fields) < 15 {
			continue
		}
		number := func(i int) int { n, _ := strconv.Atoi(fields[i]); return n }
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		parents[pid] = number(1)
		times[pid] = time.Duration(number(11)+number(12)+number(13)+number(14)) * tick
	}
	for pid := range parents {
		for p := pid; p > 1; p = parents[p] {
			if p == root {
				pids, used = append(pids, pid), used+times[pid]
				break
			}
		}
	}
	return pids, used
}
