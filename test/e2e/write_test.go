package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/rewrite"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

func writesFile(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/writes/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func writesLines(t testing.TB, name string) []string {
	t.Helper()
	return strings.Split(strings.TrimSpace(writesFile(t, name)), "\n")
}

// startWrites starts an instance with the tables of testdata/writes added to the world's.
func startWrites(t testing.TB, o options, moreSQL ...string) *instance {
	t.Helper()
	o.beforeMigrate, o.policy = writesFile(t, "schema.sql")+strings.Join(moreSQL, "\n"), writesFile(t, "policy.yaml")
	return start(t, o)
}

// writtenState selects the visible rows of these tables after a write, without generated keys.
const writtenState = `SELECT title, body, qty, shelf, tags, dim, note, made, loud, code, state, user_id FROM items ORDER BY title, qty, body;
SELECT * FROM slots ORDER BY name; SELECT * FROM words ORDER BY word; SELECT idea FROM ideas ORDER BY idea; SELECT what FROM counted ORDER BY what;
SELECT name, born, level, note FROM cards ORDER BY name, level, note; SELECT * FROM shelves ORDER BY id`

// tryWrite runs a statement in a transaction that is rolled back. It returns the answer, and the visible rows after the
// statement.
func tryWrite(t testing.TB, c *pgconn.PgConn, sql string) (harness.Answer, string) {
	t.Helper()
	harness.Ask(c, "BEGIN")
	a := harness.Ask(c, sql)
	state := ""
	if a.Err == "" {
		state = harness.Ask(c, writtenState).String()
	}
	harness.Ask(c, "ROLLBACK")
	return a, state
}

// The answer to a write, and the visible rows afterwards, equal those of the same statement on a copy without the
// invisible rows. A statement that fails there fails here with the same SQLSTATE.
func TestWritesEqualThoseOnAFilteredCopy(t *testing.T) {
	tier.All(t)
	in := startWrites(t, options{})
	copyDB := pgtest.Template(t, "arcive", loadArcive)
	runAsSuperuser(t, copyDB, writesFile(t, "schema.sql"))
	runAsSuperuser(t, copyDB, writesFile(t, "filter.sql"))
	agent, filteredConn, unfilteredConn := in.agent(t), harness.Connect(t, copyDB.DSN("postgres", "")), in.superuserConn(t)
	sensitiveCount := 0
	statements := writesLines(t, "statements.sql")
	for _, sql := range statements {
		want, wantState := tryWrite(t, filteredConn, sql)
		got, gotState := tryWrite(t, agent, sql)
		got.Notices = slices.DeleteFunc(got.Notices, func(n string) bool { return strings.Contains(n, "is set by the policy") })
		if got.Code != want.Code || want.Code == "" && got.SortedString() != want.SortedString() {
			t.Errorf("%s\nagent:\n%s\nfiltered copy:\n%s", sql, harness.Truncate(got.SortedString()), harness.Truncate(want.SortedString()))
		}
		if gotState != wantState {
			t.Errorf("%s left\nagent:\n%s\nfiltered copy:\n%s", sql, harness.Truncate(gotState), harness.Truncate(wantState))
		}
		if unfilteredAnswer, unfilteredState := tryWrite(t, unfilteredConn, sql); unfilteredAnswer.SortedString() != want.SortedString() ||
			unfilteredState != wantState {
			sensitiveCount++
		}
	}
	if sensitiveCount*3 < len(statements)*2 {
		t.Errorf("%d of %d statements are sensitive to hidden rows, want two thirds", sensitiveCount, len(statements))
	}
	if hiddenRowCounts := harness.Ask(unfilteredConn,
		"SELECT count(*) FROM items WHERE title LIKE 'HIDDENMARK%'; SELECT count(*) FROM item_log"); hiddenRowCounts.Results[0].Rows[0] != "3" {
		t.Errorf("hidden rows were touched: %s", hiddenRowCounts)
	}
	in.requireNoMarker(t)
}

// Row security alone gives the same answers as both layers. Injected predicates alone cannot protect the target of a
// write, so such statements are refused.
func TestWritesInEveryMode(t *testing.T) {
	tier.All(t)
	bothPaths, rowSecurityInstance := startWrites(t, options{}), startWrites(t, options{mode: modeRLS})
	autoInstance, signedInstance := startWrites(t, options{mode: rewrite.AutoMode}),
		startWrites(t, options{mode: rewrite.AlwaysSignedMode})
	injectedInstance := startWrites(t, options{mode: modeInjected, rowSecurity: withoutPolicies})
	a, c := bothPaths.agent(t), injectedInstance.agent(t)
	connsByMode := map[string]*pgconn.PgConn{"row security alone": rowSecurityInstance.agent(t), "auto": autoInstance.agent(t),
		"the signed": signedInstance.agent(t)}
	for _, sql := range append(writesLines(t, "statements.sql"), writesLines(t, "hostile.sql")...) {
		want, wantState := tryWrite(t, a, sql)
		for mode, conn := range connsByMode {
			if got, gotState := tryWrite(t, conn, sql); got.SortedString() != want.SortedString() || gotState != wantState {
				t.Errorf("%s\nboth:\n%s\n%s:\n%s", sql, harness.Truncate(want.SortedString()), mode, harness.Truncate(got.SortedString()))
			}
		}
		if got, _ := tryWrite(t, c, sql); got.Code == "" && !strings.HasPrefix(sql, "SELECT") {
			t.Errorf("%s: answered by injected predicates alone:\n%s", sql, got)
		}
	}
	for _, in := range []*instance{bothPaths, rowSecurityInstance, autoInstance, signedInstance, injectedInstance} {
		in.requireNoMarker(t)
	}
}

// Twins that differ only in hidden rows give the same answers to writes, and have the same visible rows afterwards.
func TestWritingTwinsAnswerAlike(t *testing.T) {
	tier.All(t)
	firstTwin, secondTwin := startWrites(t, options{}), startWrites(t, options{}, writesFile(t, "disturb.sql"))
	a, b := firstTwin.agent(t), secondTwin.agent(t)
	for _, sql := range append(writesLines(t, "hostile.sql"), writesLines(t, "statements.sql")...) {
		x, firstState := tryWrite(t, a, sql)
		y, secondState := tryWrite(t, b, sql)
		if x.SortedString() != y.SortedString() || firstState != secondState {
			t.Errorf("%s\none:\n%s\ntwin:\n%s", sql, harness.Truncate(x.SortedString()+firstState), harness.Truncate(y.SortedString()+secondState))
		}
	}
	firstTwin.requireNoMarker(t)
	secondTwin.requireNoMarker(t)
}

// A control test: without protection the twins give different answers. Otherwise the test above would prove nothing.
func TestWritingTwinsDifferForTheOwner(t *testing.T) {
	firstDB, secondDB := pgtest.Template(t, "arcive", loadArcive), pgtest.Template(t, "arcive", loadArcive)
	runAsSuperuser(t, firstDB, writesFile(t, "schema.sql"))
	runAsSuperuser(t, secondDB, writesFile(t, "schema.sql")+writesFile(t, "disturb.sql"))
	a, b := harness.Connect(t, firstDB.DSN("postgres", "")), harness.Connect(t, secondDB.DSN("postgres", ""))
	const minDifferences = 50
	differences := 0
	for _, sql := range append(writesLines(t, "hostile.sql"), writesLines(t, "statements.sql")...) {
		if differences == minDifferences {
			break
		}
		x, firstState := tryWrite(t, a, sql)
		y, secondState := tryWrite(t, b, sql)
		if x.SortedString() != y.SortedString() || firstState != secondState {
			differences++
		}
	}
	if differences < minDifferences {
		t.Errorf("only %d statements tell the twins apart without protection", differences)
	}
}

// Hostile statements are refused, change nothing, or change visible rows only.
func TestHostileWritesChangeNothingHidden(t *testing.T) {
	tier.All(t)
	in := startWrites(t, options{})
	superConn := in.superuserConn(t)
	const hiddenChecksum = `SELECT md5(string_agg(i::text, ',' ORDER BY id)) FROM items i WHERE title LIKE 'HIDDENMARK%';
		SELECT md5(string_agg(s::text, ',' ORDER BY id)) FROM shelves s;
		SELECT count(*) FROM labels WHERE item NOT IN (SELECT id FROM items WHERE state = 'shown' AND user_id = '` + user1 + `');
		SELECT md5(string_agg(s::text, ',' ORDER BY name)) FROM slots s WHERE user_id <> '` + user1 + `'; SELECT count(*) FROM ideas WHERE state <> 'proposed';
		SELECT count(*) FROM items WHERE user_id = '` + user1 + `' AND state <> 'shown'`
	before := harness.Ask(superConn, hiddenChecksum).String()
	answeredCount := 0
	for _, sql := range writesLines(t, "hostile.sql") {
		agent := in.agent(t)
		if a := harness.Ask(agent, sql); a.Code == "" {
			answeredCount++
		}
		_ = agent.Close(context.Background())
		if after := harness.Ask(superConn, hiddenChecksum).String(); after != before {
			t.Fatalf("%s\nbefore:\n%s\nafter:\n%s", sql, before, after)
		}
	}
	if answeredCount == 0 {
		t.Error("every statement was refused: some concern visible rows alone, and are to be answered")
	}
	in.requireNoMarker(t)
}

// After a commit, a rollback, a rollback to a savepoint and a failure, the rows are those that PostgreSQL leaves.
func TestWritesInTransactions(t *testing.T) {
	in := startWrites(t, options{})
	forEachClient(t, in, func(t *testing.T, agent, owner client) {
		count := func(want string) {
			t.Helper()
			if got := oneValue(t, owner, `SELECT count(*)::text FROM slots WHERE name LIKE 'tx%'`); got != want {
				t.Errorf("%s rows, want %s", got, want)
			}
		}
		wantDone(t, agent, `INSERT INTO slots (name) VALUES ('tx1')`)
		count("1")
		wantDone(t, agent, "BEGIN")
		wantDone(t, agent, `INSERT INTO slots (name) VALUES ('tx2')`)
		count("1")
		wantDone(t, agent, "SAVEPOINT a")
		if _, code := agent.rows(`INSERT INTO slots (name) VALUES ('tx2')`); code != "23505" {
			t.Errorf("a key twice: %s", code)
		}
		if _, code := agent.rows(`INSERT INTO slots (name) VALUES ('tx3')`); code != "25P02" {
			t.Errorf("in a failed transaction: %s", code)
		}
		wantDone(t, agent, "ROLLBACK TO a")
		wantDone(t, agent, `UPDATE slots SET name = 'tx4' WHERE name = 'tx2'`)
		wantDone(t, agent, "COMMIT")
		count("2")
		wantDone(t, agent, "BEGIN")
		if _, code := agent.rows(`UPDATE slots SET user_id = '` + user2 + `'`); code != "42501" {
			t.Errorf("a refusal: %s", code)
		}
		if _, code := agent.rows(`DELETE FROM slots`); code != "25P02" {
			t.Errorf("after a refusal: %s", code)
		}
		wantDone(t, agent, "ROLLBACK")
		count("2")
		wantDone(t, agent, `DELETE FROM slots WHERE name LIKE 'tx%'`)
		count("0")
		wantDone(t, agent, `BEGIN READ ONLY`)
		if _, code := agent.rows(`DELETE FROM slots`); code != "25006" {
			t.Errorf("read only: %s", code)
		}
		wantDone(t, agent, "ROLLBACK")
	})
	in.requireNoMarker(t)
}

// Parameters, repeated prepared statements and batches work for writes, with the triggers and defaults of the owner.
func TestPreparedWrites(t *testing.T) {
	in := startWrites(t, options{})
	ctx := context.Background()
	agent, secondAgent, ownerConn := in.connectPgx(t, "caregiver"), in.connectPgx(t, "second"), in.ownerConn(t)
	for i := range 8 {
		var title, state, body string
		if err := agent.QueryRow(ctx,
			"INSERT INTO items (title, qty, state) VALUES ($1, $2, 'mine') RETURNING title, state, body", " p ", i).Scan(&title, &state, &body); err != nil {
			t.Fatal(err)
		}
		if title != "p" || state != "shown" || body != "none" {
			t.Errorf("%q %q %q", title, state, body)
		}
	}
	// The same text in a session of another user sets that user's id.
	if _, err := secondAgent.Exec(ctx, "INSERT INTO items (title, qty, state) VALUES ($1, $2, 'mine')", "q", 1); err != nil {
		t.Fatal(err)
	}
	var rowsOfUser1, rowsOfUser2, logRows int
	if err := ownerConn.QueryRow(ctx, `SELECT count(*) FILTER (WHERE user_id = $1 AND title = 'p'), count(*) FILTER (WHERE user_id = $2 AND title = 'q'),
		(SELECT count(*) FROM item_log WHERE what = 'INSERT' AND who = 'pgconsent_agent') FROM items`, user1, user2).
		Scan(&rowsOfUser1, &rowsOfUser2, &logRows); err != nil {
		t.Fatal(err)
	}
	if rowsOfUser1 != 8 || rowsOfUser2 != 1 || logRows != 9 {
		t.Errorf("%d rows of user 1, %d of user 2, %d logged", rowsOfUser1, rowsOfUser2, logRows)
	}
	batch := &pgx.Batch{}
	batch.Queue("UPDATE items SET qty = qty + $1 WHERE title = 'p'", 10)
	batch.Queue("DELETE FROM items WHERE title = 'p' AND qty > $1 RETURNING qty", 14)
	batch.Queue("SELECT count(*) FROM items WHERE title = 'p'")
	results := agent.SendBatch(ctx, batch)
	if tag, err := results.Exec(); err != nil || tag.String() != "UPDATE 8" {
		t.Errorf("%s %v", tag, err)
	}
	if tag, err := results.Exec(); err != nil || tag.String() != "DELETE 3" {
		t.Errorf("%s %v", tag, err)
	}
	var remainingRows int
	if err := results.QueryRow().Scan(&remainingRows); err != nil || remainingRows != 5 {
		t.Errorf("%d left, %v", remainingRows, err)
	}
	if err := results.Close(); err != nil {
		t.Error(err)
	}
	// The owner's rows are not changed by the policy's stamps, and cascades work.
	if _, err := ownerConn.Exec(ctx, "INSERT INTO items (user_id, state, title) VALUES ($1, 'own words', 'o')", user2); err != nil {
		t.Error(err)
	}
	if _, err := agent.Exec(ctx, "DELETE FROM items WHERE title = 'apple'"); err != nil {
		t.Error(err)
	}
	var labels int
	if err := ownerConn.QueryRow(ctx,
		"SELECT count(*) FROM labels WHERE item = '00000000-0000-4000-8000-000000000001'").Scan(&labels); err != nil || labels != 0 {
		t.Errorf("%d labels left, %v", labels, err)
	}
	in.requireNoMarker(t)
}

// The audit record says which tables a statement was allowed to write.
func TestRecordsNameWrittenTables(t *testing.T) {
	in := startWrites(t, options{})
	agent := in.agent(t)
	harness.Ask(agent, "WITH x AS (UPDATE slots SET uses = 1 RETURNING name) INSERT INTO words (word) SELECT name FROM x, shelves LIMIT 1")
	harness.Ask(agent, "SELECT * FROM slots")
	files, _ := filepath.Glob(filepath.Join(in.audit, "*"))
	var text string
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	var decision string
	for _, line := range strings.Split(text, "\n") {
		if strings.Contains(line, `"tag":"INSERT"`) && strings.Contains(line, `"verdict":"allow"`) {
			decision = line
		}
		if strings.Contains(line, `"tag":"SELECT"`) && strings.Contains(line, `"written"`) {
			t.Errorf("a statement that reads: %s", line)
		}
	}
	for table, want := range map[string]bool{"public.slots": true, "public.words": true, "public.shelves": false} {
		// A table that a statement reads and writes is listed twice.
		var writtenFlags []bool
		for _, entry := range strings.Split(decision, `"name":"`+table+`"`)[1:] {
			entry, _, _ = strings.Cut(entry, "}")
			writtenFlags = append(writtenFlags, strings.Contains(entry, `"written":true`))
		}
		if len(writtenFlags) == 0 || slices.Contains(writtenFlags, true) != want {
			t.Errorf("%s: listed as written %v, want one of them to be %v: %s", table, writtenFlags, want, decision)
		}
	}
}

// psql works for writes: scripts, \gset, errors with their SQLSTATE, and command tags.
func TestPsqlWrites(t *testing.T) {
	in := startWrites(t, options{})
	cmd := exec.Command("psql", "-X", "-A", "-t", "-v", "VERBOSITY=default", in.dsn("caregiver", agentPassword))
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stdin = strings.NewReader(`INSERT INTO slots (name) VALUES ('psql') RETURNING name \gset
UPDATE slots SET uses = 4 WHERE name = :'name';
INSERT INTO slots (name) VALUES ('psql');
INSERT INTO items (title, shelf) VALUES ('x', 3);
INSERT INTO items (title) VALUES ('raise');
UPDATE items SET state = 'x';
INSERT INTO shelves (id) VALUES (9);
DELETE FROM slots WHERE name = 'psql';
INSERT INTO odd_slots (a, b) VALUES ('nested', 2) RETURNING a, b;
INSERT INTO odd_slots (a) VALUES ('nested') ON CONFLICT DO NOTHING;
PREPARE nested AS UPDATE odd_slots SET b = $1 WHERE a = 'nested' RETURNING b;
EXECUTE nested (4);
EXECUTE nested (400);
DELETE FROM odd_slots WHERE a = 'nested';
DELETE FROM over_ruled;
`)
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, want := range []string{
		"UPDATE 1\n", "ERROR:  the row collides with another one\n", "ERROR:  the new row is not one that you may write\n",
		"ERROR:  the statement failed on the server; its message is withheld\n", `column "state" of table "items" is not for agents to write`,
		"INSERT: the policy does not let agents do that to this table",
		"DELETE 1\nnested|2\nINSERT 0 1\nINSERT 0 0\nPREPARE\n4\nUPDATE 1\nERROR:  the new row is not one that " +
			"you may write\n", "agents do not write through this view",
	} {
		if !strings.Contains(string(output), want) {
			t.Errorf("no %q in\n%s", want, output)
		}
	}
	in.requireNoMarker(t)
}

// The agent of the arcive world can insert people, always as pending and as its own user's, and nothing else.
// seeds/000:53.
func TestArciveE_PeopleThatAgentsCreateArePending(t *testing.T) {
	in := start(t, options{})
	forEachClient(t, in, func(t *testing.T, agent, owner client) {
		for i, sql := range []string{
			`INSERT INTO people (name) VALUES ('HIDDENMARK made')`,
			`INSERT INTO people (name, consent_status) VALUES ('HIDDENMARK made', 'granted')`,
			`INSERT INTO people (name, user_id, consent_status) VALUES ('HIDDENMARK made', '` + user2 + `', 'granted')`,
			`INSERT INTO people (id, name, is_self, consent_status) VALUES (DEFAULT, 'HIDDENMARK made', DEFAULT, 'granted')`,
		} {
			wantDone(t, agent, sql)
			if got := oneValue(t, owner,
				`SELECT count(*)::text || string_agg(DISTINCT user_id::text || consent_status || is_self, '') FROM people `+
					`WHERE name = 'HIDDENMARK made'`); got != itoa(i+1)+user1+"pendingfalse" {
				t.Errorf("%s: %s", sql, got)
			}
		}
		if got := oneValue(t, agent, `SELECT count(*)::text FROM people WHERE name LIKE '%made'`); got != "0" {
			t.Errorf("the agent sees %s of the people it made", got)
		}
		if _, code := agent.rows(`INSERT INTO people (name) VALUES ('x') RETURNING id`); code != "42501" {
			t.Errorf("RETURNING: %s", code)
		}
		// If the owner adds such a person to a memory, the memory is hidden until the owner grants.
		wantDone(t, owner, `INSERT INTO memory_participants SELECT '`+aloneMemory+`', id, 'HIDDENMARK' FROM people WHERE name = 'HIDDENMARK made' LIMIT 1`)
		if got := oneValue(t, agent, `SELECT count(*)::text FROM memories WHERE id = '`+aloneMemory+`'`); got != "0" {
			t.Error("a memory that mentions a pending person is visible")
		}
		wantDone(t, owner, `DELETE FROM memory_participants USING people q WHERE q.id = person_id AND q.name = 'HIDDENMARK made'`)
		wantDone(t, owner, `DELETE FROM people WHERE name = 'HIDDENMARK made'`)
	})
	in.requireNoMarker(t)
}

// seeds/000:53.
func TestArciveH_AgentsConsentForNobody(t *testing.T) {
	in := start(t, options{})
	const checksumQuery = `SELECT md5(string_agg(x, ',' ORDER BY x)) FROM (SELECT p::text FROM people p UNION ALL SELECT p::text FROM memory_participants p
		UNION ALL SELECT m::text FROM memories m UNION ALL SELECT e::text FROM memory_edges e) AS t (x)`
	before := superuserList(t, in, checksumQuery)[0]
	forEachClient(t, in, func(t *testing.T, agent, _ client) {
		for _, sql := range []string{
			`UPDATE people SET consent_status = 'granted' WHERE id = '` + benID + `'`,
			`UPDATE people SET consent_status = 'granted'`,
			`UPDATE people SET name = 'x' WHERE id = '` + aliceID + `'`,
			`DELETE FROM people WHERE id = '` + benID + `'`,
			`INSERT INTO people (name, is_self) VALUES ('x', true)`,
			`INSERT INTO people (id, name) VALUES ('` + benID + `', 'x')`,
			`INSERT INTO people (id, name, consent_status) VALUES ('` + benID + `', 'x', 'granted') ON CONFLICT (id) DO UPDATE SET consent_status = 'granted'`,
			`INSERT INTO people (name) VALUES ('x') ON CONFLICT (id) DO UPDATE SET consent_status = 'granted'`,
			`INSERT INTO people SELECT * FROM people`,
			`INSERT INTO memory_participants VALUES ('` + aloneMemory + `', '` + aliceID + `', 'x')`,
			`DELETE FROM memory_participants`,
			`UPDATE memory_participants SET person_id = '` + aliceID + `'`,
			`INSERT INTO memory_edges VALUES ('` + aloneMemory + `', '` + benMemory + `', 1)`,
			`INSERT INTO memories (id, title, body) VALUES ('` + benMemory + `', 'x', 'y')`,
			`UPDATE memories SET title = 'x'`,
			`UPDATE memories SET user_id = '` + user2 + `' WHERE id = '` + benMemory + `'`,
			`DELETE FROM memories WHERE id = '` + aloneMemory + `'`,
			`MERGE INTO people p USING memories m ON p.id = m.id WHEN NOT MATCHED THEN INSERT (name, is_self) VALUES ('x', true)`,
			`WITH x AS (UPDATE people SET consent_status = 'granted' RETURNING id) SELECT count(*) FROM x`,
			`TRUNCATE people`,
		} {
			if _, code := agent.rows(sql); code != "42501" {
				t.Errorf("%s: %q", sql, code)
			}
		}
	})
	if after := superuserList(t, in, checksumQuery)[0]; after != before {
		t.Error("something changed")
	}
	in.requireNoMarker(t)
}

func TestArciveH_AgentsWriteMemoriesDown(t *testing.T) {
	in := start(t, options{})
	forEachClient(t, in, func(t *testing.T, agent, owner client) {
		id := oneValue(t, agent,
			`INSERT INTO memories (title, body, metadata, user_id) VALUES ('noted', 'by the agent', '{"mood": "calm"}', '`+user2+`') RETURNING id::text`)
		if got := oneValue(t, owner, `SELECT user_id::text || title FROM memories WHERE id = '`+id+`'`); got != user1+"noted" {
			t.Error(got)
		}
		if got := oneValue(t, agent, `SELECT title FROM memories WHERE id = '`+id+`'`); got != "noted" {
			t.Error(got)
		}
		// When the owner adds a participant, the memory depends on that person's consent.
		wantDone(t, owner, `INSERT INTO memory_participants VALUES ('`+id+`', '`+benID+`', 'HIDDENMARK')`)
		if got := oneValue(t, agent, `SELECT count(*)::text FROM memories WHERE id = '`+id+`'`); got != "0" {
			t.Error("the memory is visible although Ben refused")
		}
		wantDone(t, owner, `DELETE FROM memories WHERE id = '`+id+`'`)
	})
	in.requireNoMarker(t)
}

// Row locks are taken on visible rows only. Locks that others hold on hidden rows have no effect.
func TestRowLocks(t *testing.T) {
	in := startWrites(t, options{})
	agent, ownerConn := in.agent(t), in.superuserConn(t)
	const lockVisible, lockHidden = `SELECT count(*) FROM (SELECT FROM items WHERE title NOT LIKE 'HIDDENMARK%' FOR UPDATE NOWAIT) x`,
		`SELECT count(*) FROM (SELECT FROM items WHERE title LIKE 'HIDDENMARK%' FOR UPDATE NOWAIT) x`
	for _, sql := range []string{"SELECT title FROM items FOR UPDATE", "UPDATE items SET qty = 1", "DELETE FROM items"} {
		harness.Ask(agent, "BEGIN")
		if a := harness.Ask(agent, sql); a.Err != "" {
			t.Errorf("%s: %s", sql, a.Err)
		}
		if a := harness.Ask(ownerConn, lockHidden); a.Err != "" {
			t.Errorf("%s locked hidden rows: %s", sql, a.Err)
		}
		if a := harness.Ask(ownerConn, lockVisible); a.Code != "55P03" {
			t.Errorf("%s: no lock on visible rows: %s", sql, a)
		}
		harness.Ask(agent, "ROLLBACK")

		harness.Ask(ownerConn, "BEGIN")
		harness.Ask(ownerConn, lockHidden)
		if a := harness.Ask(agent, "SET statement_timeout = '180s'; "+sql+"; SELECT 1 FROM items FOR UPDATE NOWAIT"); a.Err != "" {
			t.Errorf("%s waits for hidden rows: %s", sql, a.Err)
		}
		harness.Ask(ownerConn, "ROLLBACK")
	}
	in.requireNoMarker(t)
}

// COPY FROM STDIN by psql and pgx: defaults, stamps, triggers and checks apply as in an INSERT, with the same resulting
// rows.
func TestCopyFrom(t *testing.T) {
	in := startWrites(t, options{})
	ctx := context.Background()
	agent, ownerConn := in.connectPgx(t, "caregiver"), in.ownerConn(t)
	n, err := agent.CopyFrom(ctx, pgx.Identifier{"items"}, []string{"title", "qty", "user_id"},
		pgx.CopyFromRows([][]any{{" c1 ", 1, user2}, {"vanish", 2, user2}, {"c2", 3, user2}}))
	if err != nil || n != 3 { // PostgreSQL counts the sent rows, although a trigger has left some out
		t.Errorf("%d rows, %v", n, err)
	}
	var copiedRows string
	if err := ownerConn.QueryRow(ctx,
		`SELECT string_agg(concat_ws('/', title, qty, body, state, user_id, code, made::date, loud), ',' ORDER BY title) FROM items `+
			`WHERE title LIKE 'c_'`).Scan(&copiedRows); err != nil {
		t.Fatal(err)
	}
	if want := "c1/1/none/shown/" + user1 + "/2026-01-01/C1,c2/3/none/shown/" + user1 + "/2026-01-01/C2"; copiedRows != want {
		t.Errorf("got %s\nwant %s", copiedRows, want)
	}
	var logRows int
	if err := ownerConn.QueryRow(ctx,
		`SELECT count(*) FROM item_log WHERE what = 'INSERT' AND who = 'pgconsent_agent'`).Scan(&logRows); err != nil || logRows != 2 {
		t.Errorf("%d logged, %v", logRows, err)
	}
	for _, c := range []struct {
		rows    [][]any
		columns []string
		table   string
		code    string
	}{
		{[][]any{{"x", 3}}, []string{"title", "shelf"}, "items", "42501"},  // a shelf of another user
		{[][]any{{"x", 99}}, []string{"title", "shelf"}, "items", "42501"}, // a shelf that does not exist
		{[][]any{{"x", -1}}, []string{"title", "qty"}, "items", "23514"},
		{[][]any{{"hide"}}, []string{"title"}, "items", "42501"},
		{[][]any{{"raise"}}, []string{"title"}, "items", "P0001"},
		{[][]any{{"x", "forbidden"}}, []string{"title", "body"}, "items", "42501"},
		{[][]any{{"x", "k"}}, []string{"title", "code"}, "items", "42501"},
		{[][]any{{"noon"}}, []string{"name"}, "slots", "23505"},
		{[][]any{{"x"}}, []string{"name"}, "shelves", "42501"},
	} {
		_, err := agent.CopyFrom(ctx, pgx.Identifier{c.table}, c.columns, pgx.CopyFromRows(c.rows))
		if codeOf(err) != c.code {
			t.Errorf("%v into %s: %v, want %s", c.rows, c.table, err, c.code)
		}
	}
	if n, err := agent.CopyFrom(ctx, pgx.Identifier{"slots"}, []string{"name"},
		pgx.CopyFromRows([][]any{{"evening"}, {"night"}})); err != nil || n != 2 {
		t.Errorf("keys of another's: %d, %v", n, err)
	}
	if n, err := agent.CopyFrom(ctx, pgx.Identifier{"ideas"}, []string{"idea"}, pgx.CopyFromRows([][]any{{"copied"}})); err != nil || n != 1 {
		t.Errorf("rows that are not seen: %d, %v", n, err)
	}
	for option, version := range map[string]int{`DEFAULT '@'`: 16, `ON_ERROR stop`: 17} { // the PostgreSQL versions that introduced these options
		tag, err := agent.PgConn().CopyFrom(ctx, strings.NewReader("d1\t1\t@\n"), "COPY items (title, qty, body) FROM STDIN ("+option+")")
		if pgtest.Binaries().Major < version {
			if codeOf(err) != "42601" {
				t.Errorf("%s: %v", option, err)
			}
			continue
		}
		want := map[int]string{16: "none", 17: "@"}[version]
		var body string
		if scanErr := ownerConn.QueryRow(ctx, "DELETE FROM items WHERE title = 'd1' RETURNING body").
			Scan(&body); err != nil || scanErr != nil || tag.RowsAffected() != 1 || body != want {
			t.Errorf("%s: %s, %q, %v, %v", option, tag, body, err, scanErr)
		}
	}

	cmd := exec.Command("psql", "-X", "-A", "-t", in.dsn("caregiver", agentPassword))
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stdin = strings.NewReader(`BEGIN;
COPY items (title, qty) FROM STDIN;
p1	5
p2	\N
\.
COPY slots (name) FROM STDIN WHERE name <> 'no';
yes
no
\.
SELECT count(*) FROM items WHERE title LIKE 'p_';
ROLLBACK;
\copy words (word, uses) from program 'printf "w1,1\nw2,2\n"' csv
COPY items (title, qty) FROM STDIN;
p1	five
\.
SELECT count(*) FROM words WHERE word LIKE 'w_';
COPY items (title) FROM '/etc/passwd';
COPY items FROM STDIN;
`)
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, want := range []string{"COPY 2\nCOPY 1\n2\nROLLBACK\nCOPY 2\n",
		`invalid input syntax for type integer: "five"`, "\n2\n", "Name the columns", "not available to agents"} {
		if !strings.Contains(string(output), want) {
			t.Errorf("no %q in\n%s", want, output)
		}
	}
	if strings.Contains(string(output), "in_public") {
		t.Errorf("the view shows:\n%s", output)
	}
	in.requireNoMarker(t)
}

// WHERE CURRENT OF changes the row at the cursor's position, if it is still visible.
func TestCurrentOf(t *testing.T) {
	in := startWrites(t, options{})
	forEachClient(t, in, func(t *testing.T, agent, owner client) {
		wantDone(t, agent, "BEGIN")
		wantDone(t, agent, "DECLARE c CURSOR FOR SELECT title FROM items ORDER BY title FOR UPDATE")
		if got := oneValue(t, agent, "FETCH c"); got != "apple" {
			t.Errorf("the first row is %s", got)
		}
		if got := oneValue(t, agent, "UPDATE items SET qty = 77 WHERE CURRENT OF c RETURNING title"); got != "apple" {
			t.Errorf("updated %s", got)
		}
		if got := oneValue(t, agent, "FETCH c"); got != "bread" {
			t.Errorf("the second row is %s", got)
		}
		if got := oneValue(t, agent, "DELETE FROM items WHERE CURRENT OF c RETURNING title"); got != "bread" {
			t.Errorf("deleted %s", got)
		}
		if got := oneValue(t, agent, "SELECT string_agg(title || qty, ',' ORDER BY title) FROM items"); got != "apple77,cheese0,dates7" {
			t.Errorf("left %s", got)
		}
		if _, code := agent.rows("UPDATE items SET state = 'x' WHERE CURRENT OF c"); code != "42501" {
			t.Errorf("a column that is not writable: %s", code)
		}
		wantDone(t, agent, "ROLLBACK")
		if _, code := agent.rows("UPDATE items SET qty = 1 WHERE CURRENT OF c"); code != "34000" {
			t.Errorf("without a cursor: %s", code)
		}
	})
	conn := in.agent(t)
	if a := harness.Ask(conn, "UPDATE items SET qty = 1 WHERE CURRENT OF nosuch"); !strings.Contains(a.Err, `cursor "nosuch" does not exist`) {
		t.Error(a.Err)
	}
	in.requireNoMarker(t)
}
