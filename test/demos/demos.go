// Package demos starts worlds as `pgconsent demo` does, for tests of HTTP, MCP and the console. It is not part of
// test/instance, because the tests of packages that package demo imports use test/instance.
package demos

import (
	"context"
	"errors"
	"fmt"
	"net"
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

// GuestDSN is the connection string of a role of the test server that may create databases and roles.
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

// usedAddresses are the addresses that FreeAddress has returned. The kernel may offer an address again as soon as its
// listener is closed.
var usedAddresses sync.Map

// FreeAddress returns an address of the loopback interface on which nobody listens, a new one each time.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		_ = l.Close()
		if _, again := usedAddresses.LoadOrStore(address, true); !again {
			return address
		}
	}
}

// StartDemo starts a world on the test server, as the command would, until the test ends. name is a world of the
// repository or a folder. The database and roles have fixed names, so that a world runs only once at a time.
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
		World: w, ServerDSN: dsn, Folder: t.TempDir(), Listen: FreeAddress(t), HTTP: FreeAddress(t)})
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

// removeDemo removes the demo's database and roles. Each migrate on the server grants rights to all roles, and a role
// with rights cannot be dropped. So these rights are revoked first in the databases of other tests.
func removeDemo(dsn string, w *world.World) error {
	ctx := context.Background()
	var err error
	for range 50 { // another test may migrate meanwhile, or drop its database, which ends this connection (57P01)
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

// revokeFromRoles revokes the rights of roles whose names begin with a prefix, in each database but their own.
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
		if errors.As(err, &pg) && pg.Code == "3D000" { // the database was dropped
			err = nil
		}
	}
	return err
}
