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

// killableCommand is a command during which the program is killed. % stands for its subject.
type killableCommand struct {
	before          []string // commands
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

// The program is killed while it records consents and sweeps. What it has acknowledged is recorded, nothing is recorded
// by halves, and the next call goes on. The anchor is neither ahead of the records nor behind what was acknowledged.
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
	notes := func(of string) (n int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM notes WHERE person = $1", of).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	start := time.Now()
	if _, stderr, code := runFinished(t, "consent", "grant", "first", "--stream", "TEMPORARY", "-c", config); code != exitOK {
		t.Fatal(stderr)
	}
	elapsed := time.Since(start)
	killed, acknowledged := 0, 0
	for i := range kills {
		subject, r := "subject-"+strconv.Itoa(i), killableCommands[i%len(killableCommands)]
		of := func(text string) string { return strings.ReplaceAll(text, "%", subject) }
		for _, command := range r.before {
			runSteps(t, config, []commandStep{{of(command), exitOK, ""}})
		}
		if _, err := conn.Exec(t.Context(), "INSERT INTO notes SELECT $1 * 100 + n, $2 FROM generate_series(1, 30) AS n", i, subject); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], append(fields(of(r.command)), "-c", config)...)
		cmd.Env = append(os.Environ(), "PGCONSENT_TEST_MAIN=1")
		var out strings.Builder
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The second half of its time is when it writes.
		time.Sleep(elapsed/3 + time.Duration(random.Int64N(int64(elapsed*3/2))))
		_ = cmd.Process.Kill()
		var exit *exec.ExitError
		switch err := cmd.Wait(); {
		case err == nil:
		case errors.As(err, &exit) && exit.ExitCode() == -1:
			killed++
		default:
			t.Fatalf("%s: %v", of(r.command), err)
		}
		// Statements of the killed process may run on for a moment, and hold locks that the next call needs.
		waitFor(t, "the server has ended the killed process's connections", func() bool {
			var left int
			if err := conn.QueryRow(t.Context(),
				"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'pgconsent%'").Scan(&left); err != nil {
				t.Fatal(err)
			}
			return left == 0
		})
		stands := func() (bool, string) {
			out, stderr, code := call(t, "", "consent", "status", subject, "-c", config)
			out = strings.Join(strings.Fields(out), " ")
			return r.statusAfter != "" && code == exitOK && strings.Contains(out, r.statusAfter) ||
				r.statusAfter == "" && code == exitError && strings.Contains(stderr, "ConsentNotFoundError"), out + stderr
		}
		if isAcknowledged := r.acknowledgement != "" && strings.Contains(out.String(), of(r.acknowledgement)); isAcknowledged {
			acknowledged++
			if isRecorded, status := stands(); !isRecorded {
				t.Errorf("%s was acknowledged and is not there: %s", of(r.command), status)
			}
		}
		// In either case, sending it again does it once.
		again, stderr, code := call(t, "", append(fields(of(r.command)), "-c", config)...)
		if code != exitOK && !strings.Contains(stderr, of(r.outputAgain)) || code == exitOK && !strings.Contains(again, of(r.acknowledgement)) {
			t.Errorf("%s, again: %d %s%s", of(r.command), code, again, stderr)
		}
		if isRecorded, status := stands(); !isRecorded {
			t.Errorf("after %s: %s", of(r.command), status)
		}
		if r.command == "sweep" && notes(subject) != 0 {
			t.Errorf("%d notes are left of who withdrew", notes(subject))
		}
		runSteps(t, config, []commandStep{{"audit verify", exitOK, "records hold"}})
	}
	// A sweep takes what the withdrawals and erasures of all these rounds have left, and nothing else.
	runSteps(t, config, []commandStep{{"sweep", exitOK, ""}, {"audit verify", exitOK, "records hold"}})
	for i := range kills {
		want := 30
		if r := killableCommands[i%len(killableCommands)]; r.statusAfter == "state withdrawn" || r.statusAfter == "" {
			want = 0
		}
		if got := notes("subject-" + strconv.Itoa(i)); got != want {
			t.Errorf("%d notes of subject-%d, want %d", got, i, want)
		}
	}
	t.Logf("%d of %d were killed before their end, %d were acknowledged", killed, kills, acknowledged)
}

// An erasure leaves no trace of the person: not in a dump of the database, not in a file of pgconsent's. seeds/001:191,
// 201.
func TestErasureLeavesNoTrace(t *testing.T) {
	tier.All(t)
	config, db := installConsent(t)
	const mark = "PLANTED77"
	runSteps(t, config, []commandStep{
		{"consent grant " + mark + "-a --stream TEMPORARY --reason " + mark + "-reason --evidence " + mark + "-evidence", exitOK, "given"},
		{"consent guardian add " + mark + "-a --guardian " + mark + "-parent", exitOK, ""},
		{"consent grant " + mark + "-a --grantee " + mark + "-to --scope ctx:" + mark +
			"-place --category ESSENTIAL --guardian " + mark + "-parent", exitOK, "given"},
		{"consent upgrade " + mark + "-a --reason " + mark + "-why", exitOK, "asked for"},
		{"consent refuse " + mark + "-a --scope table:" + mark, exitOK, ""},
	})
	trace := func() (found []string) {
		dump, err := exec.Command(filepath.Join(pgtest.Binaries().Dir, "pg_dump"), "-h", pgtest.SocketDir(),
			"-p", fmt.Sprint(pgtest.Port()), "-U", "postgres", db.Name).CombinedOutput()
		if err != nil {
			t.Fatalf("pg_dump: %v: %s", err, dump)
		}
		for _, line := range strings.Split(string(dump), "\n") {
			if strings.Contains(line, mark) {
				found = append(found, "dump: "+line)
			}
		}
		err = filepath.WalkDir(filepath.Dir(config), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if strings.Contains(string(text), mark) {
				found = append(found, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if len(trace()) == 0 {
		t.Fatal("nothing is found before the erasure: the test proves nothing")
	}
	for _, suffix := range []string{"-a", "-parent", "-to"} {
		runSteps(t, config, []commandStep{{"consent erase " + mark + suffix + " --yes", exitOK, "erased"}})
	}
	if found := trace(); len(found) > 0 {
		t.Errorf("%d traces are left:\n%s", len(found), strings.Join(found, "\n"))
	}
	runSteps(t, config, []commandStep{
		{"audit verify", exitOK, "records hold"},
		{"consent status " + mark + "-a", exitError, "ConsentNotFoundError"},
	})
}

// Nor does an erasure leave a trace of what agents did on the person's behalf or with their rows. Records of that may
// exist, reports may have been made, and the program may have logged. The rows go with the next sweep.
func TestErasureLeavesNoTraceOfRetrievals(t *testing.T) {
	tier.All(t)
	i := installDSAR(t)
	const mark = "PLANTED78"
	i.exec(t, "INSERT INTO interactions VALUES (7, '"+mark+"', 'said by "+mark+"'); INSERT INTO turns VALUES (70, 7, 'in turn "+mark+"')")
	for name, change := range map[string][]string{
		"policy.yaml": {"version: 1\n",
			"version: 1\nattributes: { user: { type: text, source: credential, audit: subject } }\n",
			"{ audit: { keys: true },", "{ lifecycle: { subject: user_id }, audit: { keys: true },",
			"{ rows: [ { visible: { interactions: { id: interaction } } } ] }", "{ rows: [ { derived: { from: { interactions: { id: interaction } } } } ] }"},
		"pgconsent.yaml": {"chat: { database: app }", "chat: { database: app, attributes: { user: " + mark + " } }"},
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
	runSteps(t, i.config, []commandStep{{"migrate", exitOK, ""}, {"consent grant " + mark + " --stream TEMPORARY --reason " + mark + "-reason", exitOK, "given"}})
	p, address := i.serving(t)
	agent := connect(t, i.dsn("chat", address))
	for _, sql := range []string{"SELECT id, said FROM interactions WHERE user_id = '" + mark + "'",
		"SELECT said FROM turns", "SELECT 1/0 FROM interactions WHERE said LIKE '%" + mark + "%'", "SELECT " + mark + " FROM nowhere"} {
		for range 2 {
			rows, err := agent.Query(t.Context(), sql)
			if err == nil {
				rows.Close()
			}
		}
	}
	_ = agent.Close(t.Context())
	runSteps(t, i.config, []commandStep{{"dsar --subject " + mark, exitOK, "recipient   chat"}})
	var said strings.Builder // output of commands that do not name the person
	trace := func() (found []string) {
		dump, err := exec.Command(filepath.Join(pgtest.Binaries().Dir, "pg_dump"), "-h", pgtest.SocketDir(),
			"-p", fmt.Sprint(pgtest.Port()), "-U", "postgres", i.db.Name).CombinedOutput()
		if err != nil {
			t.Fatalf("pg_dump: %v: %s", err, dump)
		}
		texts := map[string]string{"the dump": string(dump), "what serve has said": p.errs.String(), "what commands say": said.String()}
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
		for where, text := range texts {
			for line := range strings.Lines(text) {
				if strings.Contains(line, mark) {
					found = append(found, where+": "+line)
				}
			}
		}
		return found
	}
	if len(trace()) < 3 {
		t.Fatalf("little is found before the erasure: %q", trace())
	}
	runSteps(t, i.config, []commandStep{{"consent erase " + mark + " --yes", exitOK, "erased"}})
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
		said.WriteString(out + stderr)
	}
	if found := trace(); len(found) > 0 {
		t.Errorf("%d traces are left:\n%s", len(found), strings.Join(found, "\n"))
	}
	runSteps(t, i.config, []commandStep{{"audit verify", exitOK, "records hold"}})
}
