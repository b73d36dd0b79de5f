package e2e

import (
	"context"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// These tests cover the requirements of the arcive world, over the wire with pgx and with psql. The superuser computes
// the expected visible rows past the proxy, with other SQL.

const (
	aliceID = "a11ce000-0000-4000-8000-000000000001"
	benID   = "be000000-0000-4000-8000-000000000002"

	aloneMemory = "d0000000-0000-4000-8000-000000000001" // a memory in which only the user takes part
	aliceMemory = "d0000000-0000-4000-8000-000000000002"
	benMemory   = "d0000000-0000-4000-8000-000000000004"
)

// visibleMemories is the visibility rule as one SQL condition over memories m.
const visibleMemories = `m.user_id = '` + user1 + `' AND NOT EXISTS (SELECT FROM memory_participants p WHERE p.memory_id = m.id
	AND coalesce((SELECT q.consent_status FROM people q WHERE q.id = p.person_id), '') <> 'granted')`

// superuserList returns the first column of a query that the superuser runs past the proxy.
func superuserList(t testing.TB, in *instance, sql string) []string {
	t.Helper()
	rows, err := in.db.Connect(t, "postgres").Query(context.Background(), sql)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func wantSameRows(t testing.TB, description string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d rows, want %d", description, len(got), len(want))
	}
}

// seeds/000:9-13, 46.
func TestArciveA_AMemoryWithAnyUnconsentedParticipantDoesNotExist(t *testing.T) {
	in := startForReading(t, options{})
	want := superuserList(t, in, `SELECT m.id::text FROM memories m WHERE `+visibleMemories)
	hiddenIDs := superuserList(t, in, `SELECT m.id::text FROM memories m WHERE NOT (`+visibleMemories+`) AND m.user_id = '`+user1+`' ORDER BY 1`)
	if len(hiddenIDs) < 100 || len(want) < 100 {
		t.Fatalf("%d visible and %d hidden memories prove little", len(want), len(hiddenIDs))
	}
	// Memories of which some participants have granted and others have not.
	mixedIDs := superuserList(t, in, `SELECT m.id::text FROM memories m WHERE m.user_id = '`+user1+`'
		AND EXISTS (SELECT FROM memory_participants p JOIN people q ON q.id = p.person_id WHERE p.memory_id = m.id AND q.consent_status = 'granted')
		AND EXISTS (SELECT FROM memory_participants p JOIN people q ON q.id = p.person_id
			WHERE p.memory_id = m.id AND q.consent_status IN ('pending', 'revoked')) ORDER BY 1`)
	if len(mixedIDs) < 20 {
		t.Fatalf("%d memories with some who have granted and some who have not prove little", len(mixedIDs))
	}
	forEachClient(t, in, func(t *testing.T, agent, _ client) {
		got, _ := agent.rows(`SELECT id::text FROM memories`)
		wantSameRows(t, "rows", got, want)
		if n := oneValue(t, agent, `SELECT count(*)::text FROM memories`); n != oneValue(t, agent, `SELECT '`+itoa(len(want))+`'`) {
			t.Errorf("count %s, want %d", n, len(want))
		}
		got, _ = agent.rows(
			`SELECT DISTINCT m.id::text FROM memories m JOIN memory_participants p ON p.memory_id = m.id JOIN people q ON q.id = p.person_id`)
		wantSameRows(t, "join", got, superuserList(t, in, `SELECT m.id::text FROM memories m WHERE `+
			visibleMemories+` AND EXISTS (SELECT FROM memory_participants p JOIN people q ON q.id = p.person_id AND q.user_id = m.user_id WHERE p.memory_id = m.id)`))
		for _, id := range []string{hiddenIDs[0], hiddenIDs[len(hiddenIDs)/2], mixedIDs[0], mixedIDs[len(mixedIDs)/2], benMemory} {
			if got, code := agent.rows(`SELECT title FROM memories WHERE id = '` + id + `'`); len(got) != 0 || code != "" {
				t.Errorf("hidden memory by key: %d rows, SQLSTATE %q", len(got), code)
			}
			if oneValue(t, agent, `SELECT EXISTS (SELECT 1 FROM memories WHERE id = '`+id+`')::text`) != "false" {
				t.Error("EXISTS tells of a hidden memory")
			}
		}
		wantDone(t, agent, `BEGIN`)
		wantDone(t, agent, `DECLARE a SCROLL CURSOR FOR SELECT id::text FROM memories`)
		got, _ = agent.rows(`FETCH ALL FROM a`)
		wantSameRows(t, "a cursor", got, want)
		wantDone(t, agent, `ROLLBACK`)
		got, _ = agent.rows(`SELECT id::text FROM memories WHERE to_tsvector('english', title || ' ' || body) @@ to_tsquery('english', 'lake')`)
		wantSameRows(t, "full text", got, superuserList(t, in,
			`SELECT m.id::text FROM memories m WHERE to_tsvector('english', title || ' ' || body) @@ to_tsquery('english', 'lake') AND `+visibleMemories))
		got, _ = agent.rows(
			`SELECT id::text FROM memories ORDER BY embedding <-> (SELECT embedding FROM memories WHERE id = '` + aloneMemory + `'), id LIMIT 20`)
		wantNearest := superuserList(t, in, `SELECT m.id::text FROM memories m WHERE `+
			visibleMemories+` ORDER BY embedding <-> (SELECT embedding FROM memories WHERE id = '`+aloneMemory+`'), m.id LIMIT 20`)
		if !slices.Equal(got, wantNearest) {
			t.Errorf("vector top 20: got %v, want %v", got, wantNearest)
		}
		if maxStars := oneValue(t, agent, `SELECT max((metadata->>'stars')::int)::text FROM memories`); maxStars != "5" {
			t.Errorf("max(stars) = %s: an aggregate saw hidden rows", maxStars)
		}
		// The values of hidden rows would make this cast fail.
		if _, code := agent.rows(`SELECT id::text FROM memories WHERE (metadata->>'stars')::int2 > 4`); code != "" {
			t.Errorf("an error tells of hidden rows: SQLSTATE %s", code)
		}
		if _, code := agent.rows(`SELECT 1/(5 - least((metadata->>'stars')::int, 6)) FROM memories WHERE metadata->>'stars' <> '5'`); code != "" {
			t.Errorf("a division tells of hidden rows: SQLSTATE %s", code)
		}
	})
	copyOutput, err := exec.Command("psql", "-X", "-c", `COPY memories (id) TO STDOUT`, in.dsn("caregiver", agentPassword)).Output()
	if err != nil {
		t.Fatal(err)
	}
	wantSameRows(t, "COPY TO STDOUT", strings.Fields(string(copyOutput)), want)
	in.requireNoMarker(t)
}

// seeds/000:39.
func TestArciveA_NullUnknownAndDanglingStatusHide(t *testing.T) {
	in := start(t, options{beforeMigrate: `
		UPDATE people SET consent_status = 'granted' WHERE id = '` + aliceID + `';
		INSERT INTO people (id, user_id, name, consent_status) VALUES
			('00000000-0000-4000-8000-0000000000f1', '` + user1 + `', 'null HIDDENMARK', NULL),
			('00000000-0000-4000-8000-0000000000f2', '` + user1 + `', 'unknown HIDDENMARK', 'GRANTED'),
			('00000000-0000-4000-8000-0000000000f3', '` + user1 + `', 'empty HIDDENMARK', '');
		INSERT INTO memories (id, user_id, title, body) SELECT ('00000000-0000-4000-8000-0000000000e' || n)::uuid, '` + user1 +
		`', 'HIDDENMARK', '' FROM generate_series(1, 4) n;
		INSERT INTO memories (id, user_id, title, body) VALUES ('00000000-0000-4000-8000-0000000000e5', '` + user1 + `', 'seen', '');
		INSERT INTO memory_participants VALUES
			('00000000-0000-4000-8000-0000000000e1', '00000000-0000-4000-8000-0000000000f1', 'x'),
			('00000000-0000-4000-8000-0000000000e2', '00000000-0000-4000-8000-0000000000f2', 'x'),
			('00000000-0000-4000-8000-0000000000e3', '00000000-0000-4000-8000-0000000000f3', 'x'),
			('00000000-0000-4000-8000-0000000000e4', '00000000-0000-4000-8000-0000000000ff', 'x'),
			('00000000-0000-4000-8000-0000000000e5', '` + aliceID + `', 'x')`})
	forEachClient(t, in, func(t *testing.T, agent, _ client) {
		got, _ := agent.rows(`SELECT id::text FROM memories WHERE id::text LIKE '00000000-0000-4000-8000-0000000000e%'`)
		wantSameRows(t, "memories with odd statuses", got, []string{"00000000-0000-4000-8000-0000000000e5"})
	})
	in.requireNoMarker(t)
}

func TestArciveB_MemoriesWithoutParticipantsShowAndForeignOnesNever(t *testing.T) {
	in := startForReading(t, options{})
	withoutParticipants := superuserList(t, in, `SELECT id::text FROM memories m WHERE user_id = '`+user1+
		`' AND NOT EXISTS (SELECT FROM memory_participants p WHERE p.memory_id = m.id)`)
	if len(withoutParticipants) == 0 {
		t.Fatal("the world has no memory without participants")
	}
	forEachClient(t, in, func(t *testing.T, agent, _ client) {
		got, _ := agent.rows(`SELECT m.id::text FROM memories m WHERE NOT EXISTS (SELECT 1 FROM memory_participants p WHERE p.memory_id = m.id)`)
		for _, id := range withoutParticipants {
			if !slices.Contains(got, id) {
				t.Errorf("memory %s has no participants and is not shown", id)
			}
		}
		if n := oneValue(t, agent, `SELECT count(*)::text FROM memories WHERE user_id <> '`+user1+`'`); n != "0" {
			t.Errorf("%s memories of other users", n)
		}
	})
	secondAgent := &pgxClient{t: t, conn: in.connectPgx(t, "second")}
	got, _ := secondAgent.rows(`SELECT DISTINCT user_id::text FROM memories`)
	wantSameRows(t, "users whose memories the second user's agent sees", got, []string{user2})
}

// seeds/000:49, 53.
func TestArciveC_PeopleParticipantsAndEdges(t *testing.T) {
	in := startForReading(t, options{})
	visiblePeople := superuserList(t, in, `SELECT id::text FROM people WHERE user_id = '`+user1+`' AND consent_status = 'granted'`)
	visibleLinks := superuserList(t, in,
		`SELECT p.memory_id::text || p.person_id FROM memory_participants p JOIN memories m ON m.id = p.memory_id
		JOIN people q ON q.id = p.person_id AND q.user_id = '`+user1+`' AND q.consent_status = 'granted' WHERE `+strings.ReplaceAll(visibleMemories,
			"memory_participants p WHERE p.", "memory_participants p WHERE p."))
	forEachClient(t, in, func(t *testing.T, agent, _ client) {
		got, _ := agent.rows(`SELECT id::text FROM people`)
		wantSameRows(t, "people", got, visiblePeople)
		got, _ = agent.rows(`SELECT memory_id::text || person_id FROM memory_participants`)
		wantSameRows(t, "participants", got, visibleLinks)
		got, _ = agent.rows(
			`SELECT memory_id::text FROM memory_participants WHERE memory_id NOT IN (SELECT id FROM memories) OR person_id NOT IN (SELECT id FROM people)`)
		wantSameRows(t, "participants that name hidden rows", got, nil)
		for _, sql := range []string{
			`SELECT * FROM memory_edges`, `SELECT count(*) FROM public.memory_edges`, `TABLE memory_edges`, `COPY memory_edges TO STDOUT`,
			`SELECT 1 FROM memories m WHERE EXISTS (SELECT 1 FROM memory_edges e WHERE e.from_id = m.id)`,
			`WITH e AS (SELECT * FROM memory_edges) SELECT * FROM e`,
		} {
			wantRefused(t, agent, sql, "42501")
		}
	})
	in.requireNoMarker(t)
}

// seeds/000:26-29, 39.
func TestArciveD_RespectConsentIsPinned(t *testing.T) {
	in := startForReading(t, options{})
	const searchVector = `(SELECT embedding FROM memories WHERE id = '` + aloneMemory + `')`
	want := superuserList(t, in, `SELECT m.id::text FROM memories m WHERE `+visibleMemories)
	forEachClient(t, in, func(t *testing.T, agent, _ client) {
		for _, functionCall := range []string{
			`search_memories_semantic('lake', 100000)`,
			`search_memories_semantic('lake', 100000, true)`,
			`search_memories_semantic('lake', 100000, false)`,
			`search_memories_semantic('lake', 100000, NULL)`,
			`search_memories_semantic('lake', 100000, 'off')`,
			`search_memories_semantic('lake', 100000, (SELECT count(*) > 100000 FROM people))`,
			`search_memories_semantic('lake', 100000, respect_consent => false)`,
			`search_memories_semantic(respect_consent => false, match_count => 100000, query_text => 'lake')`,
			`search_memories_semantic(query_text => 'lake', match_count => 100000)`,
			`public.search_memories_semantic('lake', 100000, respect_consent := false)`,
			`match_memories(` + searchVector + `, 100000)`,
			`match_memories(` + searchVector + `, 100000, false)`,
			`match_memories(` + searchVector + `, 100000, respect_consent => false)`,
			`match_memories(match_count => 100000, query_embedding => ` + searchVector + `)`,
		} {
			got, code := agent.rows(`SELECT id::text FROM ` + functionCall)
			if code != "" {
				t.Errorf("%s: SQLSTATE %s", functionCall, code)
				continue
			}
			wantSameRows(t, functionCall, got, want)
		}
		if n := oneValue(t, agent, `SELECT count(*)::text FROM (SELECT (search_memories_semantic('lake', 100000, false)).id) s`); n != itoa(len(want)) {
			t.Errorf("in the select list: %s rows, want %d", n, len(want))
		}
	})
	in.requireNoMarker(t)
}

// seeds/000:53.
func TestArciveE_NewPeopleArePending(t *testing.T) {
	in := start(t, options{})
	forEachClient(t, in, func(t *testing.T, agent, owner client) {
		const (
			newPersonID = "00000000-0000-4000-8000-00000000ee01"
			sql         = `SELECT count(*)::text FROM memories WHERE id = '` + aloneMemory + `'`
		)
		if oneValue(t, agent, sql) != "1" {
			t.Fatal("the memory is not visible to begin with")
		}
		wantDone(t, owner, `INSERT INTO people (id, user_id, name) VALUES ('`+newPersonID+`', '`+user1+`', 'HIDDENMARK unknown speaker')`)
		wantDone(t, owner, `INSERT INTO memory_participants VALUES ('`+aloneMemory+`', '`+newPersonID+`', 'HIDDENMARK')`)
		if oneValue(t, agent, sql) != "0" {
			t.Error("a memory that mentions a new person is still visible")
		}
		wantDone(t, owner, `UPDATE memory_participants SET role = 'present' WHERE person_id = '`+newPersonID+`'`)
		wantDone(t, owner, `UPDATE people SET consent_status = 'granted', name = 'known speaker' WHERE id = '`+newPersonID+`'`)
		if oneValue(t, agent, sql) != "1" {
			t.Error("granting did not bring the memory back")
		}
		wantDone(t, owner, `DELETE FROM memory_participants WHERE person_id = '`+newPersonID+`'`)
		wantDone(t, owner, `DELETE FROM people WHERE id = '`+newPersonID+`'`)
		wantDone(t, owner, `INSERT INTO people (id, user_id, name, is_self) VALUES ('`+newPersonID+`', '`+user1+`', 'self', true)`)
		if oneValue(t, agent, `SELECT consent_status FROM people WHERE id = '`+newPersonID+`'`) != "granted" {
			t.Error("an is_self person was not granted at creation")
		}
		wantDone(t, owner, `DELETE FROM people WHERE id = '`+newPersonID+`'`)
		checkMentions(t, agent, owner)
	})
	in.requireNoMarker(t)
}

// checkMentions changes which people a memory mentions, as the owner, and checks that agents see each change at the
// next statement. A voice turns out to be another person's, two people are one, and somebody was not there
// (seeds/000:53).
func checkMentions(t *testing.T, agent, owner client) {
	t.Helper()
	const (
		speakerID = "00000000-0000-4000-8000-00000000ee02"
		sql       = `SELECT count(*)::text FROM memories WHERE id = '` + aloneMemory + `'`
	)
	wantShown := func(description, want string) {
		t.Helper()
		if got := oneValue(t, agent, sql); got != want {
			t.Errorf("%s: %s memories", description, got)
		}
	}
	changeMention := func(oldPerson, newPerson string) {
		wantDone(t, owner,
			`UPDATE memory_participants SET person_id = '`+newPerson+`' WHERE memory_id = '`+aloneMemory+`' AND person_id = '`+oldPerson+`'`)
	}
	wantDone(t, owner, `INSERT INTO memory_participants VALUES ('`+aloneMemory+`', '`+aliceID+`', 'present')`)
	wantShown("with Alice", "1")
	wantDone(t, owner, `INSERT INTO people (id, user_id, name) VALUES ('`+speakerID+`', '`+user1+`', 'HIDDENMARK Unknown speaker')`)
	changeMention(aliceID, speakerID)
	wantShown("it was not Alice who spoke", "0")
	changeMention(speakerID, benID)
	wantShown("it was Ben", "0")
	changeMention(benID, aliceID)
	wantShown("Ben and Alice are one", "1")
	changeMention(aliceID, speakerID)
	wantDone(t, owner, `DELETE FROM people WHERE id = '`+speakerID+`'`)
	wantShown("nobody knows any more who spoke", "0")
	wantDone(t, owner, `DELETE FROM memory_participants WHERE memory_id = '`+aloneMemory+`' AND person_id = '`+speakerID+`'`)
	wantShown("nobody else was there", "1")
}

// seeds/000:47.
func TestArciveF_GrantAndRevokeActOnTheNextStatement(t *testing.T) {
	in := start(t, options{})
	forEachClient(t, in, func(t *testing.T, agent, owner client) {
		const sql = `SELECT count(*)::text FROM memories WHERE id = '` + aliceMemory + `'`
		for range 3 {
			if oneValue(t, agent, sql) != "1" {
				t.Fatal("the memory with Alice is not visible")
			}
			wantDone(t, owner, `UPDATE people SET consent_status = 'revoked' WHERE id = '`+aliceID+`'`)
			if oneValue(t, agent, sql) != "0" {
				t.Error("the memory is visible after Alice withdrew")
			}
			if oneValue(t, agent, `SELECT count(*)::text FROM people WHERE id = '`+aliceID+`'`) != "0" {
				t.Error("Alice is visible after she withdrew")
			}
			wantDone(t, owner, `UPDATE people SET consent_status = 'granted' WHERE id = '`+aliceID+`'`)
		}
		// Also inside a transaction, since each statement has its own snapshot.
		wantDone(t, agent, `BEGIN`)
		if oneValue(t, agent, sql) != "1" {
			t.Error("not visible in the transaction")
		}
		wantDone(t, owner, `UPDATE people SET consent_status = 'pending' WHERE id = '`+aliceID+`'`)
		if oneValue(t, agent, sql) != "0" {
			t.Error("visible in the transaction after Alice withdrew")
		}
		wantDone(t, agent, `COMMIT`)
		wantDone(t, owner, `UPDATE people SET consent_status = 'granted' WHERE id = '`+aliceID+`'`)
	})
}

// seeds/000:9-13, 30, 49.
func TestArciveG_TheOwnerIsUnaffected(t *testing.T) {
	in := start(t, options{})
	forEachClient(t, in, func(t *testing.T, _, owner client) {
		for _, table := range []string{"people", "memories", "memory_participants", "memory_edges"} {
			want := superuserList(t, in, `SELECT count(*)::text FROM `+table)
			if got := oneValue(t, owner, `SELECT count(*)::text FROM `+table); got != want[0] {
				t.Errorf("the owner sees %s rows of %s, the superuser %s", got, table, want[0])
			}
		}
		// A background job of the owner: edges from the function without the rule, and a DELETE that cascades over hidden
		// rows.
		wantDone(t, owner, `BEGIN`)
		wantDone(t, owner, `INSERT INTO memory_edges SELECT '`+aloneMemory+
			`', id, 1 FROM match_memories((SELECT embedding FROM memories WHERE id = '`+benMemory+`'), 5) WHERE id <> '`+aloneMemory+`' ON CONFLICT DO NOTHING`)
		wantDone(t, owner, `DELETE FROM memories WHERE id = '`+benMemory+`'`)
		if oneValue(t, owner, `SELECT count(*)::text FROM memory_participants WHERE memory_id = '`+benMemory+`'`) != "0" {
			t.Error("the delete did not cascade")
		}
		wantDone(t, owner, `ROLLBACK`)
	})
}

// seeds/000:26-29, 39, 40-41.
func TestArciveI_TheOwnersCallsKeepTheirMeaning(t *testing.T) {
	in := startForReading(t, options{})
	forEachClient(t, in, func(t *testing.T, _, owner client) {
		const searchVector = `(SELECT embedding FROM memories WHERE id = '` + aloneMemory + `')`
		totalMemories := oneValue(t, owner, `SELECT count(*)::text FROM memories`)
		for functionCall, want := range map[string]string{
			`search_memories_semantic('lake', 100000)`:                          totalMemories,
			`search_memories_semantic('lake', 100000, false)`:                   totalMemories,
			`search_memories_semantic('lake', 100000, respect_consent => true)`: consentedMemoryCount(t, in),
			`match_memories(` + searchVector + `, 100000)`:                      totalMemories,
			`match_memories(` + searchVector + `, 100000, false)`:               totalMemories,
			`match_memories(` + searchVector + `, 100000, true)`:                consentedMemoryCount(t, in),
		} {
			if got := oneValue(t, owner, `SELECT count(*)::text FROM `+functionCall); got != want {
				t.Errorf("%s: %s rows, want %s", functionCall, got, want)
			}
		}
	})
}

// Agents for interfaces that ship later, and agents whose prompt does not tell them to refuse, get the same answers.
// The agents differ in their names only. SYSTEMS.md 1 j; for the unmodified MCP server see mcp.TestArcive.
// seeds/000:21-25, 43-45, 48.
func TestArciveJ_EveryAgentIsAnsweredAlike(t *testing.T) {
	in := start(t, options{})
	connections := map[string]*pgconn.PgConn{}
	for _, agent := range arciveAgents {
		connections[agent] = harness.Connect(t, in.dsn(agent, agentPassword))
	}
	questions := 0
	for _, sql := range []string{
		`SELECT * FROM memories ORDER BY id`, `SELECT * FROM people ORDER BY id`,
		`SELECT * FROM memory_participants ORDER BY 1, 2`, `SELECT * FROM memory_edges`, `SELECT count(*), max(occurred_at) FROM memories`,
		`SELECT id, title, distance FROM search_memories_semantic('lake', 50)`,
		`SELECT id, title, distance FROM search_memories_semantic('lake', 50, respect_consent => false)`,
		`SELECT id, title, distance FROM search_memories_semantic('lake', 50, respect_consent => true)`,
		`SELECT id FROM match_memories((SELECT embedding FROM memories WHERE id = '` + aloneMemory + `'), 20, true)`,
		`SELECT id FROM match_memories((SELECT embedding FROM memories WHERE id = '` + aloneMemory +
			`'), 20, false)`, `SELECT title FROM memories WHERE id = '` + benMemory + `'`,
		`UPDATE people SET consent_status = 'granted'`, `SELECT body::int FROM memories`, `EXPLAIN SELECT 1 FROM memories`,
	} {
		questions++
		want := harness.Ask(connections["caregiver"], sql).String()
		for _, agent := range arciveAgents {
			if got := harness.Ask(connections[agent], sql).String(); got != want {
				t.Errorf("%s: %s is answered\n%.200s\nand caregiver\n%.200s", sql, agent, got, want)
			}
		}
	}
	in.requireNoMarker(t)
	// The audit has a record of each statement of each agent, whether it was allowed or not.
	decisions := countDecisions(t, in.audit)
	for _, agent := range arciveAgents {
		want := questions
		if agent == "caregiver" {
			want *= 2
		}
		if k := decisions[agent]; k["allow"]+k["deny"] != want || k["deny"] == 0 || k["allow"] <= k["deny"] {
			t.Errorf("of %d attempts of %s the audit has %v", want, agent, k)
		}
	}
}

// countDecisions returns the number of decisions in an audit folder, by agent and verdict.
func countDecisions(t testing.TB, folder string) map[string]map[string]int {
	t.Helper()
	out := map[string]map[string]int{}
	if _, err := audit.Walk(folder, func(r audit.Record) error {
		var d audit.Decision
		if r.Kind != "decision" {
			return nil
		}
		if err := json.Unmarshal(r.Line, &d); err != nil {
			return err
		}
		if out[d.Agent] == nil {
			out[d.Agent] = map[string]int{}
		}
		out[d.Agent][d.Verdict]++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// consentedMemoryCount returns the number of memories, of all users, whose participants have all granted.
func consentedMemoryCount(t testing.TB, in *instance) string {
	t.Helper()
	return superuserList(t, in, `SELECT count(*)::text FROM memories m WHERE `+strings.ReplaceAll(visibleMemories, `m.user_id = '`+user1+`' AND `, ""))[0]
}

// A person whom the agent cannot see still hides a memory. A predicate that ran with the agent's own rights would miss
// that person. seeds/000:46.
func TestAnInvisiblePersonStillHidesTheMemory(t *testing.T) {
	for name, o := range map[string]options{"both": {}, "rls": {mode: modeRLS}, "injected": {mode: modeInjected, rowSecurity: withoutPolicies}} {
		t.Run(name, func(t *testing.T) {
			in := startForReading(t, o)
			agent := &pgxClient{t: t, conn: in.connectPgx(t, "caregiver")}
			if n := oneValue(t, agent, `SELECT count(*)::text FROM people WHERE id = '`+benID+`'`); n != "0" {
				t.Fatal("Ben is visible")
			}
			if n := oneValue(t, agent, `SELECT count(*)::text FROM memories WHERE id = '`+benMemory+`'`); n != "0" {
				t.Error("a memory with Ben is visible, since the agent cannot see that he refused")
			}
			in.requireNoMarker(t)
		})
	}
}

// An ordinary role of the application, and a permissive row policy that the customer had before, behave as without
// pgconsent.
func TestTheCustomersOwnRolesAndPolicies(t *testing.T) {
	tier.All(t)
	in := start(t, options{beforeMigrate: `
		DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'application') THEN CREATE ROLE application LOGIN; END IF; END $$;
		GRANT USAGE ON SCHEMA public TO application; GRANT SELECT ON ALL TABLES IN SCHEMA public TO application;
		ALTER TABLE people ENABLE ROW LEVEL SECURITY;
		CREATE POLICY everybody ON people USING (true)`})
	agent := &pgxClient{t: t, conn: in.connectPgx(t, "caregiver")}
	want := superuserList(t, in, `SELECT m.id::text FROM memories m WHERE `+visibleMemories)
	got, _ := agent.rows(`SELECT id::text FROM memories`)
	wantSameRows(t, "memories beside an older permissive policy", got, want)
	got, _ = agent.rows(`SELECT id::text FROM people`)
	wantSameRows(t, "people beside an older permissive policy", got,
		superuserList(t, in, `SELECT id::text FROM people WHERE user_id = '`+user1+`' AND consent_status = 'granted'`))
	applicationConn := in.db.Connect(t, "application")
	for _, table := range []string{"people", "memories", "memory_participants"} {
		var n string
		if err := applicationConn.QueryRow(context.Background(), `SELECT count(*)::text FROM `+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if want := superuserList(t, in, `SELECT count(*)::text FROM `+table)[0]; n != want {
			t.Errorf("an ordinary role sees %s of %s rows of %s", n, want, table)
		}
	}
	in.requireNoMarker(t)
}
