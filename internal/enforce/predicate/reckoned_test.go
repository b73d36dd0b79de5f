package predicate_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

const estimateSchema = `CREATE TYPE agreement AS ENUM ('pending', 'granted', 'withdrawn');
CREATE TABLE person (id int PRIMARY KEY, agreed agreement NOT NULL, active boolean NOT NULL);
CREATE TABLE guardian (person int NOT NULL, agreed agreement NOT NULL);
CREATE TABLE kind (id int PRIMARY KEY, name text);
CREATE TABLE doc (id int PRIMARY KEY, person int NOT NULL, kind int NOT NULL);
INSERT INTO person SELECT i, CASE WHEN i % 5 < 3 THEN 'granted' WHEN i % 5 = 3 THEN 'pending' ELSE 'withdrawn' END::agreement, i % 4 > 0
FROM generate_series(1, 4000) i;
INSERT INTO guardian SELECT i, CASE WHEN i % 3 > 0 THEN 'granted' ELSE 'pending' END::agreement FROM generate_series(1, 4000, 7) i;
INSERT INTO kind SELECT i, 'k' || i FROM generate_series(1, 40) i;
INSERT INTO doc SELECT i, i % 4000 + 1, i % 40 + 1 FROM generate_series(1, 20000) i;
CREATE INDEX ON guardian (person); CREATE INDEX ON doc (person); ANALYZE;
CREATE SCHEMA pgconsent;
CREATE VIEW pgconsent.h_public_person AS SELECT * FROM person;
CREATE VIEW pgconsent.h_public_guardian AS SELECT * FROM guardian;
CREATE FUNCTION pgconsent.readable_public_guardian(timestamptz) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';`

// The planner's estimates for a status, also of an enum or boolean type, and for a link to one row are wrong by a
// factor of four at most. The choice of plans and the order of joins depend on them.
func TestRowEstimates(t *testing.T) {
	conn := pgtest.Database(t).Connect(t, "postgres")
	if _, err := conn.PgConn().Exec(t.Context(), estimateSchema).ReadAll(); err != nil {
		t.Fatal(err)
	}
	person := &catalog.Relation{
		Name: catalog.Name{Schema: "public", Name: "person"}, Kind: catalog.Table, Columns: []catalog.Column{
			{Name: "id", TypeOID: 23}, {Name: "agreed"}, {Name: "active", TypeOID: 16}},
		PrimaryKey: []string{"id"}, BTrees: []catalog.BTree{{Columns: []string{"id"}, IsUnique: true}},
	}
	guardian := &catalog.Relation{Name: catalog.Name{Schema: "public", Name: "guardian"}, Kind: catalog.Table,
		Columns: []catalog.Column{{Name: "person", TypeOID: 23}, {Name: "agreed"}}}
	grantedRule := predicate.Status{Column: "agreed", Value: "granted", ColumnType: "public.agreement"}
	guardedRule := predicate.All{grantedRule, predicate.Consent{
		Steps: []predicate.Step{{Relation: guardian, Column: "person", FromColumn: "id"}}, StatusColumn: "agreed", AgreedStatus: "granted",
		StatusType: "public.agreement"}}
	for _, c := range []struct {
		name, from string
		n          predicate.Node
	}{
		{"an enum", "person AS t", grantedRule},
		{"a boolean", "person AS t", predicate.Status{Column: "active", Value: "true", ColumnType: "boolean"}},
		{"a boolean that is false", "person AS t", predicate.Status{Column: "active", Value: "false", ColumnType: "boolean"}},
		{"everybody who is asked", "person AS t", guardedRule},
		{"what hangs on one row", "doc AS t", predicate.Visible{Relation: person, Column: "id", FromColumn: "person", Rows: guardedRule}},
		{"the same beside another table", "kind AS k JOIN doc AS t ON t.kind = k.id",
			predicate.Visible{Relation: person, Column: "id", FromColumn: "person", Rows: guardedRule}},
	} {
		condition, ok := predicate.SignedViewCondition(c.n, nil, "t")
		if !ok {
			t.Fatal(c.name)
		}
		sql := "SELECT t.id FROM " + c.from + " WHERE " + condition
		var rows float64
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM ("+sql+") AS x").Scan(&rows); err != nil {
			t.Fatal(err)
		}
		var text string
		if err := conn.QueryRow(t.Context(), "EXPLAIN (FORMAT JSON) "+sql).Scan(&text); err != nil {
			t.Fatal(err)
		}
		type plan struct {
			Type  string  `json:"Node Type"`
			Rows  float64 `json:"Plan Rows"`
			Plans []plan  `json:"Plans"`
		}
		var explained []struct{ Plan plan }
		if err := json.Unmarshal([]byte(text), &explained); err != nil {
			t.Fatal(err)
		}
		if got := explained[0].Plan.Rows; math.Abs(math.Log(got/rows)) > math.Log(4) {
			t.Errorf("%s: %v rows are expected, and there are %v", c.name, got, rows)
		}
		var makesUnique func(p plan) bool
		makesUnique = func(p plan) bool {
			if p.Type == "Unique" || p.Type == "Aggregate" {
				return true
			}
			for _, child := range p.Plans {
				if makesUnique(child) {
					return true
				}
			}
			return false
		}
		if makesUnique(explained[0].Plan) {
			t.Errorf("%s: what a link leads to is made unique first:\n%s", c.name, text)
		}
	}
}
