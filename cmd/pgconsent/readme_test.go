package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// readmeSession runs the session of README.md with psql, and compares the output with README.md.
func readmeSession(t *testing.T, access announcement) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	psql, err := exec.LookPath(filepath.Join(pgtest.Binaries().Dir, "psql"))
	if err != nil {
		if psql, err = exec.LookPath("psql"); err != nil {
			t.Fatal("psql is needed for this test: it comes with PostgreSQL")
		}
	}
	type statement struct{ dsn, sql, want string }
	var session []statement
	isInBlock, isInAnswer := false, false
	for _, line := range strings.Split(string(text), "\n") {
		_, ownerCommand, isOwner := strings.Cut(line, `$ psql "$OWNER" -c "`)
		sql, isAgent := strings.CutPrefix(line, "arcive=> ")
		switch {
		case strings.HasPrefix(line, "```"):
			isInBlock, isInAnswer = !isInBlock, false
		case !isInBlock:
		case isOwner:
			isInAnswer = true
			session = append(session, statement{dsn: access.OwnerDSN, sql: strings.TrimSuffix(ownerCommand, `"`)})
		case isAgent:
			isInAnswer = true
			session = append(session, statement{dsn: access.Agents["chat"], sql: sql})
		case isInAnswer:
			session[len(session)-1].want += strings.TrimRight(line, " ") + "\n"
		}
	}
	if len(session) != 4 {
		t.Fatalf("README.md has %d statements in its session, want 4", len(session))
	}
	for _, s := range session {
		cmd := exec.CommandContext(context.Background(), psql, "-X", s.dsn, "-c", s.sql)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
		out, _ := cmd.CombinedOutput()
		var got strings.Builder
		for _, line := range strings.Split(string(out), "\n") {
			got.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		want, printedText := strings.TrimSpace(s.want), strings.TrimSpace(got.String())
		if printedText != want {
			t.Errorf("%s\nprints\n%s\nREADME.md says\n%s", s.sql, printedText, want)
		}
	}
	if _, err := connect(t, access.OwnerDSN).Exec(context.Background(),
		"UPDATE people SET consent_status = 'granted' WHERE name = 'Alice'"); err != nil {
		t.Fatal(err)
	}
}
