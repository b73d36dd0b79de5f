package oracle

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
)

// Statement is one of the corpus.
type Statement struct {
	SQL   string
	Must  bool // be answered
	RLS   bool // it calls a function that reads tables: only row security goes along
	Where string
}

// Statements are those of a schema's files and, between the first two, what the shapes give for its tables.
func (s Schema) Statements(t testing.TB) []Statement {
	t.Helper()
	var out []Statement
	add := func(name string) {
		if s.exists(t, name) {
			out = append(out, parse(t, "test/oracle/testdata/"+s.Name+"/"+name)...)
		}
	}
	add("statements.sql")
	out = append(out, s.shapes(t)...)
	add("analytics.sql")
	if pgtest.Binaries().Major >= 16 {
		add("analytics16.sql")
	}
	if s.Name == "arcive" {
		for _, q := range parse(t, "rewrite/testdata/corpus.sql") {
			if q.SQL != "" {
				q.Must = true
				out = append(out, q)
			}
		}
	}
	return out
}

// parse reads statements that end with a semicolon at a line's end. Lines with -- before a statement are comments, of
// which two say what follows, and two what the statement that they stand before needs: pgvector, by which it is
// dropped, or row security.
func parse(t testing.TB, file string) []Statement {
	t.Helper()
	var (
		out             []Statement
		sql             strings.Builder
		must, drop, rls bool
		start           int
	)
	n := 0
	for line := range strings.Lines(instance.Read(t, file)) {
		n++
		line = strings.TrimSuffix(line, "\n")
		if sql.Len() == 0 {
			if comment, ok := strings.CutPrefix(line, "--"); ok {
				switch comment = strings.TrimSpace(comment); comment {
				case "must be answered":
					must = true
				case "may be refused":
					must = false
				case "needs: vector":
					drop = true
				case "needs: row security":
					rls = true
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
			if !drop {
				out = append(out, Statement{SQL: strings.TrimSuffix(sql.String(), ";"), Must: must, RLS: rls, Where: fmt.Sprintf("%s:%d", file, start)})
			}
			drop, rls = false, false
			sql.Reset()
		}
	}
	if sql.Len() > 0 {
		t.Fatalf("%s:%d: a statement without end", file, start)
	}
	return out
}

// binding is what the placeholders stand for.
type binding struct {
	schema string
	values map[string]string
}

func bindings(t testing.TB) []binding {
	t.Helper()
	var out []binding
	for line := range strings.Lines(instance.Read(t, "test/oracle/testdata/bindings.txt")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, " | ")
		b := binding{schema: strings.TrimSpace(fields[0]), values: map[string]string{}}
		for _, field := range fields[1:] {
			name, value, ok := strings.Cut(field, "=")
			if !ok {
				t.Fatalf("bindings.txt: %q", field)
			}
			b.values[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
		// The name alone, and with the schema that T has or that the schema's tables are in.
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

var placeholder = regexp.MustCompile(`\{(T|U|N|Q|on|k1|k|s|n|d|b|j|a|r|yk1|yk|ys|yn)(?:\.(\w*))?\}`)

// expand writes a shape for a table, or "" where the table has no such column.
func (b binding) expand(shape string) string {
	missing := false
	out := placeholder.ReplaceAllStringFunc(shape, func(m string) string {
		parts := placeholder.FindStringSubmatch(m)
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
		bare := strings.Contains(m, ".")
		if bare {
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

// shapes are those of testdata/shapes.sql for each table of a schema, in the order of bindings.txt.
func (s Schema) shapes(t testing.TB) []Statement {
	t.Helper()
	all := parse(t, "test/oracle/testdata/shapes.sql")
	var out []Statement
	for _, b := range bindings(t) {
		if b.schema != s.Name {
			continue
		}
		for _, shape := range all {
			if sql := b.expand(shape.SQL); sql != "" {
				shape.SQL, shape.Where = sql, fmt.Sprintf("%s, %s of %s", shape.Where, b.values["T"], s.Name)
				out = append(out, shape)
			}
		}
	}
	return out
}
