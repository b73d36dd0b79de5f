package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// The tutorial's commands run as they are written, on a new PostgreSQL.
func TestTutorial(t *testing.T) {
	playPage(t, "../../docs/tutorial/first-policy.md", 25)
}

// playPage carries out a page of the documentation from top to bottom. It starts with an empty folder and an empty
// PostgreSQL. These blocks count:
//
//   - sql, yaml: if the first line is a comment with a file name only, the block is written to that file;
//   - diff: is applied to the file in its first line. Each part after a line with @@ must match exactly once;
//   - console: a line after "$ " is a command of one bash, which must print the lines below it. "…" matches any text.
//
// The page's ports and its server's password are replaced by those of this test.
func playPage(t *testing.T, page string, commands int) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	s := startSession(t)
	lines := strings.Split(s.localAddresses.Replace(string(text)), "\n")
	for i := 0; i < len(lines); i++ {
		kind, isFence := strings.CutPrefix(lines[i], "```")
		if !isFence {
			continue
		}
		firstLine := i + 1
		for i = firstLine; i < len(lines) && lines[i] != "```"; i++ {
		}
		if i == len(lines) {
			t.Fatalf("%s:%d: the block has no end", page, firstLine)
		}
		location := fmt.Sprintf("%s:%d", page, firstLine+1)
		switch block := lines[firstLine:i]; kind {
		case "sql", "yaml":
			s.writeNamedFile(block)
		case "diff":
			s.applyDiff(location, block)
		case "console":
			commands -= s.typeCommands(location, block)
		}
	}
	if commands > 0 {
		t.Errorf("%s: %d commands fewer than expected", page, commands)
	}
}

// shellSession is a bash in a new folder.
type shellSession struct {
	t              testing.TB
	folder         string
	localAddresses *strings.Replacer // replaces the page's addresses by those of this test
	stdin          io.Writer
	output         *bufio.Reader
	typedCommands  int
}

func startSession(t *testing.T) *shellSession {
	t.Helper()
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("REQUIRE_TOOLS") != "" { // make setup installs them
				t.Fatalf("there is no %s, which the commands of the page need", program)
			}
			t.Skipf("SKIPPED: no %[1]s, so that nobody has typed the commands of the page: apt-get install %[1]s", program)
		}
	}
	programsDir, buildResult := t.TempDir(), make(chan error, 1)
	go func() {
		output, err := exec.Command("go", "build", "-o", programsDir, "../../cmd/pgconsent").CombinedOutput()
		if err != nil {
			err = fmt.Errorf("go build: %w\n%s", err, output)
		}
		buildResult <- err
	}()
	server, err := pgtest.StartServer(t.Context(), t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	conn, err := pgx.Connect(t.Context(), fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres", server.SocketDir, server.Port))
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), "ALTER ROLE postgres PASSWORD 'secret'")
	if err == nil {
		err = conn.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := <-buildResult; err != nil {
		t.Fatal(err)
	}
	psql, _ := pgtest.ClientProgram(t, "psql")
	port := func(address string) string {
		_, p, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	sqlAddress, httpAddress := pgtest.FreeAddress(t), pgtest.FreeAddress(t)
	s := &shellSession{t: t, folder: t.TempDir(), localAddresses: strings.NewReplacer("5432", fmt.Sprint(server.Port), "7432",
		port(sqlAddress), "7433", port(httpAddress))}
	c := exec.CommandContext(t.Context(), "bash")
	c.Dir = s.folder
	c.Env = append(os.Environ(), "PATH="+programsDir+":"+filepath.Dir(psql)+":"+os.Getenv("PATH"), "LC_ALL=C.UTF-8", "PSQLRC=/dev/null",
		"PGCONSENT_LISTEN="+sqlAddress, "PGCONSENT_HTTP_LISTEN="+httpAddress)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) } // also ends background processes
	out, outputEnd, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = outputEnd, outputEnd
	in, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = outputEnd.Close()
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
		_ = out.Close()
	})
	s.stdin, s.output = in, bufio.NewReader(out)
	return s
}

var fileNameLine = regexp.MustCompile(`^(?:--|#) ([\w-]+\.(?:sql|yaml))$`)

// writeNamedFile writes a block to the file that its first line names, if it names one.
func (s *shellSession) writeNamedFile(block []string) {
	s.t.Helper()
	m := fileNameLine.FindStringSubmatch(block[0])
	if m == nil {
		return
	}
	if err := os.WriteFile(filepath.Join(s.folder, m[1]), []byte(strings.Join(block, "\n")+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// applyDiff applies a diff to a file of the session.
func (s *shellSession) applyDiff(location string, block []string) {
	s.t.Helper()
	name, ok := strings.CutPrefix(block[0], "--- ")
	if !ok || len(block) < 3 {
		s.t.Fatalf("%s: a diff begins with --- and a file's name", location)
	}
	path := filepath.Join(s.folder, name)
	text, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatalf("%s: %v", location, err)
	}
	update := string(text)
	var oldText, newText string
	apply := func() {
		if n := strings.Count("\n"+update, "\n"+oldText); n != 1 {
			s.t.Fatalf("%s: %s has %d places for\n%s\nin\n%s", location, name, n, oldText, update)
		}
		update = strings.Replace("\n"+update, "\n"+oldText, "\n"+newText, 1)[1:]
	}
	for _, line := range block[2:] {
		switch {
		case strings.HasPrefix(line, "@@"):
			apply()
			oldText, newText = "", ""
		case strings.HasPrefix(line, "-"):
			oldText += line[1:] + "\n"
		case strings.HasPrefix(line, "+"):
			newText += line[1:] + "\n"
		default:
			line = strings.TrimPrefix(line, " ")
			oldText, newText = oldText+line+"\n", newText+line+"\n"
		}
	}
	apply()
	if err := os.WriteFile(path, []byte(update), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// typeCommands runs the commands of a block and compares their output. It returns the number of commands.
func (s *shellSession) typeCommands(location string, block []string) int {
	s.t.Helper()
	var commands, wantOutputs []string
	for _, line := range block {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			commands, wantOutputs = append(commands, command), append(wantOutputs, "")
		} else if len(wantOutputs) > 0 {
			wantOutputs[len(wantOutputs)-1] += line + "\n"
		}
	}
	for i, command := range commands {
		got := s.runTyped(command)
		pattern := strings.ReplaceAll(regexp.QuoteMeta(trimmedLines(wantOutputs[i])), "…", ".*?")
		if !regexp.MustCompile(`(?s)^` + pattern + `$`).MatchString(trimmedLines(got)) {
			s.t.Errorf("%s: $ %s\nprints\n%s\nand the page says\n%s", location, command, got, wantOutputs[i])
		}
	}
	return len(commands)
}

// runTyped runs one command and returns its output.
func (s *shellSession) runTyped(command string) string {
	s.t.Helper()
	s.typedCommands++
	endMarker := fmt.Sprintf("@@%d@@", s.typedCommands)
	if _, err := fmt.Fprintf(s.stdin, "%s\nprintf '\\n%s\\n'\n", command, endMarker); err != nil {
		s.t.Fatalf("$ %s: %v", command, err)
	}
	out := ""
	for {
		line, err := s.output.ReadString('\n')
		if strings.TrimSpace(line) == endMarker {
			return out
		}
		if out += line; err != nil {
			s.t.Fatalf("$ %s: %v\n%s", command, err, out)
		}
	}
}

// trimmedLines removes blanks at the ends of lines, and empty lines at the beginning and the end.
func trimmedLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
