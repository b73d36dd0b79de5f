package e2e

import (
	"testing"

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
