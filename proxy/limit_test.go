package proxy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/test/tier"
)

// wideBound returns a limit that no result reaches.
func wideBound(undoes bool) verdict.ResultBound {
	return verdict.ResultBound{Rows: 1 << 40, MustRollBack: undoes, Exceeded: func(verdict.ExceededBound) *sqlstate.Error {
		return sqlstate.New(sqlstate.InternalError, sqlstate.ReasonInternal, "a bound that nothing reaches")
	}}
}

// comparableLines leaves out what may differ where a result is fetched in steps: when settings are reported, and the
// position of a parameter. It also leaves out the columns of a result that fails before its first row. If a result
// fails because it is too large, it leaves out the rows before the error. Rows that a statement writes are all written
// before the first one is returned.
func comparableLines(lines []string) []string {
	var out []string
	for _, line := range lines {
		if strings.HasPrefix(line, "S ") {
			continue
		}
		if situation, _, ok := strings.Cut(line, "@"); ok && strings.HasPrefix(line, "E ERROR 42P02") {
			line = situation[:strings.Index(situation, "$")]
		}
		if strings.HasPrefix(line, "E ") {
			for isTooLarge := strings.HasPrefix(line, "E ERROR 53400"); len(out) > 0; out = out[:len(out)-1] {
				if lastType := out[len(out)-1][:1]; lastType != "T" && (!isTooLarge || !strings.Contains("DdH", lastType)) {
					break
				}
			}
		}
		out = append(out, line)
	}
	return out
}

// TestScriptsWithinBounds: results within the limits are the same as without limits.
func TestScriptsWithinBounds(t *testing.T) {
	tier.All(t)
	playScripts(t, startProxy(t, withDecider(func(j *fakeDecider) { j.resultBound = wideBound(true) })), comparableLines)
	playScripts(t, startProxy(t, withDecider(func(j *fakeDecider) { j.resultBound = wideBound(false) })), comparableLines)
}

// TestRandomScriptsWithinBounds is the same for random conversations.
func TestRandomScriptsWithinBounds(t *testing.T) {
	tier.All(t)
	p := startProxy(t, withDecider(func(j *fakeDecider) { j.resultBound = wideBound(true) }))
	for seed := range conversationSeeds(30) {
		script := randomConversation(rand.New(rand.NewPCG(uint64(seed), 11)))
		want := comparableLines(playConversation(t, p.connectDirect(t), script))
		got := comparableLines(playConversation(t, p.connectRaw(t), script))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d\n%s\ndirect (-) and through the proxy (+):\n%s", seed, formatScript(script), diff)
		}
	}
}

// largeResultConversation generates messages, many of which return more than three rows. On the server itself, the
// function r() fails at the fourth row.
func largeResultConversation(r *rand.Rand) (script [][]pgx3.FrontendMessage) {
	pick := func(choices ...string) string { return choices[r.IntN(len(choices))] }
	isFirst := true // no statement is before it, so an unknown name fails the whole message
	rowsSoFar := 0  // rows of the message so far: they are counted together
	const uncounted = -1
	rows := func() string {
		n := []int{1, 3, 4, 5, 20000}[r.IntN(5)]
		rowsSoFar += n
		return fmt.Sprintf("generate_series(%d, %d) AS i", rowsSoFar-n+1, rowsSoFar)
	}
	singleRow := func() string {
		switch r.IntN(8) {
		case 0, 1:
			return "SELECT r(i) FROM " + rows()
		case 2:
			return fmt.Sprintf("INSERT INTO marks VALUES (%d)", r.IntN(100))
		case 3:
			return "INSERT INTO marks SELECT i FROM " + rows() + " RETURNING r(n)"
		case 4:
			return "WITH w AS (INSERT INTO marks VALUES (100) RETURNING n) SELECT r(i) FROM " + rows()
		case 5:
			return "COPY (SELECT r(i) FROM " + rows() + ") TO STDOUT"
		case 6:
			if rowsSoFar == 0 && isFirst {
				rowsSoFar = uncounted
				return pick("EXECUTE x", "EXECUTE x", "PREPARE x AS SELECT r(i) FROM generate_series(1, 4) AS i",
					"PREPARE x AS SELECT r(i) FROM generate_series(1, 2) AS i",
					"DECLARE k CURSOR FOR SELECT r(i) FROM generate_series(1, 4) AS i",
					"DECLARE k CURSOR FOR SELECT r(i) FROM generate_series(1, 3) AS i", "DECLARE k BINARY CURSOR FOR SELECT r(i) FROM generate_series(1, 3) AS i",
					"FETCH ALL FROM k", "FETCH ALL FROM k")
			}
		}
		return pick("SELECT 1/0", "SELECT nope", "BEGIN", "BEGIN", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s", "CLOSE k")
	}
	text := func() string {
		rowsSoFar, isFirst = 0, true
		t := singleRow()
		for isFirst = false; rowsSoFar != uncounted && r.IntN(3) == 0; {
			t += "; " + singleRow()
		}
		return t
	}
	randomStatement := func() string {
		rowsSoFar, isFirst = 0, true
		return singleRow()
	}
	for range 2 + r.IntN(4) {
		var m []pgx3.FrontendMessage
		for range 1 + r.IntN(8) {
			switch r.IntN(8) {
			case 0:
				m = append(m, q(pick("SELECT forbidden",
					"DECLARE c CURSOR FOR SELECT r(i) FROM generate_series(1, 4) AS i; FETCH ALL FROM c; INSERT INTO marks VALUES (7)",
					"INSERT INTO marks VALUES (8); DECLARE c CURSOR FOR SELECT r(i) FROM generate_series(1, 3) AS i; FETCH ALL FROM c")))
			case 1, 2:
				m = append(m, q(text()))
			case 3:
				m = append(m, sy)
			case 4:
				m = append(m, []pgx3.FrontendMessage{fl, bi("p", "a"), ex("p", 0), pa("a", randomStatement()), cl('S', "a"), cl('P', "p")}[r.IntN(6)])
			default:
				m = append(m, pa("", randomStatement()), bi("", ""), de('P', ""), ex("", 0))
				if r.IntN(2) == 0 {
					m = append(m, sy)
				}
			}
		}
		script = append(script, m)
	}
	return script
}

// TestEndedResults: a result that is too large ends with an error in place of the first row beyond the limit. Client,
// transaction and database are left in the same state as after an error of the server.
func TestEndedResults(t *testing.T) {
	tier.All(t)
	const message = "no more than three"
	p := startProxy(t, withDecider(func(j *fakeDecider) {
		j.resultBound = verdict.ResultBound{Rows: 3, Exceeded: func(verdict.ExceededBound) *sqlstate.Error {
			return sqlstate.New(sqlstate.LimitExceeded, sqlstate.ReasonLimit, message)
		}}
	}))
	admin := p.db.Connect(t, "postgres")
	exec := func(sql string) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE TABLE marks (n int); GRANT ALL ON marks TO wire_agent;
		CREATE FUNCTION r(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
			IF i > 3 AND current_setting('test.bounded', true) = 'on' THEN RAISE EXCEPTION USING ERRCODE = '53400', MESSAGE = '` + message + `'; END IF;
			RETURN i;
		END $$`)
	inMarks := func() []int {
		t.Helper()
		rows, err := admin.Query(t.Context(), "SELECT n FROM marks ORDER BY n")
		if err != nil {
			t.Fatal(err)
		}
		numbers, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if err != nil {
			t.Fatal(err)
		}
		exec("TRUNCATE marks")
		return numbers
	}
	kinds := map[string]int{}
	for seed := range conversationSeeds(30) {
		script := syncBeforeQueries(largeResultConversation(rand.New(rand.NewPCG(uint64(seed), 13)))...)
		toServer := connectPeer(t, fmt.Sprintf("host=%s port=%d user=%s dbname=%s options='-c test.bounded=on'", p.db.SocketDir, p.db.Port, agentRole, p.db.Name))
		want := comparableLines(playConversation(t, toServer, script))
		writtenRows := inMarks()
		got := comparableLines(playConversation(t, p.connectRaw(t), script))
		if diff := cmp.Diff(want, got) + cmp.Diff(writtenRows, inMarks()); diff != "" {
			t.Fatalf("seed %d\n%s\ndirect (-) and through the proxy (+):\n%s", seed, formatScript(script), diff)
		}
		for i, line := range want {
			if strings.HasPrefix(line, "E ERROR 53400") {
				for ; !strings.HasPrefix(want[i], "Z"); i++ {
				}
				kinds[want[i]]++
			}
		}
		kinds["written"] += len(writtenRows)
	}
	t.Log(kinds)
	for _, kind := range []string{"Z I", "Z E", "written"} {
		if kinds[kind] == 0 {
			t.Errorf("the conversations have no %q", kind)
		}
	}
}

// TestNoResultIsLongerThanItsBound: only as many rows of a result are relayed as its limit allows, in either protocol.
// The limit may be a number of rows, of bytes, or a rate. The error and the audit record say which it was.
func TestNoResultIsLongerThanItsBound(t *testing.T) {
	type given struct {
		rows, bytes int64
		chunks      []int64 // the numbers of rows that the rate grants, one after the other; nil: no rate
	}
	var now given
	var remainingChunks []int64
	p := startProxy(t, withDecider(func(j *fakeDecider) {
		remainingChunks = now.chunks
		j.resultBound = verdict.ResultBound{Rows: now.rows, Bytes: now.bytes, Exceeded: func(bound verdict.ExceededBound) *sqlstate.Error {
			return sqlstate.New(sqlstate.LimitExceeded, sqlstate.ReasonLimit, "excess %d", bound)
		}}
		if now.chunks != nil {
			j.resultBound.MoreRows = func() (n int64) {
				if len(remainingChunks) > 0 {
					n, remainingChunks = remainingChunks[0], remainingChunks[1:]
				}
				return n
			}
		}
	}))
	ways := map[string]struct {
		resetMessages, queryMessages []pgx3.FrontendMessage
		length                       int64 // bytes of a DataRow without its value
		row                          byte
	}{
		"Query":   {queryMessages: []pgx3.FrontendMessage{q("SELECT %s")}, length: 6, row: 'D'},
		"Execute": {queryMessages: []pgx3.FrontendMessage{pa("", "SELECT %s"), bi("", ""), ex("", 0), sy}, length: 6, row: 'D'},
		"Flush":   {queryMessages: []pgx3.FrontendMessage{pa("", "SELECT %s"), bi("", ""), ex("", 0), fl, sy}, length: 6, row: 'D'},
		"COPY":    {queryMessages: []pgx3.FrontendMessage{q("COPY (SELECT %s) TO STDOUT")}, length: 1, row: 'd'},
		"EXECUTE": {resetMessages: []pgx3.FrontendMessage{q("PREPARE x AS SELECT %s")}, queryMessages: []pgx3.FrontendMessage{q("EXECUTE x")}, length: 6, row: 'D'},
		"FETCH": {resetMessages: []pgx3.FrontendMessage{q("DECLARE k CURSOR WITH HOLD FOR SELECT %s")},
			queryMessages: []pgx3.FrontendMessage{q("FETCH ALL FROM k")}, length: 6, row: 'D'},
		"behind another": {queryMessages: []pgx3.FrontendMessage{q("SELECT 1 WHERE false; SELECT %s")}, length: 6, row: 'D'},
	}
	fill := func(list []pgx3.FrontendMessage, rows, size int) (out []pgx3.FrontendMessage) {
		for _, m := range list {
			withResultSize := func(text string) string {
				return strings.Replace(text, "%s", fmt.Sprintf("repeat('x', %d) FROM generate_series(1, %d)", size, rows), 1)
			}
			switch message := m.(type) {
			case *pgx3.Query:
				m = &pgx3.Query{String: withResultSize(message.String)}
			case *pgx3.Parse:
				m = &pgx3.Parse{Name: message.Name, Query: withResultSize(message.Query)}
			}
			out = append(out, m)
		}
		return out
	}
	outcomes := map[string]int{}
	for name, variant := range ways {
		for seed := range uint64(14) {
			r := rand.New(rand.NewPCG(seed, 17))
			rows, size := r.IntN(9), 1+r.IntN(5000)
			now = given{}
			if seed%3 != 1 {
				now.rows = 1 + r.Int64N(8)
			}
			if seed%2 == 0 {
				now.bytes = 1 + r.Int64N(int64(8*size))
			}
			if seed%3 == 1 || seed%5 == 0 {
				now.chunks = []int64{}
				for range r.IntN(5) {
					now.chunks = append(now.chunks, 1+r.Int64N(3))
				}
			}
			// Compute how many rows are within every limit.
			rate := int64(0)
			for _, n := range now.chunks {
				rate += n
			}
			shownRows, want := int64(0), ""
			for ; shownRows < int64(rows) && want == ""; shownRows++ {
				switch {
				case now.rows > 0 && shownRows == now.rows:
					want = fmt.Sprint("excess ", int(verdict.TooManyRows))
				case now.bytes > 0 && (shownRows+1)*(variant.length+int64(size)) > now.bytes:
					want = fmt.Sprint("excess ", int(verdict.TooManyBytes))
				case now.chunks != nil && shownRows == rate:
					want = fmt.Sprint("excess ", int(verdict.RateExhausted))
				}
				if want != "" {
					break
				}
			}
			c := p.connectRaw(t)
			got, endingError := int64(0), ""
			readAnswers := func(messages []pgx3.FrontendMessage) {
				c.send(t, fill(messages, rows, size)...)
				for {
					m, err := c.frontend.Receive()
					if err != nil {
						t.Fatal(err)
					}
					line, typ := transcribe(m)
					switch {
					case typ == variant.row:
						got++
					case typ == 'E':
						endingError = line
					case typ == 'Z':
						return
					}
				}
			}
			if variant.resetMessages != nil {
				readAnswers(variant.resetMessages)
			}
			readAnswers(variant.queryMessages)
			if want == "" && endingError != "" || !strings.Contains(endingError, want) || got != shownRows {
				t.Errorf("%s, %d rows of %d bytes within %+v: %d rows and %q, want %d and %q", name, rows, size, now, got, endingError, shownRows, want)
			}
			outcomes[want]++
			if name == "FETCH" && want != "" { // the cursor outlives the error, and shows no more
				readAnswers([]pgx3.FrontendMessage{q("FETCH ALL FROM k")})
				if got != shownRows {
					t.Errorf("%s, %d rows of %d bytes within %+v: %d rows more by the same cursor", name, rows, size, now, got-shownRows)
				}
			}
			j := p.lastDecider()
			c.Close()
			outcome := fmt.Sprintf(": 00000 %d", shownRows)
			if want != "" {
				outcome = fmt.Sprintf(": 53400 %d", shownRows)
			}
			for deadline := time.Now().Add(tier.Patience); ; time.Sleep(time.Millisecond) {
				j.mu.Lock()
				allOutcomes := strings.Join(j.outcomes, "\n")
				j.mu.Unlock()
				if strings.Contains(allOutcomes+"\n", outcome+"\n") {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("%s within %+v: no outcome%s in\n%s", name, now, outcome, allOutcomes)
				}
			}
		}
	}
	t.Log(outcomes)
	for _, bound := range []verdict.ExceededBound{verdict.TooManyRows, verdict.TooManyBytes, verdict.RateExhausted} {
		if outcomes[fmt.Sprint("excess ", int(bound))] == 0 {
			t.Errorf("nothing was ended by %d", bound)
		}
	}
}
