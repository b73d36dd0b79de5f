package main

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/pgconsent/pgconsent/internal/dev/demo"
	"github.com/pgconsent/pgconsent/internal/dev/world"
)

type demoCmd struct {
	World    string   `default:"arcive" placeholder:"NAME" help:"Which example: ${default}, or the folder of a world (with a slash)."`
	Listen   string   `placeholder:"HOST:PORT" help:"Where clients connect. Default: 127.0.0.1:7432, or a free port if that is in use."`
	HTTP     string   `name:"http" placeholder:"HOST:PORT" help:"/metrics, /healthz, /readyz. Default: 127.0.0.1:7433, or a free port."`
	Dir      string   `placeholder:"DIR" help:"Where everything is kept. Default: ./pgconsent-demo/WORLD."`
	Postgres string   `placeholder:"DSN" help:"Use this server instead of a private one. The role needs CREATEDB and CREATEROLE."`
	Down     bool     `help:"With --postgres: remove what the demo has made there, and exit."`
	Tour     tourMode `help:"Play a guided session, then serve; --tour=only exits after it."`
}

// tourMode is the value of --tour: "", "yes" or "only".
type tourMode string

// IsBool makes --tour a flag that needs no value. It implements kong.BoolMapperValue.
func (tourMode) IsBool() bool { return true }

// Decode reads the value of --tour. It implements kong.MapperValue.
func (t *tourMode) Decode(ctx *kong.DecodeContext) error {
	*t = "yes"
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		return nil
	}
	switch v := fmt.Sprint(ctx.Scan.Pop().Value); v {
	case "only":
		*t = "only"
	case "true", "yes":
	case "false", "no":
		*t = ""
	default:
		return fmt.Errorf("--tour stands alone or as --tour=only, not --tour=%s", v)
	}
	return nil
}

func (demoCmd) Help() string {
	return `Starts a real PostgreSQL from the binaries of this machine in DIR, loads the world once, installs the policy and its row
security, serves, and prints how to connect. Another start on the same DIR resumes. Ctrl-C stops everything it started, and
nothing else. Demos of several worlds run side by side. Passwords are in DIR/secrets, with mode 0600. As root the server runs as
user postgres or nobody; where DIR is closed to that user its data are in a short path under /var/tmp.

--world takes a folder of your own as well, with world.yaml, schema.sql, data.sql and policy.yaml; docs/tutorial/worlds.md explains
them. --postgres uses a server that runs: the demo makes the database pgconsent_demo_WORLD and roles whose names begin so,
and touches nothing else; --down takes them away.

  pgconsent demo
  pgconsent demo --tour
  pgconsent demo --world ./my-app
  pgconsent demo --postgres postgres://me:secret@localhost/postgres
  pgconsent demo --json | head -n 1 | jq -r .agents.chat`
}

func (d demoCmd) Run(s *session) error {
	if d.Down && d.Postgres == "" {
		return usageError{errors.New("--down goes with --postgres: a private demo is all in its folder, which can be deleted")}
	}
	if s.jsonOutput && d.Tour == "yes" {
		return usageError{errors.New("--json and --tour do not go together: --tour=only plays it without JSON")}
	}
	w, err := world.Open(d.World)
	if err != nil {
		return err
	}
	if d.Down {
		return demo.RemoveFromServer(s.ctx, d.Postgres, w, func(label string) { fmt.Fprintf(s.err, "demo: %s\n", label) })
	}
	dir := d.Dir
	if dir == "" {
		dir = filepath.Join("pgconsent-demo", w.Name)
		if d.Postgres != "" {
			dir += "-postgres"
		}
	}
	log := s.log
	if s.cli.LogLevel == "default" {
		log = slog.New(quietHandler{s.log.Handler()})
	}
	demoRun, err := demo.Start(s.ctx, demo.Config{
		World: w, ServerDSN: d.Postgres, Folder: dir, Listen: d.Listen, HTTP: d.HTTP, Log: log,
		Progress: func(label string) { fmt.Fprintf(s.err, "demo: %s\n", label) },
	})
	if err != nil {
		return err
	}
	isStopped := false
	stopDemo := func() error {
		if isStopped {
			return nil
		}
		isStopped = true
		return demoRun.Stop()
	}
	defer func() { _ = stopDemo() }() // an error before this one is reported instead
	if s.jsonOutput {
		if err := s.printJSON(demoRun.Access); err != nil {
			return err
		}
	} else {
		s.printWelcome(w, demoRun)
	}
	if d.Tour != "" {
		tourErr := demoRun.Tour(s.ctx, s.out, s.stdoutIsTerminal)
		if d.Tour == "only" || tourErr != nil {
			return errors.Join(tourErr, stopDemo())
		}
	}
	if !s.jsonOutput {
		fmt.Fprintln(s.err, "demo: serving; Ctrl-C stops it")
	}
	tourErr := demoRun.Wait(s.ctx)
	if tourErr == nil && !s.jsonOutput {
		fmt.Fprintln(s.err, "demo: stopping")
	}
	return errors.Join(tourErr, stopDemo())
}

func (s *session) printWelcome(w *world.World, demoRun *demo.RunningDemo) {
	bold := func(text string) string { return s.paint("1", text) }
	fmt.Fprintf(s.out, "\n%s %s\n\n", bold(w.Name+":"), w.Title)
	width := len("owner")
	for _, a := range demoRun.Access.Agents {
		width = max(width, len(a.Name))
	}
	line := func(name, dsn string) {
		fmt.Fprintf(s.out, "  %s  psql '%s'\n", bold(fmt.Sprintf("%-*s", width, name)), dsn)
	}
	line("owner", demoRun.Access.OwnerDSN)
	for _, a := range demoRun.Access.Agents {
		line(a.Name, a.DSN)
	}
	fmt.Fprintf(s.out, "\n  %s\n  configuration, policy, passwords: %s\n\n", strings.Join([]string{
		"metrics " + demoRun.Access.HTTP + "/metrics", "health " + demoRun.Access.HTTP + "/healthz", "ready " +
			demoRun.Access.HTTP + "/readyz"}, "\n  "), demoRun.Dir)
}
