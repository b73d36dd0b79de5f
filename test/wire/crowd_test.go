package wire_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	idleCrowd          = 10_000 // idle sessions of pgconsent
	idleCrowdOfBouncer = 9_000  // idle sessions of PgBouncer: this process may have 20,000 descriptors
	activeCrowd        = 200    // clients that send statements without pauses
)

// crowd measures 200 active clients that share few connections to the server, while thousands of sessions are idle.
func (m *measurement) crowd(all []contender) string {
	t := m.t
	t.Helper()
	var pooled []contender
	for _, c := range all {
		if c.name == bouncerTransaction || c.name == agentTransaction {
			pooled = append(pooled, c)
		}
	}
	for _, c := range pooled {
		idle := idleCrowd
		if c.name == bouncerTransaction {
			idle = idleCrowdOfBouncer
		}
		fmt.Printf("wire: %d idle sessions of %s\n", idle, c.name)
		for range idle {
			conn := connect(t, c)
			defer func(conn *pgconn.PgConn) { _ = conn.Close(context.Background()) }(conn)
			if _, err := conn.Exec(t.Context(), "SELECT 1").ReadAll(); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
	}
	out := fmt.Sprintf("%d clients on %d connections to the server, beside %d idle ones:\n\n"+
		"| protocol | between | transactions per second | / PgBouncer, transaction | process between, µs | p50, µs | p99, µs |\n"+
		"|---|---|---:|---:|---:|---:|---:|\n", activeCrowd, poolSize, idleCrowd)
	for _, p := range protocols {
		rounds := m.runRounds(pooled, p, activeCrowd)
		for _, c := range pooled {
			out += rounds.crowdLine(p, c)
		}
	}
	return out
}

func (rounds roundsByName) crowdLine(p protocol, c contender) string {
	if len(rounds[c.name]) == 0 {
		return ""
	}
	return fmt.Sprintf("| %s | %s | %.0f | %s | %.0f | %.0f | %.0f |\n", p.name, c.name, rounds.median(c, tps), rounds.ratio(c, bouncerTransaction),
		rounds.median(c, func(u roundResult) float64 { return u.between })*1e6, rounds.median(c, p50), rounds.median(c, p99))
}
