package proxy

// The goroutine that handles the client's messages waits here for the server's answers.

// waitOutsideTx waits until no entry is in flight and reports whether the server is then outside a transaction. While a
// group of extended messages is open it does not wait, since the server may keep its answers back, and returns false. A
// group with only Close messages has begun no transaction; its answers come with the next Sync.
func (l *ledger) waitOutsideTx() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.txMayBeOpen || l.skipping {
		return false
	}
	for l.queue.isAwaited() && !l.closed {
		l.changed.Wait()
	}
	// An entry that this waited for may have failed, and the server skips a Query behind it.
	return !l.closed && !l.skipping && l.status == 'I'
}

// waitTxStatus waits for the answers to all messages that may have changed the state of the transaction, and reports
// whether the server is outside one.
func (l *ledger) waitTxStatus() (outside bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.queue.mayChangeTxStatus() && !l.closed {
		l.changed.Wait()
	}
	return !l.closed && l.status == 'I'
}

// waitReady waits for the answers to each Query, and to each group that has its Sync. The server may keep back the
// answers to messages behind the last such message.
func (l *ledger) waitReady() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.queue.endsWithReady() && !l.closed {
		l.changed.Wait()
	}
}

// isReadyAwaited reports whether waitReady would wait.
func (l *ledger) isReadyAwaited() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.endsWithReady()
}

// waitFor waits until e is answered, and returns false if the session is over.
func (l *ledger) waitFor(e entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !e.base().isAnswered && !l.closed {
		l.changed.Wait()
	}
	return !l.closed
}

// waitChange waits for any answer, after calling flush if it is given; the caller holds the lock.
func (l *ledger) waitChange(flush func() error) error {
	if flush != nil {
		l.mu.Unlock()
		err := flush()
		l.mu.Lock()
		return err
	}
	if l.closed {
		return errPeerGone
	}
	l.changed.Wait()
	return nil
}
