//go:build unix

package demo

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// An operation is retried, with a message, while the machine is slow. Any other error ends it at once.
func TestRetryPatience(t *testing.T) {
	slowError := sqlstate.New(sqlstate.CannotConnectNow, sqlstate.ReasonUpstream, "it does not answer in time")
	staleError := sqlstate.New(sqlstate.CannotConnectNow, sqlstate.ReasonStale, "the policy is not installed")
	var messages []string
	p := retrySchedule{limit: time.Hour, reportEvery: 0, progress: func(message string) { messages = append(messages, message) }}
	for _, c := range []struct {
		slowError func(error) bool
		answers   []error // the results of the attempts; the last one repeats
		attempts  int
	}{
		{isNotReady, []error{nil}, 1},
		{isNotReady, []error{errors.Join(slowError), slowError, nil}, 3},
		{isNotReady, []error{slowError, staleError}, 2},
		{isUnanswered, []error{&pgconn.PgError{Code: "57P03"}, &pgconn.PgError{Code: "53300"}, context.DeadlineExceeded,
			nil}, 4},
		{isUnanswered, []error{&pgconn.PgError{Code: "28000"}}, 1},
	} {
		attempts := 0
		messages = nil
		err := p.retryUntilReady(t.Context(), c.slowError, func() error {
			attempts++
			return c.answers[min(attempts, len(c.answers))-1]
		})
		if want := c.answers[len(c.answers)-1]; !errors.Is(err, want) || attempts != c.attempts || len(messages) != attempts-1 {
			t.Errorf("%v after %d tries, told %q", err, attempts, messages)
		}
	}
	p.limit = 0
	if err := p.retryUntilReady(t.Context(), isNotReady, func() error { time.Sleep(time.Millisecond); return slowError }); !errors.Is(err,
		slowError) {
		t.Errorf("%v", err)
	}
}

// Demos of two worlds run at the same time: the second chooses free ports.
func TestTwoDemosAtOnce(t *testing.T) {
	admin := superuser(t)
	exec(t, admin, "CREATE ROLE host LOGIN SUPERUSER PASSWORD 'host-password'")
	t.Cleanup(func() { exec(t, admin, "DROP ROLE host") })
	// Other programs may take the usual addresses, and give them back, at any time.
	defaultListen, defaultHTTP := pgtest.FreeAddress(t), pgtest.FreeAddress(t)
	listener, err := net.Listen("tcp", defaultHTTP)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	worldByAddress := map[string]string{}
	for _, name := range []string{"one", "two"} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.CopyFS(dir, os.DirFS("testdata/My-App")); err != nil {
			t.Fatal(err)
		}
		w, err := world.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		messages := ""
		r, err := Start(t.Context(), Config{World: w, ServerDSN: dsn("host", "host-password"), Folder: t.TempDir(),
			defaultListen: defaultListen, defaultHTTP: defaultHTTP,
			Progress: func(message string) { messages += message + "\n" }})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := errors.Join(r.Stop(), RemoveFromServer(context.Background(), dsn("host", "host-password"), w, func(string) {})); err != nil {
				t.Error(err)
			}
		}()
		if n := queryNumber(t, r.Access.Agents[0].DSN, "SELECT count(*) FROM notes"); n != 10 {
			t.Errorf("an agent sees %d notes", n)
		}
		if !strings.Contains(messages, defaultHTTP+" is in use: HTTP is served at 127.0.0.1:") {
			t.Errorf("it says %s", messages)
		}
		for _, address := range []string{r.config.Listen.First(), r.config.HTTP.Listen} {
			if worldByAddress[address] != "" {
				t.Errorf("%s and %s both listen at %s", name, worldByAddress[address], address)
			}
			worldByAddress[address] = name
		}
	}
}
