package proxy

import (
	"testing"
	"time"
)

// The time limit of a transaction applies to each transaction separately, however many came before.
func TestTransactionsCountEachAlone(t *testing.T) {
	l := newLedger()
	l.timer.isBounded = true
	statement := func() []entry { return []entry{&queryEntry{}} }
	transactionStart := func() time.Time { return l.timer.began }
	l.push(statement())
	first := transactionStart()
	if first.IsZero() {
		t.Fatal("it has not begun")
	}
	l.push(statement()) // behind it
	l.ready('I')
	second := transactionStart()
	if !second.After(first) {
		t.Error("what was sent behind a transaction lasts as long as that")
	}
	if l.ready('I'); !transactionStart().IsZero() {
		t.Error("it goes on when it is over")
	}
	l.push(statement())
	thirdStart := transactionStart()
	l.ready('T')
	l.push(statement())
	if l.ready('E'); transactionStart() != thirdStart {
		t.Error("a statement within it begins another")
	}
	l.push(statement())
	if l.ready('I'); !transactionStart().IsZero() {
		t.Error("it goes on after its end")
	}
	l.push([]entry{&bindEntry{}})
	l.succeed()
	if transactionStart().IsZero() {
		t.Error("what waits for Sync does not count")
	}
	l.push([]entry{&syncEntry{}})
	if l.ready('I'); !transactionStart().IsZero() {
		t.Error("it goes on after Sync")
	}
}
