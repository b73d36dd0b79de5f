package instance

import "testing"

// Scope is a test whose cleanups run when End is called: long runs start many instances.
type Scope struct {
	testing.TB
	cleanups []func()
}

// Cleanup keeps f for End.
func (s *Scope) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

// End cleans up, last first.
func (s *Scope) End() {
	for len(s.cleanups) > 0 {
		last := s.cleanups[len(s.cleanups)-1]
		s.cleanups = s.cleanups[:len(s.cleanups)-1]
		last()
	}
}
