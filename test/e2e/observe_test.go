package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/internal/tool/observe"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// observedPolicy only observes the tables people, with hidden and masked columns, and participants. Memories are
// enforced.
const observedPolicy = `version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  memories:
    rows:
      - own: { column: user_id, is: user }
      - consent: { every: [ memory_participants: { memory_id: id }, people: { id: person_id } ], status: consent_status, is: granted }
  people:
    observe: true
    rows: [ { own: { column: user_id, is: user } }, { status: { column: consent_status, is: granted } } ]
    columns: { id: allow, user_id: allow, name: { mask: { generalise: 1 } } }
    write: { commands: [delete], accept: [references] }
  memory_participants: { observe: true, rows: [ { visible: { memories: { id: memory_id } } }, { visible: { people: { id: person_id } } } ] }
  memory_edges: { rows: [ { visible: { memories: { id: from_memory_id } } } ] }
`

func TestObserve(t *testing.T) {
	tier.All(t)
	for name, mode := range map[string]rewrite.Mode{"both": rewrite.InjectedMode, "auto": rewrite.AutoMode} {
		t.Run(name, func(t *testing.T) {
			file := strings.Replace(observedPolicy, "  memory_edges: { rows: [ { visible: { memories: { id: from_memory_id } } } ] }\n", "", 1)
			in := start(t, options{policy: file, mode: mode})
			enforcedInstance := startForReading(t, options{mode: mode})
			agent, enforcedAgent, owner := in.agent(t), enforcedInstance.agent(t), in.superuserConn(t)
			wantSame := func(sql string) {
				t.Helper()
				if got, want := harness.Ask(agent, sql).String(), harness.Ask(owner, sql).String(); got != want {
					t.Errorf("%s: observed tables are not open:\n%s\nwant\n%s", sql, harness.Truncate(got), harness.Truncate(want))
				}
			}
			// Agents see all rows and columns of an observed table.
			wantSame("SELECT * FROM people ORDER BY id")
			wantSame("SELECT count(*) FROM memory_participants")
			wantSame("SELECT consent_status, count(*) FROM people GROUP BY 1 ORDER BY 1")
			wantSame("SELECT p.name, count(*) FROM people p JOIN memory_participants m ON m.person_id = p.id GROUP BY 1 ORDER BY 1")
			// Enforced rules behave as in a policy without observation.
			for _, sql := range []string{
				"SELECT id, title FROM memories ORDER BY id", "SELECT count(*) FROM memories",
				"SELECT count(DISTINCT m.id), max(m.title) FROM memories m LEFT JOIN memory_participants p ON " +
					"p.memory_id = m.id LEFT JOIN people q ON q.id = p.person_id",
			} {
				if got, want := harness.Ask(agent, sql).String(), harness.Ask(enforcedAgent, sql).String(); got != want {
					t.Errorf("%s: the enforced table is not as without:\n%s\nwant\n%s", sql, harness.Truncate(got), harness.Truncate(want))
				}
			}
			// Rules about writing are enforced on observed tables as well.
			if got := harness.Ask(agent, "DELETE FROM people WHERE consent_status <> 'granted' OR user_id <> '"+
				user1+"' RETURNING id"); got.Code != "" || got.Results[0].Tag != "DELETE 0" {
				t.Errorf("agents delete rows that the policy hides: %s", got)
			}
			for _, sql := range []string{"UPDATE people SET name = 'x'", "SELECT * FROM memory_edges", "LISTEN x"} {
				if got := harness.Ask(agent, sql); got.Code != "42501" && got.Code != "0A000" {
					t.Errorf("%s: %s", sql, got)
				}
			}
			harness.Ask(agent, "SELECT p.name FROM people p, memory_participants q WHERE q.person_id = p.id AND p.name = '1 secret literal'")

			var report *observe.Report
			findStatement := func(tables string, matches func(*observe.Statement) bool) *observe.Statement {
				for _, s := range report.Statements {
					if strings.Join(s.Tables, " ") == tables && matches(s) {
						return s
					}
				}
				return nil
			}
			var countStatement, joinStatement *observe.Statement
			for deadline := time.Now().Add(tier.Patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
				var err error
				if report, err = observe.ReadReport(audit.Folder(in.audit), time.Time{}); err != nil {
					t.Fatal(err)
				}
				countStatement = findStatement("public.memory_participants", func(s *observe.Statement) bool { return s.ComparedExecutions > 0 })
				joinStatement = findStatement("public.memory_participants public.people", func(s *observe.Statement) bool { return len(s.Masked) > 0 && s.Executions > 0 })
				if countStatement != nil && joinStatement != nil {
					break
				}
			}
			if countStatement == nil || countStatement.Executions != 1 || countStatement.Rows != 1 || countStatement.DifferingExecutions != 1 ||
				countStatement.RowsLost != 0 ||
				countStatement.Agent != "caregiver" {
				t.Errorf("the count of participants: %+v", countStatement)
			}
			if joinStatement == nil || strings.Join(joinStatement.Masked, " ") != "public.people.name" || len(joinStatement.Hidden) != 0 {
				t.Errorf("the join with people: %+v", joinStatement)
			}
			starStatement := findStatement("public.people", func(s *observe.Statement) bool {
				return s.Tag == "SELECT" && len(s.Masked) > 0 &&
					len(s.Hidden) > 0
			})
			if starStatement == nil || !strings.Contains(strings.Join(starStatement.Hidden, " "), "public.people.consent_status") ||
				starStatement.Skipped["columns of a table would be hidden or masked"] != starStatement.Executions {
				t.Errorf("SELECT * FROM people: %+v", starStatement)
			}
			for _, table := range report.Tables {
				if table.IsSafe() || table.Executions == 0 {
					t.Errorf("%+v counts as safe", table)
				}
			}
			var printedText bytes.Buffer
			report.Print(&printedText)
			for _, file := range []string{"/audit-000001.jsonl"} {
				text, err := os.ReadFile(filepath.Join(in.audit, file))
				if err != nil {
					t.Fatal(err)
				}
				printedText.Write(text)
			}
			for _, secret := range []string{"HIDDENMARK", "secret literal"} {
				if strings.Contains(printedText.String(), secret) {
					t.Errorf("records or report hold %q", secret)
				}
			}
		})
	}
}

// The report counts the rows that a rule would have hidden, by one snapshot. It says which statements the policy would
// not change.
func TestObservedRowsAreCounted(t *testing.T) {
	tier.All(t)
	const policy = `version: 1
attributes: { user: { type: uuid, source: credential } }
mode: observe
tables:
  memories:
    rows:
      - own: { column: user_id, is: user }
      - consent: { every: [ memory_participants: { memory_id: id }, people: { id: person_id } ], status: consent_status, is: granted }
  people: { rows: [ { own: { column: user_id, is: user } }, { status: { column: consent_status, is: granted } } ] }
  memory_participants: { observe: false, rows: [ { visible: { memories: { id: memory_id } } }, { visible: { people: { id: person_id } } } ] }
`
	in, enforcedInstance := start(t, options{policy: policy}), startForReading(t, options{})
	agent, enforcedAgent, owner := in.agent(t), enforcedInstance.agent(t), in.superuserConn(t)
	firstValue := func(a harness.Answer) string { return a.Results[0].Rows[0] }
	if got, want := firstValue(harness.Ask(agent, "SELECT count(*) FROM memory_participants")),
		firstValue(harness.Ask(enforcedAgent, "SELECT count(*) FROM memory_participants")); got != want {
		t.Errorf("%s participants, want %s: the table is enforced, under the rules of tables that are not", got, want)
	}
	harness.Ask(agent, "SELECT title, body FROM memories")
	harness.Ask(agent, "SELECT id FROM people WHERE user_id = '"+user1+"' AND consent_status = 'granted'")
	ownerCount, visibleCount := firstValue(harness.Ask(owner, "SELECT count(*) FROM memories")), firstValue(harness.Ask(enforcedAgent,
		"SELECT count(*) FROM memories"))
	var report *observe.Report
	findStatement := func(table string) *observe.Statement {
		for _, s := range report.Statements {
			if s.ComparedExecutions > 0 && strings.Join(s.Tables, " ") == table {
				return s
			}
		}
		return nil
	}
	var memoryStatement, peopleStatement *observe.Statement
	for deadline := time.Now().Add(tier.Patience); time.Now().Before(deadline) &&
		(memoryStatement == nil || peopleStatement == nil); time.Sleep(100 * time.Millisecond) {
		var err error
		if report, err = observe.ReadReport(audit.Folder(in.audit), time.Time{}); err != nil {
			t.Fatal(err)
		}
		memoryStatement, peopleStatement = findStatement("public.memories"), findStatement("public.people")
	}
	if memoryStatement == nil || memoryStatement.DifferingExecutions != 1 ||
		strconv.FormatInt(memoryStatement.Rows-memoryStatement.RowsLost, 10) != visibleCount ||
		strconv.FormatInt(memoryStatement.Rows, 10) != ownerCount {
		t.Errorf("memories: %+v; %s of %s are visible", memoryStatement, visibleCount, ownerCount)
	}
	if peopleStatement == nil || peopleStatement.DifferingExecutions != 0 || peopleStatement.RowsLost != 0 {
		t.Errorf("people: %+v", peopleStatement)
	}
	for _, table := range report.Tables {
		if table.IsSafe() != (table.Name == "public.people") {
			t.Errorf("%+v is safe: %t", table, table.IsSafe())
		}
	}
}

// A replay checks the statements of a log against a candidate policy that is not installed. Its output has no literals
// of the statements.
func TestReplay(t *testing.T) {
	in := startForReading(t, options{})
	snap, err := pgcatalog.Load(t.Context(), in.db.Connect(t, "pgconsent_control"), []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := policy.Parse("candidate.yaml", []byte(strings.Replace(observedPolicy, "  memory_edges:", "  #", 1)))
	if err != nil {
		t.Fatal(err)
	}
	candidate, err := policy.Compile(doc, snap, policy.WithViews(rewrite.RewriteViewQuery))
	if err != nil {
		t.Fatal(err)
	}
	log := "2026-11-22 00:00:00 UTC LOG:  statement: SELECT title FROM memories WHERE title = 'a literal'\n" +
		"2026-11-22 00:00:00 UTC LOG:  statement: SELECT title FROM memories\n\tWHERE title = 'another literal'\n" +
		"2026-11-22 00:00:00 UTC LOG:  execute S_1: SELECT name FROM people WHERE id = $1\n" +
		"2026-11-22 00:00:00 UTC LOG:  statement: SELECT * FROM memory_edges WHERE kind = 'a literal'\n" +
		"2026-11-22 00:00:00 UTC LOG:  statement: SELECT pg_read_file('a literal')\n" +
		"2026-11-22 00:00:00 UTC LOG:  statement: UPDATE \"a literal\" SET a = 1\n" +
		"2026-11-22 00:00:00 UTC LOG:  statement: SELEC 'a literal'\n"
	for _, showsTexts := range []bool{false, true} {
		replay := observe.NewLogReplay(candidate, snap, showsTexts)
		if err := observe.EachStatement(strings.NewReader(log), replay.Add); err != nil {
			t.Fatal(err)
		}
		replay.Sort()
		var out bytes.Buffer
		replay.Print(&out)
		encoded, err := json.Marshal(replay)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String()+string(encoded), "literal"); got != showsTexts {
			t.Errorf("literals are printed: %t, asked for: %t\n%s", got, showsTexts, out.String())
		}
		if replay.Statements != 7 || replay.Allowed != 3 || replay.Refused != 4 || len(replay.Shapes) != 6 {
			t.Errorf("%s", out.String())
		}
		for _, j := range replay.Shapes {
			if j.Allowed && j.Tables[0] == "public.memories" && j.Count != 2 ||
				j.Allowed && j.Tables[0] == "public.people" && strings.Join(j.Masked, "") != "public.people.name" || !j.Allowed && j.SQLState == "" {
				t.Errorf("%+v", j)
			}
		}
	}
}

// Observation evaluates rules with the session's attributes, including those that the database derives.
func TestObservedClaims(t *testing.T) {
	tier.All(t)
	auditFolder := t.TempDir() + "/audit"
	b := startBeheard(t, func(d *harness.Database) {
		d.Policy, d.Audit = strings.Replace(d.Policy, "version: 1", "version: 1\nmode: observe", 1), auditFolder
	})
	b.setStage(t, "2")
	oneText(b.agent, `SELECT status FROM "Relationship" WHERE id = 'rel-1'`)
	oneText(b.agent, `SELECT content FROM "UserEvent"`)
	oneText(b.agent, `SELECT description FROM "Agreement" ORDER BY description <-> 'phones' LIMIT 1`)
	var report *observe.Report
	findStatement := func(table string) *observe.Statement {
		for _, s := range report.Statements {
			if strings.Join(s.Tables, " ") == "public."+table {
				return s
			}
		}
		return &observe.Statement{}
	}
	for deadline := time.Now().Add(tier.Patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		var err error
		if report, err = observe.ReadReport(audit.Folder(auditFolder), time.Time{}); err != nil {
			t.Fatal(err)
		}
		if findStatement("Relationship").ComparedExecutions > 0 && findStatement("UserEvent").ComparedExecutions > 0 &&
			len(findStatement("Agreement").Refusals) > 0 {
			break
		}
	}
	if s := findStatement("Relationship"); s.ComparedExecutions != 1 || s.DifferingExecutions != 0 {
		t.Errorf("a row that shows in this session: %+v", s)
	}
	ownRows := oneText(harness.ConnectSuperuser(t, b.db), `SELECT count(*) FROM "UserEvent" WHERE `+ownVessels)
	if s := findStatement("UserEvent"); s.ComparedExecutions != 1 || s.DifferingExecutions != 1 ||
		strconv.FormatInt(s.Rows-s.RowsLost, 10) != ownRows {
		t.Errorf("%s events are ana's: %+v", ownRows, s)
	}
	if s := findStatement("Agreement"); s.Refusals["42501 contract retrieval"] != 1 {
		t.Errorf("what a contract would refuse: %+v", s)
	}
}
