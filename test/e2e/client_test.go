package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// client is a real client with one open connection. If the client caches prepared statements, the same text runs as the
// same prepared statement.
type client interface {
	// rows returns the first column of the answer, or the SQLSTATE of the error.
	rows(sql string) (values []string, code string)
}

// forEachClient runs a test with each client.
func forEachClient(t *testing.T, in *instance, test func(t *testing.T, agent, owner client)) {
	t.Run("pgx", func(t *testing.T) {
		test(t, &pgxClient{t: t, conn: in.connectPgx(t, "caregiver")}, &pgxClient{t: t, conn: in.ownerConn(t)})
	})
	t.Run("psql", func(t *testing.T) {
		test(t, newPsql(t, in.dsn("caregiver", agentPassword)), newPsql(t, in.ownerDSN()))
	})
}

// pgxClient uses the extended protocol with cached, named prepared statements and binary results.
type pgxClient struct {
	t    testing.TB
	conn *pgx.Conn
}

func (c *pgxClient) rows(sql string) ([]string, string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	r, err := c.conn.Query(ctx, sql)
	if err != nil {
		return nil, codeOf(err)
	}
	defer r.Close()
	var list []string
	for r.Next() {
		values, err := r.Values()
		if err != nil {
			return nil, codeOf(err)
		}
		list = append(list, valueText(values[0]))
	}
	return list, codeOf(r.Err())
}

func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case [16]byte:
		return fmt.Sprintf("%x-%x-%x-%x-%x", v[0:4], v[4:6], v[6:8], v[8:10], v[10:16])
	case bool:
		if v {
			return "t"
		}
		return "f"
	default:
		return fmt.Sprint(v)
	}
}

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return err.Error()
}

// psql is one psql process; it speaks the simple protocol.
type psql struct {
	t   testing.TB
	in  io.WriteCloser
	out *bufio.Scanner
	n   int
}

func newPsql(t testing.TB, dsn string) *psql {
	t.Helper()
	cmd := exec.Command("psql", "-X", "-q", "-A", "-t", "-v", "VERBOSITY=sqlstate", dsn)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PSQLRC=/dev/null")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatalf("psql is needed for these tests: %v", err)
	}
	w.Close()
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
		out.Close()
	})
	s := bufio.NewScanner(out)
	s.Buffer(make([]byte, 1<<20), 64<<20)
	return &psql{t: t, in: in, out: s}
}

func (c *psql) rows(sql string) ([]string, string) {
	c.t.Helper()
	c.n++
	endMarker := fmt.Sprintf("--end %d--", c.n)
	if _, err := fmt.Fprintf(c.in, "%s\n;\n\\echo '%s'\n", strings.TrimSuffix(sql, ";"), endMarker); err != nil {
		c.t.Fatal(err)
	}
	var list []string
	code := ""
	for c.out.Scan() {
		line := c.out.Text()
		if line == endMarker {
			return list, code
		}
		if errorLine, ok := strings.CutPrefix(line, "ERROR:  "); ok {
			code = errorLine
			continue
		}
		if strings.HasPrefix(line, "NOTICE:  ") { // a notice is not a row of the answer
			continue
		}
		firstColumn, _, _ := strings.Cut(line, "|")
		list = append(list, firstColumn)
	}
	c.t.Fatalf("psql ended: %v", c.out.Err())
	return nil, ""
}

// oneValue returns the only value of an answer.
func oneValue(t testing.TB, c client, sql string) string {
	t.Helper()
	values, code := c.rows(sql)
	if code != "" {
		t.Fatalf("%s: SQLSTATE %s", harness.OneLine(sql), code)
	}
	if len(values) != 1 {
		t.Fatalf("%s: %d rows, want one", harness.OneLine(sql), len(values))
	}
	return values[0]
}

// wantRefused checks that a statement is refused with this SQLSTATE.
func wantRefused(t testing.TB, c client, sql, want string) {
	t.Helper()
	if values, code := c.rows(sql); code != want {
		t.Errorf("%s: SQLSTATE %q and %d rows, want %s", harness.OneLine(sql), code, len(values), want)
	}
}

// wantDone runs a statement that must succeed.
func wantDone(t testing.TB, c client, sql string) {
	t.Helper()
	if _, code := c.rows(sql); code != "" {
		t.Fatalf("%s: SQLSTATE %s", harness.OneLine(sql), code)
	}
}
