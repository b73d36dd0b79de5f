package rewrite

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// plainSelectFields are the fields of a SELECT that only select, join, sort and limit rows. None of them combines
// several rows into one.
var plainSelectFields = setOf("target_list from_clause where_clause sort_clause limit_offset limit_count limit_option " +
	"locking_clause group_distinct all op larg rarg into_clause")

// A contract counts result rows only for reads where each result row holds exactly one row of each table named. Each
// statement here has one feature that breaks this. The last check asks the grammar for all fields of a SELECT.
func TestPlainReads(t *testing.T) {
	for sql, want := range map[string]struct {
		limit         int64
		isSingleTable bool
	}{
		"SELECT title FROM event LIMIT 5": {5, true},
		"SELECT * FROM event":             {-1, true},
		"SELECT title FROM event WHERE lower(title) = 'x' ORDER BY length(title) LIMIT $1":    {-1, true},
		"SELECT title FROM event LIMIT NULL":                                                  {-1, true},
		"SELECT title FROM event FETCH FIRST 3 ROWS ONLY":                                     {3, true},
		"SELECT title FROM event ORDER BY title FETCH FIRST 3 ROWS WITH TIES":                 {-1, true},
		"SELECT e.title, n.label FROM event e, need n LIMIT 5":                                {5, false},
		"SELECT e.title FROM event e JOIN event f ON e.id = f.id LEFT JOIN need n USING (id)": {-1, false},
		"PREPARE p AS SELECT title FROM event LIMIT 5":                                        {5, true},
		"DECLARE c CURSOR FOR SELECT title FROM event LIMIT 5":                                {5, true},
	} {
		stmt := parseOne(t, sql)
		if limit, isPlain := isPlainSelect(stmt); !isPlain || limit != want.limit {
			t.Errorf("%s: plain %v, limit %d", sql, isPlain, limit)
		}
		if readsOneTableOnce(stmt) != want.isSingleTable {
			t.Errorf("%s: single %v", sql, !want.isSingleTable)
		}
	}
	triedFields := map[string]bool{}
	for _, sql := range []string{
		"SELECT upper(title) FROM event LIMIT 5",
		"SELECT count(*) FROM event LIMIT 5",
		"SELECT title, 1 FROM event LIMIT 5",
		"SELECT (e.*)::text FROM event e LIMIT 5",
		"SELECT title LIMIT 5",
		"VALUES ('a') LIMIT 5",
		"SELECT DISTINCT title FROM event LIMIT 5",
		"SELECT DISTINCT ON (id) title FROM event LIMIT 5",
		"SELECT title FROM event GROUP BY title LIMIT 5",
		"SELECT title FROM event HAVING true LIMIT 5",
		"SELECT title FROM event WINDOW w AS (ORDER BY id) LIMIT 5",
		"SELECT title FROM event UNION ALL SELECT label FROM need LIMIT 5",
		"WITH d AS (DELETE FROM event RETURNING title) SELECT title FROM d LIMIT 5",
		"WITH d AS (SELECT string_agg(title, ',') AS title FROM event) SELECT title FROM d LIMIT 5",
		"SELECT title FROM (SELECT string_agg(title, ',') AS title FROM event) AS d LIMIT 5",
		"SELECT f FROM find_events('x') AS f LIMIT 5",
		"SELECT f FROM need, find_events('x') AS f LIMIT 5",
		"SELECT f FROM need JOIN find_events('x') AS f ON true LIMIT 5",
		"SELECT f FROM find_events('x') AS f JOIN need ON true LIMIT 5",
		"SELECT f FROM need JOIN (event JOIN find_events('x') AS f ON true) ON true LIMIT 5",
		"SELECT x.a FROM XMLTABLE('/a' PASSING '<a/>' COLUMNS a text) AS x LIMIT 5",
		"SELECT title FROM event TABLESAMPLE SYSTEM (1) LIMIT 5",
		"SELECT title FROM event WHERE title = (SELECT max(label) FROM need) LIMIT 5",
		"SELECT title FROM event WHERE json_array(SELECT label FROM need)::text = title LIMIT 5",
		"SELECT title FROM event ORDER BY (SELECT count(*) FROM need) LIMIT 5",
		"SELECT title FROM event LIMIT (SELECT 5)",
		"INSERT INTO event (title) VALUES ('a') RETURNING title",
		"DELETE FROM event RETURNING title",
		"COPY event TO STDOUT",
		"EXECUTE p",
		"PREPARE p AS SELECT count(*) FROM event LIMIT 5",
		"DECLARE c CURSOR FOR SELECT count(*) FROM event LIMIT 5",
	} {
		stmt := parseOne(t, sql)
		if _, isPlain := isPlainSelect(stmt); isPlain {
			t.Errorf("%s: its rows count as rows of tables", sql)
		}
		if readsOneTableOnce(stmt) {
			t.Errorf("%s: its rows count as rows of one table", sql)
		}
		if s := stmt.GetSelectStmt(); s != nil {
			s.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
				triedFields[string(f.Name())] = true
				return true
			})
		}
	}
	fields := (&sqltext.SelectStmt{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if name := string(fields.Get(i).Name()); !triedFields[name] && !plainSelectFields[name] {
			t.Errorf("no statement has %s", name)
		}
	}
}

// parseOne returns the single statement of a text.
func parseOne(t *testing.T, sql string) *sqltext.Node {
	t.Helper()
	tree, refusal := sqltext.Parse(sql)
	if refusal != nil || len(tree.Stmts) != 1 {
		t.Fatalf("%s: %v", sql, refusal)
	}
	return tree.Stmts[0].GetStmt()
}
