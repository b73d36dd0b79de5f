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

const troubleshootingPage = "../../docs/reference/troubleshooting.md"

// Each message on docs/reference/troubleshooting.md exists in the code, with the SQLSTATE or level that the page gives.
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

// The page of troubleshooting, or that of refused statements, has each refusal of the packages that answer agents. The
// page of troubleshooting also has each warning and error in the log of serve.
func TestTroubleshootingIsComplete(t *testing.T) {
	s := readSources(t)
	documentedMessages := map[string]bool{}
	for _, m := range quotedMessages(t) {
		documentedMessages[m.text] = true
	}
	refusedPage, err := os.ReadFile("../../docs/reference/refused-statements.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range s.reportedMessages {
		if !documentedMessages[m] && !strings.Contains(placeholders(string(refusedPage)), m) {
			t.Errorf("%s does not have %q", troubleshootingPage, m)
		}
	}
	if len(s.reportedMessages) < 150 {
		t.Errorf("%d messages were found in the code, there were more", len(s.reportedMessages))
	}
}

// The first table of docs/reference/errors.md lists exactly the SQLSTATEs that pgconsent itself sends.
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
	sentCodes := readSources(t).sentCodes
	maps.DeleteFunc(sentCodes, func(code string, _ bool) bool { return !regexp.MustCompile(`^[0-9A-Z]{5}$`).MatchString(code) }) // a word
	for code := range sentCodes {
		if !listedCodes[code] {
			t.Errorf("docs/reference/errors.md does not have %s, which is sent", code)
		}
	}
	for code := range listedCodes {
		if !sentCodes[code] {
			t.Errorf("docs/reference/errors.md has %s, which nothing sends", code)
		}
	}
}

// The page of troubleshooting has the doctor's findings, by their ids.
func TestTroubleshootingHasFindings(t *testing.T) {
	page, err := os.ReadFile(troubleshootingPage)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "<!-- findings -->\n")
	table, _, ok2 := strings.Cut(rest, "<!-- end of findings -->")
	if !ok || !ok2 {
		t.Fatalf("%s has no table of findings", troubleshootingPage)
	}
	listedFindings := map[string]bool{}
	for row := range strings.Lines(table) {
		if cells := strings.Split(row, "|"); len(cells) > 2 {
			for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cells[1], -1) {
				listedFindings[m[1]] = true
			}
		}
	}
	s := readSources(t)
	isKnown := func(id string) bool { return s.findings[id] || s.findings[strings.Trim(id, "_")] }
	for id := range listedFindings {
		if !isKnown(id) {
			t.Errorf("%s has the finding %s, which no check makes", troubleshootingPage, id)
		}
	}
	for id := range s.findings {
		if !listedFindings[id] && !listedFindings["_"+id] && !s.passedChecks[id] {
			t.Errorf("%s does not have the finding %s", troubleshootingPage, id)
		}
	}
	if len(listedFindings) < 60 {
		t.Errorf("%d findings, there were more", len(listedFindings))
	}
}

type quotedMessage struct{ code, text string }

func (m quotedMessage) isLevel() bool { return slices.Contains([]string{"DEBUG", "ERROR"}, m.code) }

// quotedMessages returns the messages in the text blocks of the page.
func quotedMessages(t *testing.T) (messages []quotedMessage) {
	t.Helper()
	page, err := os.ReadFile(troubleshootingPage)
	if err != nil {
		t.Fatal(err)
	}
	messageStart := regexp.MustCompile(`^([0-9A-Z]{2}[0-9A-Z]{3}|INFO|WARN) (.*)$`)
	for _, block := range regexp.MustCompile("(?s)```text\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(block[1]) {
			m := quotedMessage{text: strings.TrimRight(line, "\n")}
			if parts := messageStart.FindStringSubmatch(m.text); parts != nil {
				m = quotedMessage{parts[1], parts[2]}
			}
			messages = append(messages, m)
		}
	}
	return messages
}

// sourceTexts holds the texts that the source code contains.
type sourceTexts struct {
	literals         []string            // all string literals, with … for placeholders
	codes            map[string][]string // SQLSTATEs of errors, by text
	levels           map[string][]string // levels of log messages, by text
	reportedMessages []string            // errors that agents get, and warnings and errors of serve
	findings         map[string]bool     // ids of the doctor's findings
	ids              map[string]string   // ids that are constants, by the constants' names
	sentCodes        map[string]bool     // SQLSTATEs that are used somewhere
	passedChecks     map[string]bool     // ids of checks, which are reported when they pass
}

var (
	formatVerb           = regexp.MustCompile(`%(?:\[\d+\])?[-+# 0]*\d*(?:\.\d+)?[a-zA-Z]`)
	repeatedPlaceholders = regexp.MustCompile(`…(?:\.…)+`)
)

// placeholders replaces each verb of a format by …, and keeps the quotes of %q.
func placeholders(text string) string {
	text = formatVerb.ReplaceAllStringFunc(text, func(v string) string {
		if strings.HasSuffix(v, "q") {
			return `"…"`
		}
		return "…"
	})
	return repeatedPlaceholders.ReplaceAllString(text, "…")
}

// answeringPackages are packages whose errors agents get; loggingPackages are those that write the log of serve.
var (
	answeringPackages = []string{"proxy", "rewrite", "policy", "internal/enforce", "internal/sql/sqltext"}
	loggingPackages   = []string{"proxy", "internal/enforce", "internal/record/audit", "internal/run/serve", "internal/run/config", "internal/registry/sweep",
		"internal/services/api", "internal/services/console", "internal/services/mcp", "internal/services/identity"}
	refusingCalls = []string{"denied", "suspendedError"} // functions that take the text of a message
)

func readSources(t *testing.T) sourceTexts {
	t.Helper()
	s := sourceTexts{codes: map[string][]string{}, levels: map[string][]string{}, findings: map[string]bool{}, ids: map[string]string{},
		passedChecks: map[string]bool{}, sentCodes: map[string]bool{}}
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
				s.recordFinding(dir, n)
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "sqlstate" && constants[n.Sel.Name] != "" {
					s.sentCodes[constants[n.Sel.Name]] = true
				}
			case *ast.ValueSpec: // a SQLSTATE that a package declares
				if lastName(n.Type) == "Code" && dir != "internal/sql/sqlstate" {
					for _, name := range n.Names {
						s.sentCodes[constants[name.Name]] = true
					}
				}
			case *ast.CallExpr:
				s.recordCall(dir, n, constants)
			}
			return true
		})
	}
	slices.Sort(s.reportedMessages)
	s.reportedMessages = slices.Compact(s.reportedMessages)
	return s
}

// recordCall records an error that is created, or a line that is logged.
func (s *sourceTexts) recordCall(dir string, c *ast.CallExpr, constants map[string]string) {
	name, receiver := "", ""
	switch f := c.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
		switch x := f.X.(type) {
		case *ast.Ident:
			receiver = x.Name
		case *ast.SelectorExpr:
			receiver = x.Sel.Name
		}
	}
	levels := map[string]string{"Error": "ERROR", "Warn": "WARN", "Info": "INFO", "Debug": "DEBUG"}
	switch {
	case receiver == "sqlstate" && name == "New" && len(c.Args) > 2:
		message, ok := literalText(c.Args[2])
		if message = placeholders(message); !ok || strings.Trim(message, "… ") == "" {
			return
		}
		if code := constants[lastName(c.Args[0])]; code != "" {
			s.codes[message] = append(s.codes[message], code)
		}
		if slices.Contains(answeringPackages, dir) {
			s.reportedMessages = append(s.reportedMessages, message)
		}
	case slices.Contains(refusingCalls, name) && slices.Contains(answeringPackages, dir) && len(c.Args) > 0:
		if message, ok := literalText(c.Args[0]); ok {
			s.reportedMessages = append(s.reportedMessages, placeholders(message))
		}
	case strings.EqualFold(receiver, "log") && levels[name] != "" && len(c.Args) > 0:
		message, ok := literalText(c.Args[0])
		if !ok || message == "" {
			return
		}
		s.levels[message] = append(s.levels[message], levels[name])
		if slices.Contains(loggingPackages, dir) && (name == "Error" || name == "Warn") {
			s.reportedMessages = append(s.reportedMessages, message)
		}
	}
}

// recordFinding records the id of a finding or of a check.
func (s *sourceTexts) recordFinding(dir string, c *ast.CompositeLit) {
	if dir != "internal/tool/doctor" && dir != "cmd/pgconsent" {
		return
	}
	idPattern := regexp.MustCompile(`^[a-z][a-z_]*$`)
	for _, e := range c.Elts {
		value := e
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if lastName(kv.Key) != "ID" {
				continue
			}
			value = kv.Value
		}
		id, ok := literalText(value)
		if name, isIdent := value.(*ast.Ident); isIdent {
			id, ok = s.ids[name.Name]
		}
		id = strings.TrimPrefix(id, "…_")
		if !ok || !idPattern.MatchString(id) {
			continue
		}
		hasSeverity := slices.ContainsFunc(c.Elts, func(e ast.Expr) bool {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				e = kv.Value
			}
			return slices.Contains([]string{"SeverityUnsafe", "SeverityUnknown", "SeverityNoSignedPath", "SeverityWarning", "SeverityHardening",
				"SeverityAdvice", "severity"}, lastName(e))
		})
		switch {
		case hasSeverity:
			s.findings[id] = true
		case dir == "internal/tool/doctor" && len(c.Elts) >= 2 && (e == c.Elts[0] || e == c.Elts[1]):
			s.findings[id], s.passedChecks[id] = true, true
		}
	}
}

// lastName returns the last identifier of an expression.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// literalText returns the value of a string literal, or of several joined by +; other operands become ….
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
		leftText, ok := literalText(e.X)
		rightText, ok2 := literalText(e.Y)
		switch {
		case ok && ok2:
			return leftText + rightText, true
		case ok:
			return leftText + "…", true
		case ok2:
			return "…" + rightText, true
		}
	}
	return "", false
}
