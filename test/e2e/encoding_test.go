package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	harness "github.com/pgconsent/pgconsent/test/instance"
)

const encodedSchema = `CREATE TABLE notes (id int PRIMARY KEY, user_id int, body text);
INSERT INTO notes VALUES (1, 1, 'Größe'), (2, 1, 'naïve café'), (3, 1, '5 €'), (4, 1, 'Łódź'), (5, 1, 'plain');`

// encodingDatabases is a database behind a proxy, and the same database in PostgreSQL without a proxy.
type encodingDatabases struct {
	agent, owner *pgconn.PgConn
	agentDSN     string // the DSN of the agent
	ownerDSN     string // the DSN of the owner
}

func startEncodingDatabases(t *testing.T) encodingDatabases {
	db, plainDB := pgtest.Database(t), pgtest.Database(t)
	harness.Exec(t, db, encodedSchema+"INSERT INTO notes VALUES (6, 2, 'Москва')")
	harness.Exec(t, plainDB, encodedSchema)
	proxy := harness.Start(t, harness.Auto, harness.Database{Name: "encoded", DB: db, SearchPath: []string{"public"}, Policy: `version: 1
attributes: { user: { type: integer, source: credential } }
tables: { notes: { rows: [ own: { column: user_id, is: user } ], write: { commands: [insert, delete], columns: [id, user_id, body], accept: [conflicts] } } }
`}, map[string]string{"user": "1"})
	return encodingDatabases{proxy.Agent(t, "agent", "encoded"), harness.ConnectSuperuser(t, plainDB), proxy.DSN("agent", "encoded"),
		fmt.Sprintf("host=%s port=%d user=postgres dbname=%s", plainDB.SocketDir, plainDB.Port, plainDB.Name)}
}

// Clients that use libpq without an encoding, or with SQL_ASCII, read and write UTF-8 texts as they do in PostgreSQL.
func TestTextsOfUTF8WithoutAnEncoding(t *testing.T) {
	t.Parallel()
	e := startEncodingDatabases(t)
	psql, _ := pgtest.ClientProgram(t, "psql")
	runPsql := func(dsn string, env []string) string {
		file := filepath.Join(t.TempDir(), "rows")
		cmd := exec.CommandContext(t.Context(), psql, "-X", "-A", "-q", dsn)
		cmd.Env = slices.Concat(slices.DeleteFunc(os.Environ(), func(s string) bool {
			return strings.HasPrefix(s, "LC_") || strings.HasPrefix(s, "LANG") || strings.HasPrefix(s, "PGCLIENTENCODING")
		}), []string{"PSQLRC=/dev/null", "PAGER="}, env)
		cmd.Stdin = strings.NewReader(`TABLE notes ORDER BY id;
SELECT 'Größe' AS "Maß", length('Łódź'), body FROM notes WHERE body LIKE '%ö%' ORDER BY id;
INSERT INTO notes VALUES (10, 1, 'żółw');
SELECT id, length(body), octet_length(body) FROM notes WHERE body = 'żółw';
SELECT body::int FROM notes WHERE id = 1;
SELECT ungewöhnlich FROM notes;
PREPARE "tür" (text) AS SELECT $1 || '!'; EXECUTE "tür" ('ß');
\copy (SELECT * FROM notes ORDER BY id) TO '` + file + `'
DELETE FROM notes WHERE id < 100;
\copy notes FROM '` + file + `'
SET client_encoding = 'SQL_ASCII';
SELECT body FROM notes WHERE id = 3;
\encoding SQL_ASCII
SELECT body FROM notes WHERE body = 'Größe';
SET NAMES 'sql-ascii';
DELETE FROM notes WHERE id = 10 RETURNING body;
`)
		output, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		rows, _ := os.ReadFile(file)
		return string(output) + string(rows)
	}
	for _, env := range [][]string{{"LC_ALL=C"}, {"LC_ALL=C", "PGCLIENTENCODING=SQL_ASCII"}, {"LC_ALL=C.UTF-8"}, {"LC_ALL=C", "PGCLIENTENCODING=sqlascii"}} {
		got, want := runPsql(e.agentDSN, env), runPsql(e.ownerDSN, env)
		if got != want || !strings.Contains(got, "5 €") || strings.Contains(got, "Москва") {
			t.Errorf("%v:\n%s\nwant\n%s", env, got, want)
		}
	}
	// Bytes that are not valid UTF-8 are refused.
	for _, c := range []*pgconn.PgConn{e.agent, e.owner} {
		if a := harness.Ask(c, "SELECT 'Gr\xf6\xdfe'"); a.Code != "22021" {
			t.Errorf("LATIN1 in the text of a statement: %v", a)
		}
	}
}

// Another encoding is refused with a hint that says what to do.
func TestOtherEncodingsAreRefused(t *testing.T) {
	t.Parallel()
	e := startEncodingDatabases(t)
	for _, encoding := range []string{"LATIN1", "WIN1252", "sjis", "no_encoding"} {
		if _, err := harness.Dial(e.agentDSN + "&client_encoding=" + encoding); err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("connected with %s: %v", encoding, err)
		}
		a := harness.Ask(e.agent, "SET client_encoding = '"+encoding+"'")
		if a.Code != "42501" || !strings.Contains(a.Err, "PGCLIENTENCODING=UTF8") {
			t.Errorf("SET to %s: %s", encoding, a.Err)
		}
	}
	if got := oneText(e.agent, "SHOW client_encoding"); got != "UTF8" {
		t.Errorf("client_encoding is %s", got)
	}
}

// COPY with the option ENCODING converts rows as PostgreSQL does, in both directions.
func TestCopyInOtherEncodings(t *testing.T) {
	t.Parallel()
	e := startEncodingDatabases(t)
	out := func(c *pgconn.PgConn, sql string) string {
		var b bytes.Buffer
		if _, err := c.CopyTo(t.Context(), &b, sql); err != nil {
			return sqlstateOf(err)
		}
		return fmt.Sprintf("%q", b.String())
	}
	for _, c := range []struct{ sql, want string }{
		{"COPY notes TO STDOUT (ENCODING 'LATIN1')", "22P05"}, // 5 €
		{"COPY (SELECT * FROM notes WHERE id < 3 ORDER BY id) TO STDOUT (ENCODING 'latin-1')", `"1\t1\tGr\xf6\xdfe\n2\t1\tna\xefve caf\xe9\n"`},
		{"COPY (SELECT * FROM notes WHERE id < 4 ORDER BY id) TO STDOUT (FORMAT csv, ENCODING 'WIN1252')", `"1,1,Gr\xf6\xdfe\n2,1,na\xefve caf\xe9\n3,1,5 \x80\n"`},
		{"COPY (SELECT * FROM notes WHERE id IN (1, 4) ORDER BY id) TO STDOUT (ENCODING 'LATIN2')", `"1\t1\tGr\xf6\xdfe\n4\t1\t\xa3\xf3d\xbc\n"`},
	} {
		if got, want := out(e.agent, c.sql), out(e.owner, c.sql); got != want || got != c.want {
			t.Errorf("%s: %s, want %s and %s", c.sql, got, want, c.want)
		}
	}
	in := func(c *pgconn.PgConn, sql, rows string) string {
		tag, err := c.CopyFrom(t.Context(), strings.NewReader(rows), sql)
		if err != nil {
			return sqlstateOf(err)
		}
		return tag.String()
	}
	for _, c := range []struct{ sql, rows, want string }{
		{"COPY notes (id, user_id, body) FROM STDIN (ENCODING 'LATIN1')", "20\t1\tgr\xfcn\n", "COPY 1"},
		{"COPY notes (id, user_id, body) FROM STDIN (FORMAT csv, ENCODING 'windows-1252')", "21,1,7 \x80\n", "COPY 1"},
		{"COPY notes (id, user_id, body) FROM STDIN (ENCODING 'WIN1252')", "22\t1\t\x81\n", "22P05"},
		{"COPY notes (id, user_id, body) FROM STDIN (ENCODING 'SJIS')", "23\t1\t\x83\\\x83\\\n", "COPY 1"}, // ソソ
		{"COPY notes (id, user_id, body) FROM STDIN", "24\t1\tgr\xfcn\n", "22021"},
	} {
		if got, want := in(e.agent, c.sql, c.rows), in(e.owner, c.sql, c.rows); got != want || got != c.want {
			t.Errorf("%s: %s, want %s and %s", c.sql, got, want, c.want)
		}
	}
	const rows = "SELECT * FROM notes WHERE id >= 20 ORDER BY id"
	if got, want := oneText(e.agent, rows), oneText(e.owner, rows); got != want || !strings.Contains(got, "ソソ") {
		t.Errorf("the rows that came:\n%s\nwant\n%s", got, want)
	}
}

// sqlstateOf returns the SQLSTATE of a server's error, or the text of another error.
func sqlstateOf(err error) string {
	if e, ok := err.(*pgconn.PgError); ok {
		return e.Code
	}
	return err.Error()
}
