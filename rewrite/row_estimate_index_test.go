package rewrite

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/policy"
)

// Where a statement's own conditions find few rows by an index, the rewriter adds a hint. PostgreSQL then does not also
// read the index that serves the rule.
func TestUseIndexHint(t *testing.T) {
	conn := pgtest.Database(t).Connect(t, "postgres")
	if _, err := conn.PgConn().Exec(context.Background(), `CREATE EXTENSION pg_trgm; CREATE TABLE boards (id bigint PRIMARY KEY, tenant bigint, open boolean);
		CREATE TABLE cards (id bigint PRIMARY KEY, tenant bigint, board bigint, kind int, title text, code text, found tsvector, made date);
		CREATE INDEX ON boards (tenant); CREATE INDEX ON cards (tenant, made); CREATE INDEX ON cards (board);
		CREATE INDEX ON cards (kind); CREATE INDEX ON cards (tenant, code); CREATE INDEX ON cards (made); CREATE INDEX ON cards USING gin (found);
		CREATE INDEX ON cards USING gin (code gin_trgm_ops);
		CREATE TABLE plain (id bigint PRIMARY KEY, tenant bigint, board bigint); CREATE INDEX ON plain (board)`).ReadAll(); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(context.Background(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	sizes := catalog.Sizes{}
	for name, rows := range map[string]float64{"boards": 1000, "cards": 1e6, "plain": 1e6} {
		sizes[catalog.Name{Schema: "public", Name: name}] = catalog.Size{
			Rows: rows, DistinctValues: map[string]float64{"id": rows, "tenant": 10, "board": 1000, "kind": 4, "code": 1e5}}
	}
	doc, err := policy.Parse("policy.yaml", []byte(`version: 1
attributes: { tenant: { type: bigint, source: credential } }
tables:
  boards: { rows: [ own: { column: tenant, is: tenant }, sql: "open" ] }
  cards: { rows: [ own: { column: tenant, is: tenant }, visible: { boards: { id: board } } ], write: { commands: [update], columns: [title] } }
  plain: { rows: [ own: { column: tenant, is: tenant } ] }
`))
	if err != nil {
		t.Fatal(err)
	}
	pol, err := policy.Compile(doc, snap, policy.WithViews(RewriteViewQuery))
	if err != nil {
		t.Fatal(err)
	}
	r := New(snap, pol, AutoMode).WithSizes(sizes)
	const search = "found @@ plainto_tsquery('simple', 'a')"
	for sql, want := range map[string]bool{
		"SELECT title FROM cards WHERE board = 7 ORDER BY made DESC LIMIT 20":                           true,
		"SELECT title FROM cards WHERE board = $1 AND title ~ 'a'":                                      true,
		"SELECT title FROM cards WHERE board IN (7, 8)":                                                 true,
		"SELECT a.id FROM cards a JOIN cards b ON b.board = a.board WHERE a.board = 7":                  false, // a million rows
		"SELECT c.title FROM cards c JOIN boards b ON b.id = c.board WHERE c.board = 7":                 true,
		"SELECT title FROM cards WHERE " + search:                                                       true,
		"SELECT title FROM cards WHERE " + search + " AND title ~ 'a'":                                  true, // the rows of the search are read first
		"SELECT title FROM cards WHERE " + search + " ORDER BY id LIMIT 20":                             true,
		"SELECT title FROM cards WHERE " + search + " ORDER BY made LIMIT 20":                           false, // a tenant's index returns this order
		"SELECT title FROM cards WHERE title ILIKE '%a%'":                                               false, // there is no index
		"SELECT title FROM cards WHERE id = 7":                                                          false, // one row
		"SELECT title FROM cards WHERE kind = 1":                                                        false, // a quarter of the rows
		"SELECT title FROM cards WHERE board = 7 AND code = 'a'":                                        false, // the tenant's index finds fewer rows
		"SELECT title FROM cards WHERE made > '2026-01-01'":                                             false,
		"SELECT title FROM cards WHERE made BETWEEN '2026-01-01' AND '2026-02-01'":                      false, // the number of rows is not known
		"SELECT title FROM cards ORDER BY made DESC LIMIT 20":                                           false,
		"SELECT count(*) FROM cards":                                                                    false,
		"SELECT title FROM cards WHERE board = 7 UNION ALL SELECT title FROM cards":                     false,
		"SELECT title FROM cards WHERE board = 7 AND EXISTS (SELECT FROM cards c WHERE c.made < now())": false,
		"SELECT id FROM plain WHERE board = 7":                                                          false, // no index begins with the tenant
		"UPDATE cards SET title = 'a' WHERE board = 7":                                                  true,
		"UPDATE cards SET title = 'a' WHERE board = (SELECT 1 / min(id) FROM boards)":                   false, // a hardened plan combines no indexes
		"SELECT title FROM cards WHERE board = 7; SELECT 1":                                             false,
	} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil {
			t.Errorf("%s: %v", sql, refusal)
			continue
		}
		if result.UseIndex != want || strings.HasPrefix(result.Text, predicate.UseIndexHint) != want {
			t.Errorf("%s (%s): seek is %v, %.60s", sql, result.Path, result.UseIndex, result.Text)
		}
	}
	if result, _ := New(snap, pol, AutoMode).Rewrite("SELECT title FROM cards WHERE board = 7 AND "+search,
		false); result.UseIndex || len(result.EstimateRows) > 0 {
		t.Error("a hint without sizes")
	}
	// On the signed path, the result names the tables in which an index search finds few rows.
	cards := catalog.Name{Schema: "public", Name: "cards"}
	for sql, want := range map[string]bool{
		"SELECT title FROM cards WHERE " + search:                                                                     true,
		"SELECT title FROM cards WHERE " + search + " ORDER BY made LIMIT 20":                                         true,
		"SELECT title FROM cards WHERE " + search + " AND made > now() GROUP BY title || 'x'":                         true,
		"SELECT b.id FROM boards b JOIN cards c ON c.board = b.id WHERE c." + search:                                  true,
		"SELECT id FROM boards b WHERE id IN (SELECT board FROM cards WHERE " + search + ")":                          true,
		"SELECT title FROM cards WHERE title ILIKE '%abc%'":                                                           false, // no index
		"SELECT title FROM cards WHERE code ILIKE '%abc%'":                                                            true,
		"SELECT title FROM cards WHERE code ILIKE '%ab%'":                                                             false, // the pattern has no trigram
		"SELECT title FROM cards WHERE code ~ 'a.*bcd'":                                                               true,
		"SELECT title FROM cards WHERE code ~ '[0-9]+ab.c'":                                                           false,
		"SELECT title FROM cards WHERE code ~* $1":                                                                    true,
		"SELECT title FROM cards WHERE code !~ 'abc'":                                                                 false,
		"SELECT title FROM cards WHERE code % 'abc'":                                                                  false, // too many rows share trigrams
		"SELECT count(*) FROM cards":                                                                                  false,
		"SELECT count(*) FROM cards WHERE made > '2026-01-01'":                                                        false,
		"WITH c AS (SELECT id FROM cards WHERE " + search + ") SELECT (SELECT count(*) FROM c), random() FROM boards": true,  // found by key
		"UPDATE cards SET title = 'a' WHERE " + search:                                                                true,  // found by key
		"UPDATE cards SET title = 'a' WHERE " + search + " AND board = (SELECT 1 / min(id) FROM boards)":              false, // it needs a hardened plan
	} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil {
			t.Errorf("%s: %v", sql, refusal)
			continue
		}
		if got := slices.Contains(result.EstimateRows, cards); got != want ||
			strings.Contains(result.Text, predicate.EstimateRowsHint(cards)) != want || got && len(result.EstimateRows) > 1 {
			t.Errorf("%s (%s, %s): few is %v, %.90s", sql, result.Path, result.RowSecurityReason, result.EstimateRows, result.Text)
		}
	}
}
