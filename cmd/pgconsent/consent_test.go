package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/tier"
)

// installConsent makes a database with a consent registry, and a configuration for it.
func installConsent(t *testing.T) (config string, db *pgtest.DB) {
	t.Helper()
	db = pgtest.Database(t)
	conn := db.Connect(t, "postgres")
	if _, err := conn.Exec(t.Context(), "CREATE TABLE notes (id int PRIMARY KEY, person text)"); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(t.Context())
	dir := t.TempDir()
	config = filepath.Join(dir, "pgconsent.yaml")
	for name, text := range map[string]string{
		"policy.yaml": "version: 1\ntables: { notes: { rows: [ { open: true } ] } }\n",
		"pgconsent.yaml": fmt.Sprintf(
			"version: 1\nupstream: { host: %s, port: %d }\ndatabases:\n  app: { name: %s, policy: policy.yaml, "+
				"owners: [postgres] }\nagents: { ada: { database: app }, chat: { database: app }, idle: { "+
				"database: app } }\nconsent: { controller: Example GmbH }\n", pgtest.SocketDir(), pgtest.Port(), db.Name),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, agent := range []string{"ada", "chat"} {
		if _, stderr, code := call(t, "", "agent", "add", agent, "-c", config); code != exitOK {
			t.Fatal(stderr)
		}
	}
	if _, stderr, code := call(t, "", "migrate", "-c", config); code != exitOK || !strings.Contains(stderr, "keep a copy") {
		t.Fatal(stderr)
	}
	t.Cleanup(func() {
		if _, stderr, code := call(t, "", "migrate", "--down", "--discard-consent", "-c", config); code != exitOK {
			t.Error(stderr)
		}
	})
	return config, db
}

// commandStep is a command with its expected exit code and output.
type commandStep struct {
	args string
	code int
	out  string // expected in stdout, or in stderr if the command fails
}

func runSteps(t *testing.T, config string, script []commandStep) {
	t.Helper()
	for _, p := range script {
		args := append(fields(p.args), "-c", config)
		out, stderr, code := call(t, "", args...)
		text := out
		if p.code != exitOK {
			text = stderr
		}
		if code != p.code || !strings.Contains(text, p.out) {
			t.Errorf("%s\ncode %d, want %d\n%s%s\nwant: %s", p.args, code, p.code, out, stderr, p.out)
		}
	}
}

// fields splits a command line into arguments; single quotes keep words in one argument.
func fields(line string) []string {
	var out []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}

// The command finds a superuser's change of the registry. Until it is repaired nothing can be granted, but a withdrawal
// is recorded. seeds/001:188-190.
func TestAuditVerifyOfTheRegistry(t *testing.T) {
	tier.All(t)
	config, db := installConsent(t)
	runSteps(t, config, []commandStep{
		{"audit verify", exitOK, "consent registry of app: 0 records hold; anchored up to 0"},
		{"consent grant ada --stream TEMPORARY", exitOK, "record 1"},
		{"consent grant bob --stream TEMPORARY", exitOK, "record 2"},
		{"consent revoke bob", exitOK, "record 3"},
		{"audit verify", exitOK, "3 records hold; anchored up to 3"},
	})
	conn := db.Connect(t, "postgres")
	for _, sql := range []string{
		"UPDATE pgconsent.consent_record SET state = 'given'", "DELETE FROM pgconsent.consent_record", "TRUNCATE pgconsent.consent_record",
		"UPDATE pgconsent.subject SET subject = 'eve' WHERE subject = 'bob'", "DELETE FROM pgconsent.subject", "TRUNCATE pgconsent.consent_registry",
	} {
		if _, err := conn.Exec(t.Context(), sql); err == nil || (!strings.Contains(err.Error(), "42501") && !strings.Contains(err.Error(), "0A000")) {
			t.Errorf("%s: %v", sql, err)
		}
	}
	for _, sql := range []string{
		"ALTER TABLE pgconsent.consent_record DISABLE TRIGGER USER", "DELETE FROM pgconsent.consent_record WHERE number = 3",
		"UPDATE pgconsent.consent_current SET state = 'given', categories = '{ESSENTIAL}', number = 2 WHERE subject = 'bob'",
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	out, _, code := call(t, "", "audit", "verify", "-c", config)
	for _, want := range []string{"TAMPERED WITH",
		"trigger pgconsent_refuse on consent_record is not as migrate installs it", "the records after 2, up to 3, which was acknowledged, are missing"} {
		if code != exitError || !strings.Contains(out, want) {
			t.Errorf("code %d, no %q in\n%s", code, want, out)
		}
	}
	runSteps(t, config, []commandStep{
		{"consent grant eve --stream TEMPORARY", exitError, "ConsentTamperedError"},
		{"consent revoke ada", exitOK, "ada: withdrawn"},
		{"audit verify --json", exitError, ""},
	})
	out, _, _ = call(t, "", "audit", "verify", "--json", "-c", config)
	var found struct {
		Sound      bool
		Registries []struct{ Findings []string }
	}
	if err := json.Unmarshal([]byte(out), &found); err != nil || found.Sound || len(found.Registries) != 1 || len(found.Registries[0].Findings) < 2 {
		t.Errorf("%v %s", err, out)
	}
}

// seeds/001:200.
func TestConsentCommands(t *testing.T) {
	config, db := installConsent(t)
	const oddSubject = `'x"; DROP TABLE notes; {"$ne": 1}'`
	runSteps(t, config, []commandStep{
		{"consent status ada", exitError, "ConsentNotFoundError: there is no consent of this subject"},
		{"consent revoke ada", exitError, "ConsentNotFoundError"},
		{"consent grant ada", exitUsage, "to what does the subject consent?"},
		{"consent grant ada --stream PARTNER", exitError, "ConsentValidationError: there is no stream"},
		{"consent grant ada --stream TEMPORARY --category BEHAVIORAL", exitError,
			"ConsentValidationError: category BEHAVIORAL is not one of the stream TEMPORARY"},
		{"consent interaction ada", exitOK, "ada: given TEMPORARY (ESSENTIAL) until 20"},
		{"consent upgrade ada --reason 'we work together'", exitOK, "partnership asked for"},
		{"consent upgrade ada", exitOK, "it was so before"},
		{"consent pending", exitOK, "ESSENTIAL, BEHAVIORAL, IMPROVEMENT"},
		// The decider must be an agent that could also decide over HTTP.
		{"consent decide ada TASK_COMPLETE --agent nobody", exitUsage, `there is no agent "nobody" in the configuration: it has ada, chat, idle`},
		{"consent decide ada TASK_COMPLETE --agent idle", exitError, "agent idle cannot log in, and so cannot decide"},
		{"agent disable chat", exitOK, ""},
		{"consent decide ada TASK_COMPLETE --agent chat", exitError, "agent chat cannot log in"},
		{"agent add chat", exitOK, ""},
		{"consent decide ada TASK_COMPLETE --agent chat --database other", exitUsage, "agent chat is one of database app"},
		{"consent decide ada MAYBE --agent chat", exitError, "ConsentValidationError: there is no decision"},
		{"consent decide ada TASK_COMPLETE --agent ada", exitError, "ConsentForbiddenError: a party that asks for a partnership cannot decide about it"},
		{"consent decide ada DEFER --agent chat", exitOK, "partnership asked for"},
		{"consent decide ada TASK_COMPLETE --agent chat", exitOK, "ada: given PARTNERED (ESSENTIAL, BEHAVIORAL, IMPROVEMENT); record 4"},
		{"consent decide ada TASK_COMPLETE --agent chat", exitError, "ConsentValidationError: no partnership is requested"},
		{"consent degrade ada --to PARTNERED", exitError, "ConsentValidationError: a relationship is degraded to"},
		{"consent degrade ada --to ANONYMOUS", exitOK, "given ANONYMOUS (STATISTICAL)"},
		{"consent degrade ada --to TEMPORARY", exitError, "ConsentValidationError: ANONYMOUS cannot become TEMPORARY"},
		{"consent status ada", exitOK, "decay        kept, day 0 since"},
		{"consent revoke ada --request once", exitOK, "ada: withdrawn ANONYMOUS; record 6"},
		{"consent revoke ada --request once", exitOK, "record 6, made before"},
		{"consent grant ada --stream TEMPORARY --request once", exitError, "ConsentConflictError"},
		{"consent revoke ada", exitOK, "it was so before"},
		{"consent history ada", exitOK, "5       20"},
		{"consent grant " + oddSubject + " --stream ANONYMOUS", exitOK, "given ANONYMOUS"},
		{"consent revoke " + oddSubject + " --controller legal --reason 'court order'", exitOK, "revoked ANONYMOUS"},
		{"consent refuse eve", exitOK, "eve: refused"},
		{"consent interaction eve", exitOK, "eve: refused; it was so before"},
		{"consent grant dog:bella --grantee si:vet --scope ctx:bella_health --guardian human:sean", exitError, "ConsentForbiddenError: this is not a guardian"},
		{"consent guardian add dog:bella --guardian human:sean", exitOK, "human:sean speaks for dog:bella"},
		{"consent grant dog:bella --grantee si:vet --scope ctx:bella_health --guardian human:sean --for 720h",
			exitOK, "dog:bella: given to si:vet about ctx:bella_health until"},
		{"consent guardian remove dog:bella --guardian human:sean", exitOK, "does not speak"},
		{"consent revoke dog:bella --grantee si:vet --scope ctx:bella_health --guardian human:sean", exitError, "ConsentForbiddenError"},
		{"consent revoke dog:bella --grantee si:vet --scope ctx:bella_health", exitOK, "withdrawn"},
		{"consent grant ada --grantee '' --purpose care", exitUsage, "--grantee is empty"},
		{"consent grant ada --grantee si:vet --scope '' --purpose care", exitUsage, "--scope is empty"},
		{"consent revoke ada --grantee=", exitUsage, "--grantee is empty"},
		{"audit tail --subject ''", exitUsage, "--subject is empty"},
		{"audit export --subject ''", exitUsage, "--subject is empty"},
		{"consent status -x", exitUsage, "comes after --"},
		{"consent erase ada", exitUsage, "cannot be undone"},
		{"consent erase ada --yes", exitOK, "erased; record"},
		{"consent status ada", exitError, "ConsentNotFoundError"},
		{"consent erase ada --yes", exitError, "ConsentNotFoundError"},
		{"consent grant 'a\x01b' --stream TEMPORARY", exitError, "control character"},
		{"consent grant '\xff' --stream TEMPORARY", exitUsage, "not UTF-8"},
		{"migrate --down", exitError, "the database holds consent records"},
	})
	out, stderr, code := call(t, "", "consent", "history", "dog:bella", "--json", "-c", config)
	var history []struct {
		Event, Grantee, Scope, Grantor, Via string
		By                                  struct{ Role, ID string }
	}
	if err := json.Unmarshal([]byte(out), &history); err != nil || code != exitOK || len(history) != 4 {
		t.Fatalf("%v %s %s", err, out, stderr)
	}
	if h := history[1]; h.Event != "given" || h.Grantee != "si:vet" || h.Scope != "ctx:bella_health" ||
		h.Grantor != "human:sean" || h.By.Role != "guardian" || h.Via != "cli" {
		t.Errorf("%+v", h)
	}
	_, stderr, code = call(t, "", "consent", "status", "nobody", "--json", "-c", config)
	var errorBody struct{ Name, SQLState string }
	if err := json.Unmarshal([]byte(stderr), &errorBody); err != nil || code != exitError ||
		errorBody.Name != "ConsentNotFoundError" || errorBody.SQLState != "PC404" {
		t.Errorf("%d %s", code, stderr)
	}
	var n int
	conn := db.Connect(t, "postgres")
	if err := conn.QueryRow(context.Background(), "SELECT count(*) FROM notes").Scan(&n); err != nil {
		t.Errorf("a subject's id was run: %v", err)
	}
	// If some keys cannot be wrapped with the new key, the command reports an error, and the next call continues.
	for _, c := range []struct {
		alterSQL string
		nextStep commandStep
	}{
		{"DISABLE TRIGGER pgconsent_refuse", commandStep{"consent rotate-key", exitError, "database app: the consent registry was tampered with"}},
		{"ENABLE ALWAYS TRIGGER pgconsent_refuse", commandStep{"consent rotate-key", exitOK, "are wrapped with key 2"}},
	} {
		if _, err := conn.Exec(t.Context(), "ALTER TABLE pgconsent.consent_record "+c.alterSQL); err != nil {
			t.Fatal(err)
		}
		runSteps(t, config, []commandStep{c.nextStep})
	}
}
