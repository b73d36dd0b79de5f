package rewrite

import "testing"

// set_config of literals is SET in other words, and nothing more than that.
func TestSetConfig(t *testing.T) {
	r := rewriter(t, RLS)
	for sql, want := range map[string]string{
		"SELECT set_config('TimeZone', 'UTC', false)":                                                                               "",
		"SELECT pg_catalog.set_config('application_name', 'x', true) AS a, set_config('jit', 'off', false)":                         "",
		"SELECT set_config('timezone'::text, 'Europe/Oslo', true)":                                                                  "",
		"SELECT set_config('search_path', 'public', false)":                                                                         "",
		"SELECT set_config('search_path', '', false)":                                                                               "42501",
		"SELECT set_config('row_security', 'off', false)":                                                                           "42501",
		"SELECT set_config('role', 'postgres', false)":                                                                              "42501",
		"SELECT set_config('pgconsent.seal', 'x', false)":                                                                           "42501",
		"SELECT set_config('client_min_messages', 'debug5', false)":                                                                 "22023",
		"SELECT set_config('transaction_isolation', 'serializable', false)":                                                         "42501",
		"SELECT set_config('default_transaction_isolation', 'repeatable read', false)":                                              "42501",
		"SELECT set_config('TimeZone', $1, false)":                                                                                  "42501",
		"SELECT set_config('TimeZone', NULL, false)":                                                                                "42501",
		"SELECT set_config('TimeZone', 'U' || 'TC', false)":                                                                         "42501",
		"SELECT set_config('TimeZone', 'UTC', 1 > 2)":                                                                               "42501",
		"SELECT set_config('TimeZone', 'UTC', false) FROM people":                                                                   "42501",
		"SELECT 1 FROM people WHERE set_config('application_name', name, false) = ''":                                               "42501",
		"SELECT (SELECT set_config('application_name', 'x', false)) FROM people":                                                    "42501",
		"SELECT id FROM people WHERE (SELECT set_config('application_name', 'x', false)) = ''":                                      "42501",
		"SELECT setting FROM pg_settings, set_config('application_name', 'x', false)":                                               "42501",
		"SELECT set_config('bytea_output','hex',false) FROM pg_show_all_settings() WHERE name = 'bytea_output'":                     "",
		"SELECT set_config('bytea_output','hex',false) FROM pg_settings WHERE name = 'bytea_output'":                                "",
		"SELECT pg_catalog.set_config('jit', 'off', false) FROM pg_catalog.pg_settings WHERE name = 'jit'":                          "",
		"SELECT set_config('row_security', 'off', false) FROM pg_show_all_settings() WHERE name = 'row_security'":                   "42501",
		"SELECT set_config('jit', 'off', false) FROM pg_show_all_settings() WHERE name = 'pgconsent.seal'":                          "42501",
		"SELECT set_config('jit', 'off', false) FROM pg_show_all_settings()":                                                        "42501",
		"SELECT set_config('jit', 'off', false), setting FROM pg_show_all_settings() WHERE name = 'jit'":                            "42501",
		"SELECT name FROM pg_show_all_settings() WHERE name = 'jit'":                                                                "42501",
		"SELECT set_config('jit', 'off', false) FROM pg_show_all_settings() AS x (name) WHERE name = 'jit'":                         "42501",
		"SELECT set_config('jit', 'off', false) FROM pg_show_all_settings() WHERE name = (SELECT name FROM people)":                 "42501",
		"SELECT set_config('jit', 'off', false) FROM pg_show_all_settings(), people WHERE name = 'jit'":                             "42501",
		"SELECT set_config('jit', 'off', false) FROM people WHERE name = 'jit'":                                                     "42501",
		"SELECT set_config('jit', 'off', false) FROM pg_show_all_settings() WHERE name = 'jit' LIMIT (SELECT count(*) FROM people)": "42501",
		"WITH pg_settings AS (SELECT name FROM people) SELECT set_config('jit', 'off', false) FROM pg_settings WHERE name = 'jit'":  "42501",
		"SELECT 1 FROM people WHERE EXISTS (SELECT set_config('jit', 'off', false) FROM pg_show_all_settings() WHERE name = 'jit')": "42501",
		"SELECT set_config('jit', 'off', false) FROM ROWS FROM (pg_show_all_settings()) WHERE name = 'jit'":                         "42501",
		"SELECT set_config('jit', 'off', false) FROM pg_settings WHERE name = 'jit' OR set_config('jit', 'on', false) = 'x'":        "42501",
		"SELECT ('jit').set_config": "42501",
	} {
		_, refused := r.Rewrite(sql, false)
		switch {
		case want == "" && refused != nil, want != "" && (refused == nil || string(refused.Code) != want):
			t.Errorf("%s: %v, want %q", sql, refused, want)
		}
	}
}
