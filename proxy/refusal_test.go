package proxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// refusals are scripts in which one text, %s, fails. It fails on the server because it names a column that does not
// exist, and at the proxy because it is refused. Both must leave the client in the same state after every message.
var refusals = map[string]func(badText string) []round{
	"simple": func(badText string) []round { return []round{upToReady(1, q(badText)), upToReady(1, q("SELECT 1"))} },
	"simple in a transaction": func(badText string) []round {
		return []round{upToReady(1, q("BEGIN")), upToReady(1, q("SAVEPOINT a")), upToReady(1, q(badText)), upToReady(1, q("SELECT 1")),
			upToReady(1, q("ROLLBACK TO a")), upToReady(1, q("SELECT 2")), upToReady(1, q(badText)), upToReady(1, q(badText)),
			upToReady(1, q("COMMIT")), upToReady(1, q("SELECT 3"))}
	},
	"extended": func(badText string) []round {
		return []round{upToReady(1, pa("", badText), bi("", ""), de('P', ""), ex("", 0), sy), upToReady(1, bi("", ""), sy), upToReady(1, q("SELECT 1"))}
	},
	"prepare only": func(badText string) []round {
		return []round{upToReady(1, pa("s", badText), de('S', "s"), sy), upToReady(1, bi("", "s"), sy),
			upToReady(1, pa("s", "SELECT 1"), bi("", "s"), ex("", 0), sy)}
	},
	"prepare over an old one": func(badText string) []round {
		return []round{upToReady(1, pa("s", "SELECT 1"), sy), upToReady(1, pa("s", badText), bi("", "s"), ex("", 0), sy),
			upToReady(1, bi("", "s"), ex("", 0), sy)}
	},
	"unnamed over an old one": func(badText string) []round {
		return []round{upToReady(1, pa("", "SELECT 1"), sy), upToReady(1, pa("", badText), sy), upToReady(1, bi("", ""), sy)}
	},
	"extended in a transaction": func(badText string) []round {
		return []round{upToReady(1, q("BEGIN")), upToReady(1, pa("", "SELECT 1"), bi("", ""), ex("", 0), pa("", badText), bi("", ""), ex("", 0), sy),
			upToReady(1, pa("", "SELECT 1"), sy), upToReady(1, pa("", badText), sy), upToReady(1, q("ROLLBACK"))}
	},
	"batch": func(badText string) []round {
		return []round{upToReady(1, pa("", "CREATE TEMP TABLE b ()"), bi("", ""), ex("", 0), pa("", badText), bi("", ""),
			ex("", 0), pa("", "SELECT 3"), bi("", ""), ex("", 0), sy),
			upToReady(1, q("SELECT to_regclass('b')"))}
	},
	"two groups": func(badText string) []round {
		return []round{upToReady(2, pa("", badText), bi("", ""), ex("", 0), sy, pa("", "SELECT 2"), bi("", ""), ex("", 0), sy)}
	},
	"close and describe after it": func(badText string) []round {
		return []round{upToReady(1, pa("d", badText), de('S', "d"), cl('S', "d"), fl, sy), upToReady(1, cl('S', "d"), de('S', "d"), sy)}
	},
	"flush after it": func(badText string) []round {
		return []round{{[]pgx3.FrontendMessage{pa("", badText), fl}, 'E', 1}, upToReady(1, pa("", "SELECT 1"), fl, sy)}
	},
	"copy data after it": func(badText string) []round {
		return []round{upToReady(1, q(badText), &pgx3.CopyData{Data: make([]byte, 2<<20)}, &pgx3.CopyDone{}), upToReady(1, q("SELECT 1"))}
	},
	"query skipped": func(badText string) []round {
		return []round{upToReady(1, pa("", badText), q("SELECT 1"), q(badText), sy)}
	},
	"queries at once": func(badText string) []round { return []round{upToReady(3, q("SELECT 1"), q(badText), q("SELECT 2"))} },
}

func TestRefusals(t *testing.T) {
	p := startProxy(t)
	for name, script := range refusals {
		for word, codes := range map[string][2]string{"forbidden": {"42703", "42501"}, "misspelt": {"42601", "42601"}} {
			t.Run(name+" "+word, func(t *testing.T) {
				// PostgreSQL's parser rejects a syntax error even in a transaction that has failed.
				failingText := map[string]string{"forbidden": "SELECT nope", "misspelt": "misspelt"}[word]
				want := p.connectDirect(t).play(t, script(failingText))
				got := p.connectRaw(t).play(t, script("SELECT "+word))
				withBadTextMarked := func(lines []string, code string) []string {
					for i, l := range lines {
						if strings.HasPrefix(l, "E ERROR "+code) {
							lines[i] = "E the bad text"
						}
						if strings.Contains(l, "denied_") {
							t.Errorf("the token shows: %s", l)
						}
					}
					return lines
				}
				if diff := cmp.Diff(withBadTextMarked(want, codes[0]), withBadTextMarked(got, codes[1])); diff != "" {
					t.Errorf("failing on the server (-) and refused (+):\n%s", diff)
				}
				if !slices.Contains(got, "E the bad text") {
					t.Errorf("nothing was refused: %q", got)
				}
			})
		}
	}
}

func TestRefusalSaysWhy(t *testing.T) {
	p := startProxy(t)
	conn := p.connect(t)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec} {
		_, err := conn.Exec(t.Context(), "SELECT forbidden", mode)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) {
			t.Fatalf("got %v", err)
		}
		if pg.Code != "42501" || pg.Message != "refused" || pg.Hint != "Ask for less." || pg.Position != 3 || pg.Severity != "ERROR" {
			t.Errorf("got %+v", pg)
		}
	}
	if err := conn.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSeveralStatements: if one statement of a message is refused, none of them runs.
func TestSeveralStatements(t *testing.T) {
	p := startProxy(t)
	got := p.connectRaw(t).play(t, []round{upToReady(1, q("CREATE TEMP TABLE x (); SELECT forbidden")), upToReady(1, q("SELECT to_regclass('x')"))})
	want := []string{"E ERROR 42501 refused  @3", "Z I", "T to_regclass:2205:0", `D [""]`, "C SELECT 1", "Z I"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestUnrecordedExecutionsAreRefused: an execution that cannot be recorded is refused, in either protocol. The messages
// around it are not.
func TestUnrecordedExecutionsAreRefused(t *testing.T) {
	p := startProxy(t)
	const recordingError = "E ERROR 58030 the decision could not be recorded  @0"
	for name, c := range map[string]struct {
		script []round
		want   []string
	}{
		"query": {[]round{upToReady(2, q("SELECT 1 AS a"), q("CREATE TABLE u (); -- unrecordable")), upToReady(1, q("SELECT to_regclass('u') AS a"))},
			[]string{"T a:23:0", `D ["1"]`, "C SELECT 1", "Z I", recordingError, "Z I", "T a:2205:0", `D [""]`, "C SELECT 1", "Z I"}},
		"execute": {[]round{upToReady(1, pa("", "SELECT 1 AS unrecordable"), bi("", ""), de('P', ""), ex("", 0), sy), upToReady(1, q("SELECT 1 AS a"))},
			[]string{"1", "2", "T unrecordable:23:0", recordingError, "Z I", "T a:23:0", `D ["1"]`, "C SELECT 1", "Z I"}},
		"refusal":       {[]round{upToReady(1, q("forbidden unrecordable"))}, []string{recordingError, "Z I"}},
		"refused parse": {[]round{upToReady(1, pa("", "forbidden unrecordable"), bi("", ""), sy)}, []string{recordingError, "Z I"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, p.connectRaw(t).play(t, c.script)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFunctionCall(t *testing.T) {
	p := startProxy(t)
	call := &pgx3.FunctionCall{Function: 77}
	got := p.connectRaw(t).play(t, []round{upToReady(1, call), upToReady(1, q("BEGIN")), upToReady(1, call), upToReady(1, call), upToReady(1, q("ROLLBACK")),
		upToReady(1, pa("", "SELECT nope"), call, sy)})
	const refused = "E ERROR 42501 function calls of the fast path are not for agents  @0"
	want := []string{refused, "Z I", "C BEGIN", "Z T", refused, "Z E",
		"E ERROR 25P02 current transaction is aborted, commands ignored until end of transaction block  @0", "Z E", "C ROLLBACK", "Z I",
		`E ERROR 42703 column "nope" does not exist  @8`, "Z I"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRecheck: when a prepared statement is run after the policy or the consents have changed, the decider checks it
// again and may refuse it.
func TestRecheck(t *testing.T) {
	p := startProxy(t)
	refuse := func(*verdict.Verdict) *verdict.Verdict {
		return &verdict.Verdict{Original: "again", Refusal: sqlstate.New("0A000", sqlstate.ReasonStale, "cached plan must not change result type")}
	}
	changeText := func(v *verdict.Verdict) *verdict.Verdict {
		w := *v
		w.Text += " "
		return &w
	}
	const refused = "E ERROR 0A000 cached plan must not change result type  @0"
	for name, change := range map[string]func(*verdict.Verdict) *verdict.Verdict{"refused": refuse, "another text": changeText} {
		t.Run(name, func(t *testing.T) {
			c := p.connectRaw(t)
			c.play(t, []round{upToReady(1, pa("s", "SELECT 1 AS a"), de('S', "s"), sy), upToReady(1, bi("", "s"), ex("", 0), sy),
				upToReady(1, q("BEGIN")), upToReady(1, bi("open", "s"), sy)})
			p.lastDecider().recheck.Store(change)
			got := c.play(t, []round{upToReady(1, ex("open", 0), sy), upToReady(1, ex("open", 0), sy),
				upToReady(1, q("ROLLBACK")), upToReady(1, bi("", "s"), ex("", 0), sy),
				upToReady(1, de('S', "s"), sy), upToReady(1, pa("s2", "SELECT 1 AS b"), sy)})
			want := []string{refused, "Z E", "E ERROR 25P02 current transaction is aborted, commands ignored until end of transaction block  @0", "Z E",
				"C ROLLBACK", "Z I", refused, "Z I", refused, "Z I", "1", "Z I"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			p.lastDecider().recheck.Store((func(*verdict.Verdict) *verdict.Verdict)(nil))
			if got := c.play(t, []round{upToReady(1, bi("", "s"), ex("", 0), sy)}); !slices.Contains(got, "C SELECT 1") {
				t.Errorf("still refused: %q", got)
			}
		})
	}
}

// TestRecheckOfStatementsRunByName: the decider also checks a statement again that EXECUTE runs, even if the EXECUTE
// itself would be allowed.
func TestRecheckOfStatementsRunByName(t *testing.T) {
	p := startProxy(t)
	for name, messages := range map[string][]pgx3.FrontendMessage{
		"EXECUTE":             {q("EXECUTE s")},
		"EXECUTE of PREPARE":  {q("EXECUTE made")},
		"FETCH":               {q("FETCH 1 FROM c")},
		"FETCH of a portal":   {q("FETCH 1 FROM open")},
		"EXECUTE in extended": {pa("", "EXECUTE s"), bi("", ""), ex("", 0), sy},
		"behind another":      {q("SELECT 1; EXECUTE s")},
	} {
		t.Run(name, func(t *testing.T) {
			c := p.connectRaw(t)
			c.play(t, []round{upToReady(1, pa("s", "SELECT 'by name'"), sy), upToReady(1, q("PREPARE made AS SELECT 'by name'")), upToReady(1, q("BEGIN")),
				upToReady(1, q("DECLARE c CURSOR FOR SELECT 'by name'")), upToReady(1, bi("open", "s"), sy)})
			p.lastDecider().recheck.Store(func(v *verdict.Verdict) *verdict.Verdict {
				if !strings.Contains(v.Original, "by name") {
					return v
				}
				return &verdict.Verdict{Original: "again", Refusal: sqlstate.New("0A000", sqlstate.ReasonStale, "cached plan must not change result type")}
			})
			got := c.play(t, []round{upToReady(1, messages...)})
			if !slices.Contains(got, "E ERROR 0A000 cached plan must not change result type  @0") || strings.Contains(strings.Join(got, "\n"), "D [") {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestRecords: each execution and each refusal has one record and one outcome, with the SQLSTATE that the client got.
func TestRecords(t *testing.T) {
	p := startProxy(t)
	c := p.connectRaw(t)
	c.play(t, []round{
		upToReady(1, q("SELECT generate_series(1,3)")),
		upToReady(1, q("SELECT 1/0")),
		upToReady(1, q("SELECT forbidden")),
		upToReady(1, pa("n", "SELECT generate_series(1,5)"), sy), // prepared only
		upToReady(1, bi("", "n"), ex("", 2), ex("", 0), sy),
		upToReady(1, pa("", "SELECT nope"), bi("", ""), ex("", 0), sy), // never executed
		upToReady(1, pa("", "forbidden"), bi("", ""), ex("", 0), sy),
		upToReady(1, q("COPY (SELECT 1 UNION ALL SELECT 2) TO STDOUT")),
		upToReady(1, bi("", "n"), bi("", "nix"), ex("", 0), sy),
		{[]pgx3.FrontendMessage{pa("", "SELECT nope"), fl}, 'E', 1}, // the server skips the next messages
		upToReady(1, bi("", "n"), ex("", 0), sy),
	})
	c.Close()
	j := p.lastDecider()
	eventually(t, "closed", func() bool { j.mu.Lock(); defer j.mu.Unlock(); return j.closed })
	want := []string{
		"SELECT generate_series(1,3): 00000 3",
		"SELECT 1/0: 22012 0",
		"SELECT forbidden: 42501 0",
		"SELECT generate_series(1,5): 00000 2",
		"SELECT generate_series(1,5): 00000 3",
		"SELECT nope: 42703 0", // the Execute that the server skipped
		"forbidden: 42501 0",
		"COPY (SELECT 1 UNION ALL SELECT 2) TO STDOUT: 00000 2",
		"SELECT generate_series(1,5): 26000 0",
		"SELECT generate_series(1,5): 42703 0",
	}
	if diff := cmp.Diff(want, j.outcomes); diff != "" {
		t.Error(diff)
	}
	if len(j.recorded) != len(j.outcomes) {
		t.Errorf("%d records and %d outcomes", len(j.recorded), len(j.outcomes))
	}
}

// TestRecordsNameTheExecutedStatement: the record of EXECUTE contains the statement that the server runs under that
// name, even while the PREPARE is not answered yet.
func TestRecordsNameTheExecutedStatement(t *testing.T) {
	p := startProxy(t)
	for name, c := range map[string]struct {
		before []round
		script round
		want   string
	}{
		"a Parse that fails": {
			[]round{upToReady(1, pa("s", "SELECT 'old'"), sy)},
			upToReady(2, pa("s", "SELECT 'new'"), sy, bi("", "s"), ex("", 0), sy), "SELECT 'old'"},
		"a Parse that is skipped": {
			[]round{upToReady(1, pa("", "SELECT 'old'"), sy)},
			upToReady(2, pa("x", "SELECT nope"), pa("", "SELECT 'new'"), sy, bi("", ""), ex("", 0), sy), "SELECT 'old'"},
		"a Parse that succeeds": {
			[]round{upToReady(1, pa("", "SELECT 'old'"), sy)},
			upToReady(2, pa("", "SELECT 'new'"), sy, bi("", ""), ex("", 0), sy), "SELECT 'new'"},
		"a Bind that is skipped": {
			[]round{upToReady(1, q("BEGIN")),
				upToReady(1, pa("a", "SELECT 'old'"), pa("b", "SELECT 'new'"), bi("p", "a"), sy), upToReady(1, q("SAVEPOINT x"))},
			upToReady(3, pa("x", "SELECT nope"), bi("p", "b"), sy, q("ROLLBACK TO x"), ex("p", 0), sy), "SELECT 'old'"},
		"EXECUTE": {[]round{upToReady(1, pa("s", "SELECT 'old'"), sy)}, upToReady(1, q("EXECUTE s")), "EXECUTE s runs SELECT 'old'"},
		"EXECUTE in extended": {
			[]round{upToReady(1, pa("s", "SELECT 'old'"), sy)}, upToReady(1, pa("", "EXECUTE s"), bi("", ""), ex("", 0), sy), "EXECUTE s runs SELECT 'old'"},
		"EXECUTE of PREPARE": {
			[]round{upToReady(1, q("PREPARE s AS SELECT 'old'"))}, upToReady(1, q("EXECUTE s")), "EXECUTE s runs PREPARE s AS SELECT 'old'"},
		"FETCH": {
			[]round{upToReady(1, q("BEGIN")), upToReady(1, q("DECLARE c CURSOR FOR SELECT 'old'"))}, upToReady(1,
				q("FETCH 1 FROM c")), "FETCH 1 FROM c runs DECLARE c CURSOR FOR SELECT 'old'"},
		"FETCH in extended": {
			[]round{upToReady(1, q("BEGIN")), upToReady(1, q("DECLARE c CURSOR FOR SELECT 'old'"))}, upToReady(1,
				pa("", "FETCH 1 FROM c"), bi("", ""), ex("", 0), sy),
			"FETCH 1 FROM c runs DECLARE c CURSOR FOR SELECT 'old'"},
		"FETCH of a portal": {
			[]round{upToReady(1, q("BEGIN")), upToReady(1, pa("", "SELECT 'old'"), bi("p", ""), sy)}, upToReady(1,
				q("FETCH 1 FROM p")), "FETCH 1 FROM p runs SELECT 'old'"},
	} {
		t.Run(name, func(t *testing.T) {
			client := p.connectRaw(t)
			client.play(t, append(c.before, c.script))
			client.Close()
			j := p.lastDecider()
			eventually(t, "closed", func() bool { j.mu.Lock(); defer j.mu.Unlock(); return j.closed })
			j.mu.Lock()
			defer j.mu.Unlock()
			if got := j.recorded[len(j.recorded)-1]; got != c.want {
				t.Errorf("recorded %q", got)
			}
			text, _, _ := strings.Cut(c.want, " runs ")
			if got := j.outcomes[len(j.outcomes)-1]; got != text+": 00000 1" {
				t.Errorf("outcome %q", got)
			}
		})
	}
}

// TestOutcomeOfUnansweredStatements: statements that are not answered when a session ends have an outcome in the
// record, too.
func TestOutcomeOfUnansweredStatements(t *testing.T) {
	for name, options := range map[string][]func(*testProxy, *Config){
		"sent":               nil,
		"waiting to be sent": {withDecider(func(j *fakeDecider) { j.resultBound = wideBound(true) })}, // the proxy waits for the end of a limited result
	} {
		t.Run(name, func(t *testing.T) { checkUnansweredOutcome(t, options...) })
	}
}

func checkUnansweredOutcome(t *testing.T, options ...func(*testProxy, *Config)) {
	p := startProxy(t, options...)
	c := p.connectRaw(t)
	c.send(t, q("SELECT pg_sleep(600)"), q("SELECT 2"))
	eventually(t, "recorded", func() bool {
		p.mu.Lock()
		n := len(p.deciders)
		p.mu.Unlock()
		return n > 0 && len(p.lastDecider().recordedTexts()) > 1
	})
	p.lastDecider().info.OnRevoke(sqlstate.New(sqlstate.AdminShutdown, sqlstate.ReasonIdentity, "the agent was disabled"))
	if e := c.readLastError(); e == nil || e.Code != "57P01" || e.Severity != "FATAL" || e.Message != "the agent was disabled" {
		t.Errorf("got %+v", e)
	}
	j := p.lastDecider()
	eventually(t, "closed", func() bool { j.mu.Lock(); defer j.mu.Unlock(); return j.closed })
	if fmt.Sprint(j.outcomes) != "[SELECT pg_sleep(600): 57P01 0 SELECT 2: 57P01 0]" {
		t.Errorf("outcomes: %v", j.outcomes)
	}
	conn := p.db.Connect(t, "postgres")
	eventually(t, "the statement is cancelled on the server", func() bool {
		var n int
		_ = conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE usename = 'wire_agent' AND datname = current_database()").Scan(&n)
		return n == 0
	})
}

func (j *fakeDecider) recordedTexts() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.recorded)
}

// typeRefuser is a fakeDecider that refuses statements with a parameter declared as one type.
type typeRefuser struct{ *fakeDecider }

func (y *typeRefuser) DeclareParameters(_ context.Context, v *verdict.Verdict, types []uint32) *verdict.Verdict {
	if !slices.Contains(types, 28) {
		return v
	}
	return &verdict.Verdict{Original: v.Original, EnforcerDetail: v.EnforcerDetail,
		Refusal: sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonFunction, "not this type")}
}

// The decider is asked about the declared types of every Parse, whatever its name and the number of types.
func TestDeclaredTypesAreJudged(t *testing.T) {
	p := startProxy(t)
	p.editRoute = func(r *Route) {
		openDecider := r.Open
		r.Open = func(ctx context.Context, info SessionInfo) (verdict.Decider, error) {
			d, err := openDecider(ctx, info)
			return &typeRefuser{d.(*fakeDecider)}, err
		}
	}
	conn := p.connectRaw(t)
	for i, name := range []string{"", "s", "S", strings.Repeat("n", 100)} {
		for n := range 4 {
			for offset := range n + 1 {
				types := make([]uint32, n+1)
				types[offset] = 28
				got := conn.play(t, []round{upToReady(1, &pgx3.Parse{Name: name, Query: "SELECT $1, $2, $3, $4", ParameterOIDs: types}, sy)})
				if len(got) == 0 || !strings.HasPrefix(got[0], "E ERROR 42501 not this type") {
					t.Errorf("name %d, %v: %q", i, types, got)
				}
			}
		}
	}
}
