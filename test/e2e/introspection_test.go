package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	harness "github.com/pgconsent/pgconsent/test/instance"
)

// Queries that tools send at their start are answered. They ask for lengths of columns (PostgREST), counts of rows
// (postgres-meta), a setting (Atlas) and the search path (Grafana). postgres_fdw sets an empty search path, and
// object-relational mappers read definitions of views.
func TestStartupQueriesOfTools(t *testing.T) {
	in := start(t, options{})
	c := in.agent(t)
	const lengthQuery = `SELECT information_schema._pg_char_max_length(information_schema._pg_truetypid(a.*, t.*),
		information_schema._pg_truetypmod(a.*, t.*)) FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
		WHERE a.attrelid = 'pg_catalog.pg_class'::regclass AND a.attname = 'relname'`
	for _, question := range []struct{ sql, want string }{
		{lengthQuery, `\N`},
		{"SELECT pg_stat_get_live_tuples('memories'::regclass), pg_stat_get_dead_tuples('memories'::regclass)", "0\t0"},
		{"SELECT pg_stat_get_last_vacuum_time('memories'::regclass)", `\N`},
		{"SELECT current_setting('default_table_access_method', true)", "heap"},
		{"SHOW search_path", "public"},
		{"SELECT count(*) > 0 FROM pg_views WHERE definition IS NULL", "f"},
		{"SELECT count(*) > 0 FROM information_schema.views WHERE view_definition IS NULL", "f"},
		{"SET search_path = pg_catalog; SHOW search_path", "public"},
		{"SELECT DISTINCT xmin, age(xmin), age('7000'::xid), age(NULL::xid) FROM pg_class", "2\t2147483647\t2147483647\t\\N"},
		{"SELECT count(*) > 3 FROM pg_class c WHERE age(c.xmin) <= age('0'::varchar::xid) AND c.relnamespace = 'public'::regnamespace", "t"},
		{"SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE txid_current() END", "\\N"},
		{"SELECT count(*) > 0 FROM public.memories", "t"},
	} {
		a := harness.Ask(c, question.sql)
		if a.Err != "" || len(a.Results[len(a.Results)-1].Rows) != 1 || a.Results[len(a.Results)-1].Rows[0] != question.want {
			t.Errorf("%s: %v, want %s", question.sql, a, question.want)
		}
	}
}

// CREATE … IF NOT EXISTS of an existing object is answered as PostgreSQL does, in both protocols and among other
// statements.
func TestCreateIfNotExists(t *testing.T) {
	in := start(t, options{})
	c := in.agent(t)
	owner := in.superuserConn(t)
	for _, session := range []*pgconn.PgConn{c, owner} {
		harness.Ask(session, "SET client_min_messages = notice")
	}
	for _, sql := range []string{
		"CREATE EXTENSION IF NOT EXISTS plpgsql", "CREATE TABLE IF NOT EXISTS memories (id int)", "CREATE SCHEMA IF NOT EXISTS public",
		"SELECT 1; CREATE TABLE IF NOT EXISTS memories (id int); SELECT 2", "CREATE INDEX IF NOT EXISTS memories_pkey ON memories (id)",
		"BEGIN; CREATE TABLE IF NOT EXISTS memories (id int); COMMIT",
	} {
		want, got := harness.Ask(owner, sql), harness.Ask(c, sql)
		if want.String() != got.String() || len(want.Notices) != 1 || len(got.Notices) != 1 || want.Notices[0] != got.Notices[0] {
			t.Errorf("%s:\n%v %q\nwant\n%v %q", sql, got, got.Notices, want, want.Notices)
		}
	}
	const table = "CREATE TABLE IF NOT EXISTS memories (id int)"
	if want, got := harness.AskExtended(owner, table), harness.AskExtended(c, table); want.String() != got.String() || len(got.Notices) != 1 {
		t.Errorf("in the extended protocol: %v %q, want %v", got, got.Notices, want)
	}
	harness.Ask(c, "SET client_min_messages = warning")
	if a := harness.Ask(c, table); a.Err != "" || len(a.Notices) > 0 {
		t.Errorf("where the client wants no notices: %v %q", a, a.Notices)
	}
	harness.Ask(c, "BEGIN; SELECT 1/0")
	if a := harness.Ask(c, table); a.Code != "25P02" {
		t.Errorf("in a transaction that has failed: %v", a)
	}
}

// sqlx's macros write the description of a statement to a file. They ask for its description by the server, the types
// and NOT NULL of its columns, and its plan without values.
func TestSqlxDescriptionQueries(t *testing.T) {
	in := start(t, options{})
	c, owner := in.agent(t), in.superuserConn(t)
	for _, session := range []*pgconn.PgConn{c, owner} {
		d, err := session.Prepare(t.Context(), "sqlx_s_1", "SELECT id, title, occurred_at FROM memories WHERE title = $1", nil)
		if err != nil || len(d.Fields) != 3 || len(d.ParamOIDs) != 1 {
			t.Fatal(d, err)
		}
		table := fmt.Sprint(d.Fields[0].TableOID)
		for sql, want := range map[string]string{
			`SELECT NOT pg_attribute.attnotnull FROM (VALUES (0::int4, ` + table + `::int4, 1::int2), (1, NULL, NULL)) AS col(idx, table_id, col_idx)
				LEFT JOIN pg_catalog.pg_attribute ON table_id IS NOT NULL AND attrelid = table_id AND attnum = col_idx ORDER BY col.idx`: "f\n\\N",
			`SELECT typname, typtype, typcategory, typrelid, typelem, typbasetype FROM pg_catalog.pg_type WHERE oid = ` +
				fmt.Sprint(d.ParamOIDs[0]): "text\tb\tS\t0\t0\t0",
		} {
			if got := oneText(session, sql); got != want {
				t.Errorf("%s: %s, want %s", sql, got, want)
			}
		}
		plan := oneText(session, "EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE sqlx_s_1(NULL)")
		var plans []struct{ Plan map[string]any }
		if err := json.Unmarshal([]byte(plan), &plans); err != nil || len(plans) != 1 || plans[0].Plan["Node Type"] == nil {
			t.Errorf("the plan is %s (%v)", plan, err)
		}
	}
}
