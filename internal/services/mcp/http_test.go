package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/registry/air"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/services/mcp"
	"github.com/pgconsent/pgconsent/internal/services/operations"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/test/tier"
)

// bareServer is an MCP server without a database.
type bareServer struct {
	url string

	mu                sync.Mutex
	tokens            map[string]identity.Caller
	verifyCounts      map[string]int // how often each token has been verified
	records           []audit.Call
	isRecordingBroken bool // audit records cannot be written
}

func (d *bareServer) Verify(_ context.Context, bearer string) (identity.Caller, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.verifyCounts[bearer]++
	if c, ok := d.tokens[bearer]; ok {
		return c, nil
	}
	return identity.Caller{}, identity.NewRefusal(errors.New("no such token"))
}

func (d *bareServer) record(_ context.Context, c audit.Call) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isRecordingBroken {
		return sqlstate.New(sqlstate.IOError, sqlstate.ReasonAudit, "the record cannot be written")
	}
	d.records = append(d.records, c)
	return nil
}

func (d *bareServer) revoke(token string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.tokens, token)
}

func openServer(t testing.TB) *bareServer {
	t.Helper()
	d := &bareServer{verifyCounts: map[string]int{}, tokens: map[string]identity.Caller{
		"chat":  {Name: "chat", Role: identity.Agent, Agent: "chat", Database: "app"},
		"ada":   {Name: "ada", Role: identity.Subject, Subject: "ada", Database: "app"},
		"bob":   {Name: "bob", Role: identity.Subject, Subject: "bob", Database: "app"},
		"root":  {Name: "root", Role: identity.Admin, Database: "app"},
		"app":   {Name: "app", Role: identity.System, Database: "app"},
		"watch": {Name: "watch", Role: identity.Operator, Database: "app"},
		"lost":  {Name: "lost", Role: identity.Agent, Agent: "chat", Database: "elsewhere"},
	}}
	s, err := mcp.NewServer(mcp.Config{
		Verifier: d, Record: d.record, Reminders: air.New(air.Config{}), TokenCheckInterval: 20 * time.Millisecond,
		Connect: func(context.Context, identity.Caller, func(*pgconn.Notice)) (*pgx.Conn, error) {
			return nil, sqlstate.New(sqlstate.InvalidAuthorization, sqlstate.ReasonIdentity, "the agent cannot log in")
		},
		Service:   &operations.Service{},
		Databases: map[string]*mcp.Database{"app": {Policy: func() *policy.Policy { return nil }, Attributes: func(string) map[string]string { return nil }}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { s.Run(ctx) })
	web := httptest.NewServer(s)
	t.Cleanup(func() { web.Close(); stop(); wg.Wait() })
	d.url = web.URL
	return d
}

// reply is an HTTP response.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) code(t testing.TB) int {
	t.Helper()
	var m struct {
		Error struct {
			Code int             `json:"code"`
			Data json.RawMessage `json:"data"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(r.body), &m); err != nil {
		t.Errorf("not JSON: %.200s", r.body)
	}
	if m.Error.Code != 0 && m.Error.Code != -32022 && !strings.Contains(string(m.Error.Data), `"sqlstate":"`) {
		t.Errorf("an error without type: %s", r.body)
	}
	return m.Error.Code
}

func send(t testing.TB, method, url, token, session, body string, header ...string) reply {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(bytes.TrimSpace(text))}
}

const (
	initializeMessage = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	initializedMessage = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	list               = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
)

func callMessage(tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments)
}

// begin begins a session, and returns its id.
func begin(t testing.TB, url, token string) string {
	t.Helper()
	r := send(t, "POST", url, token, "", initializeMessage)
	id := r.header.Get("Mcp-Session-Id")
	if r.status != 200 || id == "" {
		t.Fatalf("initialize: %d %s", r.status, r.body)
	}
	if r := send(t, "POST", url, token, id, initializedMessage); r.status != 202 {
		t.Fatalf("initialized: %d %s", r.status, r.body)
	}
	return id
}

// Without a valid token, every request gets the same answer, which reveals nothing.
func TestWithoutToken(t *testing.T) {
	d := openServer(t)
	session := begin(t, d.url, "chat")
	var first *reply
	for name, r := range map[string]reply{
		"none":            send(t, "POST", d.url, "", "", initializeMessage),
		"unknown":         send(t, "POST", d.url, "nobody", "", initializeMessage),
		"with a session":  send(t, "POST", d.url, "nobody", session, list),
		"a bad message":   send(t, "POST", d.url, "nobody", "", "{{{"),
		"GET":             send(t, "GET", d.url, "", "", ""),
		"DELETE":          send(t, "DELETE", d.url, "", session, ""),
		"basic":           send(t, "POST", d.url, "", "", initializeMessage, "Authorization", "Basic Y2hhdDpjaGF0"),
		"as a query":      send(t, "POST", d.url+"?access_token=chat", "", "", initializeMessage),
		"two words":       send(t, "POST", d.url, "chat chat", "", initializeMessage),
		"a huge one":      send(t, "POST", d.url, strings.Repeat("x", 8000), "", initializeMessage),
		"of another site": send(t, "POST", d.url, "", "", initializeMessage, "Origin", "https://evil.example"),
	} {
		if first == nil {
			first = &r
		}
		if r.status != 401 || r.body != first.body || r.header.Get("Www-Authenticate") != "Bearer" || r.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: %d %s %v", name, r.status, r.body, r.header)
		}
	}
	if send(t, "POST", d.url, "chat", session, list).status != 200 {
		t.Error("the session was ended by others")
	}
}

// A message that is malformed, or not allowed in the state of the session, gets a typed error and changes nothing.
func TestMisplacedMessages(t *testing.T) {
	d := openServer(t)
	ownSession, othersSession := begin(t, d.url, "chat"), begin(t, d.url, "ada")
	uninitializedSession := send(t, "POST", d.url, "chat", "", initializeMessage).header.Get("Mcp-Session-Id")
	endedSession := begin(t, d.url, "chat")
	if r := send(t, "DELETE", d.url, "chat", endedSession, ""); r.status != 204 {
		t.Errorf("DELETE: %d", r.status)
	}
	deepObject := strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)
	for _, c := range []struct {
		name, session, body string
		status, code        int
	}{
		{"a call without session", "", callMessage("query", `{"sql":"SELECT 1"}`), 400, -32001},
		{"a list without session", "", list, 400, -32001},
		{"ping without session", "", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 400, -32001},
		{"somebody else's session", othersSession, list, 404, -32001},
		{"no such session", "nothing", list, 404, -32001},
		{"a session that has ended", endedSession, list, 404, -32001},
		{"initialize twice", ownSession, initializeMessage, 400, -32600},
		{"a list before initialized", uninitializedSession, list, 400, -32600},
		{"a call before initialized", uninitializedSession, callMessage("query", "{}"), 400, -32600},
		{"initialize without parameters", "", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`, 400, -32602},
		{"a version that is a number", "", strings.Replace(initializeMessage, `"2025-06-18"`, "7", 1), 200, -32602},
		{"a cursor that is a number", ownSession, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":5}}`, 200, -32602},
		{"a name that is a number", ownSession, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`, 200, -32602},
		{"unknown method", ownSession, `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}`, 200, -32601},
		{"sampling", ownSession, `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}`, 200, -32601},
		{"unknown tool", ownSession, callMessage("drop_everything", "{}"), 200, -32602},
		{"a tool of another role", ownSession, callMessage("consent_grant", `{"stream":"TEMPORARY"}`), 200, -32602},
		{"no tool", ownSession, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, 200, -32602},
		{"no parameters", ownSession, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, 400, -32602},
		{"a batch", ownSession, "[" + list + "," + list + "]", 400, -32600},
		{"an empty batch", ownSession, "[]", 400, -32600},
		{"a text", ownSession, `"tools/list"`, 400, -32600},
		{"no JSON", ownSession, `{"jsonrpc":`, 400, -32700},
		{"nothing", ownSession, "", 400, -32700},
		{"two values", ownSession, list + list, 400, -32700},
		{"a name twice", ownSession, `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, 400, -32700},
		{"a name in another case beside it", ownSession, `{"jsonrpc":"2.0","id":1,"method":"tools/call","Method":"ping"}`, 400, -32600},
		{"a name in another case", ownSession, `{"jsonrpc":"2.0","id":1,"METHOD":"ping"}`, 400, -32600},
		{"an argument twice", ownSession, callMessage("query", `{"sql":"SELECT 1","sql":"SELECT 2"}`), 400, -32700},
		{"too deep", ownSession, callMessage("query", deepObject), 400, -32700},
		{"far too deep", ownSession, strings.Repeat("[", 50_000), 400, -32700},
		{"not UTF-8", ownSession, strings.Replace(list, "list", "l\xffst", 1), 400, -32700},
		{"half a pair", ownSession, callMessage("query", `{"sql":"\ud800"}`), 400, -32700},
		{"JSON-RPC 1", ownSession, `{"id":1,"method":"ping"}`, 400, -32600},
		{"an answer", ownSession, `{"jsonrpc":"2.0","id":1,"result":{}}`, 400, -32600},
		{"an object as id", ownSession, `{"jsonrpc":"2.0","id":{},"method":"ping"}`, 400, -32600},
		{"null as id", ownSession, `{"jsonrpc":"2.0","id":null,"method":"ping"}`, 400, -32600},
		{"a method that is a number", ownSession, `{"jsonrpc":"2.0","id":1,"method":7}`, 400, -32600},
		{"too long", ownSession, callMessage("query", `{"sql":"`+strings.Repeat("x", 300_000)+`"}`), 413, -32600},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := send(t, "POST", d.url, "chat", c.session, c.body)
			if got := r.code(t); got != c.code || c.status != 0 && r.status != c.status {
				t.Errorf("%d, code %d, want %d, %d: %s", r.status, got, c.status, c.code, r.body)
			}
			if !strings.Contains(r.body, `"sqlstate":"`) || !strings.Contains(r.body, `"hint":"`) || strings.Contains(r.body, "unmarshal") {
				t.Errorf("it has no data, or words that are not ours: %s", r.body)
			}
		})
	}
	if r := send(t, "POST", d.url, "chat", ownSession, list, "Origin", "https://evil.example"); r.status != 403 {
		t.Errorf("of another site: %d %s", r.status, r.body)
	}
	for _, method := range []string{"GET", "PUT", "PATCH", "HEAD", "OPTIONS"} {
		if r := send(t, method, d.url, "chat", ownSession, ""); r.status != 405 || r.header.Get("Allow") != "POST, DELETE" {
			t.Errorf("%s: %d", method, r.status)
		}
	}
	if r := send(t, "POST", d.url, "chat", ownSession, list); r.status != 200 {
		t.Errorf("the session has not outlived it: %d", r.status)
	}
	for _, c := range []struct{ name, header, value, body string }{
		{"XML", "Content-Type", "text/xml", list},
		{"a protocol nobody knows", "Mcp-Protocol-Version", "1999-01-01", list},
		{"a protocol without sessions", "Mcp-Protocol-Version", "2026-07-28",
			strings.Replace(list, `"tools/list"`, `"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`, 1)},
		{"an event to go on from", "Last-Event-ID", "x", list},
	} {
		if r := send(t, "POST", d.url, "chat", ownSession, c.body, c.header, c.value); r.code(t) >= 0 || r.status < 400 || r.status > 499 {
			t.Errorf("%s: %d %s", c.name, r.status, r.body)
		}
	}
	if r := send(t, "POST", d.url, "chat", ownSession, list, "Accept", "text/html"); r.status != 200 {
		t.Errorf("accepts HTML: %d %s", r.status, r.body)
	}
	for name, session := range map[string]string{"others'": othersSession, "unknown": "nothing"} {
		if a, b := send(t, "POST", d.url, "chat", session, list), send(t, "POST", d.url, "chat", "other", list); a.body != b.body {
			t.Errorf("%s session: %s, not %s", name, a.body, b.body)
		}
	}
}

// The answer to "initialize" has a protocol version that the server supports; for an unknown version, it is the newest
// one with sessions. A message of a version without sessions gets an error that lists the supported versions.
func TestVersions(t *testing.T) {
	d := openServer(t)
	for requestedVersion, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18",
		"2025-11-25": "2025-11-25", "2026-07-28": "2025-11-25", "2099-01-01": "2025-11-25",
		"1999-01-01": "2025-11-25", "latest": "2025-11-25", "": "2025-11-25",
	} {
		if r := send(t, "POST", d.url, "chat", "", strings.Replace(initializeMessage, "2025-06-18", requestedVersion, 1)); r.status != 200 ||
			!strings.Contains(r.body, `"protocolVersion":"`+want+`"`) {
			t.Errorf("%q: %d %s, want %s", requestedVersion, r.status, r.body, want)
		}
	}
	const meta = `"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	for method, want := range map[string]int{"tools/list": 400, "server/discover": 200} {
		r := send(t, "POST", d.url, "chat", "", `{"jsonrpc":"2.0","id":1,"method":"`+method+`",`+meta,
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method)
		if r.status != want || strings.Contains(r.body, `"code":-32022`) != (want == 400) ||
			!strings.Contains(r.body, `["2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`) || strings.Contains(r.body, `"public"`) {
			t.Errorf("%s of a protocol without sessions: %d %s", method, r.status, r.body)
		}
	}
}

// An unknown argument is an error of the tool, which lists the arguments of the tool.
func TestStrictArguments(t *testing.T) {
	d := openServer(t)
	session := begin(t, d.url, "chat")
	for name, c := range map[string]struct{ tool, arguments, want string }{
		"unknown":                   {"query", `{"sql":"SELECT 1","consent":false}`, "consent"},
		"missing":                   {"query", `{}`, "sql"},
		"of other case":             {"query", `{"SQL":"SELECT 1"}`, "SQL"},
		"a number":                  {"query", `{"sql":1}`, "string"},
		"not an object":             {"query", `[1]`, ""},
		"null":                      {"query", `null`, "sql"},
		"too many rows":             {"query", `{"sql":"SELECT 1","max_rows":100000}`, "1 to 1000"},
		"half a row":                {"query", `{"sql":"SELECT 1","max_rows":1.5}`, "integer"},
		"to a tool that takes none": {"list_tables", `{"schema":"x"}`, "schema"},
	} {
		t.Run(name, func(t *testing.T) {
			r := send(t, "POST", d.url, "chat", session, callMessage(c.tool, c.arguments))
			if name == "not an object" && r.code(t) == -32602 {
				return
			}
			if r.status != 200 || !strings.Contains(r.body, `"isError":true`) ||
				!strings.Contains(r.body, `"sqlstate":"22023"`) || !strings.Contains(r.body, c.want) {
				t.Errorf("%d %s", r.status, r.body)
			}
		})
	}
}

// A caller is offered the tools of its role.
func TestToolsOfRoles(t *testing.T) {
	d := openServer(t)
	for token, want := range map[string][]string{
		"chat": {"interaction_end", "interaction_session", "list_tables", "query", "track_interaction"},
		"ada":  {"interaction_end", "interaction_session", "track_interaction"}, "root": {},
		"app": {"interaction_end", "interaction_session", "track_interaction"}, "watch": {}, "lost": {},
	} {
		r := send(t, "POST", d.url, token, begin(t, d.url, token), list)
		var m struct {
			Result struct{ Tools []struct{ Name string } }
		}
		if err := json.Unmarshal([]byte(r.body), &m); err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, tool := range m.Result.Tools {
			got = append(got, tool.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", token, got, want)
		}
	}
}

// A session ends when its token is revoked, even during a call. Another token with the same name cannot use the
// session.
func TestRevokedTokenEndsSession(t *testing.T) {
	d := openServer(t)
	session := begin(t, d.url, "chat")
	begin(t, d.url, "ada")
	d.revoke("chat")
	if r := send(t, "POST", d.url, "chat", session, list); r.status != 401 {
		t.Errorf("%d", r.status)
	}
	verifyCount := func() int { d.mu.Lock(); defer d.mu.Unlock(); return d.verifyCounts["ada"] }
	// After three more verifications of ada's token, all sessions have been checked at least once.
	for before, end := verifyCount(), time.Now().Add(tier.Patience); verifyCount() < before+3; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nobody looks after sessions")
		}
	}
	d.mu.Lock()
	d.tokens["chat"] = identity.Caller{Name: "chat", Role: identity.Agent, Agent: "chat", Database: "app"}
	d.mu.Unlock()
	if r := send(t, "POST", d.url, "chat", session, list); r.status != 404 {
		t.Errorf("the session has outlived its token: %d %s", r.status, r.body)
	}
}

// The number of sessions of one caller is limited. A further session ends the one that was idle for longest.
func TestManySessions(t *testing.T) {
	d := openServer(t)
	otherSession := begin(t, d.url, "ada")
	var sessionIDs []string
	for range 40 {
		sessionIDs = append(sessionIDs, begin(t, d.url, "chat"))
	}
	openCount := 0
	for _, id := range sessionIDs {
		if send(t, "POST", d.url, "chat", id, list).status == 200 {
			openCount++
		}
	}
	if openCount != 32 || send(t, "POST", d.url, "chat", sessionIDs[39], list).status != 200 ||
		send(t, "POST", d.url, "ada", otherSession, list).status != 200 {
		t.Errorf("%d sessions are open", openCount)
	}
}

// The rate of messages is limited for each token separately.
func TestMessageRatePerToken(t *testing.T) {
	d := openServer(t)
	ownSession, otherSession := begin(t, d.url, "chat"), begin(t, d.url, "ada")
	delayedCount := 0
	for range 400 {
		if r := send(t, "POST", d.url, "chat", ownSession, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); r.status == 429 {
			delayedCount++
			if r.code(t) != -32003 || r.header.Get("Retry-After") != "1" {
				t.Fatalf("%s %v", r.body, r.header)
			}
		}
	}
	if r := send(t, "POST", d.url, "ada", otherSession, list); delayedCount == 0 || r.status != 200 {
		t.Errorf("%d of 400 were held off; another token: %d", delayedCount, r.status)
	}
}

// Calls that run no statement are recorded, except interactions. If the record cannot be written, the caller gets an
// error.
func TestCallsAreRecorded(t *testing.T) {
	d := openServer(t)
	session := begin(t, d.url, "chat")
	callTool := func(tool, arguments string) string {
		return send(t, "POST", d.url, "chat", session, callMessage(tool, arguments)).body
	}
	callTool("query", `{"sql":"SELECT 1"}`)
	callTool("query", `{"sql":1}`)
	callTool("nothing", `{"secret":"x"}`)
	if r := callTool("track_interaction", `{"user_id":"ada","channel_id":"c"}`); !strings.Contains(r, `"reminder":null`) || strings.Contains(r, "isError") {
		t.Errorf("track_interaction: %s", r)
	}
	var got []string
	d.mu.Lock()
	for _, c := range d.records {
		if c.Interface != "mcp" || c.CallerName != "chat" || c.Role != "agent" || c.Database != "app" || c.MayChangeData {
			t.Errorf("%+v", c)
		}
		got = append(got, c.Operation+" "+c.Outcome+" "+c.Code)
	}
	d.isRecordingBroken = true
	d.mu.Unlock()
	if want := []string{"tool query refused 28000", "tool query refused 22023", "tool unknown refused 42883"}; !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
	if r := callTool("query", `{"sql":1}`); !strings.Contains(r, `"sqlstate":"58030"`) || strings.Contains(r, "22023") {
		t.Errorf("without a record: %s", r)
	}
}

// A policy cannot use the name of a built-in tool for a tool of its own.
func TestOwnNamesAreReserved(t *testing.T) {
	for _, name := range mcp.ReservedNames() {
		if !slices.Contains(policy.BuiltinTools, name) {
			t.Errorf("policy.BuiltinTools has no %s", name)
		}
	}
}
