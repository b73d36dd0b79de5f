// Package demos starts the worlds as `pgconsent demo` does, for tests of their faces. It stands apart from test/instance,
// which packages that a demo is made of test with.
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

// Guest is the DSN of a role of the test server that may make databases and roles, as that of [Start].
var Guest = sync.OnceValues(func() (string, error) {
	conn, err := pgx.Connect(context.Background(), fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres", pgtest.SocketDir(), pgtest.Port()))
	if err != nil {
		return "", err
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(context.Background(),
		"DO $$ BEGIN CREATE ROLE demo_guest LOGIN CREATEDB CREATEROLE PASSWORD 'guest-password'; EXCEPTION WHEN duplicate_object THEN END $$")
	return fmt.Sprintf("postgres://demo_guest:guest-password@127.0.0.1:%d/postgres", pgtest.TCPPort()), err
})

// given are the addresses that Free has returned: the kernel may name one again as soon as its listener is closed.
var given sync.Map

// Free is an address of loopback that nobody listens on, another one each time.
func Free(t testing.TB) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		_ = l.Close()
		if _, again := given.LoadOrStore(address, true); !again {
			return address
		}
	}
}

// Start starts a world, one of ours or a folder, as the command would, on the test server, until the test ends. Its
// database and roles have fixed names, so that there is one of a world at a time.
func Start(t testing.TB, name string) *demo.Running {
	t.Helper()
	dsn, err := Guest()
	if err != nil {
		t.Fatal(err)
	}
	w, err := world.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Lock(t, "demo "+w.Name)
	r, err := demo.Start(context.Background(), demo.Config{World: w, Postgres: dsn, Dir: t.TempDir(), Listen: Free(t), HTTP: Free(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.Stop()
		if err := remove(dsn, w); err != nil {
			t.Error(err)
		}
	})
	return r
}

// remove takes the demo away. Whoever migrates a database of the server gives rights in it to all roles that there are,
// and roles with rights cannot be dropped: other tests' databases forget those of the demo first.
func remove(dsn string, w *world.World) error {
	ctx := context.Background()
	var err error
	for range 50 { // another test may migrate meanwhile, or drop its database, which ends our connection to it (57P01)
		if err = forget(ctx, "pgconsent_demo_"+w.Name); err == nil {
			err = demo.Remove(ctx, dsn, w, func(string) {})
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

// forget takes the rights of roles whose names begin so from them, in each database but their own.
func forget(ctx context.Context, prefix string) error {
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
		if errors.As(err, &pg) && pg.Code == "3D000" { // the database is gone
			err = nil
		}
	}
	return err
}
