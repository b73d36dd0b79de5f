package proxy

import (
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// postgres_fdw reads a foreign server in one REPEATABLE READ transaction, whatever the local isolation level is. It
// lasts from the first statement that reads the server, or is planned for that, to the end of the local transaction.
// Rows whose consent is withdrawn there meanwhile would go on showing. So a transaction reads foreign tables in one
// statement only.

// foreignReads is what the session has read of foreign servers.
type foreignReads struct {
	hasReads  bool
	lastGroup uint64 // number of the group with the last Bind or Execute that read foreign tables, from 1 on
}

// readForeign notes that e is about to read foreign tables, or returns the refusal if it may not. v is the verdict on
// what e itself reads, nil if it reads nothing.
func (r *requests) readForeign(e entry, v *verdict.Verdict, runs ...*verdict.Verdict) (*sqlstate.Error, error) {
	n := 0
	if v != nil {
		n = v.ForeignReads
	}
	for _, run := range runs {
		n += run.ForeignReads
	}
	if n == 0 {
		return nil, nil
	}
	isRepeated := n > 1 || r.foreign.lastGroup == r.group.number+1
	if !isRepeated && r.foreign.hasReads {
		if err := r.flush(); err != nil {
			return nil, err
		}
		isRepeated = r.ledger.waitForeign()
	}
	if isRepeated {
		return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonTransaction,
			"a transaction reads foreign tables in one statement only").
			WithHint("Their server shows a transaction one moment, and not what is withdrawn since. COMMIT first, " +
				"and send such statements one by one."), nil
	}
	e.base().readsForeign, r.foreign.hasReads = true, true
	if _, isQuery := e.(*queryEntry); !isQuery {
		r.foreign.lastGroup = r.group.number + 1
	}
	return nil, nil
}

// waitForeign waits for the answers to each Query, and to each group that has its Sync. It reports whether foreign
// tables were read in the transaction that is open afterwards.
func (l *ledger) waitForeign() (readsForeign bool) {
	l.waitReady()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.txReadForeign
}
