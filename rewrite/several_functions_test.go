package rewrite

import (
	"context"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/policy"
)

// A name may mean one function, or several with the same rules. A call is refused if it might mean a function with
// other rules.
func TestNamesOfSeveralFunctions(t *testing.T) {
	ctx := context.Background()
	conn := database(t).Connect(t, "postgres")
	if _, err := conn.PgConn().Exec(ctx, `CREATE SCHEMA extra;
CREATE FUNCTION public.near_by(who text, strict boolean DEFAULT false) RETURNS text LANGUAGE sql AS 'SELECT who';
CREATE FUNCTION extra.near_by(who integer, strict boolean DEFAULT false) RETURNS text LANGUAGE sql AS 'SELECT who::text';
CREATE FUNCTION public.upper(who integer, strict boolean DEFAULT false) RETURNS text LANGUAGE sql AS 'SELECT who::text';
CREATE FUNCTION public.pg_sleep(who text, strict boolean DEFAULT false) RETURNS text LANGUAGE sql AS 'SELECT who';
CREATE FUNCTION public.pg_get_viewdef(who text, strict integer DEFAULT 1) RETURNS text LANGUAGE sql AS 'SELECT who';
CREATE FUNCTION public.set_apart(who text, strict boolean DEFAULT false) RETURNS text LANGUAGE sql AS 'SELECT who';
CREATE FUNCTION public.set_apart(strict boolean, who integer) RETURNS text LANGUAGE sql AS 'SELECT who::text'`).ReadAll(); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(ctx, conn, []string{"public", "extra"})
	if err != nil {
		t.Fatal(err)
	}
	const pinnedRule = "{ pin: { strict: true } }"
	for _, c := range []struct {
		name, functions string
		sql             string
		want            string // the rewritten text, or the message of the refusal
	}{
		{"two schemas, one pinned", "public.near_by: {}\n  extra.near_by: " + pinnedRule, "SELECT near_by('x')", "function name near_by is ambiguous here"},
		{"two schemas, the other pinned", "public.near_by: " + pinnedRule + "\n  extra.near_by: {}", "SELECT near_by(1)",
			"function name near_by is ambiguous here"},
		{"two schemas, one listed", "public.near_by: {}", "SELECT near_by('x')", "function near_by(...) does not exist"},
		{"two schemas, the other listed", "extra.near_by: {}", "SELECT near_by(1)", "function near_by(...) does not exist"},
		{"of one schema by its name", "public.near_by: {}\n  extra.near_by: " + pinnedRule, "SELECT extra.near_by(1)",
			"SELECT extra.near_by(1, \"strict\" => 'true'::pg_catalog.bool)"},
		{"of the other by its name", "public.near_by: {}\n  extra.near_by: " + pinnedRule, "SELECT public.near_by('x')", "SELECT public.near_by('x')"},
		{"PostgreSQL's, and one that is pinned", "public.upper: " + pinnedRule, "SELECT upper(1)", "function name upper is ambiguous here"},
		{"PostgreSQL's, and one that is listed", "public.upper: {}", "SELECT upper(1)", "SELECT upper(1)"},
		{"the pinned one by its schema", "public.upper: " + pinnedRule, "SELECT public.upper(1)",
			"SELECT public.upper(1, \"strict\" => 'true'::pg_catalog.bool)"},
		{"PostgreSQL's by its schema", "public.upper: " + pinnedRule, "SELECT pg_catalog.upper('x')", "SELECT pg_catalog.upper('x')"},
		{"one that PostgreSQL has for no agent", "public.pg_sleep: {}", "SELECT pg_sleep('1')", "function pg_sleep is not available to agents"},
		{"the listed one of that name", "public.pg_sleep: {}", "SELECT public.pg_sleep('1')", "SELECT public.pg_sleep('1')"},
		{"one for which another stands in", "public.pg_get_viewdef: {}", "SELECT pg_get_viewdef('x')", "function name pg_get_viewdef is ambiguous here"},
		{"an argument in different places", "public.set_apart: " + pinnedRule, "SELECT set_apart('x')", "overloads that take the argument in different places"},
		{"beside brackets", "public.near_by: " + pinnedRule + "\n  extra.near_by: {}",
			"SELECT public.near_by((ARRAY['x', 'y'])[1], false)",
			"SELECT public.near_by((ARRAY['x', 'y'])[1], CASE WHEN true THEN 'true'::pg_catalog.bool ELSE (false) END)"},
	} {
		doc, err := policy.Parse("policy.yaml", []byte("version: 1\ntables:\n  people: { rows: open }\nfunctions:\n  "+c.functions+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		pol, err := policy.Compile(doc, snap)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		result, refusal := New(snap, pol, RowSecurityMode).Rewrite(c.sql, false)
		got := result.Text
		if refusal != nil {
			got = refusal.Message + " " + refusal.Hint
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s\n got %s\nwant %s", c.name, c.sql, got, c.want)
		}
	}
}
