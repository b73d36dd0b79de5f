package policy_test

import (
	"testing"
	"time"
)

// All limits that apply to a session are enforced, so the smallest timeout counts. A limit without a timeout does not
// change it.
func TestSmallestTimeoutCounts(t *testing.T) {
	for _, c := range []struct {
		limits      string
		statement   time.Duration
		transaction time.Duration
	}{
		{"{ rows: 5 }", 0, 0},
		{"{ statement_timeout: 30s, transaction_timeout: 5m }", 30 * time.Second, 5 * time.Minute},
		{"[ { statement_timeout: 30s }, { per: user, statement_timeout: 2s } ]", 2 * time.Second, 0},
		{"[ { statement_timeout: 2s }, { per: user, statement_timeout: 30s } ]", 2 * time.Second, 0},
		{"[ { rows: 5 }, { per: user, statement_timeout: 3s } ]", 3 * time.Second, 0},
		{"[ { statement_timeout: 3s }, { per: user, rows: 5 } ]", 3 * time.Second, 0},
		{"[ { transaction_timeout: 1m, statement_timeout: 9s }, { per: user, transaction_timeout: 20s } ]",
			9 * time.Second, 20 * time.Second},
		{"[ { transaction_timeout: 20s }, { per: user, transaction_timeout: 1m, statement_timeout: 500ms } ]",
			500 * time.Millisecond, 20 * time.Second},
	} {
		p, err := compile(head + "limits: " + c.limits)
		if err != nil {
			t.Errorf("%s: %v", c.limits, err)
			continue
		}
		if p.Timeout() != c.statement || p.TransactionTimeout() != c.transaction {
			t.Errorf("%s: a statement has %v and a transaction %v, want %v and %v",
				c.limits, p.Timeout(), p.TransactionTimeout(), c.statement, c.transaction)
		}
	}
}
