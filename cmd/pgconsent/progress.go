package main

import (
	"fmt"
	"time"
)

// progress shows on a terminal how much a long command has done.
type progress struct {
	s          *session
	label      string
	startTime  time.Time
	lastReport time.Time
}

func (s *session) newProgress(label string) *progress {
	now := time.Now()
	return &progress{s: s, label: label, startTime: now, lastReport: now}
}

// report shows how many of the total bytes have been read.
func (h *progress) report(done, total int64) {
	now := time.Now()
	if !isTerminal(h.s.err) || now.Sub(h.lastReport) < time.Second || total == 0 {
		return
	}
	h.lastReport = now
	remainingTime := time.Duration(float64(now.Sub(h.startTime)) * float64(total-done) / float64(max(done, 1)))
	fmt.Fprintf(h.s.err, "%s %d of %d MB, %s left\n", h.label, done>>20, total>>20, remainingTime.Round(time.Second))
}
