package sweep

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Settings that are stored for the database or a role change neither which rows are deleted, nor what is recorded, nor
// whether the registry verifies.
func TestStoredSettingsChangeNothing(t *testing.T) {
	tier.All(t)
	undisturbed, s := build(t, consent.Settings{}), build(t, consent.Settings{})
	undisturbed.fill()
	s.fill()
	const dueQuery = "SELECT concat_ws(' ', relation, subject, what, number) FROM pgconsent.sweep_due() ORDER BY 1"
	want := undisturbed.query(dueQuery)
	for _, setting := range []string{
		"timezone = 'Pacific/Kiritimati'", "datestyle = 'German'", "intervalstyle = 'sql_standard'", "bytea_output = 'escape'", "search_path = 'evil'",
		"default_transaction_read_only = on", "default_transaction_isolation = 'serializable'",
		"synchronous_commit = off", "statement_timeout = 60000", "plan_cache_mode = force_generic_plan",
		"row_security = off", "extra_float_digits = 0", "standard_conforming_strings = off",
		"session_replication_role = replica", "check_function_bodies = off",
		"quote_all_identifiers = on", "transform_null_equals = on", "array_nulls = off",
		"plpgsql.variable_conflict = 'use_column'", "enable_seqscan = off", "enable_indexscan = off", "enable_hashjoin = off",
	} {
		s.exec("DO $$ BEGIN EXECUTE concat('ALTER DATABASE ', quote_ident(current_database()), $q$ SET " + setting +
			"$q$); EXECUTE concat('ALTER ROLE pgconsent_control IN DATABASE ', quote_ident(current_database()), $q$ SET " + setting + "$q$); END $$")
	}
	s.exec("CREATE SCHEMA evil; CREATE FUNCTION evil.statement_timestamp() RETURNS timestamptz LANGUAGE sql AS " +
		"'SELECT timestamptz ''2000-01-01'''; GRANT USAGE ON SCHEMA evil TO PUBLIC")
	if got := s.query(dueQuery); got != want {
		t.Errorf("due:\n%s\nwant\n%s", got, want)
	}
	s.Registry.Close()
	undisturbed.sweep()
	s.sweep()
	s.do(consent.Command{Action: consent.ActionRevoke, Subject: "warned"})
	undisturbed.do(consent.Command{Action: consent.ActionRevoke, Subject: "warned"})
	if got := s.rows(); got != undisturbed.rows() {
		t.Errorf("rows:\n%s\nwant\n%s", got, undisturbed.rows())
	}
	if got := s.query(recordedEvents); got != undisturbed.query(recordedEvents) {
		t.Errorf("records:\n%s\nwant\n%s", got, undisturbed.query(recordedEvents))
	}
	s.verify()
}
