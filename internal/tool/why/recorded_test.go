package why

import (
	"bytes"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// For consent by records, the explanation names each subject. A visible block is explained by its additional condition
// if that does not hold.
func TestExplainRecords(t *testing.T) {
	db := pgtest.Database(t)
	if _, err := db.Connect(t, "postgres").Exec(t.Context(), `
CREATE TABLE posts (id integer PRIMARY KEY, subjects text[], state text);
CREATE TABLE agreements (grantor text, grantee text, revoked_at timestamptz);
CREATE TABLE guardians (ward text, guardian text);
CREATE TABLE replies (id integer PRIMARY KEY, post integer);
INSERT INTO posts VALUES (1, '{ann,bob,cat,me}', 'open'), (2, '{ann,cat}', 'closed');
INSERT INTO agreements VALUES ('ann', 'me', NULL), ('bob', 'me', now()), ('dad', 'me', NULL);
INSERT INTO guardians VALUES ('cat', 'dad');
INSERT INTO replies VALUES (1, 2);
`); err != nil {
		t.Fatal(err)
	}
	i := install(t, db, `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  posts:
    rows:
      - consent:
          subjects: subjects
          but: user
          record: { table: agreements, grantor: grantor, grantee: { column: grantee, to: user }, revoked: revoked_at, `+
		`guardians: { table: guardians, subject: ward, guardian: guardian } }
  replies:
    rows: [ visible: { posts: { id: post }, where: [ status: { column: state, is: open } ] } ]
`)
	for _, c := range []struct{ table, key, want string }{
		{"posts", "1", `
attribute user is 'me'

public.posts 1: chat does not see it
  ✗ consent: somebody has not agreed  policy.yaml:6
  ├─ ✗ subject bob: no record of public.agreements that counts
  ├─ ✓ subject ann: a record of public.agreements says that they agree
  ├─ ✓ subject cat: a guardian has agreed, by a record of public.agreements
  └─ ✓ subject me: it is the caller, who is not asked

row security, asked as the agent's role, agrees; the predicate in the text is made of the same rule
`},
		{"replies", "1", `
attribute user is 'me'

public.replies 1: chat does not see it
  ✗ visible: it points to no row of public.posts that shows  policy.yaml:11
  └─ public.posts 2 shows, but what the block asks of it besides does not hold
     └─ ✓ consent: everybody has agreed  policy.yaml:6
        ├─ ✓ subject ann: a record of public.agreements says that they agree
        └─ ✓ subject cat: a guardian has agreed, by a record of public.agreements

row security, asked as the agent's role, agrees; the predicate in the text is made of the same rule
`},
	} {
		q := i.question
		q.Agent, q.Attributes, q.Table, q.Key = "chat", map[string]string{"user": "me"}, c.table, []string{c.key}
		a, err := Explain(t.Context(), i.super, q)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		Printer{Out: &b}.Print(a)
		if got := "\n" + b.String(); got != c.want {
			t.Errorf("%s %s:%s\nwant%s", c.table, c.key, got, c.want)
		}
	}
}
