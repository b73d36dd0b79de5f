package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// release is the version that CHANGELOG.md speaks of.
const release = "0.1.0"

// version is set when linking, where the build does not know the commit by itself; "": it does.
var version string

// build is what the program says of itself.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Grammar  int    `json:"postgresql_grammar"` // the major version
}

// built reads what the Go tool has written into the program.
func built() build {
	b := build{Version: release, Commit: version, Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Grammar: sqltext.GrammarMajor()}
	info, ok := debug.ReadBuildInfo()
	if ok && b.Commit == "" {
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		b.Commit = settings["vcs.revision"]
		b.Commit = b.Commit[:min(len(b.Commit), 12)]
		if b.Commit != "" && settings["vcs.modified"] == "true" {
			b.Commit += "-dirty"
		}
		if b.Commit == "" && info.Main.Version != "(devel)" { // go install module@version
			b.Commit = info.Main.Version
		}
	}
	b.Commit = cmp.Or(b.Commit, "unknown")
	return b
}

func (b build) String() string {
	return fmt.Sprintf("pgconsent %s (commit %s, %s, %s, grammar of PostgreSQL %d)", b.Version, b.Commit, b.Go,
		b.Platform, b.Grammar)
}

type versionCmd struct{}

func (versionCmd) Run(s *session) error {
	if s.json {
		return s.print(built())
	}
	_, err := fmt.Fprintln(s.out, built())
	return err
}

// versionFlag is --version, which programs are asked for.
type versionFlag bool

// BeforeReset prints the version and ends the program.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	_, err := fmt.Fprintln(app.Stdout, built())
	app.Exit(0)
	return err
}
