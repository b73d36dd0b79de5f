package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/test/tier"
)

func (f *servedWorld) sql(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// checkNotices checks that PostgreSQL's notices come with the result of a tool as separate content, also with an error.
func checkNotices(t *testing.T, s *sdk.ClientSession) {
	t.Helper()
	longText := strings.Repeat("a", 70)
	for sql, want := range map[string]string{"SELECT 1 AS " + longText: "NOTICE 42622: identifier",
		"SELECT 1 AS " + longText + ", no_such_column": "NOTICE 42622: identifier", "SELECT 1": ""} {
		r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "query", Arguments: args{"sql": sql}})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, c := range r.Content[1:] {
			got += c.(*sdk.TextContent).Text
		}
		if (want == "") != (got == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s: beside the answer is %q, want %q", sql, got, want)
		}
	}
	if code, _, hint := ask(t, s, "query", args{"sql": "SELECT 1; SELECT 2"}).fault(); code != "42601" ||
		!strings.Contains(hint, "one statement at a time") {
		t.Errorf("two statements: %s %s", code, hint)
	}
}

// The world arcive over MCP: the tool search_memories always respects consent.
//
// seeds/000:21-25, 40-41.
func TestArcive(t *testing.T) {
	tier.All(t)
	f := serveWorld(t, "arcive")
	t.Run("tools", func(t *testing.T) { arciveTools(t, f) })
	t.Run("search", func(t *testing.T) { arciveSearch(t, f) })
	t.Run("like SQL", func(t *testing.T) { arciveLikeSQL(t, f) })
	t.Run("notices", func(t *testing.T) { checkNotices(t, f.as(t, "agent:mcp")) })
	t.Run("writes", func(t *testing.T) { arciveWrites(t, f) })
	t.Run("bounds", func(t *testing.T) { arciveBounds(t, f) })
	t.Run("withdrawn", func(t *testing.T) { arciveWithdrawn(t, f) })
	t.Run("records", func(t *testing.T) { arciveRecords(t, f) })
	t.Run("document", func(t *testing.T) { checkDocument(t, f) })
	t.Run("node", func(t *testing.T) {
		tier.All(t) // npm downloads the client
		independentClient(t, f)
	})
	t.Run("ended", func(t *testing.T) { arciveEnded(t, f) })
}

func arciveTools(t *testing.T, f *servedWorld) {
	toolList, err := f.as(t, "agent:mcp").ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range toolList.Tools {
		names = append(names, tool.Name)
		if len(tool.Description) < 60 || tool.Annotations == nil || tool.OutputSchema == nil {
			t.Errorf("%s: a model could not act on it: %+v", tool.Name, tool)
		}
		schema, err := json.Marshal(tool.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		var in struct {
			Type       string
			Properties map[string]struct{ Description string }
			More       json.RawMessage `json:"additionalProperties"`
		}
		if err := json.Unmarshal(schema, &in); err != nil || in.Type != "object" || string(in.More) != "false" && string(in.More) != `{"not":{}}` {
			t.Errorf("%s takes what it does not know: %s (%v)", tool.Name, schema, err)
		}
		for name, p := range in.Properties {
			if p.Description == "" {
				t.Errorf("%s: argument %s is not described", tool.Name, name)
			}
		}
		if tool.Name == "search_memories" && (len(in.Properties) != 2 || in.Properties["query_text"].Description == "" || !tool.Annotations.ReadOnlyHint) {
			t.Errorf("search_memories: %s", schema)
		}
	}
	want := []string{"consent_status", "interaction_end", "interaction_session", "list_tables", "partnership_decide", "partnership_pending",
		"query", "track_interaction", "search_memories"}
	if !slices.Equal(names, want) {
		t.Errorf("tools %q, want %q", names, want)
	}
}

// The search has no argument about consent, returns no hidden memories, and returns the same for all agents of the same
// user (SYSTEMS: j of this world).
func arciveSearch(t *testing.T, f *servedWorld) {
	var first string
	for _, agent := range []string{"caregiver", "reviewer", "tutor", "brainstorm", "chat", "voice", "mcp"} {
		s := f.as(t, "agent:"+agent)
		got := ""
		for _, text := range []string{"a walk by the sea", "dinner with friends", "", "x'); DROP TABLE memories; --", "%"} {
			a := ask(t, s, "search_memories", args{"query_text": text, "match_count": 1000})
			if a.hasFailed || strings.Contains(a.text, "HIDDENMARK") {
				t.Errorf("%s: %q: %.300s", agent, text, a.text)
			}
			got += a.text
		}
		if first == "" {
			first = got
		}
		if got != first {
			t.Errorf("%s finds something else", agent)
		}
	}
	s := f.as(t, "agent:mcp")
	a := ask(t, s, "search_memories", args{"query_text": "dinner", "match_count": 1000})
	conn := f.sql(t, f.demo.Access.Agents[0].DSN)
	var visibleCount, ownedCount int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM memories").Scan(&visibleCount); err != nil {
		t.Fatal(err)
	}
	owner := f.sql(t, f.demo.Access.OwnerDSN)
	if err := owner.QueryRow(t.Context(),
		"SELECT count(*) FROM memories WHERE user_id = '11111111-1111-4111-8111-111111111111'").Scan(&ownedCount); err != nil {
		t.Fatal(err)
	}
	if n := a.member["row_count"]; n != float64(visibleCount) || visibleCount >= ownedCount {
		t.Errorf("search finds %v of %d visible memories, of %d", n, visibleCount, ownedCount)
	}
	for name, extraArguments := range map[string]args{
		"by name": {"query_text": "x", "match_count": 3, "respect_consent": false}, "of another case": {
			"query_text": "x", "match_count": 3, "Respect_Consent": false},
		"missing": {"query_text": "x"}, "of another type": {"query_text": "x", "match_count": "many"},
	} {
		if code, _, _ := ask(t, s, "search_memories", extraArguments).fault(); code != "22023" {
			t.Errorf("%s: %s", name, code)
		}
	}
	if code, _, _ := ask(t, s, "search_memories", args{"query_text": "x", "match_count": -1}).fault(); code != "2201W" {
		t.Errorf("match_count -1: %s", code)
	}
}

// A statement has the same result over MCP as over SQL, and the same error if it is refused.
func arciveLikeSQL(t *testing.T, f *servedWorld) {
	s, conn := f.as(t, "agent:caregiver"), f.sql(t, f.demo.Access.Agents[0].DSN)
	for _, sql := range []string{
		"SELECT count(*) FROM memories", "SELECT title FROM memories ORDER BY id LIMIT 5", "SELECT name, is_self, consent_status FROM people ORDER BY id",
		"TABLE memory_participants ORDER BY 1, 2 LIMIT 3", "SELECT metadata FROM memories ORDER BY id LIMIT 10", "VALUES (1, NULL, true), (2, 'x', false)",
		"SELECT 1 AS a, 2 AS a", "SELECT 9007199254740993::bigint, 1.5::float8, 'NaN'::float8, 0.1::numeric, " +
			"ARRAY['a','b'], '{\"a\":{\"b\":[1,2]}}'::json, now() > '2000-01-01', 'x'::bytea",
		"SELECT * FROM memory_edges", "SELECT * FROM pg_authid", "SELECT pg_sleep(1)", "SELECT 1; SELECT 2",
		"DROP TABLE memories", "UPDATE people SET consent_status = 'granted'",
		"SELEC", "", "SELECT 1/0", "SELECT nothing FROM memories", "SET row_security = off", "COPY memories TO STDOUT", "SELECT body::int FROM memories",
		"EXPLAIN SELECT * FROM memories", "SELECT match_memories(embedding, 3, false) FROM memories LIMIT 1",
		"LISTEN x", "SELECT current_setting('pgconsent.seal')", "SELECT $1",
	} {
		a := ask(t, s, "query", args{"sql": sql, "max_rows": 1000})
		if strings.Contains(a.text, "HIDDENMARK") {
			t.Errorf("%s shows what is hidden", sql)
		}
		rows, err := conn.Query(t.Context(), sql, pgx.QueryExecModeExec)
		var got []string
		if err == nil {
			for rows.Next() {
				var row []string
				for _, v := range rows.RawValues() {
					row = append(row, string(v))
				}
				got = append(got, strings.Join(row, "|"))
			}
			err = rows.Err()
			rows.Close()
		}
		var sqlError *pgconn.PgError
		if errors.As(err, &sqlError) {
			code, message, hint := a.fault()
			if diff := cmp.Diff([]string{sqlError.Code, sqlError.Message, sqlError.Hint}, []string{code, message, hint}); diff != "" &&
				sqlError.Code != "0A000" {
				t.Errorf("%s (-SQL +MCP): %s", sql, diff)
			}
			if !strings.Contains(a.text, "ERROR "+sqlError.Code+": ") || sqlError.Hint != "" && !strings.Contains(a.text, "HINT: ") {
				t.Errorf("%s: a model reads %q", sql, a.text)
			}
			continue
		}
		if err != nil && !strings.HasPrefix(sql, "SELECT $1") && !strings.HasPrefix(sql, "COPY") {
			t.Fatalf("%s: %v", sql, err)
		}
		if n, ok := a.member["row_count"].(float64); ok && int(n) != len(got) {
			t.Errorf("%s: %v rows by MCP, %d by SQL", sql, n, len(got))
		}
	}
	if code, _, hint := ask(t, s, "query", args{"sql": "COPY memories TO STDOUT"}).fault(); code != "0A000" || !strings.Contains(hint, "SELECT") {
		t.Errorf("COPY: %s %s", code, hint)
	}
	a := ask(t, s, "query", args{
		"sql": "SELECT 9007199254740993::bigint AS big, 7 AS small, true AS yes, NULL::text AS none, '{\"a\": " +
			"[1]}'::jsonb AS j, 0.10::numeric AS n, 'é😀'::text AS t"})
	if got, want := fmt.Sprint(a.member["rows"]), "[[9007199254740993 7 true <nil> map[a:[1]] 0.10 é😀]]"; got != want {
		t.Errorf("values %s, want %s", got, want)
	}
	if got := fmt.Sprintf("%T", a.member["rows"].([]any)[0].([]any)[0]); got != "string" {
		t.Errorf("a number that readers would round is a %s", got)
	}
	a = ask(t, s, "query", args{"sql": "SELECT $1::text, $2::int, $3::bool, $4::text, $5::jsonb",
		"parameters": []any{"'; DROP TABLE x; --", 42, true, nil, map[string]any{"a": 1}}})
	if got, want := fmt.Sprint(a.member["rows"]), "[['; DROP TABLE x; -- 42 true <nil> map[a:1]]]"; got != want {
		t.Errorf("parameters %s, want %s", got, want)
	}
	a = ask(t, s, "list_tables", nil)
	if strings.Contains(a.text, "memory_edges") || strings.Contains(a.text, "pgconsent") || !strings.Contains(a.text, "memory_participants") {
		t.Errorf("list_tables: %s", a.text)
	}
	if a := ask(t, f.as(t, "agent:neighbour"), "query",
		args{"sql": "SELECT count(*) FROM memories WHERE user_id <> '22222222-2222-4222-8222-222222222222'"}); fmt.Sprint(a.member["rows"]) != "[[0]]" {
		t.Errorf("another user's agent: %s", a.text)
	}
}

func arciveWrites(t *testing.T, f *servedWorld) {
	s := f.as(t, "agent:chat")
	count := func() string {
		return fmt.Sprint(ask(t, s, "query", args{"sql": "SELECT count(*) FROM memories WHERE title LIKE 'by MCP%'"}).member["rows"])
	}
	a := ask(t, s, "query", args{"sql": "INSERT INTO memories (title, body) VALUES ($1, $2) RETURNING title", "parameters": []any{"by MCP", "one"}})
	if a.hasFailed || a.member["command"] != "INSERT 0 1" || count() != "[[1]]" {
		t.Errorf("insert: %s", a.text)
	}
	if code, _, _ := ask(t, s, "query", args{"sql": "INSERT INTO memories (title, body) VALUES ('by MCP', 'two')",
		"read_only": true}).fault(); code != "25006" || count() != "[[1]]" {
		t.Errorf("read_only: %s", code)
	}
	// If a statement's result is cut off, its changes are not committed.
	a = ask(t, s, "query", args{
		"sql": "INSERT INTO memories (title, body) SELECT 'by MCP ' || n, 'x' FROM generate_series(1, 50) n RETURNING title", "max_rows": 10})
	if a.member["truncated"] != true || a.member["row_count"] != float64(10) || count() != "[[1]]" {
		t.Errorf("truncated: %s, then %s", a.text, count())
	}
	a = ask(t, s, "query", args{"sql": "INSERT INTO memories (title, body) SELECT 'by MCP ' || n, 'x' FROM generate_series(1, 50) n"})
	if a.hasFailed || a.member["command"] != "INSERT 0 50" || count() != "[[51]]" {
		t.Errorf("many: %s, then %s", a.text, count())
	}
	for _, sql := range []string{"BEGIN", "SET search_path = public", "PREPARE p AS SELECT 1"} {
		if a := ask(t, s, "query", args{"sql": sql}); a.hasFailed {
			t.Logf("%s: %s", sql, a.text)
		}
	}
	if count() != "[[51]]" {
		t.Error("a call has changed what later ones see")
	}
}

func arciveBounds(t *testing.T, f *servedWorld) {
	s := f.as(t, "agent:voice")
	a := ask(t, s, "query", args{"sql": "SELECT n FROM generate_series(1, 1000000) n"})
	if a.member["truncated"] != true || a.member["row_count"] != float64(100) || !strings.Contains(a.text, "LIMIT") {
		t.Errorf("many rows: %.200s", a.text)
	}
	a = ask(t, s, "query", args{"sql": "SELECT repeat('x', 1000) FROM generate_series(1, 1000) n", "max_rows": 1000})
	if n, ok := a.member["row_count"].(float64); a.member["truncated"] != true || !ok || n < 100 || n > 300 || len(a.text) > 400_000 {
		t.Errorf("many bytes: %d, %.100s", len(a.text), a.text)
	}
	if code, _, hint := ask(t, s, "query", args{"sql": "SELECT repeat('x', 3000000)"}).fault(); code != "54000" || !strings.Contains(hint, "substr") {
		t.Errorf("a long row: %s %s", code, hint)
	}
	// Concurrent calls are answered. A call above the limit gets an error that says so.
	results := make(chan string, 24)
	for range 24 {
		go func() {
			r, err := s.CallTool(context.Background(),
				&sdk.CallToolParams{Name: "query", Arguments: args{"sql": "SELECT count(*) FROM generate_series(1, 3000000)"}})
			switch {
			case err != nil:
				results <- err.Error()
			case r.IsError:
				code, _, _ := toolAnswer{member: r.StructuredContent.(map[string]any)}.fault()
				results <- code
			default:
				results <- "done"
			}
		}()
	}
	countByResult := map[string]int{}
	for range 24 {
		countByResult[<-results]++
	}
	// On a busy machine, a call may fail with 08006, because its login takes too long.
	if countByResult["done"] == 0 || countByResult["done"]+countByResult["53300"]+countByResult["08006"] != 24 {
		t.Errorf("side by side: %v", countByResult)
	}
}

// After a withdrawal, the next call in an open session no longer shows the person's memories.
func arciveWithdrawn(t *testing.T, f *servedWorld) {
	s, owner := f.as(t, "agent:mcp"), f.sql(t, f.demo.Access.OwnerDSN)
	found := func() float64 {
		n, _ := ask(t, s, "search_memories", args{"query_text": "lunch", "match_count": 1000}).member["row_count"].(float64)
		return n
	}
	before := found()
	var person string
	if err := owner.QueryRow(t.Context(), `UPDATE people SET consent_status = 'revoked'
WHERE id = (SELECT p.id FROM people p JOIN memory_participants m ON m.person_id = p.id
WHERE p.user_id = '11111111-1111-4111-8111-111111111111' AND p.consent_status = 'granted' GROUP BY p.id ORDER BY count(*) DESC LIMIT 1)
RETURNING id`).Scan(&person); err != nil {
		t.Fatal(err)
	}
	if found() >= before {
		t.Error("a withdrawal has not counted at the next call")
	}
	if _, err := owner.Exec(t.Context(), "UPDATE people SET consent_status = 'granted' WHERE id = $1", person); err != nil {
		t.Fatal(err)
	}
	if found() != before {
		t.Error("nor has the grant")
	}
}

// The audit records statements of tools like those of any client, and other calls as calls.
func arciveRecords(t *testing.T, f *servedWorld) {
	s := f.as(t, "agent:mcp")
	ask(t, s, "query", args{"sql": "SELECT count(*) FROM people"})
	ask(t, s, "search_memories", args{"query_text": "a walk by the sea", "match_count": 1})
	ask(t, s, "partnership_pending", nil)
	ask(t, s, "track_interaction", args{"user_id": "nobody-may-know", "channel_id": "c"})
	files, err := filepath.Glob(filepath.Join(f.config.Audit.File, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var text string
	for _, file := range files {
		fileText, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text += string(fileText)
	}
	for _, want := range []string{`"face":"mcp"`, `"operation":"tool partnership_pending"`, `"agent":"mcp"`, "search_memories_semantic"} {
		if !strings.Contains(text, want) {
			t.Errorf("no record has %s", want)
		}
	}
	for _, forbiddenText := range []string{"nobody-may-know", "track_interaction", "a walk by the sea"} {
		if strings.Contains(text, forbiddenText) {
			t.Errorf("a record has %s", forbiddenText)
		}
	}
}

// A session ends when its token is revoked, and a running statement ends when its agent is removed.
func arciveEnded(t *testing.T, f *servedWorld) {
	s, otherSession := f.as(t, "agent:caregiver"), f.as(t, "agent:chat")
	slow := make(chan error, 1)
	go func() {
		_, err := s.CallTool(context.Background(),
			&sdk.CallToolParams{Name: "query", Arguments: args{"sql": "SELECT count(*) FROM generate_series(1, 2000000000)"}})
		slow <- err
	}()
	time.Sleep(500 * time.Millisecond)
	if err := identity.RevokeToken(f.tokens, "agent:caregiver"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-slow: // with any error, since the session has ended
	case <-time.After(tier.Patience):
		t.Error("a call goes on that began before its token was revoked")
	}
	if r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "query", Arguments: args{"sql": "SELECT 1"}}); err == nil {
		t.Errorf("a revoked token is answered: %v", r)
	}
	if err := config.DisableCredential(f.config.Credentials, "chat"); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(tier.Patience)
	for {
		if _, err := otherSession.CallTool(t.Context(), &sdk.CallToolParams{Name: "query", Arguments: args{"sql": "SELECT 1"}}); err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a disabled agent is answered")
		}
		time.Sleep(100 * time.Millisecond)
	}
}
