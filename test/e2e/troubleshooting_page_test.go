package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const troubleshooting = "../../docs/reference/troubleshooting.md"

// Each message on docs/reference/troubleshooting.md stands in the code, with the SQLSTATE and the level that the page gives it.
func TestTroubleshootingQuotesTheCode(t *testing.T) {
	s := readSources(t)
	messages := quotedMessages(t)
	if len(messages) < 200 {
		t.Errorf("%d messages are quoted, there were more", len(messages))
	}
	for _, m := range messages {
		if !slices.ContainsFunc(s.literals, func(l string) bool { return strings.Contains(l, m.text) }) {
			t.Errorf("no text in the code is or holds %q", m.text)
		}
		codes, level := s.codes[m.text], s.levels[m.text]
		switch {
		case len(m.code) == 5 && m.isLevel():
			if len(level) > 0 && !slices.Contains(level, m.code) {
				t.Errorf("%q is logged as %v, and not as %s", m.text, level, m.code)
			}
		case m.code != "" && len(codes) > 0 && !slices.Contains(codes, m.code):
			t.Errorf("%q has SQLSTATE %v, and not %s", m.text, codes, m.code)
		}
	}
}

// Each refusal of the packages that answer agents, and each warning or error in the log of serve, is on that page or
// among the refused statements.
func TestTroubleshootingIsComplete(t *testing.T) {
	s := readSources(t)
	documented := map[string]bool{}
	for _, m := range quotedMessages(t) {
		documented[m.text] = true
	}
	refusedPage, err := os.ReadFile("../../docs/reference/refused-statements.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range s.told {
		if !documented[m] && !strings.Contains(placeholders(string(refusedPage)), m) {
			t.Errorf("%s does not have %q", troubleshooting, m)
		}
	}
	if len(s.told) < 150 {
		t.Errorf("%d messages were found in the code, there were more", len(s.told))
	}
}

// Each SQLSTATE that pgconsent sends by itself is in the first table of docs/reference/errors.md, and no other is.
func TestErrorsPageHasOwnSQLSTATEs(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## SQLSTATEs of pgconsent\n")
	section, _, ok2 := strings.Cut(section, "\n## ")
	if !ok || !ok2 {
		t.Fatal("docs/reference/errors.md has no such section")
	}
	listedCodes := map[string]bool{}
	for row := range strings.Lines(section) {
		if cells := strings.Split(row, "|"); len(cells) > 2 {
			for _, code := range regexp.MustCompile(`\b[0-9A-Z]{5}\b`).FindAllString(cells[1], -1) {
				listedCodes[code] = true
			}
		}
	}
	sent := readSources(t).sent
	maps.DeleteFunc(sent, func(code string, _ bool) bool { return !regexp.MustCompile(`^[0-9A-Z]{5}$`).MatchString(code) }) // a word
	for code := range sent {
		if !listedCodes[code] {
			t.Errorf("docs/reference/errors.md does not have %s, which is sent", code)
		}
	}
	for code := range listedCodes {
		if !sent[code] {
			t.Errorf("docs/reference/errors.md has %s, which nothing sends", code)
		}
	}
}

// The findings of doctor are on that page by their ids.
func TestTroubleshootingHasFindings(t *testing.T) {
	page, err := os.ReadFile(troubleshooting)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "<!-- findings -->\n")
	table, _, ok2 := strings.Cut(rest, "<!-- end of findings -->")
	if !ok || !ok2 {
		t.Fatalf("%s has no table of findings", troubleshooting)
	}
	listedCodes := map[string]bool{}
	for row := range strings.Lines(table) {
		if cells := strings.Split(row, "|"); len(cells) > 2 {
			for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cells[1], -1) {
				listedCodes[m[1]] = true
			}
		}
	}
	s := readSources(t)
	isKnown := func(id string) bool { return s.findings[id] || s.findings[strings.Trim(id, "_")] }
	for id := range listedCodes {
		if !isKnown(id) {
			t.Errorf("%s has the finding %s, which no check makes", troubleshooting, id)
		}
	}
	for id := range s.findings {
		if !listedCodes[id] && !listedCodes["_"+id] && !s.held[id] {
			t.Errorf("%s does not have the finding %s", troubleshooting, id)
		}
	}
	if len(listedCodes) < 60 {
		t.Errorf("%d findings, there were more", len(listedCodes))
	}
}

type quotedMessage struct{ code, text string }

func (m quotedMessage) isLevel() bool { return slices.Contains([]string{"DEBUG", "ERROR"}, m.code) }

// quotedMessages are the lines of the boxes on the page.
func quotedMessages(t *testing.T) (all []quotedMessage) {
	t.Helper()
	page, err := os.ReadFile(troubleshooting)
	if err != nil {
		t.Fatal(err)
	}
	begins := regexp.MustCompile(`^([0-9A-Z]{2}[0-9A-Z]{3}|INFO|WARN) (.*)$`)
	for _, block := range regexp.MustCompile("(?s)```text\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(block[1]) {
			m := quotedMessage{text: strings.TrimRight(line, "\n")}
			if parts := begins.FindStringSubmatch(m.text); parts != nil {
				m = quotedMessage{parts[1], parts[2]}
			}
			all = append(all, m)
		}
	}
	return all
}

// sources are the texts of the code.
type sources struct {
	literals []string            // all string literals, with … for placeholders
	codes    map[string][]string // SQLSTATEs of errors, by text
	levels   map[string][]string // levels of log messages, by text
	told     []string            // errors that agents get, and warnings and errors of serve
	findings map[string]bool     // ids of the doctor's findings
	ids      map[string]string   // ids that are constants, by the constants' names
	sent     map[string]bool     // SQLSTATEs that are named somewhere
	held     map[string]bool     // checks that have passed
}

var (
	verb      = regexp.MustCompile(`%(?:\[\d+\])?[-+# 0]*\d*(?:\.\d+)?[a-zA-Z]`)
	quotedDot = regexp.MustCompile(`…(?:\.…)+`)
)

// placeholders writes … for each verb of a format; one that quotes keeps its quotes.
func placeholders(text string) string {
	text = verb.ReplaceAllStringFunc(text, func(v string) string {
		if strings.HasSuffix(v, "q") {
			return `"…"`
		}
		return "…"
	})
	return quotedDot.ReplaceAllString(text, "…")
}

// answering are the packages whose errors agents get, logging those whose log is that of serve.
var (
	answeringCalls = []string{"proxy", "rewrite", "policy", "internal/enforce", "internal/sql/sqltext"}
	loggingCalls   = []string{"proxy", "internal/enforce", "internal/record/audit", "internal/run/serve", "internal/run/config", "internal/registry/sweep",
		"internal/services/api", "internal/services/console", "internal/services/mcp", "internal/services/identity"}
	refusingCalls = []string{"denied", "suspendedError"} // functions that take the text of a message
)

func readSources(t *testing.T) sources {
	t.Helper()
	s := sources{codes: map[string][]string{}, levels: map[string][]string{}, findings: map[string]bool{}, ids: map[string]string{},
		held: map[string]bool{}, sent: map[string]bool{}}
	constants := map[string]string{}
	files := map[string]*ast.File{}
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (path == "test" || path == "examples" || path == "bin" || strings.HasPrefix(e.Name(), ".") && path != "."):
			return fs.SkipDir
		case strings.HasSuffix(path, ".sql") && strings.HasPrefix(path, "migrations/"):
			text, err := fs.ReadFile(root, path)
			for _, m := range regexp.MustCompile(`'((?:[^'\n]|'')+)'`).FindAllStringSubmatch(string(text), -1) {
				s.literals = append(s.literals, strings.ReplaceAll(strings.ReplaceAll(m[1], "''", "'"), "%", "…"))
			}
			return err
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		files[path] = file
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				for i, name := range spec.Names {
					if i < len(spec.Values) {
						value, ok := literalText(spec.Values[i])
						if ok && len(value) == 5 {
							constants[name.Name] = value
						}
						if ok && spec.Type == nil && filepath.ToSlash(filepath.Dir(path)) == "internal/tool/doctor" {
							s.ids[name.Name] = value
						}
					}
				}
			}
			return true
		})
	}
	for path, file := range files {
		dir := filepath.ToSlash(filepath.Dir(path))
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit, *ast.BinaryExpr:
				if value, ok := literalText(n.(ast.Expr)); ok {
					s.literals = append(s.literals, placeholders(value))
				}
			case *ast.CompositeLit:
				s.finding(dir, n)
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "sqlstate" && constants[n.Sel.Name] != "" {
					s.sent[constants[n.Sel.Name]] = true
				}
			case *ast.ValueSpec: // a SQLSTATE that a package declares
				if lastName(n.Type) == "Code" && dir != "internal/sql/sqlstate" {
					for _, name := range n.Names {
						s.sent[constants[name.Name]] = true
					}
				}
			case *ast.CallExpr:
				s.call(dir, n, constants)
			}
			return true
		})
	}
	slices.Sort(s.told)
	s.told = slices.Compact(s.told)
	return s
}

// call notes an error that is made, or a line that is logged.
func (s *sources) call(dir string, c *ast.CallExpr, constants map[string]string) {
	name, query := "", ""
	switch f := c.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
		switch x := f.X.(type) {
		case *ast.Ident:
			query = x.Name
		case *ast.SelectorExpr:
			query = x.Sel.Name
		}
	}
	levels := map[string]string{"Error": "ERROR", "Warn": "WARN", "Info": "INFO", "Debug": "DEBUG"}
	switch {
	case query == "sqlstate" && name == "New" && len(c.Args) > 2:
		message, ok := literalText(c.Args[2])
		if message = placeholders(message); !ok || strings.Trim(message, "… ") == "" {
			return
		}
		if code := constants[lastName(c.Args[0])]; code != "" {
			s.codes[message] = append(s.codes[message], code)
		}
		if slices.Contains(answeringCalls, dir) {
			s.told = append(s.told, message)
		}
	case slices.Contains(refusingCalls, name) && slices.Contains(answeringCalls, dir) && len(c.Args) > 0:
		if message, ok := literalText(c.Args[0]); ok {
			s.told = append(s.told, placeholders(message))
		}
	case strings.EqualFold(query, "log") && levels[name] != "" && len(c.Args) > 0:
		message, ok := literalText(c.Args[0])
		if !ok || message == "" {
			return
		}
		s.levels[message] = append(s.levels[message], levels[name])
		if slices.Contains(loggingCalls, dir) && (name == "Error" || name == "Warn") {
			s.told = append(s.told, message)
		}
	}
}

// finding notes the id of a finding, and that of a check.
func (s *sources) finding(dir string, c *ast.CompositeLit) {
	if dir != "internal/tool/doctor" && dir != "cmd/pgconsent" {
		return
	}
	word := regexp.MustCompile(`^[a-z][a-z_]*$`)
	for _, e := range c.Elts {
		value := e
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if lastName(kv.Key) != "ID" {
				continue
			}
			value = kv.Value
		}
		id, ok := literalText(value)
		if name, isReady := value.(*ast.Ident); isReady {
			id, ok = s.ids[name.Name]
		}
		id = strings.TrimPrefix(id, "…_")
		if !ok || !word.MatchString(id) {
			continue
		}
		severity := slices.ContainsFunc(c.Elts, func(e ast.Expr) bool {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				e = kv.Value
			}
			return slices.Contains([]string{"SeverityUnsafe", "SeverityUnknown", "SeverityNoSignedPath", "SeverityWarning", "SeverityHardening",
				"SeverityAdvice", "severity"}, lastName(e))
		})
		switch {
		case severity:
			s.findings[id] = true
		case dir == "internal/tool/doctor" && len(c.Elts) >= 2 && (e == c.Elts[0] || e == c.Elts[1]):
			s.findings[id], s.held[id] = true, true
		}
	}
}

// lastName is the last name of an expression.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// literalText is the text of a literal, or several with a + between them; of what is no literal there it has ….
func literalText(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		value, err := strconv.Unquote(e.Value)
		return value, err == nil
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, ok := literalText(e.X)
		right, ok2 := literalText(e.Y)
		switch {
		case ok && ok2:
			return left + right, true
		case ok:
			return left + "…", true
		case ok2:
			return "…" + right, true
		}
	}
	return "", false
}
