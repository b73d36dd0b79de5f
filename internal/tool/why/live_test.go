package why

import (
	"fmt"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// Attributes that come from settings and from the database have the values that the row policies see.
func TestLiveAttributes(t *testing.T) {
	db := pgtest.Database(t)
	if _, err := db.Connect(t, "postgres").Exec(t.Context(), `
CREATE TABLE sessions (id integer PRIMARY KEY, who text, stage integer);
CREATE TABLE notes (id integer PRIMARY KEY, stage integer);
INSERT INTO sessions VALUES (1, 'me', 2), (2, 'other', 3);
INSERT INTO notes VALUES (1, 1), (2, 2), (3, 3);
`); err != nil {
		t.Fatal(err)
	}
	installed := install(t, db, `version: 1
attributes:
  user: { type: text, source: credential }
  session: { type: integer, source: set, setting: app.session, optional: true, within: { table: sessions, column: id, match: { who: user } } }
  stage: { type: integer, source: query, query: { table: sessions, column: stage, match: { id: session } } }
tables:
  notes: { rows: [ own: { column: stage, is: stage } ] }
`)
	for _, c := range []struct {
		settings  []Setting
		key       string
		isVisible bool
		stage     string
	}{
		{nil, "2", false, ""},
		{[]Setting{{"app.session", "1"}}, "2", true, "2"},
		{[]Setting{{"app.session", "1"}}, "3", false, "2"},
		{[]Setting{{"app.session", "2"}}, "3", false, ""},
	} {
		q := installed.question
		q.Agent, q.Attributes, q.Settings, q.Table, q.Key = "chat", map[string]string{"user": "me"}, c.settings, "notes", []string{c.key}
		a, err := Explain(t.Context(), installed.super, q)
		if err != nil {
			t.Fatal(err)
		}
		if (a.VisibleRows() == 1) != c.isVisible || a.Attributes["stage"] != c.stage || !a.AgreesWithRowSecurity() ||
			a.RowSecurity == nil {
			t.Errorf("%v %s: %s", c.settings, c.key, fmt.Sprintf("%+v", a))
		}
	}
}

// The answer about what agents can see is right where a live attribute is read from a table with row security.
func TestVisibleToAgentsByLiveAttributes(t *testing.T) {
	db := pgtest.Database(t)
	if _, err := db.Connect(t, "postgres").Exec(t.Context(), `
CREATE TABLE levels (who text PRIMARY KEY, level integer);
CREATE TABLE notes (id integer PRIMARY KEY, who text, level integer);
INSERT INTO levels VALUES ('ada', 2);
INSERT INTO notes VALUES (1, 'ada', 1), (2, 'ada', 2), (3, 'ada', 2), (4, 'bob', 2);
`); err != nil {
		t.Fatal(err)
	}
	i := install(t, db, `version: 1
attributes:
  user: { type: text, source: credential, audit: subject }
  level: { type: integer, source: query, query: { table: levels, column: level, match: { who: user } } }
tables:
  levels: { rows: [ own: { column: who, is: user } ] }
  notes: { rows: [ own: { column: who, is: user }, own: { column: level, is: level } ] }
`)
	got, err := VisibleToAgents(t.Context(), i.super, i.question.Policy, "ada", map[string]map[string]string{"chat": {"user": "ada"}, "other": {"user": "bob"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Attributes["level"] != "2" || got[1].Attributes["level"] != "" {
		t.Fatalf("%+v", got)
	}
	for _, table := range got[0].Tables {
		if table.Table == "public.notes" && (table.Rows != 3 || table.Visible != 2) {
			t.Errorf("%+v", table)
		}
	}
	if len(got[0].Tables) != 2 {
		t.Errorf("%+v", got[0].Tables)
	}
}
