package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// print prints the numbers of tests, why tests were skipped, and which failed.
func (s *summary) print(times bool) {
	if times {
		s.printTimes()
	}
	for _, why := range slices.Sorted(maps.Keys(s.reasons)) {
		fmt.Fprintf(s.out, "skipped %4d  %s\n", s.reasons[why], why)
	}
	for _, f := range s.failed {
		fmt.Fprintf(s.out, "failed  %s\n", f)
	}
	fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped\n", s.passes, s.fails, s.skips)
}

// maxListed is how many of the slowest tests are printed.
const maxListed = 400

func (s *summary) printTimes() {
	root, _ := os.Getwd()
	all := readUsage(s.usage)
	slices.SortFunc(all, func(a, b packageUsage) int { return cmp.Compare(b.CPU, a.CPU) })
	var cpu time.Duration
	fmt.Fprintf(s.out, "%-36s %9s %9s\n", "package", "CPU s", "wall s")
	for _, u := range all {
		folder, err := filepath.Rel(root, u.Package)
		if err != nil {
			folder = u.Package
		}
		fmt.Fprintf(s.out, "%-36s %9.1f %9.1f\n", folder, u.CPU.Seconds(), u.Elapsed.Seconds())
		cpu += u.CPU
	}
	fmt.Fprintf(s.out, "%-36s %9.1f (without the server that packages share)\n\n", "together", cpu.Seconds())
	slowest := slices.SortedFunc(maps.Keys(s.elapsed), func(a, b testName) int { return cmp.Compare(s.elapsed[b], s.elapsed[a]) })
	for _, n := range slowest[:min(len(slowest), maxListed)] {
		fmt.Fprintf(s.out, "%6.1f s  %s %s\n", s.elapsed[n], shortPackage(n.pkg), n.test)
	}
}
