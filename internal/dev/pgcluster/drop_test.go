//go:build unix

package pgcluster

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/test/tier"
)

// A role that is no superuser drops its database though it has it open itself, and though somebody else does, who goes
// after a while; who stays is named.
func TestDropDatabaseThatIsOpen(t *testing.T) {
	tier.All(t)
	cl := start(t, Config{Dir: folder(t), Password: "secret"})
	as := func(user, database string) *pgx.Conn {
		t.Helper()
		u := url.URL{Scheme: "postgres", User: url.UserPassword(user, "secret"), Path: "/" + database,
			RawQuery: url.Values{"host": {cl.SocketDir}, "port": {strconv.Itoa(cl.Port)}, "sslmode": {"disable"}}.Encode()}
		conn, err := pgx.Connect(ctx(t), u.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	super := as(cl.Superuser, "postgres")
	for _, sql := range []string{"CREATE ROLE guest LOGIN CREATEDB PASSWORD 'secret'", "CREATE ROLE another LOGIN PASSWORD 'secret'"} {
		if _, err := super.Exec(ctx(t), sql); err != nil {
			t.Fatal(err)
		}
	}
	guest := as("guest", "postgres")
	made := func() {
		t.Helper()
		if _, err := guest.Exec(ctx(t), "CREATE DATABASE theirs"); err != nil {
			t.Fatal(err)
		}
		as("guest", "theirs")
	}

	made()
	other := as("another", "theirs")
	gone := time.AfterFunc(6*time.Second, func() { _ = other.Close(context.Background()) }) // more than PostgreSQL waits
	defer gone.Stop()
	if err := DropDatabase(ctx(t), guest, "theirs"); err != nil {
		t.Errorf("somebody had it open and went: %v", err)
	}
	if err := DropDatabase(ctx(t), guest, "theirs"); err != nil {
		t.Errorf("it is not there: %v", err)
	}

	made()
	as("another", "theirs")
	if err := DropDatabase(ctx(t), guest, "theirs"); err == nil || !strings.HasSuffix(err.Error(), ": open for another") {
		t.Errorf("somebody has it open: %v", err)
	}
}
