package main

import (
	"fmt"
	"time"
)

// hourglass tells a person who waits, on a terminal, how far it is.
type hourglass struct {
	s     *session
	what  string
	began time.Time
	told  time.Time
}

func (s *session) hourglass(what string) *hourglass {
	now := time.Now()
	return &hourglass{s: s, what: what, began: now, told: now}
}

// report takes how many bytes of how many are done.
func (h *hourglass) report(done, total int64) {
	now := time.Now()
	if !isTerminal(h.s.err) || now.Sub(h.told) < time.Second || total == 0 {
		return
	}
	h.told = now
	left := time.Duration(float64(now.Sub(h.began)) * float64(total-done) / float64(max(done, 1)))
	fmt.Fprintf(h.s.err, "%s %d of %d MB, %s left\n", h.what, done>>20, total>>20, left.Round(time.Second))
}
