package rewrite

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/tier"
)

// The rewriter adds columns to GROUP BY only where the query certainly groups by the whole key of a table with hidden
// columns.
func TestGroupByKeyOfNarrowedTables(t *testing.T) {
	for _, mode := range []Mode{RowSecurityMode, InjectedMode, AlwaysSignedMode} {
		r := rewriter(t, mode)
		for sql, want := range map[string]string{
			"SELECT p.born, count(*) FROM patients p GROUP BY p.id":                               `GROUP BY p.born, p.id`,
			"SELECT born FROM patients GROUP BY id":                                               `GROUP BY patients.born, id`,
			"SELECT id, upper(name) FROM patients GROUP BY 1":                                     `GROUP BY patients.name, 1`,
			"SELECT p.* FROM patients p JOIN people ON true GROUP BY (p.id)":                      `GROUP BY p.name, p.email, p.born, p.visits, p.notes, (p.id)`,
			"SELECT 1 FROM patients p GROUP BY DISTINCT p.id HAVING p.visits > 1 ORDER BY p.born": `GROUP BY DISTINCT p.born, p.visits, p.id`,
			"SELECT * FROM (SELECT p.name FROM patients p GROUP BY p.id) x":                       `GROUP BY p.name, p.id`,
			"SELECT title FROM pages GROUP BY slug, site":                                         `GROUP BY pages.title, slug, site`,
			"SELECT public.patients.id, public.patients.born FROM public.patients JOIN people ON true GROUP BY " +
				"public.patients.id": `GROUP BY patients.born, patients.id`,
			"SELECT p.id AS patient, p.born FROM patients p JOIN people ON true GROUP BY patient": `GROUP BY p.born, patient`,
			// name is also a column of people
			"SELECT p.id AS name, p.born FROM patients p JOIN people ON true GROUP BY name": `GROUP BY name`,
			"SELECT p.id AS x, p.born AS x FROM patients p GROUP BY x":                      `GROUP BY x`,
			"SELECT p.id, array_agg(p.born), max(p.visits) FROM patients p GROUP BY p.id":   `GROUP BY p.id`,
			"SELECT title FROM pages GROUP BY site":                                         `GROUP BY site`,
			"SELECT p.id, count(*) FROM patients p GROUP BY p.id":                           `GROUP BY p.id`,
			"SELECT p.name FROM patients p GROUP BY p.born":                                 `GROUP BY p.born`,
			"SELECT p.name FROM patients p GROUP BY p.id + 0":                               `GROUP BY p.id + 0`,
			"SELECT p.name FROM patients p GROUP BY ROLLUP (p.id)":                          `GROUP BY ROLLUP (p.id)`,
			"SELECT name FROM patients p JOIN people USING (id) GROUP BY id":                `GROUP BY id`,
			"SELECT born, count(*) FROM patients p JOIN memories m ON true GROUP BY p.id":   `GROUP BY p.born, p.id`,
			// the function's result might have a column born
			"SELECT born, name FROM patients p JOIN generate_series(1, 2) x ON true GROUP BY p.id": `GROUP BY p.id`,
			// people also has a column name, so it might be meant
			"SELECT born, name FROM patients p JOIN people ON true GROUP BY p.id": `GROUP BY p.born, p.id`,
			"SELECT a FROM patients p (id2, a) GROUP BY id2":                      `GROUP BY id2`,
			// rows of child tables may have the same key
			"SELECT v.plate FROM vehicles v GROUP BY v.id":                                                         `GROUP BY v.id`,
			"SELECT m.title FROM memories m GROUP BY m.id":                                                         `GROUP BY m.id`,
			"SELECT *, 1 FROM patients p GROUP BY 2":                                                               `GROUP BY 2`,
			"SELECT (SELECT p.name) FROM patients p WHERE EXISTS (SELECT max(q.id) FROM patients q) GROUP BY p.id": `GROUP BY p.name, p.id`,
		} {
			result, refusal := r.Rewrite(sql, false)
			if refusal != nil {
				t.Errorf("%s: %v", sql, refusal)
				continue
			}
			got := strings.ReplaceAll(result.Text[strings.LastIndex(result.Text, "GROUP BY"):], `"`, "")
			if !strings.HasPrefix(got, want) {
				t.Errorf("mode %d, %s:\n got %s\nwant %s", mode, sql, got, want)
			}
		}
	}
}

// A column of a composite type is added where each of its fields can be compared, to any depth.
func TestGroupByKeyWithCompositeColumns(t *testing.T) {
	tier.All(t)
	for kind, added := range map[string]bool{
		"homes": true, "CREATE TYPE spot AS (at place, why mood[])": true, "CREATE TYPE spot AS (name text, data json)": false, "odds": false,
	} {
		change := "CREATE TYPE odd AS (at point); CREATE DOMAIN odds AS odd[]; CREATE DOMAIN homes AS place[]; "
		if strings.HasPrefix(kind, "CREATE") {
			change, kind = change+kind+"; ", "spot"
		}
		r, _ := altered(t, RowSecurityMode, change+"DROP SCHEMA pgconsent_rows CASCADE; ALTER TABLE letters ALTER topic TYPE "+kind+" USING NULL")
		result, refusal := r.Rewrite("SELECT p.topic, count(*) FROM letters p GROUP BY p.id", false)
		if refusal != nil {
			t.Fatal(refusal)
		}
		if got := strings.Contains(result.Text, `GROUP BY p.topic, p.id`); got != added {
			t.Errorf("%s: %s", change+kind, result.Text)
		}
	}
}
