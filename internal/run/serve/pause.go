package serve

import (
	"sync/atomic"
	"time"
)

// databasePause makes new statements of agents on a database wait. With the zero value they do not wait.
type databasePause struct {
	current atomic.Pointer[activePause] // nil: the database is not paused
}

// activePause is a pause that has not ended.
type activePause struct {
	since      time.Time
	pauseEnded chan struct{} // closed when the pause ends
}

// begin begins a pause. It returns false if the database is already paused.
func (p *databasePause) begin() bool {
	return p.current.CompareAndSwap(nil, &activePause{time.Now(), make(chan struct{})})
}

// end ends the pause. It returns false if the database is not paused.
func (p *databasePause) end() bool {
	endedPause := p.current.Swap(nil)
	if endedPause != nil {
		close(endedPause.pauseEnded)
	}
	return endedPause != nil
}

// resumeSignal returns a channel that is closed when the pause ends, and nil if the database is not paused.
func (p *databasePause) resumeSignal() <-chan struct{} {
	if currentPause := p.current.Load(); currentPause != nil {
		return currentPause.pauseEnded
	}
	return nil
}

// beganAt returns when the pause began, and the zero time if the database is not paused.
func (p *databasePause) beganAt() time.Time {
	if now := p.current.Load(); now != nil {
		return now.since
	}
	return time.Time{}
}
