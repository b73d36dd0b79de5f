package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// startLimited serves the memberintel world with limits.
func startLimited(t *testing.T, limits string) *harness.Proxy {
	t.Helper()
	d := harness.Database{Name: "brain", DB: brainDatabase(t), Policy: unlimitedPolicy(t), SearchPath: []string{"public"}}
	d.Policy = strings.Replace(d.Policy, "\ntables:", "\nlimits: "+limits+"\ntables:", 1)
	harness.Install(t, d, harness.Both)
	return harness.Serve(t, harness.Both, []harness.Database{d}, []harness.Agent{
		{Name: "advisor", Database: "brain", Attributes: map[string]string{"user": user1}},
		{Name: "member_ui", Database: "brain", Attributes: map[string]string{"user": user1}},
		{Name: "coach", Database: "brain", Attributes: map[string]string{"user": user2}},
	})
}

func wantCode(t *testing.T, c *pgconn.PgConn, sql, code string) harness.Answer {
	t.Helper()
	got := harness.Ask(c, sql)
	if got.Code != code {
		t.Errorf("%s: %q, want %q\n%s", sql, got.Code, code, harness.Truncate(got.SortedString()))
	}
	return got
}

const limitExhausted = "53400"

func TestLimitStatementsPerMinute(t *testing.T) {
	tier.All(t)
	proxy := startLimited(t, "{ statements: 5 }")
	advisorConn := proxy.Agent(t, "advisor", "brain")
	wantCode(t, advisorConn, "BEGIN", "")
	for range 3 {
		wantCode(t, advisorConn, "SELECT 1", "")
	}
	wantCode(t, advisorConn, "SELECT 1; SELECT 2", "")
	got := wantCode(t, advisorConn, "SELECT 1", limitExhausted)
	const limitMessage = "the policy allows 5 per minute and agent, which come back evenly, and 5 at once"
	if !strings.Contains(got.Err, limitMessage) || !strings.Contains(got.Err, "Try again in ") {
		t.Errorf("the error does not say what to do: %s", got.Err)
	}
	// The transaction has failed as after any error, and can be rolled back. Another session of the agent is at the limit
	// as well.
	wantCode(t, advisorConn, "ROLLBACK", "")
	wantCode(t, proxy.Agent(t, "advisor", "brain"), "SELECT 1", limitExhausted)
	// Another agent is not at the limit. Refused statements count.
	memberUI := proxy.Agent(t, "member_ui", "brain")
	for range 5 {
		wantCode(t, memberUI, "SELECT * FROM nothing", "42501")
	}
	wantCode(t, memberUI, "SELECT 1", limitExhausted)
	wantCode(t, memberUI, "SELECT * FROM nothing", "42501")
}

// After the limit refuses a statement, a pipeline continues as after any other error.
func TestLimitInAPipeline(t *testing.T) {
	tier.All(t)
	proxy := startLimited(t, "{ statements: 2 }")
	conn, err := pgx.Connect(context.Background(), proxy.DSN("advisor", "brain"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var b pgx.Batch
	for range 4 {
		b.Queue("SELECT 1")
	}
	results := conn.SendBatch(context.Background(), &b)
	var codes []string
	for range 4 {
		_, err := results.Exec()
		codes = append(codes, codeOf(err))
	}
	if err := results.Close(); codeOf(err) != limitExhausted || codes[0] != "" || codes[1] != "" || codes[2] != limitExhausted {
		t.Errorf("%v, then %v", codes, err)
	}
	if _, err := conn.Exec(context.Background(), "ROLLBACK"); err != nil {
		t.Error(err)
	}
}

// Fetches by key count per user, by the keys that a statement names. A missing row counts like an existing one.
func TestLimitByKeyCountsMisses(t *testing.T) {
	tier.All(t)
	fetchQuery := func(id string) string { return "SELECT content FROM brain_entries WHERE id = '" + id + "'" }
	var transcripts []string
	for _, id := range []string{brainOwn, brainForeign, brainAbsent} {
		proxy := startLimited(t, "{ per: user, by_key: 3 }")
		advisorConn, memberUI := proxy.Agent(t, "advisor", "brain"), proxy.Agent(t, "member_ui", "brain")
		wantCode(t, advisorConn, fetchQuery(id), "")
		wantCode(t, memberUI, "PREPARE p (uuid) AS SELECT content FROM brain_entries WHERE id = $1", "")
		wantCode(t, memberUI, "EXECUTE p ('"+id+"')", "")
		wantCode(t, advisorConn, "SELECT title FROM brain_entries WHERE id = '"+id+"'", "") // the statement reads no column that needs the key
		wantCode(t, advisorConn, strings.Replace(fetchQuery(id), "content", "count(content)", 1)+" UNION ALL "+
			strings.Replace(fetchQuery(id), "content", "count(content)", 1), limitExhausted)
		wantCode(t, advisorConn, fetchQuery(id), "")
		got := wantCode(t, advisorConn, fetchQuery(id), limitExhausted)
		wantCode(t, memberUI, "EXECUTE p ('"+id+"')", limitExhausted)
		wantCode(t, advisorConn, "SELECT count(*) FROM brain_entries", "")
		transcripts = append(transcripts, got.SortedString())
		wantCode(t, proxy.Agent(t, "coach", "brain"), fetchQuery(id), "") // another user
	}
	if transcripts[0] != transcripts[1] || transcripts[1] != transcripts[2] {
		t.Errorf("the refusal tells whether there is a row: %q", transcripts)
	}
}

// Fetches by a cursor are counted when its rows are fetched.
func TestLimitByKeyOfCursors(t *testing.T) {
	tier.All(t)
	proxy := startLimited(t, "{ by_key: 1 }")
	advisorConn := proxy.Agent(t, "advisor", "brain")
	wantCode(t, advisorConn, "BEGIN", "")
	for i := range 3 {
		wantCode(t, advisorConn, fmt.Sprintf("DECLARE c%d CURSOR FOR SELECT content FROM brain_entries WHERE id = '%s'", i, brainOwn), "")
	}
	wantCode(t, advisorConn, "FETCH c0", "")
	wantCode(t, advisorConn, "FETCH c1", limitExhausted)
}

// A result that is too large ends with an error, and the session can be used afterwards.
func TestLimitOfResults(t *testing.T) {
	tier.All(t)
	proxy := startLimited(t, "{ result_rows: 100, result_bytes: 20KiB }")
	advisorConn := proxy.Agent(t, "advisor", "brain")
	for range 3 {
		if got := wantCode(t, advisorConn, "SELECT id FROM brain_entries", limitExhausted); !strings.Contains(got.Err,
			"100 rows") || len(got.Results[0].Rows) != 100 {
			t.Errorf("%d rows: %s", len(got.Results[0].Rows), got.Err)
		}
		wantCode(t, advisorConn, "SELECT id FROM brain_entries LIMIT 100", "")
		if got := wantCode(t, advisorConn, "SELECT id, repeat('x', 1000) FROM brain_entries",
			limitExhausted); !strings.Contains(got.Err, "20480 bytes") || len(got.Results[0].Rows) >= 20 {
			t.Errorf("%d rows: %s", len(got.Results[0].Rows), got.Err)
		}
		// The rest of the Query message is not executed.
		if got := wantCode(t, advisorConn, "SELECT id FROM brain_entries; SELECT 1", limitExhausted); len(got.Results) != 1 {
			t.Errorf("%d results", len(got.Results))
		}
		// The result has one row too many, and the server has already completed the statement.
		wantCode(t, advisorConn, "SELECT id FROM brain_entries LIMIT 101", limitExhausted)
		wantCode(t, advisorConn, "SELECT 1", "")
		wantCode(t, advisorConn, "BEGIN", "")
		wantCode(t, advisorConn, "SELECT b.id FROM brain_entries b, generate_series(1, 100000)", limitExhausted)
		if advisorConn.TxStatus() != 'E' {
			t.Errorf("the transaction's status is %c", advisorConn.TxStatus())
		}
		wantCode(t, advisorConn, "SELECT 1", "25P02")
		wantCode(t, advisorConn, "ROLLBACK", "")
	}
	var data strings.Builder
	_, err := advisorConn.CopyTo(context.Background(), &data, "COPY (SELECT id FROM brain_entries) TO STDOUT")
	if codeOf(err) != limitExhausted || strings.Count(data.String(), "\n") != 100 {
		t.Errorf("COPY gives %d rows and %v", strings.Count(data.String(), "\n"), err)
	}
	wantCode(t, advisorConn, "SELECT 1", "")
	// The extended protocol, with another statement between the execution and the Sync.
	conn, err := pgx.Connect(context.Background(), proxy.DSN("advisor", "brain"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, sql := range []string{"SELECT b.id FROM brain_entries b, generate_series(1, 100000)", "SELECT id FROM brain_entries LIMIT 101"} {
		for range 3 {
			var b pgx.Batch
			b.Queue("SELECT 1")
			b.Queue(sql)
			b.Queue("SELECT 2")
			results := conn.SendBatch(context.Background(), &b)
			if _, err := results.Exec(); err != nil {
				t.Error(err)
			}
			if tag, err := results.Exec(); codeOf(err) != limitExhausted {
				t.Errorf("%s: %v %v", sql, tag, err)
			}
			if _, err := results.Exec(); err == nil {
				t.Error("what stands behind the error is answered")
			}
			if err := results.Close(); err == nil {
				t.Error("the batch has no error")
			}
			var selectedOne int
			if err := conn.QueryRow(context.Background(), "SELECT 1").Scan(&selectedOne); err != nil || selectedOne != 1 {
				t.Fatalf("the session does not go on: %v", err)
			}
		}
	}
}

// The remaining rows of the minute limit a result. When none remain, statements are refused before they are sent. Rows
// that a statement reads without returning them do not count.
func TestLimitRowsPerMinute(t *testing.T) {
	tier.All(t)
	proxy := startLimited(t, "{ rows: 50 }")
	advisorConn := proxy.Agent(t, "advisor", "brain")
	wantCode(t, advisorConn, "SELECT count(*), max(title) FROM brain_entries", "")
	wantCode(t, advisorConn, "SELECT id FROM brain_entries LIMIT 30", "")
	if got := wantCode(t, advisorConn, "SELECT id FROM brain_entries LIMIT 30", limitExhausted); len(got.Results) != 1 ||
		len(got.Results[0].Rows) < 19 || len(got.Results[0].Rows) > 24 {
		t.Errorf("%s", got.SortedString())
	}
	got := wantCode(t, proxy.Agent(t, "advisor", "brain"), "SELECT id FROM brain_entries LIMIT 30", limitExhausted)
	if len(got.Results) > 0 && len(got.Results[0].Rows) > 5 {
		t.Errorf("%s", got.SortedString())
	}
}

func TestLimitOfTime(t *testing.T) {
	tier.All(t)
	proxy := startLimited(t, "{ statement_timeout: 2s }")
	advisorConn := proxy.Agent(t, "advisor", "brain")
	wantShown := func(want string) {
		t.Helper()
		if got := wantCode(t, advisorConn, "SHOW statement_timeout", ""); got.Results[0].Rows[0] != want {
			t.Errorf("statement_timeout is %s, want %s", got.Results[0].Rows[0], want)
		}
	}
	wantShown("2s")
	for _, value := range []string{"0", "'0'", "3s", "'3s'", "2001", "-1", "'1h'", "'0.4ms'", "'100us'", "'1min'"} {
		if got := harness.Ask(advisorConn, "SET statement_timeout = "+value); got.Code == "" {
			t.Errorf("SET statement_timeout = %s is allowed", value)
		}
	}
	wantCode(t, advisorConn, "SET statement_timeout = 500", "")
	wantShown("500ms")
	wantCode(t, advisorConn, "RESET statement_timeout", "")
	wantShown("2s")
	wantCode(t, advisorConn, "SET statement_timeout = '1.5s'; SET statement_timeout TO DEFAULT", "")
	wantShown("2s")
	wantCode(t, advisorConn, "DISCARD ALL", "")
	wantShown("2s")
	wantCode(t, advisorConn, "SET LOCAL statement_timeout = 0", "22023")
	wantCode(t, advisorConn, "SELECT set_config('statement_timeout', '0', false)", "42501")
	wantCode(t, advisorConn, "SET statement_timeout = 100; SELECT count(*) FROM generate_series(1, 100000000)", "57014")
	for options, code := range map[string]string{"statement_timeout=1s": "", "statement_timeout=0": "22023",
		"statement_timeout=3000": "22023", "options=-c%20statement_timeout%3D0": "22023"} {
		cfg, err := pgconn.ParseConfig(proxy.DSN("advisor", "brain") + "&" + options)
		if err != nil {
			t.Fatal(err)
		}
		c, err := pgconn.ConnectConfig(context.Background(), cfg)
		var pg *pgconn.PgError
		switch errors.As(err, &pg); {
		case code != "" && (pg == nil || pg.Code != code):
			t.Errorf("%s: %v, want %s", options, err, code)
		case code == "" && err != nil:
			t.Errorf("%s: %v", options, err)
		case code == "":
			if got := wantCode(t, c, "SHOW statement_timeout", ""); got.Results[0].Rows[0] != "1s" {
				t.Errorf("%s: %s", options, got.SortedString())
			}
			c.Close(context.Background())
		}
	}
}

// A transaction that lasts too long is ended, whether the agent or the server is waiting, and its locks are released.
func TestTransactionTimeout(t *testing.T) {
	tier.All(t)
	db, proxy := startMarks(t, "{ transaction_timeout: 2s }")
	owner := db.Connect(t, "postgres")
	for name, keepOpen := range map[string]func(*pgconn.PgConn){
		"between statements": func(c *pgconn.PgConn) { harness.Ask(c, "BEGIN; UPDATE marks SET n = 7") },
		"failed":             func(c *pgconn.PgConn) { harness.Ask(c, "BEGIN; UPDATE marks SET n = 7; SELECT 1 / 0") },
		"without Sync": func(c *pgconn.PgConn) {
			p := c.StartPipeline(context.Background())
			p.SendQueryParams("UPDATE marks SET n = 7 RETURNING id", nil, nil, nil, nil)
			p.SendFlushRequest()
			_ = p.Flush()
			_, _ = p.GetResults()
		},
		"a statement that runs": func(c *pgconn.PgConn) {
			harness.Ask(c, "UPDATE marks SET n = 7; SELECT count(*) FROM generate_series(1, 1000000000000)")
		},
	} {
		t.Run(name, func(t *testing.T) {
			agent := proxy.Agent(t, "agent", "d")
			isOpen := make(chan struct{})
			go func() {
				defer close(isOpen)
				keepOpen(agent)
			}()
			start := time.Now()
			for hasEnded := false; !hasEnded; { // the proxy ends it by closing the connection to the server
				if time.Since(start) > tier.Patience {
					t.Fatal("the session goes on")
				}
				if err := owner.QueryRow(t.Context(),
					"SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE usename = 'pgconsent_agent' AND datname = current_database())").Scan(&hasEnded); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Millisecond)
			}
			<-isOpen
			if got := harness.Ask(agent, "SELECT 1"); got.Code == "" {
				t.Error("the session goes on")
			}
			var n int
			if _, err := owner.Exec(t.Context(), "UPDATE marks SET n = n + 1"); err != nil {
				t.Error(err)
			}
			if err := owner.QueryRow(t.Context(), "UPDATE marks SET n = 0 WHERE id = 1 RETURNING n").Scan(&n); err != nil {
				t.Error(err)
			}
			if writtenRows := firstColumnValues(t, db, "SELECT count(*)::text FROM marks WHERE n >= 7"); writtenRows[0] != "0" {
				t.Errorf("%s rows were written", writtenRows[0])
			}
		})
	}
	// The agent gets the error, whether a statement was running or not.
	agent := proxy.Agent(t, "agent", "d")
	if got := harness.Ask(agent, "BEGIN; SELECT count(*) FROM generate_series(1, 1000000000000)"); got.Code != "25P04" {
		t.Errorf("%s", got)
	}
}

// startMarks serves a table that agents may write, with limits.
func startMarks(t *testing.T, limits string) (*pgtest.DB, *harness.Proxy) {
	t.Helper()
	db := pgtest.Database(t)
	harness.Exec(t, db, "CREATE TABLE marks (id integer NOT NULL, owner text, n integer DEFAULT 0); INSERT INTO "+
		"marks SELECT i, 'me' FROM generate_series(1, 50) AS i")
	policy := `version: 1
attributes: { me: { type: text, source: credential } }
limits: ` + limits + `
tables:
  marks: { rows: [ own: { column: owner, is: me } ], write: { commands: [insert, update, delete], columns: [id, n], stamp: { owner: { attribute: me } } } }
`
	return db, harness.Start(t, harness.Both, harness.Database{
		Name: "d", DB: db, Policy: policy, SearchPath: []string{"public"}}, map[string]string{"me": "me"})
}

// A write whose result is too large is rolled back, wherever it is in the statement, with the rest of its transaction.
func TestLimitOfResultsTakesWritesBack(t *testing.T) {
	tier.All(t)
	db, proxy := startMarks(t, "{ result_rows: 5 }")
	agent := proxy.Agent(t, "agent", "d")
	countAndSum := func() string { return firstColumnValues(t, db, "SELECT count(*)::text || ' ' || sum(n) FROM marks")[0] }
	for _, sql := range []string{
		"UPDATE marks SET n = n + 1 RETURNING id",
		"DELETE FROM marks RETURNING id",
		"INSERT INTO marks (id) SELECT i FROM generate_series(100, 110) AS i RETURNING id",
		"WITH w AS (UPDATE marks SET n = n + 1 RETURNING id) SELECT id FROM w",
		"WITH w AS (UPDATE marks SET n = n + 1 WHERE id = 1 RETURNING id) SELECT id FROM marks",
		"UPDATE marks SET n = n + 1; SELECT id FROM marks",
		"UPDATE marks SET n = n + 1 WHERE id < 4 RETURNING id; UPDATE marks SET n = n + 1 WHERE id < 4 RETURNING id",
		"SELECT id FROM marks; UPDATE marks SET n = n + 1",
		"SELECT id FROM marks; UPDATE marks SET n = n + 1; COMMIT",
		"BEGIN; UPDATE marks SET n = n + 1; SELECT id FROM marks; COMMIT",
		"PREPARE p AS UPDATE marks SET n = n + 1 RETURNING id; EXECUTE p",
	} {
		wantCode(t, agent, sql, limitExhausted)
		if status := agent.TxStatus(); status == 'E' {
			wantCode(t, agent, "ROLLBACK", "")
		} else if status != 'I' {
			t.Errorf("%s: the status is %c", sql, status)
		}
		if got := countAndSum(); got != "50 0" {
			t.Fatalf("%s: it is written: %s", sql, got)
		}
		result := agent.ExecParams(context.Background(), sql, nil, nil, nil, nil).Read()
		if want := limitExhausted; !strings.Contains(sql, ";") && codeOf(result.Err) != want {
			t.Errorf("%s, extended: %v", sql, result.Err)
		}
		if got := countAndSum(); got != "50 0" {
			t.Fatalf("%s, extended: it is written: %s", sql, got)
		}
	}
	// Changes that were committed before are kept.
	wantCode(t, agent, "UPDATE marks SET n = n + 1 WHERE id = 1; COMMIT; SELECT id FROM marks", limitExhausted)
	wantCode(t, agent, "UPDATE marks SET n = n + 1 WHERE id = 1 RETURNING id; SELECT n FROM marks WHERE id = 1", "")
	if got := countAndSum(); got != "50 2" {
		t.Errorf("%s", got)
	}
}

// After a result is ended by a limit, the later messages of the group are not executed: neither a COMMIT nor a write.
func TestLimitHoldsBackLaterMessages(t *testing.T) {
	tier.All(t)
	db, proxy := startMarks(t, "{ result_rows: 5 }")
	ctx := context.Background()
	writtenRows := func() string {
		return firstColumnValues(t, db, "SELECT coalesce(string_agg(id::text, ' '), '') FROM marks WHERE id > 50")[0]
	}
	conn, err := pgx.Connect(ctx, proxy.DSN("agent", "d"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, statement := range []string{"SELECT id FROM marks", "SELECT id FROM marks LIMIT 6", "SELECT a.id FROM marks a, marks b, marks c"} {
		p := conn.PgConn().StartPipeline(ctx)
		p.SendQueryParams("BEGIN", nil, nil, nil, nil)
		p.SendQueryParams("INSERT INTO marks (id) VALUES (51)", nil, nil, nil, nil)
		p.SendQueryParams(statement, nil, nil, nil, nil)
		p.SendQueryParams("COMMIT", nil, nil, nil, nil)
		p.SendPipelineSync()
		p.SendQueryParams("INSERT INTO marks (id) VALUES (52)", nil, nil, nil, nil)
		p.SendQueryParams("COMMIT", nil, nil, nil, nil)
		p.SendPipelineSync()
		if err := p.Flush(); err != nil {
			t.Fatal(err)
		}
		var codes []string
		for syncs, rounds := 0, 0; syncs < 2 && rounds < 20; rounds++ {
			r, err := p.GetResults()
			if _, ok := r.(*pgconn.PipelineSync); ok {
				syncs++
				codes = append(codes, string(conn.PgConn().TxStatus()))
			}
			if reader, ok := r.(*pgconn.ResultReader); ok {
				_, err = reader.Close()
			}
			if err != nil {
				codes = append(codes, codeOf(err))
			}
		}
		p.Close()
		if got := strings.Join(codes, " "); !strings.HasPrefix(got, limitExhausted+" E 25P02 E") {
			t.Errorf("%s: %s", statement, got)
		}
		if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		if got := writtenRows(); got != "" {
			t.Fatalf("%s: %s is written", statement, got)
		}
		// One message group is one transaction.
		var b pgx.Batch
		b.Queue("INSERT INTO marks (id) VALUES (53)")
		b.Queue(statement)
		b.Queue("INSERT INTO marks (id) VALUES (54)")
		if err := conn.SendBatch(ctx, &b).Close(); codeOf(err) != limitExhausted {
			t.Errorf("%s: %v", statement, err)
		}
		if got := writtenRows(); got != "" {
			t.Fatalf("%s: %s is written", statement, got)
		}
	}
	// psql sends each -c as one Query.
	cmd := exec.Command("psql", "-X", "-q", proxy.DSN("agent", "d"), "-c",
		"BEGIN; INSERT INTO marks (id) VALUES (55); SELECT id FROM marks; COMMIT", "-c", "SELECT 'alive'")
	output, _ := cmd.CombinedOutput()
	if got := string(output); !strings.Contains(got, "larger than the policy allows") || writtenRows() != "" {
		t.Errorf("psql: %s, written %q", got, writtenRows())
	}
}

// After a limit ends a FETCH, its cursor cannot be read further, as after any error in it.
func TestLimitInACursor(t *testing.T) {
	tier.All(t)
	_, proxy := startMarks(t, "{ result_rows: 5 }")
	agent := proxy.Agent(t, "agent", "d")
	wantCode(t, agent, "DECLARE h CURSOR WITH HOLD FOR SELECT id FROM marks ORDER BY id", "")
	wantCode(t, agent, "FETCH 5 FROM h", "")
	wantCode(t, agent, "FETCH ALL FROM h", limitExhausted)
	wantCode(t, agent, "FETCH 1 FROM h", "55000")
	wantCode(t, agent, "CLOSE h", "")
	wantCode(t, agent, "BEGIN", "")
	wantCode(t, agent, "DECLARE c CURSOR FOR SELECT id FROM marks ORDER BY id", "")
	wantCode(t, agent, "SAVEPOINT s", "")
	wantCode(t, agent, "FETCH ALL FROM c", limitExhausted)
	wantCode(t, agent, "FETCH 1 FROM c", "25P02")
	wantCode(t, agent, "ROLLBACK TO s", "")
	wantCode(t, agent, "FETCH 1 FROM c", "55000")
	wantCode(t, agent, "ROLLBACK", "")
}

// Sessions that run at the same time share the rows of the minute: all their answers stay below the limit.
func TestLimitRowsOfParallelSessions(t *testing.T) {
	tier.All(t)
	_, proxy := startMarks(t, "{ rows: 600 }")
	start := time.Now()
	var shownRows atomic.Int64
	var sessions sync.WaitGroup
	for range 8 {
		agent := proxy.Agent(t, "agent", "d")
		sessions.Go(func() {
			for range 4 {
				for _, r := range harness.Ask(agent, "SELECT a.id FROM marks a, generate_series(1, 2) AS b").Results {
					shownRows.Add(int64(len(r.Rows)))
				}
			}
		})
	}
	sessions.Wait()
	if allowedRows := 600 + 10*int64(time.Since(start)/time.Second+1); shownRows.Load() < 600 || shownRows.Load() > allowedRows {
		t.Errorf("%d rows were shown, where there were %d at most", shownRows.Load(), allowedRows)
	}
	// Rows that a statement did not return are given back to the limit, and a statement that returns none needs none.
	_, proxy = startMarks(t, "{ rows: 60 }")
	agent := proxy.Agent(t, "agent", "d")
	for range 100 {
		wantCode(t, agent, "SELECT id FROM marks WHERE false", "")
	}
	wantCode(t, agent, "SELECT id FROM marks", "")
	wantCode(t, agent, "SELECT id FROM marks", limitExhausted)
	wantCode(t, agent, "UPDATE marks SET n = 0 WHERE id = 1", "")
}
