package proxy

import "github.com/pgconsent/pgconsent/internal/sql/sqlstate"

// syncEntry is a Sync.
type syncEntry struct{ entryBase }

func (e *syncEntry) begins() bool        { return false }
func (e *syncEntry) endsWithReady() bool { return true }

// appendRefused is for the interface: nothing refuses a Sync.
func (e *syncEntry) appendRefused(dst []byte) []byte { return e.refusal.describe(dst) }

// answer knows of none: ReadyForQuery has rules of its own.
func (e *syncEntry) answer(*answers, byte, int) (known bool, err *sqlstate.Error) { return false, nil }

// sync stages a Sync, which ends a group of messages.
func (r *requests) sync() {
	start := len(r.batch.out)
	r.batch.out = appendSync(r.batch.out)
	r.batch.add(start, &syncEntry{})
	r.group = messageGroup{number: r.group.number + 1}
}
