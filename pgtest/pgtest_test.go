//go:build unix

package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) { Main(m) }

func TestTemplateIsCopied(t *testing.T) {
	built := 0
	build := func(ctx context.Context, conn *pgx.Conn) error {
		built++
		_, err := conn.Exec(ctx, "CREATE TABLE t AS SELECT 1 AS n")
		return err
	}
	ctx := context.Background()
	a, b := Template(t, "copied", build), Template(t, "copied", build)
	if built != 1 {
		t.Errorf("the template was built %d times", built)
	}
	if _, err := a.Connect(t, "postgres").Exec(ctx, "INSERT INTO t VALUES (2)"); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := b.Connect(t, "postgres").QueryRow(ctx, "SELECT count(*) FROM t").Scan(&n); err != nil || n != 1 {
		t.Errorf("the other copy has %d rows (%v), want 1", n, err)
	}
}

func TestTCPAsksForPassword(t *testing.T) {
	ctx := context.Background()
	db := Database(t)
	admin := db.Connect(t, "postgres")
	if _, err := admin.Exec(ctx, "CREATE ROLE somebody LOGIN PASSWORD 'right'"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = admin.Exec(ctx, "DROP ROLE somebody") })
	if _, err := pgx.Connect(ctx, db.DSN("somebody", "wrong")); err == nil {
		t.Error("a wrong password was accepted on 127.0.0.1")
	}
	conn, err := pgx.Connect(ctx, db.DSN("somebody", "right"))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(ctx)
}
