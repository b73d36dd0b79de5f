package pgcatalog_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/catalog"
	"github.com/pgconsent/pgconsent/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func exec(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.PgConn().Exec(context.Background(), sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func load(t *testing.T, conn *pgx.Conn) *catalog.Snapshot {
	t.Helper()
	s, err := pgcatalog.Load(context.Background(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func public(name string) catalog.Name { return catalog.Name{Schema: "public", Name: name} }

const schema = `
CREATE EXTENSION cube;
CREATE TYPE mood AS ENUM ('a');
CREATE DOMAIN short AS varchar(5);
CREATE TABLE p (id int PRIMARY KEY, m mood, s short, gone int, v varchar(20) NOT NULL, g int GENERATED ALWAYS AS (id + 1) STORED);
ALTER TABLE p DROP COLUMN gone;
ALTER TABLE p ENABLE ROW LEVEL SECURITY;
CREATE TABLE c (a int, b int, PRIMARY KEY (b, a));
ALTER TABLE c ADD CONSTRAINT to_p FOREIGN KEY (a) REFERENCES p NOT VALID;
CREATE TABLE parts (id int) PARTITION BY LIST (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE VIEW v AS SELECT id FROM p;
CREATE FUNCTION f(a int, OUT o text, INOUT io mood, VARIADIC rest text[] DEFAULT '{}') LANGUAGE sql STABLE SECURITY DEFINER AS $$ SELECT 'x'::text, io $$;
CREATE FUNCTION unnamed(int, text) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq);
CREATE TEMP TABLE hidden (a int);`

func TestLoad(t *testing.T) {
	conn := pgtest.Database(t).Connect(t, "postgres")
	exec(t, conn, schema)
	s := load(t, conn)
	if s.ServerVersion() < 150000 || s.Database() != conn.Config().Database {
		t.Errorf("%d %s", s.ServerVersion(), s.Database())
	}
	ignore := cmpopts.IgnoreFields(catalog.Relation{}, "OID")
	types := cmpopts.IgnoreFields(catalog.Column{}, "TypeOID")
	for name, want := range map[string]*catalog.Relation{
		"p": {
			Name: public("p"), Kind: catalog.Table, Owner: "postgres", PrimaryKey: []string{"id"}, Indexes: []catalog.BTree{{Columns: []string{"id"}, Unique: true}}, RowSecurity: true,
			Columns: []catalog.Column{
				{Name: "id", Type: "integer", NotNull: true}, {Name: "m", Type: "public.mood"}, {Name: "s", Type: "public.short"},
				{Name: "v", Type: "character varying(20)", NotNull: true}, {Name: "g", Type: "integer", Generated: true},
			},
		},
		"c": {
			Name: public("c"), Kind: catalog.Table, Owner: "postgres", PrimaryKey: []string{"b", "a"}, Indexes: []catalog.BTree{{Columns: []string{"b", "a"}, Unique: true}},
			Columns:     []catalog.Column{{Name: "a", Type: "integer", NotNull: true}, {Name: "b", Type: "integer", NotNull: true}},
			ForeignKeys: []catalog.ForeignKey{{Columns: []string{"a"}, Target: public("p"), TargetCols: []string{"id"}}},
		},
		"parts":   {Name: public("parts"), Kind: catalog.PartitionedTable, Owner: "postgres", HasChildren: true, Columns: []catalog.Column{{Name: "id", Type: "integer"}}},
		"parts_1": {Name: public("parts_1"), Kind: catalog.Table, Owner: "postgres", IsPartition: true, Columns: []catalog.Column{{Name: "id", Type: "integer"}}},
		"v":       {Name: public("v"), Kind: catalog.View, Owner: "postgres", Columns: []catalog.Column{{Name: "id", Type: "integer"}}},
	} {
		got, ok := s.Relation(public(name))
		if !ok {
			t.Errorf("no %s", name)
			continue
		}
		if diff := cmp.Diff(want, got, ignore, types, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	p, _ := s.Relation(public("p"))
	if mood := s.TypeByOID(p.Column("m").TypeOID); mood == nil || mood.Kind != 'e' {
		t.Errorf("the type of p.m: %+v", mood)
	}
	functions := s.FunctionsNamed("", "f")
	if len(functions) != 1 {
		t.Fatalf("%d functions f", len(functions))
	}
	want := &catalog.Function{
		Name: public("f"), Kind: 'f', ArgNames: []string{"a", "io", "rest"}, ArgTypes: []string{"integer", "public.mood", "text[]"},
		Defaults: 1, Variadic: true, SecurityDefiner: true, Volatility: 's', Language: "sql",
	}
	if diff := cmp.Diff(want, functions[0], cmpopts.IgnoreFields(catalog.Function{}, "OID")); diff != "" {
		t.Error(diff)
	}
	if u := s.FunctionsNamed("", "unnamed"); len(u) != 1 || len(u[0].ArgNames) != 2 || u[0].ArgNames[0] != "" {
		t.Errorf("unnamed: %+v", u)
	}
	if o := s.OperatorsNamed("", "==="); len(o) != 1 || o[0].Extension != "" {
		t.Errorf("operator: %+v", o)
	}
	if c := s.TypesNamed("", "cube"); len(c) != 1 || c[0].Extension != "cube" {
		t.Errorf("cube: %+v", c)
	}
	if d := s.FunctionsNamed("", "cube_distance"); len(d) != 1 || d[0].Extension != "cube" {
		t.Errorf("cube_distance: %+v", d)
	}
	if !s.HasCatalogFunction("count") || !s.HasCatalogOperator("||") || !s.HasInfoSchemaFunction("_pg_truetypid") {
		t.Error("names of the system")
	}
	if len(s.TypesNamed("", "p")) != 0 || len(s.TypesNamed("", "_p")) != 0 {
		t.Error("row types of tables are not types of the snapshot")
	}
	for _, r := range s.Relations() {
		if r.Name.Name == "hidden" {
			t.Error("a temporary table is in the snapshot")
		}
	}
	if _, ok := s.ResolveRelation("", "pg_class"); !ok {
		t.Error("no pg_class")
	}
}

// The fingerprint changes with everything that Load reads, and with nothing else.
func TestFingerprint(t *testing.T) {
	db := pgtest.Database(t)
	conn := db.Connect(t, "postgres")
	exec(t, conn, schema)
	exec(t, conn, "INSERT INTO p (id, v) SELECT i, 'x' FROM generate_series(1, 1000) AS i")
	fingerprint := func() string {
		f, err := pgcatalog.Fingerprint(context.Background(), db.Connect(t, "postgres"))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	before, version := fingerprint(), load(t, conn).Version()
	for _, sql := range []string{"INSERT INTO p (id, v) VALUES (0, '')", "ANALYZE", "VACUUM p", "CREATE TEMP TABLE t2 (a int)", "SELECT 1"} {
		exec(t, conn, sql)
		if fingerprint() != before {
			t.Errorf("%s changes the fingerprint", sql)
		}
	}
	for _, sql := range []string{
		"ALTER TABLE p ADD COLUMN x int", "ALTER TABLE p DROP COLUMN x", "ALTER TABLE parts ALTER COLUMN id SET NOT NULL", "ALTER TABLE p DISABLE ROW LEVEL SECURITY",
		"CREATE TABLE n (a int)", "ALTER TABLE n RENAME TO m", "CREATE OR REPLACE FUNCTION unnamed(int, text) RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
		"CREATE TYPE t AS ENUM ()", "DROP OPERATOR === (int, int)", "ALTER TABLE c VALIDATE CONSTRAINT to_p", "ALTER TABLE parts DETACH PARTITION parts_1",
		"CREATE SCHEMA s", "ALTER TABLE c SET SCHEMA s",
	} {
		exec(t, conn, sql)
		f, v := fingerprint(), load(t, conn).Version()
		if f == before {
			t.Errorf("%s does not change the fingerprint", sql)
		}
		if v == version && sql != "CREATE SCHEMA s" {
			t.Errorf("%s does not change the snapshot", sql)
		}
		before, version = f, v
	}
}
