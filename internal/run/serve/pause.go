package serve

import (
	"sync/atomic"
	"time"
)

// databasePause makes new statements of a database's agents wait. The zero value lets them go on.
type databasePause struct {
	current atomic.Pointer[activePause] // nil: the database is not paused
}

// activePause is a pause that lasts.
type activePause struct {
	since      time.Time
	pauseEnded chan struct{} // closed when the pause ends
}

// begin begins a pause, and returns false if there is one already.
func (p *databasePause) begin() bool {
	return p.current.CompareAndSwap(nil, &activePause{time.Now(), make(chan struct{})})
}

// end ends the pause, and returns false if there is none.
func (p *databasePause) end() bool {
	endedPause := p.current.Swap(nil)
	if endedPause != nil {
		close(endedPause.pauseEnded)
	}
	return endedPause != nil
}

// resumeSignal returns a channel that is closed when the pause ends; nil: there is none.
func (p *databasePause) resumeSignal() <-chan struct{} {
	if currentPause := p.current.Load(); currentPause != nil {
		return currentPause.pauseEnded
	}
	return nil
}

// beganAt returns when the pause began; zero: there is none.
func (p *databasePause) beganAt() time.Time {
	if now := p.current.Load(); now != nil {
		return now.since
	}
	return time.Time{}
}
