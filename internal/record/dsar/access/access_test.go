package access_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/record/dsar/access"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// Each request for a report is recorded, even if nothing is known of the person. The record does not name the person.
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
	from := access.ReportSources{Database: "app", Conn: db.Connect(t, "postgres"), Policy: m.Policy, AuditKey: filepath.Join(dir, "audit.key"),
		OpenReportLog: func(audit.Key) (*audit.Log, string, error) {
			log, err := audit.Open(audit.Config{Dir: logs, Mode: audit.ModeStrict, Key: key, ReleaseTimeout: tier.Patience})
			return log, "reports", err
		}}
	for _, subjectID := range []string{"ursula", "mallory"} {
		report, err := access.MakeReport(t.Context(), from,
			access.ReportRequest{Subject: subjectID, RequestedBy: "office", Interface: "cli", Format: "json"})
		if isKnown := subjectID == "ursula"; isKnown != (err == nil) || !isKnown && !errors.As(err, new(*consent.NotFoundError)) {
			t.Fatalf("the report on %s: %+v %v", subjectID, report, err)
		}
	}
	var found []bool
	if _, err := (audit.VerifyOptions{Key: key}).Read(audit.Folder(logs), func(r audit.Record) error {
		if r.Kind != audit.KindSubjectReport {
			return nil
		}
		var reportRecord audit.SubjectReport
		if err := json.Unmarshal(r.Line, &reportRecord); err != nil {
			return err
		}
		if found = append(found, reportRecord.SubjectKnown); reportRecord.RequestedBy != "office" || reportRecord.Database != "app" ||
			reportRecord.SubjectKnown != (reportRecord.Subject != "") {
			t.Errorf("recorded is %+v", reportRecord)
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

// If consents are in the application's own tables, the report contains what these say, as the policy reads them.
func TestConsentsOfTheApplication(t *testing.T) {
	db := pgtest.Database(t)
	harness.Exec(t, db, `CREATE TABLE people (id int PRIMARY KEY, consent text, until timestamptz);
INSERT INTO people VALUES (1, 'granted', NULL), (2, 'pending', NULL),
  (3, 'granted', '2030-01-01T00:00:00Z'), (4, 'granted', '2020-01-01T00:00:00Z'), (5, NULL, NULL);
CREATE TABLE notes (id int PRIMARY KEY, about int REFERENCES people);
INSERT INTO notes SELECT id, id FROM people;
CREATE TABLE agreed (id int PRIMARY KEY, who text, grantee text, scope text, revoked_at timestamptz);
INSERT INTO agreed VALUES (1, '1', 'vet', '*', NULL), (2, '2', 'vet', '*', '2025-01-01T00:00:00Z'), (3, 'ann', 'vet', 'rex', NULL);
CREATE TABLE pets (id text PRIMARY KEY, owner text)`)
	m := harness.Migrate(t, harness.Database{Name: "app", DB: db, SearchPath: []string{"public"}, Policy: `version: 1
attributes: { entity: { type: text, source: credential } }
tables:
  notes: { rows: [ consent: { every: [ people: { id: about } ], status: consent, is: granted, expires: until } ] }
  pets:
    rows:
      - consent:
          subject: owner
          record: { table: agreed, grantor: who, grantee: { column: grantee, to: entity }, scope: { column: scope, is: [id], all: "*" }, revoked: revoked_at }
`}, harness.Auto)
	from := access.ReportSources{Database: "app", Conn: db.Connect(t, "postgres"), Policy: m.Policy}
	for subjectID, want := range map[string]string{
		"1":   "Consent is active: public.people says consent granted; public.agreed has a record to vet.",
		"2":   "No consent is active: public.people says consent pending; public.agreed has a record that is not in force to vet.",
		"3":   "Consent is active: public.people says consent granted until 2030-01-01 00:00:00 UTC.",
		"4":   "No consent is active: public.people says consent granted until 2020-01-01 00:00:00 UTC.",
		"5":   "No consent is active: public.people says consent NULL.",
		"ann": "Consent is active: public.agreed has a record to vet about rex.",
	} {
		r, err := access.MakeReport(t.Context(), from, access.ReportRequest{Subject: subjectID, RequestedBy: "office", Interface: "cli"})
		if err != nil {
			t.Errorf("%s: %v", subjectID, err)
			continue
		}
		if r.ConsentState != want || r.Active != strings.HasPrefix(want, "Consent is active") ||
			len(r.LawfulBasis) != len(r.Retention) || len(r.LawfulBasis) == 0 {
			t.Errorf("%s: %s, want %s: %+v", subjectID, r.ConsentState, want, r.LawfulBasis)
		}
		var page, document bytes.Buffer
		if err := errors.Join(r.WriteHTML(&page), r.WriteJSON(&document)); err != nil ||
			!strings.Contains(page.String(), "public.") {
			t.Errorf("%s: %v", subjectID, err)
		}
		schema, err := jsonschema.NewCompiler().Compile("../../../../docs/schema/dsar.json")
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(&document)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v", subjectID, err)
		}
	}
}
