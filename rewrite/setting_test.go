package rewrite

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

func TestCheckSetting(t *testing.T) {
	path := []string{"public", "Other"}
	for _, c := range []struct {
		name, value, origin string
		code                string // "": forwarded; "dropped": accepted and not forwarded; else the SQLSTATE of the refusal
	}{
		{"application_name", "x y", "startup", ""},
		{"Application_Name", "psql", "startup", ""},
		{"application_name", "a\nb", "startup", ""},
		{"application_name", strings.Repeat("é", 200), "set", ""},
		{"application_name", "a\x00b", "set", "22023"},
		{"DateStyle", "ISO", "startup", ""},
		{"datestyle", "ISO, MDY", "startup", ""},
		{"datestyle", "iso; drop", "startup", "22023"},
		{"TimeZone", "Etc/UTC", "startup", ""},
		{"TimeZone", "<+05>-5", "startup", ""},
		{"timezone", "+00:00", "set", ""},
		{"extra_float_digits", "2", "startup", ""},
		{"extra_float_digits", "2x", "startup", "22023"},
		{"statement_timeout", "60000", "options", ""},
		{"statement_timeout", "5min", "set", ""},
		{"statement_timeout", "5 fortnights", "set", "22023"},
		{"lock_timeout", "5000", "startup", ""},
		{"idle_in_transaction_session_timeout", "60000", "startup", ""},
		{"transaction_timeout", "5min", "set", ""},
		{"transaction_timeout", "0", "options", ""},
		{"transaction_timeout", "never", "set", "22023"},
		{"jit", "off", "startup", ""},
		{"geqo", "off", "options", ""},
		{"client_min_messages", "WARNING", "set", ""},
		{"client_min_messages", "notice", "set", ""},
		{"client_min_messages", "log", "set", "22023"},
		{"client_min_messages", "debug1", "startup", "22023"},
		{"default_transaction_isolation", "read committed", "set", ""},
		{"default_transaction_isolation", "repeatable read", "options", "22023"},
		{"default_transaction_read_only", "on", "set", ""},
		{"hnsw.ef_search", "100", "set", ""},
		{"hnsw.iterative_scan", "Strict_Order", "set", "dropped"},
		{"hnsw.iterative_scan", "relaxed_order", "set", "42501"},
		{"hnsw.iterative_scan", "off", "startup", "42501"},
		{"ivfflat.iterative_scan", "relaxed_order", "options", "dropped"},
		{"ivfflat.iterative_scan", "off", "set", "42501"},
		{"hnsw.max_scan_tuples", "1", "set", "42501"},
		{"hnsw.scan_mem_multiplier", "1", "set", "42501"},
		{"default_text_search_config", "pg_catalog.english", "set", ""},
		{"default_text_search_config", "other.english", "set", "22023"},

		{"client_encoding", "UTF8", "startup", "dropped"},
		{"client_encoding", "'utf-8'", "startup", "dropped"},
		{"client_encoding", "unicode", "startup", "dropped"},
		{"client_encoding", "SQL_ASCII", "startup", "dropped"},
		{"client_encoding", "SQL_ASCII", "options", "dropped"},
		{"client_encoding", "'sql-ascii'", "startup", "dropped"},
		{"client_encoding", "SQL_ASCII", "set", "42501"},
		{"client_encoding", "SJIS", "startup", "42501"},
		{"client_encoding", "LATIN1", "set", "42501"},
		{"search_path", "public, \"Other\"", "startup", "dropped"},
		{"search_path", " PUBLIC ,\"Other\"", "options", "dropped"},
		{"search_path", "pg_catalog, public, \"Other\"", "set", "dropped"},
		{"search_path", "public, other", "startup", "42501"},
		{"search_path", "public, \"Other\", public, \"Other\"", "set", "dropped"},
		{"search_path", "\"Other\", public", "set", "42501"},
		{"search_path", "public", "startup", "42501"},
		{"search_path", "public, \"Other\", pg_temp", "startup", "42501"},
		{"search_path", "", "set", "42501"},
		{"search_path", "public,,\"Other\"", "startup", "42501"},
		{"search_path", "public, \"Other", "startup", "42501"},
		{"standard_conforming_strings", "on", "startup", "dropped"},
		{"standard_conforming_strings", "off", "options", "42501"},
		{"backslash_quote", "on", "options", "42501"},
		{"row_security", "off", "set", "42501"},
		{"row_security", "on", "set", "dropped"},
		{"role", "postgres", "options", "42501"},
		{"ROLE", "none", "options", "dropped"},
		{"session_authorization", "postgres", "options", "42501"},
		{"transform_null_equals", "on", "options", "42501"},
		{"pgconsent.seal", "v1|x", "startup", "42501"},
		{"pgconsent.anything", "x", "options", "42501"},
		{"app.actor_id", "x", "set", "42501"},
		{"session_preload_libraries", "x", "options", "42501"},
		{"local_preload_libraries", "x", "options", "42501"},
		{"debug_print_rewritten", "on", "options", "42501"},
		{"log_statement", "none", "options", "42501"},
		{"work_mem", "1GB", "options", "42501"},
		{"enable_seqscan", "off", "set", "42501"},
		{"replication", "database", "startup", "42501"},
		{"gin_fuzzy_search_limit", "1", "set", "42501"},
		{"", "x", "set", "42501"},
	} {
		value, mustForward, refusal := CheckSetting(c.name, c.value, c.origin, path, nil)
		switch {
		case refusal != nil:
			if string(refusal.Code) != c.code || refusal.Hint == "" {
				t.Errorf("%s = %q (%s): %v, want %q", c.name, c.value, c.origin, refusal, c.code)
			}
		case mustForward != (c.code == "") || c.code != "" && c.code != "dropped":
			t.Errorf("%s = %q (%s): accepted, forwarded %v, want %q", c.name, c.value, c.origin, mustForward, c.code)
		case value != c.value:
			t.Errorf("%s = %q became %q", c.name, c.value, value)
		}
	}
}

// A refused search path has a hint with one that can be sent unchanged. Before login the hint does not name the
// schemas.
func TestSearchPathOfTheHint(t *testing.T) {
	path := []string{"public", "Other"}
	_, _, refusal := CheckSetting("search_path", "public", "set", path, nil)
	if refusal == nil {
		t.Fatal("accepted")
	}
	hintedPath, _, ok := strings.Cut(strings.TrimPrefix(refusal.Hint, "It is pinned to "), ": it decides")
	if _, _, refusal := CheckSetting("search_path", hintedPath, "set", path, nil); !ok || hintedPath != `public, "Other"` || refusal != nil {
		t.Errorf("%q: %v", hintedPath, refusal)
	}
	if _, _, refusal := CheckSetting("search_path", "public", "startup", path, nil); refusal == nil || strings.Contains(refusal.Hint, "Other") {
		t.Errorf("at the start: %v", refusal)
	}
}

// No statement of a client shows the settings of a hardened plan, whether or not agents may change these settings.
func TestSettingsOfHardenedPlansAreNotShown(t *testing.T) {
	r := rewriter(t, InjectedMode)
	if len(verdict.HardenedPlanSettings) < 3 {
		t.Fatalf("%q", verdict.HardenedPlanSettings)
	}
	for _, name := range verdict.HardenedPlanSettings {
		for _, sql := range []string{
			"SHOW " + name, "SHOW " + strings.ToUpper(name), `SHOW "` + name + `"`, "SELECT current_setting('" +
				name + "')", "SELECT pg_catalog.current_setting('" + strings.ToUpper(name) + "')",
			"SELECT current_setting('" + name + "', true)", "SELECT current_setting('" + name + "'::text) FROM memories", "SELECT 1; SHOW " + name,
		} {
			if result, refusal := r.Rewrite(sql, false); refusal == nil {
				t.Errorf("%s: %s", sql, result.Text)
			}
		}
	}
}
