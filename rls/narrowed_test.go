package rls_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

const narrowedPolicy = `version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  slips:
    rows: [ own: { column: user_id, is: user } ]
    columns: { id: allow, user_id: allow, title: allow }
    write: { commands: [insert, update, delete], columns: [id, user_id, title], accept: [conflicts] }
  notices:
    rows: [ own: { column: user_id, is: user } ]
    write: { commands: [insert, update], columns: [id, user_id, title], accept: [conflicts] }
views: { open_notices: {}, late_notices: {}, few_slips: {}, read_notices: {} }
`

const narrowedTables = `SET ROLE app_owner;
CREATE TABLE slips (id int PRIMARY KEY, user_id uuid, title text, secret text);
INSERT INTO slips SELECT i, CASE WHEN i < 3 THEN 'USER1'::uuid ELSE 'USER2' END, 'a', 's' FROM generate_series(1, 5) i;
CREATE TABLE notices (id int PRIMARY KEY, user_id uuid, title text);
INSERT INTO notices VALUES (1, 'USER1', 'a'), (2, 'USER1', ''), (3, 'USER2', 'a');
CREATE VIEW open_notices AS SELECT id, user_id, title FROM notices WHERE title <> '' WITH CHECK OPTION;
CREATE VIEW mid_notices AS SELECT id AS n, user_id AS who, title AS t FROM open_notices WHERE id < 100;
CREATE VIEW late_notices AS SELECT m.n, m.who, m.t FROM mid_notices m WHERE m.n > 1 WITH LOCAL CHECK OPTION;
CREATE VIEW few_slips AS SELECT id, user_id, title FROM slips WHERE title <> '' WITH CHECK OPTION;
CREATE VIEW read_beneath AS SELECT * FROM notices; CREATE VIEW read_notices AS SELECT count(*) FROM read_beneath;
RESET ROLE`

// A write through a view of pgconsent changes the rows that a write to the table, or through the owner's view, could
// change. The rows are visible to the agent before and after it. The statements have no RETURNING, so the rule for
// reading has no effect.
func TestViewsWriteVisibleRows(t *testing.T) {
	w := newWorld(t, strings.NewReplacer("USER1", user1, "USER2", user2).Replace(narrowedTables))
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(narrowedPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	w.compile(file, rls.Options{})
	w.migrate()
	agent, view := w.agent(user1), predicate.RowView(catalog.Name{Schema: "public", Name: "slips"}).SQL()
	openView := predicate.RowView(catalog.Name{Schema: "public", Name: "open_notices"}).SQL()
	lateView, midView, fewView := predicate.RowView(catalog.Name{Schema: "public", Name: "late_notices"}).
		SQL(), predicate.RowView(catalog.Name{Schema: "public", Name: "mid_notices"}).
		SQL(), predicate.RowView(catalog.Name{Schema: "public", Name: "few_slips"}).SQL()
	beneathView := predicate.RowView(catalog.Name{Schema: "public", Name: "read_beneath"}).SQL()
	hiddenRowsQuery := "SELECT string_agg(id || title || secret, ',' ORDER BY id) FROM public.slips WHERE user_id = '" + user2 + "'"
	before, err := query(w.owner, hiddenRowsQuery)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		sql  string
		rows int64 // -1: refused
	}{
		{"UPDATE " + view + " SET title = 'x'", 2},
		{"UPDATE " + view + " SET user_id = '" + user2 + "'", -1},
		{"INSERT INTO " + view + " (id, user_id, title) VALUES (7, '" + user2 + "', 'a')", -1},
		{"INSERT INTO " + view + " (id, user_id, title) VALUES (7, '" + user1 + "', 'a')", 1},
		{"UPDATE " + fewView + " SET title = 'y'", 3},
		{"UPDATE " + fewView + " SET title = ''", -1},
		{"UPDATE " + fewView + " SET user_id = '" + user2 + "'", -1},
		{"INSERT INTO " + fewView + " (id, user_id, title) VALUES (6, '" + user2 + "', 'a')", -1},
		{"INSERT INTO " + fewView + " (id, user_id, title) VALUES (6, '" + user1 + "', 'a')", 1},
		{"DELETE FROM " + fewView + " WHERE id > 5", 2},
		{"DELETE FROM " + view, 2},
		{"UPDATE " + openView + " SET id = id + 10", 1},
		{"UPDATE " + openView + " SET title = ''", -1}, // the view's own condition
		{"INSERT INTO " + openView + " (id, user_id, title) VALUES (8, '" + user1 + "', '')", -1},
		{"INSERT INTO " + openView + " (id, user_id, title) VALUES (8, '" + user2 + "', 'a')", -1},
		{"INSERT INTO " + openView + " (id, user_id, title) VALUES (8, '" + user1 + "', 'a')", 1},
		{"UPDATE " + lateView + " SET n = n + 1", 2},
		{"UPDATE " + lateView + " SET who = '" + user2 + "'", -1},
		{"UPDATE " + lateView + " SET n = 1", -1},      // refused by its own check option
		{"UPDATE " + lateView + " SET t = ''", -1},     // refused by the check option of the first view
		{"UPDATE " + lateView + " SET n = n + 200", 2}, // the view between has no check option, and its condition chooses the rows
		{"UPDATE " + lateView + " SET n = 20", 0},      // no such row
		{"INSERT INTO " + lateView + " (n, who, t) VALUES (9, '" + user2 + "', 'a')", -1},
		{"INSERT INTO " + lateView + " (n, who, t) VALUES (9, '" + user1 + "', '')", -1},
		{"INSERT INTO " + lateView + " (n, who, t) VALUES (9, '" + user1 + "', 'a')", 1},
		{"UPDATE " + midView + " SET who = '" + user2 + "'", -1}, // a column that agents cannot name
		{"DELETE FROM " + lateView, -1},                          // the policy does not permit DELETE
		{"UPDATE " + beneathView + " SET title = 'x'", -1},
	} {
		tag, err := agent.Exec(context.Background(), c.sql)
		if (err != nil) != (c.rows < 0) || err == nil && tag.RowsAffected() != c.rows {
			t.Errorf("%s: %d rows, %v; want %d", c.sql, tag.RowsAffected(), err, c.rows)
		}
	}
	w.want(w.owner, hiddenRowsQuery, before)
	w.want(w.owner, "SELECT string_agg(id || title, ',' ORDER BY id) FROM public.notices WHERE user_id = '"+user2+"'", "3a")
}

// No expression of an agent runs on a catalog row that its shadow leaves out: an error would reveal the row.
func TestNothingRunsOnHiddenRowsOfCatalogs(t *testing.T) {
	tier.All(t)
	w := newWorld(t, "CREATE TABLE hidden_table (hidden_column int)",
		"CREATE FUNCTION hidden_function() RETURNS int LANGUAGE sql AS 'SELECT 1'").migrate()
	agent, checkedColumns := w.agent(user1), 0
	for _, s := range catalog.Shadows() {
		source, exists := w.snap.Relation(s.Source)
		if !s.HidesRows() || s.Query != "" || !exists {
			continue
		}
		for _, c := range source.Columns {
			if c.Type != "oid" && c.Type != "name" {
				continue
			}
			name := catalog.QuoteIdent(c.Name)
			hiddenValue, err := query(w.super, "SELECT min(h.v) FROM (SELECT "+name+"::text AS v FROM "+s.Source.SQL()+
				" EXCEPT SELECT "+name+"::text FROM "+s.View().SQL()+") AS h")
			if err != nil || hiddenValue == "NULL" {
				continue
			}
			checkedColumns++
			if _, err := query(agent, "SELECT count(*) FROM "+s.View().SQL()+" AS s WHERE 1 / (CASE WHEN s."+
				name+" = '"+hiddenValue+"' THEN 0 ELSE 1 END) = 1"); err != nil {
				t.Errorf("%s.%s: %v", s.View(), c.Name, err)
			}
		}
	}
	if checkedColumns < 5 {
		t.Errorf("%d catalogs hide rows", checkedColumns)
	}
}

// A fetch function that is called with more keys than the policy permits returns no rows, even without the rewriter.
func TestKeysAreCounted(t *testing.T) {
	tier.All(t)
	w := newWorld(t, "SET ROLE app_owner; CREATE TABLE pages (id int PRIMARY KEY, code text UNIQUE, body text); "+
		"INSERT INTO pages SELECT i, 'c' || i, 'b' FROM generate_series(1, 9) i; RESET ROLE")
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(`version: 1
attributes: { user: { type: uuid, source: credential } }
tables: { pages: { rows: [ open ], columns: { id: allow, code: allow, body: { by_key: { key: code, at_most: 3 } } } } }
`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.compile(file, rls.Options{})
	w.migrate()
	agent := w.agent(user1)
	for _, withRule := range []bool{false, true} {
		function := predicate.KeyedView(catalog.Name{Schema: "public", Name: "pages"}, withRule).SQL()
		for keys, rows := range map[string]string{
			"'c1'": "1", "'c1', 'c2', 'c3'": "3", "'c1', 'c2', 'c3', 'c4'": "0", "'c1', 'c1', 'c1', 'c1'": "0", "NULL, NULL, NULL, 'c1'": "0"} {
			w.want(agent, "SELECT count(*) FROM "+function+"(true, ARRAY["+keys+"]) AS f", rows)
		}
		w.want(agent, "SELECT count(*) FROM "+function+"(true, NULL) AS f", "0")
	}
}
