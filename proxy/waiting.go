package proxy

// The goroutine that handles the client's messages waits here for the server's answers.

// waitOutsideTx waits until nothing is in flight and tells whether the server is then outside a transaction. While a
// group of extended messages is open it does not wait, since the server may keep its answers back, and says no. A group
// of which only Close was sent has begun nothing; its answers come with the next Sync.
func (l *ledger) waitOutsideTx() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open || l.skipping {
		return false
	}
	for l.queue.isAwaited() && !l.closed {
		l.change.Wait()
	}
	// An entry that was waited for may have failed, and the server skips a Query behind it.
	return !l.closed && !l.skipping && l.status == 'I'
}

// waitTxStatus waits for the answers to all messages that may have changed the state of the transaction, and tells
// whether the server is outside one.
func (l *ledger) waitTxStatus() (outside bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.queue.mayChangeTxStatus() && !l.closed {
		l.change.Wait()
	}
	return !l.closed && l.status == 'I'
}

// waitReady waits for the answers to each Query, and to each group that has its Sync. The server may keep the answers
// to messages behind the last of these back.
func (l *ledger) waitReady() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.queue.endsWithReady() && !l.closed {
		l.change.Wait()
	}
}

// isReadyAwaited tells whether waitReady would wait.
func (l *ledger) isReadyAwaited() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.endsWithReady()
}

// waitFor waits until e is answered; false if the session is over.
func (l *ledger) waitFor(e entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !e.base().over && !l.closed {
		l.change.Wait()
	}
	return !l.closed
}

// waitChange waits for any answer, after flush if it is given; the caller holds the lock.
func (l *ledger) waitChange(flush func() error) error {
	if flush != nil {
		l.mu.Unlock()
		err := flush()
		l.mu.Lock()
		return err
	}
	if l.closed {
		return errGone
	}
	l.change.Wait()
	return nil
}
