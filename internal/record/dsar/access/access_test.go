package access_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/record/dsar/access"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// Whoever asks for a report leaves a record, also where nothing is known of the person; the record does not name one.
func TestEveryRequestIsRecorded(t *testing.T) {
	db := pgtest.Database(t)
	harness.Exec(t, db, "CREATE TABLE notes (id int PRIMARY KEY, who text); INSERT INTO notes VALUES (1, 'ursula')")
	m := harness.Migrate(t, harness.Database{Name: "app", DB: db, SearchPath: []string{"public"},
		Policy: "version: 1\nattributes: {}\ntables: { notes: { rows: [ consent: { subject: who, registry: {} } ] } }\n"}, harness.Auto)
	key, err := audit.NewKey(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	logs := filepath.Join(dir, "reports")
	from := access.Sources{Database: "app", Conn: db.Connect(t, "postgres"), Policy: m.Policy, AuditKey: filepath.Join(dir, "audit.key"),
		Reports: func(audit.Key) (*audit.Log, string, error) {
			log, err := audit.Open(audit.Config{Dir: logs, Mode: audit.Strict, Key: key, Deadline: tier.Patience})
			return log, "reports", err
		}}
	for _, who := range []string{"ursula", "mallory"} {
		report, err := access.Make(t.Context(), from, access.Request{Subject: who, By: "office", Via: "cli", Format: "json"})
		if known := who == "ursula"; known != (err == nil) || !known && !errors.As(err, new(*consent.NotFoundError)) {
			t.Fatalf("the report on %s: %+v %v", who, report, err)
		}
	}
	var found []bool
	if _, err := (audit.VerifyOptions{Key: key}).Read(audit.Folder(logs), func(r audit.Record) error {
		if r.Kind != audit.KindSubjectReport {
			return nil
		}
		var made audit.SubjectReport
		if err := json.Unmarshal(r.Line, &made); err != nil {
			return err
		}
		if found = append(found, made.Found); made.By != "office" || made.Database != "app" || made.Found != (made.About != "") {
			t.Errorf("recorded is %+v", made)
		}
		if text := string(r.Line); strings.Contains(text, "ursula") || strings.Contains(text, "mallory") {
			t.Errorf("a record names a person: %s", text)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || !found[0] || found[1] {
		t.Errorf("of one report and one that nobody could have there are records with found %v", found)
	}
}
