package rewrite

import (
	"context"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/policy"
)

// The rule is checked for few rows if a statement writes few, or if it reads an index in order and each tenant's rows
// are not adjacent. Hash sets of whole tables would cost hundreds of times as much.
func TestUseHashHintOfFewRows(t *testing.T) {
	conn := pgtest.Database(t).Connect(t, "postgres")
	if _, err := conn.PgConn().Exec(context.Background(), `CREATE TABLE holders (id bigint PRIMARY KEY, tenant bigint, agreed text);
		CREATE TABLE files (id bigint PRIMARY KEY, tenant bigint, part text, holder bigint REFERENCES holders ON DELETE CASCADE, title text, made date);
		CREATE INDEX ON files (tenant, made DESC, id DESC); CREATE INDEX ON files (part, title)`).ReadAll(); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(context.Background(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	sizes := catalog.Sizes{}
	for _, name := range []string{"holders", "files"} {
		sizes[catalog.Name{Schema: "public", Name: name}] = catalog.Size{
			Rows: 1e6, DistinctValues: map[string]float64{"id": 1e6, "holder": 1e5, "part": 9, "tenant": 3}}
	}
	for attribute, statements := range map[string]map[string]bool{
		"bigint": {
			"SELECT title FROM files ORDER BY made DESC LIMIT 20":                                   false,
			"SELECT title FROM files WHERE made < '2026-01-01' ORDER BY made DESC, id LIMIT 9":      false,
			"SELECT title FROM files WHERE part = 'a' ORDER BY title LIMIT 20":                      false,
			"SELECT title FROM files WHERE part IN ('a', 'b') ORDER BY title LIMIT 20":              true,
			"SELECT title FROM files ORDER BY title LIMIT 20":                                       true,
			"SELECT title FROM files ORDER BY id DESC LIMIT 20":                                     false,
			"UPDATE files SET title = 'b' WHERE id = 7":                                             false,
			"UPDATE files SET title = 'b' WHERE id = 7 RETURNING title":                             false,
			"UPDATE files SET title = 'b' WHERE title LIKE '%a'":                                    true,
			"UPDATE files f SET title = h.agreed FROM holders h WHERE h.id = f.holder AND f.id = 7": false,
			"DELETE FROM files WHERE id IN (7, 8)":                                                  false,
			"DELETE FROM files USING holders h WHERE h.id = files.holder":                           true,
			"DELETE FROM files": true,
			"INSERT INTO files (id, holder, title) VALUES (1, 2, 'a'), (3, 4, 'b')":                false,
			"INSERT INTO files (id, holder, title) VALUES (1, 2, 'a') RETURNING id":                false,
			"INSERT INTO files (id, holder, title) SELECT id + 1000000, holder, title FROM files":  true,
			"INSERT INTO files (id, holder, title) SELECT 9, id, 'a' FROM holders WHERE id = 7":    false,
			"INSERT INTO files (id, holder, title) SELECT id, 1, 'a' FROM holders":                 true,
			"WITH gone AS (DELETE FROM files WHERE id = 7 RETURNING title) SELECT title FROM gone": false,
		},
		"bigint[]": {
			"SELECT title FROM files ORDER BY made DESC LIMIT 20": true, // rows of several tenants alternate in the index
		},
	} {
		doc, err := policy.Parse("policy.yaml",
			[]byte("version: 1\nattributes: { tenant: { type: \""+attribute+
				"\", source: credential } }\ntables:\n  holders: { rows: [ status: { column: agreed, is: \"yes\" } ] }\n"+
				"  files: { rows: [ own: { column: tenant, is: tenant }, visible: { holders: { id: holder } } ], "+
				"write: { commands: [insert, update, delete], columns: [id, title, holder, tenant], accept: [conflicts, references] } }\n"))
		if err != nil {
			t.Fatal(err)
		}
		pol, err := policy.Compile(doc, snap, policy.WithViews(RewriteViewQuery))
		if err != nil {
			t.Fatal(err)
		}
		r := New(snap, pol, RowSecurityMode).WithSizes(sizes)
		for sql, want := range statements {
			if result, refusal := r.Rewrite(sql, false); refusal != nil || result.UseHash != want {
				t.Errorf("%s (%s): scan is %v: %v", sql, attribute, result.UseHash, refusal)
			}
		}
	}
}
