package proxy

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/test/tier"
)

// After a change of consent, a result is refused if it comes from a snapshot that is older than its statement. Nothing
// else is refused.
func TestFreshness(t *testing.T) { checkFreshness(t) }

// The same with limited results: a result that would be fetched in steps is refused in one.
func TestFreshnessWithinBounds(t *testing.T) {
	tier.All(t)
	checkFreshness(t, withDecider(func(j *fakeDecider) { j.resultBound = wideBound(true) }))
}

func checkFreshness(t *testing.T, options ...func(*testProxy, *Config)) {
	const series = "SELECT * FROM generate_series(1, 9)"
	declare := "DECLARE c CURSOR FOR " + series
	beginTransaction := []round{upToReady(1, q("BEGIN"))}
	oneRound := func(m ...pgx3.FrontendMessage) []round { return []round{upToReady(1, m...)} }
	beginRepeatableRead := oneRound(q("BEGIN ISOLATION LEVEL REPEATABLE READ"))
	for name, c := range map[string]struct {
		before, after []round // consent changes between them
		isStale       bool
	}{
		"FETCH": {append(beginTransaction, oneRound(q(declare))...), oneRound(q("FETCH 2 FROM c")), true},
		"MOVE":  {append(beginTransaction, oneRound(q(declare))...), oneRound(q("MOVE 2 FROM c")), true},
		"FETCH again": {append(beginTransaction, oneRound(q(declare+"; FETCH 2 FROM c"))...), oneRound(q("SELECT 1; FETCH 2 FROM c")),
			true},
		"FETCH in extended": {append(beginTransaction, oneRound(q(declare))...),
			oneRound(pa("", "FETCH 2 FROM c"), bi("", ""), ex("", 0), sy), true},
		"Execute of a cursor": {append(beginTransaction, oneRound(q(declare))...), oneRound(ex("c", 2), sy), true},
		"DECLARE in extended": {append(beginTransaction, oneRound(pa("", declare), bi("", ""), ex("", 0), sy)...), oneRound(q("FETCH c")), true},
		"WITH HOLD":           {oneRound(q("DECLARE c CURSOR WITH HOLD FOR " + series)), oneRound(q("FETCH 2 FROM c")), true},
		"WITH HOLD, committed": {append(beginTransaction, upToReady(1, q("DECLARE c CURSOR WITH HOLD FOR "+series)),
			upToReady(1, q("COMMIT"))), oneRound(q("FETCH 2 FROM c")), true},
		"FETCH in the same message": {beginTransaction, oneRound(q(declare + "; FETCH 2 FROM c")), false},
		"a cursor declared after":   {beginTransaction, append(oneRound(q(declare)), upToReady(1, q("FETCH c"))), false},
		"CLOSE":                     {append(beginTransaction, oneRound(q(declare))...), oneRound(q("CLOSE c")), false},
		"another statement":         {append(beginTransaction, oneRound(q(declare))...), oneRound(q("SELECT 1")), false},
		"COMMIT":                    {append(beginTransaction, oneRound(q(declare))...), oneRound(q("COMMIT")), false},
		"suspended portal":          {append(beginTransaction, oneRound(pa("", series), bi("p", ""), ex("p", 2), sy)...), oneRound(ex("p", 2), sy), true},
		"portal bound before":       {append(beginTransaction, oneRound(pa("", series), bi("p", ""), sy)...), oneRound(ex("p", 0), sy), true},
		"FETCH of a portal": {append(beginTransaction, oneRound(pa("", series), bi("p", ""), sy)...), oneRound(q("FETCH 3 FROM p")),
			true},
		"portal of EXECUTE": {append(beginTransaction,
			oneRound(pa("s", series), pa("", "EXECUTE s"), bi("p", ""), ex("p", 2), sy)...), oneRound(ex("p", 2), sy), true},
		"portal run to its end":     {append(beginTransaction, oneRound(pa("", series), bi("p", ""), ex("p", 0), sy)...), oneRound(ex("p", 0), sy), false},
		"statement prepared before": {append(beginTransaction, oneRound(pa("s", series), sy)...), oneRound(bi("", "s"), ex("", 0), sy), false},
		"REPEATABLE READ":           {append(beginRepeatableRead, upToReady(1, q("SELECT 1"))), oneRound(q("SELECT 2")), true},
		"REPEATABLE READ, extended": {append(beginRepeatableRead, upToReady(1, q("SELECT 1"))),
			oneRound(pa("", "SELECT 2"), bi("", ""), ex("", 0), sy), true},
		"REPEATABLE READ, parsed": {append(beginRepeatableRead, upToReady(1, pa("s", "SELECT 1"), sy)),
			oneRound(bi("", "s"), ex("", 0), sy), true},
		"REPEATABLE READ, bound": {append(append(oneRound(pa("s", "SELECT 1"), sy), beginRepeatableRead...), upToReady(1, bi("", "s"), sy)),
			oneRound(q("SELECT 2")), true},
		"REPEATABLE READ, described": {append(append(oneRound(pa("s", "SELECT 1"), sy), beginRepeatableRead...),
			upToReady(1, de('S', "s"), sy)), oneRound(q("SELECT 2")), true},
		"begin, flushed": {[]round{{[]pgx3.FrontendMessage{
			pa("", "BEGIN ISOLATION LEVEL REPEATABLE READ"), bi("", ""), ex("", 0), pa("", "SELECT 1"), bi("", ""), ex("", 0), fl}, 'C', 2}},
			oneRound(pa("", "SELECT 2"), bi("", ""), ex("", 0), sy), true},
		"REPEATABLE READ, flushed": {append(beginRepeatableRead,
			round{[]pgx3.FrontendMessage{pa("", "SELECT 1"), bi("", ""), ex("", 0), fl}, 'C', 1}), oneRound(pa("", "SELECT 2"), bi("", ""), ex("", 0), sy), true},
		"portal, flushed": {append(beginTransaction,
			round{[]pgx3.FrontendMessage{pa("", series), bi("p", ""), ex("p", 2), fl}, 's', 1}), oneRound(ex("p", 2), sy), true},
		"bound portal, flushed":  {append(beginTransaction, round{[]pgx3.FrontendMessage{pa("", series), bi("p", ""), fl}, '2', 1}), oneRound(ex("p", 0), sy), true},
		"REPEATABLE READ, first": {beginRepeatableRead, oneRound(q("SELECT 2")), false},
		"REPEATABLE READ, over": {append(beginRepeatableRead, upToReady(1, q("SELECT 1")), upToReady(1, q("COMMIT"))),
			oneRound(q("SELECT 2")), false},
		"REPEATABLE READ, COMMIT":   {append(beginRepeatableRead, upToReady(1, q("SELECT 1"))), oneRound(q("COMMIT")), false},
		"REPEATABLE READ, ROLLBACK": {append(beginRepeatableRead, upToReady(1, q("SELECT 1"))), oneRound(q("ROLLBACK")), false},
		"REPEATABLE READ by SET": {append(beginTransaction,
			upToReady(1, q("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")), upToReady(1, q("SELECT 1"))), oneRound(q("SELECT 2")), true},
		"REPEATABLE READ by default": {append(oneRound(q("SET default_transaction_isolation = 'repeatable read'")),
			upToReady(1, q("BEGIN; SELECT 1"))), oneRound(q("SELECT 2")), true},
		"default, rolled back": {append(oneRound(q("SET default_transaction_isolation = 'repeatable read'")),
			upToReady(1, q("BEGIN; SET default_transaction_isolation = 'read committed'")),
			upToReady(1, q("ROLLBACK")), upToReady(1, q("BEGIN; SELECT 1"))), oneRound(q("SELECT 2")), true},
		"default, without transaction": {append(oneRound(q("SET default_transaction_isolation = 'repeatable read'")),
			upToReady(1, q("SELECT 1"))), oneRound(q("SELECT 2")), false},
		"default, discarded": {append(oneRound(q("SET default_transaction_isolation = 'repeatable read'")),
			upToReady(1, q("DISCARD ALL")), upToReady(1, q("BEGIN; SELECT 1"))),
			oneRound(q("SELECT 2")), false},
		"default, set behind DISCARD ALL": {
			append(oneRound(q("SET default_transaction_isolation = 'repeatable read'")),
				upToReady(2, q("DISCARD ALL"), q("SET default_transaction_isolation = 'repeatable read'")),
				upToReady(1, q("BEGIN; SELECT 1"))), oneRound(q("SELECT 2")), true},
		"default, set behind RESET ALL": {
			append([]round{}, upToReady(2, q("RESET ALL"), q("SET default_transaction_isolation = 'repeatable read'")), upToReady(1, q("BEGIN; SELECT 1"))),
			oneRound(q("SELECT 2")), true},
		"default, RESET ALL": {append(oneRound(q("SET default_transaction_isolation = 'repeatable read'")),
			upToReady(1, q("RESET ALL")), upToReady(1, q("BEGIN; SELECT 1"))), oneRound(q("SELECT 2")), false},
		"begin in a pipeline": {oneRound(pa("", "BEGIN ISOLATION LEVEL REPEATABLE READ"), bi("", ""), ex("", 0), pa("", "SELECT 1"), bi("", ""), ex("", 0), sy),
			oneRound(pa("", "SELECT 1"), bi("", ""), ex("", 0), sy), true},
		"READ COMMITTED": {append(beginTransaction, oneRound(q("SELECT 1"))...), oneRound(q("SELECT 2")), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProxy(t, options...)
			conn := p.connectRaw(t)
			for _, line := range conn.play(t, c.before) {
				if strings.HasPrefix(line, "E ") {
					t.Fatal(line)
				}
			}
			p.lastDecider().consentChanges.Add(1)
			isRefused := false
			for _, line := range conn.play(t, c.after) {
				if line == "E ERROR 40001 consent has changed  @0" {
					isRefused = true
				} else if strings.HasPrefix(line, "E ") {
					t.Error(line)
				}
				if isRefused && strings.HasPrefix(line, "D ") {
					t.Error("a row after the refusal")
				}
			}
			if isRefused != c.isStale {
				t.Errorf("refused: %v", isRefused)
			}
			if end := conn.play(t, []round{upToReady(1, q("ROLLBACK")), upToReady(1, q("SELECT 'on'"))}); !strings.HasPrefix(end[len(end)-2], "C SELECT") {
				t.Errorf("the session afterwards: %q", end)
			}
		})
	}
}

// If the proxy cannot find out whether consents have changed, it refuses only statements whose snapshots outlive them.
func TestUnknownChanges(t *testing.T) {
	p := startProxy(t)
	conn := p.connectRaw(t)
	conn.play(t, []round{upToReady(1, q("DECLARE h CURSOR WITH HOLD FOR SELECT * FROM generate_series(1, 9)")), upToReady(1, q("FETCH 1 FROM h"))})
	p.lastDecider().isStateUnknown.Store(true)
	for _, c := range []struct {
		script    []round
		isRefused bool
	}{
		{[]round{upToReady(1, q("FETCH 1 FROM h"))}, true},
		{[]round{upToReady(1, q("DECLARE i CURSOR WITH HOLD FOR SELECT 1"))}, true},
		{[]round{upToReady(1, q("BEGIN ISOLATION LEVEL REPEATABLE READ")), upToReady(1, q("SELECT 1")), upToReady(1, q("ROLLBACK"))}, true},
		{[]round{upToReady(1, q("BEGIN")), upToReady(1, pa("", "SELECT 1"), bi("p", ""), sy), upToReady(1, q("ROLLBACK"))}, true},
		{[]round{upToReady(1, pa("", "SELECT 1"), bi("", ""), ex("", 0), sy), upToReady(1, q("SELECT 1"))}, false},
	} {
		out := strings.Join(conn.play(t, c.script), "\n")
		if isRefused := strings.Contains(out, "E ERROR 57P03 lost"); isRefused != c.isRefused || isRefused && strings.Contains(out, "D ") {
			t.Errorf("%v: %s", c.script, out)
		}
	}
}

// For messages that use no old snapshot, the proxy does not ask the decider for changes.
func TestSnapshotChecksAreFew(t *testing.T) {
	p := startProxy(t)
	conn := p.connectRaw(t)
	conn.play(t, []round{
		upToReady(1, q("BEGIN")), upToReady(1, q("SELECT 1")), upToReady(1, pa("s", "SELECT $1::int"), de('S', "s"), sy),
		upToReady(1, bi("", "s", "1"), de('P', ""), ex("", 0), sy), upToReady(1, q("COMMIT")), upToReady(1, q("SELECT 1")),
	})
	if j := p.lastDecider(); j.snapshots.Load() != 0 || j.snapshotChecks.Load() != 0 {
		t.Errorf("%d snapshots and %d questions", j.snapshots.Load(), j.snapshotChecks.Load())
	}
	conn.play(t, []round{
		upToReady(1, q("BEGIN")), upToReady(1, q("DECLARE c CURSOR FOR SELECT * FROM generate_series(1, 9)")),
		upToReady(1, q("FETCH c")), upToReady(1, q("FETCH c")), upToReady(1, q("CLOSE c")), upToReady(1, q("COMMIT")),
	})
	if j := p.lastDecider(); j.snapshots.Load() != 1 || j.snapshotChecks.Load() != 2 {
		t.Errorf("%d snapshots and %d questions for a cursor", j.snapshots.Load(), j.snapshotChecks.Load())
	}
}

// TestOpenPortalsAreDecidedByAge: rows that wait in a suspended portal can become too old as time passes. A statement
// that runs anew cannot. However such a portal is opened and used again, in whichever transaction, the decider is asked
// about it as a suspended portal. It is asked so about nothing else.
func TestOpenPortalsAreDecidedByAge(t *testing.T) {
	const series = "SELECT * FROM generate_series(1, 9)"
	oneRound := func(m ...pgx3.FrontendMessage) round { return upToReady(1, m...) }
	beginRounds := map[string][]round{
		"READ COMMITTED":                 {oneRound(q("BEGIN"))},
		"REPEATABLE READ":                {oneRound(q("BEGIN ISOLATION LEVEL REPEATABLE READ"))},
		"SERIALIZABLE":                   {oneRound(q("BEGIN ISOLATION LEVEL SERIALIZABLE"))},
		"REPEATABLE READ by SET":         {oneRound(q("BEGIN")), oneRound(q("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))},
		"REPEATABLE READ by default":     {oneRound(q("SET default_transaction_isolation = 'repeatable read'")), oneRound(q("BEGIN"))},
		"REPEATABLE READ, something ran": {oneRound(q("BEGIN ISOLATION LEVEL REPEATABLE READ")), oneRound(q("SELECT 1"))},
	}
	opens := map[string]struct {
		openRound round
		useRounds []round
	}{
		"DECLARE": {oneRound(q("DECLARE c CURSOR FOR " + series)),
			[]round{oneRound(q("FETCH 1 FROM c")), oneRound(pa("", "FETCH 1 FROM c"), bi("", ""), ex("", 0), sy),
				oneRound(ex("c", 1), sy), oneRound(q("SELECT 1; FETCH 1 FROM c"))}},
		"DECLARE and FETCH": {oneRound(q("DECLARE c CURSOR WITH HOLD FOR " + series + "; FETCH 1 FROM c")),
			[]round{oneRound(q("FETCH 1 FROM c"))}},
		"a portal": {oneRound(pa("", series), bi("c", ""), sy),
			[]round{oneRound(ex("c", 0), sy), oneRound(ex("c", 1), sy), oneRound(q("FETCH 1 FROM c"))}},
		"a portal, suspended": {oneRound(pa("", series), bi("c", ""), ex("c", 2), sy),
			[]round{oneRound(ex("c", 0), sy), oneRound(ex("c", 1), sy), oneRound(q("FETCH 1 FROM c"))}},
	}
	p := startProxy(t)
	for in, beginScript := range beginRounds {
		for openRound, portalCase := range opens {
			for i, useRound := range append(portalCase.useRounds, oneRound(q("SELECT 1")), oneRound(pa("", "SELECT 1"), bi("", ""), ex("", 0), sy)) {
				conn := p.connectRaw(t)
				for _, line := range conn.play(t, append(slices.Clone(beginScript), portalCase.openRound)) {
					if strings.HasPrefix(line, "E ") {
						t.Fatal(line)
					}
				}
				p.lastDecider().waitingRowsHidden.Store(true)
				got := strings.Join(conn.play(t, []round{useRound}), "\n")
				if isRefused := strings.Contains(got,
					"E ERROR 40001 time has hidden something"); isRefused != (i < len(portalCase.useRounds)) || isRefused &&
					strings.Contains(got, "D [\"2") {
					t.Errorf("%s, %s, %v: %s", in, openRound, useRound, got)
				}
				conn.Close()
			}
		}
	}
}

// A RESET ALL that is rolled back, and an Execute that the server has skipped, have no effect on later decisions.
func TestUndoneAndSkippedStatements(t *testing.T) {
	const series = "SELECT * FROM generate_series(1, 9)"
	for name, c := range map[string]struct {
		before  []round
		message pgx3.FrontendMessage
	}{
		"RESET ALL": {[]round{
			upToReady(1, q("SET default_transaction_isolation = 'repeatable read'")),
			upToReady(1, pa("", "RESET ALL"), bi("", ""), ex("", 0), bi("", "none"), sy),
			upToReady(1, q("BEGIN; SELECT 1")),
		}, q("SELECT 2")},
		"Execute": {[]round{
			upToReady(1, pa("a", "SAVEPOINT a"), pa("s", series), sy),
			upToReady(1, q("BEGIN")),
			upToReady(1, bi("p", "s"), bi("", "a"), ex("", 0), bi("", "none"), ex("p", 0), sy),
			upToReady(1, q("ROLLBACK TO a")),
		}, q("FETCH 1 FROM p")},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProxy(t)
			conn := p.connectRaw(t)
			conn.play(t, c.before)
			p.lastDecider().consentChanges.Add(1)
			got := strings.Join(conn.play(t, []round{upToReady(1, c.message)}), "\n")
			if !strings.HasPrefix(got, "E ERROR 40001") {
				t.Error(got)
			}
		})
	}
}

// A message sent in advance may start long after it is sent. So the decider is asked only when the statement before it
// is answered.
func TestMessagesSentInAdvanceAreDecidedInTurn(t *testing.T) {
	const slowSQL, seriesSQL = "SELECT pg_sleep(1)", "SELECT * FROM generate_series(1, 9)"
	for name, messages := range map[string][]pgx3.FrontendMessage{
		"transaction": {q("BEGIN ISOLATION LEVEL REPEATABLE READ"), q("SELECT 1"), q(slowSQL), q("SELECT 1")},
		"pipeline": {
			pa("", "BEGIN ISOLATION LEVEL REPEATABLE READ"), bi("", ""), ex("", 0), pa("", "SELECT 1"), bi("", ""), ex("", 0), sy,
			q("SELECT 1"), pa("", slowSQL), bi("", ""), ex("", 0), sy, pa("", "SELECT 1"), bi("", ""), ex("", 0), sy,
		},
		"cursor":          {q("BEGIN"), q("DECLARE c CURSOR FOR " + seriesSQL), q(slowSQL), q("FETCH c")},
		"portal":          {q("BEGIN"), pa("", seriesSQL), bi("p", ""), sy, q(slowSQL), ex("p", 1), sy},
		"portal, resumed": {q("BEGIN"), pa("", seriesSQL), bi("p", ""), ex("p", 1), sy, q(slowSQL), ex("p", 1), sy},
		"portal, resumed behind a group": {q("BEGIN"), pa("", seriesSQL), bi("p", ""), ex("p", 1), sy, pa("", slowSQL),
			bi("", ""), ex("", 0), sy, ex("p", 1), sy},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProxy(t)
			conn := p.connectRaw(t)
			time.AfterFunc(500*time.Millisecond, func() { p.lastDecider().consentChanges.Add(1) })
			readyCount := 0
			for _, m := range messages {
				switch m.(type) {
				case *pgx3.Query, *pgx3.Sync:
					readyCount++
				}
			}
			got := conn.play(t, []round{upToReady(readyCount, messages...)})
			if len(got) < 2 || !strings.HasPrefix(got[len(got)-2], "E ERROR 40001") {
				t.Errorf("%q", got)
			}
		})
	}
}

// A client may keep transactions, cursors and portals open, and use them again in any way. No row that it gets shows
// the state before the last change of consent.
func TestNothingOlderThanAChangeIsShown(t *testing.T) {
	p := startProxy(t)
	admin := p.db.Connect(t, "postgres")
	run := func(sql string, args ...any) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	run("CREATE TABLE mark (n int)")
	run("INSERT INTO mark VALUES (0)")
	run("GRANT SELECT ON mark TO wire_agent")
	shownRows, refused, n := 0, 0, 0
	for seed := range conversationSeeds(100) {
		c := p.connectRaw(t)
		script := syncBeforeQueries(snapshotConversation(rand.New(rand.NewPCG(uint64(seed), 5)))...)
		for i, round := range script {
			n++
			run("UPDATE mark SET n = $1", n)
			p.lastDecider().consentChanges.Add(1)
			c.send(t, append(round, sy, q("misspelt"))...) // the syntax error is refused in every state
			for isFinished := false; ; {
				m, err := c.frontend.Receive()
				if err != nil {
					t.Fatalf("seed %d, round %d: %v\n%s", seed, i, err, formatScript(script[:i+1]))
				}
				line, typ := transcribe(m)
				if value, ok := strings.CutPrefix(line, `D ["`); ok {
					shownRows++
					if shownValue, err := strconv.Atoi(strings.TrimSuffix(value, `"]`)); err != nil || shownValue < n {
						t.Fatalf("seed %d, round %d shows %s, of before the change %d\n%s", seed, i, line, n, formatScript(script[:i+1]))
					}
				}
				if strings.HasPrefix(line, "E ERROR 40001") {
					refused++
				}
				if isFinished = isFinished || strings.HasPrefix(line, `E ERROR 42601 syntax error at or near "misspelt"`); isFinished && typ == 'Z' {
					break
				}
			}
		}
		c.Close()
	}
	if shownRows < 200 || refused < 15 {
		t.Errorf("%d rows and %d refusals", shownRows, refused)
	}
}

// snapshotConversation generates messages that open transactions, cursors and portals, and continue to use them.
func snapshotConversation(r *rand.Rand) (rounds [][]pgx3.FrontendMessage) {
	const show = "SELECT (SELECT max(n) FROM mark) FROM generate_series(1, 4)"
	pick := func(choices ...string) string { return choices[r.IntN(len(choices))] }
	const setDefaultLevel = "SET default_transaction_isolation = 'repeatable read'"
	var pendingTexts []string
	text := func() (nextText string) {
		if len(pendingTexts) > 0 && r.IntN(5) > 0 {
			nextText, pendingTexts = pendingTexts[0], pendingTexts[1:]
			return nextText
		}
		if r.IntN(3) > 0 { // continue an open cursor or portal
			pendingTexts = [][]string{
				{setDefaultLevel, "BEGIN", show, show, "ROLLBACK", "BEGIN; " + show, show}, {
					setDefaultLevel, "BEGIN; RESET ALL", "ROLLBACK", "BEGIN", show, show}, {setDefaultLevel, "DISCARD ALL", setDefaultLevel, "BEGIN; " + show, show},
				{"BEGIN ISOLATION LEVEL REPEATABLE READ", show, "SAVEPOINT s", show, "ROLLBACK TO s", show}, {
					"BEGIN", "DECLARE k CURSOR FOR " + show, "FETCH 1 FROM k", "FETCH 1 FROM k"},
				{"DECLARE k CURSOR WITH HOLD FOR " + show, "FETCH 1 FROM k", "BEGIN", "FETCH 1 FROM k"}, {
					"BEGIN", show, show, "FETCH 1 FROM p", "FETCH 1 FROM p"},
			}[r.IntN(7)]
			nextText, pendingTexts = pendingTexts[0], pendingTexts[1:]
			return nextText
		}
		return pick(show, show, show, "BEGIN", "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ",
			"BEGIN ISOLATION LEVEL REPEATABLE READ; "+show, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
			"SET default_transaction_isolation = 'repeatable read'",
			"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ -- DEFAULT", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s",
			"DECLARE k CURSOR FOR "+show, "DECLARE k CURSOR WITH HOLD FOR "+
				show, "FETCH 1 FROM k", "FETCH 2 FROM k", "FETCH 1 FROM p", "CLOSE k", "PREPARE x AS "+show, "EXECUTE x",
			"RESET ALL", "DISCARD ALL", "SELECT 1/0", "BEGIN; "+show, "COMMIT; "+show, "COMMIT; BEGIN", show+
				"; "+show, "BEGIN; DECLARE k CURSOR FOR "+show+"; FETCH 1 FROM k")
	}
	for range 6 + r.IntN(8) {
		var m []pgx3.FrontendMessage
		for range 1 + r.IntN(3) {
			portal := pick("", "p")
			switch r.IntN(6) {
			case 0, 1, 2:
				m = append(m, q(text()))
			case 3:
				m = append(m, pa("", text()), bi(portal, ""), ex(portal, uint32(r.IntN(3))))
			case 4:
				m = append(m, ex(portal, uint32(r.IntN(3))))
			case 5:
				m = append(m, pa("", pick(show, text())), bi(portal, ""))
			}
			if r.IntN(4) == 0 {
				m = append(m, sy)
			}
		}
		rounds = append(rounds, m)
	}
	return rounds
}

// untrackedDecider is a fakeDecider for which some texts read relations whose changes are not reported to the proxy.
type untrackedDecider struct{ *fakeDecider }

func (u *untrackedDecider) Decide(ctx context.Context, text string, p verdict.Protocol) *verdict.Verdict {
	v := u.fakeDecider.Decide(ctx, text, p)
	if strings.Contains(text, "nobody tells") {
		v.UntrackedRelation = "public.loose"
		for _, e := range v.Effects {
			if e.Body != nil {
				e.Body.UntrackedRelation = v.UntrackedRelation
			}
		}
	}
	return v
}

// TestUntrackedRelations: a statement that reads such an untracked relation is answered if it has its own snapshot. It
// is refused in a transaction that keeps a snapshot, in a cursor, and in a suspended portal. The statement's name, and
// other statements in the message, do not matter. Nothing else is refused.
func TestUntrackedRelations(t *testing.T) {
	for name, size := range readSizes {
		t.Run(name, func(t *testing.T) { checkUntracked(t, startProxy(t, splitReads(size))) })
	}
}

func checkUntracked(t *testing.T, p *testProxy) {
	p.editRoute = func(r *Route) {
		openDecider := r.Open
		r.Open = func(ctx context.Context, info SessionInfo) (verdict.Decider, error) {
			d, err := openDecider(ctx, info)
			return &untrackedDecider{d.(*fakeDecider)}, err
		}
	}
	const untrackedQuery, trackedQuery = "SELECT 'nobody tells' FROM generate_series(1, 9)", "SELECT * FROM generate_series(1, 9)"
	oneRound := func(m ...pgx3.FrontendMessage) round { return upToReady(1, m...) }
	run := func(text string, rows uint32) round { return oneRound(pa("", text), bi("p", ""), ex("p", rows), sy) }
	beginTransaction, beginRepeatableRead := oneRound(q("BEGIN")), oneRound(q("BEGIN ISOLATION LEVEL REPEATABLE READ"))
	prepareByName, parseByName := oneRound(q("PREPARE s AS "+untrackedQuery)), oneRound(pa("s", untrackedQuery), sy)
	first := oneRound(q("SELECT 1"))
	for name, c := range map[string]struct {
		script    []round // the last round reads the relation
		isRefused bool
	}{
		"alone":                      {[]round{oneRound(q(untrackedQuery))}, false},
		"in a transaction":           {[]round{beginTransaction, oneRound(q(untrackedQuery))}, false},
		"in a transaction, extended": {[]round{beginTransaction, run(untrackedQuery, 0)}, false},
		"extended":                   {[]round{run(untrackedQuery, 0)}, false},
		"prepared":                   {[]round{parseByName, oneRound(bi("", "s"), ex("", 0), sy)}, false},
		"prepared and described":     {[]round{parseByName, oneRound(bi("", "s"), de('P', ""), ex("", 0), sy)}, false},
		"two, before a Sync":         {[]round{parseByName, upToReady(1, bi("", "s"), ex("", 0), bi("", "s"), ex("", 0), sy)}, false},
		"with a large parameter": {
			[]round{oneRound(pa("", "SELECT length($1), 'nobody tells'", 25), bi("", "", strings.Repeat("x", 3*maxBatch)), ex("", 0), sy)}, false},
		"by name":                              {[]round{prepareByName, beginTransaction, oneRound(q("EXECUTE s"))}, false},
		"something else":                       {[]round{beginRepeatableRead, first, oneRound(q(trackedQuery))}, false},
		"something else, by a cursor":          {[]round{beginTransaction, oneRound(q("DECLARE c CURSOR FOR " + trackedQuery))}, false},
		"REPEATABLE READ":                      {[]round{beginRepeatableRead, oneRound(q(untrackedQuery))}, true},
		"REPEATABLE READ, later":               {[]round{beginRepeatableRead, first, oneRound(q(untrackedQuery))}, true},
		"REPEATABLE READ, beside":              {[]round{beginRepeatableRead, first, oneRound(q(trackedQuery + "; " + untrackedQuery))}, true},
		"REPEATABLE READ, extended":            {[]round{beginRepeatableRead, run(untrackedQuery, 0)}, true},
		"REPEATABLE READ, extended, later":     {[]round{beginRepeatableRead, first, run(untrackedQuery, 0)}, true},
		"REPEATABLE READ, prepared before":     {[]round{parseByName, beginRepeatableRead, first, oneRound(bi("", "s"), ex("", 0), sy)}, true},
		"REPEATABLE READ, bound":               {[]round{parseByName, beginRepeatableRead, oneRound(bi("", "s"), sy)}, true},
		"REPEATABLE READ, by name":             {[]round{prepareByName, beginRepeatableRead, oneRound(q("EXECUTE s"))}, true},
		"REPEATABLE READ, by name, later":      {[]round{prepareByName, beginRepeatableRead, first, oneRound(q("EXECUTE s"))}, true},
		"REPEATABLE READ, by name of the wire": {[]round{parseByName, beginRepeatableRead, first, oneRound(q("EXECUTE s"))}, true},
		"REPEATABLE READ, by name, extended":   {[]round{prepareByName, beginRepeatableRead, first, run("EXECUTE s", 0)}, true},
		"REPEATABLE READ, by name, beside": {[]round{prepareByName, beginRepeatableRead, first, oneRound(q(trackedQuery + "; EXECUTE s"))},
			true},
		"REPEATABLE READ, prepared inside": {[]round{beginRepeatableRead, first,
			oneRound(q("PREPARE s AS " + untrackedQuery + "; EXECUTE s"))}, true},
		"REPEATABLE READ by default": {
			[]round{oneRound(q("SET default_transaction_isolation = 'repeatable read'")), beginTransaction, first,
				oneRound(q(untrackedQuery))}, true},
		"REPEATABLE READ by default, at once": {
			[]round{oneRound(q("SET default_transaction_isolation = 'repeatable read'; BEGIN; " + trackedQuery)),
				oneRound(q(untrackedQuery))}, true},
		"a cursor":           {[]round{beginTransaction, oneRound(q("DECLARE c CURSOR FOR " + untrackedQuery))}, true},
		"a cursor WITH HOLD": {[]round{oneRound(q("DECLARE c CURSOR WITH HOLD FOR " + untrackedQuery))}, true},
		"a cursor, extended": {[]round{beginTransaction, run("DECLARE c CURSOR FOR "+untrackedQuery, 0)}, true},
		"a cursor and its rows": {[]round{beginTransaction, oneRound(q("DECLARE c CURSOR FOR " + untrackedQuery +
			"; FETCH 1 FROM c"))}, true},
		"a portal that waits":             {[]round{beginTransaction, oneRound(pa("", untrackedQuery), bi("p", ""), sy)}, true},
		"a portal in parts":               {[]round{beginTransaction, run(untrackedQuery, 2)}, true},
		"a portal that waits for a Flush": {[]round{beginTransaction, oneRound(pa("", untrackedQuery), bi("p", ""), fl, ex("p", 0), sy)}, true},
		"a portal of EXECUTE, in parts":   {[]round{prepareByName, beginTransaction, run("EXECUTE s", 2), oneRound(ex("p", 2), sy)}, true},
		"a portal of EXECUTE, fetched":    {[]round{prepareByName, beginTransaction, run("EXECUTE s", 2), oneRound(ex("p", 0), sy)}, true},
	} {
		conn := p.connectRaw(t)
		lastIndex := len(c.script) - 1
		for _, line := range conn.play(t, c.script[:lastIndex]) {
			if strings.HasPrefix(line, "E ") {
				t.Fatalf("%s: %s", name, line)
			}
		}
		got := strings.Join(conn.play(t, c.script[lastIndex:]), "\n")
		if isRefused := strings.Contains(got, "E ERROR 0A000 cursors, row limits"); isRefused != c.isRefused ||
			isRefused && strings.Contains(got, "nobody tells\"]") {
			t.Errorf("%s: %s", name, got)
		}
		conn.Close()
	}
}
