package policydiff

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.MainAlone(m) }

const schema = `
CREATE TABLE people (id integer PRIMARY KEY, team text, consent text);
CREATE TABLE "Notes" (team text, "No" integer, person integer, body text, extra text, PRIMARY KEY (team, "No"));
CREATE TABLE log (at integer, what text) PARTITION BY RANGE (at);
CREATE TABLE log_1 PARTITION OF log FOR VALUES FROM (0) TO (500);
CREATE TABLE log_2 PARTITION OF log FOR VALUES FROM (500) TO (1000);
CREATE TABLE extra (id integer PRIMARY KEY);
CREATE EXTENSION isn;
CREATE FUNCTION f(a integer) RETURNS integer LANGUAGE sql RETURN a;
INSERT INTO people SELECT i, CASE WHEN i % 2 = 0 THEN 'n' ELSE 's' END, CASE i % 3 WHEN 0 THEN 'granted' WHEN 1 THEN 'pending' END
FROM generate_series(1, 60) i;
INSERT INTO "Notes" SELECT p.team, i, p.id, repeat('x', 200), NULL FROM generate_series(1, 600) i JOIN people p ON p.id = i % 65;
INSERT INTO log SELECT i, CASE WHEN i % 7 = 0 THEN 'open' ELSE 'closed' END FROM generate_series(0, 999) i;
INSERT INTO extra VALUES (1), (2);
`

const before = `version: 1
attributes: { team: { type: text, source: credential } }
tables:
  people: { rows: [ own: { column: team, is: team } ] }
  Notes:
    rows: [ own: { column: team, is: team }, visible: { people: { id: person } } ]
    write: { commands: [update], columns: [body] }
  log: { rows: [ status: { column: what, is: open } ] }
`

const after = `version: 1
attributes: { team: { type: text, source: credential } }
tables:
  people: { rows: [ status: { column: consent, is: granted } ] }
  Notes:
    rows: [ visible: { people: { id: person } } ]
    columns: { team: allow, "No": allow, person: allow, body: { mask: null } }
  log: { rows: [ not: { status: { column: what, is: open } } ] }
  extra: { rows: open }
functions: { f: { pin: { a: 7 } } }
operators: [isn]
`

func compile(t *testing.T, conn *pgx.Conn, text string) (*policy.Policy, *rls.Plan) {
	t.Helper()
	doc, err := policy.Parse("policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(t.Context(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(doc, snap, policy.WithViews(rewrite.RewriteViewQuery))
	if err != nil {
		t.Fatal(err)
	}
	return p, rls.Generate(p, snap, rls.Options{})
}

var agents = map[string]map[string]string{"north": {"team": "n"}, "also": {"team": "n"}, "south": {"team": "s"}, "nobody": {}}

// The comparison says which rows appear and disappear. The same rows do so when both policies are installed one after
// the other. The comparison itself needs no installed policy, and leaves nothing in the database.
func TestCompareAgreesWithMigration(t *testing.T) {
	tier.All(t)
	defer func(rowsBefore int64) { pagesPerPart = rowsBefore }(pagesPerPart)
	pagesPerPart = 2
	db := pgtest.Database(t)
	super := db.Connect(t, "postgres")
	if _, err := super.Exec(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	objects := func() (n int) {
		if err := super.QueryRow(t.Context(),
			"SELECT (SELECT count(*) FROM pg_class) + (SELECT count(*) FROM pg_policy) + (SELECT count(*) FROM "+
				"pg_roles) + (SELECT count(*) FROM pg_namespace WHERE nspname !~ '^pg_')").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	found := objects()
	oldPolicy, oldPlan := compile(t, super, before)
	now, nowPlan := compile(t, super, after)
	progressCount := 0
	r, err := Compare(t.Context(), super, Options{Old: PolicyVersion{"old.yaml", oldPolicy}, New: PolicyVersion{"new.yaml", now}, Agents: agents, SampleSize: 2,
		ReportProgress: func(_ string, doneParts, totalParts int64) {
			if doneParts > totalParts {
				t.Errorf("%d of %d", doneParts, totalParts)
			}
			progressCount++
		}})
	if err != nil {
		t.Fatal(err)
	}
	if objects() != found {
		t.Error("the comparison has left something in the database")
	}
	if progressCount < 30 {
		t.Errorf("the progress was told %d times", progressCount)
	}
	visibleRows := func(plan *rls.Plan) map[string]map[string]bool {
		if err := migrations.Up(t.Context(), super, migrations.Options{}, plan); err != nil {
			t.Fatal(err)
		}
		ring, err := seal.LoadKeyring(t.Context(), super)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]map[string]bool{}
		conn := db.Connect(t, migrations.DefaultAgentRole)
		for agent, attributes := range agents {
			value := ring.NewestKey().Seal(seal.Claims{PID: conn.PgConn().PID(), Expires: time.Now().Add(seal.SealLifetime),
				Profile: "p", Attributes: attributes})
			if _, err := conn.Exec(t.Context(), "SELECT set_config('pgconsent.seal', $1, false)", value); err != nil {
				t.Fatal(err)
			}
			for table, sql := range map[string]string{
				"public.people": `SELECT id::text FROM people`, "public.Notes": `SELECT team || ' ' || "No" FROM "Notes"`,
				"public.log": "SELECT at::text FROM log", "public.extra": "SELECT id::text FROM extra"} {
				if strings.Contains(sql, "Notes") && plan == nowPlan {
					sql = strings.ReplaceAll(sql, `"Notes"`, `pgconsent_rows."public_Notes"`)
				}
				rows, err := conn.Query(t.Context(), sql)
				if err != nil {
					t.Fatal(err)
				}
				keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
				if err != nil && !strings.Contains(err.Error(), "42501") {
					t.Fatal(err)
				}
				seenTables := map[string]bool{}
				for _, k := range keys {
					seenTables[k] = true
				}
				out[agent+" "+table] = seenTables
			}
		}
		return out
	}
	rowsBefore, rowsAfter := visibleRows(oldPlan), visibleRows(nowPlan)
	comparedCount := 0
	for _, table := range r.Tables {
		for _, rows := range table.Rows {
			for _, agent := range rows.Agents {
				o, n := rowsBefore[agent+" "+table.Name], rowsAfter[agent+" "+table.Name]
				appear, disappear := int64(0), int64(0)
				for k := range n {
					if !o[k] {
						appear++
					}
				}
				for k := range o {
					if !n[k] {
						disappear++
					}
				}
				if rows.Old != int64(len(o)) || rows.New != int64(len(n)) || rows.Appear != appear || rows.Disappear != disappear {
					t.Errorf("%s of %s: %+v, and really %d → %d, +%d, -%d", table.Name, agent, rows, len(o), len(n), appear, disappear)
				}
				for _, key := range rows.Appearing {
					if k := strings.Join(key, " "); o[k] || !n[k] {
						t.Errorf("%s of %s: %s does not appear", table.Name, agent, k)
					}
				}
				for _, key := range rows.Vanishing {
					if k := strings.Join(key, " "); !o[k] || n[k] {
						t.Errorf("%s of %s: %s does not disappear", table.Name, agent, k)
					}
				}
				if appear+disappear > 0 {
					comparedCount++
				}
			}
		}
	}
	if comparedCount < 8 {
		t.Errorf("%d differences: the sample says little", comparedCount)
	}
	var b bytes.Buffer
	r.Database = "d"
	Printer{Out: &b}.Print(r)
	want := `database d: old.yaml → new.yaml
  note: agent nobody has no attribute team: what needs it shows nothing

public.Notes
  - column   extra
  ~ column   body: as it is → null
  - write    update
    rows     also, north  277 → 185  +93  -185
             + (team=s, No=3)
             + (team=s, No=9)
             + … and 91 more
             - (team=n, No=2)
             - (team=n, No=4)
             - … and 183 more
`
	if got := b.String(); !strings.HasPrefix(got, want) {
		t.Errorf("the report is\n%s\nwant\n%s", got, want)
	}
	for _, line := range []string{"+ table    agents may name it", "+ function public.f (pinned: a is ", "+ of       isn", "agents gain something"} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("the report has no %q:\n%s", line, b.String())
		}
	}
	if _, err := json.Marshal(r); err != nil || !r.MayReveal() {
		t.Errorf("%v", err)
	}
}

// An equal policy, and one that only removes access, reveal nothing. Tables with equal rules are not read.
func TestComparisonWithoutGains(t *testing.T) {
	db := pgtest.Database(t)
	super := db.Connect(t, "postgres")
	if _, err := super.Exec(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	oldPolicy, _ := compile(t, super, before)
	compare := func(text string) (*Report, []string) {
		now, _ := compile(t, super, text)
		var readTables []string
		r, err := Compare(t.Context(), super, Options{
			Old: PolicyVersion{"old", oldPolicy}, New: PolicyVersion{"new", now}, Agents: map[string]map[string]string{"north": {"team": "n"}},
			ReportProgress: func(tableName string, _, _ int64) {
				if !slices.Contains(readTables, tableName) {
					readTables = append(readTables, tableName)
				}
			}})
		if err != nil {
			t.Fatal(err)
		}
		return r, readTables
	}
	if r, readTables := compare(before + "# a comment\n"); !r.IsEmpty() || r.MayReveal() || len(readTables) > 0 {
		t.Errorf("%+v %v", r, readTables)
	}
	reducedPolicy := strings.Replace(before, "people: { rows: [ own: { column: team, is: team } ] }",
		"people: { rows: [ own: { column: team, is: team }, status: { column: consent, is: granted } ] }", 1)
	reducedPolicy = strings.Replace(reducedPolicy, "    write: { commands: [update], columns: [body] }\n", "", 1)
	r, readTables := compare(reducedPolicy)
	if r.IsEmpty() || r.MayReveal() || fmt.Sprint(readTables) != "[public.Notes for north public.people for north]" {
		t.Errorf("%+v %v", r, readTables)
	}
	if r, _ := compare(strings.Replace(before, "columns: [body]", "columns: [body, extra]", 1)); !r.MayReveal() ||
		fmt.Sprint(r.Tables[0].Write.Altered) != "[update: body → body, extra]" {
		t.Errorf("%+v", r)
	}
}

// The comparison is refused for a role to which row security applies.
func TestCompareNeedsTheOwner(t *testing.T) {
	db := pgtest.Database(t)
	super := db.Connect(t, "postgres")
	if _, err := super.Exec(t.Context(), schema+
		"; CREATE ROLE reads LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reads; ALTER TABLE people ENABLE ROW LEVEL SECURITY"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = super.Exec(context.Background(), "DROP OWNED BY reads; DROP ROLE reads") })
	oldPolicy, _ := compile(t, super, before)
	now, _ := compile(t, super, after)
	_, err := Compare(t.Context(), db.Connect(t, "reads"), Options{Old: PolicyVersion{"old", oldPolicy}, New: PolicyVersion{"new", now}, Agents: agents})
	if err == nil || !strings.Contains(err.Error(), "42501") {
		t.Errorf("%v", err)
	}
}
