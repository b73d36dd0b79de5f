package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/test/tier"
)

// poolModes are the pool modes in which faults are tested.
var poolModes = []string{"session", "transaction"}

// setPool sets the pool mode of the agents of an installation.
func (i *installation) setPool(t *testing.T, mode string) {
	t.Helper()
	i.editConfig(t, "owners: [app_owner],", "owners: [app_owner], pool: { mode: "+mode+", size: 3, wait: 2m },")
}

// installWithMarks makes an installation with a table that agents may write.
func installWithMarks(t *testing.T, mode string) *installation {
	t.Helper()
	i := installDatabase(t)
	i.setPool(t, mode)
	i.exec(t, "SET ROLE app_owner; CREATE TABLE public.marks (user_id uuid NOT NULL, client text NOT NULL, n int NOT NULL); RESET ROLE")
	policy := strings.Replace(guardedPolicy, "functions:",
		"  marks: { rows: [ { own: { column: user_id, is: user } } ], write: { commands: [insert] } }\nfunctions:", 1)
	if err := os.WriteFile(filepath.Join(i.dir(), "policy.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	runSteps(t, i.config, []commandStep{{"migrate", exitOK, ""}})
	return i
}

// countAgentProcesses returns the number of the server's processes for agents of the database.
func (i *installation) countAgentProcesses(t *testing.T) (n int) {
	t.Helper()
	conn := i.db.Connect(t, "postgres")
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE usename = 'pgconsent_agent' AND datname = $1",
		i.db.Name).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A proxy that is killed at any moment has not acknowledged a commit that is lost, and leaves no session on the server.
// Clients of the next proxy find what they have written.
func TestKilledProxyLosesNoCommit(t *testing.T) {
	tier.All(t)
	for _, mode := range poolModes {
		t.Run(mode, func(t *testing.T) {
			i := installWithMarks(t, mode)
			random, acknowledgedRows := tier.Rand(2), map[string]int{}
			for round := range tier.Count(1, 3, 60) {
				p, address := i.startServe(t)
				marksOfRound := map[string]int{}
				var mu sync.Mutex
				var clients sync.WaitGroup
				for c := range 6 {
					name := fmt.Sprintf("client %d-%d", round, c)
					clients.Go(func() { i.writeMarks(t, address, name, &mu, marksOfRound) })
				}
				waitFor(t, "agents write", func() bool {
					mu.Lock()
					defer mu.Unlock()
					return len(marksOfRound) == 6
				})
				time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
				if err := p.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				p.awaitEnd(t)
				clients.Wait()
				for name, n := range marksOfRound {
					acknowledgedRows[name] = n
				}
				waitFor(t, "the server's processes end", func() bool { return i.countAgentProcesses(t) == 0 })
				i.checkMarks(t, acknowledgedRows)
			}
			_, address := i.startServe(t)
			conn := connect(t, i.dsn("chat", address))
			for name, n := range acknowledgedRows {
				var count int
				if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM marks WHERE client = $1", name).Scan(&count); err != nil || count < n {
					t.Errorf("%s finds %d rows, of %d that were acknowledged: %v", name, count, n, err)
				}
			}
			t.Logf("%d clients, %v", len(acknowledgedRows), acknowledgedRows)
		})
	}
}

// writeMarks writes transactions of two rows until the proxy is killed, and counts the rows whose commit was
// acknowledged.
func (i *installation) writeMarks(t *testing.T, address, name string, mu *sync.Mutex, acknowledgedRows map[string]int) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, i.dsn("chat", address))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	defer conn.Close(ctx)
	const insert = "INSERT INTO marks VALUES ('6f1e0000-0000-4000-8000-000000000001', $1, $2)"
	for n := 0; ; n++ {
		var output string
		if err := conn.QueryRow(ctx, "SELECT $1::text", name).Scan(&output); err == nil && output != name {
			t.Errorf("%s was told %q", name, output)
		}
		tx, err := conn.Begin(ctx)
		if err != nil {
			return
		}
		for range 2 {
			if _, err := tx.Exec(ctx, insert, name, n); err != nil {
				return
			}
		}
		if tx.Commit(ctx) != nil {
			return
		}
		mu.Lock()
		acknowledgedRows[name] += 2
		mu.Unlock()
	}
}

// checkMarks checks that all acknowledged rows exist, and that no transaction was committed partly.
func (i *installation) checkMarks(t *testing.T, acknowledgedRows map[string]int) {
	t.Helper()
	conn := i.db.Connect(t, "postgres")
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), "SELECT client, n, count(*) FROM marks GROUP BY 1, 2")
	if err != nil {
		t.Fatal(err)
	}
	rowsByMark := map[string]int{}
	var client string
	var n, totalRows int
	if _, err := pgx.ForEachRow(rows, []any{&client, &n, &totalRows}, func() error {
		if totalRows != 2 {
			t.Errorf("%s: %d rows of a transaction of 2", client, totalRows)
		}
		rowsByMark[client] += totalRows
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for client, n := range acknowledgedRows {
		if rowsByMark[client] < n || rowsByMark[client] > n+2 {
			t.Errorf("%s: %d rows are there, of %d that were acknowledged", client, rowsByMark[client], n)
		}
	}
}
