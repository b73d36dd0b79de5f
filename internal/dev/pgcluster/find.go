//go:build unix

package pgcluster

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// MinMajor is the oldest major version of PostgreSQL that pgconsent works with.
const MinMajor = 15

// Binaries is a folder with the programs postgres and initdb of one version.
type Binaries struct {
	Dir     string
	Major   int
	Version string // the version as the server prints it, such as 15.20
}

// binaryDirs are the folders in which packages usually install PostgreSQL, as patterns for filepath.Glob.
var binaryDirs = []string{
	"/usr/lib/postgresql/*/bin",         // Debian, Ubuntu
	"/usr/pgsql-*/bin",                  // RHEL, Fedora with the PGDG packages
	"/opt/homebrew/opt/postgresql*/bin", // macOS, Apple silicon
	"/usr/local/opt/postgresql*/bin",    // macOS, Intel
	"/opt/homebrew/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/opt/local/lib/postgresql*/bin", // MacPorts
	"/usr/local/pgsql/bin",           // built from source
	"/usr/local/bin",
	"/usr/libexec/postgresql*",
	"/usr/bin",
}

// FindBinaries returns the binaries in the folder $PG_BIN if it is set. Otherwise it returns those in PATH, or else the
// newest in the usual folders.
func FindBinaries(ctx context.Context) (Binaries, error) { return findMajor(ctx, 0, binaryDirs) }

// findMajor finds binaries of the given major version; 0: any version from [MinMajor] on.
func findMajor(ctx context.Context, major int, globs []string) (Binaries, error) {
	fits := func(b Binaries) bool { return b.Major >= MinMajor && (major == 0 || b.Major == major) }
	if dir := os.Getenv("PG_BIN"); dir != "" {
		b, err := readVersion(ctx, dir)
		if err != nil {
			return Binaries{}, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream,
				"PG_BIN=%s has no PostgreSQL server: %v", dir, err).
				WithHint("Point PG_BIN at the folder that holds postgres and initdb, or unset it.")
		}
		if !fits(b) {
			return Binaries{}, checkMajor(b, major)
		}
		return b, nil
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil { // the folder of the real path also has psql and pg_dump
			path = real
		}
		if b, err := readVersion(ctx, filepath.Dir(path)); err == nil && fits(b) {
			return b, nil
		}
	}
	var found []Binaries
	for _, glob := range globs {
		dirs, _ := filepath.Glob(glob)
		for _, dir := range dirs {
			if b, err := readVersion(ctx, dir); err == nil {
				found = append(found, b)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Binaries) int { return -cmp.Compare(a.Major, b.Major) })
	for _, b := range found {
		if fits(b) {
			return b, nil
		}
	}
	if len(found) > 0 {
		return Binaries{}, checkMajor(found[0], major)
	}
	return Binaries{}, missingBinariesError(major)
}

func checkMajor(b Binaries, major int) error {
	if major != 0 {
		return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream,
			"the folder was made by PostgreSQL %d, but %s has %s", major, b.Dir, b.Version).
			WithHint("Install PostgreSQL %d again, or delete the folder to start over. %s", major, installHint)
	}
	return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream,
		"PostgreSQL %s in %s is too old: %d or later is needed", b.Version, b.Dir, MinMajor).
		WithHint("%s", installHint)
}

// missingBinariesError returns the error for a machine that has no binaries of a major version.
func missingBinariesError(major int) error {
	if major != 0 {
		return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream,
			"no PostgreSQL %d on this machine, which the folder was made by", major).
			WithHint("Install it again, or delete the folder to start over. %s", installHint)
	}
	return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream, "no PostgreSQL server binaries on this machine").
		WithHint("%s", installHint)
}

const installHint = "Debian and Ubuntu: sudo apt-get install postgresql postgresql-contrib (or: make setup). " +
	"macOS: brew install postgresql@17. Elsewhere: set PG_BIN to the folder that holds postgres and initdb."

var versionLine = regexp.MustCompile(`\(PostgreSQL\) ((\d+)[^\s]*)`)

// readVersion returns the version of the binaries in dir.
func readVersion(ctx context.Context, dir string) (Binaries, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := exec.LookPath(filepath.Join(dir, "initdb")); err != nil {
		return Binaries{}, err
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return Binaries{}, err
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return Binaries{}, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream,
			"%s/postgres does not tell its version", dir)
	}
	major, err := strconv.Atoi(string(m[2]))
	if err != nil {
		return Binaries{}, err
	}
	return Binaries{Dir: dir, Major: major, Version: string(m[1])}, nil
}
