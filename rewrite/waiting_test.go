package rewrite

import (
	"testing"

	"github.com/pgconsent/pgconsent/policy"
)

// A table may have a new column for which pgconsent migrate has not run yet. A statement that could read it gets the
// other columns by name, or is refused. Other statements are unchanged.
func TestColumnsThatWaitForMigrate(t *testing.T) {
	rewriter(t, RowSecurityMode)
	table, _ := fixture.snap.ResolveRelation("", "people")
	people, _ := fixture.snap.Relation(table)
	snap, _ := fixture.snap.WithoutColumns(map[uint32][]string{people.OID: {"created_at"}})
	doc, err := policy.Load("testdata/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pol, err := policy.Compile(doc, snap, policy.WithViews(RewriteViewQuery))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ sql, want string }{
		{"SELECT name FROM people", "SELECT name FROM public.people"},
		{
			"SELECT * FROM people",
			"SELECT * FROM (SELECT id, user_id, name, is_self, consent_status FROM public.people) AS people",
		},
		{
			"SELECT created_at FROM people",
			"SELECT created_at FROM (SELECT id, user_id, name, is_self, consent_status FROM public.people) AS people",
		},
		{"SELECT p.* FROM people p FOR UPDATE", "42501"},
		{
			"SELECT *, tableoid FROM people",
			"SELECT people.id, people.user_id, people.name, people.is_self, people.consent_status, tableoid FROM " +
				"public.people",
		},
		{
			"SELECT p.* FROM people p GROUP BY p.id",
			"SELECT p.id, p.user_id, p.name, p.is_self, p.consent_status FROM public.people p GROUP BY p.id",
		},
		{
			"SELECT row_to_json(p) FROM people p",
			"SELECT pg_catalog.row_to_json(p) FROM (SELECT id, user_id, name, is_self, consent_status FROM public" +
				".people) p",
		},
		{
			"SELECT name FROM people p WHERE EXISTS (SELECT FROM people q NATURAL JOIN people)",
			"SELECT name FROM public.people p WHERE EXISTS (SELECT FROM (SELECT id, user_id, name, is_self, conse" +
				"nt_status FROM public.people) q NATURAL JOIN (SELECT id, user_id, name, is_self, consent_status FROM public.people) AS people)",
		},
		{"COPY people TO STDOUT", "COPY public.people (id, user_id, name, is_self, consent_status) TO STDOUT"},
		{"COPY people (created_at) TO STDOUT", "55000"},
		{"SELECT name FROM ONLY people WHERE created_at IS NULL", "55000"},
		{"SELECT NULL::people", "55000"},
		{"SELECT * FROM ONLY people, memories", "55000"},
	} {
		result, refusal := New(snap, pol, RowSecurityMode).Rewrite(c.sql, false)
		got := result.Text
		if refusal != nil {
			got = string(refusal.Code)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.sql, got, c.want)
		}
	}
}
