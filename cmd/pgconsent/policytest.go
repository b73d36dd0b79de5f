package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/tool/policytest"
)

type policyTestCmd struct {
	Paths    []string `arg:"" optional:"" name:"path" help:"Files of tests, or folders with a policy_test.yaml in or beneath them. Default: beside the policies of the configuration if there is one, else this folder."`
	Match    string   `name:"run" placeholder:"REGEXP" help:"Only tests whose name matches."`
	Postgres string   `placeholder:"DSN" help:"Make the throw-away databases on this server. Default: a private PostgreSQL."`
	JUnit    string   `name:"junit" placeholder:"FILE" help:"Write a JUnit report besides."`
	Watch    bool     `help:"Run again whenever the tests, the policy or the schema change."`
}

func (policyTestCmd) Help() string {
	return `A test says which rows a caller sees and which statements are refused, before and after the owner changes something. It
runs on a database that exists for it alone, through the proxy: on a private PostgreSQL from the binaries of this machine,
or on that of --postgres, whose role needs CREATEDB and CREATEROLE; what is made there begins with pgconsent_test_ and is
removed. docs/howto/policy-test.md explains the file. Blocks of the policy that no test depends on are listed. Exit code 1 if a
test fails.

  pgconsent policy test worlds/arcive
  pgconsent policy test --watch --run withdraw policy_test.yaml
  pgconsent policy test --junit report.xml --json > report.json`
}

func (p policyTestCmd) Run(s *session) error {
	s, stop := s.endWithOutput()
	defer stop()
	var match *regexp.Regexp
	if p.Match != "" {
		var err error
		if match, err = regexp.Compile(p.Match); err != nil {
			return usageError{fmt.Errorf("--run: %w", err)}
		}
	}
	files, err := p.testFiles(s)
	if err != nil {
		return err
	}
	reportStep := func(label string) {
		if !s.jsonOutput {
			fmt.Fprintln(s.err, s.paint("2", label))
		}
	}
	var server *policytest.Server
	if p.Postgres != "" {
		server, err = policytest.NewServerOn(s.ctx, p.Postgres)
	} else {
		reportStep("starting a private PostgreSQL")
		server, err = policytest.NewPrivateServer(s.ctx)
	}
	if err != nil {
		return err
	}
	isStopped := false
	stopServer := func() error {
		if isStopped {
			return nil
		}
		isStopped = true
		return server.Close(context.WithoutCancel(s.ctx))
	}
	defer func() { _ = stopServer() }() // an error before this one is reported instead
	allPassed, err := p.runOnce(s, server, files, match)
	if p.Watch && (err == nil || s.ctx.Err() == nil) {
		err = p.runOnChanges(s, server, files, match, err)
	}
	if err := errors.Join(err, stopServer()); err != nil {
		if errors.Is(context.Cause(s.ctx), syscall.EPIPE) {
			return errSilent
		}
		return err
	}
	if !allPassed && !p.Watch {
		return errSilent
	}
	return nil
}

// testFiles returns the test files that the arguments name.
func (p policyTestCmd) testFiles(s *session) ([]string, error) {
	paths := p.Paths
	if len(paths) == 0 {
		paths = []string{"."}
		file := config.FindFile(s.cli.Config)
		if _, err := os.Stat(file); err == nil || s.cli.Config != "" {
			c, err := s.loadConfig()
			if err != nil {
				return nil, err
			}
			paths = nil
			for _, db := range c.Databases {
				dir := db.Policy
				if info, err := os.Stat(dir); err != nil || !info.IsDir() {
					dir = filepath.Dir(dir)
				}
				if !slices.Contains(paths, dir) {
					paths = append(paths, dir)
				}
			}
		}
	}
	files, err := policytest.FindFiles(paths)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usageError{err}
	}
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, usageError{fmt.Errorf("there is no %s in %v or beneath: docs/howto/policy-test.md shows one",
			policytest.FileName, paths)}
	}
	return files, nil
}

// schemaReader returns a function that reads the schema of a configured database, with the role that pgconsent migrate
// uses.
func (policyTestCmd) schemaReader(s *session) func(context.Context, string) (policytest.Schema, error) {
	return func(ctx context.Context, name string) (policytest.Schema, error) {
		c, err := s.loadConfig()
		if err != nil {
			return policytest.Schema{}, err
		}
		if _, err := chooseDatabases(c, name); err != nil {
			return policytest.Schema{}, err
		}
		db := c.Databases[name]
		password, err := config.ReadSecret(db.Secrets.Migrate)
		if err != nil {
			return policytest.Schema{}, err
		}
		return policytest.DumpSchema(ctx, []string{
			"PGHOST=" + c.Upstream.Host, "PGPORT=" + strconv.Itoa(c.Upstream.Port), "PGSSLMODE=" +
				c.Upstream.TLS, "PGSSLROOTCERT=" + c.Upstream.CA,
			"PGDATABASE=" + db.Name, "PGUSER=" + db.Roles.Migrate, "PGPASSWORD=" + password,
		})
	}
}

// runOnce runs the tests of all files once.
func (p policyTestCmd) runOnce(s *session, server *policytest.Server, files []string,
	match *regexp.Regexp) (allPassed bool,
	err error) {
	allPassed = true
	printer := policytest.Printer{Out: s.out, UsesColours: s.stdoutIsTerminal}
	o := policytest.Options{TestNames: match, Dump: p.schemaReader(s)}
	if !s.jsonOutput {
		o.OnStart, o.OnFinish = printer.PrintStart, printer.PrintTest
	}
	reports := []policytest.Report{}
	for _, file := range files {
		r, err := policytest.Run(s.ctx, server, file, o)
		if err != nil {
			return false, fmt.Errorf("%s: %w", file, err)
		}
		if !s.jsonOutput {
			printer.PrintFile(r)
		}
		allPassed = allPassed && r.HasPassed()
		reports = append(reports, r)
	}
	if p.JUnit != "" {
		out, err := os.Create(p.JUnit)
		if err != nil {
			return false, err
		}
		if err := errors.Join(policytest.WriteJUnit(out, reports), out.Close()); err != nil {
			return false, err
		}
	}
	if s.jsonOutput {
		return allPassed, s.printJSON(reports)
	}
	return allPassed, nil
}

// runOnChanges runs the tests again after each change of a file, until the user interrupts the program.
func (p policyTestCmd) runOnChanges(s *session, server *policytest.Server, files []string, match *regexp.Regexp,
	runErr error) error {
	for s.ctx.Err() == nil {
		if runErr != nil {
			fmt.Fprintln(s.err, s.paint("31", errorText(runErr)))
		}
		var watchedFiles []string
		for _, file := range files {
			watchedFiles = append(watchedFiles, file)
			if f, err := policytest.Load(file); err == nil {
				watchedFiles = append(watchedFiles, f.DependentFiles()...)
			}
		}
		fmt.Fprintln(s.err, s.paint("2", "watching; Ctrl-C ends"))
		if err := policytest.WaitForChange(s.ctx, watchedFiles); err != nil || s.ctx.Err() != nil {
			return err
		}
		_, runErr = p.runOnce(s, server, files, match)
	}
	return nil
}
