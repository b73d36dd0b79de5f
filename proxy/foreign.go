package proxy

import (
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// postgres_fdw reads a foreign server in one REPEATABLE READ transaction, whatever the local isolation level is. The
// remote transaction begins when the first statement that reads the server is planned or run, and ends with the local
// one. Later statements of the transaction would still show rows whose consent was withdrawn meanwhile. So the proxy
// lets a transaction read foreign tables in one statement only.

// foreignReads notes whether and when the session has read foreign tables.
type foreignReads struct {
	hasReads  bool
	lastGroup uint64 // the last group with a Bind or Execute that read foreign tables: its number plus one; 0: none
}

// readForeign notes that e is about to read foreign tables. It returns a refusal if the transaction has already read
// some. v is the verdict on the text of e, nil if it was checked before; runs are the verdicts on statements that e
// runs by name.
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

// waitForeign waits for the answers to each Query and to each group that ends with a Sync. It reports whether the
// transaction that is open then has read foreign tables.
func (l *ledger) waitForeign() (readsForeign bool) {
	l.waitReady()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.txReadForeign
}
