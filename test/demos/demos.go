// Package demos starts example worlds like `pgconsent demo` does, for tests of HTTP, MCP and the console. It is
// separate from test/instance to avoid an import cycle: package demo imports packages whose tests import test/instance.
package demos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/demo"
	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/dev/world"
)

// GuestDSN returns the connection string of a role on the test server that may create databases and roles.
var GuestDSN = sync.OnceValues(func() (string, error) {
	conn, err := pgx.Connect(context.Background(), fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres", pgtest.SocketDir(), pgtest.Port()))
	if err != nil {
		return "", err
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(context.Background(),
		"DO $$ BEGIN CREATE ROLE demo_guest LOGIN CREATEDB CREATEROLE PASSWORD 'guest-password'; EXCEPTION WHEN duplicate_object THEN END $$")
	return fmt.Sprintf("postgres://demo_guest:guest-password@127.0.0.1:%d/postgres", pgtest.TCPPort()), err
})

// StartDemo starts a world on the test server, as `pgconsent demo` would, and stops it when the test ends. name is the
// name of a world of the repository, or a folder. The database and the roles have fixed names, so that the same world
// cannot run twice at the same time.
func StartDemo(t testing.TB, name string) *demo.RunningDemo {
	t.Helper()
	dsn, err := GuestDSN()
	if err != nil {
		t.Fatal(err)
	}
	w, err := world.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Lock(t, "demo "+w.Name)
	r, err := demo.Start(context.Background(), demo.Config{
		World: w, ServerDSN: dsn, Folder: t.TempDir(), Listen: pgtest.FreeAddress(t), HTTP: pgtest.FreeAddress(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.Stop()
		if err := removeDemo(dsn, w); err != nil {
			t.Error(err)
		}
	})
	return r
}

// removeDemo removes the database and the roles of a demo. Migrations of other tests may have granted rights in their
// databases to these roles, which can be dropped only after the rights have been revoked.
func removeDemo(dsn string, w *world.World) error {
	ctx := context.Background()
	var err error
	for range 50 { // Another test may migrate at this time, or drop its database, which ends our connection there (57P01).
		if err = revokeFromRoles(ctx, "pgconsent_demo_"+w.Name); err == nil {
			err = demo.RemoveFromServer(ctx, dsn, w, func(string) {})
		}
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "2BP01" && pg.Code != "57P01" &&
			!(pg.Code == "XX000" && strings.HasPrefix(pg.Message, "tuple concurrently ")) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// revokeFromRoles revokes all rights of the roles whose names begin with prefix, in every database but their own.
func revokeFromRoles(ctx context.Context, prefix string) error {
	type right struct{ Role, Database string }
	var rights []right
	super := func(database string, f func(*pgx.Conn) error) error {
		conn, err := pgx.Connect(ctx, fmt.Sprintf("host=%s port=%d user=postgres dbname=%s", pgtest.SocketDir(), pgtest.Port(), database))
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		return f(conn)
	}
	err := super("postgres", func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `SELECT DISTINCT r.rolname::text, b.datname::text FROM pg_shdepend AS d
			JOIN pg_authid AS r ON d.refclassid = 'pg_authid'::regclass AND d.refobjid = r.oid
			JOIN pg_database AS b ON b.oid = CASE WHEN d.classid = 'pg_database'::regclass THEN d.objid ELSE d.dbid END
			WHERE pg_catalog.starts_with(r.rolname::text, $1) AND NOT pg_catalog.starts_with(b.datname::text, $1)`, prefix)
		if err != nil {
			return err
		}
		rights, err = pgx.CollectRows(rows, pgx.RowToStructByPos[right])
		return err
	})
	for _, r := range rights {
		if err != nil {
			break
		}
		err = super(r.Database, func(conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "DROP OWNED BY "+pgx.Identifier{r.Role}.Sanitize())
			return err
		})
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == "3D000" { // another test has dropped the database
			err = nil
		}
	}
	return err
}
