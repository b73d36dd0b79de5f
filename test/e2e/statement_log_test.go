package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/migrations"
)

// statementLog reads the statements that the test server has logged for one database, without those of pgconsent's
// background sessions.
type statementLog struct {
	t           testing.TB
	database    string
	file        *os.File
	partialLine string // the beginning of a line that is not complete yet
}

// periodicSessions are sessions that send statements at intervals.
var periodicSessions = []string{"pgconsent asker", "pgconsent sweep", "pgconsent listener", "pgconsent outbox", "statement log"}

// logStatements makes the server log every statement until the test ends.
func logStatements(t testing.TB, database string) *statementLog {
	t.Helper()
	alterSettings := func(commands ...string) {
		conn, err := pgx.Connect(context.Background(),
			fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres application_name='statement log'", pgtest.SocketDir(), pgtest.Port()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		for _, c := range append(commands, "SELECT pg_catalog.pg_reload_conf()") {
			if _, err := conn.Exec(context.Background(), c); err != nil {
				t.Fatal(err)
			}
		}
	}
	file, err := os.Open(pgtest.LogFile())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	alterSettings("ALTER SYSTEM SET log_statement = 'all'", "ALTER SYSTEM SET log_line_prefix = '|%d|%a|'")
	t.Cleanup(func() {
		file.Close()
		alterSettings("ALTER SYSTEM RESET log_statement", "ALTER SYSTEM RESET log_line_prefix")
	})
	return &statementLog{t: t, database: database, file: file}
}

var (
	statementLine = regexp.MustCompile(`^\|([^|]*)\|([^|]*)\|LOG:  (?:statement|execute [^:]*): (.*)$`)
	randomWord    = regexp.MustCompile(`[0-9A-Fa-f]{16,}|[A-Za-z0-9_-]{40,}`) // keys, signatures and random names
)

// newStatements returns the statements since the last call, in order: their first lines without parameters, and without
// random words.
func (l *statementLog) newStatements() []string {
	l.t.Helper()
	r := bufio.NewReader(l.file)
	var out []string
	for {
		line, err := r.ReadString('\n')
		line = l.partialLine + line
		if l.partialLine = ""; errors.Is(err, io.EOF) {
			l.partialLine = line
			return out
		} else if err != nil {
			l.t.Fatal(err)
		}
		m := statementLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil || m[1] != l.database || strings.HasPrefix(m[2], migrations.ControlName) || slices.Contains(periodicSessions, m[2]) {
			continue
		}
		out = append(out, m[2]+": "+randomWord.ReplaceAllString(m[3], "…"))
	}
}
