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

// installDSAR makes a protected database with a registry of consents, and its configuration.
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

// installDSARIn makes it in a database, and leaves it there.
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
	const odd = `'x"; DROP TABLE interactions; {"$ne": 1}<script>'`
	runSteps(t, i.config, []commandStep{
		{"consent grant ada --stream TEMPORARY --reason '<b>help</b>'", exitOK, "given"},
		{"consent grant bob --stream TEMPORARY", exitOK, "given"},
		{"consent grant " + odd + " --stream TEMPORARY", exitOK, "given"},
	})
	checkDSARPage(t, i)
	p, address := i.serving(t)
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
		{"dsar --subject " + odd, exitOK, "rows        0 in public.interactions"},
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
	if left, _ := filepath.Glob(filepath.Join(dir, ".pgconsent-*")); len(left) > 0 {
		t.Errorf("%v is left", left)
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
	// The count and the turns may have included rows of hers; what found nothing and what is about the weather did not.
	var seen []string
	for _, x := range r.Retrievals.List {
		for _, table := range x.Tables {
			seen = append(seen, table.Table)
		}
	}
	if !slices.Contains(seen, "public.turns") || len(r.Recipients) != 1 || r.Recipients[0].Agent != "chat" ||
		r.Retrievals.Exact+r.Retrievals.Possible != 3 {
		t.Errorf("%+v", r.Retrievals)
	}

	out, _, code = call(t, "", "dsar", "--subject", "ada", "--data", "--json", "-c", i.config)
	if code != exitOK || !strings.Contains(out, "marker-ada-one") || !strings.Contains(out, "marker-ada-turn") || strings.Contains(out, "marker-bob") {
		t.Errorf("%d %s", code, out)
	}

	// The audit says who asked, for whom and when, without the answer and without the name of the person.
	var made []audit.SubjectReport
	if _, err := audit.Walk(reports, func(rec audit.Record) error {
		if rec.Kind == audit.KindRecovery { // the first report was made before there was a key, and the log had no anchor
			return nil
		}
		var m audit.SubjectReport
		err := json.Unmarshal(rec.Line, &m)
		if regexp.MustCompile(`\bada\b`).Match(rec.Line) || time.Since(rec.Time) > time.Hour {
			t.Errorf("%s", rec.Line)
		}
		made = append(made, m)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(made) != 8 || made[1].SubjectKnown || made[1].Subject != "" || made[5].RequestedBy != "officer" ||
		made[5].Subject != made[7].Subject || made[5].Subject == made[2].Subject || !made[7].HasCopy || made[5].Format != "html" {
		t.Errorf("%+v", made)
	}

	// A withdrawal does not take the report away.
	runSteps(t, i.config, []commandStep{
		{"consent revoke ada", exitOK, "withdrawn"},
		{"dsar --subject ada", exitOK, "No consent is active: TEMPORARY withdrawn since"},
	})
	// A log that fails verification is reported, and the report is given.
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
	// Erased: as if there had never been anybody.
	i.exec(t, "DELETE FROM turns; DELETE FROM interactions")
	_, never, _ := call(t, "", "dsar", "--subject", "nobody", "-c", i.config)
	runSteps(t, i.config, []commandStep{{"consent erase ada --yes", exitOK, "erased"}})
	if _, erased, code := call(t, "", "dsar", "--subject", "ada", "-c", i.config); code != exitError || erased != never {
		t.Errorf("%d %s, but of nobody %s", code, erased, never)
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
	same := func(text string) string {
		text = regexp.MustCompile(`[0-9-]{10} [0-9:]{8} UTC`).ReplaceAllString(text, "TIME")
		return regexp.MustCompile(` in .*audit-reports`).ReplaceAllString(text, " in audit-reports")
	}
	if code != exitOK || same(got) != same(want) {
		t.Errorf("pgconsent %s\n%s%s\ndocs/howto/dsar.md says\n%s", command, got, stderr, want)
	}
}
