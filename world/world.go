// Package world reads worlds: examples with a schema, its data, the policy that protects it and a guided tour.
//
// A world is data. Nothing here or elsewhere in the engine knows one by name; what a world needs, its files say. Loading
// is all or nothing, and gives the same rows on every machine.
package world

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/sqlstate"
	"github.com/pgconsent/pgconsent/worlds"
)

// World is one example.
type World struct {
	Name   string // also of its database
	Title  string
	Owner  string  // the role that owns the database
	Agents []Agent // at least one; the first is the default one
	Tour   *Tour   // nil: it has none

	files fs.FS
}

// Agent is a login of the world's application.
type Agent struct {
	Name       string     `yaml:"name"`
	Attributes Attributes `yaml:"attributes"`
}

// Tour is a session that shows what the policy does.
type Tour struct {
	Version int    `yaml:"version"`
	Steps   []Step `yaml:"steps"`
	Restore string `yaml:"restore"` // undoes, as the owner, what the steps changed
}

// Step is one statement of a tour.
type Step struct {
	Say     string `yaml:"say"`
	As      string `yaml:"as"`      // owner or agent
	Prepare string `yaml:"prepare"` // prepares SQL under this name, then runs it
	Run     string `yaml:"run"`     // runs what was prepared, on the same connection
	SQL     string `yaml:"sql"`
	Expect  string `yaml:"expect"` // "3 rows", "error 42501", "error", or the one value of the answer; "": anything
}

var validName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}$`)

// List names the embedded worlds.
func List() []string {
	entries, err := fs.ReadDir(worlds.Files, ".")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// Get returns an embedded world by name, or the one in a folder if name has a path separator.
func Get(name string) (*World, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		abs, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		return read(filepath.Base(abs), os.DirFS(abs))
	}
	if !slices.Contains(List(), name) {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "there is no world %q", name).
			WithHint("Worlds: %s. A folder is named with a slash: ./%s", strings.Join(List(), ", "), name)
	}
	files, err := fs.Sub(worlds.Files, name)
	if err != nil {
		return nil, err
	}
	return read(name, files)
}

func read(name string, files fs.FS) (*World, error) {
	if !validName.MatchString(name) {
		return nil, broken(name, "its folder's name must be of the form %s, since the database is called so", validName)
	}
	var head struct {
		Version int     `yaml:"version"`
		Title   string  `yaml:"title"`
		Owner   string  `yaml:"owner"`
		Agents  []Agent `yaml:"agents"`
	}
	if err := decode(files, "world.yaml", &head); err != nil {
		return nil, broken(name, "%v", err)
	}
	w := &World{Name: name, Title: head.Title, Owner: head.Owner, Agents: head.Agents, files: files}
	switch {
	case head.Version != 1:
		return nil, broken(name, "world.yaml: version must be 1")
	case !validName.MatchString(w.Owner):
		return nil, broken(name, "world.yaml: owner must be a role's name of the form %s", validName)
	case len(w.Agents) == 0:
		return nil, broken(name, "world.yaml: it names no agents")
	}
	for _, file := range []string{"schema.sql", "data.sql", "policy.yaml"} {
		if _, err := w.File(file); err != nil {
			return nil, broken(name, "%v", err)
		}
	}
	var tour Tour
	switch err := decode(files, "tour.yaml", &tour); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, broken(name, "%v", err)
	default:
		w.Tour = &tour
	}
	return w, nil
}

func decode(files fs.FS, file string, into any) error {
	text, err := fs.ReadFile(files, file)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalWithOptions(text, into, yaml.Strict()); err != nil {
		return fmt.Errorf("%s: %s", file, yaml.FormatError(err, false, false))
	}
	return nil
}

func broken(name, format string, args ...any) error {
	return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "world %s: %s", name, fmt.Sprintf(format, args...)).
		WithHint("A world is a folder with world.yaml, schema.sql, data.sql and policy.yaml; worlds/arcive is an example.")
}

// File returns the text of one of the world's files.
func (w *World) File(name string) ([]byte, error) { return fs.ReadFile(w.files, name) }

// Load fills the database that conn, a superuser's connection, is on. It makes the owner's role if that is missing
// (without a password), gives it the database, and loads as that role in one transaction. Progress, which may be nil,
// hears what is being done.
func (w *World) Load(ctx context.Context, conn *pgx.Conn, progress func(string)) error {
	if progress == nil {
		progress = func(string) {}
	}
	owner := pgx.Identifier{w.Owner}.Sanitize()
	prelude := []string{
		`DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = '` + w.Owner + `') THEN CREATE ROLE ` + owner + ` LOGIN; END IF; END $$`,
		`DO $$ BEGIN EXECUTE pg_catalog.format('ALTER DATABASE %I OWNER TO ` + owner + `', pg_catalog.current_database()); END $$`,
	}
	if text, err := w.File("extensions.sql"); err == nil {
		prelude = append(prelude, string(text))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, sql := range prelude {
		if err := run(ctx, conn, sql); err != nil {
			return fmt.Errorf("world %s: prepare the database: %w", w.Name, err)
		}
	}
	if err := run(ctx, conn, "BEGIN; SET LOCAL SESSION AUTHORIZATION "+owner); err != nil {
		return err
	}
	for _, step := range []struct{ file, say string }{{"schema.sql", "schema"}, {"data.sql", "data"}} {
		progress("loading the " + step.say + " of world " + w.Name)
		text, err := w.File(step.file)
		if err == nil {
			err = run(ctx, conn, string(text))
		}
		if err != nil {
			_ = run(context.WithoutCancel(ctx), conn, "ROLLBACK")
			return fmt.Errorf("world %s: %s: %w", w.Name, step.file, err)
		}
	}
	for _, sql := range []string{"COMMIT", "ANALYZE"} {
		if err := run(ctx, conn, sql); err != nil {
			return fmt.Errorf("world %s: %w", w.Name, err)
		}
	}
	return nil
}

// run sends text that may hold several statements.
func run(ctx context.Context, conn *pgx.Conn, text string) error {
	_, err := conn.PgConn().Exec(ctx, text).ReadAll()
	return err
}

// AttributeNames are the attributes the world's agents have, sorted.
func (w *World) AttributeNames() []string {
	names := map[string]bool{}
	for _, a := range w.Agents {
		for n := range a.Attributes {
			names[n] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
