package proxy

// By the methods below, the goroutine that handles the client's messages waits for the server's answers.

// waitOutsideTx waits until no message is in flight, and reports whether the server is then outside a transaction.
// While a group of extended messages is open, it returns false at once, since the server may not answer before a Sync.
// Close messages without a Sync do not count, since they begin no transaction.
func (l *ledger) waitOutsideTx() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.txMayBeOpen || l.skipping {
		return false
	}
	for l.queue.isAwaited() && !l.closed {
		l.changed.Wait()
	}
	// After a failed message the server skips all others, even a Query.
	return !l.closed && !l.skipping && l.status == 'I'
}

// waitTxStatus waits for the answers to all messages that may change the state of the transaction. It reports whether
// the server is then outside a transaction.
func (l *ledger) waitTxStatus() (outside bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.queue.mayChangeTxStatus() && !l.closed {
		l.changed.Wait()
	}
	return !l.closed && l.status == 'I'
}

// waitReady waits for the answers to each Query, and to each group that ends with a Sync. It does not wait for messages
// behind the last of these, since the server may not answer them before a Sync.
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

// waitFor waits until the server has answered e, and returns false if the session is over.
func (l *ledger) waitFor(e entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !e.base().isAnswered && !l.closed {
		l.changed.Wait()
	}
	return !l.closed
}

// waitChange calls flush if it is not nil, and otherwise waits for a change of the ledger. The caller holds the lock.
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
