package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// release is the newest version in CHANGELOG.md.
const release = "0.1.0"

// version is set by the linker if the Go tool cannot record the commit.
var version string

// versionInfo is the output of "pgconsent version".
type versionInfo struct {
	Version      string `json:"version"`
	Commit       string `json:"commit"`
	Go           string `json:"go"`
	Platform     string `json:"platform"`
	GrammarMajor int    `json:"postgresql_grammar"` // the major version of PostgreSQL whose grammar the parser knows
}

// readVersion returns the version that the Go tool has recorded in the program.
func readVersion() versionInfo {
	b := versionInfo{Version: release, Commit: version, Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, GrammarMajor: sqltext.GrammarVersion()}
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
		if b.Commit == "" && info.Main.Version != "(devel)" { // somebody built the program with go install module@version
			b.Commit = info.Main.Version
		}
	}
	b.Commit = cmp.Or(b.Commit, "unknown")
	return b
}

func (b versionInfo) String() string {
	return fmt.Sprintf("pgconsent %s (commit %s, %s, %s, grammar of PostgreSQL %d)", b.Version, b.Commit, b.Go,
		b.Platform, b.GrammarMajor)
}

type versionCmd struct{}

func (versionCmd) Run(s *session) error {
	if s.jsonOutput {
		return s.printJSON(readVersion())
	}
	_, err := fmt.Fprintln(s.out, readVersion())
	return err
}

// versionFlag is the flag --version.
type versionFlag bool

// BeforeReset prints the version and ends the program.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	_, err := fmt.Fprintln(app.Stdout, readVersion())
	app.Exit(0)
	return err
}
