package wire_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// idleSessions is the number of sessions that are opened and do nothing.
const idleSessions = 1000

// idle measures the memory that PgBouncer and pgconsent need for a session that does nothing.
func idle(t *testing.T, all []contender) string {
	t.Helper()
	out := "| between | KiB for an idle session |\n|---|---:|\n"
	for _, c := range all {
		if c.pid == 0 {
			continue
		}
		fmt.Printf("wire: %d idle sessions of %s\n", idleSessions, c.name)
		before := settledMemory(t, c.pid)
		var connections []*pgconn.PgConn
		for range idleSessions {
			conn := connect(t, c)
			if _, err := conn.Exec(t.Context(), "SELECT 1").ReadAll(); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			connections = append(connections, conn)
		}
		after := settledMemory(t, c.pid)
		for _, conn := range connections {
			_ = conn.Close(context.Background())
		}
		out += fmt.Sprintf("| %s | %.1f |\n", c.name, (after-before)/idleSessions/1024)
		time.Sleep(2 * time.Second) // the server ends the processes of these sessions
	}
	return out
}

// settledMemory returns the memory of a process once it has not shrunk for five seconds.
func settledMemory(t *testing.T, pid int) float64 {
	t.Helper()
	least := residentMemory(t, pid)
	for unchanged := 0; unchanged < 5; unchanged++ {
		time.Sleep(time.Second)
		if now := residentMemory(t, pid); now < least {
			least, unchanged = now, 0
		}
	}
	return least
}
