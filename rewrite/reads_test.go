package rewrite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/test/tier"
)

// sourcesOfX are FROM items that give rows of event the alias x, with columns id, title, embedding and n. Each has a
// text before SELECT, and one for FROM.
var sourcesOfX = [][2]string{
	{"", "event AS x"},
	{"", "event x (id, vessel, other, title)"},
	{"", "(SELECT * FROM event) AS x"},
	{"", "(SELECT e.* FROM event AS e) AS x"},
	{"", "(SELECT * FROM event) AS x (id, vessel, other, title)"},
	{"", "(SELECT id, body AS title, embedding, n FROM event) AS x"},
	{"", "(SELECT id, upper(body) AS title, embedding, n + vessel_id AS n FROM event) AS x"},
	{"", "(SELECT (e).* FROM event AS e) AS x"},
	{"", "event AS e, LATERAL (SELECT e.*) AS x"},
	{"", "event AS e, LATERAL (SELECT e.id, e.body AS title, e.embedding, e.n) AS x"},
	{"", "event AS e JOIN LATERAL (SELECT e.id, e.body AS title, e.embedding, e.n) AS x ON true"},
	{"", "(SELECT e AS r FROM event AS e) AS y, LATERAL (SELECT (y.r).*) AS x"},
	{"", "(SELECT e AS r FROM event AS e) AS y, LATERAL (SELECT (y.r).id, (y.r).body AS title, (y.r).embedding, (y.r).n) AS x"},
	{"", "(event AS e JOIN plain AS p USING (id)) AS x"},
	{"", "(event AS e JOIN plain AS p USING (id)) AS x (id, vessel, other, title)"},
	{"", "(event AS e NATURAL JOIN (SELECT id, n FROM event) AS f) AS x"},
	{"", "plain AS p RIGHT JOIN event AS x ON p.id = x.id AND p.word <> x.body"},
	{"", "plain AS p FULL JOIN event AS x ON p.word = x.title"},
	{"", "(SELECT * FROM event UNION SELECT * FROM event) AS x"},
	{"", "(SELECT * FROM event UNION ALL SELECT * FROM event WHERE body < 'c') AS x"},
	{"", "(SELECT id, title, embedding, n FROM event UNION ALL SELECT id, body, embedding, vessel_id FROM event) AS x"},
	{"", "(SELECT id, title, embedding, n FROM event EXCEPT SELECT id, body, embedding, n FROM event) AS x"},
	{"", "(SELECT id, NULL::text AS title, embedding, n FROM event UNION ALL SELECT e.* FROM (SELECT id, body, " +
		"embedding, vessel_id FROM event) AS e) AS x"},
	{"", "(SELECT (e).* FROM (SELECT id, title, embedding, n FROM event) AS e UNION ALL SELECT id, body, embedding, n FROM event) AS x"},
	{"", "(SELECT id, body, embedding, n FROM event UNION ALL SELECT (e).* FROM (SELECT id, title, embedding, " +
		"vessel_id FROM event) AS e) AS x (id, title, embedding, n)"},
	{"", "(SELECT DISTINCT ON (body) * FROM event ORDER BY body) AS x"},
	{"", "(SELECT * FROM event ORDER BY body LIMIT 2) AS x"},
	{"", "(SELECT * FROM event OFFSET (SELECT count(*) FROM plain WHERE word < 'c')) AS x"},
	{"", "(VALUES (1, (SELECT max(body) FROM event), NULL::cube, (SELECT min(vessel_id) FROM event))) AS x (id, title, embedding, n)"},
	{"", "unnest(ARRAY(SELECT e FROM event AS e)) AS x"},
	{"", "unnest(ARRAY(SELECT e FROM event AS e)) AS x (id, vessel, other, title)"},
	{"", "json_to_recordset((SELECT json_agg(e) FROM event AS e)) AS x (id integer, title text, embedding cube, n integer)"},
	{"", "event AS e, LATERAL jsonb_to_record(to_jsonb(e)) AS x (id integer, title text, embedding cube, n integer)"},
	{"", "event AS e, XMLTABLE('/a' PASSING xmlelement(NAME a, e.body) COLUMNS id integer PATH '@i' DEFAULT " +
		"e.vessel_id, title text PATH '.', embedding text PATH '@e', n integer PATH '@n' DEFAULT e.n) AS x"},
	{"", "event_all AS x"},
	{"", "event_all x (id, vessel, other, title)"},
	{"", "(SELECT key AS id, title, hidden AS embedding, 1 AS n FROM over_all) AS x"},
	{"WITH x AS (SELECT * FROM event)", "x"},
	{"WITH x (id, vessel, other, title) AS (SELECT * FROM event)", "x"},
	{"WITH y AS (SELECT * FROM event)", "y AS x (id, vessel, other, title)"},
	{"WITH y AS (SELECT * FROM event), x AS (SELECT y.* FROM y)", "x"},
	{"WITH event AS (SELECT id, body AS title, embedding, n FROM event)", "event AS x"},
	{"WITH event AS (SELECT 1 AS id)", "public.event AS x"},
	{"WITH event AS (SELECT id, body AS title FROM event)", "event AS e, public.event AS x"},
	{"WITH x AS (WITH x AS (SELECT id, body AS title, embedding, n FROM event) SELECT * FROM x)", "x"},
	{"WITH RECURSIVE x AS (SELECT * FROM y), y AS (SELECT id, body AS title, embedding, n FROM event)", "x"},
	{"WITH RECURSIVE x AS (SELECT * FROM y), y (id, vessel, other, title) AS (SELECT * FROM event)", "x"},
	{"WITH RECURSIVE x AS (SELECT (y).* FROM y), y AS (SELECT id, body AS title, embedding, n FROM event)", "x"},
	{"WITH RECURSIVE x AS (SELECT * FROM y UNION ALL SELECT id, title, embedding, n FROM event), y AS (SELECT id, " +
		"body AS title, embedding, vessel_id AS n FROM event)", "x"},
	{"WITH RECURSIVE x AS (SELECT id, title, embedding, n FROM event UNION ALL SELECT * FROM y), y AS (SELECT id, " +
		"body, embedding, vessel_id FROM event)", "x"},
	{"WITH RECURSIVE x AS (SELECT id, title, embedding, n FROM event UNION ALL SELECT * FROM y), y AS (SELECT z.* " +
		"FROM (SELECT id, body, embedding, vessel_id FROM event) AS z)", "x"},
	{"WITH RECURSIVE x AS (SELECT y.* FROM y UNION ALL SELECT id, title, embedding, n FROM event), y AS (SELECT " +
		"z.* FROM (SELECT id, body AS title, embedding, vessel_id AS n FROM event) AS z)", "x"},
	{"WITH RECURSIVE x (id, title, embedding, n) AS (SELECT * FROM y), y AS (SELECT z.* FROM (SELECT id, body, " +
		"embedding, vessel_id FROM event) AS z)", "x"},
	{"WITH RECURSIVE y AS (SELECT * FROM z), z AS (SELECT w.* FROM (SELECT id, body, embedding, vessel_id FROM " +
		"event) AS w)", "(SELECT * FROM y) AS x (id, title, embedding, n)"},
	{"WITH RECURSIVE y AS (SELECT * FROM z), z AS (SELECT w.* FROM (SELECT id, body, embedding, vessel_id FROM " +
		"event) AS w)", "(SELECT id, title, embedding, n FROM event UNION ALL SELECT * FROM y) AS x"},
	{"WITH RECURSIVE y AS (SELECT * FROM z), z AS (SELECT w.* FROM (SELECT id, body, embedding, vessel_id FROM " +
		"event) AS w)", "(SELECT * FROM y UNION ALL SELECT id, title, embedding, n FROM event) AS x (id, title, embedding, n)"},
	{"WITH RECURSIVE y AS (SELECT * FROM z), z AS (SELECT w.* FROM (SELECT id, body, embedding, vessel_id FROM " +
		"event) AS w)", "(SELECT y.*, 1 FROM y UNION ALL SELECT id, title, embedding, n, 2 FROM event) AS x (id, title, embedding, n)"},
	{"WITH RECURSIVE y AS (SELECT * FROM z), z AS (SELECT w.* FROM (SELECT id, body, embedding, vessel_id FROM " +
		"event) AS w)", "(SELECT *, 1 FROM y) AS x (id, title, embedding, n)"},
	{"WITH RECURSIVE x AS (SELECT 1 AS one, y.* FROM y), y AS (SELECT z.* FROM (SELECT id, body AS title, " +
		"embedding, vessel_id AS n FROM event) AS z)", "x"},
	{"WITH RECURSIVE x AS (SELECT id, title, embedding, n FROM event UNION ALL SELECT id + 9, title, embedding, n FROM x WHERE id < 9)", "x"},
	{"WITH RECURSIVE x (id, title, embedding, n) AS (SELECT id, title, embedding, n FROM event UNION ALL SELECT " +
		"x.id + 9, e.body, x.embedding, e.vessel_id FROM x JOIN event AS e ON e.id = x.id)", "x"},
	{"WITH RECURSIVE x AS (SELECT * FROM event UNION ALL SELECT * FROM x WHERE false)", "x"},
	{"WITH RECURSIVE x AS (SELECT id, title, embedding, n FROM event UNION ALL SELECT id + 9, n, embedding, m " +
		"FROM (SELECT id, title AS n, embedding, n AS m FROM x WHERE id < 9) AS y)", "x"},
	{"WITH RECURSIVE y AS (SELECT id, title, embedding, n FROM event UNION ALL SELECT id + 9, title, embedding, n " +
		"FROM y WHERE id < 9) SEARCH DEPTH FIRST BY title SET o, x AS (SELECT id, o::text AS title, embedding, n FROM y)", "x"},
	{"WITH RECURSIVE y AS (SELECT id, title, embedding, n FROM event UNION ALL SELECT id + 9, title, embedding, n " +
		"FROM y WHERE id < 9) CYCLE n SET c USING p, x AS (SELECT id, p::text AS title, embedding, n FROM y)", "x"},
}

// usesOfX are queries over x; {} stands for its FROM item.
var usesOfX = []string{
	"SELECT x.id FROM {}",
	"SELECT x.title FROM {}",
	"SELECT x.* FROM {}",
	"SELECT * FROM {}",
	"SELECT x FROM {}",
	"SELECT (x).title FROM {}",
	"SELECT x.title AS t, x.n FROM {} ORDER BY t, 2",
	"SELECT count(x) FROM {}",
	"SELECT count(x.title) FROM {}",
	"SELECT count(DISTINCT x.title) FROM {}",
	"SELECT x.title IS NULL, x.n IS NOT NULL FROM {}",
	"SELECT count(*) FROM {} WHERE x IS NOT NULL",
	"SELECT count(x.title || 'a') FROM {}",
	"SELECT row_to_json(x)::text FROM {}",
	"SELECT x::text FROM {}",
	"SELECT ROW(x.*)::text FROM {}",
	"SELECT array_agg(x ORDER BY x.id)::text FROM {}",
	"SELECT string_agg('a' || x.id, ',' ORDER BY x.n, x.id) FROM {}",
	"SELECT x.id FROM {} WHERE x.title > 'b'",
	"SELECT x.id FROM {} WHERE x.n = 2 OR x.id = 1",
	"SELECT x.id FROM {} ORDER BY x.title, x.id",
	"SELECT x.id FROM {} ORDER BY x.n DESC, x.id LIMIT 1",
	"SELECT count(*) FROM {} GROUP BY x.title ORDER BY 1",
	"SELECT count(*) FROM {} GROUP BY ROLLUP (x.title, x.n) ORDER BY 1",
	"SELECT x.id FROM {} GROUP BY x.id HAVING max(x.title) > 'b' ORDER BY 1",
	"SELECT DISTINCT x.title FROM {} ORDER BY 1",
	"SELECT DISTINCT ON (x.n) x.id FROM {} ORDER BY x.n, x.id",
	"SELECT x.id, rank() OVER (ORDER BY x.title), count(*) OVER w FROM {} WINDOW w AS (PARTITION BY x.n) ORDER BY x.id, 2",
	"SELECT x.id, (SELECT x.title) FROM {}",
	"SELECT x.id, (SELECT max(p.word) FROM plain AS p WHERE p.word < x.title) FROM {}",
	"SELECT x.id FROM {} WHERE EXISTS (SELECT FROM plain AS p WHERE p.word = x.title)",
	"SELECT x.id FROM {} WHERE x.title IN (SELECT word FROM plain)",
	"SELECT p.id FROM plain AS p WHERE p.word IN (SELECT x.title FROM {})",
	"SELECT p.id FROM plain AS p WHERE (SELECT count(*) FROM {} WHERE x.title < p.word) > 1",
	"SELECT p.id FROM plain AS p ORDER BY (SELECT count(*) FROM {} WHERE x.title < p.word), p.id",
	"SELECT count(*) FROM plain LIMIT (SELECT count(*) FROM {} WHERE x.title < 'b')",
	"SELECT z.title FROM {}, LATERAL (SELECT x.*) AS z",
	"SELECT z.t FROM (SELECT x.title AS t, x.n FROM {}) AS z WHERE z.n > 2",
	"SELECT y.id FROM plain AS y JOIN ({}) ON y.word = x.title",
	"SELECT coalesce(x.title, 'z'), greatest(x.n, 3), CASE WHEN x.n > 2 THEN 1 END FROM {}",
	"SELECT x.id, (WITH event AS (SELECT 'a'::text AS body) SELECT body FROM event), (SELECT max(body) FROM event) FROM {}",
	"SELECT x.id FROM {} WHERE x.id > (WITH event AS (SELECT 1 AS n) SELECT n FROM event) AND x.id > (SELECT min(n) FROM event)",
	"SELECT x.title FROM {} WHERE x.id = 2",
	"SELECT x.title FROM {} WHERE x.id IN (2)",
	"SELECT x.title FROM {} WHERE x.id IN (2, 3)",
	"SELECT x.title FROM {} WHERE x.id = 2 OR x.n = 1",
	"SELECT x.title FROM {} WHERE x.id > 2",
	"SELECT x.title FROM {} WHERE NOT x.id = 2",
	"SELECT x.title FROM {} WHERE x.id = x.n",
	"SELECT count(*) FROM {} WHERE (x.id = 2) IS NOT NULL",
	"SELECT max(x.title) FROM {} WHERE x.id = 2 AND x.n > 1",
	"SELECT max(x.title), count(*) FROM plain AS p LEFT JOIN {} ON x.id = 2",
	"SELECT max(x.title), count(*) FROM plain AS p JOIN {} ON x.id = 2",
	"SELECT max(x.title), count(*) FROM plain AS p RIGHT JOIN {} ON x.id = 2",
	"SELECT p.id, (SELECT max(x.title) FROM {} WHERE p.id = 2) FROM plain AS p",
	"SELECT x.id FROM {} WHERE x.embedding IS NOT NULL",
	"SELECT x.id, similarity(x.title, 'b') FROM {}",
	"SELECT x.id FROM {} ORDER BY x.title <-> 'b', x.id",
	"SELECT x.id FROM {} WHERE x.title % 'b'",
	"SELECT x.id FROM {} ORDER BY x.embedding::text, x.id",
}

const readsData = `
	ALTER TABLE event DROP CONSTRAINT event_vessel_id_fkey;
	ALTER TABLE need DROP CONSTRAINT need_vessel_id_fkey;
	INSERT INTO event SELECT i, 1 + i % 2, chr(97 + i), chr(101 - i), cube(i, 1), ARRAY[i], '2026-01-01', 5 - i FROM generate_series(1, 4) i;
	INSERT INTO need SELECT i, i, chr(97 + i), cube(i, 2), true FROM generate_series(1, 4) i;
	INSERT INTO plain SELECT i, chr(97 + i) FROM generate_series(1, 5) i;`

// changedValue is, by type, the expression that changes a column's value. The new values sort differently, and some are
// equal.
var changedValue = map[string]string{
	"integer": "50 - 2 * (%[1]s / 2)", "text": "chr(200 - ascii(%[1]s) / 2)", "cube": "cube(9, 9)",
	"public.cube": "cube(9, 9)", "real[]": "ARRAY[7, 7]", "timestamp with time zone": "'2020-01-01'", "boolean": "NOT %[1]s", "date": "'2020-01-01'",
}

// The result of a statement depends only on the columns that the rewriter reports as read. Each statement runs again
// after all other columns of every table were changed. For a read by key only the other rows change, and a comparison
// by likeness must be reported as such.
func TestAnswersDependOnWhatIsRead(t *testing.T) {
	tier.All(t)
	r := underContract(t)
	ctx := context.Background()
	conn := pgtest.Template(t, "contract", nil).Connect(t, "postgres")
	if _, err := conn.PgConn().Exec(ctx, readsData).ReadAll(); err != nil {
		t.Fatal(err)
	}
	answeredCount, changes, byKey := 0, 0, 0
	for _, source := range sourcesOfX {
		withClause, fromClause := source[0], source[1]
		hasWorked := false
		for _, usage := range usesOfX {
			sql := strings.TrimSpace(withClause + " " + strings.ReplaceAll(usage, "{}", fromClause))
			before, err := answerOf(ctx, conn, sql, "")
			if err != nil {
				continue // not every source has every column
			}
			result, refusal := r.Rewrite(sql, true)
			if refusal != nil {
				continue
			}
			hasWorked = true
			answeredCount++
			readColumns := map[catalog.Name][]string{}
			wholeRows := map[catalog.Name]bool{}
			for _, a := range result.Accesses {
				readColumns[a.Relation] = append(readColumns[a.Relation], a.Columns...)
				wholeRows[a.Relation] = wholeRows[a.Relation] || a.Columns == nil
			}
			if strings.Contains(usage, "similarity") || strings.Contains(usage, "<->") || strings.Contains(usage, "%") {
				if !slices.ContainsFunc(result.Accesses, func(a policy.Access) bool {
					return a.Relation.Name == "event" &&
						a.Source == policy.SourceVector
				}) {
					t.Errorf("%s\nsearches by likeness, and is said to read %s", sql, oneLine(result.Accesses))
				}
			}
			if ofEvent := func(a policy.Access) bool { return a.Relation.Name == "event" }; slices.ContainsFunc(result.Accesses, ofEvent) &&
				!slices.ContainsFunc(result.Accesses, func(a policy.Access) bool { return ofEvent(a) && !a.ByKey }) {
				byKey++
				if after, err := answerOf(ctx, conn, sql, "DELETE FROM event WHERE id <> 2"); err != nil || after != before {
					t.Errorf("%s\nis said to read one row of event, and answers %s, without the others %s (%v)", sql, before, after, err)
				}
			}
			var change []string
			for _, name := range []string{"event", "need", "plain"} {
				relation, _ := contracted.snap.Relation(catalog.Name{Schema: "public", Name: name})
				var setColumns []string
				for _, c := range relation.Columns {
					if !wholeRows[relation.Name] && !slices.Contains(readColumns[relation.Name], c.Name) {
						setColumns = append(setColumns, c.Name+" = "+strings.ReplaceAll(changedValue[c.Type], "%[1]s", c.Name))
					}
				}
				if i := slices.IndexFunc(setColumns, func(s string) bool { return strings.HasPrefix(s, "id = ") }); i >= 0 {
					setColumns[i] = "id = id + 70"
				}
				if slices.ContainsFunc(setColumns, func(s string) bool { return strings.HasSuffix(s, "= ") }) {
					t.Fatalf("no other values for a column: %s", setColumns)
				}
				if len(setColumns) > 0 {
					change = append(change, fmt.Sprintf("UPDATE %s SET %s", name, strings.Join(setColumns, ", ")))
				}
			}
			if len(change) == 0 {
				continue
			}
			changes++
			after, err := answerOf(ctx, conn, sql, strings.Join(change, "; "))
			if err != nil {
				t.Errorf("%s: %v", sql, err)
				continue
			}
			if after != before {
				t.Errorf("%s\nis said to read %s, and answers %s, after %s %s", sql, oneLine(result.Accesses), before, strings.Join(change, "; "), after)
			}
		}
		if !hasWorked {
			t.Errorf("%s ... FROM %s: nothing of it is answered", withClause, fromClause)
		}
	}
	t.Logf("%d answers, %d asked again, %d of one row", answeredCount, changes, byKey)
	if answeredCount < 2000 || changes < 2000 || byKey < 10 {
		t.Errorf("only %d statements were answered, %d asked again, and %d of one row", answeredCount, changes, byKey)
	}
}

// answerOf returns the result of a statement after a change of the data, which is rolled back.
func answerOf(ctx context.Context, conn *pgx.Conn, sql, change string) (string, error) {
	text, tokenIndex := sql, 0
	if change != "" { // one message for all, since there are thousands of cases
		text, tokenIndex = "BEGIN; "+change+"; "+sql+"; ROLLBACK", 2+strings.Count(change, ";")
	}
	results, err := conn.PgConn().Exec(ctx, text).ReadAll()
	if err != nil {
		_, _ = conn.Exec(ctx, "ROLLBACK")
		return "", err
	}
	return fmt.Sprintf("%s", results[tokenIndex].Rows), nil
}
