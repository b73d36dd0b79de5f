package e2e

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	harness "github.com/pgconsent/pgconsent/test/instance"
)

// What tools ask as they start: PostgREST for the lengths of columns, postgres-meta for counts of rows, Atlas for a
// setting, Grafana for the search path, postgres_fdw for an empty one, mappers for the definitions of views.
func TestWhatToolsAskFirst(t *testing.T) {
	in := start(t, options{})
	c := in.agent(t)
	const lengthOf = `SELECT information_schema._pg_char_max_length(information_schema._pg_truetypid(a.*, t.*),
		information_schema._pg_truetypmod(a.*, t.*)) FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
		WHERE a.attrelid = 'pg_catalog.pg_class'::regclass AND a.attname = 'relname'`
	for _, ask := range []struct{ sql, want string }{
		{lengthOf, `\N`},
		{"SELECT pg_stat_get_live_tuples('memories'::regclass), pg_stat_get_dead_tuples('memories'::regclass)", "0\t0"},
		{"SELECT pg_stat_get_last_vacuum_time('memories'::regclass)", `\N`},
		{"SELECT current_setting('default_table_access_method', true)", "heap"},
		{"SHOW search_path", "public"},
		{"SELECT count(*) > 0 FROM pg_views WHERE definition IS NULL", "f"},
		{"SELECT count(*) > 0 FROM information_schema.views WHERE view_definition IS NULL", "f"},
		{"SET search_path = pg_catalog; SHOW search_path", "public"},
		{"SELECT count(*) > 0 FROM public.memories", "t"},
	} {
		a := harness.Ask(c, ask.sql)
		if a.Err != "" || len(a.Results[len(a.Results)-1].Rows) != 1 || a.Results[len(a.Results)-1].Rows[0] != ask.want {
			t.Errorf("%s: %v, want %s", ask.sql, a, ask.want)
		}
	}
}

// CREATE … IF NOT EXISTS of what is there is answered as PostgreSQL does, in both protocols and among other statements.
func TestCreateIfNotExists(t *testing.T) {
	in := start(t, options{})
	c := in.agent(t)
	owner := in.direct(t)
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
