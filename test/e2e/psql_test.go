package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// psqlOutputs runs commands in one psql session of the default agent, and returns the output of each.
func psqlOutputs(t *testing.T, in *instance, commands []string) []string {
	t.Helper()
	psql, isSameVersion := pgtest.ClientProgram(t, "psql")
	if !isSameVersion {
		t.Skip("this psql is of another version than the server, whose catalogs it may not know")
	}
	const endMarker = "--next--"
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, psql, "-X", "-A", in.dsn("caregiver", agentPassword))
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "PSQLRC=/dev/null", "PAGER=")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n\\echo "+endMarker+"\n") + "\n\\echo " + endMarker + "\n")
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("psql: %v\n%s", err, output)
	}
	parts := strings.Split(string(output), endMarker+"\n")
	if len(parts) != len(commands)+1 {
		t.Fatalf("%d commands gave %d answers:\n%.2000s", len(commands), len(parts)-1, output)
	}
	return parts[:len(commands)]
}

// hasError tells whether psql printed an error.
func hasError(answer string) bool {
	for line := range strings.Lines(answer) {
		if strings.HasPrefix(line, "ERROR:") || strings.HasPrefix(line, "FATAL:") || strings.HasPrefix(line, "HINT:") {
			return true
		}
	}
	return false
}

// psql's commands that describe the database return what the agent may know, or an empty list.
func TestBackslashCommandsOfPsql(t *testing.T) {
	tier.All(t)
	text, err := os.ReadFile("testdata/clients/psql.txt")
	if err != nil {
		t.Fatal(err)
	}
	commands := strings.Split(strings.TrimSpace(string(text)), "\n")
	in := start(t, options{beforeMigrate: `
		CREATE TABLE hidden_table (id int PRIMARY KEY); CREATE VIEW hidden_view AS SELECT * FROM hidden_table;
		CREATE SEQUENCE hidden_sequence; COMMENT ON TABLE memories IS 'HIDDENMARK'; CREATE PUBLICATION hidden_publication;
		CREATE FUNCTION hidden_function() RETURNS int LANGUAGE sql AS 'SELECT 1';
		CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN short AS text CHECK (length(value) < 5)`})
	for i, answer := range psqlOutputs(t, in, commands) {
		if hasError(answer) {
			t.Errorf("%s:\n%.600s", commands[i], answer)
		}
		for _, hidden := range []string{"hidden_", "pgconsent_signed", "pgconsent_catalog", "pgconsent_rows."} {
			if strings.Contains(answer, hidden) {
				t.Errorf("%s tells %s:\n%.2000s", commands[i], hidden, answer)
			}
		}
	}
	for command, want := range map[string]string{
		`\dt`:                     "public|memories|table|",
		`\d people`:               `"people_pkey" PRIMARY KEY, btree (id)`,
		`\d memory_participants`:  `FOREIGN KEY (memory_id) REFERENCES memories(id)`,
		`\di`:                     "public|people_pkey|index|",
		`\df match_memories`:      "public|match_memories|TABLE(",
		`\dT+ mood`:               "sad\nglad",
		`\dx`:                     "plpgsql|",
		`\l`:                      "UTF8",
		`\dC+`:                    "bigint|",
		`\dL+`:                    "plpgsql|",
		`\dconfig server_version`: "server_version|1",
		`\db+`:                    "pg_default|",
		`\dd`:                     "(0 rows)",
		`\dRp`:                    "(0 rows)",
		`\conninfo`:               `as user "caregiver"`,
		`\dp people`:              "public|people|table|",
	} {
		if got := psqlOutputs(t, in, []string{command})[0]; !strings.Contains(got, want) {
			t.Errorf("%s: want %q in\n%.800s", command, want, got)
		}
	}
	in.requireNoMarker(t)
}

// Other commands of psql: copying to files of the client works, writes are refused with a hint, and the session
// continues.
func TestPsqlMetaCommands(t *testing.T) {
	in := startForReading(t, options{})
	file := filepath.Join(t.TempDir(), "out.csv")
	badFile := filepath.Join(t.TempDir(), "bad.tsv")
	if err := os.WriteFile(badFile, []byte("a\tb\t2024-01-01\nc\td\tsoon\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	answers := psqlOutputs(t, in, []string{
		`\copy memories (title, body, occurred_at) from '` + badFile + `'`,
		`\copy memories to '` + file + `' csv header`,
		`\copy (select name from people order by 1 limit 1) to stdout`,
		`\copy people from '/dev/null'`,
		"select 1 as one, 'x'::text as two \\gdesc",
		`select 'select 40 + 2' \gexec`,
		`\encoding LATIN1`,
		`\errverbose`,
		"select titel from memories;",
		`\lo_list`,
		"\\set FETCH_COUNT 0\nselect count(*) > 0 from memories;",
	})
	for i, want := range []string{
		"ERROR:  invalid input syntax for type timestamp with time zone: \"soon\"\nCONTEXT:  COPY, line 2\n",
		"COPY ", "", "ERROR:", "one|integer", "42", "invalid encoding name", "42501",
		`Perhaps you meant to reference the column "memories.title"`, "(0 rows)", "t\n"} {
		if !strings.Contains(answers[i], want) {
			t.Errorf("%d: want %q in %q", i, want, answers[i])
		}
	}
	if !strings.Contains(answers[3], "HINT:") {
		t.Errorf("a refusal without a hint: %q", answers[3])
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(text), "id,user_id,title,") || strings.Count(string(text), "\n") < 2 {
		t.Errorf("the copy: %v, %.200q", err, text)
	}
	if strings.Contains(string(text), harness.Marker) {
		t.Error("a hidden row was copied")
	}
	in.requireNoMarker(t)
}
