package why

import (
	"bytes"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// The explanation names the source rows of a derived row, first those that hide it.
func TestExplainDerived(t *testing.T) {
	db := pgtest.Database(t)
	if _, err := db.Connect(t, "postgres").Exec(t.Context(), `
CREATE TABLE notes (id integer PRIMARY KEY, owner text, consent text, part_of integer);
CREATE TABLE digests (id integer PRIMARY KEY, sources integer[], kind text);
INSERT INTO notes VALUES (1, 'me', 'granted', NULL), (2, 'you', 'granted', NULL), (3, 'me', 'refused', NULL), (4, 'me', 'granted', 3);
INSERT INTO digests VALUES (1, '{1,2}', 'made'), (2, '{1,3,4}', 'made'), (3, '{1,9}', 'made'), (4, '{}', 'made'), (5, NULL, 'first');
`); err != nil {
		t.Fatal(err)
	}
	i := install(t, db, `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  notes:
    rows:
      - own: { column: owner, is: user }
      - status: { column: consent, is: granted }
      - derived: { from: { notes: { id: part_of } }, unless: [ sql: "part_of IS NULL" ] }
  digests:
    rows: [ derived: { sources: sources, of: notes, unless: [ status: { column: kind, is: first } ] } ]
`)
	for _, c := range []struct{ key, want string }{
		{"1", `
attribute user is 'me'

public.digests 1: chat sees it
  ✓ derived: every row that it was made from is there, and none hides it  policy.yaml:10
  ├─ ✓ public.notes 1: what its own rule asks of what is made from it holds
  └─ ✓ public.notes 2: what its own rule asks of what is made from it holds

row security, asked as the agent's role, agrees; the predicate in the text is made of the same rule
`},
		{"2", `
attribute user is 'me'

public.digests 2: chat does not see it
  ✗ derived: a row that it was made from hides it  policy.yaml:10
  ├─ ✗ public.notes 3: what its own rule asks of what is made from it does not hold
  ├─ ✗ public.notes 4: what its own rule asks of what is made from it does not hold
  └─ ✓ public.notes 1: what its own rule asks of what is made from it holds

row security, asked as the agent's role, agrees; the predicate in the text is made of the same rule
`},
		{"3", `
attribute user is 'me'

public.digests 3: chat does not see it
  ✗ derived: something that it was made from is not there  policy.yaml:10
  └─ ✓ public.notes 1: what its own rule asks of what is made from it holds

row security, asked as the agent's role, agrees; the predicate in the text is made of the same rule
`},
		{"4", `
attribute user is 'me'

public.digests 4: chat does not see it
  ✗ derived: nothing is there that it was made from  policy.yaml:10

row security, asked as the agent's role, agrees; the predicate in the text is made of the same rule
`},
		{"5", `
attribute user is 'me'

public.digests 5: chat sees it
  ✓ derived: it was made from no other row  policy.yaml:10

row security, asked as the agent's role, agrees; the predicate in the text is made of the same rule
`},
	} {
		q := i.question
		q.Agent, q.Attributes, q.Table, q.Key = "chat", map[string]string{"user": "me"}, "digests", []string{c.key}
		a, err := Explain(t.Context(), i.super, q)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		Printer{Out: &b}.Print(a)
		if got := "\n" + b.String(); got != c.want {
			t.Errorf("%s: got%s\nwant%s", c.key, got, c.want)
		}
	}
}
