package attacks

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// featuredSchema has a table for each thing that a policy may say of a table besides its rows. In each table, the
// visible columns of the rows of persons 0 to 2 are equal on both twins.
const featuredSchema = `CREATE EXTENSION pg_trgm;
CREATE TABLE person (id int PRIMARY KEY, agreed text NOT NULL, owner text);
INSERT INTO person SELECT g, CASE WHEN g < 3 THEN 'yes' ELSE 'no' END, 'me' FROM generate_series(0, 4) g;
CREATE TABLE now_in (name text PRIMARY KEY, area int NOT NULL); INSERT INTO now_in VALUES ('me', 1);
CREATE TABLE aim (id int PRIMARY KEY, note text); INSERT INTO aim VALUES (1, 'a'), (2, 'b');
`

const featuredTable = `CREATE TABLE T (id int PRIMARY KEY, person int NOT NULL, area int NOT NULL DEFAULT 1, body text, email text, score int, doc jsonb,
  n int, mail text, source int[] DEFAULT '{}', note text);
INSERT INTO T SELECT g, g % 3, 1, (ARRAY['a lake', 'two rivers', 'the old mill'])[1 + g % 7 % 3], 'abc' || g, 10 + g % 10,
  jsonb_build_object('t', 'x', 'h', 0), g, 'm', ARRAY[g] FROM generate_series(1, 300) g;
INSERT INTO T VALUES (1000, 3, 1, 'an odd one', '77', 77, '{"t": "7", "h": 7}', 7, 'z', '{1000}', 'hidden');
CREATE INDEX ON T USING gin (body gin_trgm_ops); CREATE INDEX ON T USING gin (email gin_trgm_ops); CREATE INDEX ON T USING gin (doc);`

// featuredTwin changes the second twin: the hidden row is deleted, and the hidden columns of other rows get other
// values.
const featuredTwin = `DELETE FROM T WHERE id = 1000; ` +
	`UPDATE T SET email = 'abcd' || 300 - id, score = 19 - id % 10, doc = jsonb_build_object('t', 'x', 'h', id), mail = 'q' || id;`

const featuredWrite = "write: { commands: [update, delete], columns: [body, n, note], accept: [references, values, conflicts] }"

var featuredTables = []struct{ name, policy string }{
	{"masked", "rows: [ { visible: { person: { id: person } } } ], columns: { id: allow, person: allow, body: " +
		"allow, n: allow, note: allow, email: { mask: { generalise: 3 } }, score: { mask: { generalise: 10 } }, " +
		"doc: { keys: { t: string } }, mail: { mask: null } }, WRITE"},
	{"by_key", "rows: [ { visible: { person: { id: person } } } ], columns: { id: allow, person: allow, body: " +
		"allow, n: allow, note: allow, email: by_key, score: by_key }"},
	{"counted", "rows: [ { visible: { person: { id: person } } } ], columns: { id: allow, person: allow, body: " +
		"allow, n: allow, note: allow, area: allow }, aggregate: { subject: person, rows: [ status: { column: " +
		"note, is: hidden } ], minimum: 2, dimensions: { area: allow } }, WRITE"},
	{"lived", "rows: [ { own: { column: area, is: area } }, { visible: { person: { id: person } } } ], columns: { " +
		"id: allow, person: allow, body: allow, n: allow, note: allow }, WRITE"},
	{"made", "rows: [ { derived: { sources: source, of: masked } } ], columns: { id: allow, person: allow, body: allow, n: allow, note: allow }, WRITE"},
	{"kept", "rows: [ { consent: { every: [ person: { id: person } ], status: agreed, is: \"yes\", materialize: " +
		"true } } ], columns: { id: allow, person: allow, body: allow, n: allow, note: allow }"},
}

const featuredPolicy = `version: 1
attributes:
  user: { type: text, source: credential }
  area: { type: integer, source: query, query: { table: now_in, column: area, match: { name: user } } }
tables:
  person: { rows: [ { status: { column: agreed, is: "yes" } } ] }
  now_in: { rows: [ { own: { column: name, is: user } } ] }
  aim: { rows: [ open ], write: { commands: [update, delete] } }
`

var featuredWrites = []string{
	"UPDATE T o SET note = 'w' WHERE o.body ILIKE '%odd%' AND {}",
	"UPDATE T o SET note = 'w' WHERE o.body ILIKE '%lake%' AND {} RETURNING o.id",
	"UPDATE T o SET body = ({})::text WHERE o.body ILIKE '%o%' AND o.id > 290 RETURNING o.id, o.body",
	"UPDATE T o SET note = ({})::text WHERE o.body LIKE '%mill%' AND o.id / 2 = 140 RETURNING o.*",
	"UPDATE T o SET n = p.id FROM person p WHERE p.id = o.person AND o.body ILIKE '%o%' AND {}",
	"DELETE FROM T o WHERE o.body ~ 'odd+' AND {}",
	"DELETE FROM T o WHERE o.body ILIKE '%lake%' AND o.id / 2 < 20 RETURNING o.id, {}",
	"DELETE FROM T o USING person p WHERE p.id = o.person AND o.body LIKE '%odd%' AND {} RETURNING p.id",
	"UPDATE aim SET note = o.body FROM T o WHERE o.body ILIKE '%odd%' AND {}",
	"UPDATE aim SET note = (SELECT count(*) FROM T o WHERE o.body ILIKE '%odd%' AND {}) RETURNING note",
	"DELETE FROM aim WHERE EXISTS (SELECT FROM T o WHERE o.body LIKE '%odd%' AND {})",
}

var featuredConditions = []string{"o.id / (o.n - 7) = 5", "o.body::int = 5", "length(o.body) / 2 > 3", "o.email::int > 5",
	"o.email LIKE 'abc1%'", "o.score / (o.score - 77) > 0", "o.score = 13", "o.doc @> '{\"h\": 7}'",
	"(o.doc ->> 't')::int = 7", "o.mail = 'm'", "o.email ILIKE '%77%'", "o IS NOT NULL"}

// An agent updates and deletes rows that a search finds by key. The tables have masks, columns by key, groups, live
// attributes, derived rows or materialized answers. Conditions, values and results must reveal neither hidden rows nor
// hidden columns.
func TestWritesOfTablesWithFeaturesTellNothing(t *testing.T) {
	tier.All(t)
	policy := featuredPolicy
	schema, twin := featuredSchema, ""
	var statements []string
	for k, table := range featuredTables {
		schema += withTableName(featuredTable, table.name)
		twin += withTableName(featuredTwin, table.name)
		policy += "  " + table.name + ": { " + strings.ReplaceAll(table.policy, "WRITE", featuredWrite) + " }\n"
		for w, write := range featuredWrites {
			for f, condition := range featuredConditions {
				if tier.IsPicked(k+w+f, 24) {
					statements = append(statements, strings.ReplaceAll(withTableName(write, table.name), "{}", condition))
				}
			}
		}
		statements = append(statements, "SELECT * FROM "+table.name+" ORDER BY 1")
	}
	for _, mode := range signedPathModes() {
		var got [2][]string
		var decisions []string
		byKey, answeredCount := 0, 0
		for i, change := range []string{"", twin} {
			db := pgtest.Database(t)
			instance.Exec(t, db, schema+change+"ANALYZE;")
			d := instance.Database{Name: "pair", DB: db, Policy: policy, SearchPath: []string{"public"}}
			m := instance.Compile(t, d, mode)
			rewriter := rewrite.New(m.Snapshot, m.Policy, mode.Rewrite)
			c := instance.Start(t, mode, d, map[string]string{"user": "me"}).Agent(t, "agent", "pair")
			for _, sql := range statements {
				instance.Ask(c, "BEGIN")
				got[i] = append(got[i], instance.Ask(c, sql).SortedString())
				instance.Ask(c, "ROLLBACK")
				if i == 0 {
					result, refused := rewriter.Rewrite(sql, false)
					switch {
					case refused != nil:
						decisions = append(decisions, "refused: "+refused.Message)
					default:
						decisions = append(decisions, result.HardenedReason)
						if len(result.SearchedByKey) > 0 {
							byKey++
						}
					}
				}
			}
		}
		for k, sql := range statements {
			if got[0][k] != got[1][k] {
				t.Errorf("%s: %s {%s}\n   %s\n   %s", mode.Name, sql, decisions[k], instance.OneLine(got[0][k]), instance.OneLine(got[1][k]))
			}
			if !strings.Contains(got[0][k], "ERROR 42") {
				answeredCount++
			}
		}
		if mode.Name == instance.Auto.Name && byKey == 0 || answeredCount < len(statements)/5 {
			t.Errorf("%s: of %d statements %d are answered, %d by key", mode.Name, len(statements), answeredCount, byKey)
		}
	}
}
