package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/record/dsar"
	"github.com/pgconsent/pgconsent/test/tier"
)

const reportedSchema = `
CREATE TABLE interactions (id int PRIMARY KEY, user_id text NOT NULL, said text);
CREATE TABLE turns (id int PRIMARY KEY, interaction int NOT NULL REFERENCES interactions, said text);
CREATE TABLE weather (day date PRIMARY KEY, rain int);
INSERT INTO interactions VALUES (1, 'ada', 'marker-ada-one'), (2, 'ada', 'marker-ada-two'), (3, 'bob', 'marker-bob');
INSERT INTO turns VALUES (10, 1, 'marker-ada-turn'), (11, 3, 'marker-bob-turn')`

const reportedPolicy = `version: 1
tables:
  interactions: { audit: { keys: true }, rows: [ { consent: { subject: user_id, registry: { category: ESSENTIAL } } } ] }
  turns: { rows: [ { visible: { interactions: { id: interaction } } } ] }
  weather: { rows: [ { open: true } ] }
`

// installDSAR makes a protected database with a consent registry, and its configuration.
func installDSAR(t *testing.T) *installation {
	t.Helper()
	i := installDSARIn(t, pgtest.Database(t))
	t.Cleanup(func() {
		if _, stderr, code := call(t, "", "migrate", "--down", "--discard-consent", "-c", i.config); code != exitOK {
			t.Errorf("migrate --down: %s", stderr)
		}
		i.exec(t, "DROP OWNED BY app_owner CASCADE; ALTER DATABASE "+i.db.Name+" OWNER TO postgres; DROP ROLE app_owner")
	})
	return i
}

// installDSARIn does the same in an existing database, and does not delete it.
func installDSARIn(t *testing.T, db *pgtest.DB) *installation {
	t.Helper()
	i := &installation{db: db}
	i.exec(t, `CREATE ROLE app_owner LOGIN CREATEROLE PASSWORD 'secret'`)
	i.exec(t, "ALTER DATABASE "+i.db.Name+
		" OWNER TO app_owner; ALTER SCHEMA public OWNER TO app_owner; SET ROLE app_owner; "+reportedSchema+"; RESET ROLE")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"policy.yaml": reportedPolicy, "pw": "secret\n",
		"pgconsent.yaml": fmt.Sprintf(`version: 1
listen: 127.0.0.1:0
http: { listen: "off" }
upstream: { host: 127.0.0.1, port: %d }
databases: { app: { name: %s, policy: policy.yaml, owners: [app_owner], secrets: { agent: pw, control: pw, migrate: pw } } }
agents: { chat: { database: app } }
consent: { controller: Example GmbH }
`, db.Port, i.db.Name),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	i.config = filepath.Join(dir, "pgconsent.yaml")
	if _, stderr, code := call(t, "", "migrate", "-c", i.config); code != exitOK {
		t.Fatalf("migrate: %s", stderr)
	}
	if _, stderr, code := call(t, "", "agent", "add", "chat", "--password-file", filepath.Join(dir, "pw"), "-c", i.config); code != exitOK {
		t.Fatalf("agent add: %s", stderr)
	}
	return i
}

// seeds/001:141-143, 146, 202.
func TestDSAR(t *testing.T) {
	tier.All(t)
	i := installDSAR(t)
	dir := filepath.Dir(i.config)
	reports := filepath.Join(dir, "audit-reports")
	const oddSubject = `'x"; DROP TABLE interactions; {"$ne": 1}<script>'`
	runSteps(t, i.config, []commandStep{
		{"consent grant ada --stream TEMPORARY --reason '<b>help</b>'", exitOK, "given"},
		{"consent grant bob --stream TEMPORARY", exitOK, "given"},
		{"consent grant " + oddSubject + " --stream TEMPORARY", exitOK, "given"},
	})
	checkDSARPage(t, i)
	p, address := i.startServe(t)
	agent := connect(t, i.dsn("chat", address))
	if n := queryInt(t, agent, "SELECT count(*) FROM (SELECT id, said FROM interactions) AS x"); n != 3 {
		t.Fatalf("the agent sees %d interactions", n)
	}
	for _, sql := range []string{"SELECT id, said FROM interactions WHERE id = 1", "SELECT said FROM turns",
		"SELECT id FROM interactions WHERE id = 99", "SELECT rain FROM weather"} {
		rows, err := agent.Query(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pgx.CollectRows(rows, pgx.RowToMap); err != nil {
			t.Fatal(err)
		}
	}
	_ = agent.Close(t.Context())
	p.signal(t, syscall.SIGTERM)
	p.awaitEnd(t)

	page := filepath.Join(dir, "ada.html")
	runSteps(t, i.config, []commandStep{
		{"dsar", exitUsage, "--subject"},
		{"dsar --subject ada --database other", exitUsage, "there is no database"},
		{"dsar --subject ada --format pdf", exitUsage, "--format"},
		{"dsar --subject ada --out ada", exitUsage, "ends in neither"},
		{"dsar --subject ada --out /nowhere/ada.html", exitUsage, "there is no folder"},
		{"dsar --subject ada --out " + dir + "/audit.html --format html --json --retrievals -1", exitUsage, "--retrievals"},
		{"dsar --subject nobody", exitError, "ConsentNotFoundError: there is no consent of this subject"},
		{"dsar --subject 'a\x01b'", exitError, "ConsentValidationError"},
		{"dsar --subject '\xff'", exitUsage, "not UTF-8"},
		{"dsar --subject " + oddSubject, exitOK, "rows        0 in public.interactions"},
		{"dsar --subject ada", exitOK, "rows        2 in public.interactions"},
		{"dsar --subject ada", exitOK, "recipient   chat: "},
		{"dsar --subject ada --by officer --contact privacy@example.org --out " + page, exitOK, "written to " + page},
		{"consent history ada", exitOK, "reported"},
	})
	info, err := os.Stat(page)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "&lt;b&gt;help&lt;/b&gt;") ||
		strings.Contains(string(text), "<b>") || strings.Contains(string(text), "marker-") {
		t.Errorf("%v %s", err, text)
	}
	if leftFiles, _ := filepath.Glob(filepath.Join(dir, ".pgconsent-*")); len(leftFiles) > 0 {
		t.Errorf("%v is left", leftFiles)
	}

	out, stderr, code := call(t, "", "dsar", "--subject", "ada", "--json", "-c", i.config)
	var r dsar.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitOK {
		t.Fatalf("%v %s %s", err, out, stderr)
	}
	if !r.Active || r.Controller.Name != "Example GmbH" || len(r.History) != 5 || r.Record.Seq == 0 ||
		r.Record.Registry == 0 || strings.Contains(out, "marker-") || strings.Contains(out, "bob") {
		t.Errorf("%s", out)
	}
	if len(r.Data) != 2 || r.Data[0].Rows != 2 || r.Data[0].Keys[1][0] != "2" || r.Data[1].Table != "public.turns" || r.Data[1].Rows != 1 {
		t.Errorf("%+v", r.Data)
	}
	// The count and the query on turns may have read her rows; the query without a result and the one about the weather
	// did not.
	var retrievedTables []string
	for _, x := range r.Retrievals.List {
		for _, table := range x.Tables {
			retrievedTables = append(retrievedTables, table.Table)
		}
	}
	if !slices.Contains(retrievedTables, "public.turns") || len(r.Recipients) != 1 || r.Recipients[0].Agent != "chat" ||
		r.Retrievals.Exact+r.Retrievals.Possible != 3 {
		t.Errorf("%+v", r.Retrievals)
	}

	out, _, code = call(t, "", "dsar", "--subject", "ada", "--data", "--json", "-c", i.config)
	if code != exitOK || !strings.Contains(out, "marker-ada-one") || !strings.Contains(out, "marker-ada-turn") || strings.Contains(out, "marker-bob") {
		t.Errorf("%d %s", code, out)
	}

	// The audit records who asked for a report, about whom and when. It has neither the content of the report nor the name
	// of the person.
	var recordedReports []audit.SubjectReport
	if _, err := audit.Walk(reports, func(rec audit.Record) error {
		if rec.Kind == audit.KindRecovery { // the first report was made before there was a key, so the log was continued without an anchor
			return nil
		}
		var m audit.SubjectReport
		err := json.Unmarshal(rec.Line, &m)
		if regexp.MustCompile(`\bada\b`).Match(rec.Line) || time.Since(rec.Time) > time.Hour {
			t.Errorf("%s", rec.Line)
		}
		recordedReports = append(recordedReports, m)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(recordedReports) != 8 || recordedReports[1].SubjectKnown || recordedReports[1].Subject != "" ||
		recordedReports[5].RequestedBy != "officer" ||
		recordedReports[5].Subject != recordedReports[7].Subject || recordedReports[5].Subject == recordedReports[2].Subject ||
		!recordedReports[7].HasCopy || recordedReports[5].Format != "html" {
		t.Errorf("%+v", recordedReports)
	}

	// After a withdrawal, the person can still get a report.
	runSteps(t, i.config, []commandStep{
		{"consent revoke ada", exitOK, "withdrawn"},
		{"dsar --subject ada", exitOK, "No consent is active: TEMPORARY withdrawn since"},
	})
	// If a log fails verification, the command says so, and still prints the report.
	segment := filepath.Join(dir, "audit", "audit-000001.jsonl")
	text, err = os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(segment, []byte(strings.Replace(string(text), `"agent":"chat"`, `"agent":"chit"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, stderr, code = call(t, "", "dsar", "--subject", "ada", "-c", i.config)
	if code != exitError || !strings.Contains(stderr, "fails verification") || !strings.Contains(out, "subject") {
		t.Errorf("%d %s %s", code, out, stderr)
	}
	// After an erasure, the report is that of an unknown person.
	i.exec(t, "DELETE FROM turns; DELETE FROM interactions")
	_, unknownOutput, _ := call(t, "", "dsar", "--subject", "nobody", "-c", i.config)
	runSteps(t, i.config, []commandStep{{"consent erase ada --yes", exitOK, "erased"}})
	if _, erasedOutput, code := call(t, "", "dsar", "--subject", "ada", "-c", i.config); code != exitError || erasedOutput != unknownOutput {
		t.Errorf("%d %s, but of nobody %s", code, erasedOutput, unknownOutput)
	}
}

// checkDSARPage compares docs/howto/dsar.md with the output of the command, and with the policy of this test.
func checkDSARPage(t *testing.T, i *installation) {
	t.Helper()
	text, err := os.ReadFile("../../docs/howto/dsar.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "```yaml\n"+reportedPolicy+"```") {
		t.Error("docs/howto/dsar.md has another policy")
	}
	_, session, _ := strings.Cut(string(text), "```console\n$ pgconsent ")
	session, _, _ = strings.Cut(session, "```")
	command, want, _ := strings.Cut(session, "\n")
	got, stderr, code := call(t, "", append(fields(command), "-c", i.config)...)
	normalized := func(text string) string {
		text = regexp.MustCompile(`[0-9-]{10} [0-9:]{8} UTC`).ReplaceAllString(text, "TIME")
		return regexp.MustCompile(` in .*audit-reports`).ReplaceAllString(text, " in audit-reports")
	}
	if code != exitOK || normalized(got) != normalized(want) {
		t.Errorf("pgconsent %s\n%s%s\ndocs/howto/dsar.md says\n%s", command, got, stderr, want)
	}
}
