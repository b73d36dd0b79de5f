package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pgconsent/pgconsent/internal/dev/demo"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/test/demos"
	"github.com/pgconsent/pgconsent/test/tier"
)

// httpAPI is the HTTP API of a running demo. Every answer is checked against the OpenAPI document that the API serves.
type httpAPI struct {
	t                *testing.T
	demoRun          *demo.RunningDemo
	document         map[string]any
	compiler         *jsonschema.Compiler
	schemas          map[string]*jsonschema.Schema // compiled schemas, by their texts
	calledOperations map[string]bool               // operations that have succeeded
	answeredStatuses map[string]bool               // operations with the statuses that they have answered
	answeredMembers  map[string]bool               // answeredMembers of answers that have occurred
}

// httpAnswer is an answer of the API.
type httpAnswer struct {
	Status int
	Header http.Header
	Text   string
	Body   map[string]any
}

func (a httpAnswer) stringMember(name string) string { s, _ := a.Body[name].(string); return s }

func openHTTPAPI(t *testing.T, r *demo.RunningDemo) *httpAPI {
	t.Helper()
	f := &httpAPI{t: t, demoRun: r, calledOperations: map[string]bool{}, answeredStatuses: map[string]bool{},
		answeredMembers: map[string]bool{}, compiler: jsonschema.NewCompiler()}
	response, err := http.Get(r.Access.HTTP + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 200 {
		t.Fatal(response.Status, err)
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	f.document = parsed.(map[string]any)
	if f.document["openapi"] != "3.1.0" {
		t.Errorf("the document is of version %v", f.document["openapi"])
	}
	if err := f.compiler.AddResource("openapi.json", parsed); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *httpAPI) token(user string) string {
	f.t.Helper()
	token, ok := f.demoRun.Access.Tokens[user]
	if !ok {
		f.t.Fatalf("there is no token for %s", user)
	}
	return token
}

// call sends a request with the token of a user of the demo. The body is encoded as JSON, or a string that is sent
// unchanged.
func (f *httpAPI) call(user, method, path string, body any, header ...string) httpAnswer {
	f.t.Helper()
	token := ""
	if user != "" {
		token = "Bearer " + f.token(user)
	}
	return f.send(token, method, path, body, header...)
}

func (f *httpAPI) send(authorization, method, path string, body any, header ...string) httpAnswer {
	f.t.Helper()
	var text io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		text = strings.NewReader(b)
	default:
		encoded, err := json.Marshal(b)
		if err != nil {
			f.t.Fatal(err)
		}
		text = bytes.NewReader(encoded)
	}
	request, err := http.NewRequest(method, f.demoRun.Access.HTTP+path, text)
	if err != nil {
		f.t.Fatal(err)
	}
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	if text != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		f.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	a := httpAnswer{Status: response.StatusCode, Header: response.Header, Text: string(got)}
	_ = json.Unmarshal(got, &a.Body)
	f.checkDocumented(method, strings.SplitN(path, "?", 2)[0], a)
	return a
}

// checkDocumented checks an answer against the document.
func (f *httpAPI) checkDocumented(method, path string, a httpAnswer) {
	f.t.Helper()
	if a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("Access-Control-Allow-Origin") != "" {
		f.t.Errorf("%s %s: headers %v", method, path, a.Header)
	}
	if a.Status >= 400 && (a.Header.Get("Content-Type") != "application/problem+json" || len(a.stringMember("code")) != 5) {
		f.t.Errorf("%s %s: %d is no problem: %s", method, path, a.Status, a.Text)
	}
	operation, ok := memberAt(f.document, "paths", path, strings.ToLower(method)).(map[string]any)
	if !ok {
		if a.Status != 404 && a.Status != 405 && a.Status != 401 {
			f.t.Errorf("%s %s is not in the document, and answers %d", method, path, a.Status)
		}
		return
	}
	contentType := a.Header.Get("Content-Type")
	if memberAt(operation, "responses", fmt.Sprint(a.Status), "content", contentType, "schema") == nil {
		f.t.Errorf("%s %s: %d with %s is not in the document", method, path, a.Status, contentType)
		return
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	schema, err := f.compiler.Compile(fmt.Sprintf("openapi.json#/paths/%s/%s/responses/%d/content/%s/schema",
		escape.Replace(path), strings.ToLower(method), a.Status, escape.Replace(contentType)))
	if err != nil {
		f.t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(a.Text))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		f.t.Errorf("%s %s: %d: %v", method, path, a.Status, err)
	}
	if a.Status < 300 {
		f.calledOperations[strings.ToLower(method)+" "+path] = true
	}
	f.answeredStatuses[fmt.Sprint(strings.ToLower(method), " ", path, " ", a.Status)] = true
	f.recordMembers(memberAt(operation, "responses", fmt.Sprint(a.Status), "content", contentType, "schema"), "", value)
}

// compiledSchema compiles the text of a schema, once.
func (f *httpAPI) compiledSchema(text string) *jsonschema.Schema {
	f.t.Helper()
	if compiled, ok := f.schemas[text]; ok {
		return compiled
	}
	compiler := jsonschema.NewCompiler()
	parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		err = compiler.AddResource("schema.json", parsed)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		f.t.Fatal(err)
	}
	if f.schemas == nil {
		f.schemas = map[string]*jsonschema.Schema{}
	}
	f.schemas[text] = schema
	return schema
}

func memberAt(in any, keys ...string) any {
	for _, k := range keys {
		m, ok := in.(map[string]any)
		if !ok {
			return nil
		}
		in = m[k]
	}
	return in
}

// checkStatus checks the status of an answer and, for an error, its name or code.
func (f *httpAPI) checkStatus(a httpAnswer, status int, code string) httpAnswer {
	f.t.Helper()
	if a.Status != status || code != "" && a.stringMember("name") != code && a.stringMember("code") != code {
		f.t.Errorf("got %d %s, want %d %s", a.Status, a.Text, status, code)
	}
	return a
}

// subjectsByStream returns the persons that have tokens, by the stream of their consent.
func (f *httpAPI) subjectsByStream() map[string][]string {
	out := map[string][]string{}
	for user := range f.demoRun.Access.Tokens {
		if id, ok := strings.CutPrefix(user, "subject:"); ok {
			a := f.call(user, "GET", "/v1/consent/status", nil)
			out[a.stringMember("stream")] = append(out[a.stringMember("stream")], id)
		}
	}
	for _, ids := range out {
		slices.Sort(ids)
	}
	return out
}

// The HTTP API, from a demo as a user starts it.
// seeds/001:69-78, 86-102, 103-115, 116-119, 120-122, 193-196, 242-245, 295-299, 303-328, 330-338, 401-405.
func TestHTTP(t *testing.T) {
	tier.All(t)
	f := openHTTPAPI(t, demos.StartDemo(t, "ciris"))
	f.checkRoles()
	f.checkRelationship()
	f.checkPendingPartnership()
	f.checkBadInput()
	f.checkReports()
	f.checkReminders(t)
	f.checkExpiry()
	if tier.Quick() { // package privacy tests the services over kernle
		return
	}
	m := openHTTPAPI(t, demos.StartDemo(t, "kernle"))
	m.checkMemories()
	m.checkMemoryReports()
	maps.Copy(f.calledOperations, m.calledOperations)
	f.checkEveryOperation()
	m.checkMetrics()
	m.checkExistingAndMissingAlike()
	m.checkMadeRequests()
	maps.Copy(f.answeredStatuses, m.answeredStatuses)
	maps.Copy(f.answeredMembers, m.answeredMembers)
	f.checkEveryAnswer()
}

// checkEveryOperation checks that each operation of the document was called successfully.
func (f *httpAPI) checkEveryOperation() {
	for path, methods := range f.document["paths"].(map[string]any) {
		for method := range methods.(map[string]any) {
			if !f.calledOperations[method+" "+path] {
				f.t.Errorf("%s %s was not called with success", method, path)
			}
		}
	}
}

// checkRoles tests the permissions of each role.
func (f *httpAPI) checkRoles() {
	ids := f.subjectsByStream()
	if len(ids["TEMPORARY"]) < 2 || len(ids["PARTNERED"]) < 2 || len(ids["ANONYMOUS"]) < 1 || len(ids[""]) < 1 {
		f.t.Fatalf("the demo's subjects are %v", ids)
	}
	userID, otherID := ids["TEMPORARY"][0], ids["TEMPORARY"][1]
	caller := "subject:" + userID
	// A request about another user gets the same bytes whether that user exists or not.
	for _, operation := range []struct {
		method, path string
		body         map[string]any
	}{
		{"GET", "/v1/consent/status", nil}, {"GET", "/v1/consent/grants", nil}, {"GET", "/v1/consent/history", nil},
		{"POST", "/v1/consent/grant", map[string]any{"stream": "TEMPORARY"}}, {"POST", "/v1/consent/grant", map[string]any{"stream": "PARTNERED"}},
		{"POST", "/v1/consent/revoke", map[string]any{}}, {"POST", "/v1/consent/erase", map[string]any{}}, {"POST", "/v1/consent/refuse", map[string]any{}},
		{"POST", "/v1/consent/upgrade", map[string]any{}}, {"POST", "/v1/consent/degrade", map[string]any{"target_stream": "ANONYMOUS"}},
		{"POST", "/v1/consent/interactions", map[string]any{}},
	} {
		var texts []string
		for _, id := range []string{otherID, "nobody"} {
			path, body := operation.path, any(nil)
			if operation.method == "GET" {
				path += "?user_id=" + id
			} else {
				operation.body["user_id"] = id
				body = operation.body
			}
			texts = append(texts, f.checkStatus(f.call(caller, operation.method, path, body), 403, "42501").Text)
			// An admin cannot change consents, and an operator can neither read nor change them.
			if operation.method == "POST" {
				f.checkStatus(f.call("admin", operation.method, path, body), 403, "42501")
				f.checkStatus(f.call("agent:companion", operation.method, path, body), 403, "42501")
			}
			f.checkStatus(f.call("operator", operation.method, path, body), 403, "42501")
		}
		if texts[0] != texts[1] {
			f.t.Errorf("%s tells who exists: %s %s", operation.path, texts[0], texts[1])
		}
	}
	if f.checkStatus(f.call(caller, "GET", "/v1/consent/status", nil), 200,
		"").Text != f.checkStatus(f.call("admin", "GET", "/v1/consent/status?user_id="+userID, nil), 200, "").Text {
		f.t.Error("an admin sees another status")
	}
	f.checkStatus(f.call("admin", "GET", "/v1/consent/status?user_id=nobody", nil), 404, "ConsentNotFoundError")
	f.checkStatus(f.call("subject:"+ids[""][0], "GET", "/v1/consent/status", nil), 404, "ConsentNotFoundError")
	f.checkStatus(f.call("admin", "GET", "/v1/consent/status", nil), 422, "ConsentValidationError")
	// A guardian can consent for its ward, and sees nothing of the ward by that.
	if registry := f.demoRun.Service().Registry("ciris"); registry == nil {
		f.t.Fatal("the service has no registry")
	} else if _, err := registry.Execute(f.t.Context(), consent.Command{
		Action: consent.ActionAppoint, Subject: otherID, Guardian: userID, Caller: consent.Party{Role: consent.RoleController, ID: "office"}}); err != nil {
		f.t.Fatal(err)
	}
	f.checkStatus(f.call(caller, "POST", "/v1/consent/grant", map[string]any{"user_id": otherID, "stream": "TEMPORARY"}, "Idempotency-Key", "guard"), 200, "")
	f.checkStatus(f.call(caller, "GET", "/v1/consent/status?user_id="+otherID, nil), 403, "42501")
	// Another caller's idempotency key reveals nothing.
	f.checkStatus(f.call("subject:"+ids["PARTNERED"][0], "POST", "/v1/consent/grant",
		map[string]any{"user_id": otherID, "stream": "TEMPORARY"}, "Idempotency-Key", "guard"), 403, "42501")
	// Only admins read the audit of consents, and only the system may record an expiry.
	for _, user := range []string{caller, "system", "operator", "agent:assistant"} {
		f.checkStatus(f.call(user, "GET", "/v1/consent/audit", nil), 403, "42501")
		f.checkStatus(f.call(user, "GET", "/v1/consent/audit?user_id="+userID, nil), 403, "42501")
	}
	for _, user := range []string{caller, "admin", "operator", "agent:assistant"} {
		f.checkStatus(f.call(user, "POST", "/v1/consent/expire", map[string]any{"user_id": userID}), 403, "42501")
	}
	f.checkStatus(f.call("system", "POST", "/v1/consent/expire", map[string]any{"user_id": userID}), 422, "ConsentValidationError")
	f.checkStatus(f.call("system", "POST", "/v1/consent/grant", map[string]any{"user_id": userID, "stream": "TEMPORARY"}), 403, "42501")
	for _, user := range []string{caller, "admin", "system", "operator"} {
		f.checkStatus(f.call(user, "POST", "/v1/consent/decide", map[string]any{"user_id": userID, "decision": "TASK_COMPLETE"}), 403, "42501")
	}
	// A caller without a valid token learns nothing, not even which paths exist.
	firstAnswer := f.send("", "GET", "/v1/consent/status", nil)
	for _, authorization := range []string{"", "Bearer", "Bearer x", "Basic eDp5", "Bearer " + f.token(caller) + "x", "bearer  "} {
		for _, path := range []string{"/v1/consent/status", "/v1/consent/audit", "/v1/nothing", "/v1/"} {
			if got := f.checkStatus(f.send(authorization, "GET", path, nil), 401, "28000"); got.Text != firstAnswer.Text || got.Header.Get("WWW-Authenticate") == "" {
				f.t.Errorf("%q at %s: %s", authorization, path, got.Text)
			}
		}
	}
}

// checkRelationship tests one user's consent from its beginning to its end.
func (f *httpAPI) checkRelationship() {
	ids := f.subjectsByStream()
	id := ids["TEMPORARY"][0]
	caller := "subject:" + id
	statusBefore := f.call(caller, "GET", "/v1/consent/status", nil)
	if statusBefore.Body["expires_at"] == nil || statusBefore.stringMember("user_id") != id ||
		fmt.Sprint(statusBefore.Body["categories"]) != "[ESSENTIAL]" {
		f.t.Errorf("a TEMPORARY: %s", statusBefore.Text)
	}
	// seeds/001:91-101: the members of a consent, with instants in the seed's format. It lasts 14 days from a grant.
	renewAnswer := f.checkStatus(f.call("subject:"+ids["TEMPORARY"][1], "POST", "/v1/consent/grant",
		map[string]any{"user_id": ids["TEMPORARY"][1], "stream": "TEMPORARY", "categories": []string{"ESSENTIAL"}}), 200, "")
	for name, a := range map[string]httpAnswer{"of the demo": statusBefore, "granted": renewAnswer} {
		var instants [3]time.Time
		for i, member := range []string{"granted_at", "expires_at", "last_modified"} {
			var err error
			if instants[i], err = time.Parse(time.RFC3339, a.stringMember(member)); err != nil || !strings.HasSuffix(a.stringMember(member), "Z") {
				f.t.Errorf("%s: %s is %v", name, member, a.Body[member])
			}
		}
		if name == "granted" && instants[1].Sub(instants[2]) != 14*24*time.Hour {
			f.t.Errorf("a TEMPORARY consent that was renewed at %v lasts to %v", instants[2], instants[1])
		}
	}
	grantBody := map[string]any{"user_id": id, "stream": "PARTNERED", "categories": []string{"ESSENTIAL", "BEHAVIORAL"}, "reason": "User requested upgrade"}
	grantAnswer := f.checkStatus(f.call(caller, "POST", "/v1/consent/grant", grantBody, "Idempotency-Key", "first"), 202, "")
	task, _ := grantAnswer.Body["task"].(map[string]any)
	if grantAnswer.stringMember("stream") != "TEMPORARY" || task["status"] != "pending" || task["due_at"] == nil {
		f.t.Errorf("asked: %s", grantAnswer.Text)
	}
	repeatedAnswer := f.checkStatus(f.call(caller, "POST", "/v1/consent/grant", grantBody, "Idempotency-Key", "first"), 202, "")
	if repeatedAnswer.Body["repeated"] != true || repeatedAnswer.Body["record"] != grantAnswer.Body["record"] {
		f.t.Errorf("asked again: %s", repeatedAnswer.Text)
	}
	f.checkStatus(f.call(caller, "POST", "/v1/consent/grant", map[string]any{"stream": "TEMPORARY"}, "Idempotency-Key", "first"), 409, "ConsentConflictError")
	f.checkStatus(f.call(caller, "POST", "/v1/consent/upgrade", map[string]any{"categories": []string{"ESSENTIAL", "BEHAVIORAL"}}), 202, "")
	pendingAnswer := f.checkStatus(f.call("agent:assistant", "GET", "/v1/consent/pending", nil), 200, "")
	if !strings.Contains(pendingAnswer.Text, fmt.Sprint(task["id"])) {
		f.t.Errorf("pending: %s", pendingAnswer.Text)
	}
	f.checkStatus(f.call("admin", "GET", "/v1/consent/pending", nil), 200, "")
	f.checkStatus(f.call(caller, "GET", "/v1/consent/pending", nil), 403, "42501")
	f.checkStatus(f.call("agent:assistant", "POST", "/v1/consent/decide", map[string]any{"user_id": id, "decision": "MAYBE"}), 422, "ConsentValidationError")
	f.checkStatus(f.call("agent:assistant", "POST", "/v1/consent/decide",
		map[string]any{"user_id": "nobody", "decision": "REJECT"}), 404, "ConsentNotFoundError")
	f.checkStatus(f.call("agent:assistant", "POST", "/v1/consent/decide", map[string]any{"user_id": id, "decision": "DEFER"}), 200, "")
	decision := f.checkStatus(f.call("agent:assistant", "POST", "/v1/consent/decide",
		map[string]any{"user_id": id, "decision": "TASK_COMPLETE", "reason": "agreed"}), 200, "")
	if decision.stringMember("stream") != "PARTNERED" || decision.Body["expires_at"] != nil ||
		fmt.Sprint(decision.Body["categories"]) != "[BEHAVIORAL ESSENTIAL]" {
		f.t.Errorf("decided: %s", decision.Text)
	}
	f.checkStatus(f.call(caller, "POST", "/v1/consent/grant",
		map[string]any{"stream": "PARTNERED", "categories": []string{"STATISTICAL"}}), 422, "ConsentValidationError")
	f.checkStatus(f.call(caller, "POST", "/v1/consent/degrade", map[string]any{"target_stream": "PARTNERED"}), 422, "ConsentValidationError")
	f.checkStatus(f.call(caller, "POST", "/v1/consent/degrade", map[string]any{"target_stream": "TEMPORARY"}), 200, "")
	degradeAnswer := f.checkStatus(f.call(caller, "POST", "/v1/consent/degrade", map[string]any{"target_stream": "ANONYMOUS"}), 200, "")
	if degradeAnswer.Body["expires_at"] != nil || degradeAnswer.stringMember("decay") != "kept" {
		f.t.Errorf("anonymous: %s", degradeAnswer.Text)
	}
	f.checkStatus(f.call(caller, "POST", "/v1/consent/degrade", map[string]any{"target_stream": "TEMPORARY"}), 422, "ConsentValidationError")
	f.checkStatus(f.call(caller, "POST", "/v1/consent/grant",
		map[string]any{"grantee": "clinic", "scope": "ctx:health", "purposes": []string{"care"}, "duration_days": 30, "evidence": "form 12"}), 200, "")
	revocation := f.checkStatus(f.call(caller, "POST", "/v1/consent/revoke", nil), 200, "")
	if revocation.stringMember("state") != "withdrawn" || fmt.Sprint(revocation.Body["categories"]) != "[]" {
		f.t.Errorf("revoked: %s", revocation.Text)
	}
	if secondRevocation := f.checkStatus(f.call(caller, "POST", "/v1/consent/revoke", map[string]any{"user_id": id}), 200,
		""); secondRevocation.Body["record"] != float64(0) {
		f.t.Errorf("revoked twice: %s", secondRevocation.Text)
	}
	if status := f.checkStatus(f.call(caller, "GET", "/v1/consent/status", nil), 200, ""); status.Body["active"] != false {
		f.t.Errorf("status after it: %s", status.Text)
	}
	if allGrants := f.checkStatus(f.call(caller, "GET", "/v1/consent/grants", nil), 200, ""); len(allGrants.Body["consents"].([]any)) != 2 {
		f.t.Errorf("grants: %s", allGrants.Text)
	}
	// An interaction does not undo a withdrawal.
	if interactionAnswer := f.checkStatus(f.call("system", "POST", "/v1/consent/interactions", map[string]any{"user_id": id}),
		200, ""); interactionAnswer.stringMember("state") != "withdrawn" {
		f.t.Errorf("an interaction after it: %s", interactionAnswer.Text)
	}
	if renewAnswer := f.checkStatus(f.call("system", "POST", "/v1/consent/interactions",
		map[string]any{"user_id": "somebody new"}), 200, ""); renewAnswer.stringMember("stream") != "TEMPORARY" {
		f.t.Errorf("a first interaction: %s", renewAnswer.Text)
	}
	f.checkStatus(f.call("subject:"+ids[""][0], "POST", "/v1/consent/refuse", nil), 200, "")

	// The records of one person, and those of all, in pages.
	f.checkStatus(f.call(caller, "GET", "/v1/consent/history", nil), 200, "")
	for _, query := range []string{"user_id=" + strings.ReplaceAll(id, " ", "%20") + "&", ""} {
		var recordNumbers []float64
		for afterRecord := 0.0; ; {
			page := f.checkStatus(f.call("admin", "GET", fmt.Sprintf("/v1/consent/audit?%slimit=200&after=%.0f", query, afterRecord), nil), 200, "")
			for _, e := range page.Body["events"].([]any) {
				recordNumbers = append(recordNumbers, e.(map[string]any)["record"].(float64))
			}
			nextRecord, ok := page.Body["next"].(float64)
			if !ok {
				break
			}
			afterRecord = nextRecord
		}
		if !slices.IsSorted(recordNumbers) || len(slices.Compact(slices.Clone(recordNumbers))) != len(recordNumbers) ||
			query == "" && recordNumbers[len(recordNumbers)-1] != float64(len(recordNumbers)) || query != "" && len(recordNumbers) < 8 {
			f.t.Errorf("audit of %q: %d records", query, len(recordNumbers))
		}
	}
	eraseAnswer := f.checkStatus(f.call("system", "POST", "/v1/consent/erase", map[string]any{"user_id": "somebody new"}), 200, "")
	if eraseAnswer.Body["erased"] != true {
		f.t.Error(eraseAnswer.Text)
	}
	f.checkStatus(f.call("admin", "GET", "/v1/consent/status?user_id=somebody%20new", nil), 404, "ConsentNotFoundError")
	if lastAnswer := f.call("admin", "GET", fmt.Sprintf("/v1/consent/audit?after=%.0f", eraseAnswer.Body["record"].(float64)-1),
		nil); strings.Contains(lastAnswer.Text, "somebody new") || !strings.Contains(lastAnswer.Text, `"erased":true`) {
		f.t.Errorf("the audit of an erasure: %s", lastAnswer.Text)
	}
}

// checkExpiry checks that every service treats an expired consent as ended, whether its expiry was recorded or not. It
// moves the registry's clock, and so runs last.
func (f *httpAPI) checkExpiry() {
	id := f.subjectsByStream()["TEMPORARY"][0]
	caller := "subject:" + id
	owner, err := pgx.Connect(f.t.Context(), f.demoRun.Access.OwnerDSN)
	if err != nil {
		f.t.Fatal(err)
	}
	defer owner.Close(context.Background())
	setClockOffset := func(offset string) {
		if _, err := owner.Exec(f.t.Context(),
			"CREATE OR REPLACE FUNCTION pgconsent.consent_now() RETURNS timestamptz LANGUAGE sql VOLATILE "+
				"PARALLEL SAFE RETURN clock_timestamp() + interval '"+offset+"'"); err != nil {
			f.t.Fatal(err)
		}
	}
	setClockOffset("15 days")
	a := f.checkStatus(f.call(caller, "GET", "/v1/consent/status", nil), 410, "ConsentExpiredError")
	if memberAt(a.Body, "consent", "state") != "expired" || memberAt(a.Body, "consent", "active") != false {
		f.t.Error(a.Text)
	}
	f.checkStatus(f.call(caller, "POST", "/v1/consent/degrade", map[string]any{"target_stream": "ANONYMOUS"}), 410, "ConsentExpiredError")
	if decision := f.checkStatus(f.call("system", "POST", "/v1/consent/expire", map[string]any{"user_id": id}), 200,
		""); decision.stringMember("state") != "expired" {
		f.t.Error(decision.Text)
	}
	f.checkStatus(f.call(caller, "GET", "/v1/consent/status", nil), 410, "ConsentExpiredError")
	f.checkStatus(f.call(caller, "POST", "/v1/consent/upgrade", nil), 202, "")
	setClockOffset("20 days")
	f.checkStatus(f.call("agent:assistant", "POST", "/v1/consent/decide",
		map[string]any{"user_id": id, "decision": "TASK_COMPLETE"}), 410, "ConsentExpiredError")
	// When the clock goes back, nothing can be granted, and a withdrawal still works.
	setClockOffset("0")
	f.checkStatus(f.call(caller, "POST", "/v1/consent/grant", map[string]any{"stream": "TEMPORARY"}), 503, "ConsentClockError")
	f.checkStatus(f.call(caller, "POST", "/v1/consent/revoke", nil), 200, "")
}

// checkReports tests the reports about uses of data, for the person and for operators.
func (f *httpAPI) checkReports() {
	id := f.subjectsByStream()["PARTNERED"][0]
	caller := "subject:" + id
	report := f.checkStatus(f.call(caller, "GET", "/v1/dsar", nil), 200, "")
	if !strings.Contains(report.Text, id) {
		f.t.Errorf("the report is not of %s: %.300s", id, report.Text)
	}
	f.checkStatus(f.call("admin", "GET", "/v1/dsar?user_id="+id, nil), 200, "")
	f.checkStatus(f.call("admin", "GET", "/v1/dsar?user_id=nobody", nil), 404, "ConsentNotFoundError")
	for _, otherID := range []string{f.subjectsByStream()["TEMPORARY"][0], "nobody"} {
		f.checkStatus(f.call(caller, "GET", "/v1/dsar?user_id="+otherID, nil), 403, "42501")
	}
	for _, user := range []string{"system", "operator", "agent:assistant"} {
		f.checkStatus(f.call(user, "GET", "/v1/dsar?user_id="+id, nil), 403, "42501")
	}
	agent, err := pgx.Connect(f.t.Context(), f.demoRun.Access.Agents[0].DSN)
	if err != nil {
		f.t.Fatal(err)
	}
	defer agent.Close(context.Background())
	for range 3 {
		queryTexts(f.t, agent, "SELECT count(*) FROM interactions")
	}
	firstPage := f.checkStatus(f.call("operator", "GET", "/v1/audit?limit=2", nil), 200, "")
	for deadline := time.Now().Add(tier.Patience); len(firstPage.Body["outcomes"].([]any)) < 2 &&
		time.Now().Before(deadline); { // the last outcome comes a little later
		time.Sleep(20 * time.Millisecond)
		firstPage = f.checkStatus(f.call("operator", "GET", "/v1/audit?limit=2", nil), 200, "")
	}
	nextRecord, _ := firstPage.Body["next"].(float64)
	secondPage := f.checkStatus(f.call("admin", "GET", fmt.Sprintf("/v1/audit?limit=1&before=%.0f", nextRecord), nil), 200, "")
	seqs := []float64{}
	for _, page := range []httpAnswer{firstPage, secondPage} {
		for _, d := range page.Body["decisions"].([]any) {
			seqs = append(seqs, memberAt(d, "seq").(float64))
		}
	}
	for i, page := range []httpAnswer{firstPage, secondPage} {
		for n, o := range page.Body["outcomes"].([]any) {
			if memberAt(o, "decision") != seqs[2*i+n] || memberAt(o, "rows") != 1.0 || memberAt(o, "sqlstate") != "00000" {
				f.t.Errorf("the outcome of %v is %v", seqs[2*i+n], o)
			}
		}
		if len(page.Body["outcomes"].([]any)) != len(page.Body["decisions"].([]any)) {
			f.t.Errorf("outcomes %v", page.Body["outcomes"])
		}
	}
	if len(seqs) != 3 || seqs[0] <= seqs[1] || seqs[1] <= seqs[2] {
		f.t.Errorf("decisions %v", seqs)
	}
	for _, user := range []string{caller, "system", "agent:assistant"} {
		f.checkStatus(f.call(user, "GET", "/v1/audit", nil), 403, "42501")
	}
}

// checkBadInput checks that invalid input causes a typed error and changes nothing.
func (f *httpAPI) checkBadInput() {
	id := f.subjectsByStream()["PARTNERED"][0]
	caller := "subject:" + id
	auditBefore := f.call("admin", "GET", "/v1/consent/audit?user_id="+id, nil).Text
	const grantPath = "/v1/consent/grant"
	for name, c := range map[string]struct {
		status int
		code   string
		body   string
		header []string
	}{
		"10 MB":            {413, "54000", `{"reason":"` + strings.Repeat("x", 10<<20) + `"}`, nil},
		"just too large":   {413, "54000", `{"reason":"` + strings.Repeat("x", 64<<10) + `"}`, nil},
		"deep":             {400, "22023", strings.Repeat("[", 1000) + strings.Repeat("]", 1000), nil},
		"deep objects":     {400, "22023", strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40), nil},
		"a name twice":     {400, "22023", `{"stream":"ANONYMOUS","stream":"TEMPORARY"}`, nil},
		"escaped twice":    {400, "22023", `{"stream":"ANONYMOUS","\u0073tream":"TEMPORARY"}`, nil},
		"not UTF-8":        {400, "22021", "{\"reason\":\"\xff\"}", nil},
		"half a surrogate": {400, "22023", `{"reason":"\ud800"}`, nil},
		"two values":       {400, "22023", `{} {}`, nil},
		"no JSON":          {400, "22023", `stream=TEMPORARY`, nil},
		"empty":            {400, "22023", ``, nil},
		"another type":     {415, "0A000", `stream=TEMPORARY`, []string{"Content-Type", "application/x-www-form-urlencoded"}},
		"another charset":  {415, "0A000", `{}`, []string{"Content-Type", "application/json; charset=utf-16"}},
		"compressed":       {415, "0A000", `{}`, []string{"Content-Encoding", "gzip"}},
		"an array":         {422, "ConsentValidationError", `[]`, nil},
		"null":             {422, "ConsentValidationError", `null`, nil},
		"nothing meant":    {422, "ConsentValidationError", `{}`, nil},
		"unknown member":   {422, "ConsentValidationError", `{"stream":"TEMPORARY","admin":true}`, nil},
		"member's case":    {422, "ConsentValidationError", `{"Stream":"ANONYMOUS"}`, nil},
		"a number":         {422, "ConsentValidationError", `{"stream":1}`, nil},
		"null stream":      {422, "ConsentValidationError", `{"stream":null}`, nil},
		"unknown stream":   {422, "ConsentValidationError", `{"stream":"partnered"}`, nil},
		"other category":   {422, "ConsentValidationError", `{"stream":"TEMPORARY","categories":["BEHAVIORAL"]}`, nil},
		"NUL":              {422, "ConsentValidationError", `{"stream":"TEMPORARY","reason":"\u0000"}`, nil},
		"long reason":      {422, "ConsentValidationError", `{"stream":"TEMPORARY","reason":"` + strings.Repeat("é", 10_000) + `"}`, nil},
		"long id":          {422, "ConsentValidationError", `{"user_id":"` + strings.Repeat("x", 600) + `","stream":"TEMPORARY"}`, nil},
		"long key":         {422, "ConsentValidationError", `{"stream":"TEMPORARY"}`, []string{"Idempotency-Key", strings.Repeat("k", 201)}},
		"too long a time":  {422, "ConsentValidationError", `{"grantee":"x","duration_days":9999999999999999999}`, nil},
		"everybody":        {422, "ConsentValidationError", `{"user_id":"*","stream":"TEMPORARY"}`, nil},
		// An empty value is refused, because a missing one would mean everybody, everything or oneself.
		"an empty grantee":  {422, "ConsentValidationError", `{"grantee":"","purposes":["care"]}`, nil},
		"an empty scope":    {422, "ConsentValidationError", `{"grantee":"x","scope":""}`, nil},
		"an empty user":     {422, "ConsentValidationError", `{"user_id":"","grantee":"x"}`, nil},
		"a scope like none": {422, "ConsentValidationError", `{"grantee":"x","scope":"everything"}`, nil},
	} {
		if c.body == "" {
			c.status = 0
		}
		a := f.call(caller, "POST", grantPath, c.body, c.header...)
		if c.status == 0 { // the request was not sent
			if a.Status < 400 || a.Status >= 500 {
				f.t.Errorf("%s: %d %s", name, a.Status, a.Text)
			}
			continue
		}
		if a.Status != c.status || a.stringMember("code") != c.code && a.stringMember("name") != c.code {
			f.t.Errorf("%s: %d %s, want %d %s", name, a.Status, a.Text, c.status, c.code)
		}
	}
	for path, want := range map[string]int{
		"/v1/consent/status?user_id=%ff": 400, "/v1/consent/status?user_id=a&user_id=b": 400,
		"/v1/consent/status?other=1": 422, "/v1/consent/status?user_id=%zz": 400,
		"/v1/consent/status?user_id=" + strings.Repeat("x",
			9<<10): 414, "/v1/consent/history?limit=0": 422, "/v1/consent/history?limit=many": 422, "/v1/consent/history?after=-1": 422,
		"/v1/consent": 404, "/v1/": 404, "/v1/consent/status/": 404, "/v1/consent/../consent/statu": 404,
	} {
		if a := f.call(caller, "GET", path, nil); a.Status != want {
			f.t.Errorf("%.60s: %d %s, want %d", path, a.Status, a.Text, want)
		}
	}
	f.checkStatus(f.call(caller, "GET", "/v1/consent/status", `{}`), 400, "08P01")
	for _, method := range []string{"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"} {
		if a := f.call(caller, method, grantPath, nil); a.Status != 405 || a.Header.Get("Allow") != "POST" {
			f.t.Errorf("%s: %d %v", method, a.Status, a.Header)
		}
	}
	if auditAfter := f.call("admin", "GET", "/v1/consent/audit?user_id="+id, nil).Text; auditAfter != auditBefore {
		f.t.Errorf("bad input has changed something: %s", auditAfter)
	}
}
