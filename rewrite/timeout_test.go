package rewrite

import (
	"testing"
	"time"
)

// The bound is held in every unit that PostgreSQL reads, at it and just above.
func TestCheckTimeout(t *testing.T) {
	for value, allowed := range map[string]bool{
		"90000": true, "90001": false, " 90000 ms ": true, "90001ms": false,
		"90s": true, "91s": false, "90.0004s": true, "90.001s": false, "1.5min": true, "1.51 min": false,
		"0.025h": true, "0.026h": false, "0.001d": true, "0.00105d": false, "90000000us": true, "90001000us": false,
		"0": false, "0.4": false, "-1": false, "400us": false, "1": true, "1e4": true, "1e6": false,
		"": false, "ms": false, "5 fortnights": false, "1h30min": false,
	} {
		if refused := CheckTimeout("Statement_Timeout", value, 90*time.Second); (refused == nil) != allowed {
			t.Errorf("%q: %v", value, refused)
		}
	}
	if refused := CheckTimeout("lock_timeout", "0", 90*time.Second); refused != nil {
		t.Error(refused)
	}
	if refused := CheckTimeout("statement_timeout", "0", 0); refused != nil {
		t.Error(refused)
	}
}
