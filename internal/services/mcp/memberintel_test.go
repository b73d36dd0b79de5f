package mcp_test

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/tier"
)

// The world memberintel over MCP: planted metadata keys appear in no answer, and nothing is written. A full text is
// returned only as over SQL, if the caller names its id.
// seeds/004:21-25, 63.
func TestMemberintel(t *testing.T) {
	tier.All(t)
	f := serveWorld(t, "memberintel")
	s := f.as(t, "agent:advisor")
	toolList, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range toolList.Tools {
		if tool.Name == "query" && (!tool.Annotations.ReadOnlyHint || !strings.Contains(tool.Description, "change nothing")) {
			t.Errorf("nothing is written here, and query does not say so: %+v", tool)
		}
	}
	owner := f.sql(t, f.demo.Access.OwnerDSN)
	var id, content string
	if err := owner.QueryRow(t.Context(),
		"SELECT id::text, content FROM brain_entries WHERE tenant_id = 'global' ORDER BY id LIMIT 1").Scan(&id, &content); err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Exec(t.Context(),
		`UPDATE brain_entries SET metadata = metadata || '{"author": "PLANTED-AUTHOR", "path": "/PLANTED/PATH", "summary": {"nested": "PLANTED"}}' `+
			`WHERE id = $1`, id); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"SELECT * FROM brain_entries", "SELECT metadata FROM brain_entries",
		"SELECT metadata->>'author' FROM brain_entries", "SELECT metadata::text FROM brain_entries WHERE id = '" + id + "'",
		"SELECT jsonb_each_text(metadata) FROM brain_entries", "SELECT b FROM brain_entries b",
		"SELECT to_jsonb(b) FROM brain_entries b WHERE id = '" + id + "'",
		"SELECT metadata #>> '{summary,nested}' FROM brain_entries", "SELECT content FROM brain_entries", "SELECT content FROM brain_entries LIMIT 1",
		"INSERT INTO brain_entries (id) VALUES (gen_random_uuid())", "DELETE FROM brain_entries", "UPDATE brain_entries SET title = 'x'",
	} {
		a := ask(t, s, "query", args{"sql": sql, "max_rows": 1000})
		if strings.Contains(a.text, "PLANTED") || strings.Contains(a.text, content) {
			t.Errorf("%s: %.300s", sql, a.text)
		}
		if !strings.HasPrefix(sql, "SELECT") && !strings.HasPrefix(a.text, "ERROR 42501") {
			t.Errorf("%s: %.300s", sql, a.text)
		}
	}
	// No tool returns the text of an entry, not even by id. The columns that lists show are shown by id, too.
	for _, sql := range []string{"SELECT content FROM brain_entries WHERE id = $1",
		"SELECT b.content FROM brain_entries b WHERE b.id = $1", "SELECT length(content) FROM brain_entries WHERE id = $1"} {
		if a := ask(t, s, "query", args{"sql": sql, "parameters": []any{id}}); !strings.HasPrefix(a.text,
			"ERROR 42703") || !strings.Contains(a.text, "never shown") {
			t.Errorf("by its id: %s: %.300s", sql, a.text)
		}
	}
	for _, sql := range []string{"SELECT * FROM brain_entries WHERE id = $1",
		"SELECT b FROM brain_entries b WHERE id = $1", "SELECT metadata ->> 'title' FROM brain_entries WHERE id = $1"} {
		if a := ask(t, s, "query", args{"sql": sql, "parameters": []any{id}}); a.hasFailed ||
			a.member["row_count"] != float64(1) || strings.Contains(a.text, content) {
			t.Errorf("by its id: %s: %.300s", sql, a.text)
		}
	}
	// An id that does not exist, one of another user, and a malformed one get the same answer.
	var otherAnswers string
	if err := owner.QueryRow(t.Context(),
		"SELECT id::text FROM brain_entries WHERE tenant_id NOT IN ('global', '11111111-1111-4111-8111-111111111111') LIMIT 1").Scan(&otherAnswers); err != nil {
		t.Fatal(err)
	}
	sql := "SELECT title FROM brain_entries WHERE id = $1"
	a := ask(t, s, "query", args{"sql": sql, "parameters": []any{otherAnswers}})
	if b := ask(t, s, "query", args{"sql": sql, "parameters": []any{"00000000-0000-4000-8000-000000000000"}}); a.text != b.text ||
		a.hasFailed {
		t.Errorf("another user's: %s; nobody's: %s", a.text, b.text)
	}
}
