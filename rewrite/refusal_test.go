package rewrite

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const refusalsPage = "../docs/reference/refused-statements.md"

// refusalTable returns the table for docs/reference/refused-statements.md.
func refusalTable() string {
	var b strings.Builder
	b.WriteString("| construct | parse node | example | SQLSTATE | message and hint |\n|---|---|---|---|---|\n")
	for _, r := range Refusals() {
		nodes := "`" + strings.Join(r.Nodes, "` `") + "`"
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s | %s. %s |\n", r.Construct, nodes, r.Example, r.Code, r.Message, r.Hint)
	}
	return b.String()
}

// The page has the same table of refusals as the code.
func TestRefusalsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(refusalsPage)
	if err != nil {
		t.Fatal(err)
	}
	const startMarker, endMarker = "<!-- table: written by `go test ./rewrite -run Documented -update` -->\n", "<!-- end of table -->\n"
	before, fromTable, ok := strings.Cut(string(text), startMarker)
	table, after, ok2 := strings.Cut(fromTable, endMarker)
	if !ok || !ok2 {
		t.Fatalf("%s has no table", refusalsPage)
	}
	if *update {
		if err := os.WriteFile(refusalsPage, []byte(before+startMarker+refusalTable()+endMarker+after), 0o644); err != nil {
			t.Fatal(err)
		}
		table = refusalTable()
	}
	if diff := cmp.Diff(table, refusalTable()); diff != "" {
		t.Errorf("%s (-page +code)\n%s", refusalsPage, diff)
	}
}

// Every example of the table is refused as the table says, alone, behind another statement and in the extended
// protocol.
func TestRefusals(t *testing.T) {
	r := rewriter(t, InjectedMode)
	for _, refusal := range Refusals() {
		for _, text := range []string{refusal.Example, "SELECT 1; " + refusal.Example, "/* a */ " + refusal.Example + " -- b"} {
			result, refused := r.Rewrite(text, false)
			if refused == nil {
				t.Errorf("%s: allowed as %s", text, result.Text)
				continue
			}
			if refused.Code != refusal.Code || refused.Message != refusal.Message || refused.Hint != refusal.Hint || refused.Reason != refusal.Reason {
				t.Errorf("%s: got %s %q, want %s %q", text, refused.Code, refused.Message, refusal.Code, refusal.Message)
			}
			if result.Text != "" || result.NeedsSignature {
				t.Errorf("%s: a refusal came with a text", text)
			}
		}
		if _, refused := r.Rewrite(refusal.Example, true); refused == nil || refused.Code != refusal.Code {
			t.Errorf("%s in the extended protocol: %v", refusal.Example, refused)
		}
	}
}

// Further statements that are refused, with the SQLSTATE.
func TestRefusedWithCode(t *testing.T) {
	r := rewriter(t, InjectedMode)
	for _, c := range []struct{ code, sql string }{
		{"42601", "SELEC 1"},
		{"42601", "SELECT 'unterminated"},
		{"22021", "SELECT 1\x00; DROP TABLE people"},
		{"22021", "SELECT '\xff'"},
		{"54000", "SELECT '" + strings.Repeat("x", 1<<20) + "'"},
		{"54001", "SELECT " + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000)},
		{"42501", "WITH x AS (DELETE FROM people RETURNING id) SELECT * FROM x"},
		{"42501", "WITH x AS (INSERT INTO people (name) VALUES ('a') RETURNING *) TABLE x"},
		{"42501", "SELECT (SELECT count(*) FROM memory_edges)"},
		{"42501", "SELECT * FROM people WHERE id IN (SELECT from_id FROM memory_edges)"},
		{"42501", "SELECT * FROM people ORDER BY (SELECT max(weight) FROM memory_edges)"},
		{"42501", "SELECT count(*) FILTER (WHERE EXISTS (SELECT FROM memory_edges)) FROM people"},
		{"42501", "SELECT sum(1) OVER (ORDER BY (SELECT 1 FROM memory_edges)) FROM people"},
		{"42501", "SELECT * FROM people LIMIT (SELECT count(*) FROM memory_edges)"},
		{"42501", "SELECT * FROM generate_series(1, (SELECT count(*) FROM memory_edges))"},
		{"42501", "VALUES ((SELECT 1 FROM memory_edges))"},
		{"42501", "SELECT CASE WHEN true THEN (SELECT 1 FROM memory_edges) END"},
		{"42501", "SELECT * FROM people p JOIN memories m ON EXISTS (SELECT FROM memory_edges)"},
		{"42501", "SELECT ARRAY(SELECT from_id FROM memory_edges)"},
		{"42501", "SELECT * FROM (SELECT * FROM memory_edges) x"},
		{"42501", "SELECT * FROM people UNION SELECT from_id, from_id, '', true, '', now() FROM memory_edges"},
		{"42501", "SELECT lo_get(1)"},
		{"42501", "SELECT nextval('x')"},
		{"42501", "SELECT pg_catalog.pg_read_file('/etc/passwd')"},
		{"42501", "SELECT * FROM pg_ls_dir('.')"},
		{"42501", "SELECT txid_current()"},
		{"42501", "SELECT pg_lock_status()"},
		{"42501", "SELECT pg_notify('a', 'b')"},
		{"42501", "SELECT current_query()"},
		{"42501", "SELECT pg_backend_pid()"},
		{"42501", "SELECT (SELECT p FROM people p LIMIT 1).xmin"},
		{"42501", "SELECT * FROM people ORDER BY ctid"},
		{"42501", "SELECT * FROM ROWS FROM (pg_sleep(1), generate_series(1, 2))"},
		{"42883", "SELECT dblink('x', 'y')"},
		{"42883", "SELECT public.no_such()"},
		{"42883", "SELECT information_schema._pg_index_position(1, 1)"},
		{"42883", "SELECT 1 <@#> 2"},
		{"42883", "SELECT 1 OPERATOR(nowhere.+) 2"},
		{"42501", "SELECT * FROM memories FOR SHARE"},
		{"42501", "SELECT * FROM (SELECT * FROM memories FOR UPDATE) x"},
		{"0A000", "SELECT current_database.a.b.c.d FROM people"},
		{"0A000", "SELECT pg_catalog.pg_catalog.lower('x')"},
		{"0A000", "EXPLAIN ANALYZE SELECT * FROM memories"},
		{"0A000", "DECLARE c CURSOR FOR SELECT 1; DISCARD ALL; FETCH c"},
		{"42501", "PREPARE q AS DELETE FROM people"},
		{"42501", "PREPARE q AS SELECT * FROM secrets"},
		{"42501", "PREPARE q (xid8) AS SELECT $1"},
		{"42501", "EXECUTE q (pg_read_file('x'))"},
		{"0A000", "EXPLAIN (ANALYZE) SELECT (SELECT count(*) FROM memories)"},
		{"42501", "EXPLAIN DELETE FROM people"},
		{"42501", "EXPLAIN (VERBOSE) SELECT * FROM secrets"},
		{"42501", "EXPLAIN SELECT pg_read_file('x'), name FROM people"},
		{"0A000", "EXPLAIN SELECT * FROM people; SELECT 1"},
		{"0A000", "SELECT 1; EXPLAIN SELECT * FROM people"},
		{"0A000", "EXPLAIN ANALYZE EXECUTE q"},
		{"0A000", "EXPLAIN DECLARE c CURSOR FOR SELECT * FROM people"},
		{"0A000", "EXPLAIN CREATE TABLE a AS SELECT * FROM people"},

		{"0A000", "EXPLAIN (SETTINGS) SELECT 1"},
		{"0A000", "DISCARD ALL; SELECT 1"},
		{"0A000", "DISCARD ALL; SELECT 1"},
		{"0A000", "BEGIN; DISCARD ALL"},
	} {
		result, refusal := r.Rewrite(c.sql, false)
		if refusal == nil {
			t.Errorf("%.100s: allowed as %.300s", c.sql, result.Text)
		} else if string(refusal.Code) != c.code || refusal.Message == "" {
			t.Errorf("%.100s: %v, want %s", c.sql, refusal, c.code)
		}
	}
}

// Every refusal has a hint besides its message.
func TestRefusalsHaveHints(t *testing.T) {
	for _, r := range Refusals() {
		if r.Hint == "" || r.Message == "" || r.Code == "" || r.Reason == "" || len(r.Nodes) == 0 {
			t.Errorf("%s is incomplete", r.Construct)
		}
	}
}

// In the extended protocol, a Parse message with several statements is refused with PostgreSQL's error.
func TestExtendedTakesOneStatement(t *testing.T) {
	r := rewriter(t, InjectedMode)
	_, refusal := r.Rewrite("SELECT 1; SELECT 2", true)
	if refusal == nil || refusal.Code != "42601" || refusal.Message != "cannot insert multiple commands into a prepared statement" {
		t.Errorf("%v", refusal)
	}
	for _, text := range []string{"", ";", "-- ping", "SELECT 1;"} {
		if _, refusal := r.Rewrite(text, true); refusal != nil {
			t.Errorf("%q: %v", text, refusal)
		}
	}
}
