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

// shortLived is a judge whose seals live so long and say so to the database.
type shortLived struct {
	*judge
	life time.Duration
}

func (s *shortLived) Seal(ctx context.Context, b verdict.Backend) (verdict.Seal, error) {
	seal, err := s.judge.Seal(ctx, b)
	now := time.Now()
	seal.RenewAfter, seal.Expires = now.Add(s.life/2), now.Add(s.life*11/12)
	seal.Value = fmt.Sprintf("%.6f", float64(now.Add(s.life).UnixMicro())/1e6)
	return seal, err
}

// walled is a table with one row, which exists in transactions that begin under a valid seal.
const walled = "SELECT count(*) AS n FROM walled"

func withExpiry(t *testing.T, lifetime time.Duration) *proxied {
	p := start(t)
	p.edit = func(r *Route) {
		openDecider := r.Open
		r.Open = func(ctx context.Context, info SessionInfo) (verdict.Decider, error) {
			d, err := openDecider(ctx, info)
			return &shortLived{d.(*judge), lifetime}, err
		}
	}
	if _, err := p.db.Connect(t, "postgres").Exec(t.Context(), `CREATE TABLE walled (n int); INSERT INTO walled VALUES (1);
		ALTER TABLE walled ENABLE ROW LEVEL SECURITY; GRANT SELECT ON walled TO wire_agent;
		CREATE POLICY sealed ON walled USING (current_setting('pgconsent.seal')::float8 > extract(epoch FROM transaction_timestamp()))`); err != nil {
		t.Fatal(err)
	}
	return p
}

// group is an execution in the extended protocol without its Sync.
func group(texts ...string) (out []pgx3.FrontendMessage) {
	for _, text := range texts {
		out = append(out, pa("", text), bi("", ""), ex("", 0))
	}
	return out
}

func synced(m []pgx3.FrontendMessage) []pgx3.FrontendMessage { return append(m, sy) }

// TestNoTransactionUnderAnOldSeal: no message that a client sends at once begins a transaction under an expired seal,
// which would look like an empty table.
func TestNoTransactionUnderAnOldSeal(t *testing.T) {
	p := withExpiry(t, 6*time.Second) // a busy machine plays a script within it
	const (
		alone   = "E ERROR 0A000 no transaction can begin here: the session's identity has to be renewed first  @0"
		expired = "E FATAL 08006 the session's identity has expired before the server came to the messages sent in advance  @0"
	)
	row := []string{"T n:20:0", `D ["1"]`, "C SELECT 1", "Z I"}
	rowT := []string{"T n:20:0", `D ["1"]`, "C SELECT 1", "Z T"}
	ext := []string{"1", "2", `D ["1"]`, "C SELECT 1"}
	seq := func(parts ...any) (out []string) {
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
	old := []round{upToReady(1, q("BEGIN"))} // the seal expires after it
	for name, c := range map[string]struct {
		before   []round
		script   []round
		want     []string
		finished bool // the session ends
	}{
		"queries": {old, []round{upToReady(4, q("COMMIT"), q("BEGIN"), q(walled), q("COMMIT"))},
			seq("C COMMIT", "Z I", "C BEGIN", "Z T", rowT, "C COMMIT", "Z I"), false},
		"groups": {old, []round{upToReady(3, slices.Concat(synced(group("COMMIT")), synced(group("BEGIN", walled)), synced(group("COMMIT")))...)},
			seq("1", "2", "C COMMIT", "Z I", "1", "2", "C BEGIN", ext, "Z T", "1", "2", "C COMMIT", "Z I"), false},
		"after an error": {old, []round{upToReady(3, q("SELECT nope"), q("ROLLBACK"), q(walled))},
			seq(`E ERROR 42703 column "nope" does not exist  @8`, "Z E", "C ROLLBACK", "Z I", row), false},
		"in one query": {old, []round{upToReady(1, q("COMMIT; BEGIN; "+walled)), upToReady(1, q("ROLLBACK")), upToReady(1, q(walled))},
			seq(alone, "Z E", "C ROLLBACK", "Z I", row), false},
		"in one query outside a transaction": {nil, []round{upToReady(1, q("BEGIN; COMMIT; "+walled))},
			seq("C BEGIN", "C COMMIT", row), false},
		"in one group": {old, []round{upToReady(1, synced(group("COMMIT", "BEGIN", walled))...), upToReady(1, synced(group(walled))...)},
			seq("1", "2", "C COMMIT", "1", "2", "C BEGIN", ext, "Z T", ext, "Z T"), false},
		"query in a group": {old, []round{{append(group("COMMIT"), q(walled)), 'Z', 1}, upToReady(1, q(walled))},
			seq("1", "2", "C COMMIT", row, row), false},
		"a group that closes first": {old, []round{
			upToReady(1, append([]pgx3.FrontendMessage{cl('S', "x")}, synced(group(walled))...)...), upToReady(1, q("COMMIT"))},
			seq("3", ext, "Z T", "C COMMIT", "Z I"), false},
		"a group that has closed": {[]round{{[]pgx3.FrontendMessage{cl('S', "x"), fl}, '3', 1}}, []round{upToReady(1, synced(group(walled))...)},
			seq(ext, "Z I"), false},
		"a group that has closed and not asked": {[]round{{[]pgx3.FrontendMessage{cl('S', "x")}, 'Z', 0}}, []round{upToReady(1, synced(group(walled))...)},
			seq("3", ext, "Z I"), false},
		"a slow statement before": {nil, []round{{[]pgx3.FrontendMessage{q("SELECT pg_sleep(8)::text AS s"), q(walled)}, 'E', 1}},
			seq("T s:25:0", `D [""]`, "C SELECT 1", "Z I", expired), true},
		"a slow statement before in one query": {nil, []round{{[]pgx3.FrontendMessage{q("SELECT pg_sleep(8)::text AS s; COMMIT; " + walled)}, 'E', 1}},
			seq("T s:25:0", `D [""]`, "C SELECT 1", "C COMMIT", expired), true},
		"a slow statement before in one group": {nil, []round{{synced(group("BEGIN", "SELECT pg_sleep(8)::text", "COMMIT", walled)), 'E', 1}},
			seq("1", "2", "C BEGIN", "1", "2", `D [""]`, "C SELECT 1", "1", "2", "C COMMIT", expired), true},
		"a slow transaction": {nil, []round{upToReady(3, q("BEGIN"), q("SELECT pg_sleep(8)::text AS s"), q(walled)), upToReady(2, q("COMMIT"), q(walled))},
			seq("C BEGIN", "Z T", "T s:25:0", `D [""]`, "C SELECT 1", "Z T", rowT, "C COMMIT", "Z I", row), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := p.raw(t)
			client.play(t, c.before)
			if !strings.HasPrefix(name, "a slow") {
				time.Sleep(8 * time.Second)
			}
			got := client.play(t, c.script)
			got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "N ") })
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if c.finished {
				if m, err := client.front.Receive(); err == nil {
					t.Errorf("the session goes on with %T", m)
				}
			}
		})
	}
}

// due is a judge whose seals are due at once and live for a minute.
type due struct{ *judge }

func (d *due) Seal(ctx context.Context, b verdict.Backend) (verdict.Seal, error) {
	seal, err := d.judge.Seal(ctx, b)
	seal.RenewAfter, seal.Expires = time.Now(), time.Now().Add(time.Minute)
	return seal, err
}

// Drivers end a transaction and go on before they reuse a connection. This is not refused because the seal is due in
// the middle: the seal is valid for some time more.
func TestEndsAndGoesOnUnderASealThatIsDue(t *testing.T) {
	p := start(t)
	p.edit = func(r *Route) {
		openDecider := r.Open
		r.Open = func(ctx context.Context, info SessionInfo) (verdict.Decider, error) {
			d, err := openDecider(ctx, info)
			return &due{d.(*judge)}, err
		}
	}
	client := p.raw(t)
	client.play(t, []round{upToReady(1, q("BEGIN")), upToReady(1, q("SELECT nope"))})
	want := []string{"C ROLLBACK", "T n:23:0", `D ["1"]`, "C SELECT 1", "Z I"}
	if diff := cmp.Diff(want, client.play(t, []round{upToReady(1, q("ROLLBACK; SELECT 1 AS n"))})); diff != "" {
		t.Errorf("in a transaction that has failed: %s", diff)
	}
	client.play(t, []round{upToReady(1, q("BEGIN"))})
	want = []string{"1", "2", "C COMMIT", "1", "2", `D ["1"]`, "C SELECT 1", "Z I"}
	if diff := cmp.Diff(want, client.play(t, []round{upToReady(1, synced(group("COMMIT", "SELECT 1 AS n"))...)})); diff != "" {
		t.Errorf("in one group: %s", diff)
	}
	want = []string{"C BEGIN", "Z T", "C COMMIT", "T n:23:0", `D ["1"]`, "C SELECT 1", "Z I"}
	if diff := cmp.Diff(want, client.play(t, []round{upToReady(2, q("BEGIN"), q("COMMIT; SELECT 1 AS n"))})); diff != "" {
		t.Errorf("behind others: %s", diff)
	}
}

// moving is a judge whose seals hold for an hour, and are stale once what they vouch for has moved.
type moving struct {
	*judge
	at *atomic.Int64
}

func (m *moving) Seal(ctx context.Context, b verdict.Backend) (verdict.Seal, error) {
	seal, err := m.judge.Seal(ctx, b)
	rightsThen := m.at.Load()
	seal.IsStale = func() bool { return m.at.Load() != rightsThen }
	return seal, err
}

// The rights that a seal grants have changed long before the seal expires. No transaction begins under it, in any way.
func TestNoTransactionUnderAStaleSeal(t *testing.T) {
	p := start(t)
	rights := &atomic.Int64{}
	p.edit = func(r *Route) {
		openDecider := r.Open
		r.Open = func(ctx context.Context, info SessionInfo) (verdict.Decider, error) {
			d, err := openDecider(ctx, info)
			return &moving{d.(*judge), rights}, err
		}
	}
	const show = "SELECT current_setting('pgconsent.seal') AS s"
	for name, c := range map[string]struct{ before, behind []round }{
		"a Query":                 {nil, []round{upToReady(1, q(show))}},
		"a group":                 {nil, []round{upToReady(1, synced(group(show))...)}},
		"what was prepared":       {[]round{upToReady(1, pa("", show), sy)}, []round{upToReady(1, bi("", ""), ex("", 0), sy)}},
		"behind a transaction":    {[]round{upToReady(1, q("BEGIN"))}, []round{upToReady(1, q("COMMIT")), upToReady(1, q(show))}},
		"beside its end":          {[]round{upToReady(1, q("BEGIN"))}, []round{upToReady(1, q("COMMIT; "+show))}},
		"beside its end, undoing": {[]round{upToReady(1, q("BEGIN"))}, []round{upToReady(1, q("ROLLBACK; "+show))}},
		"in a group with its end": {[]round{upToReady(1, q("BEGIN"))}, []round{upToReady(1, synced(group("COMMIT", show))...)}},
		"one that begins anew":    {[]round{upToReady(1, q("BEGIN"))}, []round{upToReady(1, q("COMMIT; BEGIN; "+show+"; COMMIT"))}},
		"a transaction that goes": {[]round{upToReady(1, q("BEGIN")), upToReady(1, q("SELECT nope"))}, []round{upToReady(1, q("ROLLBACK; "+show))}},
	} {
		client := p.raw(t)
		client.play(t, []round{upToReady(1, q("SELECT 1"))})
		client.play(t, c.before)
		was := p.last().seals.Load()
		rights.Add(1)
		for _, line := range client.play(t, c.behind) {
			if seal, isShown := strings.CutPrefix(line, `D ["seal `); isShown && seal == fmt.Sprintf(`%d"]`, was) {
				t.Errorf("%s began under the seal of before", name)
			}
		}
		client.play(t, []round{upToReady(1, q("ROLLBACK"))})
		if got := client.play(t, []round{upToReady(1, q(show))}); !slices.Contains(got,
			fmt.Sprintf(`D ["seal %d"]`, p.last().seals.Load())) || p.last().seals.Load() == was {
			t.Errorf("%s: %q at the end", name, got)
		}
	}
}

// TestSealsUnderLoad plays random conversations with pauses: the row is there, or there is an error.
func TestSealsUnderLoad(t *testing.T) {
	p := withExpiry(t, 300*time.Millisecond)
	for n := range 8 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(n), 1))
			texts := []string{"BEGIN", "COMMIT", walled, walled, walled, "ROLLBACK", "SELECT nope",
				"COMMIT; " + walled, "BEGIN; COMMIT; " + walled + "; COMMIT"}
			var client *peer
			rows := 0
			for range tier.Count(12, 20, 400) {
				if client == nil {
					client = p.raw(t)
				}
				var m []pgx3.FrontendMessage
				endCount := 0
				for range 1 + r.IntN(6) {
					text := texts[r.IntN(len(texts))]
					if r.IntN(2) == 0 {
						m, endCount = append(m, q(text)), endCount+1
						continue
					}
					m = append(m, group(text)...)
					if r.IntN(3) > 0 {
						m, endCount = append(m, sy), endCount+1
					}
				}
				m = append(apart(m)[0], sy)
				client.send(t, m...)
				for done := false; !done; {
					b, err := client.front.Receive()
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
						// Queries behind an error in a group are skipped, so the number of answers is not known: a text
						// of its own ends the round.
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

// steady is a judge whose seals say to the database how long they hold, and hold for a minute.
type steady struct{ *judge }

func (s *steady) Seal(ctx context.Context, b verdict.Backend) (verdict.Seal, error) {
	seal, err := s.judge.Seal(ctx, b)
	now := time.Now()
	seal.RenewAfter, seal.Expires = now.Add(30*time.Second), now.Add(55*time.Second)
	seal.Value = fmt.Sprintf("%.6f", float64(now.Add(time.Minute).UnixMicro())/1e6)
	return seal, err
}

// TestNothingRunsWithoutASeal: RESET ALL and DISCARD ALL take the seal away, and no later statement runs without one.
// It may come in the same group, after a Flush, after the Sync, or in the next message. Either the row is there, or
// there is an error.
func TestNothingRunsWithoutASeal(t *testing.T) {
	tier.All(t)
	p := withExpiry(t, 300*time.Millisecond)
	edit := p.edit
	p.edit = func(r *Route) {
		edit(r)
		openDecider := r.Open
		r.Open = func(ctx context.Context, info SessionInfo) (verdict.Decider, error) {
			d, err := openDecider(ctx, info)
			return &steady{d.(*shortLived).judge}, err
		}
	}
	rows, refused := 0, 0
	for i := range 4 {
		reset, isPartlySent := []string{"RESET ALL", "DISCARD ALL"}[i%2], i > 1 // inside a transaction
		for separator, gap := range map[string][]pgx3.FrontendMessage{"": nil, "Flush": {fl}, "Sync": {sy}, "Syncs": {sy, sy}} {
			for _, extended := range []bool{false, true} {
				resetMessages := []pgx3.FrontendMessage{q(reset)}
				if extended {
					resetMessages = group(reset)
				}
				for name, after := range map[string][]pgx3.FrontendMessage{
					"a group": group(walled), "two": group("SELECT 1 AS n", walled), "a Query": {
						q(walled)}, "two Queries": {q("SELECT 1 AS n"), q(walled)}, "what is prepared": {bi("", "w"), ex("", 0)},
					"what is prepared, described": {
						de('S', "w"), bi("", "w"), de('P', ""), ex("", 0)},
					"in a transaction": group("BEGIN", walled, "COMMIT"), "a Query in a transaction": {
						q("BEGIN; " + walled + "; COMMIT")}, "again": append(group(reset), group(walled)...),
				} {
					client := p.raw(t)
					client.play(t, []round{upToReady(1, pa("w", walled), sy)})
					end := []pgx3.FrontendMessage{sy, q(walled), q("the end")}
					if isPartlySent {
						client.play(t, []round{upToReady(1, q("BEGIN"))})
						end = []pgx3.FrontendMessage{sy, q("ROLLBACK"), q(walled), q("the end")}
					}
					client.send(t, slices.Concat(resetMessages, gap, after, end)...)
					last := ""
					for finished := false; !finished; {
						m, err := client.front.Receive()
						if err != nil {
							t.Fatal(err)
						}
						line, _ := transcribe(m)
						switch finished = strings.Contains(line, `at or near "the"`); {
						case strings.HasPrefix(line, "D "):
							rows++
							if last = line; line != `D ["1"]` {
								t.Errorf("%s (extended %t), %s, %s: %s", reset, extended, separator, name, line)
							}
						case strings.HasPrefix(line,
							"E ERROR 0A000 no transaction can begin here"), strings.HasPrefix(line, "E ERROR 25001"),
							strings.HasPrefix(line, "E ERROR 25P02"), strings.HasPrefix(line, "E ERROR 26000"), strings.HasPrefix(line, "E ERROR 34000"):
							refused++
						case strings.HasPrefix(line, "E ") && !finished:
							t.Errorf("%s (extended %t), %s, %s: %s", reset, extended, separator, name, line)
						}
					}
					if last != `D ["1"]` {
						t.Errorf("%s (extended %t), %s, %s: nothing at the end", reset, extended, separator, name)
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
