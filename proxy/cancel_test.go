package proxy

import "testing"

// TestCancelKeys: a key of an agent can be no owner's, is guessed from no other, fits whole or not at all, and nothing
// after its session. The client learns nothing of the server's own.
func TestCancelKeys(t *testing.T) {
	var c cancels
	sessions := map[cancelKey]*session{}
	secrets, ids := map[uint32]bool{}, map[uint32]bool{}
	const n = 2000
	for range n {
		s := &session{}
		key := c.add(s)
		if key.pid < 1<<30 || key.pid >= 1<<31 {
			t.Fatalf("the process id %d may be one of the system's, or is none", key.pid)
		}
		sessions[key], secrets[key.secret], ids[key.pid] = s, true, true
	}
	if len(secrets) < n-n/10 || len(ids) < n-n/10 || len(sessions) != n {
		t.Errorf("of %d keys %d secrets and %d process ids are different", n, len(secrets), len(ids))
	}
	for key, s := range sessions {
		if c.find(key) != s {
			t.Fatal("a key finds another session")
		}
		for _, other := range []cancelKey{{key.pid, key.secret + 1}, {key.pid + 1, key.secret}, {key.pid, 0}, {0, key.secret}, {key.secret, key.pid}} {
			if found := c.find(other); found != nil && sessions[other] == nil {
				t.Fatal("a part of a key finds a session")
			}
		}
		c.remove(key)
		if c.find(key) != nil {
			t.Fatal("a key outlives its session")
		}
	}

	p := start(t)
	conn := p.connect(t)
	var pid uint32
	if err := conn.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	if told := conn.PgConn().PID(); told == pid || told < 1<<30 {
		t.Errorf("the client is told the process id %d, and the server's is %d", told, pid)
	}
}
