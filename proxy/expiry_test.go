package proxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/test/tier"
)

// shortLivedSeals is a fakeDecider whose seals expire after a given time, which the database checks.
type shortLivedSeals struct {
	*fakeDecider
	lifetime time.Duration
}

func (s *shortLivedSeals) Seal(ctx context.Context, b verdict.Backend) (verdict.Seal, error) {
	seal, err := s.fakeDecider.Seal(ctx, b)
	now := time.Now()
	seal.RenewAfter, seal.Expires = now.Add(s.lifetime/2), now.Add(s.lifetime*11/12)
	seal.Value = fmt.Sprintf("%.6f", float64(now.Add(s.lifetime).UnixMicro())/1e6)
	return seal, err
}

// sealedTableQuery counts the single row of a view, which is visible only in transactions that begin under a valid
// seal.
const sealedTableQuery = "SELECT count(*) AS n FROM walled"

func startWithSealLifetime(t *testing.T, lifetime time.Duration) *testProxy {
	p := startProxy(t)
	p.editRoute = func(r *Route) {
		openDecider := r.Open
		r.Open = func(ctx context.Context, info SessionInfo) (verdict.Decider, error) {
			d, err := openDecider(ctx, info)
			return &shortLivedSeals{d.(*fakeDecider), lifetime}, err
		}
	}
	if _, err := p.db.Connect(t, "postgres").Exec(t.Context(), `CREATE TABLE walled (n int); INSERT INTO walled VALUES (1);
		ALTER TABLE walled ENABLE ROW LEVEL SECURITY; GRANT SELECT ON walled TO wire_agent;
		CREATE POLICY sealed ON walled USING (current_setting('pgconsent.seal')::float8 > extract(epoch FROM transaction_timestamp()))`); err != nil {
		t.Fatal(err)
	}
	return p
}

// executions returns the messages that run texts by the extended protocol, without a Sync.
func executions(texts ...string) (out []pgx3.FrontendMessage) {
	for _, text := range texts {
		out = append(out, pa("", text), bi("", ""), ex("", 0))
	}
	return out
}

func withSync(m []pgx3.FrontendMessage) []pgx3.FrontendMessage { return append(m, sy) }

// TestNoTransactionUnderAnOldSeal: a client may send several messages at once. None may begin a transaction after the
// seal has expired, in which the table would seem empty.
func TestNoTransactionUnderAnOldSeal(t *testing.T) {
	p := startWithSealLifetime(t, 6*time.Second) // long enough to play a script on a busy machine
	const (
		renewalError = "E ERROR 0A000 no transaction can begin here: the session's identity has to be renewed first  @0"
		expiredError = "E FATAL 08006 the session's identity has expired before the server came to the messages sent in advance  @0"
	)
	row := []string{"T n:20:0", `D ["1"]`, "C SELECT 1", "Z I"}
	rowT := []string{"T n:20:0", `D ["1"]`, "C SELECT 1", "Z T"}
	ext := []string{"1", "2", `D ["1"]`, "C SELECT 1"}
	concatLines := func(parts ...any) (out []string) {
		for _, p := range parts {
			switch p := p.(type) {
			case string:
				out = append(out, p)
			case []string:
				out = append(out, p...)
			}
		}
		return out
	}
	beginRound := []round{upToReady(1, q("BEGIN"))} // the seal expires after it
	for name, c := range map[string]struct {
		before         []round
		script         []round
		want           []string
		isSessionEnded bool // the proxy ends the session
	}{
		"queries": {beginRound, []round{upToReady(4, q("COMMIT"), q("BEGIN"), q(sealedTableQuery), q("COMMIT"))},
			concatLines("C COMMIT", "Z I", "C BEGIN", "Z T", rowT, "C COMMIT", "Z I"), false},
		"groups": {beginRound, []round{upToReady(3, slices.Concat(withSync(executions("COMMIT")), withSync(executions("BEGIN", sealedTableQuery)),
			withSync(executions("COMMIT")))...)},
			concatLines("1", "2", "C COMMIT", "Z I", "1", "2", "C BEGIN", ext, "Z T", "1", "2", "C COMMIT", "Z I"), false},
		"after an error": {beginRound, []round{upToReady(3, q("SELECT nope"), q("ROLLBACK"), q(sealedTableQuery))},
			concatLines(`E ERROR 42703 column "nope" does not exist  @8`, "Z E", "C ROLLBACK", "Z I", row), false},
		"in one query": {beginRound, []round{upToReady(1, q("COMMIT; BEGIN; "+sealedTableQuery)), upToReady(1, q("ROLLBACK")), upToReady(1, q(sealedTableQuery))},
			concatLines(renewalError, "Z E", "C ROLLBACK", "Z I", row), false},
		"in one query outside a transaction": {nil, []round{upToReady(1, q("BEGIN; COMMIT; "+sealedTableQuery))},
			concatLines("C BEGIN", "C COMMIT", row), false},
		"in one group": {beginRound, []round{upToReady(1, withSync(executions("COMMIT", "BEGIN", sealedTableQuery))...),
			upToReady(1, withSync(executions(sealedTableQuery))...)},
			concatLines("1", "2", "C COMMIT", "1", "2", "C BEGIN", ext, "Z T", ext, "Z T"), false},
		"query in a group": {beginRound, []round{{append(executions("COMMIT"), q(sealedTableQuery)), 'Z', 1}, upToReady(1, q(sealedTableQuery))},
			concatLines("1", "2", "C COMMIT", row, row), false},
		"a group that closes first": {beginRound, []round{
			upToReady(1, append([]pgx3.FrontendMessage{cl('S', "x")}, withSync(executions(sealedTableQuery))...)...), upToReady(1, q("COMMIT"))},
			concatLines("3", ext, "Z T", "C COMMIT", "Z I"), false},
		"a group that has closed": {[]round{{[]pgx3.FrontendMessage{cl('S', "x"), fl}, '3', 1}}, []round{upToReady(1, withSync(executions(sealedTableQuery))...)},
			concatLines(ext, "Z I"), false},
		"a group that has closed and not asked": {[]round{{[]pgx3.FrontendMessage{cl('S', "x")}, 'Z', 0}},
			[]round{upToReady(1, withSync(executions(sealedTableQuery))...)},
			concatLines("3", ext, "Z I"), false},
		"a slow statement before": {nil, []round{{[]pgx3.FrontendMessage{q("SELECT pg_sleep(8)::text AS s"), q(sealedTableQuery)}, 'E', 1}},
			concatLines("T s:25:0", `D [""]`, "C SELECT 1", "Z I", expiredError), true},
		"a slow statement before in one query": {nil, []round{{[]pgx3.FrontendMessage{q("SELECT pg_sleep(8)::text AS s; COMMIT; " + sealedTableQuery)}, 'E', 1}},
			concatLines("T s:25:0", `D [""]`, "C SELECT 1", "C COMMIT", expiredError), true},
		"a slow statement before in one group": {nil, []round{{withSync(executions("BEGIN", "SELECT pg_sleep(8)::text", "COMMIT", sealedTableQuery)), 'E', 1}},
			concatLines("1", "2", "C BEGIN", "1", "2", `D [""]`, "C SELECT 1", "1", "2", "C COMMIT", expiredError), true},
		"a slow transaction": {nil, []round{upToReady(3, q("BEGIN"), q("SELECT pg_sleep(8)::text AS s"), q(sealedTableQuery)),
			upToReady(2, q("COMMIT"), q(sealedTableQuery))},
			concatLines("C BEGIN", "Z T", "T s:25:0", `D [""]`, "C SELECT 1", "Z T", rowT, "C COMMIT", "Z I", row), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := p.connectRaw(t)
			client.play(t, c.before)
			if !strings.HasPrefix(name, "a slow") {
				time.Sleep(8 * time.Second)
			}
			got := client.play(t, c.script)
			got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "N ") })
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if c.isSessionEnded {
				if m, err := client.frontend.Receive(); err == nil {
					t.Errorf("the session goes on with %T", m)
				}
			}
		})
	}
}

// dueSeals is a fakeDecider whose seals are due for renewal at once, and expire after a minute.
type dueSeals struct{ *fakeDecider }

func (d *dueSeals) Seal(ctx context.Context, b verdict.Backend) (verdict.Seal, error) {
	seal, err := d.fakeDecider.Seal(ctx, b)
	seal.RenewAfter, seal.Expires = time.Now(), time.Now().Add(time.Minute)
	return seal, err
}

// Drivers end a transaction and begin the next statement in one message, before they reuse a connection. A seal that is
// due for renewal does not make this fail, since it is still valid for some time.
func TestTransactionEndsUnderADueSeal(t *testing.T) {
	p := startProxy(t)
	p.editRoute = func(r *Route) {
		openDecider := r.Open
		r.Open = func(ctx context.Context, info SessionInfo) (verdict.Decider, error) {
			d, err := openDecider(ctx, info)
			return &dueSeals{d.(*fakeDecider)}, err
		}
	}
	client := p.connectRaw(t)
	client.play(t, []round{upToReady(1, q("BEGIN")), upToReady(1, q("SELECT nope"))})
	want := []string{"C ROLLBACK", "T n:23:0", `D ["1"]`, "C SELECT 1", "Z I"}
	if diff := cmp.Diff(want, client.play(t, []round{upToReady(1, q("ROLLBACK; SELECT 1 AS n"))})); diff != "" {
		t.Errorf("in a transaction that has failed: %s", diff)
	}
	client.play(t, []round{upToReady(1, q("BEGIN"))})
	want = []string{"1", "2", "C COMMIT", "1", "2", `D ["1"]`, "C SELECT 1", "Z I"}
	if diff := cmp.Diff(want, client.play(t, []round{upToReady(1, withSync(executions("COMMIT", "SELECT 1 AS n"))...)})); diff != "" {
		t.Errorf("in one group: %s", diff)
	}
	want = []string{"C BEGIN", "Z T", "C COMMIT", "T n:23:0", `D ["1"]`, "C SELECT 1", "Z I"}
	if diff := cmp.Diff(want, client.play(t, []round{upToReady(2, q("BEGIN"), q("COMMIT; SELECT 1 AS n"))})); diff != "" {
		t.Errorf("behind others: %s", diff)
	}
}

// staleSeals is a fakeDecider whose seals last an hour. They become stale as soon as the rights that they grant change.
type staleSeals struct {
	*fakeDecider
	rightsVersion *atomic.Int64
}

func (m *staleSeals) Seal(ctx context.Context, b verdict.Backend) (verdict.Seal, error) {
	seal, err := m.fakeDecider.Seal(ctx, b)
	rightsThen := m.rightsVersion.Load()
	seal.IsStale = func() bool { return m.rightsVersion.Load() != rightsThen }
	return seal, err
}

// If the rights that a seal grants change long before it expires, no further transaction begins under that seal, by any
// message.
func TestNoTransactionUnderAStaleSeal(t *testing.T) {
	p := startProxy(t)
	rights := &atomic.Int64{}
	p.editRoute = func(r *Route) {
		openDecider := r.Open
		r.Open = func(ctx context.Context, info SessionInfo) (verdict.Decider, error) {
			d, err := openDecider(ctx, info)
			return &staleSeals{d.(*fakeDecider), rights}, err
		}
	}
	const show = "SELECT current_setting('pgconsent.seal') AS s"
	for name, c := range map[string]struct{ before, afterChange []round }{
		"a Query":                 {nil, []round{upToReady(1, q(show))}},
		"a group":                 {nil, []round{upToReady(1, withSync(executions(show))...)}},
		"what was prepared":       {[]round{upToReady(1, pa("", show), sy)}, []round{upToReady(1, bi("", ""), ex("", 0), sy)}},
		"behind a transaction":    {[]round{upToReady(1, q("BEGIN"))}, []round{upToReady(1, q("COMMIT")), upToReady(1, q(show))}},
		"beside its end":          {[]round{upToReady(1, q("BEGIN"))}, []round{upToReady(1, q("COMMIT; "+show))}},
		"beside its end, undoing": {[]round{upToReady(1, q("BEGIN"))}, []round{upToReady(1, q("ROLLBACK; "+show))}},
		"in a group with its end": {[]round{upToReady(1, q("BEGIN"))}, []round{upToReady(1, withSync(executions("COMMIT", show))...)}},
		"one that begins anew":    {[]round{upToReady(1, q("BEGIN"))}, []round{upToReady(1, q("COMMIT; BEGIN; "+show+"; COMMIT"))}},
		"a transaction that goes": {[]round{upToReady(1, q("BEGIN")), upToReady(1, q("SELECT nope"))}, []round{upToReady(1, q("ROLLBACK; "+show))}},
	} {
		client := p.connectRaw(t)
		client.play(t, []round{upToReady(1, q("SELECT 1"))})
		client.play(t, c.before)
		sealsBefore := p.lastDecider().seals.Load()
		rights.Add(1)
		for _, line := range client.play(t, c.afterChange) {
			if seal, isShown := strings.CutPrefix(line, `D ["seal `); isShown && seal == fmt.Sprintf(`%d"]`, sealsBefore) {
				t.Errorf("%s began under the seal of before", name)
			}
		}
		client.play(t, []round{upToReady(1, q("ROLLBACK"))})
		if got := client.play(t, []round{upToReady(1, q(show))}); !slices.Contains(got,
			fmt.Sprintf(`D ["seal %d"]`, p.lastDecider().seals.Load())) || p.lastDecider().seals.Load() == sealsBefore {
			t.Errorf("%s: %q at the end", name, got)
		}
	}
}

// TestSealsUnderLoad plays random conversations with pauses. A query either sees the row or gets an error.
func TestSealsUnderLoad(t *testing.T) {
	p := startWithSealLifetime(t, 300*time.Millisecond)
	for n := range 8 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(n), 1))
			texts := []string{"BEGIN", "COMMIT", sealedTableQuery, sealedTableQuery, sealedTableQuery, "ROLLBACK", "SELECT nope",
				"COMMIT; " + sealedTableQuery, "BEGIN; COMMIT; " + sealedTableQuery + "; COMMIT"}
			var client *peer
			rows := 0
			for range tier.Count(12, 20, 400) {
				if client == nil {
					client = p.connectRaw(t)
				}
				var m []pgx3.FrontendMessage
				endCount := 0
				for range 1 + r.IntN(6) {
					text := texts[r.IntN(len(texts))]
					if r.IntN(2) == 0 {
						m, endCount = append(m, q(text)), endCount+1
						continue
					}
					m = append(m, executions(text)...)
					if r.IntN(3) > 0 {
						m, endCount = append(m, sy), endCount+1
					}
				}
				m = append(syncBeforeQueries(m)[0], sy)
				client.send(t, m...)
				for done := false; !done; {
					b, err := client.frontend.Receive()
					switch b := b.(type) {
					case *pgx3.DataRow:
						if rows++; string(b.Values[0]) != "1" {
							t.Fatalf("the table was empty: %v", m)
						}
					case *pgx3.ErrorResponse:
						if b.Severity == "FATAL" {
							client.Close()
							client, done = nil, true
						}
					case *pgx3.ReadyForQuery:
						// Queries after an error in a group are skipped, so the number of answers is not known. An
						// extra text at the end marks the end of the round.
					case *pgx3.EmptyQueryResponse:
						done = true
					}
					if err != nil {
						t.Fatal(err)
					}
					if _, ok := b.(*pgx3.ReadyForQuery); ok && endCount >= 0 {
						client.send(t, q("--"))
						endCount = -1
					}
				}
				time.Sleep(time.Duration(r.IntN(250)) * time.Millisecond)
			}
			if rows == 0 {
				t.Error("no row was ever read")
			}
		})
	}
}

// minuteSeals is a fakeDecider whose seals tell the database when they expire, after a minute.
type minuteSeals struct{ *fakeDecider }

func (s *minuteSeals) Seal(ctx context.Context, b verdict.Backend) (verdict.Seal, error) {
	seal, err := s.fakeDecider.Seal(ctx, b)
	now := time.Now()
	seal.RenewAfter, seal.Expires = now.Add(30*time.Second), now.Add(55*time.Second)
	seal.Value = fmt.Sprintf("%.6f", float64(now.Add(time.Minute).UnixMicro())/1e6)
	return seal, err
}

// TestNothingRunsWithoutASeal: RESET ALL and DISCARD ALL remove the seal, and no later statement may run without one.
// The statement may come in the same group, after a Flush, after the Sync, or in the next message. It either sees the
// row, or gets an error.
func TestNothingRunsWithoutASeal(t *testing.T) {
	tier.All(t)
	p := startWithSealLifetime(t, 300*time.Millisecond)
	edit := p.editRoute
	p.editRoute = func(r *Route) {
		edit(r)
		openDecider := r.Open
		r.Open = func(ctx context.Context, info SessionInfo) (verdict.Decider, error) {
			d, err := openDecider(ctx, info)
			return &minuteSeals{d.(*shortLivedSeals).fakeDecider}, err
		}
	}
	rows, refused := 0, 0
	for i := range 4 {
		resetSQL, isPartlySent := []string{"RESET ALL", "DISCARD ALL"}[i%2], i > 1 // inside a transaction
		for separator, gapMessages := range map[string][]pgx3.FrontendMessage{"": nil, "Flush": {fl}, "Sync": {sy}, "Syncs": {sy, sy}} {
			for _, isExtended := range []bool{false, true} {
				resetMessages := []pgx3.FrontendMessage{q(resetSQL)}
				if isExtended {
					resetMessages = executions(resetSQL)
				}
				for name, afterReset := range map[string][]pgx3.FrontendMessage{
					"a group": executions(sealedTableQuery), "two": executions("SELECT 1 AS n", sealedTableQuery), "a Query": {
						q(sealedTableQuery)}, "two Queries": {q("SELECT 1 AS n"), q(sealedTableQuery)}, "what is prepared": {bi("", "w"), ex("", 0)},
					"what is prepared, described": {
						de('S', "w"), bi("", "w"), de('P', ""), ex("", 0)},
					"in a transaction": executions("BEGIN", sealedTableQuery, "COMMIT"), "a Query in a transaction": {
						q("BEGIN; " + sealedTableQuery + "; COMMIT")}, "again": append(executions(resetSQL), executions(sealedTableQuery)...),
				} {
					client := p.connectRaw(t)
					client.play(t, []round{upToReady(1, pa("w", sealedTableQuery), sy)})
					end := []pgx3.FrontendMessage{sy, q(sealedTableQuery), q("the end")}
					if isPartlySent {
						client.play(t, []round{upToReady(1, q("BEGIN"))})
						end = []pgx3.FrontendMessage{sy, q("ROLLBACK"), q(sealedTableQuery), q("the end")}
					}
					client.send(t, slices.Concat(resetMessages, gapMessages, afterReset, end)...)
					lastLine := ""
					for isFinished := false; !isFinished; {
						m, err := client.frontend.Receive()
						if err != nil {
							t.Fatal(err)
						}
						line, _ := transcribe(m)
						switch isFinished = strings.Contains(line, `at or near "the"`); {
						case strings.HasPrefix(line, "D "):
							rows++
							if lastLine = line; line != `D ["1"]` {
								t.Errorf("%s (extended %t), %s, %s: %s", resetSQL, isExtended, separator, name, line)
							}
						case strings.HasPrefix(line,
							"E ERROR 0A000 no transaction can begin here"), strings.HasPrefix(line, "E ERROR 25001"),
							strings.HasPrefix(line, "E ERROR 25P02"), strings.HasPrefix(line, "E ERROR 26000"), strings.HasPrefix(line, "E ERROR 34000"):
							refused++
						case strings.HasPrefix(line, "E ") && !isFinished:
							t.Errorf("%s (extended %t), %s, %s: %s", resetSQL, isExtended, separator, name, line)
						}
					}
					if lastLine != `D ["1"]` {
						t.Errorf("%s (extended %t), %s, %s: nothing at the end", resetSQL, isExtended, separator, name)
					}
					client.Close()
				}
			}
		}
	}
	if rows < 100 || refused < 10 {
		t.Errorf("%d rows, %d refusals", rows, refused)
	}
}
