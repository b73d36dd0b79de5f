package proxy

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/test/tier"
)

func hardened(j *fakeDecider) { j.hardened = true }

// TestScriptsWithHardenedPlans: statements with a hardened plan have the same answers as without one, message by
// message, with the same positions and transaction states.
func TestScriptsWithHardenedPlans(t *testing.T) {
	playScripts(t, startProxy(t, withDecider(func(j *fakeDecider) { j.hardened, j.prefix = true, "/* p */ " })), func(lines []string) []string { return lines })
	playScripts(t, startProxy(t, withDecider(func(j *fakeDecider) { j.hardened, j.resultBound = true, wideBound(true) })), comparableLines)
	playScripts(t, startProxy(t, withDecider(func(j *fakeDecider) { j.hardened, j.resultBound = true, wideBound(false) })), comparableLines)
}

// TestRandomScriptsWithHardenedPlans is the same for random conversations. Only DECLARE CURSOR may get another answer
// if earlier messages have not been answered: the proxy does not know then whether a transaction is open, and the
// settings of a hardened plan open one.
func TestRandomScriptsWithHardenedPlans(t *testing.T) {
	tier.All(t)
	for i, p := range []*testProxy{startProxy(t, withDecider(hardened)), startProxy(t,
		withDecider(func(j *fakeDecider) { j.hardened, j.resultBound = true, wideBound(true) }))} {
		for seed := range conversationSeeds(50) {
			script := randomConversation(rand.New(rand.NewPCG(uint64(seed), 13)))
			for _, round := range script {
				for k, m := range round {
					if query, ok := m.(*pgx3.Query); ok && strings.HasPrefix(query.String, "DECLARE k CURSOR FOR") {
						round[k] = &pgx3.Query{String: "SELECT 4"}
					}
				}
			}
			want, got := playConversation(t, p.connectDirect(t), script), playConversation(t, p.connectRaw(t), script)
			if i == 1 {
				want, got = comparableLines(want), comparableLines(got)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d\n%s\ndirect (-) and through the proxy (+):\n%s", seed, formatScript(script), diff)
			}
		}
	}
}

// TestCopyScriptsWithHardenedPlans: COPY FROM STDIN works after the proxy has set the settings of a hardened plan.
func TestCopyScriptsWithHardenedPlans(t *testing.T) {
	tier.All(t)
	p := startProxy(t, withDecider(hardened))
	for name, script := range copyScripts {
		t.Run(name, func(t *testing.T) {
			toServer, viaProxy := p.connectDirect(t), p.connectRaw(t)
			toServer.play(t, []round{upToReady(1, q(copyTables))})
			viaProxy.play(t, []round{upToReady(1, q(copyTables))})
			if diff := cmp.Diff(toServer.play(t, script), viaProxy.play(t, script)); diff != "" {
				t.Errorf("direct (-) and through the proxy (+):\n%s", diff)
			}
		})
	}
}

// TestHardeningHolds: the settings of a hardened plan apply to their statement, even after a rollback, and no longer in
// the next transaction.
func TestHardeningHolds(t *testing.T) {
	const settingsQuery = "SELECT current_setting('cpu_operator_cost') || ' ' || current_setting('enable_bitmapscan') || ' " +
		"' || current_setting('plan_cache_mode')"
	const want = "0 off force_custom_plan"
	for _, bound := range []verdict.ResultBound{{}, wideBound(true), wideBound(false)} {
		p := startProxy(t, withDecider(func(j *fakeDecider) { j.hardened, j.resultBound = true, bound }))
		c := p.connectRaw(t)
		parse := []pgx3.FrontendMessage{pa("s", settingsQuery), sy}
		c.play(t, []round{upToReady(1, parse...)})
		extendedMessages := []pgx3.FrontendMessage{bi("", "s"), ex("", 0)}
		for name, script := range map[string][]round{
			"alone":                      {upToReady(1, q(settingsQuery))},
			"extended":                   {upToReady(1, append(extendedMessages, sy)...)},
			"behind another":             {upToReady(1, q("SELECT 1; "+settingsQuery))},
			"behind a transaction":       {upToReady(1, q("BEGIN; SELECT 1; COMMIT; "+settingsQuery))},
			"behind what was undone":     {upToReady(1, q("BEGIN; SAVEPOINT a; SELECT 1; ROLLBACK TO a; "+settingsQuery+"; COMMIT"))},
			"behind RESET":               {upToReady(1, q("BEGIN; SELECT 1; ROLLBACK; "+settingsQuery))},
			"behind SET":                 {upToReady(1, q("SELECT 1; SET plan_cache_mode = force_generic_plan; "+settingsQuery))},
			"behind a comment like ours": {upToReady(1, q("/*pgconsent:/* x */ y */"+settingsQuery))},
			"in a transaction":           {upToReady(1, q("BEGIN")), upToReady(1, q(settingsQuery)), upToReady(1, q("COMMIT"))},
			"behind ROLLBACK TO": {upToReady(1, q("BEGIN; SAVEPOINT a")), upToReady(1, q(settingsQuery)),
				upToReady(1, q("ROLLBACK TO a")), upToReady(1, q(settingsQuery)), upToReady(1, q("COMMIT"))},
			"extended behind ROLLBACK TO": {upToReady(1, q("BEGIN; SAVEPOINT a")), upToReady(1, q("ROLLBACK TO a")),
				upToReady(1, append(extendedMessages, sy)...), upToReady(1, q("COMMIT"))},
			"executed by name": {upToReady(1, q("PREPARE x AS "+settingsQuery)), upToReady(1, q("EXECUTE x")), upToReady(1, q("DEALLOCATE x"))},
			"executed, extended": {upToReady(1, q("PREPARE x AS "+settingsQuery)),
				upToReady(1, pa("", "EXECUTE x"), bi("", ""), ex("", 0), sy), upToReady(1, q("DEALLOCATE x"))},
			"copied":           {upToReady(1, q("COPY ("+settingsQuery+") TO STDOUT"))},
			"copied, extended": {upToReady(1, pa("", "COPY ("+settingsQuery+") TO STDOUT"), bi("", ""), ex("", 0), sy)},
			"a cursor":         {upToReady(1, q("BEGIN; DECLARE k CURSOR FOR "+settingsQuery+"; FETCH ALL FROM k; COMMIT"))},
			"a cursor, extended": {upToReady(1, q("BEGIN")),
				upToReady(1, pa("", "DECLARE k CURSOR FOR "+settingsQuery), bi("", ""), ex("", 0), sy), upToReady(1, q("FETCH ALL FROM k")), upToReady(1, q("COMMIT"))},
		} {
			probes := 0
			for _, r := range script {
				for _, m := range r.send {
					if query, ok := m.(*pgx3.Query); ok {
						probes += strings.Count(query.String, settingsQuery)
					}
				}
			}
			got := c.play(t, script)
			n := 0
			for _, line := range got {
				if strings.HasPrefix(line, "E ") {
					t.Errorf("%s: %s", name, line)
				}
				if strings.Contains(line, want) {
					n++
				}
			}
			if n == 0 || strings.HasPrefix(name, "behind ROLLBACK TO") && n != 2 {
				t.Errorf("%s: %d of %d times %q in %q", name, n, probes, want, got)
			}
		}
	}
	// The settings end with their transaction.
	c := startProxy(t, withDecider(hardened)).connectRaw(t)
	for _, line := range c.play(t, []round{upToReady(1, q("SELECT 1")), upToReady(1, q("SHOW cpu_operator_cost"))}) {
		if line == `D ["0"]` {
			t.Error("they hold for what comes after")
		}
	}
}

// TestErrorsOfHardening: if the settings of a hardened plan cannot be set, the client gets this error in place of the
// statement's answer, and the session goes on.
func TestErrorsOfHardening(t *testing.T) {
	p := startProxy(t, withDecider(hardened))
	for name, script := range map[string][]round{
		"aborted": {upToReady(1, q("BEGIN")), upToReady(1, q("SELECT 1/0")), upToReady(1, q("SELECT 1")),
			upToReady(1, q("ROLLBACK")), upToReady(1, q("SELECT 2"))},
		"aborted, extended": {upToReady(1, pa("s", "SELECT 1"), sy), upToReady(1, q("BEGIN")),
			upToReady(1, q("SELECT 1/0")), upToReady(1, bi("p", "s"), ex("p", 0), sy), upToReady(1,
				q("ROLLBACK")), upToReady(1, bi("p", "s"), ex("p", 0), sy)},
		"aborted by a bind": {upToReady(1, pa("", "BEGIN"), bi("", ""), ex("", 0), pa("", "SELECT 1/0"), bi("", ""),
			ex("", 0), pa("", "SELECT 1"), bi("", ""), ex("", 0), sy), upToReady(1, q("ROLLBACK"))},
		"statements stay": {upToReady(1, pa("", "SELECT 5"), sy), upToReady(1, bi("", ""), ex("", 0), sy),
			upToReady(1, q("BEGIN")), upToReady(1, q("SELECT nope")), upToReady(1, pa("u", "SELECT 1"),
				sy), upToReady(1, q("ROLLBACK")), upToReady(1, bi("", "u"), ex("", 0), sy)},
		"deallocated": {upToReady(1, q("DEALLOCATE ALL")),
			upToReady(1, pa("", "SELECT 5"), bi("", ""), ex("", 0), sy), upToReady(1,
				q("DEALLOCATE ALL")), upToReady(1, pa("", "SELECT 5"), bi("", ""), ex("", 0), sy)},
		"positions": {upToReady(1, q("SELECT 1; SELECT 'ä', nope; SELECT 2")),
			upToReady(1, q("SELECT 'ä', nope")), upToReady(1, pa("", "SELECT 'ä', nope"), sy), upToReady(1, q("SELECT 1; SELEC 2"))},
		"a cursor outside": {upToReady(1, q("DECLARE k CURSOR FOR SELECT 1")), upToReady(2, q("SELECT 1"), q("DECLARE k CURSOR FOR SELECT 1"))},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(p.connectDirect(t).play(t, script), p.connectRaw(t).play(t, script)); diff != "" {
				t.Errorf("direct (-) and through the proxy (+):\n%s", diff)
			}
		})
	}
}

// TestNothingWaitsForHardening: before a Bind, the proxy sets settings, and the server does not answer before a Sync.
// Messages that depend on the state of the transaction do not wait for this answer, and the client notices nothing.
func TestNothingWaitsForHardening(t *testing.T) {
	p := startProxy(t, withDecider(hardened))
	boundMessages := []pgx3.FrontendMessage{pa("a", "SELECT 1"), bi("p", "a")}
	for _, followingMessages := range [][]pgx3.FrontendMessage{
		{pa("", "DISCARD ALL"), bi("", ""), ex("", 0), sy}, {pa("", "RESET ALL"), bi("", ""), ex("", 0), sy}, {
			q("DISCARD ALL"), sy}, {q("RESET ALL"), sy}, {q("DECLARE k CURSOR FOR SELECT 1"), sy},
	} {
		readyCount := 1
		if _, query := followingMessages[0].(*pgx3.Query); query {
			readyCount = 2
		}
		script := []round{upToReady(readyCount, append(slices.Clone(boundMessages), followingMessages...)...)}
		if diff := cmp.Diff(p.connectDirect(t).play(t, script), p.connectRaw(t).play(t, script)); diff != "" {
			t.Errorf("%v: direct (-) and through the proxy (+):\n%s", followingMessages[0], diff)
		}
	}
	if got := p.connectRaw(t).play(t, []round{upToReady(1, pa("", "DISCARD ALL"), bi("", ""), ex("", 0),
		sy)}); strings.Contains(strings.Join(got, "\n"), "ERROR") {
		t.Errorf("alone: %s", got)
	}
}

// TestLongNamesAreRefused: the memory of a session is limited, and names of statements count too.
func TestLongNamesAreRefused(t *testing.T) {
	p := startProxy(t)
	c := p.connectRaw(t)
	longText, tooLongText := strings.Repeat("n", maxName), strings.Repeat("n", maxName+1)
	for _, namedCase := range []struct {
		messages  []pgx3.FrontendMessage
		isRefused bool
	}{
		{[]pgx3.FrontendMessage{pa(longText, "SELECT 1"), bi(longText, longText), ex(longText, 0), sy}, false},
		{[]pgx3.FrontendMessage{pa(tooLongText, "SELECT 1"), sy}, true}, {[]pgx3.FrontendMessage{bi(tooLongText, longText), sy}, true},
	} {
		got := strings.Join(c.play(t, []round{upToReady(1, namedCase.messages...)}), "\n")
		if strings.Contains(got, "54000") != namedCase.isRefused {
			t.Errorf("refused %t: %s", namedCase.isRefused, got)
		}
	}
}
