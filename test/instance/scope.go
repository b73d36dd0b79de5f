package instance

import "testing"

// Scope is a testing.TB whose cleanups run when End is called. With it, a long test that starts many instances can end
// each of them early.
type Scope struct {
	testing.TB
	cleanups []func()
}

// Cleanup registers a function that End calls.
func (s *Scope) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

// End calls the registered functions, last first.
func (s *Scope) End() {
	for len(s.cleanups) > 0 {
		last := s.cleanups[len(s.cleanups)-1]
		s.cleanups = s.cleanups[:len(s.cleanups)-1]
		last()
	}
}
