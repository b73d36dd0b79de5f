package why

import (
	"bytes"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// For shared rows, the explanation names the sharing record that decides, and the column in it. Keys of type char(n)
// match the row's, with or without blanks.
func TestExplainShared(t *testing.T) {
	db := pgtest.Database(t)
	if _, err := db.Connect(t, "postgres").Exec(t.Context(), `
CREATE TABLE consents (office char(5), number integer, decision text, revoked_at timestamptz, PRIMARY KEY (office, number));
CREATE TABLE precedents (id integer PRIMARY KEY, office char(3), consent integer, active boolean, text text);
INSERT INTO consents VALUES ('BER', 1, 'GRANTED', NULL), ('BER', 2, 'DENIED', NULL), ('BER', 3, 'GRANTED', '2026-01-02 00:00:00+00');
INSERT INTO precedents VALUES (1, 'BER', 1, true), (2, 'BER', 2, true), (3, 'BER', 3, NULL), (4, 'BER', 9, true), (5, 'BER', NULL, true), (6, 'MUC', 1, true);
`); err != nil {
		t.Fatal(err)
	}
	i := install(t, db, `version: 1
attributes: { office: { type: text, source: credential } }
tables:
  precedents:
    rows:
      - own: { column: office, is: office }
      - shared: { record: { consents: { office: office, number: consent } }, granted: { column: decision, is: GRANTED }, revoked: revoked_at, active: active }
`)
	const agrees = "\nrow security, asked as the agent's role, agrees; the predicate in the text is made of the same rule\n"
	for _, c := range []struct{ key, want string }{
		{"1", `sees it
  ✓ all  policy.yaml:6
  ├─ ✓ own: office is 'BER', the agent's office is 'BER'  policy.yaml:6
  └─ ✓ shared: what the row points to is granted, active is 'true'  policy.yaml:7
     └─ ✓ public.consents (office=BER, number=1): decision is 'GRANTED', revoked_at is NULL
`},
		{"2", `does not see it
  ✗ all  policy.yaml:6
  ├─ ✓ own: office is 'BER', the agent's office is 'BER'  policy.yaml:6
  └─ ✗ shared: it points to what is not granted, active is 'true'  policy.yaml:7
     └─ ✗ public.consents (office=BER, number=2): decision is 'DENIED', must be 'GRANTED', revoked_at is NULL
`},
		{"3", `does not see it
  ✗ all  policy.yaml:6
  ├─ ✓ own: office is 'BER', the agent's office is 'BER'  policy.yaml:6
  └─ ✗ shared: it points to what is not granted, active is NULL, must be 'true'  policy.yaml:7
     └─ ✗ public.consents (office=BER, number=3): decision is 'GRANTED', revoked_at is '2026-01-02 00:00:00+00', must be NULL
`},
		{"4", `does not see it
  ✗ all  policy.yaml:6
  ├─ ✓ own: office is 'BER', the agent's office is 'BER'  policy.yaml:6
  └─ ✗ shared: it points to what is not granted, active is 'true'  policy.yaml:7
     └─ ✗ public.consents (office=BER, number=9): there is no such row: the link leads nowhere
`},
		{"5", `does not see it
  ✗ all  policy.yaml:6
  ├─ ✓ own: office is 'BER', the agent's office is 'BER'  policy.yaml:6
  └─ ✗ shared: it points to what is not granted, active is 'true'  policy.yaml:7
     └─ ✗ public.consents: there is no such row: consent is NULL
`},
	} {
		q := i.question
		q.Agent, q.Attributes, q.Table, q.Key = "chat", map[string]string{"office": "BER"}, "precedents", []string{c.key}
		a, err := Explain(t.Context(), i.super, q)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		Printer{Out: &b}.Print(a)
		want := "attribute office is 'BER'\n\npublic.precedents " + c.key + ": chat " + c.want + agrees
		if got := b.String(); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", c.key, got, want)
		}
	}
}
