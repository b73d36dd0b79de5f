package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/test/tier"
)

// alike calls each operation that takes somebody or something by its id, and each tool of MCP. It does so with an
// existing id that the caller may not know of, and with one that does not exist. The answers are the same bytes,
// headers too, except the date, and the id itself where it is repeated. So are the statements that the server was asked
// meanwhile, so that no class of time tells what the bytes do not.
func (f *httpFace) alike() {
	owner, err := pgx.Connect(f.t.Context(), f.run.Access.OwnerDSN)
	if err != nil {
		f.t.Fatal(err)
	}
	defer owner.Close(context.Background())
	var memory, database string // a memory of ash, about somebody, granted to nobody
	if err := owner.QueryRow(f.t.Context(),
		"SELECT id, current_database() FROM episodes WHERE stack_id = 'ash' AND access_grants = '[]' ORDER BY id "+
			"LIMIT 1").Scan(&memory, &database); err != nil {
		f.t.Fatal(err)
	}
	const person = "human:student_123" // a person who is in no store of the caller
	f.want(f.call("subject:"+person, "POST", "/v1/consent/grant", map[string]any{"stream": "TEMPORARY"}), 200, "")
	f.want(f.call("system", "POST", "/v1/air/interactions", map[string]any{"user_id": person, "channel_id": "alike", "channel_type": "api"}), 200, "")
	l := &twinComparison{
		requestMaker: &requestMaker{httpFace: f, rnd: rand.New(rand.NewPCG(9, 9))}, client: &http.Client{Timeout: tier.Patience}, log: logStatements(f.t, database),
		named: map[string]string{
			"user_id": person, "subject": person, "grantor": person, "id": memory, "source": memory, "told_from": memory,
			"store": "student_123", "context": "ctx:student_123_academic",
		},
		fixed: map[string]any{"channel_id": "alike"},
	}
	defer l.client.CloseIdleConnections()
	for _, user := range []string{"subject:si:mallory", "agent:mallory", "operator"} { // callers without any relation to these ids
		paths := f.document["paths"].(map[string]any)
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			methods := paths[path].(map[string]any)
			for _, method := range slices.Sorted(maps.Keys(methods)) {
				l.operation(user, method, path, methods[method].(map[string]any))
			}
		}
	}
	if l.asked < 3*20 {
		f.t.Errorf("only %d members of operations name somebody", l.asked)
	}
	l.asked = 0
	for _, user := range []string{"subject:si:mallory", "agent:mallory"} {
		l.tools(user)
	}
	if l.asked < 20 {
		f.t.Errorf("only %d arguments of tools name somebody", l.asked)
	}
	if l.stated == 0 {
		f.t.Error("no statement was seen")
	}
}

// twinComparison asks about two ids and compares.
type twinComparison struct {
	*requestMaker
	client *http.Client
	log    *statementLog
	named  map[string]string // existing ids, by the name of the member that takes them
	fixed  map[string]any
	asked  int
	stated int // statements that were compared
}

func (l *twinComparison) operation(user, method, path string, o map[string]any) {
	schema := l.schema(memberAt(o, "requestBody", "content", "application/json", "schema"))
	query := map[string]bool{}
	parameters, _ := o["parameters"].([]any)
	for _, p := range parameters {
		if memberAt(p, "in") == "query" {
			query[memberAt(p, "name").(string)] = true
		}
	}
	l.members(schema, query, func(name string, body map[string]any) {
		l.compare(method+" "+path+" as "+user, name, func(value string) string {
			q := url.Values{}
			for member := range query {
				if fixed, ok := l.fixed[member]; ok {
					q.Set(member, fixed.(string))
				}
			}
			if query[name] {
				q.Set(name, value)
			} else {
				body[name] = value
			}
			target := path
			if len(q) > 0 {
				target += "?" + q.Encode()
			}
			var sent any
			if schema != nil {
				sent = body
			}
			return l.ask(user, strings.ToUpper(method), target, sent, http.Header{})
		})
	})
}

// members compares the answers for each member of a schema and each parameter of a query that names somebody. The other
// members are those that are required.
func (l *twinComparison) members(schema map[string]any, query map[string]bool, compareMember func(name string, body map[string]any)) {
	properties, _ := schema["properties"].(map[string]any)
	names := slices.Collect(maps.Keys(query))
	names = slices.AppendSeq(names, maps.Keys(properties))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if _, ok := l.named[name]; !ok {
			continue
		}
		l.asked++
		body := map[string]any{}
		required, _ := schema["required"].([]any)
		for _, member := range required {
			body[member.(string)] = l.valid(l.schema(properties[member.(string)]))
		}
		for member, fixed := range l.fixed {
			if _, ok := properties[member]; ok {
				body[member] = fixed
			}
		}
		compareMember(name, body)
	}
}

func (l *twinComparison) tools(user string) {
	header := http.Header{"Accept": {"application/json, text/event-stream"}}
	number := 0
	send := func(method string, parameters any) string {
		number++
		return l.ask(user, "POST", "/mcp", map[string]any{"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}, header)
	}
	answer := send("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "alike", "version": "1"}})
	_, session, _ := strings.Cut(answer, "Mcp-Session-Id: ")
	session, _, found := strings.Cut(session, "\r\n")
	if !found {
		l.t.Fatalf("no session in %s", answer)
	}
	header.Set("Mcp-Session-Id", session)
	l.ask(user, "POST", "/mcp", map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"}, header)
	var list struct {
		Result struct {
			Tools []struct {
				Name        string
				InputSchema map[string]any
			}
		}
	}
	_, text, _ := strings.Cut(send("tools/list", map[string]any{}), "\r\n\r\n")
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Result.Tools) == 0 {
		l.t.Fatalf("no tools in %s: %v", text, err)
	}
	for _, tool := range list.Result.Tools {
		l.members(tool.InputSchema, nil, func(name string, arguments map[string]any) {
			l.compare("the tool "+tool.Name+" as "+user, name, func(value string) string {
				arguments[name], number = value, 100
				return send("tools/call", map[string]any{"name": tool.Name, "arguments": arguments})
			})
		})
	}
}

// generatedID is an id that the API makes.
var generatedID = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// compare asks about one that there is and one that there is not. Before a difference in the server's statements is
// reported, they are compared again: another part of the process may have sent some.
func (l *twinComparison) compare(description, name string, ask func(value string) string) {
	l.t.Helper()
	twinName := l.named[name]
	absent := twinName[:len(twinName)-3] + "~zz" // a missing id of the same length and kind
	var answers, statements [2]string
	for range 3 {
		for i, value := range []string{twinName, absent} {
			l.log.taken()
			answers[i] = generatedID.ReplaceAllString(strings.ReplaceAll(ask(value), value, "ID"), "NEW")
			logged := l.log.taken()
			l.stated += len(logged)
			statements[i] = strings.NewReplacer(twinName, "ID", absent, "ID").Replace(strings.Join(logged, "\n"))
		}
		if answers[0] != answers[1] {
			l.t.Errorf("%s tells which %s there is: %s\n%s", description, name, answers[0], answers[1])
			return
		}
		if statements[0] == statements[1] {
			return
		}
	}
	l.t.Errorf("%s asks the database more about one %s than about the other:\n%s\n\n%s", description, name, statements[0], statements[1])
}

// ask is an answer: the status, headers but the date, body.
func (l *twinComparison) ask(user, method, target string, body any, header http.Header) string {
	l.t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			l.t.Fatal(err)
		}
	}
	for range 100 {
		r, err := http.NewRequest(method, l.run.Access.HTTP+target, bytes.NewReader(text))
		if err != nil {
			l.t.Fatal(err)
		}
		r.Header = header.Clone()
		r.Header.Set("Authorization", "Bearer "+l.token(user))
		if body != nil {
			r.Header.Set("Content-Type", "application/json")
		}
		response, err := l.client.Do(r)
		if err != nil {
			l.t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			l.t.Fatal(err)
		}
		if response.StatusCode == http.StatusTooManyRequests {
			time.Sleep(time.Second)
			continue
		}
		response.Header.Del("Date")
		var out strings.Builder
		out.WriteString(response.Status + "\r\n")
		_ = response.Header.Write(&out)
		return out.String() + "\r\n" + string(got)
	}
	l.t.Fatalf("%s %s is not answered", method, target)
	return ""
}
