package enforce

import "testing"

// TestReservedServerConnections: agents leave connections of the server for its owner and for pgconsent itself.
func TestReservedServerConnections(t *testing.T) {
	var e Enforcer
	for room, want := range map[int64]int{0: 0, 3: 1, 17: 12, 97: 78, 1000: 950} {
		e.connectionLimit.Store(room)
		if got := e.MaxSessions(); got != want {
			t.Errorf("room for %d: agents may have %d sessions, want %d", room, got, want)
		}
	}
	w := start(t, nil)
	var room int
	if err := w.dba.QueryRow(t.Context(),
		"SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int").Scan(&room); err != nil {
		t.Fatal(err)
	}
	if got := w.MaxSessions(); got < room-50 || got >= room {
		t.Errorf("of %d connections agents may have %d", room, got)
	}
}
