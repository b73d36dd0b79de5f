package rewrite

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// member joins an object of a catalog to its extension.
const member = ` JOIN pg_depend AS d ON d.objid = x.oid AND d.classid = x.tableoid AND d.deptype = 'e' ` +
	`JOIN pg_extension AS e ON e.oid = d.refobjid WHERE e.extname = $1`

// namedKinds are the kinds of names in the data files: those of pg_catalog, and of an extension.
var namedKinds = []struct {
	description string
	dataFile    dataFile
	minCount    int // pg_catalog has at least so many names
	catalogKey  string
	ofExtension string
}{
	{
		"function", dataFile{catalogKey: catalogFunctions}, 2500,
		"SELECT DISTINCT proname::text FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace ORDER BY 1",
		"SELECT DISTINCT x.proname::text FROM pg_proc AS x" + member,
	},
	{
		"operator", operatorList, 70,
		"SELECT DISTINCT oprname::text FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace ORDER BY 1",
		"SELECT DISTINCT x.oprname::text FROM pg_operator AS x" + member,
	},
	{
		"type", typeList, 90,
		`SELECT t.typname::text FROM pg_type AS t LEFT JOIN pg_class AS c ON c.oid = t.typrelid
		 WHERE t.typnamespace = 'pg_catalog'::regnamespace AND COALESCE(c.relkind, 'c') = 'c'
		 AND NOT EXISTS (SELECT FROM pg_type AS el WHERE el.typarray = t.oid) ORDER BY 1`,
		"SELECT x.typname::text FROM pg_type AS x" + member + " AND NOT EXISTS (SELECT FROM pg_type AS el WHERE el.typarray = x.oid)",
	},
	{
		"cast", castList, 200,
		"SELECT s.typname || ' -> ' || t.typname FROM pg_cast AS c JOIN pg_type AS s ON s.oid = c.castsource JOIN " +
			"pg_type AS t ON t.oid = c.casttarget WHERE c.oid < 16384 ORDER BY 1",
		"SELECT s.typname || ' -> ' || t.typname FROM pg_cast AS x JOIN pg_type AS s ON s.oid = x.castsource JOIN " +
			"pg_type AS t ON t.oid = x.casttarget" + member,
	},
}

// Every name of the server's pg_catalog is classified in the data files. A name of a new PostgreSQL version fails this
// test until somebody has classified it.
func TestEveryCatalogNameIsClassified(t *testing.T) {
	conn := pgtest.Database(t).Connect(t, "postgres")
	for _, kind := range namedKinds {
		names := queryNames(t, conn, kind.catalogKey)
		if len(names) < kind.minCount {
			t.Errorf("only %d names of the kind %s", len(names), kind.description)
		}
		for _, name := range names {
			if _, ok := kind.dataFile[catalogKey][name]; !ok {
				t.Errorf("%s %s is in pg_catalog and in no data file", kind.description, name)
			}
		}
	}
}

// No statement of an agent can call a table sampling method as a function, because its argument has a type that cannot
// be named. In attribute notation its name can only mean a field.
func TestSamplingMethodsTakeNoValues(t *testing.T) {
	conn := pgtest.Database(t).Connect(t, "postgres")
	methodCount := 0
	for name, c := range catalogFunctions {
		if c.why != samplingMethods {
			continue
		}
		methodCount++
		for _, arguments := range queryNames(t, conn,
			"SELECT proargtypes::regtype[]::text FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND proname = '"+name+"'") {
			if arguments != "[0:0]={internal}" {
				t.Errorf("%s takes %s", name, arguments)
			}
		}
	}
	if methodCount == 0 || typeList.allows(catalogKey, "internal") {
		t.Errorf("%d sampling methods; internal is class %q", methodCount, typeList[catalogKey]["internal"].class)
	}
	for _, sql := range []string{"SELECT (NULL::internal).system", "SELECT system(NULL)"} {
		if result, refusal := rewriter(t, InjectedMode).Rewrite(sql, false); refusal == nil {
			t.Errorf("%s: allowed as %s", sql, result.Text)
		}
	}
}

// Functions that run without being called, those of allowed operators and casts, are functions that agents may call.
func TestOperatorsAndCastsCallAllowedFunctions(t *testing.T) {
	conn := database(t).Connect(t, "postgres")
	extensions(t, conn)
	rows, err := conn.Query(context.Background(), `
		SELECT 'operator', o.oprname::text, o.oid::regoperator::text, p.oid, p.proname::text, ARRAY[]::text[], o.tableoid, o.oid
		FROM pg_operator AS o JOIN pg_proc AS p ON p.oid = o.oprcode
		UNION ALL
		SELECT 'cast', s.typname || ' -> ' || t.typname, s.typname || ' -> ' || t.typname, p.oid, p.proname::text,
			ARRAY[s.typname::text, t.typname::text], c.tableoid, c.oid
		FROM pg_cast AS c JOIN pg_type AS s ON s.oid = c.castsource JOIN pg_type AS t ON t.oid = c.casttarget LEFT JOIN pg_proc AS p ON p.oid = c.castfunc`)
	if err != nil {
		t.Fatal(err)
	}
	type named struct {
		kind, name, description string
		function                *uint32
		calls                   *string
		types                   []string
		class, oid              uint32
	}
	namedObjects, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (n named, err error) {
		return n, row.Scan(&n.kind, &n.name, &n.description, &n.function, &n.calls, &n.types, &n.class, &n.oid)
	})
	if err != nil {
		t.Fatal(err)
	}
	owner := func(class string, oid uint32) string {
		var name *string
		if err := conn.QueryRow(context.Background(), `SELECT min(e.extname) FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid
			WHERE d.classid = $1::regclass AND d.objid = $2 AND d.deptype = 'e'`, class, oid).Scan(&name); err != nil {
			t.Fatal(err)
		}
		if name == nil {
			return ""
		}
		return *name
	}
	for _, n := range namedObjects {
		extension, class, listedNames := catalogKey, "pg_operator", operatorList
		if n.kind == "cast" {
			class, listedNames = "pg_cast", castList
		}
		if n.oid >= 16384 {
			extension = owner(class, n.oid)
		}
		if !listedNames.allows(extension, n.name) {
			continue
		}
		for _, name := range n.types {
			if _, isTypeListed := typeList[catalogKey][strings.TrimPrefix(name, "_")]; isTypeListed && !typeList.allows(catalogKey, strings.TrimPrefix(name, "_")) {
				t.Errorf("%s %s is allowed, but not its type %s", n.kind, n.description, name)
			}
		}
		if n.calls == nil {
			continue
		}
		c := catalogFunctions[*n.calls]
		if *n.function >= 16384 {
			c = extensionFunctions[owner("pg_proc", *n.function)][*n.calls]
		}
		if c.class != classAllow && c.class != classShadow {
			t.Errorf("%s %s is allowed and calls %s, which is not: %s: %s", n.kind, n.description, *n.calls, c.class, c.why)
		}
	}
}

// Functions that PostgreSQL itself marks as dangerous, by their type or volatility, are not on the allowlist.
func TestDangerousFunctionsAreNotAllowed(t *testing.T) {
	conn := database(t).Connect(t, "postgres")
	for description, query := range map[string]string{
		"not for PUBLIC": "SELECT proname::text FROM pg_proc WHERE pronamespace = " +
			"'pg_catalog'::regnamespace AND NOT has_function_privilege('public', oid, 'EXECUTE')",
		"with internal values": "SELECT proname::text FROM pg_proc WHERE pronamespace = " +
			"'pg_catalog'::regnamespace AND prokind = 'f' AND ('internal'::regtype = prorettype OR 'internal'::regtype = ANY (proargtypes::oid[]))",
		"trigger functions": "SELECT proname::text FROM pg_proc WHERE pronamespace = " +
			"'pg_catalog'::regnamespace AND prorettype IN ('trigger'::regtype, 'event_trigger'::regtype)",
		"written in C here": "SELECT p.proname::text FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang " +
			"WHERE pronamespace = 'pg_catalog'::regnamespace AND lanname NOT IN ('internal', 'sql')",
	} {
		for _, name := range queryNames(t, conn, query) {
			if c := catalogFunctions[name]; c.class == classAllow {
				t.Errorf("%s is %s and allowed (%s)", name, description, c.why)
			}
		}
	}
	// Each of these volatile functions was examined, and is allowed.
	volatile := " array_sample array_shuffle random_normal uuidv4 uuidv7 clock_timestamp gen_random_uuid random " +
		"setseed timeofday pg_is_in_recovery pg_is_wal_replay_paused pg_jit_available pg_collation_actual_version " +
		"pg_database_collation_actual_version pg_partition_ancestors pg_partition_tree pg_advisory_unlock_all "
	for _, name := range queryNames(t, conn,
		"SELECT DISTINCT proname::text FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND provolatile = 'v'") {
		if catalogFunctions[name].class == classAllow && !strings.Contains(volatile, " "+name+" ") {
			t.Errorf("%s is volatile and allowed", name)
		}
	}
}

// The data files are well formed: classes are known, no name is there twice, and every shadow either has a replacement
// function or is refused.
func TestFunctionLists(t *testing.T) {
	for file, text := range map[string]string{
		"functions.txt": functionsText, "extensions.txt": extensionsText, "operators.txt": operatorsText, "types.txt": typesText, "casts.txt": castsText,
	} {
		seenNames := map[string]bool{}
		extension := ""
		for line := range dataLines(text) {
			switch {
			case strings.HasPrefix(line, "= "):
			case strings.HasPrefix(line, "["):
				extension = line
			case seenNames[extension+line]:
				t.Errorf("%s is twice in %s", line, file)
			default:
				seenNames[extension+line] = true
			}
		}
	}
	for _, l := range []dataFile{extensionFunctions, operatorList, typeList, castList} {
		for extension, names := range l {
			for name, c := range names {
				if c.class != classAllow && c.class != classRefuse && c.class != classInternal || c.why == "" {
					t.Errorf("%s of %q is of class %q, for the reason %q", name, extension, c.class, c.why)
				}
			}
			if extension != catalogKey && !isKnownExtension(extension) {
				t.Errorf("%q has no functions", extension)
			}
		}
	}
	for name, c := range catalogFunctions {
		switch c.class {
		case classAllow, classRefuse, classInternal:
		case classShadow:
			if _, ok := catalog.ShadowFunction(name); !ok {
				t.Errorf("%s has no stand-in", name)
			}
		default:
			t.Errorf("%s is of the unknown class %q", name, c.class)
		}
		if c.why == "" {
			t.Errorf("%s has no reason", name)
		}
	}
	for _, f := range catalog.ShadowFunctions() {
		if c := catalogFunctions[f.Name].class; !f.InformationSchema && c != classShadow && c != classAllow {
			t.Errorf("%s has a stand-in and is of class %q", f.Name, c)
		}
	}
}

// extensions makes the extensions of the data files, and returns those that the server has. pgvector may be missing,
// the others come with PostgreSQL.
func extensions(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	var createdExtensions []string
	for _, extension := range slices.Sorted(maps.Keys(extensionFunctions)) {
		if _, err := conn.Exec(context.Background(), "CREATE EXTENSION IF NOT EXISTS "+pgx.Identifier{extension}.Sanitize()); err == nil {
			createdExtensions = append(createdExtensions, extension)
		} else if extension == "vector" && os.Getenv("REQUIRE_PGVECTOR") == "" {
			t.Log("pgvector is not installed here: its names are not checked")
		} else {
			t.Errorf("%s: %v", extension, err)
		}
	}
	return createdExtensions
}

// Every name of the extensions is classified, in whichever version the server has them.
func TestEveryExtensionNameIsClassified(t *testing.T) {
	conn := database(t).Connect(t, "postgres")
	for _, extension := range extensions(t, conn) {
		for _, kind := range namedKinds {
			listedNames := kind.dataFile
			if kind.description == "function" {
				listedNames = extensionFunctions
			}
			for _, name := range queryNames(t, conn, kind.ofExtension, extension) {
				if _, ok := listedNames[extension][name]; !ok {
					t.Errorf("%s %s of %s is in no data file", kind.description, name, extension)
				}
			}
		}
		for _, name := range queryNames(t, conn, "SELECT DISTINCT x.proname::text FROM pg_proc AS x"+member+
			" AND ('internal'::regtype = x.prorettype OR 'internal'::regtype = ANY (x.proargtypes::oid[]) OR "+
			"'cstring'::regtype = ANY (x.proargtypes::oid[]))", extension) {
			if extensionFunctions.allows(extension, name) && !callableToo[name] {
				t.Errorf("%s of %s takes what only the server has, and is allowed", name, extension)
			}
		}
	}
}

// callableToo are names shared by a function that is only for the server's own use and a function that agents may call.
var callableToo = map[string]bool{}

func queryNames(t *testing.T, conn *pgx.Conn, sql string, args ...any) []string {
	t.Helper()
	rows, err := conn.Query(context.Background(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return names
}
