package rewrite

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// set_config with literals is treated as the SET command with the same name and value.
func TestSetConfig(t *testing.T) {
	r := rewriter(t, RowSecurityMode)
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
		_, refusal := r.Rewrite(sql, false)
		switch {
		case want == "" && refusal != nil, want != "" && (refusal == nil || string(refusal.Code) != want):
			t.Errorf("%s: %v, want %q", sql, refusal, want)
		}
	}
}

// A parameter of set_config may have the values that a literal may have; they are checked at Bind.
func TestSetConfigOfParameters(t *testing.T) {
	r := rewriter(t, RowSecurityMode)
	for _, test := range []struct {
		sql    string
		values []string // "NULL" is NULL
		want   string   // the SQLSTATE at the Bind; "parse": the Parse is refused
	}{
		{"SELECT set_config($1, $2, $3)", []string{"TimeZone", "UTC", "f"}, ""},
		{"SELECT pg_catalog.set_config($1::text, $2::text, $3::bool)", []string{"application_name", "x", "t"}, ""},
		{"SELECT set_config('timezone', $1, false)", []string{"Europe/Oslo"}, ""},
		{"SELECT set_config('search_path', $1, true), set_config('jit', $2, true)", []string{"public", "off"}, ""},
		{"SELECT set_config($1, 'off', false)", []string{"jit"}, ""},
		{"SELECT set_config($1, 'off', false)", []string{"row_security"}, "42501"},
		{"SELECT set_config($2, $1, false)", []string{"off", "row_security"}, "42501"},
		{"SELECT set_config('jit', $1, false), set_config($2, $3, false)", []string{"off", "role", "postgres"}, "42501"},
		{"SELECT set_config($1, $2, false)", []string{"pgconsent.seal", "x"}, "42501"},
		{"SELECT set_config($1, $2, false)", []string{"Transaction_Isolation", "serializable"}, "42501"},
		{"SELECT set_config($1, $2, false)", []string{"plan_cache_mode", "auto"}, "42501"},
		{"SELECT set_config('client_min_messages', $1, false)", []string{"debug5"}, "22023"},
		{"SELECT set_config('search_path', $1, true)", []string{""}, "42501"},
		{"SELECT set_config('search_path', $1, true)", []string{"evil"}, "42501"},
		{"SELECT set_config('jit', $1, true)", []string{"NULL"}, "22023"},
		{"SELECT set_config($1, 'off', true)", []string{"NULL"}, "42501"},
		{"SELECT set_config($1, $2, true)", []string{"jit"}, "22023"}, // the server refuses the Bind as well
		{"SELECT set_config('role', $1, true)", []string{"postgres"}, "42501"},
		{"SELECT set_config('role', $1, true)", []string{"none"}, ""},
		{"SELECT set_config('role', $1, true)", []string{"own"}, ""},
		{"SELECT set_config('role', $1, true)", []string{"NULL"}, "22023"},
		{"SELECT set_config($1, $2, true)", []string{"role", "own"}, "42501"},
		{"SELECT set_config('request.method', $1, true), set_config('Request.Path', $2, false)", []string{"GET", "/"}, ""},
		{"SELECT set_config('request.method', $1, true)", []string{"NULL"}, "22023"},
		{"SELECT set_config('request.headers', $1, true)", []string{strings.Repeat("x", maxClientValue)}, ""},
		{"SELECT set_config('request.headers', $1, true)", []string{strings.Repeat("x", maxClientValue+1)}, "22023"},
		{"SELECT set_config($1, $2, true)", []string{"request.method", "GET"}, "42501"},
		{"SELECT set_config('request.other', $1, true)", []string{"x"}, "42501"},
		{"SELECT set_config('pgconsent.client.request.method', $1, true)", []string{"x"}, "42501"},
		{"SELECT set_config(E'request.m\\x65thod', $1, true)", nil, "parse"},
		{"SELECT set_config('request.method', $1, true) FROM people", nil, "parse"},
		{"SELECT set_config('plan_cache_mode', $1, true)", nil, "parse"},
		{"SELECT set_config($1 || '', $2, true)", nil, "parse"},
		{"SELECT set_config($1::name::text, $2, true)", nil, "parse"},
		{"SELECT set_config('jit', $1, true) FROM people", nil, "parse"},
		{"SELECT id FROM people WHERE set_config('jit', $1, true) = ''", nil, "parse"},
		{"SELECT $1::name, set_config('search_path', $1::text, true)", nil, "parse"},
		{"SELECT set_config('jit', $1, $1)", nil, "parse"},
		{"SELECT set_config($1, $1, true)", []string{"jit"}, "22023"},
		{"PREPARE s AS SELECT set_config($1, $2, true)", nil, "parse"},
		{"PREPARE s (text) AS SELECT set_config('jit', $1, true)", nil, "parse"},
	} {
		res, refusal := r.Rewrite(test.sql, true)
		if refusal != nil {
			if test.want != "parse" || refusal.Code != "42501" && refusal.Code != "0A000" {
				t.Errorf("%s: %v", test.sql, refusal)
			}
			continue
		}
		values := make([][]byte, len(test.values))
		for i, v := range test.values {
			if v != "NULL" {
				values[i] = []byte(v)
			}
		}
		code := ""
		if err := res.CheckValues(values, func(name string) bool { return name == "own" }); err != nil {
			code = string(err.Code)
		}
		if code != test.want || !res.NeedsValueCheck || !res.ExpectsForms {
			t.Errorf("%s of %q: %q, want %q", test.sql, test.values, code, test.want)
		}
		for oid, ok := range map[uint32]bool{pgtype.TextOID: true, pgtype.VarcharOID: true, pgtype.NameOID: false,
			pgtype.BPCharOID: false, pgtype.JSONBOID: false, pgtype.ByteaOID: false} {
			if err := res.ParameterTypeRefusal(r.snap, oid); (err == nil) != ok {
				t.Errorf("%s: a parameter of type %d: %v", test.sql, oid, err)
			}
		}
	}
}

// If set_config takes values that only the server knows, a statement prepared with them cannot run by EXECUTE, on
// either path.
func TestSetConfigDoesNotRunByName(t *testing.T) {
	for _, mode := range []Mode{RowSecurityMode, InjectedMode, AutoMode, AlwaysSignedMode} {
		for _, sql := range []string{"SELECT set_config($1, $2, false)", "SELECT set_config('TimeZone', $1, true)"} {
			if res, refusal := rewriter(t, mode).Rewrite(sql, true); refusal != nil || !res.ExpectsForms || !res.NeedsValueCheck {
				t.Errorf("mode %d: %s may run by EXECUTE: %v", mode, sql, refusal)
			}
		}
	}
}

// A search path without any schema of the application is replaced by the configured one. Qualified names mean the same
// under both.
func TestSearchPathWithoutTheApplication(t *testing.T) {
	r := rewriter(t, InjectedMode)
	for sql, want := range map[string]string{
		"SET search_path = pg_catalog":                "SET SESSION search_path = public",
		"set local SEARCH_PATH to 'pg_catalog' ;":     "SET LOCAL search_path = public ;",
		"SET search_path TO ''; SELECT 1":             "SET SESSION search_path = public; SELECT 1",
		"SET search_path TO '' -- nothing":            "SET SESSION search_path = public -- nothing",
		"set local schema ''":                         "SET LOCAL search_path = public",
		"SET SCHEMA 'pg_catalog'":                     "SET SESSION search_path = public",
		"SET search_path = public":                    "SET search_path = public",
		"SET search_path = pg_catalog, public":        "SET search_path = pg_catalog, public",
		"SET search_path = information_schema":        "",
		"SET search_path = pg_temp":                   "",
		"SET search_path = '', other":                 "",
		"SET search_path = pg_catalog, pg_temp":       "",
		"SELECT set_config('search_path', '', false)": "",
	} {
		switch res, refusal := r.Rewrite(sql, false); {
		case want == "" && refusal == nil:
			t.Errorf("%s goes out as %s", sql, res.Text)
		case want != "" && (refusal != nil || res.Text != want):
			t.Errorf("%s goes out as %s, want %s (%v)", sql, res.Text, want, refusal)
		}
	}
}

// A setting that an agent uses for its own data gets another name on the server, where nothing else reads it. The agent
// reads its own value back.
func TestSettingsThatOnlyClientsRead(t *testing.T) {
	for _, mode := range []Mode{RowSecurityMode, InjectedMode, AutoMode, AlwaysSignedMode} {
		r := rewriter(t, mode).WithOwnRole(func(name string) bool { return name == "own" })
		for sql, want := range map[string]string{
			"SELECT set_config('request.jwt.claims', '{}', true)": "SELECT pg_catalog.set_config('pgconsent.client.request.jwt.claims', '{}', true)",
			"SELECT set_config('Request.Method'::text, 'GET', false) AS a, set_config('jit', 'off', true)": "SELECT " +
				"pg_catalog.set_config('pgconsent.client.request.method'::text, 'GET', false) AS a, pg_catalog.set_config('jit', 'off', true)",
			"SELECT current_setting('request.headers', true)::json": "SELECT " +
				"pg_catalog.current_setting('pgconsent.client.request.headers', true)::json",
			"SELECT current_setting(E'request.headers', true)":                "SELECT pgconsent_catalog.current_setting(E'request.headers', true)",
			"SELECT current_setting('response.headers', true)":                "SELECT pgconsent_catalog.current_setting('response.headers', true)",
			"set local request.jwt.\"claims\" to '{\"a\": ''b''}' ; SELECT 1": "SET LOCAL pgconsent.client.request.jwt.claims = '{\"a\": ''b''}' ; SELECT 1",
			"SET request.cookies = 1":                                         "SET SESSION pgconsent.client.request.cookies = '1'",
			"SET LOCAL request.path TO DEFAULT":                               "SET LOCAL pgconsent.client.request.path TO DEFAULT",
			"reset request.path":                                              "RESET pgconsent.client.request.path",
			"SET ROLE own":                                                    "SET SESSION role = 'none'",
			"set local role 'own' -- as PostgREST":                            "SET LOCAL role = 'none' -- as PostgREST",
			"SET SESSION ROLE NONE":                                           "SET SESSION ROLE NONE",
			"SELECT set_config('role', 'own', true)":                          "SELECT pg_catalog.set_config('pgconsent.client.role', 'own', true)",
			"SELECT current_setting('request.headers')":                       "",
			"SELECT current_setting('request.headers', false)":                "",
			"SHOW request.headers":                                            "",
			"SET ROLE OWN_":                                                   "",
			"SET \"role\" = 'other'":                                          "",
			"SELECT set_config('role', 'other', true)":                        "",
			"SELECT set_config('request.other', '', true)":                    "",
			"SELECT set_config(U&'request.p\\0061th', '', true)":              "",
			"SET request.U&\"p\\0061th\" = ''":                                "",
			"SET pgconsent.client.request.path = ''":                          "",
			"SELECT current_setting('pgconsent.client.request.path', true)":   "",
			"SELECT set_config('request.path', '', true) FROM people":         "",
		} {
			switch res, refusal := r.Rewrite(sql, false); {
			case want == "" && refusal == nil:
				t.Errorf("mode %d: %s goes out as %s", mode, sql, res.Text)
			case want != "" && (refusal != nil || res.Text != want):
				t.Errorf("mode %d: %s goes out as %s, want %s (%v)", mode, sql, res.Text, want, refusal)
			}
		}
	}
	if _, refusal := rewriter(t, AutoMode).Rewrite("SET ROLE own", false); refusal == nil || refusal.Code != "42501" {
		t.Errorf("a session without a role of its own: %v", refusal)
	}
}

// This does not apply to settings from which the policy takes an attribute, or the user for whom the session acts.
func TestSettingsOfThePolicyAreNotClients(t *testing.T) {
	r := rewriter(t, AutoMode)
	r.claims = map[string]string{"request.path": "place"}
	userRewriter := r.WithRepresentedUser(&RepresentedUser{Setting: "request.jwt.claims", Initial: func() string { return "" },
		Replace: func(string) (string, *sqlstate.Error) { return "signed", nil }})
	for sql, want := range map[string]string{
		"SET request.path = 'x'":                             "SET request.path = 'x'",
		"SELECT set_config('request.path', 'x', true)":       "",
		"SELECT current_setting('request.path', true)":       "SELECT pg_catalog.current_setting('request.path', true)",
		"SET LOCAL request.jwt.claims = '{}'":                "SET LOCAL pgconsent.acting = 'signed'",
		"SELECT current_setting('request.jwt.claims', true)": "SELECT pgconsent_catalog.current_setting('request.jwt.claims', true)",
		"SELECT set_config('request.jwt.claims', '{}', true), set_config('request.method', 'GET', true)": "SELECT " +
			"pgconsent_signed.set_config('request.jwt.claims', 'signed', true), pg_catalog.set_config('pgconsent.client.request.method', 'GET', true)",
	} {
		switch res, refusal := userRewriter.Rewrite(sql, false); {
		case want == "" && refusal == nil:
			t.Errorf("%s goes out as %s", sql, res.Text)
		case want != "" && (refusal != nil || res.Text != want):
			t.Errorf("%s goes out as %s, want %s (%v)", sql, res.Text, want, refusal)
		}
	}
}
