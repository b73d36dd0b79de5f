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

	template *templateCopy // template of which the database is a copy; nil: none
}

// templateCopy is the copy of a template, which is made when its DSN is first asked for. A test that extends the
// template first (see [DB.BuildFurther]) then needs only one copy.
type templateCopy struct {
	test         testing.TB
	mu           sync.Mutex
	template     *template
	exists       bool // the database exists
	mayBeChanged bool // a connection that may write was given out
}

// DSN is a connection string: for the unix socket without a password, for TCP with one.
func (db *DB) DSN(user, password string) string {
	if db.template != nil {
		db.create(true)
	}
	return db.dsn(user, password)
}

// ReadOnlyDSN is a superuser's DSN for reading only, so that [DB.BuildFurther] still works afterwards.
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

// Connect opens a connection over the unix socket and closes it at the test's end. The user "postgres" is the
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

// statementTimeout is the timeout of a statement about databases: only a server that has stopped takes longer.
const statementTimeout = 5 * time.Minute

// Database makes an empty database.
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

// newName returns a name that no other test's database has.
func newName(kind string) string {
	return fmt.Sprintf("%s_%d_%d", kind, os.Getpid(), nameCounter.Add(1))
}

func databaseNamed(name string) *DB {
	return &DB{Name: name, SocketDir: server.SocketDir, Port: server.Port}
}

// newUncreatedDB returns a database that is not made yet.
func newUncreatedDB(t testing.TB) *DB {
	t.Helper()
	if server == nil {
		t.Fatal("pgtest: no server; call pgtest.Main in TestMain")
	}
	return databaseNamed(newName("test"))
}

// createDatabase makes a copy of a database. Copying files takes a tenth of the CPU time of copying pages through the
// log, which is the default from PostgreSQL 15 on.
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

// dropBatch is how many databases are dropped in a row. Each DROP DATABASE requests a checkpoint, of which only the
// first in a row has something to write.
const dropBatch = 12

var (
	discardedMu        sync.Mutex
	discardedDatabases []string
)

// dropLater drops a database later, together with others.
func dropLater(name string) error {
	discardedMu.Lock()
	defer discardedMu.Unlock()
	if discardedDatabases = append(discardedDatabases, name); len(discardedDatabases) < dropBatch {
		return nil
	}
	return dropDiscarded()
}

// DropDiscarded drops the databases that earlier tests have discarded: for tests that check whether another database
// needs a role.
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

// dropDatabase drops a database, and tries again while another test takes away the rights of a role in the same
// database. PostgreSQL says then that a tuple of pg_shdepend was concurrently deleted (XX000), and has dropped nothing.
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

// One process runs one statement about databases at a time: running more would not be faster.
var (
	adminMu   sync.Mutex
	adminConn *pgx.Conn
)

// runAsAdmin runs a statement as the superuser outside of the tests' databases.
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

// objectInUse is the SQLSTATE that the server sends after five seconds for a template with a connection. On a busy
// machine the process of a closed connection may take longer to end.
const objectInUse = "55006"
