package e2e

import (
	"testing"

	harness "github.com/pgconsent/pgconsent/test/instance"
)

// Agents with the same attributes share advisory locks. Their locks never collide with those of other users or of the
// owner, and they cannot fill the server's lock table.
func TestAdvisoryLocks(t *testing.T) {
	in := start(t, options{})
	first, second, owner := in.agent(t), in.agent(t), in.superuserConn(t)
	otherUser := harness.Connect(t, in.dsn("second", agentPassword)) // a session of another user
	answer := func(a harness.Answer) string {
		if a.Err != "" {
			return a.Code
		}
		return a.Results[len(a.Results)-1].Rows[0]
	}
	for _, step := range []struct {
		user      string
		sql, want string
	}{
		{"owner", "SELECT pg_try_advisory_lock(42)", "t"},
		{"one", "SELECT pg_try_advisory_lock(42)", "t"},
		{"same", "SELECT pg_try_advisory_lock(42)", "f"},
		{"same", "SELECT pg_try_advisory_lock(43)", "t"},
		{"same", "SELECT pg_try_advisory_lock(4, 2)", "t"},
		{"one", "SELECT pg_try_advisory_lock_shared(4, 2)", "f"},
		{"other", "SELECT pg_try_advisory_lock(43), pg_try_advisory_lock(4, 2)", "t\tt"},
		{"one", "SELECT pg_advisory_unlock(42)", "t"},
		{"same", "SELECT pg_try_advisory_xact_lock(42)", "t"},
		{"one", "SELECT pg_advisory_lock(42)", ""},
		{"same", "SELECT pg_advisory_unlock_all()", ""},
		{"one", "SELECT pg_try_advisory_lock(43)", "t"},
		{"owner", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND objid = 42", "1"},
		{"same", "SELECT count(*) FROM (SELECT pg_advisory_lock(i) FROM generate_series(100, 163) AS i) AS l", "64"},
		{"same", "SELECT pg_advisory_lock(164)", "54000"},
		{"same", "SELECT pg_advisory_unlock(100)", "t"},
		{"same", "SELECT pg_advisory_lock(164)", ""},
		{"same", "SELECT pg_try_advisory_lock(NULL)", `\N`},
	} {
		conn := first
		switch step.user {
		case "owner":
			conn = owner
		case "other":
			conn = otherUser
		case "same":
			conn = second
		}
		if got := answer(harness.Ask(conn, step.sql)); got != step.want {
			t.Errorf("%s: %s: %s, want %s", step.user, step.sql, got, step.want)
		}
	}
	if a := harness.Ask(second, "SELECT pg_advisory_lock(i) FROM generate_series(1, 1000) AS i"); a.Code != "54000" {
		t.Errorf("a thousand locks: %s", a)
	}
}
