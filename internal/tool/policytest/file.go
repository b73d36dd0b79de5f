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

// FileName is the name that files of tests have in a folder.
const FileName = "policy_test.yaml"

// File is a file of tests in the form that its author wrote.
type File struct {
	Path           string
	Policy         string   // path of the policy's file or folder
	PolicyAt       Place    // where in the test file the policy is named
	Extensions     []string // SQL files that the server's administrator runs
	Schema         []string // SQL files that the owner runs
	Data           []string // SQL files that the owner runs after those of Schema
	Database       string   // a database of the configuration whose schema is copied; "": Schema makes it
	DatabaseAt     Place    // where in the test file the database is named
	Owner          string
	SearchPath     []string
	Enforcement    string // auto or both
	Callers        []*Caller
	InitialChanges []Change
	Tests          []*Test
}

// Caller is an agent that sends the statements of tests.
type Caller struct {
	Place
	Name       string
	Attributes map[string]string
	Settings   []Setting // settings that the caller sends when it logs in, as in a DSN
}

// Setting is a setting of a caller's session and its value.
type Setting struct{ Name, Value string }

// Test is one test of a file: a name and the steps to run.
type Test struct {
	Place
	Name   string
	Caller string // the caller of expectations that do not name one
	Steps  []Step
}

// Step is a step of a test: what the owner changes, and what callers are expected to see afterwards.
type Step struct {
	Preparation, Actions []Change
	Expectations         []Expectation
}

// Change is a change by the owner: rows inserted into a table, or SQL.
type Change struct {
	Place
	Table string
	Rows  []*node
	SQL   string
}

// Expectation is what a caller is expected to see, or how its statement is expected to be answered.
type Expectation struct {
	Place
	Caller   string
	Settings []Setting // settings that the caller makes first; they last until the test ends

	ExactRows, VisibleRows, HiddenRows []RowExpectation
	Columns                            []RowExpectation // the expected names of columns, by table

	Query       string
	Value       *node
	Rows        *node
	Count       int // the expected number of rows; -1: the file does not give a number
	ChangedRows int // the number of rows that the statement must change; -1: the file does not say
	InOrder     bool
	Error       string // the expected SQLSTATE, or "any"
	Message     string
}

// RowExpectation names the expected rows of a table: by their keys, by their number, or as all its rows.
type RowExpectation struct {
	Place
	Table   string
	Keys    []*node
	Count   int // the expected number of rows; -1: the rows are named by their keys
	AllRows bool
}

var callerName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$`)

// FindFiles returns the test files that the arguments name. An argument is a file, or a folder that is searched for
// files named policy_test.yaml.
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

// Load reads a file of tests. It returns policy.Errors if the file is wrong.
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

// useWorldFolder fills in the files of a folder with a world.yaml: its agents are the callers, its SQL files the schema
// and data.
func (f *File) useWorldFolder() error {
	dir := filepath.Dir(f.Path)
	exists := func(into *[]string, name string) {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			*into = []string{filepath.Join(dir, name)}
		}
	}
	exists(&f.Extensions, "extensions.sql")
	exists(&f.Schema, "schema.sql")
	exists(&f.Data, "data.sql")
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

// relativePath returns a path as seen from the folder of the test file.
func (f *File) relativePath(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(f.Path), path)
}

func (r *fileReader) readRoot(f *File, n *node) {
	files := func(into *[]string, label string) func(*node) {
		return func(n *node) {
			r.wordsReader(into, label)(n)
			for i, name := range *into {
				(*into)[i] = f.relativePath(name)
				if _, err := os.Stat((*into)[i]); err != nil {
					r.addError(n.Place, "paths are relative to this file", "%s: there is no file %s", label, name)
				}
			}
		}
	}
	f.PolicyAt = n.Place
	r.readFields(n, "the file", map[string]func(*node){
		"version": func(v *node) {
			if v.Kind != yamlfile.ScalarNode || v.Value != "1" {
				r.addError(v.Place, "this pgconsent reads version 1", "unknown version of the tests")
			}
		},
		"policy": func(v *node) {
			r.wordReader(&f.Policy, "policy")(v)
			f.Policy, f.PolicyAt = f.relativePath(f.Policy), v.Place
		},
		"extensions": files(&f.Extensions, "extensions"),
		"schema":     files(&f.Schema, "schema"),
		"data":       files(&f.Data, "data"),
		"database": func(v *node) {
			r.wordReader(&f.Database, "database")(v)
			f.DatabaseAt = v.Place
		},
		"owner":       r.wordReader(&f.Owner, "owner"),
		"search_path": r.wordsReader(&f.SearchPath, "search_path"),
		"enforcement": func(v *node) {
			r.wordReader(&f.Enforcement, "enforcement")(v)
			if f.Enforcement == "doors" { // "doors" is the old name of this value.
				f.Enforcement = "auto"
			}
			if f.Enforcement != "both" && f.Enforcement != "auto" {
				r.addError(v.Place, policy.Suggest(f.Enforcement, []string{"auto", "both"}),
					"enforcement is auto or both, not %q", f.Enforcement)
			}
		},
		"callers": func(v *node) {
			f.Callers = nil
			if !r.requireKind(v, yamlfile.MappingNode, "callers") {
				return
			}
			for i, name := range v.Keys {
				f.Callers = append(f.Callers, r.readCaller(v.KeyPlaces[i], name, v.Values[i]))
			}
		},
		"given": func(v *node) { f.InitialChanges = r.readChanges(v, "given") },
		"tests": func(v *node) {
			if !r.requireKind(v, yamlfile.ListNode, "tests") {
				return
			}
			for _, t := range v.Items {
				f.Tests = append(f.Tests, r.readTest(f, t))
			}
		},
	})
	if n.Get("version") == nil {
		r.addError(n.Place, `begin with "version: 1"`, "the file needs \"version\"")
	}
	if len(f.Tests) == 0 && len(r.errs) == 0 {
		r.addError(n.Place, "tests: [ { name: …, as: …, then: [ { sees: … } ] } ]", "the file has no tests")
	}
	names := map[string]Place{}
	for _, t := range f.Tests {
		if first, isRepeated := names[t.Name]; isRepeated && t.Name != "" {
			r.addError(t.Place, "", "a test %q is there already, at line %d", t.Name, first.Line)
		}
		names[t.Name] = t.Place
	}
}

func (r *fileReader) readCaller(place Place, name string, n *node) *Caller {
	c := &Caller{Place: place, Name: name, Attributes: map[string]string{}}
	if !callerName.MatchString(name) || name == "owner" {
		r.addError(place, "letters, digits and _ . - ; \"owner\" is the owner", "%q cannot be a caller's name", name)
	}
	r.readFields(n, "caller "+name, map[string]func(*node){
		"attributes": func(v *node) {
			if !r.requireKind(v, yamlfile.MappingNode, "attributes") {
				return
			}
			for i, attribute := range v.Keys {
				switch value := v.Values[i]; value.Kind {
				case yamlfile.ScalarNode:
					c.Attributes[attribute] = value.Value
				case yamlfile.ListNode:
					var elements []string
					for _, e := range value.Items {
						if r.requireKind(e, yamlfile.ScalarNode, "an element of "+attribute) {
							elements = append(elements, e.Value)
						}
					}
					c.Attributes[attribute] = predicate.WriteArray(elements)
				default:
					r.addError(value.Place, "leave it out", "attribute %s has no value", attribute)
				}
			}
		},
		"set": func(v *node) { c.Settings = r.readSettings(v) },
	})
	return c
}

func (r *fileReader) readSettings(n *node) []Setting {
	var out []Setting
	if !r.requireKind(n, yamlfile.MappingNode, "set") {
		return nil
	}
	for i, name := range n.Keys {
		if r.requireKind(n.Values[i], yamlfile.ScalarNode, "the value of "+name) {
			out = append(out, Setting{name, n.Values[i].Value})
		}
	}
	return out
}

func (r *fileReader) readChanges(n *node, label string) []Change {
	switch n.Kind {
	case yamlfile.ScalarNode:
		return []Change{{Place: n.Place, SQL: n.Value}}
	case yamlfile.ListNode:
		var out []Change
		for _, v := range n.Items {
			out = append(out, r.readChanges(v, label)...)
		}
		return out
	case yamlfile.MappingNode:
		var out []Change
		for i, table := range n.Keys {
			c := Change{Place: n.KeyPlaces[i], Table: table}
			rows := n.Values[i]
			if rows.Kind == yamlfile.MappingNode {
				rows = &node{Place: rows.Place, Kind: yamlfile.ListNode, Items: []*node{rows}}
			}
			if !r.requireKind(rows, yamlfile.ListNode, "the rows of "+table) {
				continue
			}
			for _, row := range rows.Items {
				if r.requireKind(row, yamlfile.MappingNode, "a row of "+table) {
					c.Rows = append(c.Rows, row)
				}
			}
			out = append(out, c)
		}
		return out
	default:
		r.addError(n.Place, "write SQL, or { table: [ { column: value } ] }", "%s is empty", label)
		return nil
	}
}

func (r *fileReader) readTest(f *File, n *node) *Test {
	t := &Test{Place: n.Place}
	if !r.requireKind(n, yamlfile.MappingNode, "a test") {
		return t
	}
	step := Step{}
	r.readFields(n, "the test", map[string]func(*node){
		"name":  r.wordReader(&t.Name, "name"),
		"as":    func(v *node) { t.Caller = r.readCallerOrOwner(f, v) },
		"given": func(v *node) { step.Preparation = r.readChanges(v, "given") },
		"when":  func(v *node) { step.Actions = r.readChanges(v, "when") },
		"then":  func(v *node) { step.Expectations = r.readExpectations(f, t, v) },
		"steps": func(v *node) {
			if !r.requireKind(v, yamlfile.ListNode, "steps") {
				return
			}
			for _, s := range v.Items {
				step := Step{}
				r.readFields(s, "a step", map[string]func(*node){
					"given": func(v *node) { step.Preparation = r.readChanges(v, "given") },
					"when":  func(v *node) { step.Actions = r.readChanges(v, "when") },
					"then":  func(v *node) { step.Expectations = r.readExpectations(f, t, v) },
				})
				t.Steps = append(t.Steps, step)
			}
		},
	})
	if t.Name == "" {
		r.addError(n.Place, "say in a sentence what must hold", "the test has no name")
	}
	t.Steps = append([]Step{step}, t.Steps...)
	hasExpectations := false
	for _, s := range t.Steps {
		for i := range s.Expectations {
			hasExpectations = true
			if s.Expectations[i].Caller == "" {
				s.Expectations[i].Caller = t.Caller
			}
			if s.Expectations[i].Caller == "" {
				r.addError(s.Expectations[i].Place, "as: "+strings.Join(f.callers(), "|"), "nobody is said to be the caller")
			}
		}
	}
	if !hasExpectations && len(r.errs) == 0 {
		r.addError(n.Place, "then: [ { sees: { table: [ keys ] } } ]", "the test %q expects nothing", t.Name)
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

// readCallerOrOwner reads the name of a caller of the file, or "owner".
func (r *fileReader) readCallerOrOwner(f *File, n *node) string {
	var name string
	r.wordReader(&name, "as")(n)
	if names := append(f.callers(), "owner"); name != "" && !slices.Contains(names, name) {
		suggestion := policy.Suggest(name, names)
		if suggestion == "" {
			suggestion = "callers: " + strings.Join(names, ", ") + "; callers must stand before tests"
		}
		r.addError(n.Place, suggestion, "there is no caller %q", name)
	}
	return name
}

func (r *fileReader) readExpectations(f *File, t *Test, n *node) []Expectation {
	entries := []*node{n}
	if n.Kind == yamlfile.ListNode {
		entries = n.Items
	}
	var out []Expectation
	for _, e := range entries {
		out = append(out, r.readExpectation(f, e))
	}
	return out
}

func (r *fileReader) readExpectation(f *File, n *node) Expectation {
	e := Expectation{Place: n.Place, Count: -1, ChangedRows: -1}
	tables := func(into *[]RowExpectation) func(*node) { return func(v *node) { *into = r.readRows(v) } }
	number := func(into *int, label string) func(*node) {
		return func(v *node) {
			i, err := strconv.Atoi(v.Value)
			if v.Kind != yamlfile.ScalarNode || err != nil || i < 0 {
				r.addError(v.Place, "", "%s is a number of rows", label)
				return
			}
			*into = i
		}
	}
	answers := []string{"value", "rows", "count", "changes", "error"}
	if !r.readFields(n, "then", map[string]func(*node){
		"as":      func(v *node) { e.Caller = r.readCallerOrOwner(f, v) },
		"set":     func(v *node) { e.Settings = r.readSettings(v) },
		"sees":    tables(&e.ExactRows),
		"shows":   tables(&e.VisibleRows),
		"hides":   tables(&e.HiddenRows),
		"columns": tables(&e.Columns),
		"query":   r.wordReader(&e.Query, "query"),
		"value":   func(v *node) { e.Value = v },
		"rows":    func(v *node) { e.Rows = v },
		"count":   number(&e.Count, "count"),
		"changes": number(&e.ChangedRows, "changes"),
		"error":   r.wordReader(&e.Error, "error"),
		"message": r.wordReader(&e.Message, "message"),
		"ordered": func(v *node) { e.InOrder = v.Value == "true" },
	}) {
		return e
	}
	kinds := 0
	for _, key := range answers {
		if place := n.Get(key); place != nil {
			kinds++
			if e.Query == "" {
				r.addError(place.Place, "query: SELECT …", "%q needs a query", key)
			}
		}
	}
	switch {
	case e.Query != "" && kinds != 1:
		r.addError(n.Place, "one of: "+strings.Join(answers, ", "), "a query needs one answer that is expected")
	case e.Query == "" && len(e.ExactRows)+len(e.VisibleRows)+len(e.HiddenRows)+len(e.Columns) == 0 &&
		len(e.Settings) == 0:
		r.addError(n.Place, "sees, shows, hides, columns, or query with its answer", "nothing is expected")
	}
	if e.Value != nil && e.Value.Kind != yamlfile.ScalarNode && e.Value.Kind != yamlfile.NullNode {
		r.addError(e.Value.Place, "rows: [ [ … ] ] compares more", "value is a single value")
	}
	if e.Rows != nil && r.requireKind(e.Rows, yamlfile.ListNode, "rows") {
		for _, row := range e.Rows.Items {
			r.requireKind(row, yamlfile.ListNode, "a row of an answer")
		}
	}
	if e.Error != "" && e.Error != "any" && !sqlState.MatchString(e.Error) {
		r.addError(n.Get("error").Place, `error: 42501, or "any"`, "%q is no SQLSTATE", e.Error)
	}
	if e.Message != "" && e.Error == "" {
		r.addError(n.Get("message").Place, "error: 42501", "a message is that of an error")
	}
	for _, rows := range slices.Concat(e.VisibleRows, e.HiddenRows) {
		if rows.Count >= 0 || rows.AllRows {
			r.addError(rows.Place, "sees takes numbers, all and none", "shows and hides take keys")
		}
	}
	return e
}

var sqlState = regexp.MustCompile(`^[0-9A-Z]{5}$`)

func (r *fileReader) readRows(n *node) []RowExpectation {
	if !r.requireKind(n, yamlfile.MappingNode, "the tables") {
		return nil
	}
	var out []RowExpectation
	for i, table := range n.Keys {
		rows := RowExpectation{Place: n.KeyPlaces[i], Table: table, Count: -1}
		switch v := n.Values[i]; {
		case v.Kind == yamlfile.ListNode:
			rows.Keys = v.Items
		case v.Kind == yamlfile.ScalarNode && v.Value == "all":
			rows.AllRows = true
		case v.Kind == yamlfile.ScalarNode && v.Value == "none":
			rows.Count = 0
		case v.Kind == yamlfile.ScalarNode:
			count, err := strconv.Atoi(v.Value)
			if err != nil || count < 0 {
				r.addError(v.Place, "write [ "+v.Value+" ] for one row by its key",
					"rows are a list of keys, a number, all or none")
				continue
			}
			rows.Count = count
		default:
			r.addError(v.Place, "", "rows are a list of keys, a number, all or none")
			continue
		}
		out = append(out, rows)
	}
	return out
}
