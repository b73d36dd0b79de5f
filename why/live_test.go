package why

import (
	"fmt"
	"testing"

	"github.com/pgconsent/pgconsent/pgtest"
)

// Attributes that follow from settings and from the database are those that the row policies see.
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
	i := install(t, db, `version: 1
attributes:
  user: { type: text, source: credential }
  session: { type: integer, source: set, setting: app.session, optional: true, within: { table: sessions, column: id, match: { who: user } } }
  stage: { type: integer, source: query, query: { table: sessions, column: stage, match: { id: session } } }
tables:
  notes: { rows: [ own: { column: stage, is: stage } ] }
`)
	for _, c := range []struct {
		set     []Setting
		key     string
		visible bool
		stage   string
	}{
		{nil, "2", false, ""},
		{[]Setting{{"app.session", "1"}}, "2", true, "2"},
		{[]Setting{{"app.session", "1"}}, "3", false, "2"},
		{[]Setting{{"app.session", "2"}}, "3", false, ""},
	} {
		q := i.question
		q.Agent, q.Attributes, q.Set, q.Table, q.Key = "chat", map[string]string{"user": "me"}, c.set, "notes", []string{c.key}
		a, err := Explain(t.Context(), i.super, q)
		if err != nil {
			t.Fatal(err)
		}
		if (a.Shown() == 1) != c.visible || a.Attributes["stage"] != c.stage || !a.Agrees() || a.RowSecurity == nil {
			t.Errorf("%v %s: %s", c.set, c.key, fmt.Sprintf("%+v", a))
		}
	}
}
