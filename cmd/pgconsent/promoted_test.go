package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgcluster"
	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/tier"
)

// startServer runs a PostgreSQL cluster of this test, on a port of 127.0.0.1; 0 is a free port.
func startServer(t *testing.T, dir string, port int) *pgcluster.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
	defer cancel()
	c, err := pgcluster.Start(ctx, pgcluster.Config{
		Dir: dir, Port: port, ListensOnTCP: true, Settings: map[string]string{"fsync": "off", "max_connections": "50", "shared_buffers": "32MB"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.StopNow() })
	return c
}

// serverFolder makes a folder that the server's account can read and write.
func serverFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "promoted")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // the server may run as another user
		t.Fatal(err)
	}
	return dir
}

func databaseOf(c *pgcluster.Cluster, database string) *pgtest.DB {
	return &pgtest.DB{Name: database, SocketDir: c.SocketDir, Port: c.Port}
}

// startStandby makes a copy of a running cluster, and runs it as a standby.
func startStandby(t *testing.T, primary *pgcluster.Cluster) *pgcluster.Cluster {
	t.Helper()
	dir := serverFolder(t)
	// startServer creates the folders of a cluster; the copy then replaces the data.
	cluster := startServer(t, dir, 0)
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(cluster.DataDir); err != nil {
		t.Fatal(err)
	}
	program, _ := pgtest.ClientProgram(t, "pg_basebackup")
	cmd := exec.Command(program, "-D", cluster.DataDir, "-R", "-c", "fast", "-X", "stream", "-C", "-S", "copy",
		"-h", primary.SocketDir, "-p", fmt.Sprint(primary.Port), "-U", "postgres") //nolint:gosec // the test's own
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v %s", err, out)
	}
	info, err := os.Stat(primary.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	if err := filepath.WalkDir(cluster.DataDir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(owner.Uid), int(owner.Gid))
	}); err != nil {
		t.Fatal(err)
	}
	return startServer(t, dir, 0)
}

// While a server is a standby, agents are refused, since a withdrawal would arrive late. A promoted standby with every
// acknowledged record continues as the new primary. One that lacks a record refuses agents, and so does the old
// primary, which lacks the newest records.
func TestPromotion(t *testing.T) {
	tier.All(t)
	primary := startServer(t, serverFolder(t), 0)
	i := &installation{db: databaseOf(primary, "postgres")}
	i.exec(t, "CREATE DATABASE app")
	i = installDSARIn(t, databaseOf(primary, "app"))
	text, err := os.ReadFile(i.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(i.config, append(text, "audit: { mode: strict, file: audit/ }\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	runSteps(t, i.config, []commandStep{{"consent grant ada --stream TEMPORARY", exitOK, "given"}, {"consent grant bob --stream TEMPORARY", exitOK, "given"}})
	useServer := func(cluster *pgcluster.Cluster) {
		t.Helper()
		text, err := os.ReadFile(i.config)
		if err != nil {
			t.Fatal(err)
		}
		_, databaseConfig, _ := strings.Cut(string(text), "\ndatabases:")
		output := fmt.Sprintf("version: 1\nlisten: 127.0.0.1:0\nhttp: { listen: \"off\" }\nupstream: { host: "+
			"127.0.0.1, port: %d }\ndatabases:%s", cluster.Port, databaseConfig)
		if err := os.WriteFile(i.config, []byte(output), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// checkServeRefused checks that serve does not start with this server, and that doctor reports it as unsafe.
	checkServeRefused := func(cluster *pgcluster.Cluster, text, wantUnsafe string) {
		t.Helper()
		useServer(cluster)
		for command, want := range map[string]string{"serve": text, "doctor": "UNSAFE   " + wantUnsafe} {
			out, stderr, code := runFinished(t, command, "-c", i.config)
			if code != exitError || !strings.Contains(out+stderr, want) {
				t.Errorf("%s does not say %q: %d %s %s", command, want, code, out, stderr)
			}
		}
	}
	awaitStandby := func(c *pgcluster.Cluster) {
		t.Helper()
		var lsn string
		primaryConn := databaseOf(primary, "app").Connect(t, "postgres")
		if err := primaryConn.QueryRow(t.Context(), "SELECT pg_current_wal_lsn()::text").Scan(&lsn); err != nil {
			t.Fatal(err)
		}
		standbyConn := databaseOf(c, "app").Connect(t, "postgres")
		waitFor(t, "the standby has come so far", func() bool {
			var isRecorded bool
			return standbyConn.QueryRow(t.Context(), "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn", lsn).Scan(&isRecorded) == nil && isRecorded
		})
	}
	promote := func(c *pgcluster.Cluster) {
		t.Helper()
		(&installation{db: databaseOf(c, "app")}).exec(t, "SELECT pg_promote()")
	}
	standbyCluster := startStandby(t, primary)

	runSteps(t, i.config, []commandStep{{"consent revoke ada", exitOK, "withdrawn"}})
	awaitStandby(standbyCluster)
	checkServeRefused(standbyCluster, "the server is a standby", "standby: the server is a standby")
	runSteps(t, i.config, []commandStep{
		{"consent grant eve --stream TEMPORARY", exitError, "standby"}, {"consent revoke bob", exitError, "standby"}, {
			"sweep", exitError, "standby"}, {"migrate", exitError, "recovery"}, {"consent status ada", exitOK, "withdrawn"}, {"audit verify", exitOK, "3 records hold"},
	})

	// No record is lost: the promoted server continues with the same anchor and the same audit.
	promote(standbyCluster)
	p, address := i.startServe(t)
	waitFor(t, "the promoted one serves", func() bool { n, err := i.countVisible(t, address, "bob"); return err == nil && n == 1 })
	if n, err := i.countVisible(t, address, "ada"); err != nil || n != 0 {
		t.Errorf("what was withdrawn before: %d rows %v", n, err)
	}
	runSteps(t, i.config, []commandStep{{"consent revoke bob", exitOK, "withdrawn"}, {"sweep", exitOK, ""},
		{"audit verify", exitOK, "4 records hold; anchored up to 4"}})
	if n, err := i.countVisible(t, address, "bob"); err != nil || n != 0 {
		t.Errorf("what was withdrawn after: %d rows %v", n, err)
	}
	p.signal(t, syscall.SIGTERM)
	p.awaitEnd(t)

	// The old primary lacks the last withdrawal.
	checkServeRefused(primary, "which was acknowledged, is not in the database", "consent: the consent registry is not what was acknowledged")
	runSteps(t, i.config, []commandStep{{"consent grant eve --stream TEMPORARY", exitError, "ConsentTamperedError"}})
	if out, _, code := call(t, "", "audit", "verify", "-c", i.config); code != exitError ||
		!strings.Contains(out, "the records after 3, up to 4, which was acknowledged, are missing") {
		t.Errorf("audit verify says %d %s", code, out)
	}
}

// A promoted standby that lacks acknowledged records refuses agents.
func TestPromotionWithLostRecordsRefusesAgents(t *testing.T) {
	tier.All(t)
	primary := startServer(t, serverFolder(t), 0)
	i := &installation{db: databaseOf(primary, "postgres")}
	i.exec(t, "CREATE DATABASE app")
	i = installDSARIn(t, databaseOf(primary, "app"))
	runSteps(t, i.config, []commandStep{{"consent grant ada --stream TEMPORARY", exitOK, "given"}})
	standbyCluster := startStandby(t, primary)
	database := databaseOf(standbyCluster, "app")
	standbyInstallation := &installation{db: database}
	standbyConn := database.Connect(t, "postgres")
	waitFor(t, "the standby follows", func() bool {
		var n int
		return standbyConn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'").Scan(&n) == nil && n == 1
	})
	standbyInstallation.exec(t, "ALTER SYSTEM SET primary_conninfo = ''")
	standbyInstallation.exec(t, "SELECT pg_reload_conf()")
	waitFor(t, "the standby follows no more", func() bool {
		var n int
		return standbyConn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_wal_receiver").Scan(&n) == nil && n == 0
	})
	runSteps(t, i.config, []commandStep{{"consent revoke ada", exitOK, "withdrawn"}})
	p, address := i.startServe(t)
	agent := connect(t, i.dsn("chat", address))
	if n := queryInt(t, agent, "SELECT count(*) FROM interactions WHERE user_id = 'ada'"); n != 0 {
		t.Errorf("%d rows after a withdrawal", n)
	}
	// While serve runs, the other server takes over the address of the primary.
	port := primary.Port
	if err := primary.StopNow(); err != nil {
		t.Fatal(err)
	}
	standbyInstallation.exec(t, "SELECT pg_promote()")
	if err := standbyCluster.Stop(); err != nil {
		t.Fatal(err)
	}
	startServer(t, filepath.Dir(filepath.Dir(standbyCluster.DataDir)), port)
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		config, err := pgx.ParseConfig(i.dsn("chat", address))
		if err != nil {
			t.Fatal(err)
		}
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			continue
		}
		var n int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM interactions WHERE user_id = 'ada'").Scan(&n); err == nil && n > 0 {
			t.Fatalf("an agent reads %d rows of somebody who has withdrawn", n)
		}
		_ = conn.Close(t.Context())
	}
	if out, _, code := call(t, "", "doctor", "-c", i.config); code != exitError || !strings.Contains(out, "After an older backup") {
		t.Errorf("doctor says %d %s", code, out)
	}
	runSteps(t, i.config, []commandStep{{"consent revoke ada", exitOK, "withdrawn"}})
	if output := p.errs.String(); !strings.Contains(output, "which was acknowledged, is not in the database") {
		t.Errorf("serve says\n%s", output)
	}
	p.signal(t, syscall.SIGTERM)
	p.awaitEnd(t)
}
