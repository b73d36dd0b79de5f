package e2e

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	harness "github.com/pgconsent/pgconsent/test/instance"
)

const programsFolder = "testdata/clients/programs"

// skipMissing skips a test whose client is not installed. If REQUIRE_CLIENTS is set, it fails the test.
func skipMissing(t *testing.T, client string) {
	t.Helper()
	if os.Getenv("REQUIRE_CLIENTS") != "" {
		t.Fatalf("%s is not installed", client)
	}
	t.Skipf("NOT TESTED: %s is not installed", client)
}

// runCommand runs a program that prints a line "ok …" or "failed …" for each step, and "done" at its end.
func runCommand(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	workedSteps, isFinished := 0, false
	for line := range strings.Lines(out.String()) {
		word, message, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "ok":
			workedSteps++
		case "failed":
			t.Errorf("%s", message)
		case "done":
			isFinished = true
		case "version", "missing":
			t.Log(word, message)
		}
	}
	if err != nil || !isFinished {
		t.Fatalf("%v after %d things that worked:\n%.3000s", err, workedSteps, errs.String())
	}
	t.Logf("%d things worked", workedSteps)
}

// The programs of testdata/clients/programs use their clients as applications do. Each step works, or is refused with
// the expected SQLSTATE.
func TestPrograms(t *testing.T) {
	in := start(t, options{passwordIterations: 4096})
	dsn := in.dsn("caregiver", agentPassword)
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	in.runPython(ctx, t, "sqlalchemy", "sqlalchemy_.py", "sqlalchemy, psycopg2")
	in.runPython(ctx, t, "django", "django_.py", "django, psycopg2")
	in.runPython(ctx, t, "psycopg", "psycopg_.py", "psycopg, psycopg2")
	in.runPython(ctx, t, "asyncpg", "asyncpg_.py", "asyncpg, peewee")
	for _, settings := range pickSettings(t, "", "Protocol=7.4-2;UseDeclareFetch=1;Fetch=5",
		"Protocol=7.4-1;UpdatableCursors=1", "UseServerSidePrepare=0;BoolsAsChar=0", "ShowSystemTables=1;ShowOidColumn=1;RowVersioning=1;FakeOidIndex=1") {
		in.runPython(ctx, t, "odbc "+settings, "odbc_.py", "pyodbc; assert 'PostgreSQL Unicode' in pyodbc.drivers()", settings)
	}
	t.Run("jdbc", func(t *testing.T) {
		const jar = "/usr/share/java/postgresql.jar"
		java, err := exec.LookPath("java")
		if err != nil {
			skipMissing(t, "java")
		}
		javac, err := exec.LookPath("javac")
		if err != nil {
			skipMissing(t, "javac")
		}
		if _, err := os.Stat(jar); err != nil {
			skipMissing(t, jar)
		}
		classes := t.TempDir()
		if output, err := exec.CommandContext(ctx, javac, "-cp", jar, "-d", classes, filepath.Join(programsFolder, "Jdbc.java")).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		for _, settings := range pickSettings(t, "", "preferQueryMode=simple", "prepareThreshold=-1 binaryTransfer=true", "autosave=always defaultRowFetchSize=5",
			"preferQueryMode=extendedCacheEverything currentSchema=public options=-c\\ statement_timeout=60000") {
			t.Run(settings, func(t *testing.T) {
				args := []string{"-cp", classes + ":" + jar, "Jdbc", "jdbc:postgresql://" + in.tap.Addr() + "/arcive", "caregiver", agentPassword}
				for s := range strings.FieldsSeq(strings.ReplaceAll(settings, `-c\ `, "-c\x01")) {
					args = append(args, strings.ReplaceAll(s, "\x01", " "))
				}
				runCommand(t, exec.CommandContext(ctx, java, args...))
			})
		}
	})
	t.Run("node", func(t *testing.T) {
		node, err := exec.LookPath("node")
		if err != nil {
			skipMissing(t, "node")
		}
		cmd := exec.CommandContext(ctx, node, filepath.Join(programsFolder, "node_.cjs"), dsn)
		cmd.Env = append(os.Environ(), "NODE_PATH="+os.Getenv("PGCONSENT_NODE_MODULES"))
		if output, err := exec.CommandContext(ctx, node, "-e", "require('pg')").CombinedOutput(); err != nil && os.Getenv("PGCONSENT_NODE_MODULES") == "" {
			skipMissing(t, "npm package pg (set PGCONSENT_NODE_MODULES): "+harness.OneLine(string(output))[:40])
		}
		runCommand(t, cmd)
	})
	host, port, err := net.SplitHostPort(in.tap.Addr())
	if err != nil {
		t.Fatal(err)
	}
	parts := []string{host, port, "arcive", "caregiver", agentPassword}
	in.runScript(ctx, t, "ruby_.rb", []string{"ruby", "-e", "require 'pg'; require 'sequel'; require 'active_record'"}, dsn)
	in.runScript(ctx, t, "perl_.pl", []string{"perl", "-e", "use DBI; use DBD::Pg"}, parts...)
	in.runScript(ctx, t, "php_.php", []string{"php", "-r", "exit(extension_loaded('pgsql') && extension_loaded('pdo_pgsql') ? 0 : 1);"},
		parts...)
	if _, searchedBytes := in.tap.MarkerHits(); searchedBytes == 0 {
		skipMissing(t, "what any of these programs needs")
	}
	in.requireNoMarker(t)
}

// runScript runs a program with its interpreter. checkCommand fails if the machine lacks something that the program
// needs.
func (in *instance) runScript(ctx context.Context, t *testing.T, file string, checkCommand []string, args ...string) {
	t.Run(checkCommand[0], func(t *testing.T) {
		if exec.CommandContext(ctx, checkCommand[0], checkCommand[1:]...).Run() != nil {
			skipMissing(t, checkCommand[0]+", or what "+file+" needs,")
		}
		runCommand(t, exec.CommandContext(ctx, checkCommand[0], append([]string{filepath.Join(programsFolder, file)}, args...)...))
	})
}

// pickSettings returns the first two settings, or all of them if REQUIRE_CLIENTS is set.
func pickSettings(t *testing.T, settings ...string) []string {
	t.Helper()
	if os.Getenv("REQUIRE_CLIENTS") == "" {
		return settings[:2]
	}
	return settings
}

// runPython runs a program with the first Python that has its modules. It tries the system's Python first, which uses
// Debian's packages.
func (in *instance) runPython(ctx context.Context, t *testing.T, name, file, modules string, args ...string) {
	t.Run(name, func(t *testing.T) {
		for _, python := range []string{"/usr/bin/python3", "python3"} {
			if exec.CommandContext(ctx, python, "-c", "import "+modules).Run() == nil {
				cmd := exec.CommandContext(ctx, python, append([]string{file, in.dsn("caregiver", agentPassword)}, args...)...)
				cmd.Dir = programsFolder
				cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore")
				runCommand(t, cmd)
				return
			}
		}
		skipMissing(t, "Python's "+modules)
	})
}

// In programs with one pool for 50 users, each user's transactions see that user's rows. Outside of them no row is
// visible.
func TestProgramsForManyUsers(t *testing.T) {
	m := startManyUsers(t, harness.Auto, "")
	dsn := m.proxy.DSN("backend", "many")
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	t.Run("python", func(t *testing.T) {
		const python, modules = "/usr/bin/python3", "sqlalchemy, psycopg2, psycopg, psycopg_pool"
		if exec.CommandContext(ctx, python, "-c", "import "+modules).Run() != nil {
			skipMissing(t, "Python's "+modules)
		}
		cmd := exec.CommandContext(ctx, python, "many_users.py", dsn)
		cmd.Dir = programsFolder
		cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore")
		runCommand(t, cmd)
	})
	t.Run("node", func(t *testing.T) {
		node, err := exec.LookPath("node")
		if err != nil {
			skipMissing(t, "node")
		}
		env := append(os.Environ(), "NODE_PATH="+os.Getenv("PGCONSENT_NODE_MODULES"))
		moduleCheck := exec.CommandContext(ctx, node, "-e", "require('pg')")
		moduleCheck.Env = env
		if moduleCheck.Run() != nil {
			skipMissing(t, "npm package pg (set PGCONSENT_NODE_MODULES)")
		}
		cmd := exec.CommandContext(ctx, node, filepath.Join(programsFolder, "many_users.cjs"), dsn)
		cmd.Env = env
		runCommand(t, cmd)
	})
}
