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

// countDescriptors is how many descriptors a process has.
func countDescriptors(t *testing.T, pid int) int {
	t.Helper()
	descriptors, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(descriptors)
}

// A proxy that has no descriptor left goes on serving the sessions that it has. Clients that come meanwhile wait, or are
// told why they are not served; they are served when others have left. In the end no descriptor is left behind.
func TestServeWithoutDescriptors(t *testing.T) {
	tier.All(t)
	for _, mode := range poolModes {
		t.Run(mode, func(t *testing.T) {
			i := installWithMarks(t, mode)
			p, address := i.servingBy(t, []string{"sh", "-c", `ulimit -n 56 && exec "$0" "$@"`})
			i.crowd(t, address, 3, nil) // A pool has all of its connections then, and keeps them.
			firstConn := connect(t, i.dsn("chat", address))
			const more = 60
			countBefore := 0
			waitFor(t, "the crowd has left", func() bool {
				n := countDescriptors(t, p.cmd.Process.Pid)
				isSettled := n == countBefore
				countBefore = n
				return isSettled
			})
			release, crowd := make(chan struct{}), make(chan struct{})
			go func() { i.crowd(t, address, more, release); close(crowd) }()
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
			<-crowd
			waitFor(t, "descriptors are closed", func() bool { return countDescriptors(t, p.cmd.Process.Pid) <= countBefore })
			waitFor(t, "connections to the server are closed", func() bool { return i.countAgentProcesses(t) <= 5 })
			if n := queryInt(t, firstConn, "SELECT count(*) FROM memories"); n != 1 {
				t.Errorf("a session that was there before sees %d memories", n)
			}
		})
	}
}

// crowd is so many clients at once. Each connects until it is served, and stays until it is released; nil: until all have
// a transaction.
func (i *installation) crowd(t *testing.T, address string, size int, release chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	var clients, inside sync.WaitGroup
	inside.Add(size)
	for c := range size {
		mark, arrive := fmt.Sprint("client ", c), sync.OnceFunc(inside.Done)
		stay := func(ctx context.Context, conn *pgx.Conn) error {
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
			arrive()
			inside.Wait()
			return tx.Commit(ctx)
		}
		clients.Go(func() {
			for {
				err := i.visit(ctx, address, mark, stay)
				if err == nil {
					return
				}
				var told *pgconn.PgError
				if ctx.Err() != nil {
					t.Errorf("%s is never served: %v", mark, err)
					return
				}
				if errors.As(err, &told) && told.Code != "08006" && told.Code != "53300" && told.Code != "57P03" || errors.Is(err, errOther) {
					t.Errorf("%s: %v", mark, err)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	clients.Wait()
}

var errOther = errors.New("the answer is another's")

// visit connects, asks, stays and asks again.
func (i *installation) visit(ctx context.Context, address, mark string, stay func(context.Context, *pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, i.dsn("chat", address))
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	for n := range 2 {
		var output string
		if err := conn.QueryRow(ctx, "SELECT $1::text", mark).Scan(&output); err != nil {
			return err
		}
		if output != mark {
			return fmt.Errorf("%w: %q", errOther, output)
		}
		if n == 0 {
			if err := stay(ctx, conn); err != nil {
				return err
			}
		}
	}
	return nil
}
