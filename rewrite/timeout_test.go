package rewrite

import (
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/policy"
)

// The limit on statement_timeout is enforced in every unit that PostgreSQL accepts, at the limit and just above it.
func TestCheckTimeout(t *testing.T) {
	for value, isAllowed := range map[string]bool{
		"90000": true, "90001": false, " 90000 ms ": true, "90001ms": false,
		"90s": true, "91s": false, "90.0004s": true, "90.001s": false, "1.5min": true, "1.51 min": false,
		"0.025h": true, "0.026h": false, "0.001d": true, "0.00105d": false, "90000000us": true, "90001000us": false,
		"0": false, "0.4": false, "-1": false, "400us": false, "1": true, "1e4": true, "1e6": false,
		"": false, "ms": false, "5 fortnights": false, "1h30min": false,
	} {
		if refusal := CheckTimeout("Statement_Timeout", value, 90*time.Second); (refusal == nil) != isAllowed {
			t.Errorf("%q: %v", value, refusal)
		}
	}
	if refusal := CheckTimeout("lock_timeout", "0", 90*time.Second); refusal != nil {
		t.Error(refusal)
	}
	if refusal := CheckTimeout("statement_timeout", "0", 0); refusal != nil {
		t.Error(refusal)
	}
}

// A statement can set the timeout in several ways, and the limit applies to each. Lowering the timeout, or resetting
// it, is allowed.
func TestTimeoutsAreBounded(t *testing.T) {
	rewriter(t, RowSecurityMode)
	doc, err := policy.Parse("p.yaml",
		[]byte("version: 1\nattributes: { user: { type: uuid, source: credential } }\nlimits: { "+
			"statement_timeout: 90s }\ntables: { people: { rows: [ own: { column: user_id, is: user } ] } }\n"))
	if err != nil {
		t.Fatal(err)
	}
	pol, err := policy.Compile(doc, fixture.snap)
	if err != nil {
		t.Fatal(err)
	}
	r := New(fixture.snap, pol, RowSecurityMode)
	for sql, isAllowed := range map[string]bool{
		"SET statement_timeout = 0": false, "SET LOCAL statement_timeout TO '2min'": false,
		"SET SESSION Statement_Timeout = 90001": false, "SET \"statement_timeout\" = '91s'": false,
		"BEGIN; SET LOCAL statement_timeout = 0; SELECT 1":   false,
		"SELECT set_config('statement_timeout', '0', false)": false, "SELECT set_config('statement_timeout', '1', true)": false,
		"SET statement_timeout = 90000": true, "SET LOCAL statement_timeout TO '1min'": true,
		"RESET statement_timeout": true, "SET statement_timeout TO DEFAULT": true, "SET lock_timeout = 0": true,
	} {
		if _, refusal := r.Rewrite(sql, false); (refusal == nil) != isAllowed {
			t.Errorf("%s: %v", sql, refusal)
		}
	}
}
