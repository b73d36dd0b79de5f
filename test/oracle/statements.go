package oracle

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
)

// Statement is a statement of the corpus: a handwritten one, or one made from testdata/shapes.sql.
type Statement struct {
	SQL             string
	MustBeAnswered  bool // a refusal fails the test
	OnlyRowSecurity bool // calls a function that reads tables, which only row security filters
	Source          string
}

// Statements returns the statements in the files of a schema, and those that are made from testdata/shapes.sql.
func (s Schema) Statements(t testing.TB) []Statement {
	t.Helper()
	var out []Statement
	add := func(name string) {
		if s.hasFile(t, name) {
			out = append(out, readStatements(t, "test/oracle/testdata/"+s.Name+"/"+name)...)
		}
	}
	add("statements.sql")
	out = append(out, s.shapeStatements(t)...)
	add("analytics.sql")
	if pgtest.Binaries().Major >= 16 {
		add("analytics16.sql")
	}
	if s.Name == "arcive" {
		for _, q := range readStatements(t, "rewrite/testdata/corpus.sql") {
			if q.SQL != "" {
				q.MustBeAnswered = true
				out = append(out, q)
			}
		}
	}
	return out
}

// readStatements reads the statements of a file. Each ends with a semicolon at the end of a line. Of the comment lines,
// two say whether the statements after them may be refused. Two others say what the next statement needs: pgvector
// (without it, the statement is left out) or row security.
func readStatements(t testing.TB, file string) []Statement {
	t.Helper()
	var (
		out                                           []Statement
		sql                                           strings.Builder
		mustBeAnswered, needsVector, needsRowSecurity bool
		start                                         int
	)
	n := 0
	for line := range strings.Lines(instance.ReadRepoFile(t, file)) {
		n++
		line = strings.TrimSuffix(line, "\n")
		if sql.Len() == 0 {
			if comment, ok := strings.CutPrefix(line, "--"); ok {
				switch comment = strings.TrimSpace(comment); comment {
				case "must be answered":
					mustBeAnswered = true
				case "may be refused":
					mustBeAnswered = false
				case "needs: vector":
					needsVector = true
				case "needs: row security":
					needsRowSecurity = true
				}
				continue
			}
			if strings.TrimSpace(line) == "" {
				continue
			}
			start = n
		} else {
			sql.WriteByte('\n')
		}
		sql.WriteString(line)
		if strings.HasSuffix(line, ";") {
			if !needsVector {
				out = append(out, Statement{SQL: strings.TrimSuffix(sql.String(), ";"), MustBeAnswered: mustBeAnswered, OnlyRowSecurity: needsRowSecurity,
					Source: fmt.Sprintf("%s:%d", file, start)})
			}
			needsVector, needsRowSecurity = false, false
			sql.Reset()
		}
	}
	if sql.Len() > 0 {
		t.Fatalf("%s:%d: a statement without end", file, start)
	}
	return out
}

// placeholderValues has the values for the placeholders in shapes, for one table of a schema.
type placeholderValues struct {
	schema string
	values map[string]string
}

func readPlaceholderValues(t testing.TB) []placeholderValues {
	t.Helper()
	var out []placeholderValues
	for line := range strings.Lines(instance.ReadRepoFile(t, "test/oracle/testdata/bindings.txt")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, " | ")
		b := placeholderValues{schema: strings.TrimSpace(fields[0]), values: map[string]string{}}
		for _, field := range fields[1:] {
			name, value, ok := strings.Cut(field, "=")
			if !ok {
				t.Fatalf("bindings.txt: %q", field)
			}
			b.values[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
		// A shape may name the table without its schema, or with it.
		table := b.values["T"]
		schema := map[string]string{"clinic": `"Clinic"`}[b.schema]
		if i := strings.LastIndex(table, "."); i >= 0 {
			schema, table = table[:i], table[i+1:]
		}
		if schema == "" {
			schema = "public"
		}
		b.values["N"], b.values["Q"] = table, schema+"."+table
		out = append(out, b)
	}
	return out
}

var placeholderPattern = regexp.MustCompile(`\{(T|U|N|Q|on|k1|k|s|n|d|b|j|a|r|yk1|yk|ys|yn)(?:\.(\w*))?\}`)

// expandShape replaces the placeholders in a shape. It returns "" if the table does not have a column that the shape
// needs.
func (b placeholderValues) expandShape(shape string) string {
	missing := false
	out := placeholderPattern.ReplaceAllStringFunc(shape, func(m string) string {
		parts := placeholderPattern.FindStringSubmatch(m)
		name, alias := parts[1], "x"
		first := name == "k1" || name == "yk1"
		if strings.HasPrefix(name, "y") {
			alias = "y"
		}
		value, ok := b.values[strings.TrimSuffix(name, "1")]
		missing = missing || !ok
		if name == "T" || name == "U" || name == "N" || name == "Q" || name == "on" {
			return value
		}
		hasAlias := strings.Contains(m, ".")
		if hasAlias {
			alias = parts[2]
		}
		if alias == "raw" {
			return strings.Trim(value, `"`)
		}
		var columns []string
		for _, c := range strings.Split(value, ",") {
			if alias != "" {
				c = alias + "." + c
			}
			columns = append(columns, c)
			if first {
				break
			}
		}
		return strings.Join(columns, ", ")
	})
	if missing {
		return ""
	}
	return out
}

// shapeStatements returns the statements that are made from testdata/shapes.sql for each table of the schema in
// bindings.txt.
func (s Schema) shapeStatements(t testing.TB) []Statement {
	t.Helper()
	all := readStatements(t, "test/oracle/testdata/shapes.sql")
	var out []Statement
	for _, b := range readPlaceholderValues(t) {
		if b.schema != s.Name {
			continue
		}
		for _, shape := range all {
			if sql := b.expandShape(shape.SQL); sql != "" {
				shape.SQL, shape.Source = sql, fmt.Sprintf("%s, %s of %s", shape.Source, b.values["T"], s.Name)
				out = append(out, shape)
			}
		}
	}
	return out
}
