package attacks

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

const maskedSchema = `
CREATE EXTENSION citext;
CREATE EXTENSION pg_trgm;
CREATE TABLE dept (id int PRIMARY KEY, owner text NOT NULL, head text);
INSERT INTO dept VALUES (1, 'me', 'x'), (2, 'other', 'y');
CREATE TABLE person (id int PRIMARY KEY, owner text NOT NULL, dept int REFERENCES dept, born date, at timestamp, atz timestamptz,
  name text, nick citext, code varchar(40), pay numeric, cents numeric(12,2), ratio float8, small real, cnt int, n8 bigint, n2 smallint, doc jsonb,
  note text, mail text, pin text UNIQUE, during daterange,
  CHECK (pay IS NULL OR pay >= 0));
INSERT INTO person SELECT g, CASE WHEN g % 5 = 0 THEN 'other' ELSE 'me' END, 1 + (g % 5 = 0)::int, date '2001-05-01' + (g % 20),
  timestamp '2020-05-05' + g * interval '1 minute', timestamptz '2020-02-02 00:00+00' + g * interval '1 hour', 'abc' || md5(g::text), 'ABC' || g, 'xyz' || g,
  1000 + g, 100 + g % 100, 10 + g::float8 / 100, 10 + g::real / 100,
  100 + g % 100, 1000 + g, 10 + g % 10, jsonb_build_object('t', 'x', 'hidden', g), 'note' || g, 'm' || g, 'p' || g,
  daterange(date '2001-05-01' + (g % 20), NULL) FROM generate_series(1, 200) g;
CREATE INDEX ON person (born);
CREATE INDEX ON person (name text_pattern_ops);
CREATE INDEX ON person (pay, id);
CREATE INDEX ON person (atz DESC);
CREATE INDEX ON person USING gin (name gin_trgm_ops);
CREATE UNIQUE INDEX ON person (owner, born, id);
CREATE INDEX ON person USING gin (doc);
CREATE INDEX ON person USING gist (during);
CREATE VIEW young AS SELECT id, born, pay, name FROM person WHERE born > '1990-01-01';
CREATE TABLE visit (id int PRIMARY KEY, owner text NOT NULL, person int REFERENCES person ON DELETE CASCADE, day date, pay numeric);
INSERT INTO visit SELECT g, 'me', g, '2001-05-01', 1000 FROM generate_series(1, 20) g WHERE g % 5 <> 0;
`

const maskedPolicy = `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  dept: { rows: [ { own: { column: owner, is: user } } ], write: { commands: [insert, update, delete], columns: [head], accept: [references] } }
  person:
    rows: [ RULE ]
    columns:
      id: allow
      owner: allow
      dept: allow
      note: allow
      born: { mask: { generalise: month } }
      at: { mask: { generalise: day } }
      atz: { mask: { generalise: year } }
      name: { mask: { generalise: 3 } }
      nick: { mask: { generalise: 3 } }
      code: { mask: { generalise: 3 } }
      pay: { mask: { generalise: 1000 } }
      cents: { mask: { generalise: 100 } }
      ratio: { mask: { generalise: 10 } }
      small: { mask: { generalise: 10 } }
      cnt: { mask: { generalise: 100 } }
      n8: { mask: { generalise: 1000 } }
      n2: { mask: { generalise: 10 } }
      doc: { keys: { t: string } }
      mail: { mask: null }
    write: { commands: [update, delete], columns: [note], accept: [references] }
  visit: { rows: [ { own: { column: owner, is: user } }, { visible: { person: { id: person } } } ],
    write: { commands: [insert, update, delete], columns: [id, person, day, pay], stamp: { owner: { attribute: user } }, accept: [conflicts] } }
views: { young: {} }
`

// maskedTwins change values of the twins in such ways that the masked values stay the same. Among them are zeros of
// either sign, the ends of types, and texts of other lengths.
var maskedTwins = []string{
	`UPDATE person SET ratio = '-0', small = '-0', pay = 0 WHERE id = 1;
		UPDATE person SET ratio = '-infinity', small = 'infinity', born = '-infinity', at = 'infinity', atz = '-infinity' WHERE id = 2`,
	`UPDATE person SET born = date '2001-05-31' - (id % 20), at = timestamp '2020-05-05 23:59:59' - (id || ' minutes')::interval,
		atz = timestamptz '2020-11-30 00:00+00' - id * interval '1 hour', name = 'abc' || left(md5('x' || id), 20) || repeat('z', id),
		nick = 'ABCq' || 300 - id, code = 'xyz' || (900 - id),
		pay = 1999.123456789012345678901234567890 - id, cents = 199.99 - 0.5 * (id % 100), ratio = 19.999 - id::float8 / 100, small = 19.9 - id::real / 100,
		cnt = 199 - id % 100, n8 = 1999 - id, n2 = 19 - id % 10,
		doc = jsonb_build_object('t', 'x', 'other', repeat('secret', id), 'z', jsonb_build_array(id, id)), mail = 'zzz' || id, pin = 'q' || id,
		during = daterange(date '2001-05-31' - (id % 20), NULL);
	UPDATE person SET ratio = 5, small = 5, pay = 5 WHERE id = 1;
	UPDATE person SET ratio = 'NaN', small = 'NaN', born = 'infinity', at = '-infinity', atz = 'infinity' WHERE id = 2`,
}

// maskedColumns has for each masked column its name, the masked value, and an unmasked value of a row in the second
// twin.
var maskedColumns = [][3]string{
	{"born", "'2001-05-01'", "'2001-05-12'"}, {"at", "'2020-05-05'", "'2020-05-05 00:12'"}, {
		"atz", "'2020-01-01 00:00+00'", "'2020-02-05'"}, {"name", "'abc'", "'abca87ff679a2f3e71d9181a67b7542122c'"},
	{"nick", "'abc'", "'abc1'"}, {"code", "'xyz'", "'xyz2'"}, {"pay", "1000", "1100"}, {"cents", "100", "150"},
	{"ratio", "10", "11"}, {"small", "10", "11"}, {"cnt", "100", "150"}, {"n8", "1000", "1150"}, {"n2", "10", "15"}, {
		"doc", `'{"t":"x"}'`, `'{"t":"x","hidden":4}'`}, {"mail", "'m4'", "'zzz4'"},
}

var maskedValueStatements = []string{
	"SELECT count(*) FROM person WHERE {} = {k}", "SELECT count(*) FROM person WHERE {} IN ({k}, NULL)",
	"SELECT id FROM person WHERE {}::text LIKE '%' || {k} || '%' ORDER BY id LIMIT 3",
	"SELECT count(*) FROM person p JOIN (VALUES ({k})) v (x) ON p.{}::text = v.x::text", "UPDATE person SET note = 'x' WHERE {} = {k}",
	"SELECT count(*) FROM person WHERE ({}, id) >= ({k}, 3)",
	"SELECT sum(CASE {} WHEN {k} THEN 1 ELSE 0 END) FROM person", "SELECT count(*) FROM person WHERE {} > {k}",
	"SELECT id, {} FROM person WHERE {} <= {k} ORDER BY {}, id LIMIT 5",
	"PREPARE p AS SELECT count(*) FROM person WHERE {} = $1; EXECUTE p ({k}); DEALLOCATE p",
}

var maskedColumnStatements = []string{
	"SELECT id, {} FROM person ORDER BY {} DESC, id", "SELECT {}, count(*) FROM person GROUP BY {}",
	"SELECT id, rank() OVER (ORDER BY {}, id) FROM person",
	"SELECT DISTINCT ON ({}) {}, id FROM person ORDER BY {}, id", "SELECT count(*) FROM person a JOIN person b ON a.{} = b.{} AND a.id < b.id",
	"SELECT a.id FROM person a WHERE {} = (SELECT {} FROM person WHERE id = 7) ORDER BY 1",
	"SELECT id, pg_column_size({}), pg_column_compression({}) FROM person",
	"SELECT {}::text, md5({}::text) FROM person WHERE id = 3",
	"COPY (SELECT id, {} FROM person ORDER BY id) TO STDOUT", "UPDATE person SET note = {}::text WHERE id < 5 RETURNING id, {}, note",
	"SELECT {}::int FROM person WHERE id = 1", "SELECT {}::date FROM person WHERE id = 4",
	"SELECT id FROM person WHERE {} IS NULL ORDER BY id",
	"MERGE INTO visit USING person ON visit.person = person.id AND person.{} IS NULL WHEN MATCHED THEN DELETE",
	"BEGIN; DECLARE c CURSOR FOR SELECT id, {} FROM person ORDER BY {}, id; FETCH 3 c; MOVE 5 c; FETCH 2 c; ROLLBACK",
}

var maskedOtherStatements = []string{
	"SELECT * FROM person ORDER BY id", "SELECT person FROM person ORDER BY id",
	"SELECT to_jsonb(person) FROM person ORDER BY id", "SELECT * FROM young ORDER BY id",
	"SELECT count(*) FROM young WHERE born > '2001-05-05'", "SELECT pin FROM person", "SELECT during FROM person",
	"SELECT max(born), min(born), sum(pay), avg(ratio), max(name), min(n8) FROM person",
	"SELECT p.id, v.id FROM person p JOIN visit v ON p.born = v.day AND p.pay = v.pay ORDER BY 1, 2",
	"SELECT id FROM person NATURAL JOIN (SELECT date '2001-05-01' AS born) q ORDER BY 1",
	"INSERT INTO visit (id, person, day, pay) SELECT 1000 + id, id, born, pay FROM person WHERE id BETWEEN 101 " +
		"AND 103 RETURNING *", "INSERT INTO visit (id, person) VALUES (5000, 5)",
	"UPDATE person SET note = repeat('x', 2000) WHERE id = 1", "UPDATE person SET born = born WHERE id = 1",
	"UPDATE person SET note = 'a' WHERE id = 2 RETURNING *", "DELETE FROM person WHERE id = 3 RETURNING *",
	"DELETE FROM dept WHERE id = 1", "SELECT count(*) FROM (SELECT id FROM person ORDER BY pay FETCH FIRST 3 ROWS WITH TIES) q",
	"SELECT atttypmod, attname FROM pg_attribute WHERE attrelid = 'person'::regclass AND attnum > 0 ORDER BY attnum",
	"SELECT indexdef FROM pg_indexes WHERE tablename = 'person' ORDER BY 1",
	"SET TimeZone = 'Pacific/Kiritimati'; SELECT id, atz, atz::date, extract(day FROM atz) FROM person ORDER BY id; RESET TimeZone",
	"SELECT width_bucket(ratio, 0, 100, 7), width_bucket(pay, ARRAY[0, 1000, 1500]) FROM person ORDER BY id",
	"SELECT scale(pay), scale(cents), min_scale(pay) FROM person ORDER BY id",
	"SELECT float8send(ratio), float4send(small), numeric_send(pay) FROM person ORDER BY id",
	"SELECT 1 / ratio FROM person WHERE id = 1", "SELECT atan2(ratio, -1), small::text FROM person WHERE id = 1",
	"SELECT textsend(name), octet_length(name) FROM person ORDER BY id",
	"SELECT born + 1, born - date '2001-05-01', at - atz::timestamp FROM person ORDER BY id",
	"WITH u AS (UPDATE person SET note = 'w' WHERE pay > 1500 RETURNING *) SELECT count(*) FROM u",
}

// An agent asks for masked columns by ranges, orders, groups, joins, keys and sizes, and for the sign of a zero. No
// answer may show what the mask removes.
func TestMaskedValuesShowNowhere(t *testing.T) {
	tier.All(t)
	var statements []string
	for c, column := range maskedColumns {
		if !tier.IsPicked(c, 6) {
			continue
		}
		for _, k := range column[1:] {
			for _, sql := range maskedValueStatements {
				statements = append(statements, strings.NewReplacer("{}", column[0], "{k}", k).Replace(sql))
			}
		}
		for _, sql := range maskedColumnStatements {
			statements = append(statements, strings.ReplaceAll(sql, "{}", column[0]))
		}
	}
	statements = append(statements, maskedOtherStatements...)
	for m, mode := range modesOf(instance.Auto, instance.Both, instance.SignedViews) {
		for r, rule := range []string{"{ own: { column: owner, is: user } }", "{ own: { column: owner, is: user } }, { visible: { dept: { id: dept } } }"} {
			if !tier.IsPicked(2*m+r, 12) {
				continue
			}
			t.Run(mode.Name+", "+rule, func(t *testing.T) {
				var got [2][]string
				for i, twin := range maskedTwins {
					db := pgtest.Database(t)
					instance.Exec(t, db, maskedSchema)
					instance.Exec(t, db, twin)
					instance.Exec(t, db, "VACUUM (FULL, ANALYZE)")
					d := instance.Database{Name: "pair", DB: db, Policy: strings.ReplaceAll(maskedPolicy, "RULE", rule), SearchPath: []string{"public"}}
					proxy := instance.Start(t, mode, d, map[string]string{"user": "me"})
					for _, hint := range []string{"", predicate.UseIndexHint} {
						c := proxy.Agent(t, "agent", "pair")
						for _, sql := range statements {
							got[i] = append(got[i], askAndReset(c, hint+sql))
						}
					}
				}
				answered := 0
				for k := range got[0] {
					if got[0][k] != got[1][k] {
						t.Errorf("%s\n   %s\n   %s", statements[k%len(statements)], instance.Truncate(got[0][k]), instance.Truncate(got[1][k]))
					}
					if !strings.Contains(got[0][k], "ERROR") {
						answered++
					}
				}
				if answered < len(got[0])*3/4 {
					t.Errorf("%d of %d are answered", answered, len(got[0]))
				}
			})
		}
	}
}
