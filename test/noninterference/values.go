package noninterference

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
)

// Values searches for leaks of values that no row rule hides. In its schemas, all rows are visible. For some tables, a
// contract names the columns that statements may use; other tables have columns that the policy shows by key only. The
// two databases differ in the columns that the contract does not allow. They also differ in the by-key columns of those
// rows whose keys no statement names.
func Values(t testing.TB, cfg Config) Report {
	t.Helper()
	if cfg.PerData == 0 {
		cfg.PerData = 80
	}
	r := &runner{Config: cfg, t: t, catalog: newVocabulary(t, pgtest.Database(t)), start: time.Now(), notationsCompared: true}
	for n := uint64(0); r.Report.Cases < cfg.Cases && !r.isDone(); n++ {
		r.runValues(cfg.Seed<<20+n, cfg.Modes[int(n)%len(cfg.Modes)])
	}
	r.printProgress(true)
	return r.Report
}

func (r *runner) runValues(seed uint64, mode instance.Mode) {
	s := newContractSchema(seed)
	script := databaseScript{ddl: s.ddl(), policy: s.policy(), callers: s.callers}
	scope := &instance.Scope{TB: r.t}
	defer scope.End()
	st := newDatabaseTrio(scope, mode, script)
	st.countsHiddenRows = true // the third database shows by-key columns to all statements
	defer st.reconnectAgents()
	rng := rand.New(rand.NewPCG(seed, 41))
	one := data{}
	for _, t := range s.tables {
		for n := range rowsPerTable {
			one[t] = append(one[t], s.newRow(rng, t, keyValueOf(n)))
		}
	}
	loads := [3]string{s.loadSQL(one, s.callers[0], false), s.loadSQL(s.changeBarredValues(rng, one), s.callers[0], false)}
	loads[2] = loads[0]
	st.load(loads[0], loads[1], loads[2])
	w := &statementWriter{Rand: rng, schema: s, vocabulary: r.catalog}
	for range r.PerData {
		c := w.columnAtPlace()
		if w.IntN(3) == 0 {
			c = w.nextCase()
		}
		r.tryCase(st, c, script, loads, seed)
		if r.Report.Cases >= r.Config.Cases || r.isDone() {
			break
		}
	}
	if found, _ := st.proxy.Tap().MarkerHits(); len(found) > 0 {
		r.Report.Differences++
		st.proxy.Tap().RequireNoMarker(r.t)
	}
}

// keyValueOf returns the number in the n-th key. Statements do not name the keys of the second half.
func keyValueOf(n int) int {
	if n >= rowsPerTable/2 {
		return 7000 + n
	}
	return n
}

// newContractSchema makes a random schema of three tables in which all rows are visible.
func newContractSchema(seed uint64) *schema {
	s := &schema{Rand: rand.New(rand.NewPCG(seed, 43)), callers: []map[string]string{{"member": "1", "team": "red", "groups": "{red}"}}}
	names := slices.Clone(tableNames)
	s.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for n := 0; n < 3; {
		t := s.tableNamed(names[n])
		if t.rule = (&rule{kind: "open"}); n < 2 && t.keyCount > 1 {
			continue
		}
		for i := t.keyCount; i < len(t.columns); i++ {
			if c := &t.columns[i]; n == 0 && i > t.keyCount { // besides the key, the contract allows one column
				c.isBarredByContract = true
			} else if n == 1 && (i == t.keyCount || s.IntN(2) == 0) {
				c.isHidden, c.isByKeyOnly = true, true
			}
		}
		s.tables, n = append(s.tables, t), n+1
	}
	s.hasTeamContract = true
	return s
}

// columnContractYAML returns a contract that names the columns that statements may use.
func (s *schema) columnContractYAML() string {
	var objects, allow strings.Builder
	for i, t := range s.tables {
		fmt.Fprintf(&objects, "  o%d: { table: %q, metadata: [%q] }\n", i, t.name, t.columns[0].name)
		var columns []string
		for _, c := range t.columns {
			if !c.isBarredByContract {
				columns = append(columns, fmt.Sprintf("%q", c.name))
			}
		}
		fmt.Fprintf(&allow, "        o%d: { sources: [metadata, structured], columns: [%s] }\n", i, strings.Join(columns, ", "))
	}
	return "objects:\n" + objects.String() + "contracts:\n  c:\n    by: team\n    values:\n      red:\n       allow:\n" + allow.String()
}

func (t *table) barsColumns() bool {
	for _, c := range t.columns {
		if c.isBarredByContract {
			return true
		}
	}
	return false
}

// mostlyAllowedColumns returns columns of a table for a statement. Mostly they are those that the contract allows.
func (w *statementWriter) mostlyAllowedColumns(t *table) []column {
	if !t.barsColumns() || w.IntN(3) == 0 {
		return t.shownColumns()
	}
	var out []column
	for _, c := range t.shownColumns() {
		if !c.isBarredByContract {
			out = append(out, c)
		}
	}
	return out
}

// changeBarredValues returns a copy of the data in which values are different that no statement may read.
func (s *schema) changeBarredValues(r *rand.Rand, d data) data {
	out := data{}
	for _, t := range s.tables {
		for n, old := range d[t] {
			row := maps.Clone(old)
			for i, c := range t.columns {
				if !c.isBarredByContract && !(c.isByKeyOnly && n >= rowsPerTable/2) || r.IntN(4) == 0 {
					continue
				}
				v, isSet := failingValue(r, c)
				if r.IntN(2) == 0 {
					v, isSet = safeValue(r, t.columns[i], n)
				}
				if delete(row, c.name); isSet {
					row[c.name] = v
				}
			}
			out[t] = append(out[t], row)
		}
	}
	return out
}

// columnPlaces are statements with a column at each place where a column can be. T is the table, K its key, and B the
// column. X is another table with the key Y, and C is a condition on the key.
var columnPlaces = strings.Split(strings.TrimSpace(`
SELECT count(*) FROM (SELECT DISTINCT B FROM T WHERE C) s
SELECT K FROM T WHERE C ORDER BY B, K
SELECT K, rank() OVER (ORDER BY B) FROM T WHERE C
SELECT K, count(*) OVER (PARTITION BY B) FROM T WHERE C
SELECT K, count(*) OVER w FROM T WHERE C WINDOW w AS (PARTITION BY B)
SELECT K, sum(1) OVER (ORDER BY K ROWS length((SELECT max(B::text) FROM T)) % 3 PRECEDING) FROM T
SELECT DISTINCT ON (B) 1 FROM T WHERE C
SELECT count(*) FROM T WHERE C GROUP BY B
SELECT count(*), K FROM T WHERE C GROUP BY ROLLUP (K, B)
SELECT count(*) FROM T WHERE C GROUP BY GROUPING SETS ((B), ())
SELECT B IS NULL AS g, count(*) FROM T WHERE C GROUP BY g
SELECT B, count(*) FROM T WHERE C GROUP BY 1
SELECT 1 FROM T WHERE C HAVING max(B::text) > 'b'
SELECT K FROM T WHERE C GROUP BY K HAVING count(DISTINCT B) > 0
SELECT count(*) FILTER (WHERE B IS NULL) FROM T WHERE C
SELECT array_agg(K ORDER BY B, K) FROM T WHERE C
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY B) FROM T WHERE C
SELECT count(*) FROM (SELECT B FROM T WHERE C UNION SELECT B FROM T) s
SELECT count(*) FROM (SELECT B FROM T EXCEPT SELECT NULL) s
SELECT count(*) FROM (SELECT B FROM T WHERE C INTERSECT ALL SELECT B FROM T a) s
SELECT count(*) FROM T JOIN (SELECT max(b.B) AS B FROM T b) x USING (B)
SELECT count(*) FROM (SELECT B FROM T) a NATURAL JOIN (SELECT B FROM T ORDER BY K LIMIT 1) b
SELECT j.B FROM (T CROSS JOIN (SELECT 1 AS one) x) AS j WHERE C
SELECT u.B FROM T JOIN T AS z USING (B) AS u
SELECT l.v FROM T CROSS JOIN LATERAL (SELECT T.B AS v) l WHERE C ORDER BY 1
SELECT K, l.v FROM T, LATERAL (VALUES (B)) AS l (v) WHERE C
SELECT K, g FROM T, generate_series(1, length(B::text) % 5) g WHERE C
SELECT K, f.b FROM T, ROWS FROM (upper(B::text), lower('a')) AS f (b, c) WHERE C
SELECT K, u.n FROM T, unnest(ARRAY[B]) WITH ORDINALITY AS u (v, n) WHERE C ORDER BY u.v
SELECT K FROM T WHERE C AND (K, B) IN (SELECT K, B FROM T a)
SELECT Y FROM X WHERE EXISTS (SELECT 1 FROM T WHERE B IS NOT NULL AND C)
SELECT Y, (SELECT max(B::text) FROM T WHERE C) FROM X
SELECT Y FROM X ORDER BY (SELECT min(B::text) FROM T WHERE C), Y
SELECT ARRAY(SELECT B FROM T WHERE C ORDER BY K)
SELECT Y FROM X LIMIT (SELECT length(max(B::text)) FROM T WHERE C)
SELECT Y FROM X ORDER BY Y OFFSET (SELECT count(B) FROM T WHERE C)
WITH w AS (SELECT K AS a, B AS b FROM T WHERE C) SELECT b FROM w
WITH w (b, a) AS (SELECT B, K FROM T WHERE C) SELECT count(DISTINCT b) FROM w
WITH RECURSIVE w (a, n) AS (SELECT B::text, 1 FROM T WHERE C UNION SELECT a, n + 1 FROM w WHERE n < 2) SELECT count(*) FROM w
WITH RECURSIVE w (k, a, n) AS (SELECT K, B, 1 FROM T UNION ALL SELECT k, a, n + 1 FROM w WHERE n < 2) SEARCH DEPTH FIRST BY a SET o SELECT k FROM w ORDER BY o
WITH RECURSIVE w (k, a, n) AS (SELECT K, B, 1 FROM T UNION ALL SELECT k, a, n + 1 FROM w WHERE n < 3) CYCLE a SET c USING p SELECT count(*), c FROM w GROUP BY c
WITH w AS (SELECT * FROM T) SELECT count(B) FROM w WHERE C
WITH T AS (SELECT * FROM public.T) SELECT B FROM T WHERE C
SELECT count(DISTINCT t) FROM T AS t
SELECT t FROM T AS t
SELECT t.* FROM T AS t WHERE C
SELECT to_jsonb(t) FROM T AS t WHERE C
SELECT (t).B FROM T AS t WHERE C
SELECT count(*) FROM T AS t WHERE t IS NOT NULL
SELECT count(*) FROM T a, T b WHERE a = b
SELECT count(*) FROM T a WHERE ROW(a.*) IN (SELECT b.* FROM T b)
SELECT (s).B FROM (SELECT t AS s FROM T t WHERE C) x
SELECT s.v IS NULL FROM (SELECT B AS v, K FROM T) s
SELECT s.* FROM (SELECT B FROM T WHERE C) s
SELECT CASE B WHEN NULL THEN 1 ELSE 2 END, K FROM T WHERE C ORDER BY coalesce(B::text, 'm'), K
SELECT greatest(B::text, 'm') FROM T WHERE C
SELECT count(B) FROM T WHERE C
SELECT count(*) FROM T WHERE B::text COLLATE "C" > 'm'
SELECT count(*) FROM T WHERE B IS DISTINCT FROM B OR B::text = ANY (ARRAY['tea', 'a'])
SELECT count(*) FROM T WHERE B::text BETWEEN 'b' AND 'x' AND C
SELECT xmlforest(B AS b) FROM T WHERE C
SELECT json_agg(B ORDER BY K) FROM T WHERE C
SELECT x.c FROM T, XMLTABLE('/a' PASSING xmlelement(name a, B::text) COLUMNS c text PATH '.') x WHERE C
SELECT string_agg(B::text, ',' ORDER BY K) OVER (ORDER BY K) FROM T
SELECT max(s.b) FROM (SELECT B::text AS b FROM T WHERE C UNION ALL SELECT 'm') s
COPY (SELECT B FROM T WHERE C) TO STDOUT
COPY T (K, B) TO STDOUT
COPY T TO STDOUT
TABLE T
DECLARE c CURSOR WITH HOLD FOR SELECT B FROM T WHERE C; FETCH ALL FROM c
PREPARE p AS SELECT B FROM T WHERE C; EXECUTE p; DEALLOCATE p
SELECT B FROM T WHERE C; SELECT B FROM T
`), "\n")

// conditionalPlaces are statements in which the condition on the key decides of which rows the column is read.
var conditionalPlaces = strings.Split(strings.TrimSpace(`
SELECT B FROM T WHERE C
SELECT Y FROM X JOIN T ON C AND B IS NULL
SELECT Y, B FROM X LEFT JOIN T ON C
SELECT Y, B FROM T LEFT JOIN X ON C
SELECT Y, B FROM T RIGHT JOIN X ON C
SELECT Y, B FROM X RIGHT JOIN T ON C
SELECT Y, B FROM T FULL JOIN X ON C AND X.Y = T.K
SELECT a.K, b.B FROM T a JOIN T b ON true WHERE C
SELECT b.B FROM T a LEFT JOIN T b ON C
SELECT B FROM (SELECT * FROM T) s WHERE C
SELECT B FROM T WHERE K IN (SELECT K FROM T WHERE C)
SELECT B FROM T t WHERE (SELECT C)
SELECT B FROM T WHERE EXISTS (SELECT 1 FROM X WHERE C)
SELECT B FROM T, LATERAL (SELECT 1 WHERE C) l
SELECT B FROM T a (K, B) WHERE C
SELECT B, K FROM T WHERE C FOR SHARE
`), "\n")

// columnAtPlace returns a statement that has a column at one of the places.
func (w *statementWriter) columnAtPlace() testCase {
	t, x := pick(w.Rand, w.schema.tables[:2]...), w.schema.tables[2]
	b := pick(w.Rand, t.columns...)
	if other := slices.DeleteFunc(slices.Clone(t.columns), func(c column) bool { return !c.isBarredByContract && !c.isByKeyOnly }); w.IntN(3) > 0 {
		b = pick(w.Rand, other...)
	}
	list, c := columnPlaces, "true"
	if t == w.schema.tables[1] && w.IntN(3) > 0 {
		list = conditionalPlaces
	}
	if w.IntN(4) > 0 {
		c = w.keyCondition(t, x)
	}
	sql := pick(w.Rand, list...)
	names := map[byte]string{'T': t.sql(), 'K': t.columns[0].sql(), 'B': b.sql(), 'X': x.sql(), 'Y': x.columns[0].sql(), 'C': c}
	var out strings.Builder
	for i := range len(sql) {
		name, ok := names[sql[i]]
		if isWord := (i == 0 || !isLetter(sql[i-1])) && (i+1 == len(sql) || !isLetter(sql[i+1])); ok && isWord {
			out.WriteString(name)
		} else {
			out.WriteByte(sql[i])
		}
	}
	messages := strings.Split(out.String(), "; ")
	if strings.HasPrefix(sql, "DECLARE") {
		messages = append([]string{"BEGIN"}, append(messages, "ROLLBACK")...)
	}
	return testCase{messages: messages, extended: len(messages) == 1 && w.IntN(3) == 0}
}

func isLetter(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '"' || b == '_' || b == '\''
}

// keyCondition returns a condition on the key of t. Many conditions compare the key with a value; others do not
// determine the key.
func (w *statementWriter) keyCondition(t, otherTable *table) string {
	key := t.columns[0]
	k := pick(w.Rand, key.sql(), key.sql(), t.sql()+"."+key.sql())
	value := func() string { return "'" + keyValue(key.kind, w.IntN(rowsPerTable/2)) + "'" }
	otherCondition := otherTable.sql() + "." + otherTable.columns[0].sql() + " IS NOT NULL"
	return pick(w.Rand,
		k+" = "+value(), value()+" = "+k, k+" IN ("+value()+", "+value()+")", k+" = ANY (ARRAY["+value()+"])", k+
			" = "+value()+" AND true", "true AND ("+k+" = "+value()+" AND true)",
		k+" = "+value()+" OR true", k+" = "+value()+" OR "+k+" IS NOT NULL", "NOT ("+k+" = "+value()+")", k+
			" <> "+value(), k+" >= "+value(), "("+k+" = "+value()+") IS NOT NULL", k+" NOT IN ("+value()+")",
		k+" <> ALL (ARRAY["+value()+"])", "("+k+", true) = ("+value()+", true)", k+" IS DISTINCT FROM "+
			value(), "CASE WHEN "+k+" = "+value()+" THEN true ELSE true END", k+" = "+k, k+" BETWEEN "+value()+" AND "+value(),
		"coalesce("+k+" = "+value()+", true) OR "+otherCondition, k+" = (SELECT "+value()+")", k+"::text > "+value())
}
