package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/rewrite"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

const liveSetup = `
CREATE SCHEMA talk AUTHORIZATION arcive_owner;
SET ROLE arcive_owner;
CREATE TABLE talk."Session" (id uuid PRIMARY KEY, a uuid, b uuid, stage int, status text);
CREATE TABLE talk."Turn" (id int PRIMARY KEY, "sessionId" uuid, intensity int, message text, "sealedAt" timestamptz);
CREATE TABLE talk.item (id int PRIMARY KEY, session uuid, stage int, body text);
INSERT INTO talk."Session" VALUES
  ('00000000-0000-4000-8000-00000000000a', '11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222', 1, 'ACTIVE'),
  ('00000000-0000-4000-8000-00000000000b', '22222222-2222-4222-8222-222222222222', '11111111-1111-4111-8111-111111111111', 2, 'ACTIVE'),
  ('00000000-0000-4000-8000-00000000000c', '33333333-3333-4333-8333-333333333333', '22222222-2222-4222-8222-222222222222', 4, 'ACTIVE'),
  ('00000000-0000-4000-8000-00000000000d', '11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222', 4, 'OVER'),
  ('00000000-0000-4000-8000-00000000000e', '11111111-1111-4111-8111-111111111111', NULL, NULL, 'ACTIVE');
INSERT INTO talk."Turn" VALUES (1, '00000000-0000-4000-8000-00000000000a', 3, 'hello', now()),
  (2, '00000000-0000-4000-8000-00000000000a', 4, 'as we agreed', NULL),
  (3, '00000000-0000-4000-8000-00000000000b', 3, 'hello', NULL), (4, '00000000-0000-4000-8000-00000000000b', 3, 'hello', NULL);
INSERT INTO talk.item SELECT i, ('00000000-0000-4000-8000-00000000000' || s)::uuid, i % 5,
    CASE WHEN s IN ('a', 'b') THEN '' ELSE 'HIDDENMARK ' END || 'item'
  FROM generate_series(0, 24) AS i CROSS JOIN LATERAL (SELECT substr('abcde', i / 5 + 1, 1) AS s) AS k;
RESET ROLE;`

const livePolicy = `version: 1
attributes:
  user:    { type: uuid, source: credential }
  team:    { type: text, source: credential, optional: true }
  session: { type: uuid, source: set, setting: app.current_session_id, audit: true, within: { table: talk.Session, column: id, rows: [
      any: [ own: { column: a, is: user }, own: { column: b, is: user } ],
      status: { column: status, is: ACTIVE } ] } }
  actor:   { type: uuid, source: set, setting: app.actor_id, within: { attribute: user }, optional: true }
  mode:    { type: text, source: set, within: { values: [brief, "it's"] }, optional: true, audit: true }
  stage:   { type: integer, source: query, audit: true, query: { table: talk.Session, column: stage, match: { id: session } } }
  turn:    { type: integer, source: query, optional: true, audit: true,
    query: { table: talk.Turn, column: id, match: { sessionId: session }, rows: [ sql: "\"sealedAt\" IS NULL" ] } }
  message: { type: text, source: query, optional: true, query: { table: talk.Turn, column: message, match: { id: turn } } }
  intent:  { type: text, source: expression, audit: true,
    sql: "CASE WHEN attribute('message') LIKE '%we agreed%' THEN 'recall' WHEN attribute('stage') = 1 THEN 'listen' ELSE 'talk' END" }
tables:
  talk.item:
    rows:
      - own: { column: session, is: session }
      - sql: "stage <= attribute('stage')"
`

const sessionA, sessionB, sessionC = "00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b",
	"00000000-0000-4000-8000-00000000000c"

// Attributes that are not in the credential work in each mode. A setting of the agent counts only if the policy's query
// accepts it. A value from the database counts from the next statement on.
func TestLiveAttributes(t *testing.T) {
	tier.All(t)
	for name, o := range map[string]options{
		"both": {}, "auto": {mode: rewrite.AutoMode}, "row security alone": {mode: modeRLS},
		"text alone": {mode: modeInjected, rowSecurity: withoutPolicies},
	} {
		t.Run(name, func(t *testing.T) {
			o.beforeMigrate, o.policy = liveSetup, livePolicy
			in := start(t, o)
			agent := in.agent(t)
			want := func(sql, want string) {
				t.Helper()
				if got := firstColumn(t, agent, sql); got != want {
					t.Errorf("%s: got %s, want %s", sql, got, want)
				}
			}
			wantDenied := func(sql string) {
				t.Helper()
				if got := firstColumn(t, agent, sql); !strings.Contains(got, `cannot be set to this value by this agent (SQLSTATE 42501)`) {
					t.Errorf("%s: got %s, want 42501", sql, got)
				}
			}
			const itemsQuery = "SELECT id FROM talk.item ORDER BY id"
			want(itemsQuery, "")
			want("SET app.current_session_id = '"+sessionA+"'", "")
			want(itemsQuery, "0 1")
			want("SHOW app.current_session_id", sessionA)
			want("SELECT count(*) FROM talk.item AS i WHERE i.session = current_setting('app.current_session_id', true)::uuid", "2")
			for _, otherSession := range []string{sessionC, "00000000-0000-4000-8000-00000000000d", "00000000-0000-4000-8000-0000000000ff", "x", "' OR true --"} {
				wantDenied("SET app.current_session_id = '" + strings.ReplaceAll(otherSession, "'", "''") + "'")
			}
			want(itemsQuery, "0 1")
			wantDenied("SET app.actor_id = '" + user2 + "'")
			want("SET app.actor_id = '"+user1+"'", "")
			want("SET app.actor_id = '"+strings.ToUpper(user1)+"'", "")
			wantDenied("SET pgconsent.mode = 'long'")
			want("SET pgconsent.mode = 'it''s'", "")

			runAsSuperuser(t, in.db, `UPDATE talk."Session" SET stage = 3 WHERE id = '`+sessionA+`'`)
			want(itemsQuery, "0 1 2 3")
			runAsSuperuser(t, in.db, `UPDATE talk."Session" SET stage = NULL WHERE id = '`+sessionA+`'`)
			want(itemsQuery, "")
			runAsSuperuser(t, in.db, `UPDATE talk."Session" SET stage = 1 WHERE id = '`+sessionA+`'`)

			want("BEGIN", "")
			want("SET LOCAL app.current_session_id = '"+sessionB+"'", "")
			want(itemsQuery, "5 6 7")
			want("ROLLBACK", "")
			want(itemsQuery, "0 1")
			want("SET app.current_session_id TO DEFAULT", "")
			want(itemsQuery, "")
			// A session with one member and no stage shows nothing, and a session that ends hides its items at once.
			want("SET app.current_session_id = '00000000-0000-4000-8000-00000000000e'", "")
			want(itemsQuery, "")
			want("SET app.current_session_id = '"+strings.ToUpper(sessionB)+"'", "")
			want(itemsQuery, "5 6 7")
			runAsSuperuser(t, in.db, `UPDATE talk."Session" SET status = 'OVER' WHERE id = '`+sessionB+`'`)
			want(itemsQuery, "")
			runAsSuperuser(t, in.db, `UPDATE talk."Session" SET status = 'ACTIVE' WHERE id = '`+sessionB+`'`)
			want(itemsQuery, "5 6 7")
			want("RESET ALL", "")
			want(itemsQuery, "")
			if got := firstColumn(t, agent, "SET pgconsent.seal = 'x'"); !strings.Contains(got, "42501") {
				t.Errorf("the seal can be set: %s", got)
			}
			in.requireNoMarker(t)
		})
	}
}

// An attribute can be set in the connection string as by SET, and RESET returns to that value.
func TestLiveStartup(t *testing.T) {
	in := start(t, options{beforeMigrate: liveSetup, policy: livePolicy})
	agent := harness.Connect(t, in.dsn("caregiver", agentPassword)+"&options=-c%20app.current_session_id%3D"+sessionA)
	const itemsQuery = "SELECT id FROM talk.item ORDER BY id"
	for _, q := range []struct{ sql, want string }{
		{itemsQuery, "0 1"}, {"SET app.current_session_id = '" + sessionB + "'", ""}, {itemsQuery, "5 6 7"},
		{"RESET app.current_session_id", ""}, {itemsQuery, "0 1"}, {"SET app.current_session_id = ''", ""}, {itemsQuery,
			""}, {"DISCARD ALL", ""}, {itemsQuery, "0 1"},
	} {
		if got := firstColumn(t, agent, q.sql); got != q.want {
			t.Errorf("%s: got %s, want %s", q.sql, got, q.want)
		}
	}
	for _, value := range []string{sessionC, "00000000-0000-4000-8000-0000000000ff", "x"} {
		_, err := pgconn.Connect(t.Context(), in.dsn("caregiver", agentPassword)+"&options=-c%20app.current_session_id%3D"+value)
		if err == nil || !strings.Contains(err.Error(), "cannot be set to this value by this agent (SQLSTATE 42501)") {
			t.Errorf("%s: %v", value, err)
		}
	}
	in.requireNoMarker(t)
}

// When the row from which an attribute is derived changes, prepared statements use the new value at once. Transactions
// with an older snapshot end with an error.
func TestLiveFreshness(t *testing.T) {
	in := start(t, options{beforeMigrate: liveSetup, policy: livePolicy})
	ctx := t.Context()
	agent := in.connectPgx(t, "caregiver")
	exec := func(sql string) error { _, err := agent.Exec(ctx, sql); return err }
	if err := exec("SET app.current_session_id = '" + sessionA + "'"); err != nil {
		t.Fatal(err)
	}
	setStage := func(n string) {
		runAsSuperuser(t, in.db, `UPDATE talk."Session" SET stage = `+n+` WHERE id = '`+sessionA+`'`)
	}
	count := func(args ...any) (n int) {
		t.Helper()
		if err := agent.QueryRow(ctx, "SELECT count(*) FROM talk.item WHERE id >= $1", args...).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for round := range 8 { // after five executions the server uses one generic plan
		setStage(fmt.Sprint(round % 4))
		if n := count(0); n != round%4+1 {
			t.Errorf("round %d: %d rows", round, n)
		}
	}
	for _, beginSQL := range []string{"BEGIN; DECLARE c CURSOR FOR SELECT id FROM talk.item ORDER BY id", "BEGIN ISOLATION LEVEL REPEATABLE READ"} {
		setStage("3")
		for _, sql := range strings.Split(beginSQL, "; ") {
			if err := exec(sql); err != nil {
				t.Fatal(err)
			}
		}
		nextSQL := "FETCH 1 FROM c"
		if !strings.Contains(beginSQL, "DECLARE") {
			nextSQL = "SELECT id FROM talk.item"
		}
		if err := exec(nextSQL); err != nil {
			t.Fatal(err)
		}
		setStage("0")
		if err := exec(nextSQL); err == nil || !strings.Contains(err.Error(), "40001") {
			t.Errorf("%s after a change of stage: %v", nextSQL, err)
		}
		_ = exec("ROLLBACK")
	}
	in.requireNoMarker(t)
}

// The proxy follows the settings of a session through transactions, savepoints and errors: its records have the same
// values as the server.
func TestLiveClaims(t *testing.T) {
	tier.All(t)
	t.Logf("seed %d", tier.Seed())
	rnd := tier.Rand(1)
	in := start(t, options{beforeMigrate: liveSetup, policy: livePolicy})
	conn, err := pgx.Connect(t.Context(), in.dsn("caregiver", agentPassword)+
		"&options=-c%20app.current_session_id%3D"+sessionA+"&default_query_exec_mode=simple_protocol")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	pickOneOf := func(choices ...string) string { return choices[rnd.IntN(len(choices))] }
	var serverValues []string
	askServer := func(mode pgx.QueryExecMode) {
		var session, modeSetting *string
		if err := conn.QueryRow(t.Context(),
			"SELECT current_setting('app.current_session_id', true), current_setting('pgconsent.mode', true)", mode).Scan(&session, &modeSetting); err != nil {
			return // the transaction has failed
		}
		value := func(s *string) string {
			if s == nil {
				return ""
			}
			return *s
		}
		serverValues = append(serverValues, value(session)+" "+value(modeSetting))
	}
	for range 400 {
		setting, values := "app.current_session_id", []string{sessionA, sessionB}
		if rnd.IntN(3) == 0 {
			setting, values = "pgconsent.mode", []string{"brief", "it''s"}
		}
		sql := pickOneOf(
			"SET "+setting+" = '"+pickOneOf(values...)+"'", "SET LOCAL "+setting+" = '"+pickOneOf(values...)+"'",
			"SET "+setting+" = '"+pickOneOf(values...)+"'",
			"RESET "+setting, "SET LOCAL "+setting+" TO DEFAULT", "SET "+setting+" = 'nonsense'", "SET "+setting+" = ''",
			"BEGIN", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT a", "SAVEPOINT b", "ROLLBACK TO a", "ROLLBACK TO b",
			"RELEASE a", "RELEASE b", "SELECT 1/0", "SELECT nothing",
			"RESET ALL", "DISCARD ALL",
			"BEGIN; SET "+setting+" = '"+pickOneOf(values...)+"'; COMMIT", "SET "+setting+" = '"+pickOneOf(values...)+
				"'; SELECT 1/0", "SET LOCAL "+setting+" = '"+pickOneOf(values...)+"'; SELECT 1",
			"SET "+setting+" = '"+pickOneOf(values...)+"'; COMMIT; SELECT 1/0", "SET "+setting+" = '"+pickOneOf(values...)+"'; ROLLBACK",
		)
		if rnd.IntN(6) == 0 { // several messages without waiting for answers
			b := &pgx.Batch{}
			for _, statement := range strings.Split(sql, "; ") {
				b.Queue(statement)
			}
			results := conn.SendBatch(t.Context(), b)
			_ = results.Close()
		} else {
			_, _ = conn.Exec(t.Context(), sql)
		}
		if rnd.IntN(2) == 0 {
			askServer(pgx.QueryExecModeSimpleProtocol)
		} else {
			askServer(pgx.QueryExecModeExec)
		}
	}
	conn.Close(t.Context())
	recordedValues := in.recordedAttributes(t, "pg_catalog.current_setting")
	if len(serverValues) < 100 || len(recordedValues) < len(serverValues) {
		t.Fatalf("%d answers and %d records", len(serverValues), len(recordedValues))
	}
	for i, want := range serverValues {
		if got := recordedValues[i]; got != want {
			t.Fatalf("answer %d of %d: the server has %q, the record says %q", i, len(serverValues), want, got)
		}
	}
	sortedValues := slices.Sorted(slices.Values(serverValues))
	if len(slices.Compact(sortedValues)) < 5 {
		t.Errorf("only %d different answers: the sample says little", len(slices.Compact(sortedValues)))
	}
}

// recordedAttributes returns the attributes session and mode of the statements that ran and called this function.
func (in *instance) recordedAttributes(t testing.TB, function string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(in.audit, "*"))
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	attributes := map[float64]string{}
	matchingDecisions := map[float64]bool{}
	var decisionOrder []float64
	slices.Sort(files)
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var r struct {
				Seq        float64           `json:"seq"`
				Kind       string            `json:"kind"`
				Decision   float64           `json:"decision"`
				SQLState   string            `json:"sqlstate"`
				Verdict    string            `json:"verdict"`
				Functions  []string          `json:"functions"`
				Attributes map[string]string `json:"attributes"`
			}
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			switch {
			case r.Kind == "decision" && r.Verdict == "allow" && slices.Contains(r.Functions, function):
				matchingDecisions[r.Seq], attributes[r.Seq] = true, r.Attributes["session"]+" "+r.Attributes["mode"]
			case r.Kind == "outcome" && r.SQLState == "00000" && matchingDecisions[r.Decision]:
				decisionOrder = append(decisionOrder, r.Decision)
			}
		}
		_ = f.Close()
	}
	for _, seq := range decisionOrder {
		out = append(out, attributes[seq])
	}
	return out
}
