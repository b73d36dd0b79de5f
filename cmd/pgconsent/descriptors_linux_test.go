package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/test/tier"
)

// countDescriptors returns the number of open file descriptors of a process.
func countDescriptors(t *testing.T, pid int) int {
	t.Helper()
	descriptors, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(descriptors)
}

// A proxy without free file descriptors continues to serve its open sessions. New clients wait or get an error, and are
// served when others have left. In the end all descriptors of these clients are closed.
func TestServeWithoutDescriptors(t *testing.T) {
	tier.All(t)
	for _, mode := range poolModes {
		t.Run(mode, func(t *testing.T) {
			i := installWithMarks(t, mode)
			p, address := i.startServeThrough(t, []string{"sh", "-c", `ulimit -n 56 && exec "$0" "$@"`})
			i.runCrowd(t, address, 3, nil) // the pool has all its connections then, and keeps them
			firstConn := connect(t, i.dsn("chat", address))
			const crowdSize = 60
			countBefore := 0
			waitFor(t, "the crowd has left", func() bool {
				n := countDescriptors(t, p.cmd.Process.Pid)
				isSettled := n == countBefore
				countBefore = n
				return isSettled
			})
			release, crowdDone := make(chan struct{}), make(chan struct{})
			go func() { i.runCrowd(t, address, crowdSize, release); close(crowdDone) }()
			waitFor(t, "no descriptor is left", func() bool { return strings.Contains(p.errs.String(), "accept failed") })
			for n := range 20 {
				var output string
				if err := firstConn.QueryRow(t.Context(), "SELECT $1 || count(*) FROM memories", fmt.Sprint(n, " ")).Scan(&output); err != nil ||
					output != fmt.Sprint(n, " 1") {
					t.Fatalf("a session that was there before was told %q, %v", output, err)
				}
				time.Sleep(10 * time.Millisecond)
			}
			close(release)
			<-crowdDone
			waitFor(t, "descriptors are closed", func() bool { return countDescriptors(t, p.cmd.Process.Pid) <= countBefore })
			waitFor(t, "connections to the server are closed", func() bool { return i.countAgentProcesses(t) <= 5 })
			if n := queryInt(t, firstConn, "SELECT count(*) FROM memories"); n != 1 {
				t.Errorf("a session that was there before sees %d memories", n)
			}
		})
	}
}

// runCrowd runs clients at the same time. Each connects until it is served, and stays until release is closed; if
// release is nil, until all have a transaction.
func (i *installation) runCrowd(t *testing.T, address string, size int, release chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	var clients, servedClients sync.WaitGroup
	servedClients.Add(size)
	for c := range size {
		clientMark, markServed := fmt.Sprint("client ", c), sync.OnceFunc(servedClients.Done)
		whileConnected := func(ctx context.Context, conn *pgx.Conn) error {
			if release != nil {
				select {
				case <-release:
				case <-ctx.Done():
				}
				return nil
			}
			tx, err := conn.Begin(ctx)
			if err != nil {
				return err
			}
			markServed()
			servedClients.Wait()
			return tx.Commit(ctx)
		}
		clients.Go(func() {
			for {
				err := i.askTwice(ctx, address, clientMark, whileConnected)
				if err == nil {
					return
				}
				var pgError *pgconn.PgError
				if ctx.Err() != nil {
					t.Errorf("%s is never served: %v", clientMark, err)
					return
				}
				if errors.As(err, &pgError) && pgError.Code != "08006" && pgError.Code != "53300" && pgError.Code != "57P03" ||
					errors.Is(err, errOther) {
					t.Errorf("%s: %v", clientMark, err)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	clients.Wait()
}

var errOther = errors.New("the answer is another's")

// askTwice connects, sends a query, calls whileConnected, and sends the query again.
func (i *installation) askTwice(ctx context.Context, address, clientMark string,
	whileConnected func(context.Context, *pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, i.dsn("chat", address))
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	for n := range 2 {
		var output string
		if err := conn.QueryRow(ctx, "SELECT $1::text", clientMark).Scan(&output); err != nil {
			return err
		}
		if output != clientMark {
			return fmt.Errorf("%w: %q", errOther, output)
		}
		if n == 0 {
			if err := whileConnected(ctx, conn); err != nil {
				return err
			}
		}
	}
	return nil
}
