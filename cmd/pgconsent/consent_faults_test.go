package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/tier"
)

// killableCommand is a command during which the program is killed; % in its texts is the subject.
type killableCommand struct {
	setupCommands   []string // commands
	command         string
	acknowledgement string // its output when it has succeeded
	statusAfter     string // the output of consent status after it; "": there is none
	outputAgain     string // the output of the same command afterwards, whether the first succeeded or not
}

var killableCommands = []killableCommand{
	{nil, "consent grant % --stream TEMPORARY", "%: given TEMPORARY", "state given stream TEMPORARY", "%: given TEMPORARY"},
	{[]string{"consent grant % --stream TEMPORARY"}, "consent revoke %", "%: withdrawn", "state withdrawn", "%: withdrawn"},
	{[]string{"consent grant % --stream TEMPORARY"}, "consent erase % --yes", "erased", "", "ConsentNotFoundError"},
	{[]string{"consent grant % --stream TEMPORARY", "consent revoke %"}, "sweep", "", "state withdrawn", ""},
	{[]string{"consent grant % --stream TEMPORARY"}, "consent degrade % --to ANONYMOUS", "%: given ANONYMOUS",
		"state given stream ANONYMOUS", "ANONYMOUS cannot become ANONYMOUS"},
	{nil, "consent grant % --grantee si:vet --purpose care", "%: given to si:vet", "si:vet", "%: given to si:vet"},
	{[]string{"consent grant % --stream TEMPORARY"}, "consent upgrade %", "partnership asked for", "asked for PARTNERED", "partnership asked for"},
	{[]string{"consent grant % --stream TEMPORARY"}, "consent guardian add % --guardian human:sean",
		"human:sean speaks for %", "state given", "human:sean speaks for %"},
}

// The program is killed while it records consents and sweeps. What it has acknowledged is recorded, no change is
// recorded partly, and the next call continues. The anchor, a file with the number and the hash of
// the newest record, knows of each acknowledged record, and of none that the database lacks.
func TestKilledWhileConsentsAreRecorded(t *testing.T) {
	tier.All(t)
	kills, random := tier.Count(len(killableCommands), len(killableCommands), 20*len(killableCommands)), tier.Rand(2)
	config, db := installConsent(t)
	if err := os.WriteFile(filepath.Join(filepath.Dir(config), "policy.yaml"),
		[]byte("version: 1\ntables: { notes: { rows: [ consent: { subject: person, registry: {} } ], lifecycle: { "+
			"subject: person } } }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	runSteps(t, config, []commandStep{{"migrate", exitOK, ""}})
	conn := db.Connect(t, "postgres")
	countNotes := func(forSubject string) (n int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM notes WHERE person = $1", forSubject).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	start := time.Now()
	if _, stderr, code := runFinished(t, "consent", "grant", "first", "--stream", "TEMPORARY", "-c", config); code != exitOK {
		t.Fatal(stderr)
	}
	elapsed := time.Since(start)
	killedCount, acknowledgedCount := 0, 0
	for i := range kills {
		subject, r := "subject-"+strconv.Itoa(i), killableCommands[i%len(killableCommands)]
		forSubject := func(text string) string { return strings.ReplaceAll(text, "%", subject) }
		for _, command := range r.setupCommands {
			runSteps(t, config, []commandStep{{forSubject(command), exitOK, ""}})
		}
		if _, err := conn.Exec(t.Context(), "INSERT INTO notes SELECT $1 * 100 + n, $2 FROM generate_series(1, 30) AS n", i, subject); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], append(fields(forSubject(r.command)), "-c", config)...)
		cmd.Env = append(os.Environ(), "PGCONSENT_TEST_MAIN=1")
		var out strings.Builder
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Most kills come in the second half of the command's time, when it writes.
		time.Sleep(elapsed/3 + time.Duration(random.Int64N(int64(elapsed*3/2))))
		_ = cmd.Process.Kill()
		var exit *exec.ExitError
		switch err := cmd.Wait(); {
		case err == nil:
		case errors.As(err, &exit) && exit.ExitCode() == -1:
			killedCount++
		default:
			t.Fatalf("%s: %v", forSubject(r.command), err)
		}
		// Statements of the killed process may run for a moment longer, with locks that the next call needs.
		waitFor(t, "the server has ended the killed process's connections", func() bool {
			var openConnections int
			if err := conn.QueryRow(t.Context(),
				"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'pgconsent%'").Scan(&openConnections); err != nil {
				t.Fatal(err)
			}
			return openConnections == 0
		})
		readState := func() (bool, string) {
			out, stderr, code := call(t, "", "consent", "status", subject, "-c", config)
			out = strings.Join(strings.Fields(out), " ")
			return r.statusAfter != "" && code == exitOK && strings.Contains(out, r.statusAfter) ||
				r.statusAfter == "" && code == exitError && strings.Contains(stderr, "ConsentNotFoundError"), out + stderr
		}
		if isAcknowledged := r.acknowledgement != "" && strings.Contains(out.String(), forSubject(r.acknowledgement)); isAcknowledged {
			acknowledgedCount++
			if isRecorded, status := readState(); !isRecorded {
				t.Errorf("%s was acknowledged and is not there: %s", forSubject(r.command), status)
			}
		}
		// Whether the change was recorded or not, the same command sent again records it once.
		secondOutput, stderr, code := call(t, "", append(fields(forSubject(r.command)), "-c", config)...)
		if code != exitOK && !strings.Contains(stderr, forSubject(r.outputAgain)) || code == exitOK &&
			!strings.Contains(secondOutput, forSubject(r.acknowledgement)) {
			t.Errorf("%s, again: %d %s%s", forSubject(r.command), code, secondOutput, stderr)
		}
		if isRecorded, status := readState(); !isRecorded {
			t.Errorf("after %s: %s", forSubject(r.command), status)
		}
		if r.command == "sweep" && countNotes(subject) != 0 {
			t.Errorf("%d notes are left of who withdrew", countNotes(subject))
		}
		runSteps(t, config, []commandStep{{"audit verify", exitOK, "records hold"}})
	}
	// The last sweep deletes what the withdrawals and erasures of all rounds have left, and nothing else.
	runSteps(t, config, []commandStep{{"sweep", exitOK, ""}, {"audit verify", exitOK, "records hold"}})
	for i := range kills {
		want := 30
		if r := killableCommands[i%len(killableCommands)]; r.statusAfter == "state withdrawn" || r.statusAfter == "" {
			want = 0
		}
		if got := countNotes("subject-" + strconv.Itoa(i)); got != want {
			t.Errorf("%d notes of subject-%d, want %d", got, i, want)
		}
	}
	t.Logf("%d of %d were killed before their end, %d were acknowledged", killedCount, kills, acknowledgedCount)
}

// After an erasure no trace of the person is in a dump of the database or in a file of pgconsent. seeds/001:191, 201.
func TestErasureLeavesNoTrace(t *testing.T) {
	tier.All(t)
	config, db := installConsent(t)
	const marker = "PLANTED77"
	runSteps(t, config, []commandStep{
		{"consent grant " + marker + "-a --stream TEMPORARY --reason " + marker + "-reason --evidence " + marker + "-evidence", exitOK, "given"},
		{"consent guardian add " + marker + "-a --guardian " + marker + "-parent", exitOK, ""},
		{"consent grant " + marker + "-a --grantee " + marker + "-to --scope ctx:" + marker +
			"-place --category ESSENTIAL --guardian " + marker + "-parent", exitOK, "given"},
		{"consent upgrade " + marker + "-a --reason " + marker + "-why", exitOK, "asked for"},
		{"consent refuse " + marker + "-a --scope table:" + marker, exitOK, ""},
	})
	findTraces := func() (found []string) {
		dump, err := exec.Command(filepath.Join(pgtest.Binaries().Dir, "pg_dump"), "-h", pgtest.SocketDir(),
			"-p", fmt.Sprint(pgtest.Port()), "-U", "postgres", db.Name).CombinedOutput()
		if err != nil {
			t.Fatalf("pg_dump: %v: %s", err, dump)
		}
		for _, line := range strings.Split(string(dump), "\n") {
			if strings.Contains(line, marker) {
				found = append(found, "dump: "+line)
			}
		}
		err = filepath.WalkDir(filepath.Dir(config), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if strings.Contains(string(text), marker) {
				found = append(found, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if len(findTraces()) == 0 {
		t.Fatal("nothing is found before the erasure: the test proves nothing")
	}
	for _, suffix := range []string{"-a", "-parent", "-to"} {
		runSteps(t, config, []commandStep{{"consent erase " + marker + suffix + " --yes", exitOK, "erased"}})
	}
	if found := findTraces(); len(found) > 0 {
		t.Errorf("%d traces are left:\n%s", len(found), strings.Join(found, "\n"))
	}
	runSteps(t, config, []commandStep{
		{"audit verify", exitOK, "records hold"},
		{"consent status " + marker + "-a", exitError, "ConsentNotFoundError"},
	})
}

// An erasure also leaves no trace of what agents did on the person's behalf, or with the person's rows. The audit,
// reports and logs may have named the person before. The rows are deleted by the next sweep.
func TestErasureLeavesNoTraceOfRetrievals(t *testing.T) {
	tier.All(t)
	i := installDSAR(t)
	const marker = "PLANTED78"
	i.exec(t,
		"INSERT INTO interactions VALUES (7, '"+marker+"', 'said by "+marker+"'); INSERT INTO turns VALUES (70, 7, 'in turn "+marker+"')")
	for name, change := range map[string][]string{
		"policy.yaml": {"version: 1\n",
			"version: 1\nattributes: { user: { type: text, source: credential, audit: subject } }\n",
			"{ audit: { keys: true },", "{ lifecycle: { subject: user_id }, audit: { keys: true },",
			"{ rows: [ { visible: { interactions: { id: interaction } } } ] }", "{ rows: [ { derived: { from: { interactions: { id: interaction } } } } ] }"},
		"pgconsent.yaml": {"chat: { database: app }", "chat: { database: app, attributes: { user: " + marker + " } }"},
	} {
		path := filepath.Join(i.dir(), name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.NewReplacer(change...).Replace(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runSteps(t, i.config, []commandStep{{"migrate", exitOK, ""},
		{"consent grant " + marker + " --stream TEMPORARY --reason " + marker + "-reason", exitOK, "given"}})
	p, address := i.startServe(t)
	agent := connect(t, i.dsn("chat", address))
	for _, sql := range []string{"SELECT id, said FROM interactions WHERE user_id = '" + marker + "'",
		"SELECT said FROM turns", "SELECT 1/0 FROM interactions WHERE said LIKE '%" + marker + "%'", "SELECT " + marker + " FROM nowhere"} {
		for range 2 {
			rows, err := agent.Query(t.Context(), sql)
			if err == nil {
				rows.Close()
			}
		}
	}
	_ = agent.Close(t.Context())
	runSteps(t, i.config, []commandStep{{"dsar --subject " + marker, exitOK, "recipient   chat"}})
	var otherOutput strings.Builder // output of commands that must not name the person
	findTraces := func() (found []string) {
		dump, err := exec.Command(filepath.Join(pgtest.Binaries().Dir, "pg_dump"), "-h", pgtest.SocketDir(),
			"-p", fmt.Sprint(pgtest.Port()), "-U", "postgres", i.db.Name).CombinedOutput()
		if err != nil {
			t.Fatalf("pg_dump: %v: %s", err, dump)
		}
		texts := map[string]string{"the dump": string(dump), "what serve has said": p.errs.String(), "what commands say": otherOutput.String()}
		err = filepath.WalkDir(i.dir(), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || path == i.config {
				return err
			}
			text, err := os.ReadFile(path)
			texts[path] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for source, text := range texts {
			for line := range strings.Lines(text) {
				if strings.Contains(line, marker) {
					found = append(found, source+": "+line)
				}
			}
		}
		return found
	}
	if len(findTraces()) < 3 {
		t.Fatalf("little is found before the erasure: %q", findTraces())
	}
	runSteps(t, i.config, []commandStep{{"consent erase " + marker + " --yes", exitOK, "erased"}})
	conn := i.db.Connect(t, "postgres")
	waitFor(t, "the rows go", func() bool {
		var n int
		if err := conn.QueryRow(t.Context(),
			"SELECT (SELECT count(*) FROM interactions WHERE id = 7) + (SELECT count(*) FROM turns WHERE id = 70) "+
				"+ (SELECT count(*) FROM pgconsent.sweep_erased)").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
	p.signal(t, syscall.SIGTERM)
	p.awaitEnd(t)
	for _, command := range []string{"sweep", "audit tail", "audit verify", "audit export", "doctor"} {
		out, stderr, _ := call(t, "", append(fields(command), "-c", i.config)...)
		otherOutput.WriteString(out + stderr)
	}
	if found := findTraces(); len(found) > 0 {
		t.Errorf("%d traces are left:\n%s", len(found), strings.Join(found, "\n"))
	}
	runSteps(t, i.config, []commandStep{{"audit verify", exitOK, "records hold"}})
}
