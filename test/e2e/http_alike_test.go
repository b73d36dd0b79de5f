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

// checkExistingAndMissingAlike calls each operation that takes an id, and each tool of MCP. It uses an existing id that
// the caller may not know of, and a missing one. The answers must have the same bytes and headers, except for the date
// and the repeated id. The server must also get the same statements, so that response times reveal no more than the
// bytes.
func (f *httpAPI) checkExistingAndMissingAlike() {
	owner, err := pgx.Connect(f.t.Context(), f.demoRun.Access.OwnerDSN)
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
	const person = "human:student_123" // the caller's store does not mention this person
	f.checkStatus(f.call("subject:"+person, "POST", "/v1/consent/grant", map[string]any{"stream": "TEMPORARY"}), 200, "")
	f.checkStatus(f.call("system", "POST", "/v1/air/interactions", map[string]any{"user_id": person, "channel_id": "alike", "channel_type": "api"}), 200, "")
	l := &idComparison{
		requestMaker: &requestMaker{httpAPI: f, rnd: rand.New(rand.NewPCG(9, 9))}, client: &http.Client{Timeout: tier.Patience}, log: logStatements(f.t, database),
		existingIDs: map[string]string{
			"user_id": person, "subject": person, "grantor": person, "id": memory, "source": memory, "told_from": memory,
			"store": "student_123", "context": "ctx:student_123_academic",
		},
		fixedValues: map[string]any{"channel_id": "alike"},
	}
	defer l.client.CloseIdleConnections()
	for _, user := range []string{"subject:si:mallory", "agent:mallory", "operator"} { // callers who may not know of these ids
		paths := f.document["paths"].(map[string]any)
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			methods := paths[path].(map[string]any)
			for _, method := range slices.Sorted(maps.Keys(methods)) {
				l.compareOperation(user, method, path, methods[method].(map[string]any))
			}
		}
	}
	if l.askedMembers < 3*20 {
		f.t.Errorf("only %d members of operations name somebody", l.askedMembers)
	}
	l.askedMembers = 0
	for _, user := range []string{"subject:si:mallory", "agent:mallory"} {
		l.compareTools(user)
	}
	if l.askedMembers < 20 {
		f.t.Errorf("only %d arguments of tools name somebody", l.askedMembers)
	}
	if l.comparedStatements == 0 {
		f.t.Error("no statement was seen")
	}
}

// idComparison sends a request with an existing and with a missing id, and compares the answers.
type idComparison struct {
	*requestMaker
	client             *http.Client
	log                *statementLog
	existingIDs        map[string]string // existing ids, by the name of the member or parameter that takes them
	fixedValues        map[string]any
	askedMembers       int
	comparedStatements int // statements that were compared
}

func (l *idComparison) compareOperation(user, method, path string, o map[string]any) {
	schema := l.resolveSchema(memberAt(o, "requestBody", "content", "application/json", "schema"))
	query := map[string]bool{}
	parameters, _ := o["parameters"].([]any)
	for _, p := range parameters {
		if memberAt(p, "in") == "query" {
			query[memberAt(p, "name").(string)] = true
		}
	}
	l.compareMembers(schema, query, func(name string, body map[string]any) {
		l.compareIDs(method+" "+path+" as "+user, name, func(value string) string {
			q := url.Values{}
			for member := range query {
				if fixedValue, ok := l.fixedValues[member]; ok {
					q.Set(member, fixedValue.(string))
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
			var sentBody any
			if schema != nil {
				sentBody = body
			}
			return l.ask(user, strings.ToUpper(method), target, sentBody, http.Header{})
		})
	})
}

// compareMembers compares the answers for each member of a schema, and each query parameter, that takes an id. The
// request has the other required members as well.
func (l *idComparison) compareMembers(schema map[string]any, query map[string]bool, compareMember func(name string, body map[string]any)) {
	properties, _ := schema["properties"].(map[string]any)
	names := slices.Collect(maps.Keys(query))
	names = slices.AppendSeq(names, maps.Keys(properties))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if _, ok := l.existingIDs[name]; !ok {
			continue
		}
		l.askedMembers++
		body := map[string]any{}
		required, _ := schema["required"].([]any)
		for _, member := range required {
			body[member.(string)] = l.validValue(l.resolveSchema(properties[member.(string)]))
		}
		for member, fixedValue := range l.fixedValues {
			if _, ok := properties[member]; ok {
				body[member] = fixedValue
			}
		}
		compareMember(name, body)
	}
}

func (l *idComparison) compareTools(user string) {
	header := http.Header{"Accept": {"application/json, text/event-stream"}}
	requestNumber := 0
	send := func(method string, parameters any) string {
		requestNumber++
		return l.ask(user, "POST", "/mcp", map[string]any{"jsonrpc": "2.0", "id": requestNumber, "method": method, "params": parameters}, header)
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
		l.compareMembers(tool.InputSchema, nil, func(name string, arguments map[string]any) {
			l.compareIDs("the tool "+tool.Name+" as "+user, name, func(value string) string {
				arguments[name], requestNumber = value, 100
				return send("tools/call", map[string]any{"name": tool.Name, "arguments": arguments})
			})
		})
	}
}

// generatedID matches an id that the API generates.
var generatedID = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// compareIDs compares the answers for an existing and for a missing id. If the server's statements differ, it compares
// again, because another part of the process may have sent some of them.
func (l *idComparison) compareIDs(description, name string, ask func(value string) string) {
	l.t.Helper()
	existingID := l.existingIDs[name]
	missingID := existingID[:len(existingID)-3] + "~zz" // a missing id of the same length and kind
	var answers, statements [2]string
	for range 3 {
		for i, value := range []string{existingID, missingID} {
			l.log.newStatements()
			answers[i] = generatedID.ReplaceAllString(strings.ReplaceAll(ask(value), value, "ID"), "NEW")
			loggedStatements := l.log.newStatements()
			l.comparedStatements += len(loggedStatements)
			statements[i] = strings.NewReplacer(existingID, "ID", missingID, "ID").Replace(strings.Join(loggedStatements, "\n"))
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

// ask returns an answer as text: the status, the headers except the date, and the body.
func (l *idComparison) ask(user, method, target string, body any, header http.Header) string {
	l.t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			l.t.Fatal(err)
		}
	}
	for range 100 {
		r, err := http.NewRequest(method, l.demoRun.Access.HTTP+target, bytes.NewReader(text))
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
