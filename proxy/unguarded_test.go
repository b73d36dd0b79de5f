package proxy

import (
	"strings"
	"testing"
)

// TestFunctionCallsAreDecidedAgain: the database itself does not refuse a call of a function that was replaced after it
// was checked, so the proxy checks before each call. If it was replaced, the proxy decides and sends the statement
// again, outside a transaction or as its first statement.
func TestFunctionCallsAreDecidedAgain(t *testing.T) {
	const call = "SELECT 7 AS of_the_owner"
	run := upToReady(1, pa("", call), bi("", ""), ex("", 0), sy)
	prepareRound := upToReady(1, pa("s", call), sy)
	for name, c := range map[string]struct {
		before    []round
		callRound round
		isRefused bool // the client has to begin its transaction again
	}{
		"a Query":                    {nil, upToReady(1, q(call)), false},
		"several in a Query":         {nil, upToReady(1, q("SELECT 1; "+call)), false},
		"behind a COMMIT":            {nil, upToReady(1, q("BEGIN; COMMIT; "+call)), true},
		"without a name":             {nil, run, false},
		"prepared":                   {[]round{prepareRound}, upToReady(1, bi("", "s"), ex("", 0), sy), false},
		"EXECUTE":                    {[]round{prepareRound}, upToReady(1, q("EXECUTE s")), false},
		"first in a transaction":     {[]round{upToReady(1, q("BEGIN"))}, upToReady(1, q(call)), false},
		"in a transaction":           {[]round{upToReady(1, q("BEGIN")), upToReady(1, q("SELECT 1"))}, upToReady(1, q(call)), true},
		"extended, in a transaction": {[]round{upToReady(1, q("BEGIN")), upToReady(1, q("SELECT 1"))}, run, true},
		"a portal bound before": {[]round{upToReady(1, q("BEGIN")), upToReady(1, pa("", call), bi("p", ""), sy)},
			upToReady(1, ex("p", 0), sy), true},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProxy(t)
			conn := p.connectRaw(t)
			conn.play(t, c.before)
			p.lastDecider().decidedBeforeRedefinition.Store(1)
			got := strings.Join(conn.play(t, []round{c.callRound}), "\n")
			if isRefused := strings.Contains(got, "40001"); isRefused != c.isRefused || isRefused == strings.Contains(got, `D ["7"]`) {
				t.Errorf("refused %t, want %t:\n%s", isRefused, c.isRefused, got)
			}
			if p.lastDecider().decidedBeforeRedefinition.Load() != 0 {
				t.Error("nobody asked")
			}
		})
	}
}
