package proxy

// exceeds tells whether one more row of this length is more than the execution may have relayed.
func (e *entry) exceeds(length int) bool { return e.tooManyRows() || e.tooManyBytes(length) }

func (e *entry) tooManyRows() bool { return e.bound.Rows > 0 && e.rows >= e.bound.Rows }

func (e *entry) tooManyBytes(length int) bool {
	return e.bound.Bytes > 0 && e.bytes+int64(length) > e.bound.Bytes
}

// mute ends a result before the row at hand: the client gets an error in its place, and nothing more until ReadyForQuery, as
// after any error. The server is asked to cancel the statement, which it may have ended by itself meanwhile.
func (o *answers) mute(e *entry) {
	err := e.bound.Exceeded(e.tooManyRows())
	e.limited = err.Code
	o.muted, o.swallow = true, true
	o.end = encodeError(nil, "ERROR", err)
	o.cancelled = make(chan struct{})
	go func(done chan struct{}) {
		defer close(done)
		o.cancelUpstream()
	}(o.cancelled)
}

// unmute goes on with what comes after ReadyForQuery. A cancel request that is still on its way would hit the client's next
// statement.
func (o *answers) unmute() {
	if !o.muted {
		return
	}
	o.muted = false
	select {
	case <-o.cancelled:
	case <-o.ctx.Done():
	}
}
