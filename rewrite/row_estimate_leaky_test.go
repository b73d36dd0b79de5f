package rewrite

import (
	"context"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/policy"
)

// Row security uses no index for a condition that is not leak-proof, neither to find one row nor the first rows of a
// LIMIT. Such a search takes the signed path. A condition on several columns counts as finding few rows.
func TestSearchesWithoutIndexUnderRowSecurity(t *testing.T) {
	conn := pgtest.Database(t).Connect(t, "postgres")
	if _, err := conn.PgConn().Exec(context.Background(), `CREATE TABLE owners (id bigint PRIMARY KEY, agreed text);
		CREATE TYPE state AS ENUM ('open', 'closed');
		CREATE TABLE papers (id bigint PRIMARY KEY, owner bigint, part text, title text, price numeric(10,2) UNIQUE, state state, made date, words tsvector);
		CREATE INDEX ON papers (part, title); CREATE INDEX ON papers (lower(title)); CREATE INDEX ON papers (state);
		CREATE INDEX ON papers USING gin (words)`).ReadAll(); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(context.Background(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := policy.Parse("policy.yaml",
		[]byte("version: 1\nattributes: {}\ntables:\n  owners: { rows: [ status: { column: agreed, is: \"yes\" } "+
			"] }\n  papers: { rows: [ visible: { owners: { id: owner } } ] }\n"))
	if err != nil {
		t.Fatal(err)
	}
	pol, err := policy.Compile(doc, snap, policy.WithViews(RewriteViewQuery))
	if err != nil {
		t.Fatal(err)
	}
	sizes := catalog.Sizes{}
	for _, name := range []string{"owners", "papers"} {
		sizes[catalog.Name{Schema: "public", Name: name}] = catalog.Size{Rows: 1e6,
			DistinctValues: map[string]float64{"id": 1e6, "part": 9, "title": 1e5}}
	}
	r := New(snap, pol, AutoMode).WithSizes(sizes)
	for sql, want := range map[string]verdict.Path{
		"SELECT title FROM papers WHERE id = 7":                                                             verdict.PathRowSecurity,
		"SELECT title FROM papers WHERE part = 'a' AND title = 'b'":                                         verdict.PathRowSecurity,
		"SELECT title FROM papers WHERE part = 'a'":                                                         verdict.PathSigned,
		"SELECT title FROM papers ORDER BY id DESC LIMIT 20":                                                verdict.PathRowSecurity,
		"SELECT title FROM papers WHERE made > '2026-01-01' ORDER BY id LIMIT 20":                           verdict.PathRowSecurity,
		"SELECT title FROM papers WHERE price = 12.50":                                                      verdict.PathSigned,
		"SELECT title FROM papers WHERE lower(title) = 'b' LIMIT 1":                                         verdict.PathSigned,
		"SELECT title FROM papers WHERE state = 'open' LIMIT 20":                                            verdict.PathSigned,
		"SELECT title FROM papers WHERE words @@ plainto_tsquery('simple', 'lake') ORDER BY id LIMIT 20":    verdict.PathSigned,
		"SELECT title FROM papers WHERE id = 7 AND words @@ plainto_tsquery('simple', 'lake')":              verdict.PathRowSecurity,
		"SELECT p.title FROM papers p JOIN owners o ON o.id = p.owner WHERE lower(p.title) = 'b' LIMIT 1":   verdict.PathSigned,
		"SELECT title FROM papers WHERE EXISTS (SELECT FROM owners o WHERE o.id = papers.owner) AND id = 7": verdict.PathRowSecurity,
	} {
		if result, refusal := r.Rewrite(sql, false); refusal != nil || result.Path != want {
			t.Errorf("%s takes %q: %q %v", sql, result.Path, result.RowSecurityReason, refusal)
		}
	}
}
