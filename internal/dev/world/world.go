// Package world reads worlds: examples, each with a schema, data, the policy that protects the data, and a guided tour.
//
// A world is only data: no code knows a world by its name. Loading a world does everything or nothing, and gives the
// same rows on every machine.
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
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/examples/worlds"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// World is one example.
type World struct {
	Name   string // the name of the world, and of its database
	Title  string
	Owner  string  // the role that owns the database
	Agents []Agent // the logins of the application, at least one; the first is the default
	Tour   *Tour   // nil: the world has no tour
	Policy string  // the path of the world's policy
	Dir    string  // the folder with the world's files; "": they are embedded in the program

	// Consents is a query that returns the relationships with which the consent registry begins: subject and stream. "":
	// there are none.
	Consents string

	// Subjects is a query that returns ids of persons in the data. The demo makes a token for each. "": there are none.
	Subjects string

	files fs.FS
}

// Agent is a login of the world's application.
type Agent struct {
	Name       string     `yaml:"name"`
	Attributes Attributes `yaml:"attributes"`
}

// Tour is a guided session that shows what the policy does.
type Tour struct {
	Version int    `yaml:"version"`
	Steps   []Step `yaml:"steps"`
	Restore string `yaml:"restore"` // SQL that the owner runs to undo the changes of the steps

	RestoreConsents []Consent `yaml:"restore_consents"` // changes in the consent registry that undo those of the steps
}

// Consent is a change in the consent registry that its subject makes.
type Consent struct {
	Command    string   `yaml:"do"` // the command of "pgconsent consent": grant, refuse, revoke, …
	Subject    string   `yaml:"subject"`
	Scope      string   `yaml:"scope"`
	Stream     string   `yaml:"stream"`
	Categories []string `yaml:"categories"`
}

// Step is one statement of a tour.
type Step struct {
	Text         string   `yaml:"say"`
	Role         string   `yaml:"as"`      // who runs the statement: owner or agent
	PreparedName string   `yaml:"prepare"` // the name under which SQL is prepared before it runs
	RunPrepared  string   `yaml:"run"`     // the name of the prepared statement to run, on the same connection
	SQL          string   `yaml:"sql"`
	Consent      *Consent `yaml:"consent"` // a change of a consent, in place of a statement
	Sweep        bool     `yaml:"sweep"`   // expired data is deleted now, in place of a statement
	// the expected answer: "3 rows", "error 42501", "error", or the only value of the answer; "": any answer
	ExpectedAnswer string `yaml:"expect"`
}

// databaseName makes the name of a database from the name of a folder.
func databaseName(folder string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, strings.ToLower(folder))
	if name[0] < 'a' || name[0] > 'z' {
		name = "world_" + name
	}
	return name[:min(len(name), 31)]
}

// agentNameForm matches the names that the configuration accepts for agents.
var agentNameForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$`)

var worldNameForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}$`)

// List returns the names of the embedded worlds.
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

// Open returns the embedded world of a name. If name contains a path separator, or is . or .., Open reads the world in
// that folder.
func Open(name string) (*World, error) {
	if strings.ContainsRune(name, filepath.Separator) || name == "." || name == ".." {
		abs, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		if info, err := os.Stat(abs); err != nil || !info.IsDir() {
			return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "there is no folder %s", abs).
				WithHint("Worlds that come with pgconsent are named without a slash: %s.", strings.Join(List(), ", "))
		}
		w, err := readWorld(databaseName(filepath.Base(abs)), os.DirFS(abs))
		if err != nil {
			return nil, err
		}
		w.Dir = abs
		return w, nil
	}
	if !slices.Contains(List(), name) {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "there is no world %q", name).
			WithHint("Worlds: %s. A folder is named with a slash: ./%s", strings.Join(List(), ", "), name)
	}
	files, err := fs.Sub(worlds.Files, name)
	if err != nil {
		return nil, err
	}
	return readWorld(name, files)
}

func readWorld(name string, files fs.FS) (*World, error) {
	var head struct {
		Version int     `yaml:"version"`
		Name    string  `yaml:"name"`
		Title   string  `yaml:"title"`
		Owner   string  `yaml:"owner"`
		Agents  []Agent `yaml:"agents"`

		Policy   string `yaml:"policy"`
		Consents string `yaml:"consents"`
		Subjects string `yaml:"subjects"`
	}
	switch err := decodeFile(files, "world.yaml", &head); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, newInvalidError(name,
			"its folder has no world.yaml, which says: version: 1, title: …, owner: app_owner, agents: [ { name: "+
				"chat, attributes: { … } } ]")
	case err != nil:
		return nil, newInvalidError(name, "%v", err)
	}
	if head.Name != "" {
		name = head.Name
	}
	w := &World{Name: name, Title: head.Title, Owner: head.Owner, Agents: head.Agents, Policy: head.Policy,
		Consents: head.Consents, Subjects: head.Subjects, files: files}
	if w.Policy == "" {
		w.Policy = "policy.yaml"
	}
	switch {
	case !worldNameForm.MatchString(name):
		return nil, newInvalidError(name,
			"its name must be of the form %s, since the database is called so: give it one with name: in world.yaml",
			worldNameForm)
	case head.Version != 1:
		return nil, newInvalidError(name, "world.yaml: version must be 1")
	case !worldNameForm.MatchString(w.Owner):
		return nil, newInvalidError(name, "world.yaml: owner must be a role's name of the form %s", worldNameForm)
	case len(w.Agents) == 0:
		return nil, newInvalidError(name, "world.yaml: it names no agents")
	}
	for i, a := range w.Agents {
		if !agentNameForm.MatchString(a.Name) || a.Name == w.Owner {
			return nil, newInvalidError(name,
				"world.yaml: %q cannot be an agent's name: letters, digits and _ . -, and not the owner's", a.Name)
		}
		if slices.ContainsFunc(w.Agents[:i], func(b Agent) bool { return b.Name == a.Name }) {
			return nil, newInvalidError(name, "world.yaml: agent %s is there twice", a.Name)
		}
	}
	var missing []string
	for _, file := range []string{"schema.sql", "data.sql", w.Policy} {
		_, err := w.File(file)
		if errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, file)
		} else if err != nil {
			return nil, newInvalidError(name, "%v", err)
		}
	}
	if len(missing) > 0 {
		return nil, newInvalidError(name, "its folder has no %s", strings.Join(missing, ", no "))
	}
	var tour Tour
	switch err := decodeFile(files, "tour.yaml", &tour); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, newInvalidError(name, "%v", err)
	default:
		w.Tour = &tour
	}
	return w, nil
}

func decodeFile(files fs.FS, file string, into any) error {
	text, err := fs.ReadFile(files, file)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalWithOptions(text, into, yaml.Strict()); err != nil {
		return fmt.Errorf("%s: %s", file, yaml.FormatError(err, false, false))
	}
	return nil
}

func newInvalidError(name, format string, args ...any) error {
	return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "world %s: %s", name, fmt.Sprintf(format, args...)).
		WithHint("A world is a folder with world.yaml, schema.sql, data.sql and policy.yaml; worlds/arcive is an example.")
}

// File returns the text of one of the world's files.
func (w *World) File(name string) ([]byte, error) { return fs.ReadFile(w.files, name) }

// Load fills the database to which conn is connected as superuser. It makes the owner's role without a password if the
// role is missing, and makes it the owner of the database. As that role, it loads everything in one transaction. It
// calls progress for each step, unless progress is nil.
func (w *World) Load(ctx context.Context, conn *pgx.Conn, progress func(string)) error {
	owner := pgx.Identifier{w.Owner}.Sanitize()
	for _, sql := range []string{
		`DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = '` + w.Owner +
			`') THEN CREATE ROLE ` + owner + ` LOGIN; END IF; END $$`,
		`DO $$ BEGIN EXECUTE pg_catalog.format('ALTER DATABASE %I OWNER TO ` + owner +
			`', pg_catalog.current_database()); END $$`,
	} {
		if err := runSQL(ctx, conn, sql); err != nil {
			return fmt.Errorf("world %s: prepare the database: %w", w.Name, err)
		}
	}
	if err := w.CreateExtensions(ctx, conn); err != nil {
		return err
	}
	if err := w.fillDatabase(ctx, conn, "BEGIN; SET LOCAL SESSION AUTHORIZATION "+owner, progress); err != nil {
		return err
	}
	return w.analyzeTables(ctx, conn)
}

// LoadAsOwner does the same as Load over a connection of the owner. [World.CreateExtensions] must have run before.
func (w *World) LoadAsOwner(ctx context.Context, conn *pgx.Conn, progress func(string)) error {
	if err := w.fillDatabase(ctx, conn, "BEGIN", progress); err != nil {
		return err
	}
	return w.analyzeTables(ctx, conn)
}

// CreateExtensions runs the world's extensions.sql, if there is one. The role of conn must have the rights to do so.
func (w *World) CreateExtensions(ctx context.Context, conn *pgx.Conn) error {
	text, err := w.File("extensions.sql")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = runSQL(ctx, conn, string(text))
	}
	if err != nil {
		return fmt.Errorf("world %s: extensions.sql: %w", w.Name, err)
	}
	return nil
}

// fillDatabase runs the SQL of the schema and the data in one transaction.
func (w *World) fillDatabase(ctx context.Context, conn *pgx.Conn, begin string, progress func(string)) error {
	if progress == nil {
		progress = func(string) {}
	}
	if err := runSQL(ctx, conn, begin); err != nil {
		return err
	}
	for _, step := range []struct{ file, message string }{{"schema.sql", "schema"}, {"data.sql", "data"}} {
		progress("loading the " + step.message + " of world " + w.Name)
		text, err := w.File(step.file)
		if err == nil {
			err = runSQL(ctx, conn, string(text))
		}
		if err != nil {
			_ = runSQL(context.WithoutCancel(ctx), conn, "ROLLBACK")
			return fmt.Errorf("world %s: %s%s: %w", w.Name, step.file, textPosition(string(text), err), err)
		}
	}
	if err := runSQL(ctx, conn, "COMMIT"); err != nil {
		return fmt.Errorf("world %s: %w", w.Name, err)
	}
	return nil
}

// textPosition returns the line and column of a syntax error in SQL. For errors during execution, the server reports no
// position.
func textPosition(text string, err error) string {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Position <= 0 {
		return ""
	}
	before := []rune(text)
	before = before[:min(len(before), int(pgErr.Position)-1)]
	line, column := 1, 1
	for _, r := range before {
		if column++; r == '\n' {
			line, column = line+1, 1
		}
	}
	return fmt.Sprintf(":%d:%d", line, column)
}

func (w *World) analyzeTables(ctx context.Context, conn *pgx.Conn) error {
	if err := runSQL(ctx, conn, "SET client_min_messages = error; ANALYZE; RESET client_min_messages"); err != nil {
		return fmt.Errorf("world %s: %w", w.Name, err)
	}
	return nil
}

// runSQL runs SQL text that may contain several statements.
func runSQL(ctx context.Context, conn *pgx.Conn, text string) error {
	_, err := conn.PgConn().Exec(ctx, text).ReadAll()
	return err
}

// AttributeNames returns the names of the attributes that the world's agents have, sorted.
func (w *World) AttributeNames() []string {
	names := map[string]bool{}
	for _, a := range w.Agents {
		for n := range a.Attributes {
			names[n] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
