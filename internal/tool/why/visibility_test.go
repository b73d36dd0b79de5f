package why

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/test/tier"
)

// The answer to who can see a subject's rows equals what each agent's role sees under row security, column by column.
func TestVisibleToAgents(t *testing.T) {
	tier.All(t)
	db := pgtest.Database(t)
	super := db.Connect(t, "postgres")
	exec := func(sql string) {
		t.Helper()
		if _, err := super.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`
CREATE TABLE talks (id integer PRIMARY KEY, who text, style text, code text);
CREATE TABLE turns (id integer PRIMARY KEY, talk integer, body text);
CREATE TABLE weather (id integer PRIMARY KEY);
INSERT INTO talks SELECT n, CASE WHEN n % 3 = 0 THEN 'ada' WHEN n % 3 = 1 THEN 'bob' ELSE '<b>o''cat' END, 'style', 'abcdef' FROM generate_series(1, 30) AS n;
INSERT INTO turns SELECT n, n % 30 + 1, 'body' FROM generate_series(1, 90) AS n;
`)
	i := install(t, db, `version: 1
attributes: { purposes: { type: "text[]", source: credential } }
tables:
  talks:
    rows: [ { consent: { subject: who, registry: { category: ESSENTIAL, categories: purposes } } } ]
    consent: { subject: who, registry: { categories: purposes } }
    columns: { id: allow, who: allow, style: { category: BEHAVIORAL }, code: { mask: null } }
  turns: { rows: [ { visible: { talks: { id: talk } } } ] }
  weather: { rows: [ { open: true } ] }
`)
	agents := map[string]map[string]string{
		"all":       {"purposes": "{ESSENTIAL,BEHAVIORAL}"},
		"essential": {"purposes": "{ESSENTIAL}"},
		"again":     {"purposes": "{ESSENTIAL}"},
		"none":      {"purposes": "{STATISTICAL}"},
	}
	// counted returns how many of a subject's rows or values the agent's role sees.
	countAsAgent := func(agent, subject, rowsOrColumn string) (n int64) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), db.DSN(migrations.DefaultAgentRole, ""))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := beginSealed(t.Context(), tx, super, agents[agent], nil); err != nil {
			t.Fatal(err)
		}
		if err := tx.QueryRow(t.Context(), rowsOrColumn, subject).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	talksView := predicate.RowView(catalog.Name{Schema: "public", Name: "talks"}).SQL()
	checkedCount := 0
	for _, state := range []string{
		"DELETE FROM pgconsent.consent_current",
		"INSERT INTO pgconsent.consent_current (subject, grantee, scope, number, state, stream, categories, " +
			"purposes) SELECT s, '*', '*', 1, 'given', 'PARTNERED', '{ESSENTIAL,BEHAVIORAL}', '{}' FROM unnest('{ada,<b>o''cat}'::text[]) AS s",
		"UPDATE pgconsent.consent_current SET categories = '{ESSENTIAL}'",
		"UPDATE pgconsent.consent_current SET expires_at = now() WHERE subject = 'ada'",
	} {
		exec(state)
		for _, subject := range []string{"ada", "bob", "<b>o'cat", "nobody"} {
			got, err := VisibleToAgents(t.Context(), super, i.question.Policy, subject, agents)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 4 || got[0].Agent != "again" || subject == "nobody" != (len(got[0].Tables) == 0) {
				t.Fatalf("%s: %+v", subject, got)
			}
			for _, s := range got {
				for _, table := range s.Tables {
					ownedRows := map[string]int64{"public.talks": 10, "public.turns": 30}[table.Table]
					rowsQuery, styleQuery := "SELECT count(*) FROM "+talksView+" WHERE who = $1", "SELECT count(style) FROM "+talksView+" WHERE who = $1"
					if table.Table == "public.turns" {
						rowsQuery, styleQuery = "SELECT count(*) FROM turns JOIN "+talksView+" AS k ON k.id = talk WHERE k.who = $1", ""
					}
					want := countAsAgent(s.Agent, subject, rowsQuery)
					if table.Rows != ownedRows || table.Visible != want || table.Counted != 0 {
						t.Errorf("%s, %s, %s: %d of %d, want %d of %d", s.Agent, subject, table.Table, table.Visible, table.Rows, want, ownedRows)
					}
					checkedCount += int(want)
					for _, c := range table.Columns {
						want := want
						if c.Name == "style" {
							want = countAsAgent(s.Agent, subject, styleQuery)
						}
						if c.Visible != want {
							t.Errorf("%s, %s, %s.%s: %d, want %d", s.Agent, subject, table.Table, c.Name, c.Visible, want)
						}
						if (c.Name == "code") != (c.Mask != "") {
							t.Errorf("%s.%s: mask %q", table.Table, c.Name, c.Mask)
						}
					}
				}
			}
		}
	}
	if checkedCount == 0 {
		t.Error("nobody saw anything: " + fmt.Sprint(agents))
	}
}
