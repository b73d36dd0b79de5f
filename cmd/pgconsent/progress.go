package main

import (
	"fmt"
	"time"
)

// progress reports to a person at a terminal how far a long command has come.
type progress struct {
	s          *session
	what       string
	started    time.Time
	lastReport time.Time
}

func (s *session) newProgress(label string) *progress {
	now := time.Now()
	return &progress{s: s, what: label, started: now, lastReport: now}
}

// report shows how many of the total bytes are done.
func (h *progress) report(done, total int64) {
	now := time.Now()
	if !isTerminal(h.s.err) || now.Sub(h.lastReport) < time.Second || total == 0 {
		return
	}
	h.lastReport = now
	left := time.Duration(float64(now.Sub(h.started)) * float64(total-done) / float64(max(done, 1)))
	fmt.Fprintf(h.s.err, "%s %d of %d MB, %s left\n", h.what, done>>20, total>>20, left.Round(time.Second))
}
