//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// DB is a database that exists for one test.
type DB struct {
	Name      string
	SocketDir string
	Port      int

	template *templateCopy // the template from which the database is copied; nil: it is no copy
}

// templateCopy is a copy of a template. It is made when a test first asks for its DSN, so that a test which first calls
// [DB.BuildFurther] needs only one copy.
type templateCopy struct {
	test         testing.TB
	mu           sync.Mutex
	template     *template
	exists       bool // the database has been made
	mayBeChanged bool // a test has a DSN with which it may write
}

// DSN returns a connection string: for the unix socket if the password is "", and otherwise for TCP.
func (db *DB) DSN(user, password string) string {
	if db.template != nil {
		db.create(true)
	}
	return db.dsn(user, password)
}

// ReadOnlyDSN returns a superuser's connection string that the test uses only to read, so that [DB.BuildFurther] still
// works afterwards.
func (db *DB) ReadOnlyDSN() string {
	if db.template != nil {
		db.create(false)
	}
	return db.dsn("postgres", "")
}

func (db *DB) create(open bool) {
	c := db.template
	c.test.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.exists {
		if err := c.template.copyTo(db.Name); err != nil {
			c.test.Fatalf("create database: %v", err)
		}
		c.exists = true
	}
	c.mayBeChanged = c.mayBeChanged || open
}

func (db *DB) dsn(user, password string) string {
	u := url.URL{Scheme: "postgres", Path: "/" + db.Name}
	if password == "" {
		u.User = url.User(user)
		u.RawQuery = url.Values{"host": {db.SocketDir}, "port": {strconv.Itoa(db.Port)}}.Encode()
		return u.String()
	}
	u.User = url.UserPassword(user, password)
	u.Host = fmt.Sprintf("127.0.0.1:%d", db.Port)
	u.RawQuery = "sslmode=disable"
	return u.String()
}

// Connect opens a connection over the unix socket, and closes it when the test ends. The user "postgres" is the
// superuser.
func (db *DB) Connect(t testing.TB, user string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, db.DSN(user, ""))
	if err != nil {
		t.Fatalf("connect to %s as %s: %v", db.Name, user, err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// statementTimeout is the timeout of statements that make or drop databases. They take longer only if the server has
// stopped.
const statementTimeout = 5 * time.Minute

// Database makes an empty database for the test.
func Database(t testing.TB) *DB {
	t.Helper()
	db := newUncreatedDB(t)
	if err := createDatabase(db.Name, "template0"); err != nil {
		t.Fatalf("create database: %v", err)
	}
	t.Cleanup(func() { drop(t, db.Name) })
	return db
}

var nameCounter atomic.Int64

// newName returns a name that no other database has.
func newName(kind string) string {
	return fmt.Sprintf("%s_%d_%d", kind, os.Getpid(), nameCounter.Add(1))
}

func databaseNamed(name string) *DB {
	return &DB{Name: name, SocketDir: server.SocketDir, Port: server.Port}
}

// newUncreatedDB returns a DB whose database has not been made yet.
func newUncreatedDB(t testing.TB) *DB {
	t.Helper()
	if server == nil {
		t.Fatal("pgtest: no server; call pgtest.Main in TestMain")
	}
	return databaseNamed(newName("test"))
}

// createDatabase makes a copy of a database. It copies the files, which takes a tenth of the CPU time of copying pages
// through the write-ahead log, the default since PostgreSQL 15.
func createDatabase(name, template string) error {
	sql := "CREATE DATABASE " + name + " TEMPLATE " + template
	if server.Binaries.Major >= 15 {
		sql += " STRATEGY file_copy"
	}
	return runAsAdmin(sql)
}

func drop(t testing.TB, name string) {
	t.Helper()
	if err := dropLater(name); err != nil {
		t.Errorf("drop database: %v", err)
	}
}

// dropBatch is the number of databases that are dropped together. Each DROP DATABASE requests a checkpoint, but only
// the first of several in a row has something to write.
const dropBatch = 12

var (
	discardedMu        sync.Mutex
	discardedDatabases []string
)

// dropLater puts a database on the list of those that are dropped together, and drops them all once there are
// dropBatch.
func dropLater(name string) error {
	discardedMu.Lock()
	defer discardedMu.Unlock()
	if discardedDatabases = append(discardedDatabases, name); len(discardedDatabases) < dropBatch {
		return nil
	}
	return dropDiscarded()
}

// DropDiscarded drops the databases that earlier tests no longer need. It is for tests that check whether any database
// still needs a role.
func DropDiscarded(t testing.TB) {
	t.Helper()
	discardedMu.Lock()
	defer discardedMu.Unlock()
	if err := dropDiscarded(); err != nil {
		t.Fatalf("drop database: %v", err)
	}
}

func dropDiscarded() error {
	names := discardedDatabases
	discardedDatabases = nil
	for _, name := range names {
		if err := dropDatabase(name); err != nil {
			return err
		}
	}
	return nil
}

// dropDatabase drops a database. It tries again if another test is revoking rights of a role in the same database:
// PostgreSQL then fails with "tuple concurrently deleted" (XX000) for a row of pg_shdepend, and drops nothing.
func dropDatabase(name string) error {
	for attempts := 0; ; attempts++ {
		err := runAsAdmin("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)")
		var refused *pgconn.PgError
		if attempts == 20 || !errors.As(err, &refused) || refused.Code != "XX000" {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Each process makes or drops only one database at a time, since running several such statements would not be faster.
var (
	adminMu   sync.Mutex
	adminConn *pgx.Conn
)

// runAsAdmin runs a statement as superuser, in a database that no test uses.
func runAsAdmin(sql string) error {
	return withAdminConnection(func(ctx context.Context, conn *pgx.Conn) error {
		for {
			_, err := conn.Exec(ctx, sql)
			var refused *pgconn.PgError
			if !errors.As(err, &refused) || refused.Code != objectInUse || ctx.Err() != nil {
				return err
			}
		}
	})
}

func withAdminConnection(f func(context.Context, *pgx.Conn) error) error {
	adminMu.Lock()
	defer adminMu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	if adminConn == nil || adminConn.IsClosed() {
		var err error
		if adminConn, err = pgx.Connect(ctx, databaseNamed("postgres").DSN("postgres", "")); err != nil {
			return err
		}
	}
	return f(ctx, adminConn)
}

// objectInUse is the SQLSTATE that the server returns if a template still has a connection after five seconds. On a
// busy machine, the server process of a closed connection may take longer to end.
const objectInUse = "55006"
