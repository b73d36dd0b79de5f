package proxy

import "github.com/pgconsent/pgconsent/internal/sql/sqlstate"

// syncEntry is the entry of a Sync message.
type syncEntry struct{ entryBase }

func (e *syncEntry) beginsTransaction() bool { return false }
func (e *syncEntry) endsWithReady() bool     { return true }

// appendRefused only satisfies the interface: no Sync is refused.
func (e *syncEntry) appendRefused(dst []byte) []byte { return e.refusal.describe(dst) }

// handleAnswer accepts no message; [answers.ready] handles the ReadyForQuery of a Sync.
func (e *syncEntry) handleAnswer(*answers, byte, int) (isExpected bool, err *sqlstate.Error) {
	return false, nil
}

// sync adds a Sync message to the batch, which ends the current group of messages.
func (r *requests) sync() {
	start := len(r.batch.out)
	r.batch.out = appendSync(r.batch.out)
	r.batch.add(start, &syncEntry{})
	r.group = messageGroup{number: r.group.number + 1}
}
