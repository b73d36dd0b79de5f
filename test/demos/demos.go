// Package demos starts the worlds as `pgconsent demo` does, for tests of their faces. It stands apart from test/instance,
// which packages that a demo is made of test with.
package demos

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/demo"
	"github.com/pgconsent/pgconsent/pgtest"
	"github.com/pgconsent/pgconsent/world"
)

// Guest is the DSN of a role of the test server that may make databases and roles, as that of [Start].
var Guest = sync.OnceValues(func() (string, error) {
	conn, err := pgx.Connect(context.Background(), fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres", pgtest.SocketDir(), pgtest.Port()))
	if err != nil {
		return "", err
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(context.Background(), "DO $$ BEGIN CREATE ROLE demo_guest LOGIN CREATEDB CREATEROLE PASSWORD 'guest-password'; EXCEPTION WHEN duplicate_object THEN END $$")
	return fmt.Sprintf("postgres://demo_guest:guest-password@127.0.0.1:%d/postgres", pgtest.TCPPort()), err
})

// Free is an address of loopback that nobody listens on.
func Free(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Start starts a world, one of ours or a folder, as the command would, on the test server, until the test ends.
func Start(t testing.TB, name string) *demo.Running {
	t.Helper()
	dsn, err := Guest()
	if err != nil {
		t.Fatal(err)
	}
	w, err := world.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := demo.Start(context.Background(), demo.Config{World: w, Postgres: dsn, Dir: t.TempDir(), Listen: Free(t), HTTP: Free(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.Stop()
		if err := demo.Remove(context.Background(), dsn, w, func(string) {}); err != nil {
			t.Error(err)
		}
	})
	return r
}
