package proxy

import (
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// A foreign server shows a transaction one moment: postgres_fdw reads it in REPEATABLE READ, from what asks it first,
// or is planned for that, to the end of the local transaction, whatever its level is. What is withdrawn there meanwhile
// would go on showing. So a transaction asks once.

// asksForeign notes that e is about to have the server ask a foreign one, or says why it may not. v is what e itself
// does, nil: nothing.
func (s *session) asksForeign(e *entry, v *verdict.Verdict, runs ...*verdict.Verdict) (*sqlstate.Error, error) {
	n := 0
	if v != nil {
		n = v.ForeignReads
	}
	for _, r := range runs {
		n += r.ForeignReads
	}
	if n == 0 {
		return nil, nil
	}
	again := n > 1 || s.foreignIn == s.group+1
	if !again && s.foreign {
		if err := s.flush(); err != nil {
			return nil, err
		}
		again = s.ledger.askedForeign()
	}
	if again {
		return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonTransaction,
			"a transaction reads foreign tables in one statement only").
			WithHint("Their server shows a transaction one moment, and not what is withdrawn since. COMMIT first, " +
				"and send such statements one by one."), nil
	}
	e.foreign, s.foreign = true, true
	if e.kind != query {
		s.foreignIn = s.group + 1
	}
	return nil, nil
}

// askedForeign waits for the answers to each Query, and to each group that has its Sync, and tells whether a foreign
// server was asked in the transaction that is open behind them.
func (l *ledger) askedForeign() bool {
	l.groups()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.foreign
}
