package rewrite

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
)

// Some functions take the name of a relation as text. For a hidden relation the client gets the same error as for one
// that does not exist.
func TestNamesInTexts(t *testing.T) {
	r := rewriter(t, RowSecurityMode)
	conn := pgtest.Database(t).Connect(t, "postgres") // an empty database
	for _, hiddenName := range []string{
		"SELECT 'memory_edges'::regclass", "SELECT regclass 'memory_edges'", "SELECT CAST('public.Memory_Edges' AS pg_catalog.regclass)",
		`SELECT '"public" . "memory_edges"'::regclass`,
		"SELECT 1 FROM pg_class WHERE oid = ' MEMORY_EDGES '::regclass", "SELECT 'memory_edges'::text::regclass::oid",
		"SELECT regclass('memory_edges')", "SELECT '{memory_edges}'::regclass[]",
		`SELECT '{"\"memory_edges\"", 1}'::regclass[]`, "SELECT CAST(ARRAY['memory_edges'] AS regclass[])",
		"SELECT 'pgconsent.keys'::regclass", "SELECT 'pgconsent.keys'::text::regclass",
		"SELECT regclass('pgconsent.keys')", "SELECT '{pgconsent.keys}'::regclass[]",
		"SELECT has_table_privilege('pgconsent.keys', 'SELECT')", "SELECT has_function_privilege('pgconsent.f(text)', 'EXECUTE')",
		"SELECT 'memory_edges'::regtype", "SELECT regtype 'public.memory_edges'", "SELECT 'memory_edges[]'::regtype",
		"SELECT '_memory_edges'::regtype", `SELECT '"memory_edges"'::text::regtype`, "SELECT has_type_privilege('memory_edges', 'USAGE')",
		"SELECT 'unlisted'::regproc", "SELECT regproc 'public.unlisted'", "SELECT 'unlisted(text)'::regprocedure",
		"SELECT CAST('public . Unlisted ( text )' AS regprocedure)", "SELECT has_function_privilege('unlisted(text)', 'EXECUTE')",
		"SELECT 'pgconsent'::regnamespace", "SELECT '\"pgconsent_signed\"'::regnamespace",
		"SELECT has_schema_privilege('pgconsent', 'USAGE')", "SELECT 'pgconsent_signed.attr(text)'::regprocedure",
		"SELECT 'pgconsent.keys'::regtype", "SELECT 'pgconsent.changed'::regproc",
		"SELECT pg_get_serial_sequence('memory_edges', 'id')", "SELECT has_table_privilege('memory_edges', 'SELECT')",
		"SELECT has_table_privilege('postgres', 'public.memory_edges', 'SELECT')", "SELECT row_security_active('memory_edges')",
		"SELECT has_table_privilege('nothing', 'SELECT')", "SELECT 'Nothing'::text::regclass",
		"SELECT row_security_active('public.nothing')", "SELECT pg_relation_size('nothing', 'main')",
		"SELECT has_type_privilege('nothing[]', 'USAGE')", "SELECT has_function_privilege('nothing(text)', 'EXECUTE')",
		"SELECT has_function_privilege('now(nothing)', 'EXECUTE')", "SELECT 'public.nothing'::text::regtype",
		"SELECT 'ÄB'::text::regclass", "SELECT '" + strings.Repeat("long", 20) + "'::text::regclass",
		"SELECT 'now(memory_edges)'::regprocedure", "SELECT 'unlisted(int, public.memory_edges)'::regprocedure",
		"SELECT has_function_privilege('now(memory_edges[])', 'EXECUTE')", "SELECT 'unlisted(integer)'::regprocedure",
		"SELECT pg_relation_is_publishable('memory_edges')", "SELECT pg_total_relation_size('public.memory_edges')",
		"SELECT pg_table_size('memory_edges')", "SELECT pg_indexes_size('memory_edges')", "SELECT pg_relation_size('memory_edges')",
		"SELECT pg_relation_size('memory_edges', 'main')", "SELECT pg_relation_size('memory_edges'::text)",
		"SELECT pg_partition_root('memory_edges')", "SELECT * FROM pg_partition_tree('memory_edges')",
		"SELECT * FROM pg_partition_tree(rootrelid => 'memory_edges')",
		"SELECT * FROM pg_catalog.pg_partition_ancestors('memory_edges')",
		"SELECT pg_index_has_property('memory_edges', 'clusterable')",
		"SELECT pg_index_column_has_property('memory_edges', 1, 'asc')", "SELECT pg_get_replica_identity_index('memory_edges')",
		"SELECT pg_relation_is_updatable('memory_edges', 'true')",
		"SELECT pg_column_is_updatable('memory_edges', '1', true)",
		"SELECT has_column_privilege('memory_edges', 'id', 'SELECT')", "SELECT has_column_privilege('postgres', 'memory_edges', 'id', 'SELECT')",
		"SELECT has_any_column_privilege('memory_edges', 'SELECT')", "SELECT has_sequence_privilege('memory_edges', 'SELECT')",
	} {
		_, refusal := r.Rewrite(hiddenName, false)
		_, err := conn.Exec(context.Background(), hiddenName)
		var want *pgconn.PgError
		if !errors.As(err, &want) {
			t.Fatalf("%s: %v", hiddenName, err)
		}
		if refusal == nil || string(refusal.Code) != want.Code || refusal.Message != want.Message || refusal.Position != int(want.Position) {
			t.Errorf("%s:\n got %v\nwant %v at %d", hiddenName, refusal, want, want.Position)
		}
	}
	basetype := "SELECT pg_basetype('memory_edges')"
	if _, refusal := r.Rewrite(basetype, false); r.snap.HasCatalogFunction("pg_basetype") == (refusal == nil ||
		refusal.Code != "42704" || refusal.Position != 20) {
		t.Errorf("%s: %v", basetype, refusal)
	}
	for _, name := range []string{"memory_edges", "nothing"} { // there is no such function, and the server reports that
		if _, refusal := r.Rewrite("SELECT pg_relation_size('"+name+"', 3)", false); refusal == nil || refusal.Code != "42P01" || refusal.Position != 25 {
			t.Errorf("%s: %v", name, refusal)
		}
	}
	for _, visibleName := range []string{
		"SELECT has_table_privilege(0, 'memory_edges')", "SELECT has_table_privilege('memories', 'memory_edges')",
		"SELECT has_schema_privilege('public', 'pgconsent')", "SELECT has_table_privilege('memory_edges')",
		"SELECT pg_relation_size('memories', 'memory_edges')",
		"SELECT has_column_privilege('memories', 'memory_edges', 'SELECT')",
		"SELECT pg_relation_is_updatable('memories', 'memory_edges')", "SELECT pg_index_has_property('memories', 'memory_edges')",
		"SELECT 'memories'::regclass", `SELECT '"Mixed Case"'::regclass`, "SELECT 'pg_class'::regclass",
		"SELECT 'information_schema.tables'::regclass", "SELECT 'nothing'::regclass",
		"SELECT '16400'::regclass", "SELECT '-'::regclass", "SELECT 'memories_pkey'::regclass",
		"SELECT 'open_drafts'::regclass", `SELECT '"memory_edges'::regclass`, "SELECT 'memory_edges.'::regclass",
		"SELECT 'memory_edges'::regclass[]", "SELECT '{memories,0}'::regclass[]", "SELECT 'memories'::regtype",
		"SELECT 'integer[]'::regtype", "SELECT 'character varying(3)'::regtype", "SELECT 'nothing'::regtype",
		"SELECT 'lower'::regproc", "SELECT 'lower(text)'::regprocedure", "SELECT 'nothing()'::regprocedure",
		"SELECT 'now(nothing, memory_edges)'::regprocedure", "SELECT 'unlisted(nothing)'::regprocedure",
		"SELECT 'match_memories(text, integer, boolean)'::regprocedure", "SELECT 'match_memories'::regproc",
		"SELECT 'public'::regnamespace", "SELECT 'nothing'::regnamespace", "SELECT 'memory_edges'::text",
		"SELECT $1::regclass", "SELECT 'pg_class_oid_index'::text::regclass",
		"SELECT has_type_privilege('_memories', 'USAGE')", "SELECT has_type_privilege('int4', 'USAGE')",
		"SELECT '2281'::text::regproc", "SELECT has_function_privilege('unlisted', 'EXECUTE')",
		"SELECT has_function_privilege('2281', 'EXECUTE')", "SELECT '-'::text::regprocedure",
		"SELECT has_table_privilege('elsewhere.nothing', 'SELECT')",
		"SELECT has_type_privilege('memories[]', 'USAGE')",
		"SELECT has_table_privilege('information_schema.tables', 'SELECT')", "SELECT has_table_privilege('memories', 'SELECT')",
	} {
		if _, refusal := r.Rewrite(visibleName, false); refusal != nil && refusal.Code != "42704" {
			t.Errorf("%s: %v", visibleName, refusal)
		}
	}
}

// In a text, a name may only mean a relation that agents' catalogs show, the sequence of a serial column, or a
// partition. Refusals name partitions as well.
func TestNamesOfAllRelations(t *testing.T) {
	conn := database(t).Connect(t, "postgres")
	if _, err := conn.PgConn().Exec(context.Background(),
		"CREATE SEQUENCE apart; CREATE TABLE kept_apart (id serial PRIMARY KEY); CREATE VIEW seen_apart AS SELECT "+
			"1 AS one; CREATE MATERIALIZED VIEW made_apart AS SELECT 1 AS one; CREATE TYPE pair_apart AS (a integer)").ReadAll(); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(context.Background(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	r := New(snap, rewriter(t, RowSecurityMode).pol, RowSecurityMode)
	visibleCount := 0
	for _, relation := range snap.Relations() {
		name := relation.Name
		if catalog.IsOwnSchema(name.Schema) || name.Schema == "pg_catalog" || name.Schema == "information_schema" || relation.Kind == catalog.Composite {
			continue
		}
		var isShown bool
		if err := conn.QueryRow(context.Background(), `SELECT EXISTS (SELECT FROM pgconsent.listed_relations() AS s (oid) WHERE s.oid = $1)
			OR EXISTS (SELECT FROM pg_depend AS d JOIN pgconsent.listed_relations() AS s (oid) ON s.oid = d.refobjid
			WHERE d.classid = 'pg_class'::regclass AND d.objid = $1 AND d.deptype IN ('a', 'i') AND d.refclassid = 'pg_class'::regclass)`,
			relation.OID).Scan(&isShown); err != nil {
			t.Fatal(err)
		}
		if isShown {
			visibleCount++
		}
		isShown = isShown || childRefusalHint(r.pol, name) != ""
		for _, sql := range []string{"SELECT " + catalog.QuoteLiteral(name.SQL()) + "::regclass",
			"SELECT has_table_privilege(" + catalog.QuoteLiteral(name.SQL()) + ", 'SELECT')"} {
			if _, refusal := r.Rewrite(sql, false); (refusal == nil) != isShown {
				t.Errorf("%s: shown: %t, and %v", sql, isShown, refusal)
			}
		}
	}
	if visibleCount == 0 {
		t.Error("agents' catalogs show nothing")
	}
}

// In a text, a name may only mean an index that agents' catalogs show. These are indexes of visible tables, without
// expressions, predicates and hidden columns.
func TestNamesOfAllIndexes(t *testing.T) {
	r, conn := altered(t, RowSecurityMode, `CREATE TABLE kept_apart (id serial PRIMARY KEY, note text); CREATE INDEX apart ON kept_apart (note);
		CREATE MATERIALIZED VIEW made_apart AS SELECT 1 AS one; CREATE INDEX one_apart ON made_apart (one);
		CREATE INDEX "Whole" ON memories (id); CREATE INDEX lowered ON memories (lower(title)); CREATE INDEX partly ON memories (id) WHERE title = 'x';
		CREATE INDEX of_hidden ON vehicles (vin); CREATE INDEX with_hidden ON vehicles (plate) INCLUDE (vin); CREATE INDEX of_shown ON vehicles (plate)`)
	rows, err := conn.Query(context.Background(), `SELECT i.indexrelid::regclass::text,
		EXISTS (SELECT FROM pgconsent.listed_relations() AS s (oid) WHERE s.oid = i.indexrelid)
		FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
		WHERE c.relnamespace = 'public'::regnamespace`)
	if err != nil {
		t.Fatal(err)
	}
	indexNames := map[string]bool{}
	for rows.Next() {
		var (
			name    string
			isShown bool
		)
		if err := rows.Scan(&name, &isShown); err != nil {
			t.Fatal(err)
		}
		indexNames[name] = isShown
		for _, sql := range []string{"SELECT " + catalog.QuoteLiteral(name) + "::regclass",
			"SELECT pg_index_has_property(" + catalog.QuoteLiteral("public."+name) + ", 'clusterable')"} {
			if _, refusal := r.Rewrite(sql, false); (refusal == nil) != isShown {
				t.Errorf("%s: shown: %t, and %v", sql, isShown, refusal)
			}
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if !indexNames[`"Whole"`] || !indexNames["of_shown"] || !indexNames["memories_pkey"] || indexNames["of_hidden"] ||
		indexNames["with_hidden"] ||
		indexNames["lowered"] || indexNames["partly"] || indexNames["apart"] || indexNames["one_apart"] {
		t.Error(indexNames)
	}
}

// A JSON or XML document cannot be converted to a type whose input function looks up names, such as regclass.
func TestNamesInDocuments(t *testing.T) {
	r := rewriter(t, RowSecurityMode)
	for name := range nameTypes {
		for _, expression := range []string{
			"SELECT x.a FROM jsonb_to_record('{}') AS x (a NAME)",
			"SELECT x.a FROM json_to_recordset('[]') AS x (a text, b NAME[])", "SELECT a FROM ROWS FROM (jsonb_to_record('{}') AS (a pg_catalog.NAME)) AS x",
			"SELECT x.a FROM XMLTABLE('/a' PASSING ('<a/>'::xml) COLUMNS a NAME PATH 'b') AS x",
			"SELECT x.a FROM XMLTABLE('/a' PASSING '<a/>' COLUMNS n FOR ORDINALITY, a NAME) AS x",
		} {
			textExpression := strings.NewReplacer("pg_catalog.NAME", "text", "NAME", "text").Replace(expression)
			if _, refusal := r.Rewrite(textExpression, false); refusal != nil {
				t.Errorf("%s: %v", textExpression, refusal)
			}
			sql := strings.ReplaceAll(expression, "NAME", name)
			if result, refusal := r.Rewrite(sql, false); refusal == nil {
				t.Errorf("%s: %s", sql, result.Text)
			}
		}
	}
}

func TestSplitName(t *testing.T) {
	for text, want := range map[string]string{
		"a": "a", " A ": "a", "a.B": "a|b", `"A" . "b.c"`: "A|b.c", `"a""b"`: `a"b`, "a.b.c": "a|b|c", "": "",
		".a": "", "a.": "", `"a`: "", "a b": "", `""`: "", "ÄB": "Äb", strings.Repeat("ä", 40): strings.Repeat("ä", 31), `a"b`: `a"b`,
	} {
		if got := strings.Join(splitName(text), "|"); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// For every function that agents may call and that looks up a name in the catalogs, the rewriter checks constant
// arguments.
func TestFunctionsThatTakeCatalogNames(t *testing.T) {
	conn := database(t).Connect(t, "postgres")
	var types []string
	for name := range nameTypes {
		types = append(types, name)
	}
	rows, err := conn.Query(context.Background(), `SELECT p.proname, p.pronargs, array_position(p.proargtypes::oid[], t.oid)
		FROM pg_proc AS p JOIN pg_type AS t ON t.oid = ANY (p.proargtypes)
		WHERE p.pronamespace = 'pg_catalog'::regnamespace AND t.typname = ANY ($1)`, types)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var (
			name             string
			args, tokenIndex int
		)
		if err := rows.Scan(&name, &args, &tokenIndex); err != nil {
			t.Fatal(err)
		}
		if name == "currval" { // the function in its place takes text, and answers the same for each hidden sequence
			continue
		}
		if class := catalogFunctions[name].class; class != classAllow && class != classShadow {
			continue
		}
		if i, takesName := nameArguments[name].positionByCount[args]; !takesName || i != tokenIndex { // oidvector indexes start at 0
			t.Errorf("%s: argument %d of %d is not judged", name, tokenIndex, args)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}
