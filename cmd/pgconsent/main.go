// Command pgconsent is the sidecar (pgconsent serve) and its tools.
//
// Exit codes: 0 the command succeeded, 1 something is wrong, 2 the command line is wrong, 3 doctor could not make a
// check.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

func main() {
	os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// The exit codes of the program. The command doctor ends with exitUnknown if it could not make a check.
const (
	exitOK      = 0
	exitError   = 1
	exitUsage   = 2
	exitUnknown = 3
)

// streams are the standard streams of a run of the program.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// commands defines the whole command line: all commands with their flags.
type commands struct {
	globalFlags

	Demo       demoCmd       `cmd:"" help:"Start a real PostgreSQL with an example and the proxy before it."`
	Init       initCmd       `cmd:"" help:"Look at a database and write a starter configuration and policy."`
	Serve      serveCmd      `cmd:"" help:"Run the sidecar."`
	Migrate    migrateCmd    `cmd:"" help:"Install, update or remove the database side: roles, row security, keys."`
	Doctor     doctorCmd     `cmd:"" help:"Check whether the databases can enforce the policy; say what to fix."`
	Rewrite    rewriteCmd    `cmd:"" help:"Print what an agent's statement becomes, or why it is refused."`
	Explain    explainCmd    `cmd:"" help:"Print what a statement reads, and what contracts and rules decide about it."`
	Why        whyCmd        `cmd:"" help:"Explain why an agent sees a row or not, block by block."`
	Policy     policyCmd     `cmd:"" help:"Check and test the policy."`
	Observe    observeCmd    `cmd:"" help:"Report what the policy would do: from what was observed, or from statements of a log."`
	Audit      auditCmd      `cmd:"" help:"Print, verify and export the records of statements and consents."`
	Agent      agentCmd      `cmd:"" help:"Logins of agents."`
	Operator   operatorCmd   `cmd:"" help:"Logins of operators, for the admin console."`
	Token      tokenCmd      `cmd:"" help:"Tokens for callers of the API."`
	Consent    consentCmd    `cmd:"" help:"The consent registry: who has consented to what."`
	Privacy    privacyCmd    `cmd:"" help:"Memories and their grants: add, grant, revoke, consent, audit."`
	Context    contextCmd    `cmd:"" help:"Contexts of memories: enter, list, show."`
	Generalize generalizeCmd `cmd:"" help:"Share what was learned from a private memory, if it does not identify anybody."`
	Bench      benchCmd      `cmd:"" help:"Measure what pgconsent costs on your database: direct, as owner, as agent."`
	Sweep      sweepCmd      `cmd:"" help:"Delete and anonymise once what consents no longer cover."`
	DSAR       dsarCmd       `cmd:"" name:"dsar" help:"Make the report to a data subject about the data kept of them."`
	MCP        mcpCmd        `cmd:"" name:"mcp" help:"Serve the Model Context Protocol on stdio, in front of a running serve."`
	Help       helpCmd       `cmd:"" help:"Print the help of a command."`
	Completion completionCmd `cmd:"" help:"Print the completion script of a shell."`
	Man        manCmd        `cmd:"" help:"Print the manual page."`
	Version    versionCmd    `cmd:"" help:"Print the version, the commit, and the Go and the PostgreSQL grammar that it was built with."`
}

// globalFlags are the flags that every command has.
type globalFlags struct {
	Config    string      `short:"c" env:"PGCONSENT_CONFIG" placeholder:"FILE" help:"The configuration. Default: ./pgconsent.yaml."`
	Versioned versionFlag `name:"version" help:"Print the version."`
	JSON      bool        `name:"json" help:"Print for programs: JSON on stdout."`
	LogFormat string      `enum:"auto,text,json" default:"auto" help:"Logs on stderr: text, json, or auto: text on a terminal, else json."`
	LogLevel  string      `enum:"debug,info,warn,error,default" default:"default" help:"debug, info, warn or error. Default: info, for the demo warn."`
}

// session is the environment of one run of the program: its streams, flags and logger.
type session struct {
	streams
	ctx              context.Context
	jsonOutput       bool
	stdoutIsTerminal bool // stdout is a terminal
	cli              *commands
	log              *slog.Logger
}

// usageError is an error in the command line, with which the program ends with exit code 2.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// errSilent ends the program with exit code 1, after the command has printed why.
var errSilent = errors.New("")

// errUnknown ends the program with exit code 3, after the command has printed what could not be checked.
var errUnknown = errors.New("")

func run(args []string, s streams) (code int) {
	var cli commands
	s.out, s.err = newTerminalWriter(s.out), newTerminalWriter(s.err)
	exitCode := -1
	parser, err := kong.New(&cli,
		kong.Name("pgconsent"),
		kong.Description(description),
		kong.Writers(s.out, s.err),
		kong.Exit(func(code int) { exitCode = code; panic(exitPanic{}) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 110}),
	)
	if err != nil {
		fmt.Fprintln(s.err, "pgconsent:", err)
		return exitError
	}
	// the parser ends the program by a panic after it has printed help
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(exitPanic); !ok {
				panic(r)
			}
			code = exitCode
		}
	}()
	if len(args) == 0 {
		args = []string{"--help"}
	}
	for i, a := range args {
		if !utf8.ValidString(a) { // the parser would silently replace bytes that are not UTF-8
			fmt.Fprintf(s.err, "pgconsent: argument %d is not UTF-8 text\n", i+1)
			return exitUsage
		}
	}
	if args[0] == completeWord {
		return printCandidates(s, args[1:])
	}
	parseContext, err := parser.Parse(expandListFlags(args))
	if err != nil {
		fmt.Fprintf(s.err, "pgconsent: %v\n", err)
		dashHint := ""
		if strings.HasPrefix(err.Error(), "unknown flag -") && !strings.HasPrefix(err.Error(), "unknown flag --") {
			dashHint = " An id that begins with - comes after --."
		}
		fmt.Fprintf(s.err, "hint: %s --help shows what there is.%s\n",
			strings.TrimSpace("pgconsent "+selectedCommand(parseContext, err)), dashHint)
		return exitUsage
	}
	if name := findEmptyFlag(parseContext); name != "" {
		fmt.Fprintf(s.err, "pgconsent: --%s is empty, which is not the same as left out\n", name)
		return exitUsage
	}
	ctx, stop := signalContext()
	defer stop()
	runSession := &session{streams: s, ctx: ctx, jsonOutput: cli.JSON, stdoutIsTerminal: isTerminal(s.out), cli: &cli}
	runSession.log = runSession.newLogger()
	if err := parseContext.Run(runSession); err != nil {
		return runSession.printError(err)
	}
	return exitOK
}

// flagsThatMayBeEmpty are the names of the flags that may have an empty value.
var flagsThatMayBeEmpty = []string{"reason", "evidence", "contact", "note", "abstraction-note"}

// findEmptyFlag returns a flag with an empty value, as a script with an unset variable may give it. It must not count
// as left out: a missing grantee means everybody, and a missing scope means everything.
func findEmptyFlag(parseContext *kong.Context) string {
	flagCounts := map[*kong.Flag]int{}
	for _, p := range parseContext.Path {
		if p.Flag == nil || slices.Contains(flagsThatMayBeEmpty, p.Flag.Name) {
			continue
		}
		flagCounts[p.Flag]++
		switch p.Flag.Target.Kind() {
		case reflect.String:
			if p.Flag.Target.String() == "" {
				return p.Flag.Name
			}
		case reflect.Slice: // a list flag on the command line has at least one value
			if p.Flag.Target.Len() < flagCounts[p.Flag] {
				return p.Flag.Name
			}
		}
	}
	return ""
}

// exitPanic is the value of a panic that ends the program with an exit code.
type exitPanic struct{}

const description = `pgconsent: agents connect with a normal PostgreSQL DSN and see only what people have consented to; ` +
	`the rest does not exist.

Start with:

  pgconsent demo --tour         a real PostgreSQL with example data, the proxy before it, and a guided tour

Beside your own database:

  pgconsent init --dsn DSN      a configuration and a policy to begin with
  pgconsent policy check        is the policy right?
  pgconsent migrate --dry-run   the SQL that a DBA would review
  pgconsent migrate             install it
  pgconsent agent add chat      a login for an agent
  pgconsent doctor              can the database enforce the policy?
  pgconsent serve               run the sidecar`

// selectedCommand returns the command that the command line names, for messages after an error.
func selectedCommand(_ *kong.Context, err error) string {
	var parseErr *kong.ParseError
	if errors.As(err, &parseErr) && parseErr.Context != nil && parseErr.Context.Selected() != nil {
		return parseErr.Context.Selected().Path()
	}
	return ""
}

// printError prints an error with its hint and returns the exit code.
func (s *session) printError(err error) int {
	var u usageError
	code := exitError
	if errors.As(err, &u) {
		code = exitUsage
	}
	if errors.Is(err, errSilent) {
		return code
	}
	if errors.Is(err, errUnknown) {
		return exitUnknown
	}
	if errors.Is(err, context.Canceled) && s.ctx.Err() != nil {
		fmt.Fprintln(s.err, "pgconsent: stopped")
		return exitError
	}
	var e *sqlstate.Error
	var namedErr consent.Named
	if s.jsonOutput {
		out := map[string]string{"error": errorText(err)}
		if errors.As(err, &e) && e.Hint != "" {
			out["hint"] = e.Hint
		}
		if errors.As(err, &namedErr) {
			out["name"], out["sqlstate"] = namedErr.Name(), string(sqlstate.AsError(err).Code)
		}
		_ = json.NewEncoder(s.err).Encode(out)
		return code
	}
	red, reset := "", ""
	if isTerminal(s.err) {
		red, reset = "\x1b[31m", "\x1b[0m"
	}
	name := ""
	if errors.As(err, &namedErr) {
		name = namedErr.Name() + ": "
	}
	fmt.Fprintf(s.err, "%spgconsent: %s%s%s\n", red, name, errorText(err), reset)
	if errors.As(err, &e) && e.Hint != "" {
		fmt.Fprintf(s.err, "hint: %s\n", e.Hint)
	}
	return code
}

// printJSON writes a value as JSON, for programs.
func (s *session) printJSON(v any) error {
	e := json.NewEncoder(s.out)
	e.SetEscapeHTML(false) // SQL contains many < and >
	return e.Encode(v)
}

// errorText returns the text of an error for people. It leaves out the SQLSTATE of errors about a configuration.
func errorText(err error) string {
	var e *sqlstate.Error
	if errors.As(err, &e) && e.Code == sqlstate.ConfigFileError {
		suffix := fmt.Sprintf(" (SQLSTATE %s)", e.Code)
		return strings.Replace(err.Error(), suffix, "", 1)
	}
	return err.Error()
}

// newLogger returns a logger that writes to stderr.
func (s *session) newLogger() *slog.Logger {
	level := slog.LevelInfo
	switch s.cli.LogLevel {
	case "debug":
		level = slog.LevelDebug
	case "warn":
		level = slog.LevelWarn
	case "error":
		level = slog.LevelError
	}
	options := &slog.HandlerOptions{Level: level}
	if s.cli.LogFormat == "text" || s.cli.LogFormat == "auto" && isTerminal(s.err) {
		return slog.New(slog.NewTextHandler(s.err, options))
	}
	return slog.New(slog.NewJSONHandler(s.err, options))
}

// loadConfig reads the configuration that --config names.
func (s *session) loadConfig() (*config.Config, error) {
	return config.Load(config.FindFile(s.cli.Config))
}

func isTerminal(w io.Writer) bool {
	if p, ok := w.(*plainWriter); ok {
		w = p.writer
	}
	return isDevice(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
