package why

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// A row that may only be counted in groups is explained with its group. Columns that exist by key are named as such,
// and blocks under "not" are worded accordingly.
func TestGroups(t *testing.T) {
	db := pgtest.Database(t)
	if _, err := db.Connect(t, "postgres").Exec(t.Context(), `
		CREATE TABLE visits (id integer PRIMARY KEY, person integer, channel text, at timestamptz, mode text, note text);
		INSERT INTO visits SELECT i, i % 7, 'large', '2026-01-05', 'anonymous', 'n' FROM generate_series(1, 20) i;
		INSERT INTO visits SELECT 20 + i, i % 2, 'small', '2026-01-05', 'anonymous', 'n' FROM generate_series(1, 6) i;
		INSERT INTO visits VALUES (30, 3, 'large', '2026-01-05', 'refused', 'n'), (31, 3, 'large', '2026-01-05', 'open', 'n'),
		  (32, 3, 'large', now() + interval '40 days', 'anonymous', 'n'),
		  (33, NULL, 'large', '2026-01-05', 'anonymous', 'n'), (34, 3, 'large', '2026-01-05', NULL, 'n')`); err != nil {
		t.Fatal(err)
	}
	i := install(t, db, `version: 1
attributes: { user: { type: integer, source: credential } }
tables:
  visits:
    rows: [ not: { any: [ status: { column: mode, is: anonymous }, status: { column: mode, is: refused } ] } ]
    columns: { id: allow, person: allow, channel: allow, at: allow, mode: allow, note: by_key }
    aggregate:
      subject: person
      rows: [ status: { column: mode, is: anonymous } ]
      minimum: 5
      share: 90
      dimensions: { channel: allow, at: { by: month, closed: true } }
`)
	for id, want := range map[string][]string{
		"1": {"does not see",
			"aggregates count it: its group (at '2026-01-01 00:00:00+00', channel 'large') has 7 different " +
				"person, and at least 5 are needed; unless one of them is more than 90 percent",
			"✗ not: what is below holds, and must not", "✓ status: mode is 'anonymous', must not be", "✗ status: mode is 'anonymous'  "},
		"21": {"aggregates do not count it either: its group (at '2026-01-01 00:00:00+00', channel 'small') has 2 " +
			"different person, and at least 5 are needed"},
		"30": {"does not see", "aggregates do not count it either: the aggregate's rows do not take it"},
		"31": {"chat sees it", "not all of it is seen: note by key only, as columns of id name it"},
		"32": {"aggregates do not count it either: the aggregate's rows do not take it"},
		"33": {"aggregates do not count it either"},
		"34": {"does not see", "? not: it is not certain that what is below does not hold (unknown, which hides)", "aggregates do not count it either"},
	} {
		q := i.question
		q.Agent, q.Attributes, q.Table, q.Key = "chat", map[string]string{"user": "1"}, "visits", []string{id}
		a, err := Explain(t.Context(), i.super, q)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		Printer{Out: &b}.Print(a)
		for _, text := range want {
			if !strings.Contains(b.String(), text) {
				t.Errorf("visit %s lacks %q:\n%s", id, text, b.String())
			}
		}
		if !a.AgreesWithRowSecurity() || strings.Contains(b.String(), "aggregates") == a.Rows[0].Visible {
			t.Errorf("visit %s:\n%s", id, b.String())
		}
	}
}

// All subjects whose rows are partly anonymous count as one subject of the group.
func TestGroupsCountSweptSubjectsOnce(t *testing.T) {
	db := pgtest.Database(t)
	conn := db.Connect(t, "postgres")
	if _, err := conn.Exec(t.Context(), `CREATE TABLE visits (id integer PRIMARY KEY, person text, at timestamptz, anonymous boolean)`); err != nil {
		t.Fatal(err)
	}
	i := install(t, db, `version: 1
attributes: {}
tables:
  visits:
    rows: [ consent: { subject: person, registry: { since: at } } ]
    aggregate:
      subject: person
      rows: [ status: { column: anonymous, is: "true" } ]
      minimum: 2
    lifecycle: { subject: person, at: at, columns: { person: { becomes: hash } } }
`)
	for _, sql := range []string{
		`INSERT INTO pgconsent.subject (ref, subject, key) SELECT gen_random_uuid(), p, decode(md5(p), 'hex') FROM unnest('{ada,bob}'::text[]) AS p`,
		`INSERT INTO visits SELECT 1, 'ada', now(), true UNION ALL SELECT 2, 'anonymous-' || pgconsent.pseudonym('ada', 'ada'), now(), true`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	subjects := func() int64 {
		q := i.question
		q.Agent, q.Table, q.Key = "chat", "visits", []string{"1"}
		a, err := Explain(t.Context(), i.super, q)
		if err != nil {
			t.Fatal(err)
		}
		return a.Rows[0].Group.Subjects
	}
	if n := subjects(); n != 1 {
		t.Errorf("%d subjects, and ada is one", n)
	}
	if _, err := conn.Exec(t.Context(), `INSERT INTO visits VALUES (3, 'bob', now(), true)`); err != nil {
		t.Fatal(err)
	}
	if n := subjects(); n != 2 {
		t.Errorf("%d subjects, and they are ada and bob", n)
	}
}
