package attacks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

var parameterSchema = strings.Replace(summedSchema, "(1, 30000)", "(1, 3000)", 1) + `;
DELETE FROM link WHERE person_id = 0 AND big_id <= 40;
CREATE TYPE mood AS ENUM ('lake', '3', '');
ALTER TABLE big ADD body text NOT NULL DEFAULT '', ADD found tsvector, ADD m mood DEFAULT 'lake';
UPDATE big SET body = (ARRAY['Lake at dawn', 'a lake', '50% off\', 'C:\temp\', 'plain', 'under_score'])[id % 6 + 1]
  || CASE WHEN id % 7 = 0 THEN ' ' || id ELSE '' END;
UPDATE big SET body = 'x' WHERE a = 123;
UPDATE big SET found = to_tsvector('english', body);
CREATE VIEW lakes AS SELECT id, body, a FROM big WHERE body ILIKE '%lake%';
VACUUM ANALYZE`

var parameterStatements = []string{
	"SELECT id FROM big WHERE body LIKE $1 ORDER BY id",
	"SELECT count(*) FROM big WHERE body NOT ILIKE $1",
	"SELECT count(*) FROM big WHERE a = 123 AND body LIKE $1",
	"SELECT id FROM big WHERE body ILIKE '%' || $1 || '%' ORDER BY id",
	"SELECT count(*) FROM big WHERE body LIKE $1 || '%'",
	"SELECT count(*) FROM big WHERE body LIKE '%' || $1",
	"SELECT count(*) FROM big WHERE body LIKE '%' || $1::text || ''",
	"SELECT count(*) FROM big WHERE lower(body) LIKE lower($1)",
	"SELECT count(*) FROM big WHERE lower(body) LIKE '%' || lower($1) || '%'",
	"SELECT id FROM big WHERE found @@ plainto_tsquery('english', $1) ORDER BY id",
	"SELECT count(*) FROM big WHERE a = 123 AND found @@ websearch_to_tsquery('english', $1)",
	"SELECT count(*) FROM big WHERE NOT found @@ phraseto_tsquery('simple', $1)",
	"SELECT count(*) FROM big WHERE a = 123 AND NOT found @@ plainto_tsquery($1)",
	"SELECT id FROM lakes WHERE body LIKE $1 ORDER BY id",
	"SELECT count(*) FROM big b WHERE EXISTS (SELECT FROM lakes l WHERE l.id = b.id AND l.body ILIKE $1)",
	"SELECT id FROM big WHERE body = $1 OR body LIKE $1 ORDER BY id",
	"SELECT id, ts_rank(found, q) FROM big, plainto_tsquery('english', $1) q WHERE found @@ q ORDER BY 2 DESC, 1",
	"SELECT count(*) FROM big JOIN websearch_to_tsquery('english', $1) AS q ON found @@ q WHERE a = 123",
	"SELECT id FROM big WHERE body LIKE $1 ESCAPE '' ORDER BY id",
	"SELECT count(*) FROM big WHERE a = 123 AND lower(body) LIKE lower('%' || $1 || '%') ESCAPE ''",
	"SELECT count(*) FROM big WHERE a = 123 AND body ILIKE concat('%', $1::text, '%')",
	"SELECT count(*) FROM big WHERE upper(body) LIKE upper(concat($1::varchar))",
	"SELECT count(*) FROM (SELECT id FROM big WHERE a = 123 LIMIT $1) q",
	"SELECT count(*) FROM big b WHERE a = 123 AND EXISTS (SELECT FROM (SELECT 1 FROM big OFFSET $1) q WHERE b.id > 5)",
	"SELECT count(*) FROM big WHERE a = 123 AND m = $1::mood AND body LIKE '%x%'",
	"SELECT public.big.id FROM public.big WHERE public.big.body LIKE $1 AND public.big.m IN ($2::mood, 'lake'::mood) ORDER BY public.big.id LIMIT 3",
	"SELECT count(*) FROM big WHERE a = 123 AND found @@ plainto_tsquery('english'::regconfig, $1)",
}

// A parameter's value may make a pattern or a text search fail when a row is reached, and on the signed path that row
// may be hidden. Statements with such values must take row security, whichever plan the server has cached.
func TestParametersOnTheSignedPath(t *testing.T) {
	tier.All(t)
	values := []string{"", "-1", "3", " -2 ", "%", "%lake%", "Lake%", "lake", "a lake", `50\%%`, `%\`, `%\\`,
		`x\`, `\`, `under\_score`, "%" + strings.Repeat("x", 30), "nothing of it", "-dawn OR lake", `"at dawn"`,
		strings.Repeat("lake ", 900), strings.Repeat("w", 3000), "lake " + strings.Repeat("w", 2100)}
	newTwin := func(value int) instance.Database {
		db := pgtest.Database(t)
		instance.Exec(t, db, strings.Replace(parameterSchema, "VACUUM ANALYZE", "", 1))
		instance.Exec(t, db, fmt.Sprintf("DELETE FROM big WHERE a = %d", value))
		instance.Exec(t, db, "VACUUM ANALYZE big, link")
		return instance.Database{Name: "pair", DB: db,
			Policy: strings.Replace(summedPolicy, "views: { ", "views: { lakes: {}, ", 1), SearchPath: []string{"public"}}
	}
	var firstAnswers []string
	for _, mode := range modesOf(instance.SignedViews, instance.Auto, instance.Both) {
		var got [2][]string
		for i, d := range []instance.Database{newTwin(123), newTwin(124)} {
			proxy := instance.Start(t, mode, d, map[string]string{"user": "me"})
			c := proxy.Agent(t, "agent", "pair")
			for _, plan := range []string{"auto", "force_generic_plan"} {
				if plan == "auto" && !tier.IsNightly() {
					continue
				}
				if a := instance.Ask(c, "SET plan_cache_mode = "+plan); a.Code != "" {
					t.Fatal(a)
				}
				for n, sql := range parameterStatements {
					name := fmt.Sprint("s", n, plan)
					if _, err := c.Prepare(t.Context(), name, sql, nil); err != nil {
						t.Fatal(sql, err)
					}
					for _, value := range values {
						r := c.ExecPrepared(t.Context(), name, [][]byte{[]byte(value), []byte("lake")}[:1+strings.Count(sql, "$2")], nil, nil).Read()
						answer := fmt.Sprintf("%s: %.40q: %v", sql, value, r.Err)
						for _, row := range r.Rows {
							answer += fmt.Sprintf(" %s", row)
						}
						got[i] = append(got[i], answer)
					}
				}
				instance.Ask(c, "DEALLOCATE ALL")
			}
		}
		failedCount := 0
		for k := range got[0] {
			if strings.Contains(got[0][k], "ERROR") {
				failedCount++
			}
			if got[0][k] != got[1][k] {
				t.Errorf("%s: %s\ntwin: %s", mode.Name, got[0][k], got[1][k])
			}
			if firstAnswers != nil && got[0][k] != firstAnswers[k] {
				t.Errorf("%s: %s\nthe first: %s", mode.Name, got[0][k], firstAnswers[k])
			}
		}
		firstAnswers = got[0]
		t.Logf("%s: %d of %d fail", mode.Name, failedCount, len(got[0]))
	}
}

// EXECUTE computes parameter values in the server, where the proxy does not see them. If a statement that the protocol
// has prepared takes the signed path with some values only, EXECUTE of it must be refused. The refusal must not depend
// on how large the tables are.
func TestExecuteIsRefusedWhereValuesDecideThePath(t *testing.T) {
	tier.All(t)
	var got []string
	for _, rows := range []int{10, 30000} {
		for _, hidden := range []string{"secret of others", "nothing"} {
			db := pgtest.Database(t)
			instance.Exec(t, db, fmt.Sprintf(memoSchema, rows))
			instance.Exec(t, db, fmt.Sprintf("UPDATE memo SET body = '%s' WHERE id = 3", hidden))
			instance.Exec(t, db, "VACUUM ANALYZE memo")
			d := instance.Database{Name: "pair", DB: db, Policy: memoPolicy, SearchPath: []string{"public"}}
			c := instance.Start(t, instance.Auto, d, map[string]string{"user": "me"}).Agent(t, "agent", "pair")
			var answers strings.Builder
			for n, sql := range []string{
				"SELECT count(*) > 0 FROM memo WHERE body = 'secret of others' AND body LIKE $1",
				"SELECT count(*) > 0 FROM memo WHERE body = 'secret of others' AND NOT found @@ plainto_tsquery('simple', $1)",
				"SELECT count(*) > 0 FROM memo WHERE body = 'secret of others' AND doc @> $1",
				"SELECT count(*) > 0 FROM memo WHERE body = 'secret of others' AND body = $1::text",
			} {
				name := fmt.Sprint("s", n)
				if _, err := c.Prepare(t.Context(), name, sql, nil); err != nil {
					t.Fatal(sql, err)
				}
				if strings.Contains(sql, "LIKE") { // it does not take the signed path, so its decision does not depend on the table's size
					if _, err := c.Prepare(t.Context(), "d"+name, sql, []uint32{1042}); err != nil {
						t.Fatal(sql, err)
					}
					fmt.Fprintln(&answers, "declared", instance.Ask(c, "EXECUTE d"+name+"('x')").String())
				}
				instance.Ask(c, strings.Replace(sql, "SELECT", "PREPARE p"+name+" AS SELECT", 1))
				for _, arg := range []string{"'x'", `E'secret of others\\'`, `'%' || chr(92)`, "repeat('w', 3000)",
					"(repeat('[', 6000) || repeat(']', 6000))::jsonb"} {
					for _, prepared := range []string{name, "p" + name} {
						fmt.Fprintln(&answers, prepared, arg, instance.Ask(c, "EXECUTE "+prepared+"("+arg+")").String())
					}
				}
			}
			got = append(got, answers.String())
		}
	}
	for _, other := range got[1:] {
		if other != got[0] {
			t.Errorf("%s\ntwin: %s", got[0], other)
		}
	}
	if refused := strings.Count(got[0], "EXECUTE cannot run it"); refused != 16 {
		t.Errorf("%d are refused: %s", refused, got[0])
	}
}

const memoSchema = `CREATE TABLE holder (name text PRIMARY KEY, owner text NOT NULL);
INSERT INTO holder VALUES ('me', 'me'), ('other', 'other');
CREATE TABLE memo (id int PRIMARY KEY, owner text NOT NULL, body text NOT NULL, doc jsonb NOT NULL DEFAULT '{}', found tsvector NOT NULL DEFAULT '');
INSERT INTO memo SELECT g, CASE WHEN g %% 10 = 0 THEN 'me' ELSE 'other' END, 'memo ' || g FROM generate_series(1, %d) g`

const memoPolicy = `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  holder: { rows: [ { own: { column: owner, is: user } } ] }
  memo: { rows: [ { visible: { holder: { name: owner } } } ] }
`

// The nesting of a text search grows with the parameter's value, and the server's stack may be small. Whether the
// search overflows the stack must not depend on a hidden row.
//
// The test has a server of its own. On a shared one, DDL of other tests makes a server process load its caches anew, at
// times deep in its small stack.
func TestDeepTextSearchesOnTheSignedPath(t *testing.T) {
	tier.All(t)
	server, err := pgtest.StartServer(t.Context(), t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	databaseNamed := func(name string) *pgtest.DB {
		return &pgtest.DB{Name: name, SocketDir: server.SocketDir, Port: server.Port}
	}
	statements := []string{
		"SELECT count(*) FROM memo WHERE body = 'secret of others' AND found @@ $1",
		"SELECT count(*) FROM memo WHERE body = 'secret of others' AND found @@ $1::tsquery",
		"SELECT count(*) FROM memo WHERE body = 'secret of others' AND found @@ phraseto_tsquery('simple', $1)",
		"SELECT count(*) FROM memo WHERE body = 'secret of others' AND found @@ plainto_tsquery('simple', $1)",
		"SELECT count(*) FROM memo WHERE body = 'secret of others' AND found @@ websearch_to_tsquery('simple', $1)",
	}
	values := []string{"a", strings.Repeat("a ", 499), strings.Repeat("a,", 499) + "a", strings.Repeat("a ", 1999),
		strings.Repeat("a or ", 799) + "a", `"` + strings.Repeat("a ", 498) + `"`, `"` + strings.Repeat("a ", 1998) + `"`, strings.Repeat(`"`, 1999)}
	for _, n := range []int{100, 16000, 40000} {
		values = append(values, "a"+strings.Repeat("|a", n), "a"+strings.Repeat("&!a", n),
			strings.Repeat("(a|", n)+"a"+strings.Repeat(")", n), "a"+strings.Repeat("<->a", n))
	}
	for _, stack := range []string{"100kB", "2MB"} {
		var got [2][]string
		for i, hidden := range []string{"secret of others", "nothing"} {
			db := databaseNamed(fmt.Sprintf("twin_%d_with_%s", i, stack))
			instance.Exec(t, databaseNamed("postgres"), `CREATE DATABASE "`+db.Name+`" TEMPLATE template0`)
			instance.Exec(t, db, fmt.Sprintf(memoSchema, 30000))
			instance.Exec(t, db, fmt.Sprintf("UPDATE memo SET body = '%s', found = 'b' WHERE id = 3", hidden))
			instance.Exec(t, db, "VACUUM ANALYZE memo")
			instance.Exec(t, db, `ALTER DATABASE "`+db.Name+`" SET max_stack_depth = '`+stack+"'")
			d := instance.Database{Name: "pair", DB: db, Policy: memoPolicy, SearchPath: []string{"public"}}
			c := instance.Start(t, instance.Auto, d, map[string]string{"user": "me"}).Agent(t, "agent", "pair")
			if a := instance.Ask(c, "SET plan_cache_mode = force_generic_plan"); a.Code != "" {
				t.Fatal(a)
			}
			for n, sql := range statements {
				name := fmt.Sprint("s", n)
				if _, err := c.Prepare(t.Context(), name, sql, nil); err != nil {
					t.Fatal(sql, err)
				}
				for v, value := range values {
					if !tier.IsPicked(n+v, 8) {
						continue
					}
					r := c.ExecPrepared(t.Context(), name, [][]byte{[]byte(value)}, nil, nil).Read()
					got[i] = append(got[i], fmt.Sprintf("%s: %s: %.10q %d: %v %s", stack, sql, value, len(value), r.Err, r.Rows))
				}
			}
		}
		for k := range got[0] {
			if got[0][k] != got[1][k] {
				t.Errorf("%s\ntwin: %s", got[0][k], got[1][k])
			}
		}
	}
}
