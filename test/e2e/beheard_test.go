package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// beheard is a database with the example world beheard behind a proxy. The agent ana is connected in her active session
// with ben.
type beheard struct {
	db    *pgtest.DB
	proxy *harness.Proxy
	agent *pgconn.PgConn
}

func startBeheard(t *testing.T, changeDatabase ...func(*harness.Database)) *beheard {
	t.Helper()
	return startBeheardIn(t, harness.Both, changeDatabase...)
}

func startBeheardIn(t *testing.T, mode harness.Mode, changeDatabase ...func(*harness.Database)) *beheard {
	t.Helper()
	w, err := world.Open("beheard")
	if err != nil {
		t.Fatal(err)
	}
	policy, err := w.File("policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	db := pgtest.Template(t, "beheard", func(ctx context.Context, conn *pgx.Conn) error { return w.Load(ctx, conn, nil) })
	d := harness.Database{Name: "beheard", DB: db, Policy: string(policy), SearchPath: []string{"public"}}
	for _, f := range changeDatabase {
		f(&d)
	}
	harness.Install(t, d, mode)
	var agents []harness.Agent
	for _, a := range w.Agents {
		agents = append(agents, harness.Agent{Name: a.Name, Database: "beheard", Attributes: a.Attributes})
	}
	b := &beheard{db: db, proxy: harness.Serve(t, mode, []harness.Database{d}, agents)}
	b.agent = b.connectAs(t, "ana", "ses-1-4")
	return b
}

// connectAs connects an agent, in a session of the world.
func (b *beheard) connectAs(t *testing.T, agent, session string) *pgconn.PgConn {
	t.Helper()
	c := b.proxy.Agent(t, agent, "beheard")
	if got := oneText(c, "SET app.current_session_id = '"+session+"'"); got != "" {
		t.Fatalf("%s in %s: %s", agent, session, got)
	}
	return c
}

// execAsOwner runs SQL as the owner of the data.
func (b *beheard) execAsOwner(t *testing.T, sql string) { t.Helper(); harness.Exec(t, b.db, sql) }

func (b *beheard) setStage(t *testing.T, stage string) {
	t.Helper()
	b.execAsOwner(t, `UPDATE "Session" SET stage = `+stage+` WHERE id = 'ses-1-4'`)
}

func (b *beheard) checkAnswer(t *testing.T, sql, want string) {
	t.Helper()
	if got := oneText(b.agent, sql); got != want {
		t.Errorf("%s: got %q, want %q", sql, got, want)
	}
}

// checkVisibleCount compares the agent's count of a table with the owner's count by an equivalent condition. The
// condition must select some rows, but not all.
func (b *beheard) checkVisibleCount(t *testing.T, table, condition string) {
	t.Helper()
	want := oneText(harness.ConnectSuperuser(t, b.db), `SELECT count(*) FROM "`+table+`" AS x WHERE `+condition)
	if total := oneText(harness.ConnectSuperuser(t, b.db), `SELECT count(*) FROM "`+table+`"`); want == "0" || want == total {
		t.Errorf("%s: the owner finds %s of %s rows by %s: the test says little", table, want, total, condition)
	}
	b.checkAnswer(t, `SELECT count(*) FROM "`+table+`"`, want)
}

const ownVessels = `"vesselId" IN (SELECT v.id FROM "UserVessel" v JOIN "Session" s ON s.id = v."sessionId" ` +
	`WHERE v."userId" = 'user-ana' AND s."relationshipId" = 'rel-1')`

// SYSTEMS.md 3 b: stage, user, phase, turn and intent come from the database, whatever the agent sets.
// seeds/002:420.
func TestBeheardB_StageFromTheDatabase(t *testing.T) {
	b := startBeheard(t)
	const contentQuery = `SELECT id FROM "ConsentedContent" WHERE kind = 'need' ORDER BY id`
	b.setStage(t, "1")
	b.checkAnswer(t, contentQuery, "42501")
	for _, sql := range []string{"SET pgconsent.stage = 4", "SET app.stage = 4", "SET app.user_id = 'user-ben'",
		`UPDATE "Session" SET stage = 4`, "SELECT set_config('app.current_session_id', 'ses-3-4', false)"} {
		b.checkAnswer(t, sql, "42501")
	}
	b.setStage(t, "2")
	b.checkAnswer(t, contentQuery, "content-1-1")
	b.execAsOwner(t, `UPDATE "Turn" SET "sealedAt" = now() WHERE "sessionId" = 'ses-1-4' AND "userId" = 'user-ana'`)
	b.checkAnswer(t, contentQuery, "42501") // no turn is open, so the attributes have no values
	withoutSession := b.proxy.Agent(t, "ana", "beheard")
	if got := oneText(withoutSession, contentQuery); got != "42501" {
		t.Errorf("without a session: %s", got)
	}
	b.proxy.Tap().RequireNoMarker(t)
}

// SYSTEMS.md 3 c: at every stage an agent gets only the user's own rows, and only those of the session's relationship.
// seeds/002:16, 117-126, 132-135, 137-153, 165-168, 223-224, 378, 421.
func TestBeheardC_OwnVessel(t *testing.T) {
	b := startBeheard(t)
	for _, value := range []string{"ses-3-4", "ses-1-3", "nothing", ""} { // another person's session, a completed one, a missing one
		if want := map[bool]string{true: "", false: "42501"}[value == ""]; oneText(b.proxy.Agent(t, "ana", "beheard"),
			"SET app.current_session_id = '"+value+"'") != want {
			t.Errorf("session %q: want %q", value, want)
		}
	}
	b.checkAnswer(t, "SET app.actor_id = 'user-ben'", "42501")
	b.checkAnswer(t, "SET app.actor_id = 'user-ana'", "")
	b.setStage(t, "2")
	for _, table := range []string{"UserEvent", "EmotionalReading", "Need", "Boundary"} {
		b.checkVisibleCount(t, table, ownVessels)
	}
	b.checkAnswer(t, `SELECT count(*) FROM "UserEvent" AS e JOIN "UserVessel" AS v ON v.id = e."vesselId" WHERE v."userId" <> 'user-ana'`, "0")
	// A similarity search returns candidates from the user's own moments only, although the partner's are nearer.
	super := harness.ConnectSuperuser(t, b.db)
	nearestOrder := ` ORDER BY x.embedding <-> '` + oneText(super,
		`SELECT embedding FROM "UserEvent" WHERE "vesselId" = 'uv-ses-1-4-user-ben' ORDER BY id LIMIT 1`) + `', x.id LIMIT 10`
	allNearest, ownNearest := oneText(super, `SELECT x.id FROM "UserEvent" AS x`+nearestOrder),
		oneText(super, `SELECT x.id FROM "UserEvent" AS x WHERE `+ownVessels+nearestOrder)
	if !strings.Contains(allNearest, "user-ben") || len(splitLines(ownNearest)) != 10 {
		t.Errorf("nearest of all are %q, of one's own %q", allNearest, ownNearest)
	}
	b.checkAnswer(t, `SELECT x.id FROM "UserEvent" AS x`+nearestOrder, ownNearest)
	for _, stage := range []string{"1", "2", "3"} {
		b.setStage(t, stage)
		for _, sql := range []string{`SELECT name FROM "Need" LIMIT 5`,
			`SELECT content FROM "UserEvent" ORDER BY "createdAt" DESC LIMIT 5`, `SELECT content::int FROM "UserEvent" LIMIT 5`} {
			oneText(b.agent, sql)
		}
	}
	b.proxy.Tap().RequireNoMarker(t)
	otherSession := b.connectAs(t, "ana", "ses-2-4") // another session of the same person, with another partner
	b.execAsOwner(t, `UPDATE "Session" SET stage = 2 WHERE id = 'ses-2-4'`)
	if got := oneText(otherSession, `SELECT count(*) FROM "UserEvent"`); got != "20" {
		t.Errorf("in the other relationship: %s events", got)
	}
}

// SYSTEMS.md 3 e: shared content is visible only while its consent record is granted, not revoked and active. This is
// checked for every query.
// seeds/002:16, 69-76, 178-187, 193-221, 225-237, 379-380, 422.
func TestBeheardE_ActiveConsent(t *testing.T) {
	b := startBeheard(t)
	b.setStage(t, "2")
	const contentsQuery = `SELECT id FROM "ConsentedContent" ORDER BY id`
	b.checkAnswer(t, contentsQuery, "content-1-1\ncontent-1-3")
	// The same holds for a search near a content whose consent will be withdrawn.
	nearestQuery := `SELECT id FROM "ConsentedContent" ORDER BY embedding <-> '` +
		oneText(harness.ConnectSuperuser(t, b.db), `SELECT embedding FROM "ConsentedContent" WHERE id = 'content-1-1'`) + `', id LIMIT 10`
	for _, change := range [][2]string{
		{`UPDATE "ConsentRecord" SET "revokedAt" = now() WHERE id = 'rec-content-1-1'`,
			`UPDATE "ConsentRecord" SET "revokedAt" = NULL WHERE id = 'rec-content-1-1'`},
		{`UPDATE "ConsentRecord" SET decision = 'DENIED' WHERE id = 'rec-content-1-1'`,
			`UPDATE "ConsentRecord" SET decision = 'GRANTED' WHERE id = 'rec-content-1-1'`},
		{`UPDATE "ConsentedContent" SET "consentActive" = NULL WHERE id = 'content-1-1'`,
			`UPDATE "ConsentedContent" SET "consentActive" = true WHERE id = 'content-1-1'`},
		{`UPDATE "ConsentedContent" SET "consentRecordId" = 'nowhere' WHERE id = 'content-1-1'`,
			`UPDATE "ConsentedContent" SET "consentRecordId" = 'rec-content-1-1' WHERE id = 'content-1-1'`},
	} {
		b.checkAnswer(t, nearestQuery, "content-1-1\ncontent-1-3")
		b.execAsOwner(t, change[0])
		b.checkAnswer(t, contentsQuery, "content-1-3")
		b.checkAnswer(t, nearestQuery, "content-1-3")
		b.execAsOwner(t, change[1])
		b.checkAnswer(t, contentsQuery, "content-1-1\ncontent-1-3")
	}
	// Rows that are derived from the content need no consent of their own.
	b.execAsOwner(t, `UPDATE "ConsentRecord" SET "revokedAt" = now()`)
	b.checkVisibleCount(t, "Agreement", `"sharedVesselId" = 'sv-1' AND "agreedByA" AND "agreedByB"`)
	b.checkVisibleCount(t, "CommonGround", `"sharedVesselId" = 'sv-1'`)
	b.checkAnswer(t, contentsQuery, "")
	b.proxy.Tap().RequireNoMarker(t)
}

// SYSTEMS.md 3 f: only the planner may read the synthesis, and only in the planning phase.
// seeds/002:18, 381.
func TestBeheardF_Synthesis(t *testing.T) {
	b := startBeheard(t)
	const synthesisQuery = `SELECT id FROM "AISynthesis"`
	plannerConn := b.connectAs(t, "planner", "ses-1-4")
	for _, c := range []struct{ stage, phase, want string }{
		{"0", "planning", "42501"}, {"1", "planning", "42501"}, {"2", "planning", "syn-ses-1-4"}, {
			"3", "planning", "syn-ses-1-4"}, {"4", "planning", "syn-ses-1-4"}, {"2", "generation", "42501"}, {"4", "generation", "42501"},
	} {
		b.setStage(t, c.stage)
		// Even a plan that names the synthesis does not open it to other agents.
		b.execAsOwner(t, `UPDATE "Turn" SET plan = 'synthesis:structured,synthesis:metadata', phase = '`+
			c.phase+`' WHERE "sessionId" = 'ses-1-4' AND "sealedAt" IS NULL`)
		if got := oneText(plannerConn, synthesisQuery); got != c.want {
			t.Errorf("planner, stage %s, %s: %s", c.stage, c.phase, got)
		}
		b.checkAnswer(t, synthesisQuery, "42501")
	}
	b.checkAnswer(t, `SELECT * FROM "Turn"`, "42501")
	b.checkAnswer(t, `UPDATE "Turn" SET "sealedAt" = NULL`, "42501")
	b.proxy.Tap().RequireNoMarker(t)
}

// SYSTEMS.md 3 h: the audit records every attempt with session, stage, intent, phase, turn and returned rows. It holds
// no personal text. seeds/002:423.
func TestBeheardH_LiveAttributes(t *testing.T) {
	dir := t.TempDir()
	b := startBeheard(t, func(d *harness.Database) { d.Audit = filepath.Join(dir, "audit") })
	b.checkAnswer(t, `SELECT id FROM "Boundary" ORDER BY id LIMIT 3`, "bound-uv-ses-1-1-user-ana\nbound-uv-ses-1-2-user-ana\nbound-uv-ses-1-3-user-ana")
	b.checkAnswer(t, `SELECT id FROM "Agreement" LIMIT 3`, "42501")
	b.setStage(t, "2")
	b.execAsOwner(t, `UPDATE "Turn" SET message = 'HIDDENMARK as we agreed' WHERE "sealedAt" IS NULL`)
	b.checkAnswer(t, `SELECT count(*) FROM "Agreement"`, "3")
	harness.Close(b.agent)
	readAudit := func() (text string) {
		files, err := filepath.Glob(filepath.Join(dir, "audit", "*.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text += string(data)
		}
		return text
	}
	text := readAudit()
	for deadline := time.Now().Add(tier.Patience); !strings.Contains(text, `"event":"close"`) && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		text = readAudit()
	}
	type record struct {
		Seq, Decision, Rows float64
		Kind, Verdict, Tag  string
		Attributes          map[string]string
		Tables              []struct{ Name, Source string }
	}
	rows := map[float64]float64{}
	var decisions []record
	for _, line := range splitLines(strings.TrimSpace(text)) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		switch {
		case r.Kind == "outcome":
			rows[r.Decision] = r.Rows
		case r.Kind == "decision" && r.Tag == "SELECT":
			decisions = append(decisions, r)
		}
	}
	want := []struct {
		verdict, table, stage, intent string
		rows                          float64
	}{{"allow", "public.Boundary", "1", "emotional_validation", 3}, {
		"deny", "public.Agreement", "1", "emotional_validation", 0}, {"allow", "public.Agreement", "2", "recall_commitment", 1}}
	if len(decisions) != len(want) {
		t.Fatalf("%d decisions: %s", len(decisions), text)
	}
	for i, w := range want {
		d := decisions[i]
		a := d.Attributes
		if d.Verdict != w.verdict || len(d.Tables) != 1 || d.Tables[0].Name != w.table || a["stage"] != w.stage ||
			a["intent"] != w.intent || rows[d.Seq] != w.rows ||
			a["session"] != "ses-1-4" || a["phase"] != "planning" || !strings.HasPrefix(a["turn"], "ref:") ||
			!strings.HasPrefix(a["user"], "ref:") || a["user"] != decisions[0].Attributes["user"] {
			t.Errorf("record %d: %+v with %g rows, want %+v", i, d, rows[d.Seq], w)
		}
	}
	if strings.Contains(text, "HIDDENMARK") || strings.Contains(text, "we agreed") || strings.Contains(text, "user-ana") {
		t.Error("what was said in a turn, or who said it, is in the audit")
	}
}

// SYSTEMS.md 3 i: stage 0 requires both users in the session. Stage 3 shows only confirmed needs, and only contents
// that are needs.
// seeds/002:93, 247-255, 261-285, 295-305.
func TestBeheardI_Conditions(t *testing.T) {
	b := startBeheard(t)
	b.setStage(t, "0")
	b.checkAnswer(t, `SELECT count(*) FROM "Session"`, "5")
	b.checkVisibleCount(t, "SessionOutcome", `"sessionId" LIKE 'ses-1-%'`)
	soloSession := b.connectAs(t, "ana", "ses-1-solo")
	if got := oneText(soloSession, `SELECT count(*) FROM "Session"`); got != "42501" {
		t.Errorf("alone in a session: %s", got)
	}
	for _, change := range [][3]string{
		{`UPDATE "Session" SET "userBId" = NULL WHERE id = 'ses-1-4'`,
			`UPDATE "Session" SET "userBId" = 'user-ben' WHERE id = 'ses-1-4'`, "contract retrieval, stage 0: a condition of the contract does not hold"},
		{`UPDATE "Session" SET status = 'COMPLETED' WHERE id = 'ses-1-4'`,
			`UPDATE "Session" SET status = 'ACTIVE' WHERE id = 'ses-1-4'`, "the session has no stage"},
	} {
		for _, sql := range []string{`SELECT count(*) FROM "Session"`, `SELECT "createdAt" FROM "Relationship"`, `SELECT summary FROM "SessionOutcome"`} {
			b.execAsOwner(t, change[0])
			b.checkDenied(t, sql, change[2])
			b.execAsOwner(t, change[1])
			if rows, got := b.countRows(t, sql); rows == 0 || got != "" {
				t.Errorf("with both in an active session: %s: %d rows, %s", sql, rows, got)
			}
		}
	}
	b.setStage(t, "3")
	b.checkVisibleCount(t, "Need", ownVessels+" AND confirmed")
	// Revoked, denied and inactive contents become needs as well, and stay hidden.
	b.execAsOwner(t, `UPDATE "ConsentedContent" SET kind = 'need' WHERE id LIKE 'content-1-%' AND id <> 'content-1-3'`)
	b.checkAnswer(t, `SELECT kind, id FROM "ConsentedContent"`, "need\tcontent-1-1")
	b.checkVisibleCount(t, "CommonGround", `"sharedVesselId" = 'sv-1'`) // with unconfirmed candidates
	b.setStage(t, "4")
	b.checkAnswer(t, `SELECT id FROM "CommonGround" ORDER BY id`, "ground-1-1\nground-1-2") // confirmed by both; seeds/002:298
	b.proxy.Tap().RequireNoMarker(t)
}

// SYSTEMS.md 3 j: shared rows are visible only in their own relationship, to their addressee, and when both users have
// agreed.
// seeds/002:223-224, 353-362.
func TestBeheardJ_SharedRows(t *testing.T) {
	b := startBeheard(t)
	b.setStage(t, "2")
	for _, table := range []string{"CommonGround", "MicroExperiment"} {
		b.checkVisibleCount(t, table, `"sharedVesselId" = 'sv-1'`)
	}
	b.checkVisibleCount(t, "Agreement", `"sharedVesselId" = 'sv-1' AND "agreedByA" AND "agreedByB"`)
	b.checkVisibleCount(t, "ConsentedContent", `"sharedVesselId" = 'sv-1' AND "addresseeId" = 'user-ana' AND "consentActive"
		AND EXISTS (SELECT FROM "ConsentRecord" r WHERE r.id = x."consentRecordId" AND r.decision = 'GRANTED' AND r."revokedAt" IS NULL)`)
	b.proxy.Tap().RequireNoMarker(t)
	benConn := b.connectAs(t, "ben", "ses-1-4")
	if got := oneText(benConn, `SELECT id FROM "ConsentedContent" ORDER BY id`); got != "content-1-2\ncontent-1-4" {
		t.Errorf("ben: %s", got)
	}
}

// SYSTEMS.md 3 k: the library shows curated rows. It shows contributed rows while their opt-in is active and they are
// anonymised.
// seeds/002:16, 311-313, 317-320.
func TestBeheardK_Library(t *testing.T) {
	b := startBeheard(t)
	b.setStage(t, "4")
	b.checkAnswer(t, `SELECT count(*) FROM "GlobalExperiment" WHERE embedding IS NOT NULL`, "42501") // vector only
	const nearestQuery = `SELECT id FROM "GlobalExperiment" ORDER BY embedding <-> (SELECT embedding FROM "GlobalExperiment" WHERE id = 'lib-41') LIMIT 60`
	if got := len(splitLines(oneText(b.agent, nearestQuery))); got != 50 {
		t.Errorf("%d rows of the library, want 50: %s", got, oneText(b.agent, nearestQuery))
	}
	for _, change := range []string{
		`"optInActive" = false`, `"optInActive" = NULL`, `"anonymizedAt" = NULL`, `origin = 'imported'`,
		`"embeddedAt" = NULL`, `"embeddedAt" = "anonymizedAt" - interval '1 second'`, // the embedding was made from the user's original words
	} {
		b.execAsOwner(t, `UPDATE "GlobalExperiment" SET `+change+` WHERE id = 'lib-42'`)
		if got := oneText(b.agent, nearestQuery); len(splitLines(got)) != 49 || strings.Contains(got, "lib-42") {
			t.Errorf("%s: %d rows, want 49", change, len(splitLines(got)))
		}
		b.execAsOwner(t,
			`UPDATE "GlobalExperiment" SET origin = 'contributed', "optInActive" = true, "anonymizedAt" = '2025-04-01', "embeddedAt" = '2025-04-02' WHERE id = 'lib-42'`)
		if got := oneText(b.agent, nearestQuery); len(splitLines(got)) != 50 || !strings.Contains(got, "lib-42") {
			t.Errorf("after %s was put right: %d rows, want 50", change, len(splitLines(got)))
		}
	}
	for _, sql := range []string{
		`INSERT INTO "GlobalExperiment" (id, title, suggestion, origin) VALUES ('x', 'x', 'x', 'curated')`,
		`UPDATE "GlobalExperiment" SET origin = 'curated'`, `DELETE FROM "GlobalExperiment"`} {
		b.checkAnswer(t, sql, "42501")
	}
	b.proxy.Tap().RequireNoMarker(t)
}

// SYSTEMS.md 3 m: the SQL that the seed contains runs as it is written there.
// seeds/002:157-164, 225-237, 353-362.
func TestBeheardM_TheSeedsSQL(t *testing.T) {
	b := startBeheard(t)
	b.checkAnswer(t, "SET app.actor_id = 'user-ana'", "")
	// The statement returns the rows of the current session. In stage 1, whose intent is emotional_validation, it returns
	// at most five per turn.
	embedding, distance := "(0,0,0,0,0,0,0,0)", "1.3" // a vector of the extension cube, whose distances differ
	if oneText(harness.ConnectSuperuser(t, b.db), "SELECT count(*) FROM pg_extension WHERE extname = 'vector'") == "1" {
		embedding, distance = "[1,0,0,0,0,0,0,0]", "2.1"
	}
	similarQuery := `SELECT ue.* FROM "UserEvent" ue
JOIN "UserVessel" uv ON ue."vesselId" = uv.id
WHERE uv."userId" = current_setting('app.actor_id', true)
  AND uv."sessionId" = current_setting('app.current_session_id', true)
  AND ue.embedding <=> '` + embedding + `' < ` + distance
	b.setStage(t, "2")
	if got := len(splitLines(oneText(b.agent, similarQuery))); got != 5 {
		t.Errorf("similar moments: %d, want 5: %s", got, oneText(b.agent, similarQuery))
	}
	// The seed's threshold is used, with the embedding of one of these moments as a parameter.
	super := harness.ConnectSuperuser(t, b.db)
	text := oneText(super, `SELECT embedding FROM "UserEvent" WHERE "vesselId" = 'uv-ses-1-4-user-ana' ORDER BY id LIMIT 1`)
	parameterizedQuery := strings.Replace(similarQuery, "'"+embedding+"' < "+distance, "$1 < 0.3", 1)
	want := oneText(super, `SELECT id FROM "UserEvent" WHERE "vesselId" = 'uv-ses-1-4-user-ana' AND embedding <=> '`+text+`' < 0.3 ORDER BY id`)
	if got := firstValues(harness.AskExtended(b.agent, parameterizedQuery, []byte(text))); want == "" || got != want {
		t.Errorf("similar moments below 0.3: %q, want %q", got, want)
	}
	// "FORBIDDEN: Any query touching partner's data": the same statement for the partner returns no rows.
	partnersQuery := strings.Replace(similarQuery, "current_setting('app.actor_id', true)", "'user-ben'", 1)
	b.checkAnswer(t, partnersQuery, "")
	if sameSessionQuery := strings.Replace(partnersQuery, "current_setting('app.current_session_id', true)", "'ses-1-4'",
		1); len(splitLines(oneText(super, sameSessionQuery))) != 5 {
		t.Errorf("the owner finds %q of the partner's", oneText(super, sameSessionQuery))
	}
	// In stage 1 the intent allows five rows per turn, and the statement must have that limit.
	b.setStage(t, "1")
	b.checkDenied(t, similarQuery, "at most 5 rows, as they are")
	if got := len(splitLines(oneText(b.agent, similarQuery+" LIMIT 5"))); got != 5 {
		t.Errorf("similar moments, in stage 1: %d, want 5: %s", got, oneText(b.agent, similarQuery+" LIMIT 5"))
	}
	b.setStage(t, "2")
	const consentedQuery = `SELECT cc.id, cc."transformedContent"
FROM "ConsentedContent" cc
JOIN "ConsentRecord" cr ON cc."consentRecordId" = cr.id
WHERE cc."sharedVesselId" = $1
  AND cc."sourceUserId" = $2
  AND cr.decision = 'GRANTED'
  AND cr."revokedAt" IS NULL
  AND cc."consentActive" = true`
	if got := sortedLines(firstValues(harness.AskExtended(b.agent, consentedQuery, []byte("sv-1"), []byte("user-ben")))); got != "content-1-1\ncontent-1-3" {
		t.Errorf("consented content: %q", got)
	}
	b.execAsOwner(t, `UPDATE "ConsentRecord" SET "revokedAt" = now() WHERE id = 'rec-content-1-1'`)
	if got := firstValues(harness.AskExtended(b.agent, consentedQuery, []byte("sv-1"), []byte("user-ben"))); got != "content-1-3" {
		t.Errorf("consented content, of which one was revoked: %q", got)
	}
	b.setStage(t, "4")
	a := harness.AskExtended(b.agent, `SELECT a.id, a.description, a.status, a."agreedAt"
FROM "Agreement" a
WHERE a."sharedVesselId" = $1
  AND a."agreedByA" = true
  AND a."agreedByB" = true
ORDER BY a."agreedAt" DESC`, []byte("sv-1"))
	if got, want := firstValues(a), oneText(super,
		`SELECT id FROM "Agreement" WHERE "sharedVesselId" = 'sv-1' AND "agreedByA" AND "agreedByB" ORDER BY "agreedAt" DESC`); len(splitLines(want)) != 3 ||
		got != want {
		t.Errorf("agreements: %q, want %q", got, want)
	}
	for _, sql := range []string{`SELECT "userId" FROM "UserVessel"`, `SELECT id, decision FROM "ConsentRecord"`} {
		b.checkAnswer(t, sql, "42501")
	}
	b.proxy.Tap().RequireNoMarker(t)
}

// firstValues returns the first value of each row of an answer, or the SQLSTATE of its error.
func firstValues(a harness.Answer) string {
	if a.Code != "" || len(a.Results) != 1 {
		return a.Code
	}
	var out []string
	for _, row := range a.Results[0].Rows {
		value, _, _ := strings.Cut(row, "\t")
		out = append(out, value)
	}
	return strings.Join(out, "\n")
}

func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// The contract depends on the session that is claimed when the statement runs. Transactions and savepoints set and undo
// that claim.
func TestBeheardB_ClaimsInTransactions(t *testing.T) {
	b := startBeheard(t)
	b.execAsOwner(t, `UPDATE "Session" SET stage = 2 WHERE id = 'ses-2-4'`) // ses-1-4 is in stage 1
	const agreementsQuery = `SELECT id FROM "Agreement" LIMIT 1`
	for _, step := range [][2]string{
		{agreementsQuery, "42501"},
		{"BEGIN", ""}, {"SET LOCAL app.current_session_id = 'ses-2-4'", ""}, {agreementsQuery, "agree-2-1"}, {
			"COMMIT; " + agreementsQuery, "42501"}, {"ROLLBACK", ""}, {agreementsQuery, "42501"},
		{"BEGIN", ""}, {"SAVEPOINT a", ""}, {"SET app.current_session_id = 'ses-2-4'", ""}, {
			agreementsQuery, "agree-2-1"}, {"ROLLBACK TO a", ""}, {agreementsQuery, "42501"}, {"ROLLBACK", ""},
		{"SET app.current_session_id = 'ses-2-4'; " + agreementsQuery, "42501"}, {agreementsQuery, "42501"},
		{"SET app.current_session_id = 'ses-2-4'", ""}, {agreementsQuery, "agree-2-1"}, {"RESET ALL", ""}, {agreementsQuery, "42501"},
	} {
		b.checkAnswer(t, step[0], step[1])
	}
	b.connectAs(t, "ana", "ses-1-4")
}
