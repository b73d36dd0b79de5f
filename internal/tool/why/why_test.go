package why

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// installedPolicy is a database with an installed policy.
type installedPolicy struct {
	db       *pgtest.DB
	super    *pgx.Conn
	question Question
}

func install(t *testing.T, db *pgtest.DB, text string) installedPolicy {
	t.Helper()
	ctx := t.Context()
	i := installedPolicy{db: db, super: db.Connect(t, "postgres")}
	doc, err := policy.Parse("policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(ctx, i.super, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(doc, snap, policy.WithViews(rewrite.RewriteViewQuery))
	if err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(ctx, i.super, migrations.Options{}, rls.Generate(p, snap, rls.Options{})); err != nil {
		t.Fatal(err)
	}
	i.question = Question{Policy: p, Snapshot: snap, AgentRole: migrations.DefaultAgentRole, ConnectAgent: func(ctx context.Context) (*pgx.Conn, error) {
		return pgx.Connect(ctx, db.DSN(migrations.DefaultAgentRole, ""))
	}}
	return i
}

// For every row of the world and several agents, the verdict of the explanation equals what the agent's role sees under
// row security.
func TestVerdictsAgreeWithRowSecurity(t *testing.T) {
	tier.All(t)
	w, err := world.Open("arcive")
	if err != nil {
		t.Fatal(err)
	}
	db := pgtest.Template(t, "arcive", func(ctx context.Context, conn *pgx.Conn) error { return w.Load(ctx, conn, nil) })
	text, err := w.File("policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	i := install(t, db, string(text))
	ctx := t.Context()
	rows, shownCount, explainOneIn := 0, 0, 6
	for _, user := range []string{"11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222",
		"99999999-9999-4999-8999-999999999999"} {
		attributes := map[string]string{"user": user}
		agent := db.Connect(t, migrations.DefaultAgentRole)
		agentTx, err := agent.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := beginSealed(ctx, agentTx, i.super, attributes, nil); err != nil {
			t.Fatal(err)
		}
		tx, err := i.super.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		values, err := AttributeValues(ctx, tx, i.question.Policy, attributes, nil)
		if err != nil || values["user"] != user {
			t.Fatalf("%v %v", values, err)
		}
		e := explainer{tx: tx, policy: i.question.Policy, values: values}
		for _, table := range i.question.Policy.Tables() {
			visibleRows, err := agentTx.Query(ctx, "SELECT concat_ws(', ', "+strings.Join(table.Relation.PrimaryKey,
				", ")+") FROM "+table.Relation.Name.SQL())
			if err != nil {
				t.Fatal(err)
			}
			want, err := pgx.CollectRows(visibleRows, pgx.RowTo[string])
			if err != nil {
				t.Fatal(err)
			}
			// Only some of the rows are explained; all would take minutes.
			explainedRows, _, err := e.explainRows(ctx, table,
				fmt.Sprintf("hashtext(r.%s::text) %% %d = 0", table.Relation.PrimaryKey[0], explainOneIn), nil, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range explainedRows {
				var key []string
				for _, v := range r.Key {
					key = append(key, *v.Value)
				}
				rows++
				if r.Visible {
					shownCount++
				}
				if r.Visible != slices.Contains(want, strings.Join(key, ", ")) {
					t.Errorf("%s %s is visible: %t, and row security says otherwise", r.Table, quotedKey(r.Key), r.Visible)
				}
				checkConsistent(t, r)
			}
		}
		_ = agentTx.Rollback(ctx)
		_ = tx.Rollback(ctx)
	}
	if rows < 9000/explainOneIn || shownCount < rows/20 || shownCount > rows*9/10 {
		t.Errorf("%d of %d rows show: the sample says little", shownCount, rows)
	}
}

// checkConsistent checks that the explanation of a row supports its verdict.
func checkConsistent(t *testing.T, r Row) {
	t.Helper()
	var check func(b *Block)
	check = func(b *Block) {
		for _, part := range b.Parts {
			check(part)
		}
		switch b.Block {
		case "all":
			if b.Holds == slices.ContainsFunc(b.Parts, func(p *Block) bool { return !p.Holds }) {
				t.Errorf("%s %s: all holds: %t", r.Table, quotedKey(r.Key), b.Holds)
			}
		case "consent":
			if b.Holds == slices.ContainsFunc(b.Records, func(p Record) bool { return !p.Holds }) {
				t.Errorf("%s %s: consent holds: %t, records %+v", r.Table, quotedKey(r.Key), b.Holds, b.Records)
			}
		case "visible":
			if b.Holds != slices.ContainsFunc(b.Targets, func(p Row) bool { return p.Visible }) {
				t.Errorf("%s %s: visible holds: %t, targets %+v", r.Table, quotedKey(r.Key), b.Holds, b.Targets)
			}
		}
	}
	check(r.Rule)
}

const small = `
CREATE TABLE people (id integer PRIMARY KEY, team text, consent_status text);
CREATE TABLE "Visits" (team text, "No" integer, person integer, state text, grants text[], secret text, PRIMARY KEY (team, "No"));
CREATE TABLE visit_people ("visit team" text, visit integer, person integer);
CREATE TABLE unlisted (id integer PRIMARY KEY);
CREATE TABLE loose (a integer, b text);
CREATE SCHEMA records;
CREATE TABLE records.apart (id integer PRIMARY KEY);
INSERT INTO people VALUES (41, 'n', 'granted'), (42, 'n', 'pending'), (43, 's', NULL);
INSERT INTO "Visits" VALUES ('n', 1, 41, 'open', '{ann}', 'x'), ('n', 2, 41, 'open', '{ann}', 'x'),
  ('n', 3, NULL, NULL, NULL, 'x'), ('s', 1, 43, 'closed', '{bob}', 'x');
INSERT INTO visit_people VALUES ('n', 2, 41), ('n', 2, 42), ('n', 2, 99), ('n', 1, 41);
INSERT INTO unlisted VALUES (1);
INSERT INTO loose VALUES (1, 'x'), (1, 'x'), (1, 'y'), (2, 'z');
`

const smallPolicy = `version: 1
attributes:
  team: { type: text, source: credential }
  groups: { type: "text[]", source: credential }
tables:
  people:
    rows: [ own: { column: team, is: team }, status: { column: consent_status, is: granted } ]
  Visits:
    rows:
      - own: { column: team, is: team }
      - consent: { every: [ visit_people: { visit team: team, visit: "No" }, people: { id: person } ], status: consent_status, is: granted }
      - any:
          - grant: { column: grants, to: groups }
          - not: { status: { column: state, is: open } }
      - visible: { people: { id: person } }
    columns: { team: allow, "No": allow, state: { mask: null }, grants: allow }
  loose: { rows: [ sql: "b = 'x'" ] }
  records.apart: { rows: open }
`

func TestExplain(t *testing.T) {
	db := pgtest.Database(t)
	if _, err := db.Connect(t, "postgres").Exec(t.Context(), small); err != nil {
		t.Fatal(err)
	}
	i := install(t, db, smallPolicy)
	for _, c := range []struct{ table, key, want string }{
		{"people", "42", `
attribute groups is '{ann,"x y"}'
attribute team is 'n'

public.people 42: chat does not see it
  ✗ all  policy.yaml:7
  ├─ ✓ own: team is 'n', the agent's team is 'n'  policy.yaml:7
  └─ ✗ status: consent_status is 'pending', must be 'granted'  policy.yaml:7

row security, asked as the agent's role, agrees; the predicate in the text is made of the same rule
`},
		{"Visits", "n 2", `
attribute groups is '{ann,"x y"}'
attribute team is 'n'

public.Visits (team=n, No=2): chat does not see it
  ✗ all  policy.yaml:10
  ├─ ✓ own: team is 'n', the agent's team is 'n'  policy.yaml:10
  ├─ ✗ consent: somebody has not agreed  policy.yaml:11
  │  ├─ ✗ public.people 42: consent_status is 'pending', must be 'granted'  by public.visit_people (visit team=n, visit=2, person=42)
  │  ├─ ✗ public.people: there is no such row: the link leads nowhere  by public.visit_people (visit team=n, visit=2, person=99)
  │  └─ ✓ public.people 41: consent_status is 'granted'  by public.visit_people (visit team=n, visit=2, person=41)
  ├─ ✓ any  policy.yaml:12
  │  ├─ ✓ grant: grants is '{ann}', the agent's groups is '{ann,"x y"}'  policy.yaml:13
  │  └─ ✗ not: what is below holds, and must not  policy.yaml:14
  │     └─ ✓ status: state is 'open', must not be  policy.yaml:14
  └─ ✓ visible: it points to a row of public.people that shows  policy.yaml:15
     └─ public.people 41 shows
        └─ ✓ all  policy.yaml:7
           ├─ ✓ own: team is 'n', the agent's team is 'n'  policy.yaml:7
           └─ ✓ status: consent_status is 'granted'  policy.yaml:7

row security, asked as the agent's role, agrees; the predicate in the text is made of the same rule
`},
		{"Visits", "n 3", `
attribute groups is '{ann,"x y"}'
attribute team is 'n'

public.Visits (team=n, No=3): chat does not see it
  ✗ all  policy.yaml:10
  ├─ ✓ own: team is 'n', the agent's team is 'n'  policy.yaml:10
  ├─ ✓ consent: nobody is linked to it  policy.yaml:11
  ├─ ✗ any  policy.yaml:12
  │  ├─ ? grant: grants is NULL, the agent's groups is '{ann,"x y"}' (unknown, which hides)  policy.yaml:13
  │  └─ ? not: it is not certain that what is below does not hold (unknown, which hides)  policy.yaml:14
  │     └─ ? status: state is NULL (unknown, which hides)  policy.yaml:14
  └─ ✗ visible: it points to no row of public.people: NULL  policy.yaml:15

row security, asked as the agent's role, agrees; the predicate in the text is made of the same rule
`},
		{"Visits", "n 1", `
attribute groups is '{ann,"x y"}'
attribute team is 'n'

public.Visits (team=n, No=1): chat sees it
  ✓ all  policy.yaml:10
  ├─ ✓ own: team is 'n', the agent's team is 'n'  policy.yaml:10
  ├─ ✓ consent: everybody has agreed  policy.yaml:11
  │  └─ ✓ public.people 41: consent_status is 'granted'  by public.visit_people (visit team=n, visit=1, person=41)
  ├─ ✓ any  policy.yaml:12
  │  ├─ ✓ grant: grants is '{ann}', the agent's groups is '{ann,"x y"}'  policy.yaml:13
  │  └─ ✗ not: what is below holds, and must not  policy.yaml:14
  │     └─ ✓ status: state is 'open', must not be  policy.yaml:14
  └─ ✓ visible: it points to a row of public.people that shows  policy.yaml:15
     └─ public.people 41 shows
        └─ ✓ all  policy.yaml:7
           ├─ ✓ own: team is 'n', the agent's team is 'n'  policy.yaml:7
           └─ ✓ status: consent_status is 'granted'  policy.yaml:7

row security, asked as the agent's role, agrees; the predicate in the text is made of the same rule
not all of it is seen: person hidden, state null, secret hidden
`},
		{"public.people", "id=99", `
attribute groups is '{ann,"x y"}'
attribute team is 'n'
public.people has no row with id=99: there is nothing to see for anybody
`},
		{"unlisted", "1", `
attribute groups is '{ann,"x y"}'
attribute team is 'n'
public.unlisted (id=1): chat sees nothing of it
  the policy does not list the table: agents have no right to it, and naming it is refused with 42501
`},
		{"loose", "a=1 b=x", `
attribute groups is '{ann,"x y"}'
attribute team is 'n'

public.loose (a=1, b=x): chat sees it
  ✓ sql: b is 'x'  policy.yaml:17

public.loose (a=1, b=x): chat sees it
  ✓ sql: b is 'x'  policy.yaml:17

row security, asked as the agent's role, agrees; the predicate in the text is made of the same rule
`},
	} {
		q := i.question
		q.Agent, q.Attributes, q.Table, q.Key = "chat", map[string]string{"team": "n", "groups": `{ann,"x y"}`}, c.table, strings.Fields(c.key)
		a, err := Explain(t.Context(), i.super, q)
		if err != nil {
			t.Errorf("%s %s: %v", c.table, c.key, err)
			continue
		}
		var b bytes.Buffer
		Printer{Out: &b}.Print(a)
		if got := "\n" + b.String(); got != c.want {
			t.Errorf("%s %s:%s\nwant%s", c.table, c.key, got, c.want)
		}
		if !a.AgreesWithRowSecurity() || a.Listed && len(a.Rows) > 0 && a.RowSecurity == nil {
			t.Errorf("%s %s: row security: %v %s", c.table, c.key, a.RowSecurity, a.RowSecurityNotAsked)
		}
		if _, err := json.Marshal(a); err != nil {
			t.Error(err)
		}
	}
}

// A question that cannot be answered gets an error that says what to ask.
func TestInvalidQuestions(t *testing.T) {
	db := pgtest.Database(t)
	if _, err := db.Connect(t, "postgres").Exec(t.Context(), small); err != nil {
		t.Fatal(err)
	}
	i := install(t, db, smallPolicy)
	for _, c := range []struct{ table, key, want string }{
		{"peple", "1", `the database has no table "peple"`},
		{"apart", "1", `no table "apart" on the search path`},
		{"Visits", "n", `this is no key of public.Visits`},
		{"people", "x", `this is no key of public.people`},
		{"loose", "1", `this is no key of public.loose`},
	} {
		q := i.question
		q.Table, q.Key = c.table, strings.Fields(c.key)
		if _, err := Explain(t.Context(), i.super, q); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %s", c.table, c.key, err, c.want)
		}
	}
}

// The explanation mentions missing attributes, row policies of others, and disabled row security.
func TestOtherReasonsForHiddenRows(t *testing.T) {
	db := pgtest.Database(t)
	super := db.Connect(t, "postgres")
	if _, err := super.Exec(t.Context(), small); err != nil {
		t.Fatal(err)
	}
	i := install(t, db, smallPolicy)
	explain := func(table, key string, attributes map[string]string) *Answer {
		q := i.question
		q.Agent, q.Attributes, q.Table, q.Key = "chat", attributes, table, strings.Fields(key)
		a, err := Explain(t.Context(), i.super, q)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := explain("people", "41", map[string]string{"groups": "{}"})
	if fmt.Sprint(a.Missing) != "[team]" || a.VisibleRows() != 0 || !a.AgreesWithRowSecurity() {
		t.Errorf("without its attribute: %+v", a)
	}
	if _, err := super.Exec(t.Context(), "CREATE POLICY theirs ON people AS RESTRICTIVE FOR SELECT USING (id <> 41)"); err != nil {
		t.Fatal(err)
	}
	a = explain("people", "41", map[string]string{"team": "n", "groups": "{}"})
	if fmt.Sprint(a.ForeignPolicies) != "[theirs]" || a.VisibleRows() != 1 || a.AgreesWithRowSecurity() {
		t.Errorf("under a policy of others: %+v", a)
	}
	// If an event trigger has revoked agents' rights on the table, row security does not matter.
	const off = "DROP POLICY IF EXISTS theirs ON people; ALTER TABLE people DISABLE ROW LEVEL SECURITY"
	if _, err := super.Exec(t.Context(), off); err != nil {
		t.Fatal(err)
	}
	if a = explain("people", "42", map[string]string{"team": "n", "groups": "{}"}); !strings.Contains(a.RowSecurityNotAsked,
		"permission denied") {
		t.Errorf("without row security: %+v", a)
	}
	const restoreRowSecurity = "ALTER TABLE people ENABLE ROW LEVEL SECURITY; DROP EVENT TRIGGER zz_pgconsent_withhold; "
	if _, err := super.Exec(t.Context(), restoreRowSecurity+off); err != nil {
		t.Fatal(err)
	}
	a = explain("people", "42", map[string]string{"team": "n", "groups": "{}"})
	if a.VisibleRows() != 0 || a.AgreesWithRowSecurity() {
		t.Errorf("without row security: %+v", a)
	}
}
