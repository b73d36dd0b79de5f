package rewrite

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/catalog"
)

// Every function name of the server's pg_catalog is classified: a new one stops the build until somebody has looked at it.
func TestEveryCatalogFunctionIsClassified(t *testing.T) {
	conn := database(t).Connect(t, "postgres")
	names := queryNames(t, conn, "SELECT DISTINCT proname::text FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace ORDER BY 1")
	if len(names) < 2500 {
		t.Fatalf("only %d names", len(names))
	}
	for _, name := range names {
		if _, ok := catalogFunctions[name]; !ok {
			t.Errorf("%s is in pg_catalog and not in functions.txt", name)
		}
	}
}

// Names that are dangerous by what the server says of them are not allowed.
func TestDangerousFunctionsAreNotAllowed(t *testing.T) {
	conn := database(t).Connect(t, "postgres")
	for what, query := range map[string]string{
		"not for PUBLIC":       "SELECT proname::text FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND NOT has_function_privilege('public', oid, 'EXECUTE')",
		"with internal values": "SELECT proname::text FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND ('internal'::regtype = prorettype OR 'internal'::regtype = ANY (proargtypes::oid[]))",
		"trigger functions":    "SELECT proname::text FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND prorettype IN ('trigger'::regtype, 'event_trigger'::regtype)",
		"written in C here":    "SELECT p.proname::text FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang WHERE pronamespace = 'pg_catalog'::regnamespace AND lanname NOT IN ('internal', 'sql')",
	} {
		for _, name := range queryNames(t, conn, query) {
			if c := catalogFunctions[name]; c.class == allowFunction {
				t.Errorf("%s is %s and allowed (%s)", name, what, c.why)
			}
		}
	}
	// Of the volatile ones, those that were looked at.
	volatile := " clock_timestamp gen_random_uuid random setseed timeofday pg_is_in_recovery pg_jit_available pg_collation_actual_version " +
		"pg_database_collation_actual_version pg_partition_ancestors pg_partition_tree "
	for _, name := range queryNames(t, conn, "SELECT DISTINCT proname::text FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND provolatile = 'v'") {
		if catalogFunctions[name].class == allowFunction && !strings.Contains(volatile, " "+name+" ") {
			t.Errorf("%s is volatile and allowed", name)
		}
	}
}

// The data files are well formed: known classes, no name twice, every shadow has its stand-in or is refused.
func TestFunctionLists(t *testing.T) {
	seen := map[string]bool{}
	for line := range lines(functionsText) {
		if strings.HasPrefix(line, "= ") {
			continue
		}
		if seen[line] {
			t.Errorf("%s is twice in functions.txt", line)
		}
		seen[line] = true
	}
	for name, c := range catalogFunctions {
		switch c.class {
		case allowFunction, refuseFunction, internalFunction:
		case shadowFunction:
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
		if c := catalogFunctions[f.Name].class; c != shadowFunction && c != allowFunction {
			t.Errorf("%s has a stand-in and is of class %q", f.Name, c)
		}
	}
}

// The functions of the extensions that the server has are in extensions.txt, or left out on purpose.
func TestExtensionFunctions(t *testing.T) {
	conn := database(t).Connect(t, "postgres")
	ctx := context.Background()
	for extension, names := range extensionFunctions {
		if _, err := conn.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS "+pgx.Identifier{extension}.Sanitize()); err != nil {
			t.Logf("%s is not installed here", extension)
			continue
		}
		have := map[string]bool{}
		for _, name := range queryNames(t, conn, "SELECT DISTINCT p.proname::text FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e' JOIN pg_extension e ON e.oid = d.refobjid WHERE e.extname = '"+extension+"'") {
			have[name] = true
		}
		for name := range names {
			if !have[name] && extension != "vector" { // of which there are several versions
				t.Errorf("%s has no function %s", extension, name)
			}
		}
	}
}

func queryNames(t *testing.T, conn *pgx.Conn, sql string) []string {
	t.Helper()
	rows, err := conn.Query(context.Background(), sql)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return names
}
