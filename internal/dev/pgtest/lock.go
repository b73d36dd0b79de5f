//go:build unix

package pgtest

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Lock waits until no other test on the server, in any process, holds the lock with this name. The test then holds the
// lock until it calls release or ends. Tests that make or change roles hold the lock "roles".
func Lock(t testing.TB, name string) (release func()) {
	t.Helper()
	release, err := advisoryLock(name)
	if err != nil {
		t.Fatalf("lock %s: %v", name, err)
	}
	t.Cleanup(release)
	return release
}

// advisoryLock takes an advisory lock on a connection of its own, and releases it by closing the connection.
func advisoryLock(name string) (release func(), err error) {
	ctx := context.Background() // without a timeout, since the test that holds the lock may build a large database
	conn, err := pgx.Connect(ctx, databaseNamed("postgres").DSN("postgres", ""))
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "SELECT pg_catalog.pg_advisory_lock(pg_catalog.hashtextextended($1, 0))", name); err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	return sync.OnceFunc(func() { _ = conn.Close(ctx) }), nil
}
