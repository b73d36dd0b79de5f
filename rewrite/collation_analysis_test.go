package rewrite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/test/tier"
)

// collatedRewriter returns the fixture with two more columns, code and name, whose collations differ from the
// database's and from each other.
func collatedRewriter(t *testing.T) (*Rewriter, *pgx.Conn) {
	t.Helper()
	return altered(t, InjectedMode, `ALTER TABLE people ALTER name TYPE text COLLATE "C"; ALTER TABLE memories ADD code text COLLATE "POSIX";
		INSERT INTO people (user_id, name) SELECT gen_random_uuid(), n FROM unnest('{k l,l,a}'::text[]) n;
		INSERT INTO memories (user_id, title, body, code) SELECT gen_random_uuid(), n, n, n FROM unnest('{k l,l,a}'::text[]) n;
		ALTER TABLE drafts ADD code text COLLATE "POSIX", ADD name text COLLATE "C", ALTER user_id SET DEFAULT gen_random_uuid();
		INSERT INTO drafts (user_id, title, code, name) SELECT gen_random_uuid(), n, n, n FROM unnest('{k l,l,a}'::text[]) n`)
}

// A statement may read columns of several collations as long as it compares none with another.
func TestSeparateCollationsAreAllowed(t *testing.T) {
	r, _ := collatedRewriter(t)
	const from = " FROM memories m JOIN memory_participants l ON l.memory_id = m.id JOIN people p ON p.id = l.person_id "
	for sql, wantRefusal := range map[string]bool{
		"SELECT m.code, p.name" + from + "WHERE m.code = 'a' AND p.name > 'b' ORDER BY m.code, p.name": false,
		"SELECT *" + from:                                            false,
		"SELECT DISTINCT code, name" + from:                          false,
		"SELECT code, count(DISTINCT name)" + from + "GROUP BY code": false,
		"SELECT code, name, count(*)" + from +
			"GROUP BY ROLLUP (code, name) HAVING max(name) > 'x'": false,
		"SELECT count(*) FILTER (WHERE code = 'a' OR name = 'b')" +
			from: false,
		"SELECT CASE WHEN code = 'a' THEN name END" +
			from: false,
		"SELECT row_number() OVER (PARTITION BY code ORDER BY name)" +
			from: false,
		"SELECT lower(code), upper(name)" + from +
			"ORDER BY 1, 2": false,
		"SELECT 1 FROM memories WHERE code = 'a' AND EXISTS (SELECT FROM people WHERE name = 'b')": false,
		"SELECT code FROM memories WHERE id IN (SELECT memory_id FROM memory_participants l JOIN people p ON p.id " +
			"= l.person_id WHERE name = 'b') AND code > 'x'": false,
		"WITH p AS (SELECT id, name FROM people) SELECT m.code, p.name FROM memories m, p ORDER BY code, name": false,
		"SELECT z FROM (SELECT code AS z, name" + from +
			") x WHERE z > 'a' AND name > 'b'": false,
		"SELECT code, name COLLATE \"en-x-icu\"" +
			from: false,
		"SELECT string_agg(DISTINCT code COLLATE \"C\", ','), max(name)" +
			from: false,
		"SELECT json_agg(m ORDER BY p.name), to_jsonb(p), count(m)" + from +
			"GROUP BY p.*, p.id": false,
		"SELECT json_agg(m ORDER BY p.name), jsonb_agg(to_jsonb(p)), count(m)" +
			from: false,
		"SELECT row_to_json((SELECT e FROM (SELECT m.code, p.name) AS e))" +
			from: false,
		"SELECT to_jsonb(m = p)" +
			from: true,
		"SELECT json_build_object('a', m.code, 'b', p.name)" +
			from: false,
		"SELECT to_jsonb(code || name)" +
			from: true,
		"SELECT to_jsonb((SELECT code || name))" +
			from: true,
		"SELECT to_jsonb((SELECT m = p))" +
			from: true,
		"SELECT row_to_json((SELECT e FROM (SELECT m.code || p.name) AS e))" +
			from: true,
		"SELECT row_to_json(ROW(m.code > p.name))" +
			from: true,
		"SELECT 1 FROM memories m, people p WHERE (m.code COLLATE \"C\") > p.name COLLATE \"en-x-icu\"": true,
		"SELECT 1 FROM (SELECT code COLLATE \"C\" AS z, body AS a FROM memories) x JOIN (SELECT body COLLATE " +
			"\"en-x-icu\" AS y FROM memories) m ON z > y": true,
		"DECLARE c CURSOR FOR SELECT code, name" +
			from: false,
		"SELECT 1" + from +
			"WHERE code = name": true,
		"SELECT 1" + from +
			"WHERE CASE code WHEN name THEN true END": true,
		"SELECT m.id" + from +
			"ORDER BY m.code = p.name": true,
		"SELECT m.id FROM memories m ORDER BY code > (SELECT max(name) FROM people)": true,
		"SELECT m.id" + from +
			"ORDER BY m.code = 'a', p.name = 'b'": false,
		"SELECT code || name" +
			from: true,
		"SELECT 1" + from +
			"WHERE code IN ('a', name)": true,
		"SELECT 1" + from +
			"WHERE (code, name) = ('a', 'b')": true,
		"SELECT m = p" + from: true,
		"SELECT 1 FROM memories WHERE code IN (SELECT name FROM people)":                                    true,
		"SELECT 1 FROM memories WHERE code IN (SELECT * FROM (SELECT name FROM people) x)":                  true,
		"SELECT 1 FROM memories WHERE code IN (SELECT x.* FROM (SELECT name FROM people) x)":                true,
		"SELECT 1 FROM people p WHERE EXISTS (SELECT FROM memories WHERE code IN (VALUES ('a'), (p.name)))": true,
		"SELECT 1 FROM memories WHERE code > (SELECT max(name) FROM people)":                                true,
		"SELECT 1 FROM memories WHERE code > ANY (ARRAY(SELECT name FROM people))":                          true,
		"SELECT 1 FROM memories m WHERE EXISTS (SELECT FROM people p WHERE p.name = m.code)":                true,
		"SELECT 1 FROM (SELECT code AS z, name" + from +
			") x WHERE z > name": true,
		"SELECT 1 FROM (SELECT code AS y" + from +
			") x, (SELECT name AS z FROM people) p WHERE y > z": true,
		"SELECT 1 FROM (SELECT code, name" + from +
			") x (y, z) WHERE y > z": true,
		"WITH x (y, z) AS (SELECT code, name" + from +
			") SELECT 1 FROM x WHERE y > z": true,
		"SELECT 1 FROM (SELECT code::text, name::text AS z" +
			from + ") x WHERE code > z": true,
		"SELECT 1 FROM (SELECT coalesce(code), name" + from +
			") x WHERE \"coalesce\" > name": true,
		"SELECT m, p.name FROM memories m, people p ORDER BY m, p.name":                                             false,
		"SELECT id FROM drafts d WHERE d IS NOT NULL AND (name IS NULL) IS NOT TRUE AND code > 'a'":                 false,
		"SELECT count(DISTINCT d), d FROM drafts d GROUP BY d":                                                      true,
		"SELECT d FROM drafts d GROUP BY d HAVING max(d.name) > 'a' ORDER BY d":                                     false,
		"SELECT x.y FROM (SELECT d AS y FROM drafts d) x ORDER BY x.y":                                              false,
		"SELECT (x.y).name > 'a' FROM (SELECT d AS y FROM drafts d) x":                                              true,
		"SELECT x.z, y.z FROM (SELECT code AS z FROM drafts) x, (SELECT name AS z FROM drafts) y ORDER BY x.z, y.z": false,
		"SELECT x.z FROM (SELECT code AS z FROM drafts) x, (SELECT name AS z FROM drafts) y WHERE x.z > y.z":        true,
		"SELECT DISTINCT z FROM (SELECT code AS z FROM drafts UNION ALL SELECT name FROM drafts) x":                 true,
		"SELECT d FROM drafts d UNION SELECT d FROM drafts d":                                                       true,
		"SELECT code FROM memories UNION SELECT name FROM people":                                                   true,
		"SELECT code FROM memories UNION ALL SELECT name FROM people":                                               true,
		"SELECT code, name" + from +
			"UNION SELECT title, body FROM memories ORDER BY 1, 2": false,
		"SELECT code, name" + from + "UNION ALL SELECT name, code" +
			from: true,
		"SELECT code FROM memories WHERE code IN (SELECT title FROM memories UNION SELECT name FROM people)": true,
		"SELECT code FROM memories WHERE code IN (SELECT title FROM memories EXCEPT SELECT code FROM memories) " +
			"AND EXISTS (SELECT FROM people WHERE name = 'b')": false,
		"SELECT * FROM (SELECT code, name" + from +
			"UNION ALL SELECT title, body FROM memories) x WHERE code > 'a' AND name > 'b'": false,
		"SELECT * FROM (SELECT code, name" + from +
			"UNION ALL SELECT title, body FROM memories) x WHERE code > name": true,
		"SELECT * FROM (SELECT code, name" + from +
			"UNION ALL SELECT body, body FROM memories) x (y, z) WHERE y > 'a' AND z > 'b'": false,
		"SELECT * FROM (SELECT code, name" + from +
			"UNION ALL SELECT body, body FROM memories) x (y, z) WHERE y > z": true,
		"SELECT * FROM (SELECT m.*" + from +
			"UNION ALL SELECT * FROM memories) x JOIN people p ON p.name = x.title": true,
		"SELECT * FROM (SELECT m.code, p.*" + from + "UNION ALL SELECT m.code, p.*" +
			from + ") x WHERE name > 'b'": true,
		"WITH RECURSIVE r AS (SELECT code, name" +
			from + "UNION ALL SELECT code || '.', name FROM r WHERE length(code) < 5) SELECT * FROM r WHERE code > 'a' AND name > 'b'": false,
		"WITH RECURSIVE r (y, z) AS (SELECT code, name" + from +
			"UNION ALL SELECT y || '.', z FROM r WHERE length(y) < 5) SELECT * FROM r WHERE y > 'a' AND z > 'b'": false,
		"WITH RECURSIVE r (y, z) AS (SELECT code, name" + from +
			"UNION ALL SELECT y || z, z FROM r WHERE length(y) < 5) SELECT * FROM r": true,
		"WITH RECURSIVE r (y, z) AS (SELECT code, name" + from +
			"UNION ALL SELECT y || '.', z FROM r WHERE length(y) < 5) SEARCH DEPTH FIRST BY y, z SET o SELECT y " +
			"FROM r WHERE o[1] = ROW('a'::text, 'b'::text)": true,
		"SELECT 1 FROM memories m JOIN (VALUES ('a', 'b' COLLATE \"C\")) AS v (x, w) ON m.code > v.x AND v.w > 'b'":  false,
		"SELECT 1 FROM memories m JOIN (VALUES ('a', 'b' COLLATE \"C\")) AS v (x, w) ON m.code > v.w":                true,
		"SELECT 1 FROM memories m JOIN (VALUES ('a', 'b' COLLATE \"C\")) AS v ON m.code > column1 AND column2 > 'b'": false,
		"SELECT 1 FROM memories m JOIN (VALUES ('a', 'b' COLLATE \"C\")) AS v ON m.code > column2":                   true,
		"UPDATE drafts SET code = name, name = code WHERE code = 'a' AND name > 'b' RETURNING code, name":            false,
		"UPDATE drafts SET code = code || name":                                                        true,
		"UPDATE drafts SET title = 'x' WHERE code = name":                                              true,
		"UPDATE drafts SET title = 'x' WHERE title COLLATE \"en-x-icu\" > 'b' AND name = 'a'":          false,
		"UPDATE drafts SET title = 'x' WHERE name COLLATE \"en-x-icu\" > code":                         true,
		"UPDATE drafts SET (code, name) = (name, code), tags[1] = code || '!' WHERE code > 'a'":        false,
		"UPDATE drafts SET (code, name) = (SELECT name, code FROM people, memories LIMIT 1)":           false,
		"UPDATE drafts SET (code, name) = (SELECT name || code, code FROM people, memories LIMIT 1)":   true,
		"UPDATE drafts SET tags[(code > name)::int] = 'x'":                                             true,
		"UPDATE drafts d SET title = p.name FROM people p WHERE p.name > 'k' AND d.code = 'l'":         false,
		"UPDATE drafts d SET title = p.name FROM people p WHERE p.name = d.code":                       true,
		"UPDATE drafts SET title = 'x' RETURNING code > name":                                          true,
		"UPDATE drafts SET title = 'x' WHERE code = 'a' RETURNING drafts = drafts, name":               true,
		"DELETE FROM drafts WHERE code = 'a' AND name COLLATE \"en-x-icu\" < 'b' RETURNING *":          false,
		"DELETE FROM drafts WHERE code IN (SELECT name FROM people)":                                   true,
		"DELETE FROM drafts USING people p WHERE p.name = drafts.code":                                 true,
		"DELETE FROM drafts WHERE id IN (SELECT d.id FROM drafts d WHERE d.name = 'x') AND code = 'y'": false,
		"WITH gone AS (DELETE FROM drafts WHERE code = 'a' RETURNING code AS y, name AS z) SELECT y FROM gone " +
			"WHERE z > 'b'": false,
		"WITH gone AS (DELETE FROM drafts WHERE code = 'a' RETURNING code AS y, name AS z) SELECT y FROM gone " +
			"WHERE z > y": true,
		"WITH gone (y, z) AS (DELETE FROM drafts WHERE code = 'a' RETURNING code, name) SELECT y FROM gone " +
			"WHERE z > y": true,
		"INSERT INTO drafts (title, code, name) SELECT code || '!', name, code" + from +
			"WHERE code > 'a' AND name > 'b'": false,
		"INSERT INTO drafts (title, code, name) VALUES ('a', 'b' COLLATE \"C\", (SELECT max(code) FROM memories " +
			"WHERE code > 'x')) RETURNING code, name": false,
		"INSERT INTO drafts (title) SELECT code || name" +
			from: true,
		"INSERT INTO drafts (title, code) VALUES ('a', 'b') ON CONFLICT (user_id, title) DO UPDATE SET code = " +
			"excluded.name, name = excluded.code WHERE drafts.code <> excluded.code": false,
		"INSERT INTO drafts (title, code) VALUES ('a', 'b') ON CONFLICT (user_id, title) DO UPDATE SET code = " +
			"excluded.code WHERE drafts.name <> excluded.code": true,
		"INSERT INTO drafts (title, code) VALUES ('a', 'b') ON CONFLICT (user_id, title) DO UPDATE SET title = " +
			"'b' WHERE drafts <> excluded": true,
		"MERGE INTO drafts d USING people p ON d.name = p.name WHEN MATCHED AND d.code > 'a' THEN UPDATE SET code " +
			"= p.name WHEN NOT MATCHED THEN INSERT (title, code) VALUES (p.name, p.name)": false,
		"MERGE INTO drafts d USING people p ON d.code = p.name WHEN MATCHED THEN DELETE":                              true,
		"MERGE INTO drafts d USING people p ON d.name = p.name WHEN MATCHED AND d.code > p.name THEN DELETE":          true,
		"MERGE INTO drafts d USING people p ON d.name = p.name WHEN MATCHED THEN UPDATE SET title = d.code || p.name": true,
		"SELECT 1 FROM people NATURAL JOIN (SELECT code AS name FROM memories) x":                                     true,
		"SELECT 1 FROM people JOIN (SELECT code AS name FROM memories) x USING (name)":                                true,
		"SELECT 1 FROM people p, LATERAL unnest(string_to_array(p.name, ' ')) AS w JOIN memories m ON w > m.code":     true,
		"SELECT 1 FROM people p, LATERAL (VALUES (p.name)) AS v (x) JOIN memories m ON x > m.code":                    true,
		"SELECT max(code ORDER BY name)" +
			from: true,
		"SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY code || name)" +
			from: true,
		"SELECT code, name" + from +
			"WHERE code > current_user": true,
		"SELECT 1 FROM people WHERE name > ('(,,,,,,)'::memories).code": true,
		"SELECT 1 FROM people WHERE name > (decoded()).code":            true,
	} {
		_, refusal := r.Rewrite(sql, false)
		if isCollationRefusal := refusal != nil && refusal.Reason == sqlstate.ReasonConstruct &&
			strings.Contains(refusal.Message, "several collations"); isCollationRefusal != wantRefusal || refusal != nil && !isCollationRefusal {
			t.Errorf("%s: %v", sql, refusal)
		}
	}
}

// PostgreSQL has the last word: what is answered never has it compare two collations.
func TestNoTwoCollationsAreCompared(t *testing.T) {
	tier.All(t)
	r, conn := collatedRewriter(t)
	ctx := context.Background()
	if _, err := conn.PgConn().Exec(ctx, "SET statement_timeout = '10s'").ReadAll(); err != nil {
		t.Fatal(err)
	}
	g := &collatedQueries{rand.New(rand.NewPCG(1, 7))}
	apartCount, meetCount := 0, 0
	for range 3000 {
		sql := g.statement()
		_, refusal := r.Rewrite(sql, false)
		if _, err := conn.Exec(ctx, "BEGIN"); err != nil {
			t.Fatal(err)
		}
		_, err := conn.PgConn().Exec(ctx, sql).ReadAll()
		if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		var pgErr *pgconn.PgError
		conflict := errors.As(err, &pgErr) && pgErr.Code == "42P22" // PostgreSQL refuses two COLLATE clauses independently of rows
		switch {
		case refusal == nil && conflict:
			t.Errorf("%s: %v", sql, err)
		case refusal == nil && err == nil:
			apartCount++
		case conflict:
			meetCount++
		}
	}
	if apartCount < 200 || meetCount < 200 {
		t.Errorf("%d answered, %d where collations meet: the test proves little", apartCount, meetCount)
	}
}

// collatedQueries generates random queries over texts of several collations.
type collatedQueries struct{ *rand.Rand }

func (g *collatedQueries) one(choices ...string) string { return choices[g.IntN(len(choices))] }

// statement returns a random query, or a statement that writes rows.
func (g *collatedQueries) statement() string {
	draftExprs := []string{"drafts.code", "drafts.name", "code", "name", "title", "'k'"}
	otherExprs := append([]string{"x.y", "y", "z"}, "drafts.code", "drafts.name", "title")
	setClause := func(from []string) string {
		return g.one("title = "+g.text(from, 1), "code = "+g.text(from, 1)+", name = "+g.text(from, 1),
			fmt.Sprintf("(code, name) = (%s, %s)", g.text(from, 1), g.text(from, 1)), "(code, name) = (SELECT y, z FROM ("+g.query(1)+") u LIMIT 1)")
	}
	returningClause := func(from []string) string {
		return g.one("", " RETURNING *", fmt.Sprintf(" RETURNING %s, %s", g.text(from, 1), g.text(from, 1)))
	}
	var writeStatement string
	switch g.IntN(8) {
	case 0:
		writeStatement = "UPDATE drafts SET " + setClause(draftExprs) + " WHERE " + g.condition(draftExprs, 2) + returningClause(draftExprs)
	case 1:
		writeStatement = "UPDATE drafts SET " + setClause(otherExprs) + " FROM (" + g.query(1) + ") x WHERE " + g.condition(otherExprs, 2) +
			returningClause(otherExprs)
	case 2:
		writeStatement = "DELETE FROM drafts WHERE " + g.condition(draftExprs, 2) + returningClause(draftExprs)
	case 3:
		writeStatement = "DELETE FROM drafts USING (" + g.query(1) + ") x WHERE " + g.condition(otherExprs, 2) + returningClause(otherExprs)
	case 4:
		writeStatement = "INSERT INTO drafts (code, name) " + g.query(1) +
			g.one("", " ON CONFLICT (user_id, title) DO UPDATE SET name = excluded.code WHERE "+
				g.condition([]string{"drafts.code", "drafts.name", "excluded.code", "excluded.name"}, 1))
	default:
		return g.query(3)
	}
	if strings.Contains(writeStatement, "RETURNING code") && g.IntN(2) == 0 {
		return "WITH w (y, z) AS (" + writeStatement + ") SELECT y FROM w WHERE " + g.condition([]string{"y", "z", "w.y"}, 1)
	}
	return writeStatement
}

// query returns a random query with the columns y and z.
func (g *collatedQueries) query(depth int) string {
	if g.IntN(6) == 0 {
		return g.simple(depth) + g.one(" UNION ", " UNION ALL ", " EXCEPT ") + g.simple(depth-1)
	}
	return g.simple(depth) + g.one("", "", "", "", "", " ORDER BY y", " ORDER BY z", " ORDER BY 1, 2", " ORDER BY m.code, p.name")
}

func (g *collatedQueries) simple(depth int) string {
	items := g.one("memories m CROSS JOIN people p", "people p CROSS JOIN memories m")
	columns := []string{"m.code", "p.name", "m.body", "code", "name", "'k'"}
	if g.IntN(8) == 0 {
		items += ", (SELECT " + g.one("name", "code") + " AS w FROM memories, people) t"
		columns = append(columns, "t.w", "t.w IS NULL", "(t IS NULL)::text")
	}
	if depth > 0 && g.IntN(2) == 0 {
		items += ", LATERAL (" + g.query(depth-1) + ") s" + g.one("", "", "(y, z)", "(z, y)")
		columns = append(columns, "s.y", "s.z", "y", "z")
	}
	if g.IntN(4) == 0 {
		items += fmt.Sprintf(", LATERAL unnest(string_to_array(%s, ' ')) AS w", g.text(columns, 1))
		columns = append(columns, "w", "w.w")
	}
	sql := fmt.Sprintf("SELECT %s AS y, %s AS z FROM %s", g.text(columns, depth), g.text(columns, depth), items)
	if g.IntN(2) == 0 {
		sql += " WHERE " + g.condition(columns, depth)
	}
	return sql
}

func (g *collatedQueries) text(columns []string, depth int) string {
	if depth <= 0 || g.IntN(2) == 0 {
		return g.one(columns...)
	}
	a, b := func() string { return g.text(columns, depth-1) }, func() string { return g.condition(columns, depth-1) }
	switch g.IntN(10) {
	case 0:
		return "lower(" + a() + ")"
	case 8:
		return "(" + a() + g.one(` COLLATE "C")`, ` COLLATE "en-x-icu")`, ` COLLATE "default")`)
	case 9:
		return "to_json(" + g.one(a(), "m", "p", "(SELECT p)", "(SELECT "+a()+")", "m = p", "m.code > p.name") + ")::text"
	case 1:
		return "coalesce(" + a() + ", " + a() + ")"
	case 2:
		return "(" + a() + " || " + a() + ")"
	case 3:
		return "CASE WHEN " + b() + " THEN " + a() + " ELSE " + a() + " END"
	case 4:
		return "CASE " + a() + " WHEN " + a() + " THEN " + a() + " END"
	case 5:
		return "(SELECT max(u." + g.one("y", "z") + ") FROM (" + g.query(0) + ") u)"
	case 6:
		return a() + "::text"
	default:
		return "(ARRAY[" + a() + ", " + a() + "])[1]"
	}
}

func (g *collatedQueries) condition(columns []string, depth int) string {
	a := func() string { return g.text(columns, depth-1) }
	if depth > 0 && g.IntN(3) == 0 {
		return "(" + g.condition(columns, depth-1) + g.one(" AND ", " OR ", " OR NOT ") + g.condition(columns, depth-1) + ")"
	}
	switch g.IntN(7) {
	case 0:
		return a() + g.one(" > ", " <= ", " > lower('a') OR 'b' < ") + a()
	case 1:
		return a() + " IN (" + a() + ", 'l')"
	case 2:
		return a() + " >= ANY (SELECT " + g.one("y", "z") + " FROM (" + g.query(0) + ") v)"
	case 3:
		return "EXISTS (SELECT FROM people q WHERE q.name > " + a() + ")"
	case 4:
		return "(" + a() + ", " + a() + ") < ('a', 'b')"
	case 5:
		return a() + " BETWEEN " + a() + " AND " + a()
	default:
		return a() + " IS NOT NULL"
	}
}
