package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/pgtest"
	"github.com/pgconsent/pgconsent/world"
)

// SYSTEMS.md 3 l: the doctor names missing indexes, and serves without them.
// seeds/002:428-430.
func TestBeheardL_DoctorNamesMissingIndexes(t *testing.T) {
	w, err := world.Get("beheard")
	if err != nil {
		t.Fatal(err)
	}
	text, err := w.File("policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	db := pgtest.Database(t)
	conn := db.Connect(t, "postgres")
	if err := w.Load(t.Context(), conn, nil); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "pgconsent.yaml")
	for name, text := range map[string]string{"policy.yaml": string(text),
		"pgconsent.yaml": fmt.Sprintf("version: 1\nupstream: { host: %s, port: %d }\ndatabases:\n  app: { name: %s, policy: policy.yaml, owners: [postgres] }\n", pgtest.SocketDir(), pgtest.Port(), db.Name)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, errs, code := call(t, "", "migrate", "-c", config); code != done {
		t.Fatal(errs)
	}
	t.Cleanup(func() {
		if _, errs, code := call(t, "", "migrate", "--down", "-c", config); code != done {
			t.Error(errs)
		}
	})
	fixes := []string{
		`CREATE INDEX CONCURRENTLY ON public."UserEvent" ("vesselId");`,
		`CREATE INDEX CONCURRENTLY ON public."ConsentedContent" ("consentActive");`,
		`CREATE INDEX CONCURRENTLY ON public."ConsentRecord" (id) WHERE "revokedAt" IS NULL;`,
	}
	told := func(wanted bool) {
		t.Helper()
		out, errs, _ := call(t, "", "doctor", "-c", config)
		for _, fix := range fixes {
			if strings.Contains(out, "fix: "+fix) != wanted {
				t.Errorf("%s is named: %t; %s%s", fix, !wanted, out, errs)
			}
		}
		for _, line := range strings.Split(out, "\n") {
			if strings.Contains(line, " indexes: ") && strings.HasPrefix(strings.TrimSpace(line), "UNSAFE") {
				t.Errorf("more than a warning: %s", line)
			}
		}
	}
	told(false)
	if _, err := conn.Exec(context.Background(), "DROP INDEX event_vessel, content_active, record_unrevoked"); err != nil {
		t.Fatal(err)
	}
	told(true)
	for _, fix := range fixes {
		if _, err := conn.Exec(context.Background(), fix); err != nil {
			t.Errorf("%s: %v", fix, err)
		}
	}
	told(false)
}
