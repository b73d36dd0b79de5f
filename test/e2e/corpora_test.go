package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// clientStatement is a statement as a client sends it.
type clientStatement struct {
	line      int
	usesParse bool // sent by Parse, otherwise by Query
	sql       string
}

// clientStatements reads a file of testdata/clients.
func clientStatements(t testing.TB, file, oid string) []clientStatement {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []clientStatement
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		switch {
		case line == "--Q\n" || line == "--P\n":
			out = append(out, clientStatement{line: n + 1, usesParse: line == "--P\n"})
		case len(out) > 0:
			out[len(out)-1].sql += strings.ReplaceAll(line, "{oid}", oid)
		}
	}
	for i := range out {
		out[i].sql = strings.TrimSpace(out[i].sql)
	}
	if len(out) == 0 {
		t.Fatalf("%s holds no statements", file)
	}
	return out
}

// answerShape returns the names and types of the columns of each result, the number of rows, or the error of a
// statement.
func answerShape(t testing.TB, c *pgconn.PgConn, s clientStatement, oid string) (shape string, rows int, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	addResult := func(r *pgconn.ResultReader) {
		for _, f := range r.FieldDescriptions() {
			shape += fmt.Sprintf("%s:%d:%d ", f.Name, f.DataTypeOID, f.TypeModifier)
		}
		shape += "\n"
		for r.NextRow() {
			rows++
		}
	}
	if !s.usesParse {
		m := c.Exec(ctx, s.sql)
		for m.NextResult() {
			addResult(m.ResultReader())
		}
		return shape, rows, m.Close()
	}
	d, err := c.Prepare(ctx, "", s.sql, nil)
	if err != nil {
		return "", 0, err
	}
	parameters := make([][]byte, len(d.ParamOIDs))
	for i, p := range d.ParamOIDs {
		parameters[i] = plausibleValue(p, oid)
	}
	r := c.ExecPrepared(ctx, "", parameters, nil, nil)
	addResult(r)
	_, err = r.Close()
	return shape, rows, err
}

// plausibleValue returns a value for a parameter of a type.
func plausibleValue(typ uint32, oid string) []byte {
	switch typ {
	case 16:
		return []byte("true")
	case 21, 23, 20:
		return []byte("1")
	case 25, 1043, 19:
		return []byte("public")
	case 26, 2205, 2206:
		return []byte(oid)
	case 1009, 1003, 1015:
		return []byte("{public,memories,people,cube}")
	case 1028:
		return []byte("{16,25,1007,3802}")
	}
	return nil
}

// Statements that clients send by themselves are answered, with the same columns as PostgreSQL returns.
func TestStatementsOfClients(t *testing.T) {
	files, err := filepath.Glob("testdata/clients/*.sql")
	if err != nil || len(files) < 7 {
		t.Fatalf("%v %v", files, err)
	}
	in := startForReading(t, options{})
	oids, code := (&pgxClient{t: t, conn: in.ownerConn(t)}).rows("SELECT 'memories'::regclass::oid")
	if code != "" {
		t.Fatal(code)
	}
	for i, file := range files {
		if !tier.IsPicked(i, 2) {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".sql"), func(t *testing.T) {
			agent, owner := in.agent(t), harness.Connect(t, in.ownerDSN())
			agentAnswered, ownerAnswered := 0, 0
			for _, s := range clientStatements(t, file, oids[0]) {
				wantShape, wantRows, wantErr := answerShape(t, owner, s, oids[0])
				shape, rows, err := answerShape(t, agent, s, oids[0])
				if err != nil && codeOf(err) != codeOf(wantErr) {
					t.Errorf("%s:%d: %v (%s)\n%.300s", file, s.line, err, hintOf(err), s.sql)
					continue
				}
				// The agent sees a view, and a view cannot have a column of the pseudo-type anyarray.
				if shape != strings.ReplaceAll(wantShape, ":2277:", ":1009:") {
					t.Errorf("%s:%d: columns\n got %s\nwant %s", file, s.line, shape, wantShape)
				}
				if wantRows > 0 {
					ownerAnswered++
				}
				if rows > 0 {
					agentAnswered++
				}
			}
			if agentAnswered*4 < ownerAnswered*3 {
				t.Errorf("the agent got rows from %d statements, the owner from %d", agentAnswered, ownerAnswered)
			}
			t.Logf("the agent got rows from %d statements, the owner from %d", agentAnswered, ownerAnswered)
		})
	}
	in.requireNoMarker(t)
}

func hintOf(err error) string {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return ""
	}
	return pg.Hint
}
