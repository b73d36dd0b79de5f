package policytest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/pgconsent/pgconsent/internal/dev/world"
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/policy"
)

// FileName is what a file of tests is called, in a folder.
const FileName = "policy_test.yaml"

// File is a file of tests as it is written.
type File struct {
	Path        string
	Policy      string   // file or folder
	PolicyAt    Place    // where the file names the policy
	Extensions  []string // SQL files that the server's administrator runs
	Schema      []string // SQL files that the owner runs
	Data        []string // SQL files that the owner runs after those of Schema
	Database    string   // a database of the configuration, whose schema is copied; "": the files of Schema make it
	DatabaseAt  Place
	Owner       string
	SearchPath  []string
	Enforcement string // auto or both
	Callers     []*Caller
	Given       []Change
	Tests       []*Test
}

// Caller is an agent.
type Caller struct {
	Place
	Name       string
	Attributes map[string]string
	Set        []Setting // sent as the session begins, as in a DSN
}

// Setting is a setting and its value.
type Setting struct{ Name, Value string }

// Test is one test.
type Test struct {
	Place
	Name  string
	As    string // the caller where an expectation names none
	Steps []Step
}

// Step is what is given, what then happens, and what is expected then.
type Step struct {
	Given, When []Change
	Then        []Expectation
}

// Change is something that the owner does: rows of a table, or SQL.
type Change struct {
	Place
	Table string
	Rows  []*node
	SQL   string
}

// Expectation is what a caller sees, or is answered.
type Expectation struct {
	Place
	As  string
	Set []Setting // SET before, for the rest of the test

	Sees, Shows, Hides []Rows
	Columns            []Rows // per table the names of its columns

	Query   string
	Value   *node
	Rows    *node
	Count   int // the expected number of rows; -1: none is expected
	Changes int // -1: not said
	Ordered bool
	Error   string // SQLSTATE, or "any"
	Message string
}

// Rows are rows of a table: by key, or how many, or all.
type Rows struct {
	Place
	Table string
	Keys  []*node
	Count int // -1: by keys
	All   bool
}

var callerName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$`)

// FindFiles returns the files of tests that the arguments name: files, and of folders policy_test.yaml in them and
// beneath.
func FindFiles(paths []string) ([]string, error) {
	var out []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			out = append(out, path)
			continue
		}
		err = filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && file != path && strings.HasPrefix(d.Name(), "."):
				return filepath.SkipDir
			case !d.IsDir() && d.Name() == FileName:
				out = append(out, file)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Load reads a file of tests. An error is of type policy.Errors where the file is at fault.
func Load(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path, SearchPath: []string{"public"}, Enforcement: "auto"}
	r := &fileReader{file: path}
	if err := f.useWorldFolder(); err != nil {
		return nil, err
	}
	root := r.parse(data)
	if root != nil && len(r.errs) == 0 {
		r.readRoot(f, root)
	}
	if len(r.errs) > 0 {
		return nil, r.errs
	}
	return f, nil
}

// useWorldFolder fills in what a world's folder has: its agents are the callers, its files the schema and the data.
func (f *File) useWorldFolder() error {
	dir := filepath.Dir(f.Path)
	there := func(into *[]string, name string) {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			*into = []string{filepath.Join(dir, name)}
		}
	}
	there(&f.Extensions, "extensions.sql")
	there(&f.Schema, "schema.sql")
	there(&f.Data, "data.sql")
	f.Policy = filepath.Join(dir, "policy.yaml")
	text, err := os.ReadFile(filepath.Join(dir, "world.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var head struct {
		Owner  string        `yaml:"owner"`
		Agents []world.Agent `yaml:"agents"`
	}
	if err := yaml.Unmarshal(text, &head); err != nil {
		return policy.Errors{{File: filepath.Join(dir, "world.yaml"), Message: yaml.FormatError(err, false, false)}}
	}
	f.Owner = head.Owner
	for _, a := range head.Agents {
		f.Callers = append(f.Callers, &Caller{Place: Place{File: filepath.Join(dir, "world.yaml"), Line: 1, Column: 1}, Name: a.Name,
			Attributes: a.Attributes})
	}
	return nil
}

// relativePath makes the path of a file relative to the test file's folder.
func (f *File) relativePath(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(f.Path), path)
}

func (r *fileReader) readRoot(f *File, n *node) {
	files := func(into *[]string, what string) func(*node) {
		return func(n *node) {
			r.words(into, what)(n)
			for i, name := range *into {
				(*into)[i] = f.relativePath(name)
				if _, err := os.Stat((*into)[i]); err != nil {
					r.fail(n.Place, "paths are relative to this file", "%s: there is no file %s", what, name)
				}
			}
		}
	}
	f.PolicyAt = n.Place
	r.fields(n, "the file", map[string]func(*node){
		"version": func(v *node) {
			if v.Kind != yamlfile.Scalar || v.Value != "1" {
				r.fail(v.Place, "this pgconsent reads version 1", "unknown version of the tests")
			}
		},
		"policy": func(v *node) {
			r.word(&f.Policy, "policy")(v)
			f.Policy, f.PolicyAt = f.relativePath(f.Policy), v.Place
		},
		"extensions": files(&f.Extensions, "extensions"),
		"schema":     files(&f.Schema, "schema"),
		"data":       files(&f.Data, "data"),
		"database": func(v *node) {
			r.word(&f.Database, "database")(v)
			f.DatabaseAt = v.Place
		},
		"owner":       r.word(&f.Owner, "owner"),
		"search_path": r.words(&f.SearchPath, "search_path"),
		"enforcement": func(v *node) {
			r.word(&f.Enforcement, "enforcement")(v)
			if f.Enforcement == "doors" { // its old name
				f.Enforcement = "auto"
			}
			if f.Enforcement != "both" && f.Enforcement != "auto" {
				r.fail(v.Place, policy.Suggest(f.Enforcement, []string{"auto", "both"}),
					"enforcement is auto or both, not %q", f.Enforcement)
			}
		},
		"callers": func(v *node) {
			f.Callers = nil
			if !r.want(v, yamlfile.Mapping, "callers") {
				return
			}
			for i, name := range v.Keys {
				f.Callers = append(f.Callers, r.readCaller(v.KeyAt[i], name, v.Values[i]))
			}
		},
		"given": func(v *node) { f.Given = r.readChanges(v, "given") },
		"tests": func(v *node) {
			if !r.want(v, yamlfile.List, "tests") {
				return
			}
			for _, t := range v.Items {
				f.Tests = append(f.Tests, r.readTest(f, t))
			}
		},
	})
	if n.Get("version") == nil {
		r.fail(n.Place, `begin with "version: 1"`, "the file needs \"version\"")
	}
	if len(f.Tests) == 0 && len(r.errs) == 0 {
		r.fail(n.Place, "tests: [ { name: …, as: …, then: [ { sees: … } ] } ]", "the file has no tests")
	}
	names := map[string]Place{}
	for _, t := range f.Tests {
		if first, twice := names[t.Name]; twice && t.Name != "" {
			r.fail(t.Place, "", "a test %q is there already, at line %d", t.Name, first.Line)
		}
		names[t.Name] = t.Place
	}
}

func (r *fileReader) readCaller(at Place, name string, n *node) *Caller {
	c := &Caller{Place: at, Name: name, Attributes: map[string]string{}}
	if !callerName.MatchString(name) || name == "owner" {
		r.fail(at, "letters, digits and _ . - ; \"owner\" is the owner", "%q cannot be a caller's name", name)
	}
	r.fields(n, "caller "+name, map[string]func(*node){
		"attributes": func(v *node) {
			if !r.want(v, yamlfile.Mapping, "attributes") {
				return
			}
			for i, attribute := range v.Keys {
				switch value := v.Values[i]; value.Kind {
				case yamlfile.Scalar:
					c.Attributes[attribute] = value.Value
				case yamlfile.List:
					var elements []string
					for _, e := range value.Items {
						if r.want(e, yamlfile.Scalar, "an element of "+attribute) {
							elements = append(elements, e.Value)
						}
					}
					c.Attributes[attribute] = predicate.WriteArray(elements)
				default:
					r.fail(value.Place, "leave it out", "attribute %s has no value", attribute)
				}
			}
		},
		"set": func(v *node) { c.Set = r.readSettings(v) },
	})
	return c
}

func (r *fileReader) readSettings(n *node) []Setting {
	var out []Setting
	if !r.want(n, yamlfile.Mapping, "set") {
		return nil
	}
	for i, name := range n.Keys {
		if r.want(n.Values[i], yamlfile.Scalar, "the value of "+name) {
			out = append(out, Setting{name, n.Values[i].Value})
		}
	}
	return out
}

func (r *fileReader) readChanges(n *node, what string) []Change {
	switch n.Kind {
	case yamlfile.Scalar:
		return []Change{{Place: n.Place, SQL: n.Value}}
	case yamlfile.List:
		var out []Change
		for _, v := range n.Items {
			out = append(out, r.readChanges(v, what)...)
		}
		return out
	case yamlfile.Mapping:
		var out []Change
		for i, table := range n.Keys {
			c := Change{Place: n.KeyAt[i], Table: table}
			rows := n.Values[i]
			if rows.Kind == yamlfile.Mapping {
				rows = &node{Place: rows.Place, Kind: yamlfile.List, Items: []*node{rows}}
			}
			if !r.want(rows, yamlfile.List, "the rows of "+table) {
				continue
			}
			for _, row := range rows.Items {
				if r.want(row, yamlfile.Mapping, "a row of "+table) {
					c.Rows = append(c.Rows, row)
				}
			}
			out = append(out, c)
		}
		return out
	default:
		r.fail(n.Place, "write SQL, or { table: [ { column: value } ] }", "%s is empty", what)
		return nil
	}
}

func (r *fileReader) readTest(f *File, n *node) *Test {
	t := &Test{Place: n.Place}
	if !r.want(n, yamlfile.Mapping, "a test") {
		return t
	}
	step := Step{}
	r.fields(n, "the test", map[string]func(*node){
		"name":  r.word(&t.Name, "name"),
		"as":    func(v *node) { t.As = r.readCallerOrOwner(f, v) },
		"given": func(v *node) { step.Given = r.readChanges(v, "given") },
		"when":  func(v *node) { step.When = r.readChanges(v, "when") },
		"then":  func(v *node) { step.Then = r.readExpectations(f, t, v) },
		"steps": func(v *node) {
			if !r.want(v, yamlfile.List, "steps") {
				return
			}
			for _, s := range v.Items {
				next := Step{}
				r.fields(s, "a step", map[string]func(*node){
					"given": func(v *node) { next.Given = r.readChanges(v, "given") },
					"when":  func(v *node) { next.When = r.readChanges(v, "when") },
					"then":  func(v *node) { next.Then = r.readExpectations(f, t, v) },
				})
				t.Steps = append(t.Steps, next)
			}
		},
	})
	if t.Name == "" {
		r.fail(n.Place, "say in a sentence what must hold", "the test has no name")
	}
	t.Steps = append([]Step{step}, t.Steps...)
	expects := false
	for _, s := range t.Steps {
		for i := range s.Then {
			expects = true
			if s.Then[i].As == "" {
				s.Then[i].As = t.As
			}
			if s.Then[i].As == "" {
				r.fail(s.Then[i].Place, "as: "+strings.Join(f.callers(), "|"), "nobody is said to be the caller")
			}
		}
	}
	if !expects && len(r.errs) == 0 {
		r.fail(n.Place, "then: [ { sees: { table: [ keys ] } } ]", "the test %q expects nothing", t.Name)
	}
	return t
}

func (f *File) callers() []string {
	var names []string
	for _, c := range f.Callers {
		names = append(names, c.Name)
	}
	return names
}

// readCallerOrOwner reads the name of a caller, or "owner".
func (r *fileReader) readCallerOrOwner(f *File, n *node) string {
	var name string
	r.word(&name, "as")(n)
	if names := append(f.callers(), "owner"); name != "" && !slices.Contains(names, name) {
		suggestion := policy.Suggest(name, names)
		if suggestion == "" {
			suggestion = "callers: " + strings.Join(names, ", ") + "; callers must stand before tests"
		}
		r.fail(n.Place, suggestion, "there is no caller %q", name)
	}
	return name
}

func (r *fileReader) readExpectations(f *File, t *Test, n *node) []Expectation {
	entries := []*node{n}
	if n.Kind == yamlfile.List {
		entries = n.Items
	}
	var out []Expectation
	for _, e := range entries {
		out = append(out, r.readExpectation(f, e))
	}
	return out
}

func (r *fileReader) readExpectation(f *File, n *node) Expectation {
	e := Expectation{Place: n.Place, Count: -1, Changes: -1}
	tables := func(into *[]Rows) func(*node) { return func(v *node) { *into = r.readRows(v) } }
	number := func(into *int, what string) func(*node) {
		return func(v *node) {
			i, err := strconv.Atoi(v.Value)
			if v.Kind != yamlfile.Scalar || err != nil || i < 0 {
				r.fail(v.Place, "", "%s is a number of rows", what)
				return
			}
			*into = i
		}
	}
	answers := []string{"value", "rows", "count", "changes", "error"}
	if !r.fields(n, "then", map[string]func(*node){
		"as":      func(v *node) { e.As = r.readCallerOrOwner(f, v) },
		"set":     func(v *node) { e.Set = r.readSettings(v) },
		"sees":    tables(&e.Sees),
		"shows":   tables(&e.Shows),
		"hides":   tables(&e.Hides),
		"columns": tables(&e.Columns),
		"query":   r.word(&e.Query, "query"),
		"value":   func(v *node) { e.Value = v },
		"rows":    func(v *node) { e.Rows = v },
		"count":   number(&e.Count, "count"),
		"changes": number(&e.Changes, "changes"),
		"error":   r.word(&e.Error, "error"),
		"message": r.word(&e.Message, "message"),
		"ordered": func(v *node) { e.Ordered = v.Value == "true" },
	}) {
		return e
	}
	said := 0
	for _, key := range answers {
		if at := n.Get(key); at != nil {
			said++
			if e.Query == "" {
				r.fail(at.Place, "query: SELECT …", "%q needs a query", key)
			}
		}
	}
	switch {
	case e.Query != "" && said != 1:
		r.fail(n.Place, "one of: "+strings.Join(answers, ", "), "a query needs one answer that is expected")
	case e.Query == "" && len(e.Sees)+len(e.Shows)+len(e.Hides)+len(e.Columns) == 0 && len(e.Set) == 0:
		r.fail(n.Place, "sees, shows, hides, columns, or query with its answer", "nothing is expected")
	}
	if e.Value != nil && e.Value.Kind != yamlfile.Scalar && e.Value.Kind != yamlfile.Null {
		r.fail(e.Value.Place, "rows: [ [ … ] ] compares more", "value is a single value")
	}
	if e.Rows != nil && r.want(e.Rows, yamlfile.List, "rows") {
		for _, row := range e.Rows.Items {
			r.want(row, yamlfile.List, "a row of an answer")
		}
	}
	if e.Error != "" && e.Error != "any" && !sqlState.MatchString(e.Error) {
		r.fail(n.Get("error").Place, `error: 42501, or "any"`, "%q is no SQLSTATE", e.Error)
	}
	if e.Message != "" && e.Error == "" {
		r.fail(n.Get("message").Place, "error: 42501", "a message is that of an error")
	}
	for _, rows := range slices.Concat(e.Shows, e.Hides) {
		if rows.Count >= 0 || rows.All {
			r.fail(rows.Place, "sees takes numbers, all and none", "shows and hides take keys")
		}
	}
	return e
}

var sqlState = regexp.MustCompile(`^[0-9A-Z]{5}$`)

func (r *fileReader) readRows(n *node) []Rows {
	if !r.want(n, yamlfile.Mapping, "the tables") {
		return nil
	}
	var out []Rows
	for i, table := range n.Keys {
		rows := Rows{Place: n.KeyAt[i], Table: table, Count: -1}
		switch v := n.Values[i]; {
		case v.Kind == yamlfile.List:
			rows.Keys = v.Items
		case v.Kind == yamlfile.Scalar && v.Value == "all":
			rows.All = true
		case v.Kind == yamlfile.Scalar && v.Value == "none":
			rows.Count = 0
		case v.Kind == yamlfile.Scalar:
			count, err := strconv.Atoi(v.Value)
			if err != nil || count < 0 {
				r.fail(v.Place, "write [ "+v.Value+" ] for one row by its key", "rows are a list of keys, a number, all or none")
				continue
			}
			rows.Count = count
		default:
			r.fail(v.Place, "", "rows are a list of keys, a number, all or none")
			continue
		}
		out = append(out, rows)
	}
	return out
}
