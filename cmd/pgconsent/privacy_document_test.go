package main

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/tier"
)

// The sessions of docs/reference/privacy.md and docs/reference/generalize.md are run against a demo, and print what the
// pages show. So are the commands in the seed of the world.
// seeds/003:67-84, 107-113, 115-121, 123-126.
func TestPrivacyPageSessions(t *testing.T) {
	tier.All(t)
	demo := launch(t, nil, "demo", "--world", "kernle", "--json", "--dir", t.TempDir(),
		"--listen", pgtest.FreeAddress(t), "--http", pgtest.FreeAddress(t))
	access, _ := demo.ready(t)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	prompt := regexp.MustCompile(`(?m)^(\w+)\$ pgconsent (.*)\n`)
	uuid := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	for _, name := range []string{"privacy", "generalize"} {
		page, err := os.ReadFile("../../docs/reference/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		_, session, _ := strings.Cut(string(page), "```console\n")
		session, _, _ = strings.Cut(session, "```")
		session = regexp.MustCompile(` \\\n +`).ReplaceAllString(session, " ") // joins a command that is on several lines
		lines := prompt.FindAllStringSubmatchIndex(session, -1)
		if len(lines) < 4 {
			t.Fatalf("%s: %d lines", name, len(lines))
		}
		for i, m := range lines {
			suffix, command, end := session[m[2]:m[3]], session[m[4]:m[5]], len(session)
			if i+1 < len(lines) {
				end = lines[i+1][0]
			}
			t.Setenv("PGCONSENT_TOKEN", access.Tokens["agent:"+suffix])
			out, _ := runAPICommand(command, access.HTTP)
			if got, want := uuid.ReplaceAllString(out, "…"), session[m[1]:end]; got != want {
				t.Errorf("%s: %s$ pgconsent %s\n%s\nwant\n%s", name, suffix, command, got, want)
			}
		}
	}
	t.Setenv("PGCONSENT_TOKEN", access.Tokens["agent:ash"])
	t.Run("the text's own", func(t *testing.T) { seedCommands(t, access) })
}

// runAPICommand runs a command against a server, and returns its output and exit code.
func runAPICommand(command, url string) (string, int) {
	var args []string
	for i, part := range strings.Split(command, `"`) {
		if i%2 == 1 {
			args = append(args, part)
		} else {
			args = append(args, strings.Fields(part)...)
		}
	}
	var out strings.Builder
	code := run(append(args, "--url", url), streams{strings.NewReader(""), &out, &out})
	return out.String(), code
}

// seedCommands runs the commands of seeds/003, with "pgconsent privacy add --kind raw" for "kernle raw".
func seedCommands(t *testing.T, access announcement) {
	owner := connect(t, access.OwnerDSN)
	exec := func(sql string) {
		t.Helper()
		if _, err := owner.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	checkCommand := func(command string, want int, parts ...string) string {
		t.Helper()
		out, code := runAPICommand(command, access.HTTP)
		for _, part := range parts {
			if code != want || !strings.Contains(out, part) {
				t.Errorf("pgconsent %s: code %d, no %q in\n%s", command, code, part, out)
			}
		}
		return out
	}
	// Lines 109-113: a statement of a veterinarian may be stored with the consent of the dog's guardian and of the
	// veterinarian.
	const addCommand = `privacy add "Bella has a heart murmur" --kind raw --subject dog:bella ` +
		`--access human:sean si:bella_agent --consent human:sean --source vet:dr_smith`
	checkCommand(strings.Replace(addCommand, "vet:dr_smith", "vet:dr_jones", 1), exitError,
		"PrivacyForbiddenError") // a person who has not consented
	id, _, _ := strings.Cut(checkCommand(addCommand, exitOK,
		"  source      vet:dr_smith\n  about       dog:bella\n  granted to  human:sean, si:bella_agent\n"), ",")
	if n := queryInt(t, owner, `SELECT count(*) FROM raw_entries WHERE id = '`+
		id+`' AND content = 'Bella has a heart murmur' AND subject_ids::jsonb = '["dog:bella"]' AND consent_grants::jsonb = '["human:sean"]'`); n != 1 {
		t.Errorf("%d memories %s", n, id)
	}
	// Lines 116-121.
	checkCommand("context enter ctx:bella_health --role care_agent --participants human:sean si:bella_agent",
		exitOK, "takes part  human:sean, si:bella_agent\n", "new is for  human:sean, si:bella_agent, ctx:bella_health\n", "role        care_agent, which")
	checkCommand("context list", exitOK, "ctx:bella_health, in ash, your own", "you are in it", "ctx:dog_park")
	if out := checkCommand("context show", exitOK, "ctx:bella_health, in ash, your own"); strings.Contains(out, "ctx:dog_park") {
		t.Errorf("another context is shown: %s", out)
	}
	checkCommand(`privacy add "She sleeps well"`, exitOK, "granted to  human:sean, si:bella_agent, ctx:bella_health\n")
	// Lines 124-126.
	grant := "privacy grant " + id + " --to si:new_vet --consent human:sean"
	checkCommand(grant, exitError, "PrivacyForbiddenError") // --consent is evidence only, without effect
	exec(`INSERT INTO consent_records (stack_id, grantor, grantee, scope) VALUES ('ash', 'human:sean', 'si:new_vet', '*')`)
	checkCommand(grant, exitOK, id+" is granted to si:new_vet as well.\n  granted to  human:sean, si:bella_agent, si:new_vet\n")
	exec(`UPDATE raw_entries SET access_grants = '["human:sean", "si:old_agent"]' WHERE id = '` + id + `'`)
	checkCommand("privacy revoke "+id+" --from si:old_agent", exitOK,
		id+" is not granted to si:old_agent any more.\n  granted to  human:sean\n")
	checkCommand("privacy audit --subject dog:bella", exitOK, id, "human:sean", "si:old_agent")
	// Lines 71-79.
	exec(
		`INSERT INTO episodes (id, stack_id, content, source_entity, subject_ids) ` +
			`VALUES ('episode:private_health_incident', 'ash', 'Bella has a heart murmur since last Tuesday', 'vet:dr_smith', '["dog:bella"]')`)
	const noteArgument = `"Generalized from direct care experience. No identifying details — applies to breed, not individual."`
	checkCommand(
		`generalize --source episode:private_health_incident --belief "Heart murmurs in small breeds need exercise monitoring" --access-grants * `+
			`--abstraction-note `+noteArgument, exitOK, "in ash\n  granted to  *\n")
	if n := queryInt(t, owner,
		`SELECT count(*) FROM beliefs b JOIN generalizations g ON g.belief_id = b.id WHERE g.source_id = 'episode:private_health_incident' `+
			`AND b.access_grants::jsonb = '["*"]' AND g.abstraction_note = '`+strings.Trim(noteArgument, `"`)+`'`); n != 1 {
		t.Errorf("%d beliefs", n)
	}
}

// A flag that takes ids may be followed by several ids; an argument that is not an id is the next argument.
func TestListFlagsTakeSeveralIDs(t *testing.T) {
	for contextName, want := range map[string]string{
		"privacy add x --access a:1 b:2 * --reason r": "privacy add x --access a:1 --access b:2 --access * --reason r",
		"context enter ctx:x --participants a:1 b:2":  "context enter ctx:x --participants a:1 --participants b:2",
		"privacy add --subject dog:bella text":        "privacy add --subject dog:bella text",
		"privacy grant --to a:1 episode:1":            "privacy grant --to a:1 episode:1",
		"privacy add --access a:1 -- b:2":             "privacy add --access a:1 -- b:2",
		"generalize --access-grants a:1 * --check":    "generalize --access-grants a:1 --access-grants * --check",
		"consent grant --subject a:1 b:2":             "consent grant --subject a:1 b:2",
	} {
		if got := strings.Join(expandListFlags(strings.Fields(contextName)), " "); got != want {
			t.Errorf("%s: %s, want %s", contextName, got, want)
		}
	}
}
