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
	"github.com/pgconsent/pgconsent/test/demos"
)

// The tutorial is typed as it is written, on a PostgreSQL of its own.
func TestTutorial(t *testing.T) {
	playPage(t, "../../docs/tutorial/first-policy.md", 25)
}

// playPage carries out a page of the documentation from its top to its end. It starts with an empty folder and an empty
// PostgreSQL. These blocks count:
//
//   - sql, yaml: whose first line is a comment with the name of a file and nothing else is written to that file;
//   - diff: is applied to the file that its first line names, each part after a line that begins with @@ at one place;
//   - console: each line after "$ " is a command of one bash, which prints the lines below it. "…" there is any text.
//
// The ports and the password of a server that the page names are those of this test's.
func playPage(t *testing.T, page string, commands int) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	s := startSession(t)
	lines := strings.Split(s.local.Replace(string(text)), "\n")
	for i := 0; i < len(lines); i++ {
		kind, opens := strings.CutPrefix(lines[i], "```")
		if !opens {
			continue
		}
		begin := i + 1
		for i = begin; i < len(lines) && lines[i] != "```"; i++ {
		}
		if i == len(lines) {
			t.Fatalf("%s:%d: the block has no end", page, begin)
		}
		at := fmt.Sprintf("%s:%d", page, begin+1)
		switch block := lines[begin:i]; kind {
		case "sql", "yaml":
			s.write(block)
		case "diff":
			s.change(at, block)
		case "console":
			commands -= s.typeIn(at, block)
		}
	}
	if commands > 0 {
		t.Errorf("%s: %d commands fewer than expected", page, commands)
	}
}

// session is a bash in a folder of its own.
type session struct {
	t     testing.TB
	dir   string
	local *strings.Replacer // replaces the page's addresses of server and proxy
	in    io.Writer
	out   *bufio.Reader
	typed int
}

func startSession(t *testing.T) *session {
	t.Helper()
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("REQUIRE_TOOLS") != "" { // make setup installs them
				t.Fatalf("there is no %s, which the commands of the page need", program)
			}
			t.Skipf("SKIPPED: no %[1]s, so that nobody has typed the commands of the page: apt-get install %[1]s", program)
		}
	}
	programs, built := t.TempDir(), make(chan error, 1)
	go func() {
		output, err := exec.Command("go", "build", "-o", programs, "../../cmd/pgconsent").CombinedOutput()
		if err != nil {
			err = fmt.Errorf("go build: %w\n%s", err, output)
		}
		built <- err
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
	if err := <-built; err != nil {
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
	sql, http := demos.FreeAddress(t), demos.FreeAddress(t)
	s := &session{t: t, dir: t.TempDir(), local: strings.NewReplacer("5432", fmt.Sprint(server.Port), "7432", port(sql), "7433", port(http))}
	c := exec.CommandContext(t.Context(), "bash")
	c.Dir = s.dir
	c.Env = append(os.Environ(), "PATH="+programs+":"+filepath.Dir(psql)+":"+os.Getenv("PATH"), "LC_ALL=C.UTF-8", "PSQLRC=/dev/null",
		"PGCONSENT_LISTEN="+sql, "PGCONSENT_HTTP_LISTEN="+http)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) } // including background processes
	out, told, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = told, told
	in, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = told.Close()
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
		_ = out.Close()
	})
	s.in, s.out = in, bufio.NewReader(out)
	return s
}

var namesFile = regexp.MustCompile(`^(?:--|#) ([\w-]+\.(?:sql|yaml))$`)

// write writes the file that a block names, if it names one.
func (s *session) write(block []string) {
	s.t.Helper()
	m := namesFile.FindStringSubmatch(block[0])
	if m == nil {
		return
	}
	if err := os.WriteFile(filepath.Join(s.dir, m[1]), []byte(strings.Join(block, "\n")+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// change applies a diff.
func (s *session) change(at string, block []string) {
	s.t.Helper()
	name, ok := strings.CutPrefix(block[0], "--- ")
	if !ok || len(block) < 3 {
		s.t.Fatalf("%s: a diff begins with --- and a file's name", at)
	}
	path := filepath.Join(s.dir, name)
	text, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatalf("%s: %v", at, err)
	}
	update := string(text)
	var before, after string
	apply := func() {
		if n := strings.Count("\n"+update, "\n"+before); n != 1 {
			s.t.Fatalf("%s: %s has %d places for\n%s\nin\n%s", at, name, n, before, update)
		}
		update = strings.Replace("\n"+update, "\n"+before, "\n"+after, 1)[1:]
	}
	for _, line := range block[2:] {
		switch {
		case strings.HasPrefix(line, "@@"):
			apply()
			before, after = "", ""
		case strings.HasPrefix(line, "-"):
			before += line[1:] + "\n"
		case strings.HasPrefix(line, "+"):
			after += line[1:] + "\n"
		default:
			line = strings.TrimPrefix(line, " ")
			before, after = before+line+"\n", after+line+"\n"
		}
	}
	apply()
	if err := os.WriteFile(path, []byte(update), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// typeIn types the commands of a block, compares what they print, and returns how many they were.
func (s *session) typeIn(at string, block []string) int {
	s.t.Helper()
	var commands, wants []string
	for _, line := range block {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			commands, wants = append(commands, command), append(wants, "")
		} else if len(wants) > 0 {
			wants[len(wants)-1] += line + "\n"
		}
	}
	for i, command := range commands {
		got := s.run(command)
		pattern := strings.ReplaceAll(regexp.QuoteMeta(trimmedLines(wants[i])), "…", ".*?")
		if !regexp.MustCompile(`(?s)^` + pattern + `$`).MatchString(trimmedLines(got)) {
			s.t.Errorf("%s: $ %s\nprints\n%s\nand the page says\n%s", at, command, got, wants[i])
		}
	}
	return len(commands)
}

// run types one command and returns what is printed until it is done.
func (s *session) run(command string) string {
	s.t.Helper()
	s.typed++
	end := fmt.Sprintf("@@%d@@", s.typed)
	if _, err := fmt.Fprintf(s.in, "%s\nprintf '\\n%s\\n'\n", command, end); err != nil {
		s.t.Fatalf("$ %s: %v", command, err)
	}
	out := ""
	for {
		line, err := s.out.ReadString('\n')
		if strings.TrimSpace(line) == end {
			return out
		}
		if out += line; err != nil {
			s.t.Fatalf("$ %s: %v\n%s", command, err, out)
		}
	}
}

// trimmedLines is a text without blanks at the ends of lines, and without empty lines at its beginning and end.
func trimmedLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
