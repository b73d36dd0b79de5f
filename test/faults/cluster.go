package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgcluster"
	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/tier"
)

// cluster is a PostgreSQL server that a test can kill and start again with the same data.
type cluster struct {
	t      testing.TB
	config pgcluster.Config
	server *pgcluster.Cluster
	db     *pgtest.DB
}

// startCluster starts a server without fsync. Tests kill only the process and not the kernel, so that written data
// survive nevertheless.
func startCluster(t testing.TB) *cluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "faults")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // the server may run as another user
		t.Fatal(err)
	}
	c := &cluster{t: t, config: pgcluster.Config{Dir: filepath.Join(dir, "postgres"), ListensOnTCP: true, Port: keptPort(t), NoSync: true,
		Settings: map[string]string{"synchronous_commit": "on", "max_connections": "200", "shared_buffers": "32MB"}}}
	c.start()
	t.Cleanup(func() { _ = c.server.StopNow() })
	c.db = &pgtest.DB{Name: "postgres", SocketDir: c.server.SocketDir, Port: c.server.Port}
	return c
}

// keptPort returns a port that is free, and that stays free while the server is down: systems give ports above 32767 to
// outgoing connections.
func keptPort(t testing.TB) int {
	t.Helper()
	var err error
	for i := range 100 {
		port := 20_000 + (os.Getpid()+i)%12_000
		if err = pgcluster.CheckPortFree(fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port
		}
	}
	t.Fatal(err)
	return 0
}

// start starts the server. It tries again if that fails, for instance because another program has taken the port.
func (c *cluster) start() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	for {
		server, err := pgcluster.Start(ctx, c.config)
		if err == nil {
			c.server = server
			return
		}
		if ctx.Err() != nil {
			c.t.Fatal(err)
		}
		c.t.Logf("the server does not start, and is started once more: %v", err)
		time.Sleep(200 * time.Millisecond)
	}
}

func (c *cluster) socket() string {
	return fmt.Sprintf("%s/.s.PGSQL.%d", c.server.SocketDir, c.server.Port)
}

// restart kills the server and starts it again. The server then recovers from its WAL.
func (c *cluster) restart() {
	c.t.Helper()
	if err := syscall.Kill(c.server.PID(), syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
	<-c.server.Exited()
	if err := c.server.StopNow(); err != nil {
		c.t.Fatal(err)
	}
	c.start()
}

// withSuperuser calls f with a superuser's connection that bypasses the proxies. It repeats this if f fails because the
// server is recovering.
func (c *cluster) withSuperuser(f func(ctx context.Context, conn *pgx.Conn) error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, c.db.DSN("postgres", ""))
		if err == nil {
			err = f(ctx, conn)
			_ = conn.Close(ctx)
		}
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			c.t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// processes returns the process ids of the server's backends for the sessions of a role.
func (c *cluster) processes(role string) (pids []int) {
	c.t.Helper()
	c.withSuperuser(func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "SELECT pid FROM pg_catalog.pg_stat_activity WHERE usename = $1 ORDER BY pid", role)
		if err != nil {
			return err
		}
		pids, err = pgx.CollectRows(rows, pgx.RowTo[int])
		return err
	})
	return pids
}
