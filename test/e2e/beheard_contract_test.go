package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	harness "github.com/pgconsent/pgconsent/test/instance"
)

// errorMessage returns the error message that the agent gets for a statement, or "" if rows are returned.
func (b *beheard) errorMessage(t *testing.T, sql string) string {
	t.Helper()
	if _, err := b.agent.Exec(t.Context(), sql).ReadAll(); err != nil {
		return err.Error()
	}
	return ""
}

// countRows returns the number of rows that the agent gets, and the message of the error.
func (b *beheard) countRows(t *testing.T, sql string) (rows int, message string) {
	t.Helper()
	results, err := b.agent.Exec(t.Context(), sql).ReadAll()
	for _, r := range results {
		rows += len(r.Rows)
	}
	if err != nil {
		message = err.Error()
	}
	return rows, message
}

func (b *beheard) checkDenied(t *testing.T, sql, message string) {
	t.Helper()
	if got := b.errorMessage(t, sql); !strings.Contains(got, message) || !strings.Contains(got, "SQLSTATE 42501") {
		t.Errorf("%s\n got %q\nwant %q", sql, got, message)
	}
}

// updateTurn changes the open turn of the user ana.
func (b *beheard) updateTurn(t *testing.T, assignments string) {
	t.Helper()
	b.execAsOwner(t, `UPDATE "Turn" SET `+assignments+` WHERE "sessionId" = 'ses-1-4' AND "userId" = 'user-ana' AND "sealedAt" IS NULL`)
}

const (
	searchEvents  = `SELECT id FROM "UserEvent" ORDER BY embedding <-> (SELECT x.embedding FROM "UserEvent" x LIMIT 1) LIMIT 5`
	nearestEvents = `SELECT e.content FROM "UserEvent" e WHERE e.embedding <-> e.embedding < 1 ORDER BY e."createdAt" LIMIT 5`
	nearestNeeds  = `SELECT n.name FROM "Need" n WHERE n.embedding <-> n.embedding < 1 LIMIT 5`
)

// SYSTEMS.md 3 a: each line of the five tables of the seed, which say what a stage allows and forbids.
// seeds/002:33-61, 86-92, 94, 117-126, 178-187, 247-255, 295-305, 363-366.
func TestBeheardA_StageContracts(t *testing.T) {
	b := startBeheard(t)
	const notAllowed = "is not allowed; this statement would "
	for _, c := range []struct {
		line        int
		stage, name string
		sql, want   string // want is the message of the refusal; "": rows are returned
	}{
		{88, "0", "allowed: metadata of previous sessions", `SELECT count(*), min("createdAt"), max("completedAt") FROM "Session" GROUP BY status`, ""},
		{89, "0", "allowed: outcomes of previous sessions", `SELECT kind, summary FROM "SessionOutcome"`, ""},
		{90, "0", "allowed: metadata of the relationship", `SELECT "createdAt", (SELECT count(*) FROM "Session") FROM "Relationship"`, ""},
		{90, "0", "allowed: metadata of the relationship, and no more", `SELECT "userBId" FROM "Relationship"`,
			"relationship " + notAllowed + "read it (structured)"},
		{88, "0", "allowed: metadata of sessions, and no more", `SELECT notes FROM "Session"`, "session " + notAllowed + "read it (structured)"},
		{91, "0", "forbidden: data of the partner", `SELECT "transformedContent" FROM "ConsentedContent"`,
			"contract retrieval, stage 0: consented_content " + notAllowed + "read it (structured)"},
		{92, "0", "forbidden: events", `SELECT content FROM "UserEvent"`, "contract retrieval, stage 0: event " + notAllowed +
			"read it (structured)"},
		{92, "0", "forbidden: emotions", `SELECT emotion FROM "EmotionalReading"`, "reading " + notAllowed},
		{92, "0", "forbidden: needs", `SELECT count(*) FROM "Need"`, "need " + notAllowed + "read its metadata"},
		{94, "0", "vector scope: none", searchEvents, "event " + notAllowed + "search it by likeness (vector)"},
		{94, "0", "vector scope: none, not even of outcomes",
			`SELECT summary FROM "SessionOutcome" ORDER BY similarity(summary, 'walk') LIMIT 1`, "outcome " + notAllowed + "search it by likeness (vector)"},

		{119, "1", "allowed: own input", `SELECT content FROM "UserEvent" ORDER BY "createdAt" DESC LIMIT 5`, ""},
		{120, "1", "allowed: own emotional readings", `SELECT emotion, intensity FROM "EmotionalReading" LIMIT 5`, ""},
		{121, "1", "allowed: own content of prior sessions",
			`SELECT e.content FROM "UserEvent" e JOIN "UserVessel" v ON v.id = e."vesselId" WHERE v."sessionId" = 'ses-1-2' LIMIT 5`, ""},
		{121, "1", "allowed: own needs", `SELECT name FROM "Need" LIMIT 5`, ""},
		{121, "1", "allowed: own boundaries", `SELECT description FROM "Boundary" LIMIT 5`, ""},
		{122, "1", "forbidden: data of the partner", `SELECT "transformedContent" FROM "ConsentedContent" LIMIT 5`,
			"contract retrieval, stage 1: consented_content " + notAllowed},
		{123, "1", "forbidden: shared vessel", `SELECT description FROM "Agreement" LIMIT 5`, "contract retrieval, stage 1: agreement " +
			notAllowed},
		{123, "1", "forbidden: shared vessel, common ground", `SELECT description FROM "CommonGround" LIMIT 5`, "common_ground " + notAllowed},
		{123, "1", "forbidden: shared vessel, experiments", `SELECT description FROM "MicroExperiment" LIMIT 5`, "micro_experiment " +
			notAllowed},
		{124, "1", "forbidden: synthesis", `SELECT map FROM "AISynthesis" LIMIT 5`, "contract retrieval, stage 1: synthesis " + notAllowed},
		{126, "1", "vector scope: own content", nearestEvents, ""},
		{126, "1", "vector scope: own content only",
			`SELECT id FROM "GlobalExperiment" ORDER BY embedding <-> embedding LIMIT 5`, "contract retrieval, stage 1: library " + notAllowed},

		{180, "2", "allowed: own events", `SELECT content FROM "UserEvent"`, ""},
		{180, "2", "allowed: own readings, needs and boundaries",
			`SELECT r.emotion, n.name, d.description FROM "EmotionalReading" r, "Need" n, "Boundary" d`, ""},
		{181, "2", "allowed: consented content", `SELECT "transformedContent" FROM "ConsentedContent"`, ""},
		{181, "2", "allowed: common ground", `SELECT description FROM "CommonGround"`, ""},
		{182, "2", "allowed: reflections of the partner",
			`SELECT "transformedContent" FROM "ConsentedContent" WHERE kind = 'reflection' AND "sourceUserId" = 'user-ben'`, ""},
		{184, "2", "forbidden: synthesis", `SELECT map FROM "AISynthesis"`, "contract role, role agent: synthesis " + notAllowed},
		{187, "2", "vector scope: own", nearestEvents, ""},
		{187, "2", "vector scope: shared", `SELECT c.id FROM "ConsentedContent" c WHERE c.embedding <-> c.embedding < 1`, ""},
		{187, "2", "vector scope: no agreement",
			`SELECT id FROM "Agreement" ORDER BY similarity(description, 'phones') DESC LIMIT 1`, "agreement " + notAllowed + "search it by likeness (vector)"},
		{187, "2", "vector scope: no library", `SELECT id FROM "GlobalExperiment" ORDER BY embedding <-> embedding LIMIT 5`, "library " +
			notAllowed},

		{249, "3", "allowed: own needs", `SELECT name FROM "Need"`, ""},
		{250, "3", "allowed: consented needs", `SELECT "transformedContent" FROM "ConsentedContent" WHERE kind = 'need'`, ""},
		{251, "3", "allowed: common ground", `SELECT description FROM "CommonGround"`, ""},
		{252, "3", "forbidden: events", `SELECT content FROM "UserEvent"`, "contract retrieval, stage 3: event " + notAllowed},
		{252, "3", "forbidden: readings", `SELECT emotion FROM "EmotionalReading"`, "contract retrieval, stage 3: reading " + notAllowed},
		{255, "3", "vector scope: needs", nearestNeeds, ""},
		{255, "3", "vector scope: not events", nearestEvents, "contract retrieval, stage 3: event " + notAllowed +
			"search it by likeness (vector)"},
		{255, "3", "vector scope: not content",
			`SELECT c.id FROM "ConsentedContent" c WHERE c.embedding <-> c.embedding < 1`, "consented_content " + notAllowed + "search it by likeness (vector)"},

		{297, "4", "allowed: shared vessel", `SELECT "transformedContent" FROM "ConsentedContent"`, ""},
		{298, "4", "allowed: common ground", `SELECT description FROM "CommonGround"`, ""},
		{299, "4", "allowed: agreements", `SELECT description FROM "Agreement" ORDER BY "agreedAt" DESC`, ""},
		{300, "4", "allowed: experiments and outcomes", `SELECT description, outcome FROM "MicroExperiment"`, ""},
		{301, "4", "allowed: library", `SELECT title FROM "GlobalExperiment" g ORDER BY g.embedding <-> g.embedding LIMIT 3`, ""},
		{302, "4", "forbidden: events", `SELECT content FROM "UserEvent"`, "contract retrieval, stage 4: event " + notAllowed},
		{302, "4", "forbidden: readings", `SELECT emotion FROM "EmotionalReading"`, "reading " + notAllowed},
		{302, "4", "forbidden: needs", `SELECT name FROM "Need"`, "need " + notAllowed},
		{302, "4", "forbidden: boundaries", `SELECT description FROM "Boundary"`, "boundary " + notAllowed},
		{303, "4", "requires: structured records",
			`SELECT id FROM "Agreement" ORDER BY description <-> 'phones' LIMIT 1`, "agreement " + notAllowed + "search it by likeness (vector)"},
		{303, "4", "requires: structured records, of experiments",
			`SELECT id FROM "MicroExperiment" WHERE description % 'walk'`, "micro_experiment " + notAllowed + "search it by likeness (vector)"},
		{304, "4", "vector scope: not the user's memory", nearestEvents, "event " + notAllowed + "search it by likeness (vector)"},
		{304, "4", "vector scope: not shared content",
			`SELECT c.id FROM "ConsentedContent" c WHERE c.embedding <-> c.embedding < 1`, "consented_content " + notAllowed + "search it by likeness (vector)"},
		{305, "4", "vector scope: the library, by likeness alone", `SELECT title FROM "GlobalExperiment"`, "library " + notAllowed + "read it (structured)"},
	} {
		t.Run(fmt.Sprintf("stage %s, %s (line %d)", c.stage, c.name, c.line), func(t *testing.T) {
			b.setStage(t, c.stage)
			if c.stage == "1" && c.want == "" {
				b.startNextTurn(t) // each turn has five rows
			}
			if strings.Contains(c.sql, "similarity(") || strings.Contains(c.sql, " % ") || strings.Contains(c.sql, "<-> 'phones'") {
				b.requireTrigrams(t)
			}
			want := c.want
			if want != "" && !strings.HasPrefix(want, "contract ") {
				want = "contract retrieval, stage " + c.stage + ": " + want
			}
			rows, got := b.countRows(t, c.sql)
			if want == "" && (got != "" || rows == 0) || want != "" && (!strings.Contains(got, want) || !strings.Contains(got, "SQLSTATE 42501")) {
				t.Errorf("%s\n got %q and %d rows\nwant %q", c.sql, got, rows, want)
			}
		})
	}
	// Rows of a forbidden or missing partner are never returned.
	const partnerRows = ` x JOIN "UserVessel" v ON v.id = x."vesselId" WHERE v."userId" <> 'user-ana' LIMIT 5`
	for _, c := range []struct {
		line             int
		stage, name, sql string
	}{
		{122, "1", "forbidden: events of the partner", `SELECT x.content FROM "UserEvent"` + partnerRows},
		{125, "1", "requires: one's own readings", `SELECT x.emotion FROM "EmotionalReading"` + partnerRows},
		{183, "2", "forbidden: events of the partner", `SELECT x.content FROM "UserEvent"` + partnerRows},
		{183, "2", "forbidden: readings of the partner", `SELECT x.emotion FROM "EmotionalReading"` + partnerRows},
		{185, "2", "forbidden: content that is not consented", `SELECT "transformedContent" FROM "ConsentedContent" WHERE "consentActive" IS NOT TRUE`},
		{186, "2", "requires: an active consent",
			`SELECT c.id FROM "ConsentedContent" c LEFT JOIN "ConsentRecord" r ON r.id = c."consentRecordId" ` +
				`AND r.decision = 'GRANTED' AND r."revokedAt" IS NULL WHERE r.id IS NULL`},
		{253, "3", "forbidden: needs of the partner", `SELECT x.name FROM "Need"` + partnerRows},
		{254, "3", "requires: confirmed needs", `SELECT name FROM "Need" WHERE confirmed IS NOT TRUE`},
		{298, "4", "allowed: common ground that both confirmed",
			`SELECT id FROM "CommonGround" WHERE "confirmedByA" IS NOT TRUE OR "confirmedByB" IS NOT TRUE`},
	} {
		t.Run(fmt.Sprintf("stage %s, %s (line %d)", c.stage, c.name, c.line), func(t *testing.T) {
			b.setStage(t, c.stage)
			b.startNextTurn(t)
			if oneText(harness.ConnectSuperuser(t, b.db), c.sql) == "" {
				t.Errorf("%s: the owner finds nothing either", c.sql)
			}
			b.checkAnswer(t, c.sql, "")
		})
	}
	b.proxy.Tap().RequireNoMarker(t)
}

// SYSTEMS.md 3 a: each stage may retrieve from each object only by the listed kinds of access, and nothing else.
// seeds/002:14, 20, 33-61, 62-68, 94, 100-107, 137-153, 193-221, 261-285, 322-351, 424.
func TestBeheardA_StagesRetrieveNothingElse(t *testing.T) {
	b := startBeheard(t)
	b.requireTrigrams(t)
	for _, o := range []struct {
		object, table, metadata, content, similarity string
		allowedSources                               [5]string // by stage: m metadata, s structured, v vector
	}{
		{"session", "Session", "status", "notes", "similarity(notes, 'x')", [5]string{"m", "m", "m", "", ""}},
		{"relationship", "Relationship", "status", "\"userBId\"", "similarity(\"userBId\", 'x')", [5]string{"m", "m", "m", "", ""}},
		{"outcome", "SessionOutcome", "id", "summary", "similarity(summary, 'x')", [5]string{"s", "s", "", "", ""}},
		{"event", "UserEvent", "id", "content", "embedding <-> embedding", [5]string{"", "msv", "msv", "", ""}},
		{"reading", "EmotionalReading", "id", "emotion", "embedding <-> embedding", [5]string{"", "msv", "msv", "", ""}},
		{"need", "Need", "id", "name", "embedding <-> embedding", [5]string{"", "msv", "msv", "msv", ""}},
		{"boundary", "Boundary", "id", "description", "similarity(description, 'x')", [5]string{"", "s", "s", "", ""}},
		{"consented_content", "ConsentedContent", "id", "\"transformedContent\"", "embedding <-> embedding", [5]string{"", "", "sv", "s", "s"}},
		{"common_ground", "CommonGround", "id", "description", "similarity(description, 'x')", [5]string{"", "", "s", "s", "s"}},
		{"agreement", "Agreement", "id", "description", "similarity(description, 'x')", [5]string{"", "", "s", "", "s"}},
		{"micro_experiment", "MicroExperiment", "id", "description", "similarity(description, 'x')", [5]string{"", "", "s", "", "s"}},
		{"library", "GlobalExperiment", "id", "title", "embedding <-> embedding", [5]string{"", "", "", "", "v"}},
		{"synthesis", "AISynthesis", "id", "map", "similarity(map, 'x')", [5]string{}}, // only planners may use this object
		{"user_vessel", "UserVessel", "id", "\"userId\"", "similarity(id, 'x')", [5]string{}},
		{"shared_vessel", "SharedVessel", "id", "\"relationshipId\"", "similarity(id, 'x')", [5]string{}},
		{"consent_record", "ConsentRecord", "id", "decision", "similarity(id, 'x')", [5]string{}},
	} {
		for stage, allowedSources := range o.allowedSources {
			b.setStage(t, fmt.Sprint(stage))
			for source, sql := range map[string]string{
				"m": fmt.Sprintf(`SELECT %s FROM "%s" LIMIT 1`, o.metadata, o.table),
				"s": fmt.Sprintf(`SELECT %s FROM "%s" LIMIT 1`, o.content, o.table),
				"v": fmt.Sprintf(`SELECT %s FROM "%s" ORDER BY %s LIMIT 1`, o.metadata, o.table, o.similarity),
			} {
				if stage == 1 {
					b.startNextTurn(t)
				}
				wasAllowed := strings.Contains(allowedSources, source) || source == "m" && strings.Contains(allowedSources, "s") // structured reads include the key column
				rows, got := b.countRows(t, sql)
				if wasAllowed && got == "" && rows != 1 {
					t.Errorf("stage %d, %s from %s: %d rows, want one", stage, o.object, source, rows)
				}
				if stage == 1 && wasAllowed && strings.Contains(got, "contract intent, intent emotional_validation: "+o.object) {
					got = "" // the contract allows it, but the intent's plan allows the user's own content only
				}
				if wasAllowed != (got == "") || !wasAllowed && !strings.Contains(got, "SQLSTATE 42501") {
					t.Errorf("stage %d, %s from %s: %q", stage, o.object, source, got)
				}
			}
		}
	}
	b.proxy.Tap().RequireNoMarker(t)
}

// requireTrigrams fails a test if the server lacks pg_trgm, one of PostgreSQL's contrib modules, which setup installs.
func (b *beheard) requireTrigrams(t *testing.T) {
	t.Helper()
	if !b.hasTrigrams(t) {
		t.Fatal("the server has no pg_trgm: install PostgreSQL's contrib modules")
	}
}

func (b *beheard) hasTrigrams(t *testing.T) bool {
	t.Helper()
	return b.errorMessage(t, "SELECT similarity('a', 'b')") == ""
}

// SYSTEMS.md 3 d: a search by similarity is recognized and refused in whatever form SQL can express it.
// seeds/002:14, 311-313.
func TestBeheardD_Likeness(t *testing.T) {
	b := startBeheard(t)
	b.requireTrigrams(t)
	distance := "cube_distance"
	if oneText(harness.ConnectSuperuser(t, b.db), "SELECT count(*) FROM pg_extension WHERE extname = 'vector'") == "1" {
		distance = "l2_distance"
	}
	b.setStage(t, "4")
	const searchDenial = "event is not allowed; this statement would search it by likeness (vector)"
	for _, sql := range []string{
		`SELECT 1 FROM "UserEvent" ORDER BY (embedding <-> embedding)`,
		`SELECT embedding <-> embedding FROM "UserEvent" ORDER BY 1`,
		`SELECT embedding <-> embedding AS d FROM "UserEvent" ORDER BY d`,
		`WITH e AS (SELECT id, embedding AS x FROM "UserEvent") SELECT id FROM e ORDER BY x <-> x`,
		`SELECT id FROM (SELECT * FROM "UserEvent") q ORDER BY q.embedding <-> q.embedding`,
		`SELECT rank() OVER (ORDER BY embedding <-> embedding) FROM "UserEvent"`,
		`SELECT embedding::text FROM "UserEvent"`,
		`SELECT to_jsonb(e) FROM "UserEvent" e`,
		`SELECT g.title FROM "GlobalExperiment" g, LATERAL (SELECT e.id FROM "UserEvent" e ORDER BY e.embedding <-> g.embedding LIMIT 1) x`,
		`PREPARE p AS SELECT id FROM "UserEvent" ORDER BY embedding <-> embedding`,
		`COPY (SELECT id FROM "UserEvent" ORDER BY embedding <-> embedding) TO STDOUT`,
		`BEGIN; DECLARE c CURSOR FOR SELECT id FROM "UserEvent" ORDER BY embedding <-> embedding; COMMIT`,
		`SELECT id FROM "UserEvent" ORDER BY embedding OPERATOR(public.<->) embedding`,
		`SELECT id FROM "UserEvent" GROUP BY id HAVING min(embedding <-> embedding) < 1`,
		`SELECT id FROM "UserEvent" ORDER BY CASE WHEN embedding <-> embedding < 1 THEN 0 END`,
		`SELECT id FROM "UserEvent" ORDER BY ` + distance + `(embedding, embedding)`,
		`SELECT id FROM "UserEvent" e JOIN LATERAL (SELECT ` + distance + `(e.embedding, e.embedding)) AS d (x) ON true ORDER BY d.x`,
		`SELECT id FROM "UserEvent" ORDER BY similarity(content, 'we argued')`,
		`SELECT id FROM "UserEvent" WHERE content % 'we argued'`, `SELECT id FROM "UserEvent" ORDER BY content <-> 'we argued'`,
		`SELECT id FROM "UserEvent" ORDER BY 'argued' <<-> content`,
		`SELECT id FROM "UserEvent" WHERE word_similarity('argued', content) > 0.5`,
		`SELECT id FROM "UserEvent" WHERE strict_word_similarity('argued', content) > 0.5`,
	} {
		b.checkDenied(t, sql, searchDenial)
	}
	b.proxy.Tap().RequireNoMarker(t)
}

// SYSTEMS.md 3 f: each turn has one plan, which agents cannot write. Nothing outside the plan is retrieved, and nothing
// after the turn is sealed.
// seeds/002:20, 22, 435-438.
func TestBeheardF_Plan(t *testing.T) {
	b := startBeheard(t)
	b.setStage(t, "2")
	b.updateTurn(t, "phase = 'generation', plan = NULL")
	const eventsQuery = `SELECT content FROM "UserEvent"`
	b.checkDenied(t, eventsQuery, "contract phase, phase generation: there is no plan")
	b.updateTurn(t, "plan = 'need:structured,event:metadata'")
	b.checkDenied(t, eventsQuery, "contract phase, phase generation: event is not in the plan; this statement would read it (structured)")
	for _, sql := range []string{`SELECT name FROM "Need"`, `SELECT count(*) FROM "UserEvent"`, `SELECT count(*) FROM "Need"`} {
		if got := b.errorMessage(t, sql); got != "" {
			t.Errorf("%s: %s", sql, got)
		}
	}
	b.checkDenied(t, nearestNeeds, "need is not in the plan; this statement would search it by likeness (vector)")
	plannerConn := b.connectAs(t, "planner", "ses-1-4")
	for _, sql := range []string{ // an agent cannot set another plan or turn
		`UPDATE "Turn" SET plan = 'event:structured'`, `UPDATE "Turn" SET phase = 'planning'`, `DELETE FROM "Turn"`,
		`INSERT INTO "Turn" (id, "sessionId", "userId", message) VALUES ('x', 'ses-1-4', 'user-ana', 'x')`,
	} {
		b.checkAnswer(t, sql, "42501")
		if got := oneText(plannerConn, sql); got != "42501" {
			t.Errorf("the planner: %s: %q", sql, got)
		}
	}
	b.updateTurn(t, `"sealedAt" = now()`)
	b.checkDenied(t, `SELECT name FROM "Need"`, "allows nothing: the session has no")
	b.proxy.Tap().RequireNoMarker(t)
}

// SYSTEMS.md 3 g: the first intent that matches applies, and it can only narrow what the stage allows.
// seeds/002:387-412.
func TestBeheardG_Intents(t *testing.T) {
	b := startBeheard(t)
	const needsQuery, eventsQuery = `SELECT name FROM "Need"`, `SELECT content FROM "UserEvent"`
	const outcomesQuery = `SELECT "sessionId" FROM "SessionOutcome" GROUP BY 1`
	b.setStage(t, "2")
	b.updateTurn(t, "intensity = 8, message = 'as we agreed'") // seeds/002:400-401
	b.checkDenied(t, needsQuery, "contract intent, intent avoid_recall: nothing may be retrieved")
	b.checkDenied(t, `SELECT count(*) FROM "Session"`, "contract intent, intent avoid_recall: nothing may be retrieved")
	b.setStage(t, "1") // this intent comes first, also in stage 1
	b.checkDenied(t, eventsQuery+" LIMIT 5", "contract intent, intent avoid_recall: nothing may be retrieved")
	b.updateTurn(t, "intensity = 10")
	b.checkDenied(t, eventsQuery+" LIMIT 5", "contract intent, intent avoid_recall: nothing may be retrieved")
	b.setStage(t, "2")
	b.updateTurn(t, "intensity = 7, message = 'We Agreed, or we had agreed'") // the message does not contain the exact words
	if rows, got := b.countRows(t, nearestNeeds); got != "" || rows == 0 {
		t.Errorf("%d rows, %s", rows, got)
	}
	b.updateTurn(t, "message = 'as we agreed'") // seeds/002:406-407
	if got := b.errorMessage(t, needsQuery); got != "" {
		t.Error(got)
	}
	b.checkDenied(t, nearestNeeds,
		"contract intent, intent recall_commitment: need is not allowed; this statement would search it by likeness")
	b.setStage(t, "1") // the stage has priority over the message; seeds/002:403-404
	b.checkDenied(t, eventsQuery, "contract intent, intent emotional_validation: at most 5 rows, as they are")
	b.checkDenied(t, `SELECT string_agg(content, '') FROM "UserEvent" LIMIT 1`, "at most 5 rows, as they are")
	if got := b.errorMessage(t, eventsQuery+" LIMIT 5"); got != "" {
		t.Error(got)
	}
	b.checkDenied(t, eventsQuery+" LIMIT 1", "at most 5 rows per turn, and they have been taken")
	b.checkDenied(t, outcomesQuery,
		"contract intent, intent emotional_validation: outcome is not allowed") // the user's own content is allowed
	b.updateTurn(t, `message = 'hello', "defaultIntent" = 'stage_enforcement'`)
	b.setStage(t, "2")
	b.checkDenied(t, needsQuery, "contract intent, intent stage_enforcement: nothing may be retrieved")
	b.updateTurn(t, `"defaultIntent" = 'offer_continuity'`)
	b.checkDenied(t, needsQuery, "contract intent, intent offer_continuity: need is not allowed")
	b.checkDenied(t, outcomesQuery, "contract retrieval, stage 2: outcome is not allowed") // an intent can only narrow the stage
	b.setStage(t, "0")
	b.checkAnswer(t, outcomesQuery, "ses-1-3") // an outcome of the last session
	b.updateTurn(t, `"defaultIntent" = 'something else'`)
	b.checkDenied(t, outcomesQuery, "contract intent, intent something else: nothing is allowed")
	b.proxy.Tap().RequireNoMarker(t)
}

// SYSTEMS.md 3 h: the audit has a record of every attempt, allowed or not.
// seeds/002:423.
func TestBeheardH_Audit(t *testing.T) {
	auditFolder := t.TempDir() + "/audit"
	b := startBeheard(t, func(d *harness.Database) { d.Audit = auditFolder })
	b.setStage(t, "4")
	b.checkAnswer(t, `SELECT count(*) FROM "Agreement" WHERE description <> ''`, "3")
	b.checkDenied(t, `SELECT content FROM "UserEvent"`, "contract retrieval")
	wasAllowed, wasDenied, rows := false, false, map[uint64]int64{}
	if _, err := audit.Walk(auditFolder, func(r audit.Record) error {
		var d audit.Decision
		var o audit.Outcome
		if err := json.Unmarshal(r.Line, &d); err != nil {
			return err
		}
		if err := json.Unmarshal(r.Line, &o); err != nil {
			return err
		}
		if r.Kind == "outcome" {
			rows[o.Decision] = o.Rows
			return nil
		}
		for _, c := range d.Contracts {
			hasAttributes := d.Attributes["session"] == "ses-1-4" && d.Attributes["stage"] == "4" &&
				d.Attributes["intent"] != "" && d.Attributes["phase"] == "planning" && d.Attributes["turn"] != ""
			if c.Name != "retrieval" || c.Value != "4" || !hasAttributes || len(d.Tables) != 1 || d.Tables[0].DataSource != "structured" {
				continue
			}
			wasAllowed = wasAllowed || c.Verdict == "allow" && d.Verdict == "allow" && d.Tables[0].Name == "public.Agreement"
			wasDenied = wasDenied || c.Verdict == "deny" && d.Verdict == "deny" && d.SQLState == "42501" && d.Tables[0].Name == "public.UserEvent"
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !wasAllowed || !wasDenied || len(rows) == 0 {
		t.Errorf("the trail lacks an attempt: allowed %t, denied %t, %d outcomes", wasAllowed, wasDenied, len(rows))
	}
}

// SYSTEMS.md 3 l: one statement may not read both the user's vessel and the shared vessel; separate statements may.
// seeds/002:431.
func TestBeheardL_VesselsAreQueriedSeparately(t *testing.T) {
	b := startBeheard(t)
	b.setStage(t, "2")
	const vesselError = "may not be in one statement: their vessels are"
	for _, sql := range []string{
		`SELECT content FROM "UserEvent" UNION ALL SELECT "transformedContent" FROM "ConsentedContent"`,
		`SELECT e.content FROM "UserEvent" e, "Agreement" a`,
		`SELECT content FROM "UserEvent" WHERE content IN (SELECT description FROM "CommonGround")`,
		`WITH s AS (SELECT "transformedContent" FROM "ConsentedContent") SELECT content FROM "UserEvent" WHERE EXISTS (TABLE s)`,
		`SELECT a.id FROM "Agreement" a JOIN "UserVessel" v ON v.id = a.id`,
	} {
		b.checkDenied(t, sql, vesselError)
	}
	if got := b.errorMessage(t, `SELECT content FROM "UserEvent"; SELECT "transformedContent" FROM "ConsentedContent"`); got != "" {
		t.Errorf("statements of their own: %s", got)
	}
	b.proxy.Tap().RequireNoMarker(t)
}

// SYSTEMS.md 3 n: a contract can be narrowed to named, parameterized statements.
// seeds/002:20, 435-438.
func TestBeheardN_NamedStatements(t *testing.T) {
	b := startBeheard(t, func(d *harness.Database) {
		d.Policy += `  named:
    allow: everything
    statements:
      agreements: |
        SELECT a.id, a.description, a.status, a."agreedAt" FROM "Agreement" a
        WHERE a."sharedVesselId" = $1 AND a."agreedByA" = true AND a."agreedByB" = true ORDER BY a."agreedAt" DESC
`
	})
	b.setStage(t, "4")
	const agreementsQuery = `SELECT a.id, a.description, a.status, a."agreedAt" FROM "Agreement" a WHERE a."sharedVesselId" = %s AND a."agreedByA" = true ` +
		`AND a."agreedByB" = true ORDER BY a."agreedAt" DESC`
	for _, sql := range []string{fmt.Sprintf(agreementsQuery, "'sv-1'"), fmt.Sprintf(agreementsQuery, "'sv-1'") + ";",
		"PREPARE p AS " + fmt.Sprintf(agreementsQuery, "$1"), "EXECUTE p ('sv-1')"} {
		if got := b.errorMessage(t, sql); got != "" {
			t.Errorf("%s: %s", sql, got)
		}
	}
	a := harness.AskExtended(b.agent, fmt.Sprintf(agreementsQuery, "$1"), []byte("sv-1"))
	if a.Code != "" || len(a.Results) != 1 || len(a.Results[0].Rows) != 3 {
		t.Errorf("by parameter: %s", a)
	}
	for _, sql := range []string{
		fmt.Sprintf(agreementsQuery, `a."sharedVesselId"`), fmt.Sprintf(agreementsQuery, "'sv-1' OR true"), fmt.Sprintf(agreementsQuery,
			"'sv-1'") + " LIMIT 1",
		strings.Replace(fmt.Sprintf(agreementsQuery, "'sv-1'"), `"agreedByB" = true`, `"agreedByB" = false`,
			1), `SELECT description FROM "Agreement"`,
	} {
		b.checkDenied(t, sql, "contract named: the statement is none of those that the contract allows")
	}
	b.proxy.Tap().RequireNoMarker(t)
}
