package attacks

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// recheckGroups are tables on which a write makes PostgreSQL compare, check or compute hidden rows and columns as well.
// An agent may write them only if the policy accepts what such a write reveals. With that, the statements of a group
// must answer differently on the twins.
var recheckGroups = []struct {
	name       string
	schema     string
	twins      [2]string
	tables     []string // the table sections of the policy; ACCEPT is replaced by the accept list
	accept     string
	minVersion int                 // the oldest server version that has the feature
	statements map[string][]string // the statements whose answers differ between the twins, by table
}{
	{
		"indexes",
		`CREATE EXTENSION btree_gist; CREATE EXTENSION intarray; CREATE TYPE pair AS (a int, j json);
		CREATE TABLE booked (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), owner text NOT NULL, v numrange, EXCLUDE USING gist (owner WITH =, v WITH &&));
		CREATE TABLE ints (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), owner text NOT NULL, v int[]); CREATE INDEX ON ints USING gist (v gist__int_ops);
		CREATE TABLE geo (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), owner text NOT NULL, v box); CREATE INDEX ON geo USING gist (v);
		CREATE TABLE pts (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), owner text NOT NULL, v point); CREATE INDEX ON pts USING gist (v) WHERE owner <> '';
		CREATE TABLE spans (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), owner text NOT NULL, v text);
		CREATE INDEX ON spans USING gist (numrange(0, length(v) * 1e306));
		CREATE TABLE pairs (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), owner text NOT NULL, v pair); CREATE INDEX ON pairs (v);
		CREATE TABLE sums (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), owner text NOT NULL, v numeric);
		CREATE INDEX ON sums USING brin (v numeric_minmax_multi_ops(values_per_range = 8)) WITH (pages_per_range = 1);
		CREATE TABLE days (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), owner text NOT NULL, v date); CREATE INDEX ON days USING gist (v);
		INSERT INTO booked (owner, v) VALUES ('me', '[1,2]'); INSERT INTO ints (owner, v) VALUES ('me', '{1,2}');
		INSERT INTO geo (owner, v) SELECT 'me', box(point(g, g), point(g + 1, g + 1)) FROM generate_series(1, 5) g;
		INSERT INTO pts (owner, v) SELECT 'me', point(g, g) FROM generate_series(1, 5) g; INSERT INTO spans (owner, v) SELECT 'me', repeat('x', g)
		FROM generate_series(1, 5) g; INSERT INTO pairs (owner, v) SELECT 'me', row(g, '{}')::pair FROM generate_series(1, 5) g;
		INSERT INTO sums (owner, v) SELECT 'me', g FROM generate_series(1, 2) g; INSERT INTO days (owner, v) VALUES ('me', '2024-01-01');`,
		[2]string{`INSERT INTO geo (owner, v) SELECT 'other', box(point(g, g), point(g + 1, g + 1)) FROM generate_series(1, 2000) g;
			INSERT INTO booked (owner, v) SELECT 'me2', numrange(123456 + 2 * g, 123457 + 2 * g) FROM generate_series(1, 2000) g;
			INSERT INTO ints (owner, v) SELECT 'other', ARRAY[g, g + 1, g + 7] FROM generate_series(1, 3000) g;
			INSERT INTO pts (owner, v) SELECT 'other', point(g, g) FROM generate_series(1, 2000) g;
			INSERT INTO spans (owner, v) SELECT 'other', repeat('x', 1 + g % 9) FROM generate_series(1, 2000) g;
			INSERT INTO pairs (owner, v) VALUES ('other', row(77, '{}')::pair);
			INSERT INTO sums (owner, v) SELECT 'other', 10 + g * g / 7.0 FROM generate_series(1, 40) g;
			INSERT INTO days (owner, v) SELECT 'other', '2024-01-01'::date + g % 900 FROM generate_series(1, 3000) g; VACUUM ANALYZE`, `VACUUM ANALYZE`},
		policyTables("booked ints geo pts spans pairs sums days",
			"{ rows: [ own: { column: owner, is: user } ], write: { commands: [insert, update], columns: [v], "+
				"stamp: { owner: { attribute: user } }ACCEPT } }"),
		"conflicts",
		0,
		map[string][]string{
			"booked": {"INSERT INTO booked (v) VALUES ('[3,1e400]')", "INSERT INTO booked (v) VALUES ('[-1e400,-1]')"},
			"ints": {"INSERT INTO ints (v) VALUES ((SELECT array_agg(g * 10000) FROM generate_series(1, 195) g))",
				"INSERT INTO ints (v) VALUES ((SELECT array_agg(g * 10000000) FROM generate_series(-195, 195, 2) g))"},
			"geo":   {"INSERT INTO geo (v) VALUES ('(1e200,1e200),(-1e200,-1e200)')"},
			"pts":   {"INSERT INTO pts (v) VALUES ('(1e200,1e200)')"},
			"spans": {"INSERT INTO spans (v) VALUES (repeat('x', 1000))"},
			"pairs": {"INSERT INTO pairs (v) VALUES (row(77, '{}'))", "INSERT INTO pairs (v) VALUES (row(78, '{}'))"},
			"sums":  {"INSERT INTO sums (v) VALUES ('1e400')"},
			"days":  {"INSERT INTO days (v) VALUES ('infinity')"},
		},
	},
	{
		"what is asked anew of hidden columns",
		`SET DateStyle = 'ISO, MDY'; SET TimeZone = 'UTC'; CREATE FUNCTION to_day(text) RETURNS date LANGUAGE sql IMMUTABLE AS 'SELECT $1::date';
		CREATE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TABLE note (id int PRIMARY KEY, owner text NOT NULL, v text, salary int);
		CREATE TABLE due (id int PRIMARY KEY, owner text NOT NULL, v text, until timestamptz CHECK (until > now()));
		CREATE TABLE born (id int PRIMARY KEY, owner text NOT NULL, v text, born text CHECK (born::date < '2100-01-01'));
		CREATE TABLE at (id int PRIMARY KEY, owner text NOT NULL, v text, at timestamptz, day date, CHECK (at::date >= day));
		CREATE TABLE indexed (id int PRIMARY KEY, owner text NOT NULL, v text, born text); CREATE INDEX ON indexed (v); CREATE INDEX ON indexed (to_day(born));
		CREATE TABLE few (id int PRIMARY KEY, owner text NOT NULL, v text, born text); CREATE INDEX ON few (v);
		CREATE INDEX ON few (id) WHERE to_day(born) > '2000-01-01';
		CREATE TABLE computed (id int PRIMARY KEY, owner text NOT NULL, v text, born text, day date GENERATED ALWAYS AS (to_day(born)) STORED);
		CREATE TRIGGER touched BEFORE UPDATE ON computed FOR EACH ROW EXECUTE FUNCTION touched();
		CREATE TABLE watched (id int PRIMARY KEY, owner text NOT NULL, v text, born text);
		CREATE TRIGGER watched BEFORE UPDATE ON watched FOR EACH ROW WHEN (NEW.born::date < '2100-01-01') EXECUTE FUNCTION touched();
		CREATE TABLE divided (id int PRIMARY KEY, owner text NOT NULL, v text, n int);
		CREATE TRIGGER divided BEFORE UPDATE ON divided FOR EACH ROW WHEN (10 / NEW.n > 1) EXECUTE FUNCTION touched();
		CREATE TABLE arrays (id int PRIMARY KEY, owner text NOT NULL, v text, l int[], m int[]);
		CREATE TRIGGER arrays BEFORE UPDATE ON arrays FOR EACH ROW WHEN (ARRAY[NEW.l, NEW.m] IS NOT NULL) EXECUTE FUNCTION touched();
		CREATE TABLE zoned (id int PRIMARY KEY, owner text NOT NULL, v text, zone circle);
		CREATE TRIGGER zoned AFTER UPDATE ON zoned FOR EACH ROW WHEN (OLD.zone IS DISTINCT FROM NEW.zone) EXECUTE FUNCTION touched();
		CREATE TABLE lines (id int PRIMARY KEY, owner text NOT NULL, v text, l lseg);
		CREATE TRIGGER lines AFTER UPDATE ON lines FOR EACH ROW WHEN (OLD.l < NEW.l) EXECUTE FUNCTION touched();
		CREATE TABLE spread (id int, owner text NOT NULL, v text, born text) PARTITION BY RANGE (to_day(born));
		CREATE TABLE spread_1 PARTITION OF spread FOR VALUES FROM ('2000-01-01') TO ('2021-01-01');`,
		[2]string{recheckRows("5000", "2 seconds", "01/13/2020", "2020-01-13 08:00Z", "0"),
			recheckRows("500", "1 day", "01/12/2020", "2020-01-13 20:00Z", "1")},
		policyTables("note due born at indexed few computed watched divided arrays zoned lines spread",
			"{ rows: [ own: { column: owner, is: user } ], columns: { id: allow, v: allow }, write: { commands: [update], columns: [v]ACCEPT } }"),
		"values",
		0,
		map[string][]string{
			"note": {"UPDATE note SET v = 'b'"}, "due": {"UPDATE due SET v = 'b'"}, "born": {
				"SET DateStyle = 'ISO, DMY'; UPDATE born SET v = 'b'"}, "at": {"SET DateStyle = 'ISO, MDY'; SET TimeZone = '<-12>+12'; UPDATE at SET v = 'b'"},
			"indexed": {"SET DateStyle = 'ISO, DMY'; UPDATE indexed SET v = 'b'"}, "few": {
				"SET DateStyle = 'ISO, DMY'; UPDATE few SET v = 'b'"}, "computed": {"SET DateStyle = 'ISO, DMY'; UPDATE computed SET v = 'b'"},
			"watched": {"SET DateStyle = 'ISO, DMY'; UPDATE watched SET v = 'b'"}, "divided": {
				"UPDATE divided SET v = 'b'"}, "arrays": {"UPDATE arrays SET v = 'b'"},
			"zoned": {"UPDATE zoned SET v = 'b'"}, "lines": {"UPDATE lines SET v = 'b'"}, "spread": {"SET DateStyle = 'ISO, DMY'; UPDATE spread SET v = 'b'"},
		},
	},
	{
		"what is asked anew of hidden rows that change along",
		`SET DateStyle = 'ISO, MDY'; CREATE FUNCTION to_day(text) RETURNS date LANGUAGE sql IMMUTABLE AS 'SELECT $1::date'; CREATE TYPE pair AS (a int, j json);
		CREATE TABLE album (id int PRIMARY KEY, owner text NOT NULL); INSERT INTO album VALUES (1, 'me'), (2, 'me'), (3, 'me'), (4, 'me'), (5, 'me');
		CREATE TABLE photo (id int PRIMARY KEY, owner text NOT NULL, album int REFERENCES album ON DELETE SET NULL, price int);
		INSERT INTO photo VALUES (1, 'other', 1, -5); ALTER TABLE photo ADD CHECK (price > 0) NOT VALID;
		CREATE TABLE clip (id int PRIMARY KEY, owner text NOT NULL, album int REFERENCES album ON DELETE SET NULL, taken text); CREATE INDEX ON clip (album);
		CREATE INDEX ON clip (to_day(taken)); INSERT INTO clip VALUES (1, 'other', 2, '01/13/2020');
		CREATE TABLE reel (id int PRIMARY KEY, owner text NOT NULL, album int REFERENCES album ON DELETE SET NULL, v pair); CREATE INDEX ON reel (album);
		CREATE INDEX ON reel (v); INSERT INTO reel VALUES (1, 'other', 3, row(1, '{}'));
		CREATE TABLE map (id int PRIMARY KEY, album int REFERENCES album ON DELETE SET NULL, zone circle); INSERT INTO map VALUES (1, 5, '<(0,0),1e200>');
		CREATE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TRIGGER map AFTER UPDATE ON map FOR EACH ROW WHEN (OLD.zone IS DISTINCT FROM NEW.zone) EXECUTE FUNCTION touched();`,
		[2]string{"", "DELETE FROM photo; DELETE FROM clip; DELETE FROM reel; DELETE FROM map"},
		[]string{"album: { rows: [ own: { column: owner, is: user } ], write: { commands: [delete]ACCEPT } }"},
		"references",
		0,
		map[string][]string{"album": {"DELETE FROM album WHERE id = 1",
			"SET DateStyle = 'ISO, DMY'; DELETE FROM album WHERE id = 2", "DELETE FROM album WHERE id = 3", "DELETE FROM album WHERE id = 5"}},
	},
	{
		"virtual columns in conditions of triggers",
		`CREATE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TABLE parted (id int PRIMARY KEY, owner text NOT NULL, v text, n int, share int GENERATED ALWAYS AS (1000 / n) VIRTUAL);
		CREATE TRIGGER parted AFTER UPDATE ON parted FOR EACH ROW WHEN (OLD.share IS DISTINCT FROM NEW.share) EXECUTE FUNCTION touched();
		CREATE TABLE whole (id int PRIMARY KEY, owner text NOT NULL, v text, n int, share int GENERATED ALWAYS AS (1000 / n) VIRTUAL);
		CREATE TRIGGER whole AFTER UPDATE ON whole FOR EACH ROW WHEN (OLD IS DISTINCT FROM NEW) EXECUTE FUNCTION touched();`,
		[2]string{"INSERT INTO parted VALUES (1, 'me', 'a', 0); INSERT INTO whole VALUES (1, 'me', 'a', 0)",
			"INSERT INTO parted VALUES (1, 'me', 'a', 1); INSERT INTO whole VALUES (1, 'me', 'a', 1)"},
		policyTables("parted whole",
			"{ rows: [ own: { column: owner, is: user } ], columns: { id: allow, v: allow }, write: { commands: [update], columns: [v]ACCEPT } }"),
		"values",
		18,
		map[string][]string{"parted": {"UPDATE parted SET v = 'b'"}, "whole": {"UPDATE whole SET v = 'b'"}},
	},
	{
		"virtual columns in conditions of triggers, of rows that change along",
		`CREATE TABLE album (id int PRIMARY KEY, owner text NOT NULL); INSERT INTO album VALUES (1, 'me');
		CREATE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TABLE photo (id int PRIMARY KEY, owner text NOT NULL, album int REFERENCES album ON DELETE SET NULL, n int,
			share int GENERATED ALWAYS AS (1000 / n) VIRTUAL); CREATE TRIGGER photo BEFORE UPDATE ON photo FOR EACH ROW WHEN (OLD.share > 5) EXECUTE FUNCTION touched();
		CREATE TABLE clip (id int PRIMARY KEY, owner text NOT NULL); CREATE TABLE reel (id int PRIMARY KEY, owner text NOT NULL);`,
		[2]string{"INSERT INTO photo VALUES (1, 'other', 1, 0)", ""},
		[]string{"album: { rows: [ own: { column: owner, is: user } ], write: { commands: [delete]ACCEPT } }"},
		"references",
		18,
		map[string][]string{"album": {"DELETE FROM album"}},
	},
	{
		"conditions of triggers as rows go",
		`CREATE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN COALESCE(NEW, OLD); END';
		CREATE TABLE gone (id int PRIMARY KEY, owner text NOT NULL, v text, n int);
		CREATE TRIGGER gone BEFORE DELETE ON gone FOR EACH ROW WHEN (10 / OLD.n > 1) EXECUTE FUNCTION touched();`,
		[2]string{"INSERT INTO gone VALUES (1, 'me', 'a', 0)", "INSERT INTO gone VALUES (1, 'me', 'a', 1)"},
		policyTables("gone", "{ rows: [ own: { column: owner, is: user } ], columns: { id: allow, v: allow }, write: { commands: [delete]ACCEPT } }"),
		"values",
		0,
		map[string][]string{"gone": {"DELETE FROM gone"}},
	},
	{
		"conditions of triggers as rows go along",
		`CREATE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN COALESCE(NEW, OLD); END';
		CREATE TABLE album (id int PRIMARY KEY, owner text NOT NULL); INSERT INTO album VALUES (1, 'me');
		CREATE TABLE photo (id int PRIMARY KEY, owner text NOT NULL, album int REFERENCES album ON DELETE CASCADE);
		CREATE TABLE clip (id int PRIMARY KEY, owner text NOT NULL, photo int REFERENCES photo ON DELETE CASCADE, n int);
		CREATE TRIGGER clip BEFORE DELETE ON clip FOR EACH ROW WHEN (10 / OLD.n > 1) EXECUTE FUNCTION touched();
		CREATE TABLE reel (id int PRIMARY KEY, owner text NOT NULL);`,
		[2]string{"INSERT INTO photo VALUES (1, 'other', 1); INSERT INTO clip VALUES (1, 'other', 1, 0)", ""},
		[]string{"album: { rows: [ own: { column: owner, is: user } ], write: { commands: [delete]ACCEPT } }"},
		"references",
		0,
		map[string][]string{"album": {"DELETE FROM album"}},
	},
	{
		"keys of some rows",
		`CREATE TABLE task (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), owner text NOT NULL, title text, flagged boolean NOT NULL DEFAULT false, salary int);
		CREATE UNIQUE INDEX ON task (owner, title) WHERE NOT flagged; CREATE UNIQUE INDEX ON task (owner, title) WHERE salary > 1000;`,
		[2]string{"INSERT INTO task (owner, title, flagged, salary) VALUES ('me', 'a', false, 2000), ('me', 'b', " +
			"false, NULL), ('me', 'c', true, 5000)",
			"INSERT INTO task (owner, title, flagged, salary) VALUES ('me', 'a', true, 2000), ('me', 'b', false, NULL), ('me', 'c', true, 500)"},
		[]string{"task: { rows: [ own: { column: owner, is: user } ], columns: { id: allow, title: allow }, " +
			"write: { commands: [insert, update], columns: [title], stamp: { owner: { attribute: user } }ACCEPT } }"},
		"values",
		0,
		map[string][]string{"task": {"BEGIN; UPDATE task SET title = 'a' WHERE title = 'c'; ROLLBACK",
			"ROLLBACK; BEGIN; UPDATE task SET title = 'a' WHERE title = 'b'; ROLLBACK",
			"ROLLBACK; INSERT INTO task (title) VALUES ('a') ON CONFLICT DO NOTHING"}},
	},
}

// policyTables returns one section of a policy for each of the named tables, all with the same definition.
func policyTables(tableNames, definition string) []string {
	var out []string
	for _, name := range strings.Fields(tableNames) {
		out = append(out, name+": "+definition)
	}
	return out
}

// recheckRows returns SQL that inserts the agent's own rows, whose other columns are hidden from it.
func recheckRows(salary, until, day, at, n string) string {
	return strings.NewReplacer("SALARY", salary, "UNTIL", until, "DAY", day, "AT", at, "NUMBER", n).Replace(`SET DateStyle = 'ISO, MDY'; SET TimeZone = 'UTC';
		INSERT INTO note VALUES (1, 'me', 'a', SALARY); ALTER TABLE note ADD CHECK (salary < 1000) NOT VALID;
		INSERT INTO due VALUES (1, 'me', 'a', now() + interval 'UNTIL'); INSERT INTO born VALUES (1, 'me', 'a', 'DAY');
		INSERT INTO at VALUES (1, 'me', 'a', 'AT', '2020-01-13'); INSERT INTO indexed VALUES (1, 'me', 'a', 'DAY'); INSERT INTO few VALUES (1, 'me', 'a', 'DAY');
		INSERT INTO computed VALUES (1, 'me', 'a', 'DAY');
		INSERT INTO watched VALUES (1, 'me', 'a', 'DAY'); INSERT INTO divided VALUES (1, 'me', 'a', NUMBER); INSERT INTO spread VALUES (1, 'me', 'a', 'DAY');
		INSERT INTO arrays VALUES (1, 'me', 'a', array_fill(1, ARRAY[1 + NUMBER]), '{1}');
		INSERT INTO zoned VALUES (1, 'me', 'a', circle(point(0, 0), power(1e200::float8, NUMBER)));
		INSERT INTO lines VALUES (1, 'me', 'a', lseg(point(-1e308 * NUMBER, 0), point(1e308 * NUMBER, 1)))`)
}

const policyHead = "version: 1\nattributes: { user: { type: text, source: credential } }\ntables:\n"

// An agent's write makes PostgreSQL evaluate checks, indexes, generated columns or trigger conditions over hidden
// values again, and they may fail. Such writes must be withheld unless the policy accepts it.
func TestRecheckedExpressionsNeedAcceptance(t *testing.T) {
	tier.All(t)
	for _, group := range recheckGroups {
		if pgtest.Binaries().Major < group.minVersion {
			continue
		}
		t.Run(group.name, func(t *testing.T) {
			var got [2]map[string]string
			for i, twin := range group.twins {
				db := pgtest.Database(t)
				instance.Exec(t, db, group.schema)
				for _, sql := range strings.Split(twin, "; VACUUM") {
					instance.Exec(t, db, sql)
				}
				tables, statements := group.tables, group.statements
				if strings.HasPrefix(group.tables[0], "note: ") && pgtest.Binaries().Major >= 18 {
					instance.Exec(t, db,
						"CREATE TABLE lax (id int PRIMARY KEY, owner text NOT NULL, v text, secret text); INSERT "+
							"INTO lax VALUES (1, 'me', 'a', "+[]string{"NULL", "'x'"}[i]+"); ALTER TABLE lax ADD CONSTRAINT there NOT NULL secret NOT VALID")
					tables = append(tables[:len(tables):len(tables)], policyTables("lax", strings.TrimPrefix(tables[0], "note: "))...)
					statements = map[string][]string{"lax": {"UPDATE lax SET v = 'b'"}}
					for table, list := range group.statements {
						statements[table] = list
					}
				}
				snapshot, err := pgcatalog.Load(t.Context(), db.Connect(t, "postgres"), []string{"public"})
				if err != nil {
					t.Fatal(err)
				}
				for _, table := range tables {
					doc, err := policy.Parse("p.yaml", []byte(policyHead+"  "+strings.Replace(table, "ACCEPT", "", 1)+"\n"))
					if err != nil {
						t.Fatal(err)
					}
					p, err := policy.Compile(doc, snapshot)
					if err == nil {
						for _, w := range p.WithheldWrites() {
							err = errors.Join(err, w)
						}
					}
					if err == nil || !strings.Contains(err.Error(), "would tell") || !strings.Contains(err.Error(), "accept: ["+group.accept+"]") {
						t.Errorf("%s: %v", table, err)
					}
				}
				text := policyHead + "  " + strings.ReplaceAll(strings.Join(tables, "\n  "), "ACCEPT", ", accept: ["+group.accept+"]") + "\n"
				if group.accept == "references" {
					text += "  " + strings.Join(policyTables("photo clip reel", "{ rows: [ own: { column: owner, is: user } ] }"), "\n  ") + "\n"
				}
				agent := instance.Start(t, instance.Auto,
					instance.Database{Name: "d", DB: db, Policy: text, SearchPath: []string{"public"}}, map[string]string{"user": "me"}).Agent(t, "agent", "d")
				if strings.Contains(group.schema, "now()") {
					time.Sleep(2 * time.Second)
				}
				got[i] = map[string]string{}
				for table, list := range statements {
					for _, sql := range list {
						got[i][table] += instance.Ask(agent, sql).SortedString() + "\n"
					}
				}
			}
			for table := range got[0] {
				// numeric overflow fails beside visible rows too; only the value that its message quotes differs
				if areEqual := got[0][table] == got[1][table]; areEqual != (table == "sums") {
					t.Errorf("%s tells: %v: %s", table, !areEqual, got[0][table])
				}
			}
		})
	}
}

// infallibleSchema is a table whose indexes, checks and keys cannot fail for any value. Agents may write it without an
// accept list, and their writes must answer alike on both twins.
const infallibleSchema = `CREATE EXTENSION btree_gist; CREATE EXTENSION pg_trgm; CREATE EXTENSION cube; CREATE TYPE mood AS ENUM ('sad', 'glad');
	CREATE TABLE free (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), owner text NOT NULL, title text, during tstzrange, days daterange, whole int8range,
		m numeric, doc jsonb, words text[], mood mood, at timestamptz, shape box, near cube, net inet, spans int4multirange,
		EXCLUDE USING gist (owner WITH =, during WITH &&), salary int CHECK (salary < 1000), kind varchar(9) CHECK (kind IN ('x', 'y')),
			born text CHECK (born::json ->> 'x' IS NULL), gone boolean NOT NULL DEFAULT false,
		search tsvector GENERATED ALWAYS AS (to_tsvector('simple', coalesce(title, ''))) STORED, CHECK (mood::text <> 'x'));
	CREATE INDEX ON free USING gist (days); CREATE INDEX ON free USING gist (whole); CREATE INDEX ON free USING brin (m) WITH (pages_per_range = 1);
	CREATE INDEX ON free (m); CREATE INDEX ON free USING gin (doc); CREATE INDEX ON free USING gin (words);
	CREATE INDEX ON free USING gin (title gin_trgm_ops); CREATE INDEX ON free USING gist (title gist_trgm_ops); CREATE INDEX ON free USING gin (search);
	CREATE INDEX ON free (mood, at); CREATE INDEX ON free USING spgist (shape); CREATE INDEX ON free USING gist (near);
	CREATE INDEX ON free USING gist (net inet_ops); CREATE INDEX ON free USING gist (spans);
	CREATE INDEX ON free USING brin (at timestamptz_minmax_multi_ops) WITH (pages_per_range = 1);
	CREATE INDEX ON free (lower(kind)); CREATE INDEX ON free (salary) WHERE NOT gone;
	CREATE UNIQUE INDEX ON free (owner, title) WHERE title <> '';
	INSERT INTO free (owner, title, salary, kind, born) VALUES ('me', 'mine', 5, 'x', '{}');`

// An agent writes extreme values into a table whose checks and indexes cannot fail. The answers must be the same with
// and without 2,000 hidden rows.
func TestInfallibleExpressionsTellNothing(t *testing.T) {
	tier.All(t)
	var got [2]string
	for i := range got {
		db := pgtest.Database(t)
		instance.Exec(t, db, infallibleSchema)
		if i == 1 {
			instance.Exec(t, db, `INSERT INTO free (owner, title, during, days, whole, m, doc, words, mood, at, shape, near, net, spans, salary)
				SELECT 'other', 'title ' || g, tstzrange(now() + g * interval '1 day', NULL), daterange('2024-01-01'::date + g % 900, NULL),
				int8range(g, g + 9), g, jsonb_build_object('a', g), ARRAY['w' || g], 'sad', now() + g * interval '1 hour', box(point(g, g), point(g + 1, g + 1)), cube(g),
				'10.0.0.0'::inet + g, int4multirange(int4range(g, g + 2)), g % 900
				FROM generate_series(1, 1500) g ON CONFLICT DO NOTHING`)
			instance.Exec(t, db,
				`INSERT INTO free (owner, days, whole, m, at, shape, near, title) SELECT 'other', 'empty', '[0,9223372036854775800]', 1e300 * g, 'infinity',
						'(1e200,1e200),(-1e200,-1e200)', '(1e200)', 'more ' || g FROM generate_series(1, 500) g; UPDATE free SET salary = 7, kind = 'y' WHERE owner = 'me'`)
		}
		instance.Exec(t, db, "VACUUM ANALYZE")
		text := policyHead + "  free: { rows: [ own: { column: owner, is: user } ], columns: { id: allow, title: " +
			"allow, during: allow, days: allow, whole: allow, m: allow, doc: allow, words: allow, mood: allow, " +
			"at: allow, shape: allow, near: allow, net: allow, spans: allow }, write: { commands: [insert, " +
			"update], columns: [title, during, days, whole, m, doc, words, mood, at, shape, near, net, spans], stamp: { owner: { attribute: user } } } }\n"
		agent := instance.Start(t, instance.Auto,
			instance.Database{Name: "d", DB: db, Policy: text, SearchPath: []string{"public"}}, map[string]string{"user": "me"}).Agent(t, "agent", "d")
		for _, sql := range []string{
			"INSERT INTO free (title) VALUES ('one') RETURNING title",
			"INSERT INTO free (title, during) VALUES ('two', '[2024-01-01,)')", "INSERT INTO free (title, during) VALUES ('three', '(-infinity,infinity)')",
			"INSERT INTO free (title, days) VALUES ('four', '[-infinity,infinity]')",
			"INSERT INTO free (title, whole) VALUES ('five', '[-9223372036854775807,9223372036854775806]')",
			"INSERT INTO free (title, m) VALUES ('six', '1e400')", "INSERT INTO free (title, m) VALUES ('seven', 'NaN')",
			"INSERT INTO free (title, at) VALUES ('eight', 'infinity'), ('nine', '-infinity')",
			"INSERT INTO free (title, shape) VALUES ('ten', '(1e308,1e308),(-1e308,-1e308)'), ('eleven', " +
				"'(Infinity,Infinity),(-Infinity,-Infinity)')", "INSERT INTO free (title, near) VALUES ('twelve', '(1e308)'), ('thirteen', '(-1e308)')",
			"INSERT INTO free (title, net) VALUES ('fourteen', '::/0'), ('fifteen', '10.0.0.7')",
			"INSERT INTO free (title, spans) VALUES ('sixteen', '{(,)}'), ('seventeen', '{}')",
			"INSERT INTO free (title, doc, words, mood) VALUES ('eighteen', '{\"a\": [1, {}]}', '{w1,NULL}', 'glad')",
			"INSERT INTO free (title) VALUES ('mine')", "INSERT INTO free (title) VALUES ('title 7') RETURNING title",
			"UPDATE free SET title = title || '!', mood = 'sad', m = -1e390, at = 'infinity' WHERE title <> 'x'",
			"SET DateStyle = 'ISO, DMY'; SET TimeZone = '<-12>+12'; UPDATE free SET title = title || '?' RETURNING title",
		} {
			got[i] += fmt.Sprintf("%s: %s\n", instance.Truncate(sql), instance.OneLine(instance.Ask(agent, sql).SortedString()))
		}
	}
	if got[0] != got[1] || strings.Count(got[0], "INSERT 0") < 12 {
		t.Errorf("%s\nbeside hidden rows:\n%s", got[0], got[1])
	}
}
