//go:build unix

package pgcluster

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/test/tier"
)

// A role that is no superuser drops its database though it has it open itself, and though somebody else does, who goes
// after a while; who stays is named.
func TestDropOpenDatabase(t *testing.T) {
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

// A database that somebody has open for a while is dropped once they are gone; who stays is named. A refusal of another
// kind is told at once. The server here is a stand-in that refuses: a real one waits five seconds each time.
func TestDropDatabaseWaitsForOthersToGo(t *testing.T) {
	for _, c := range []struct {
		name, refusal string
		refusals      int
		want          string
	}{
		{"nobody has it open", "", 0, ""},
		{"somebody goes at once", "55006", 1, ""},
		{"somebody goes later", "55006", maxDropAttempts - 1, ""},
		{"somebody stays", "55006", 100, "ERROR: no (SQLSTATE 55006): open for another"},
		{"it is somebody else's", "42501", 100, "ERROR: no (SQLSTATE 42501)"},
	} {
		refusals := c.refusals
		conn := standIn(t, func(sql string) (refusal, value string) {
			switch {
			case !strings.HasPrefix(sql, "DROP DATABASE"):
				return "", "another"
			case refusals == 0:
				return "", ""
			case strings.HasSuffix(sql, "WITH (FORCE)"): // it may not end their sessions
				return "42501", ""
			}
			refusals--
			return c.refusal, ""
		})
		got := ""
		if err := DropDatabase(ctx(t), conn, "theirs"); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if c.refusal == "42501" && refusals != c.refusals-1 {
			t.Errorf("%s: it was tried %d times", c.name, c.refusals-refusals)
		}
	}
}

// standIn connects to a server that answers each text with a refusal's SQLSTATE, or with a value; "": neither.
func standIn(t *testing.T, answer func(sql string) (refusal, value string)) *pgx.Conn {
	t.Helper()
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		b := pgproto3.NewBackend(server, server)
		if _, err := b.ReceiveStartupMessage(); err != nil {
			return
		}
		b.Send(&pgproto3.AuthenticationOk{})
		b.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
		b.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
		for {
			b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
			if b.Flush() != nil {
				return
			}
			m, err := b.Receive()
			if err != nil {
				return
			}
			q, is := m.(*pgproto3.Query)
			if !is { // it says goodbye
				return
			}
			refusal, value := answer(q.String)
			if refusal != "" {
				b.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: refusal, Message: "no"})
				continue
			}
			if value != "" {
				b.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("v"), DataTypeOID: 25}}})
				b.Send(&pgproto3.DataRow{Values: [][]byte{[]byte(value)}})
			}
			b.Send(&pgproto3.CommandComplete{CommandTag: []byte("DONE")})
		}
	}()
	config, err := pgx.ParseConfig("host=127.0.0.1 sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	config.DialFunc = func(context.Context, string, string) (net.Conn, error) { return client, nil }
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(ctx(t), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
