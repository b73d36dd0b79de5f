package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/test/tier"
)

// This file generates requests from the OpenAPI document that the API serves: valid and invalid ones for each
// operation. No code here depends on the name of an operation.

// madeRequest is a generated request, with the statuses that may answer it.
type madeRequest struct {
	description  string
	method       string
	path         string
	query        string
	body         io.Reader
	header       http.Header
	mustFail     bool  // the document says that it is refused
	wantStatuses []int // the expected statuses; nil: any status of the document
}

// requestMaker generates requests and checks the answers. It uses the tokens of a role in turn, because each token has
// its own rate limit.
type requestMaker struct {
	*httpAPI
	rnd          *rand.Rand
	tokens       map[string][]string // by role
	tokenIndex   map[string]int
	sentRequests int
	waitedTime   time.Duration
	operations   int
	client       *http.Client
}

// plantedText is part of many requests. No answer may repeat it unescaped.
const plantedText = `<script>alert("pl4nted")</script>`

// checkMadeRequests sends all requests that can be generated for each operation.
func (f *httpAPI) checkMadeRequests() {
	m := &requestMaker{httpAPI: f, rnd: rand.New(rand.NewPCG(6, 2026)), tokens: map[string][]string{}, tokenIndex: map[string]int{}}
	start := time.Now()
	m.client = &http.Client{Timeout: tier.Patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer m.client.CloseIdleConnections()
	for user, token := range f.demoRun.Access.Tokens {
		role, _, _ := strings.Cut(user, ":")
		m.tokens[role] = append(m.tokens[role], token)
	}
	for _, roleTokens := range m.tokens {
		slices.Sort(roleTokens)
	}
	paths := f.document["paths"].(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		methods := paths[path].(map[string]any)
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			m.checkOperation(strings.ToUpper(method), path, methods[method].(map[string]any))
		}
		m.checkOtherMethods(path, methods)
	}
	m.checkUnknownPaths()
	if m.sentRequests < tier.Count(700, 700, 1200) {
		f.t.Errorf("only %d requests were made", m.sentRequests)
	}
	f.t.Logf("%d requests, %v of %v waited", m.sentRequests, m.waitedTime, time.Since(start))
	f.checkStatus(f.call("operator", "GET", "/v1/audit?limit=1", nil), 200, "") // the server still answers
}

// allowedRoles returns the roles that may call an operation, as its description lists them.
func allowedRoles(operation map[string]any) []string {
	_, list, _ := strings.Cut(operation["description"].(string), "Roles: ")
	return strings.Split(strings.TrimSuffix(list, "."), ", ")
}

func (m *requestMaker) checkOperation(method, path string, o map[string]any) {
	roles := allowedRoles(o)
	schema := m.resolveSchema(memberAt(o, "requestBody", "content", "application/json", "schema"))
	validBody := func() []byte {
		if schema == nil {
			return nil
		}
		b, err := json.Marshal(m.validValue(schema))
		if err != nil {
			m.t.Fatal(err)
		}
		return b
	}
	baseRequest := func(description string) madeRequest {
		r := madeRequest{description: description, method: method, path: path, query: m.validQuery(o), header: http.Header{}}
		if schema != nil {
			r.body = bytes.NewReader(validBody())
			r.header.Set("Content-Type", "application/json")
		}
		return r
	}
	// Valid requests, by callers of each role.
	for _, role := range slices.Sorted(maps.Keys(m.tokens)) {
		r := baseRequest("by " + role)
		repetitions := tier.Count(2, 2, 5)
		if !slices.Contains(roles, role) {
			r.wantStatuses, repetitions = []int{403}, 1
		}
		for range repetitions {
			m.send(role, r)
			want := r.wantStatuses
			r = baseRequest("by " + role)
			r.wantStatuses = want
		}
	}
	if method == http.MethodGet {
		r := baseRequest("HEAD")
		got, ok := m.send(roles[0], r)
		r.method, r.wantStatuses = http.MethodHead, []int{got.Status}
		m.tokenIndex[roles[0]]-- // use the same token again
		if headAnswer, isSent := m.send(roles[0], r); ok &&
			isSent && (headAnswer.Text != "" || headAnswer.Header.Get("Content-Type") != got.Header.Get("Content-Type") ||
			headAnswer.Header.Get("Cache-Control") != got.Header.Get("Cache-Control")) {
			m.t.Errorf("HEAD %s: %d %v %q", path, headAnswer.Status, headAnswer.Header, headAnswer.Text)
		}
	}
	withoutToken := baseRequest("by nobody")
	withoutToken.wantStatuses = []int{401}
	m.send("", withoutToken)
	role := roles[0]
	sendChanged := func(description string, change func(*madeRequest), want ...int) {
		r := baseRequest(description)
		change(&r)
		r.mustFail, r.wantStatuses = true, want
		m.send(role, r)
	}
	// Invalid parameters.
	parameters, _ := o["parameters"].([]any)
	for _, p := range parameters {
		name, in, s := memberAt(p, "name").(string), memberAt(p, "in").(string), m.resolveSchema(memberAt(p, "schema"))
		if in == "header" {
			sendChanged("a long header "+name, func(r *madeRequest) { r.header.Set(name, strings.Repeat("k", 5000)) }, 422)
			sendChanged("a header twice: "+name, func(r *madeRequest) { r.header[name] = []string{"a", "b"} }, 400)
			sendChanged("a header that is not UTF-8: "+name, func(r *madeRequest) { r.header.Set(name, "k\xff") }, 400)
			continue
		}
		for description, value := range m.wrongTexts(s) {
			sendChanged(description+" in "+name, func(r *madeRequest) { r.query = withQueryValue(r.query, name, value) }, 400, 422)
		}
		sendChanged(name+" twice", func(r *madeRequest) { r.query = name + "=1&" + name + "=1" }, 400)
		sendChanged(name+" badly escaped", func(r *madeRequest) { r.query = name + "=%zz" }, 400)
		sendChanged(name+" not UTF-8", func(r *madeRequest) { r.query = name + "=%ff%fe" }, 400)
		sendChanged(name+" of 10 KB", func(r *madeRequest) { r.query = name + "=" + strings.Repeat("x", 10<<10) }, 414)
		if memberAt(p, "required") == true {
			sendChanged("without "+name, func(r *madeRequest) { r.query = withQueryValue(r.query, name, "") }, 422)
		}
	}
	sendChanged("an unknown parameter", func(r *madeRequest) { r.query = withQueryValue(r.query, "pl4nted", plantedText) }, 422)
	sendChanged("a broken query", func(r *madeRequest) { r.query = "a;b=%" }, 400)
	sendChanged("a query of 10 KB", func(r *madeRequest) { r.query = "pl4nted=" + strings.Repeat("x", 10<<10) }, 414)
	// Headers that other software would obey.
	for name, value := range m.oneThird(map[string]string{
		"X-Http-Method-Override": "DELETE", "X-Forwarded-For": plantedText, "X-Original-Url": "/v1/audit",
		"Accept": "text/html", "Accept-Encoding": "gzip, br", "Accept-Charset": "utf-16",
		"Range": "bytes=0-1", "If-None-Match": "*", "If-Modified-Since": "Mon, 01 Jan 2035 00:00:00 GMT",
		"Origin": "https://evil.test", "Cookie": "pgconsent=" + plantedText,
		"X-Odd": strings.Repeat("y", 20<<10), "Te": "trailers", "Upgrade": "h2c", "Prefer": "respond-async",
		"Content-Language": plantedText, "Expect": "100-continue",
	}) {
		r := baseRequest("the header " + name)
		r.header.Set(name, value)
		m.send(role, r)
	}
	sendChanged("a header that is not UTF-8", func(r *madeRequest) { r.header.Set("X-Odd", "\xff") }, 400)
	for _, authorization := range []string{"", "Bearer", "Bearer ", "Basic YTpi", "Bearer " + plantedText,
		"Bearer " + strings.Repeat("x", 20<<10), "Bearer a.b.c", "Bearer eyJhbGciOiJub25lIn0.e30.", "bearer\t\x7f"} {
		r := baseRequest("with the authorization " + authorization[:min(len(authorization), 20)])
		if r.header.Set("Authorization", authorization); authorization == "" {
			r.header.Del("Authorization")
		}
		if r.wantStatuses = []int{401}; strings.Contains(authorization, "\x7f") {
			r.wantStatuses = []int{400, 401}
		}
		m.send("", r)
	}
	// Invalid bodies.
	sendBody := func(description, body string, want ...int) {
		sendChanged(description, func(r *madeRequest) {
			r.body = strings.NewReader(body)
			r.header.Set("Content-Type", "application/json")
		}, want...)
	}
	if schema == nil {
		if method == http.MethodGet {
			sendBody("a body where there is none", `{}`, 400)
			return
		}
		sendBody("a body where there is none, of 64 KB", `{"a":"`+strings.Repeat("x", 64<<10)+`"}`, 413)
		sendChanged("a body where there is none, of no kind", func(r *madeRequest) { r.body = strings.NewReader("a") }, 415)
		return
	}
	wrongValues := m.wrongValues(schema)
	for i, description := range slices.Sorted(maps.Keys(wrongValues)) {
		if !tier.IsPicked(i+m.operations, 2) {
			continue
		}
		value := wrongValues[description]
		b, err := json.Marshal(value)
		if err != nil {
			m.t.Fatal(err)
		}
		sendBody(description, string(b), 422)
	}
	sampleBody := string(validBody())
	properties, _ := schema["properties"].(map[string]any)
	firstProperty := slices.Sorted(maps.Keys(properties))[0]
	sendBody("a name twice", `{"`+firstProperty+`":null,"`+firstProperty+`":null}`, 400)
	sendBody("a name twice, escaped", fmt.Sprintf(`{"%s":1,"\u%04x%s":1}`, firstProperty, firstProperty[0], firstProperty[1:]), 400)
	sendBody("a name of another case", `{"`+strings.ToUpper(firstProperty)+`":"x"}`, 422)
	sendBody("not UTF-8", `{"`+firstProperty+"\":\"\xff\xfe\"}", 400)
	sendBody("a name that is not UTF-8", "{\"\xc3\x28\":1}", 400)
	sendBody("half a surrogate", `{"`+firstProperty+`":"\udc00"}`, 400)
	sendBody("cut", sampleBody[:max(len(sampleBody)-1, 1)], 400)
	sendBody("something behind it", sampleBody+"x", 400)
	doubledStatus := 400
	if 2*len(sampleBody) > 64<<10 {
		doubledStatus = 413
	}
	sendBody("two values", sampleBody+sampleBody, doubledStatus)
	sendBody("a BOM", "\ufeff"+sampleBody, 400)
	sendBody("comments", "/* */"+sampleBody, 400)
	sendBody("NaN", `{"`+firstProperty+`":NaN}`, 400)
	sendBody("deep arrays", strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000), 400)
	sendBody("deep objects", strings.Repeat(`{"`+firstProperty+`":`, 33)+"1"+strings.Repeat("}", 33), 400)
	sendBody("a huge number", `{"`+firstProperty+`":1e999999}`, 400, 422)
	sendBody("a long number", `{"`+firstProperty+`":`+strings.Repeat("9", 10_000)+`}`, 400, 422)
	sendBody("prototype", `{"__proto__":{"role":"admin"}}`, 422)
	sendBody("a value that is marked up", `{"pl4nted":`+strconv.Quote(plantedText)+`}`, 422)
	sendBody("a name that is marked up", `{`+strconv.Quote(plantedText)+`:1}`, 422)
	sendBody("64 KB and a byte", `{"`+firstProperty+`":"`+strings.Repeat("x", 64<<10)+`"}`, 413)
	for _, kind := range []string{"text/plain", "application/xml", "application/x-www-form-urlencoded",
		"multipart/form-data; boundary=x", "application/json; charset=utf-16", "application/jsonx", "application/",
		plantedText, "", "application/json, text/plain"} {
		sendChanged("the content type "+kind, func(r *madeRequest) { r.header.Set("Content-Type", kind) }, 415)
	}
	sendChanged("no content type", func(r *madeRequest) { r.header.Del("Content-Type") }, 415)
	sendChanged("an encoded body", func(r *madeRequest) { r.header.Set("Content-Encoding", "gzip") }, 415)
	if memberAt(o, "requestBody", "required") == true {
		sendChanged("no body", func(r *madeRequest) { r.body = nil }, 400, 422)
	}
	if m.operations++; m.operations%4 != 0 {
		return
	}
	sendBody("10 MB", `{"`+firstProperty+`":"`+strings.Repeat("x", 10<<20)+`"}`, 413)
	sendChanged("10 MB of no known length", func(r *madeRequest) {
		r.body = io.MultiReader(strings.NewReader(`{"`+firstProperty+`":"`), strings.NewReader(strings.Repeat("x", 10<<20)))
	}, 413)
}

// oneThird returns a third of the cases; another third for each operation.
func (m *requestMaker) oneThird(cases map[string]string) map[string]string {
	out := map[string]string{}
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		if (i+m.sentRequests)%3 == 0 {
			out[name] = cases[name]
		}
	}
	return out
}

// checkOtherMethods checks that a path refuses the methods that the document does not declare.
func (m *requestMaker) checkOtherMethods(path string, methods map[string]any) {
	for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "QUERY", "PROPFIND", "X"} {
		if _, isDeclared := methods[strings.ToLower(method)]; isDeclared {
			continue
		}
		a, ok := m.send([]string{"admin", "agent", "subject", "operator"}[m.sentRequests%4],
			madeRequest{description: "another method", method: method, path: path, header: http.Header{}, wantStatuses: []int{405}})
		for otherMethod := range withHead(methods) {
			if allow := ", " + a.Header.Get("Allow") + ","; ok && !strings.Contains(allow, " "+strings.ToUpper(otherMethod)+",") {
				m.t.Errorf("%s %s: Allow: %s", method, path, allow)
			}
		}
	}
}

// withHead adds HEAD where there is GET, since a path that answers one answers the other (RFC 9110, 9.3.2).
func withHead(methods map[string]any) map[string]any {
	out := maps.Clone(methods)
	if _, hasGet := methods["get"]; hasGet {
		out["head"] = nil
	}
	return out
}

// checkUnknownPaths checks that paths of no operation are answered with 404, or with 401 without a token.
func (m *requestMaker) checkUnknownPaths() {
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v2/consent/status", "//v1/consent/status", "/v1//consent/status",
		"/v1/./consent/status", "/v1/../v1/consent/status", "/v1/consent/../../metrics", "/..", "/v1/consent/status/",
		"/v1/consent%2fstatus", "/v1/consent/status%00", "/v1/consent/status%20", "/v1/%2e%2e/%2e%2e/etc/passwd",
		"/v1/consent/status;x=1", "/V1/CONSENT/STATUS", "/v1/" + strings.Repeat("x", 5000),
		"/v1/" + url.PathEscape(plantedText), "/v1/%ff%fe", "/v1/\u202e", "/openapi.yaml",
		"/docs", "/.well-known/openid-configuration", "/debug/pprof/", "/v1/consent/status\\..",
	} {
		for role, want := range map[string]int{"admin": 404, "": 401} {
			m.send(role, madeRequest{description: "nowhere", method: "GET", path: path, header: http.Header{}, wantStatuses: []int{want}})
		}
	}
}

// send sends a request with a token of a role, and checks the answer against the document.
func (m *requestMaker) send(role string, r madeRequest) (httpAnswer, bool) {
	m.t.Helper()
	target := m.demoRun.Access.HTTP + r.path
	if r.query != "" {
		target += "?" + r.query
	}
	var body []byte
	if r.body != nil {
		var err error
		if body, err = io.ReadAll(r.body); err != nil {
			m.t.Fatal(err)
		}
	}
	for range 100 {
		var reader io.Reader
		if _, isBytesReader := r.body.(*bytes.Reader); body != nil {
			if reader = bytes.NewReader(body); !isBytesReader && len(body) > 1<<20 {
				reader = io.MultiReader(reader) // hides the length of the body from the HTTP client
			}
		}
		httpRequest, err := http.NewRequest(r.method, target, reader)
		if err != nil {
			return httpAnswer{}, false // no HTTP client can send it
		}
		httpRequest.Header = r.header.Clone()
		if roleTokens := m.tokens[role]; len(roleTokens) > 0 {
			m.tokenIndex[role]++
			httpRequest.Header.Set("Authorization", "Bearer "+roleTokens[m.tokenIndex[role]%len(roleTokens)])
		}
		m.sentRequests++
		response, err := m.client.Do(httpRequest)
		if err != nil {
			if len(body) > 1<<20 || strings.Contains(err.Error(), "invalid header") { // the server closed the connection meanwhile, or no HTTP client can send it
				return httpAnswer{}, false
			}
			m.t.Errorf("%s %s, %s: %v", r.method, r.path, r.description, err)
			return httpAnswer{}, false
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			m.t.Errorf("%s %s, %s: %v", r.method, r.path, r.description, err)
			return httpAnswer{}, false
		}
		a := httpAnswer{Status: response.StatusCode, Header: response.Header, Text: string(text)}
		_ = json.Unmarshal(text, &a.Body)
		if a.Status == http.StatusTooManyRequests && !slices.Contains(r.wantStatuses, 429) {
			waitSeconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
			if err != nil || waitSeconds < 1 {
				m.t.Errorf("%s %s: Retry-After: %q", r.method, r.path, a.Header.Get("Retry-After"))
				waitSeconds = 1
			}
			time.Sleep(time.Duration(waitSeconds) * time.Second)
			m.waitedTime += time.Duration(waitSeconds) * time.Second
			continue
		}
		m.checkResponse(r, a)
		return a, true
	}
	m.t.Errorf("%s %s, %s: there are always too many", r.method, r.path, r.description)
	return httpAnswer{}, false
}

// checkResponse checks an answer against the request and the document.
func (m *requestMaker) checkResponse(r madeRequest, a httpAnswer) {
	m.t.Helper()
	fail := func(why string) {
		m.t.Errorf("%s %s, %s: %s: %d %.600s", r.method, r.path, r.description, why, a.Status, a.Text)
	}
	if strings.HasPrefix(a.Header.Get("Content-Type"), "text/plain") && a.Status == 400 && a.Body == nil {
		return // the HTTP library itself refuses this request, before the API gets it
	}
	switch {
	case a.Status >= 500:
		fail("an error of the server")
	case a.Status < 200 || a.Status >= 300 && a.Status < 400:
		fail("a status that nothing here has")
	case r.wantStatuses != nil && !slices.Contains(r.wantStatuses, a.Status):
		fail(fmt.Sprintf("want %v", r.wantStatuses))
	case r.mustFail && a.Status < 400:
		fail("it was taken")
	}
	if a.Header.Get("X-Content-Type-Options") != "nosniff" {
		fail("a browser may guess what it is")
	}
	for _, text := range []string{plantedText, "goroutine ", ".go:", "runtime error", "panic", "pgconsent/", "SELECT ", "/root/", "/tmp/", "pgx", "socket"} {
		if strings.Contains(a.Text, text) {
			fail("it has " + text)
		}
	}
	for _, values := range a.Header {
		for _, value := range values {
			if strings.Contains(value, "pl4nted") {
				fail("it has " + value + " in a header")
			}
		}
	}
	if r.method != http.MethodHead {
		m.checkDocumented(r.method, r.path, a)
	}
}

// resolveSchema follows the references of a schema.
func (m *requestMaker) resolveSchema(s any) map[string]any {
	resolved, _ := s.(map[string]any)
	for {
		ref, ok := resolved["$ref"].(string)
		if !ok {
			return resolved
		}
		resolved, _ = memberAt(m.document, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...).(map[string]any)
	}
}

// schemaType returns the type of a schema, without null.
func schemaType(s map[string]any) string {
	switch t := s["type"].(type) {
	case string:
		return t
	case []any:
		return t[0].(string)
	}
	return ""
}

// validValue returns a random value that is valid for a schema.
func (m *requestMaker) validValue(s map[string]any) any {
	s = m.resolveSchema(s)
	if enumValues, ok := s["enum"].([]any); ok {
		return enumValues[m.rnd.IntN(len(enumValues))]
	}
	switch schemaType(s) {
	case "object":
		out := map[string]any{}
		properties, _ := s["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			required, _ := s["required"].([]any)
			if slices.Contains(required, any(name)) || m.rnd.IntN(2) == 0 {
				out[name] = m.validValue(m.resolveSchema(properties[name]))
			}
		}
		return out
	case "array":
		out := []any{}
		for range int(numberOf(s, "minItems", 0)) + m.rnd.IntN(3) {
			out = append(out, m.validValue(m.resolveSchema(s["items"])))
		}
		return out
	case "boolean":
		return m.rnd.IntN(2) == 0
	case "integer", "number":
		minimum, maximum := numberOf(s, "minimum", 0), numberOf(s, "maximum", 1<<31)
		return []any{int64(minimum), int64(maximum), int64(minimum) + m.rnd.Int64N(int64(maximum-minimum)+1)}[m.rnd.IntN(3)]
	default:
		words := []string{"human:sean", "ESSENTIAL", "ctx:walks", "x", "*", "dog:bella", "table:episodes",
			"épisode:ü", "Robert');DROP", "{{7*7}}", "../../etc/passwd", "%00%n%s", "${jndi}", "😀", "a,b", "-1"}
		for range 50 {
			word := words[m.rnd.IntN(len(words))]
			if m.rnd.IntN(8) == 0 {
				word = strings.Repeat("y", int(numberOf(s, "maxLength", 50)))
			}
			if m.acceptsValue(s, word) {
				return word
			}
		}
		return strings.Repeat("x", int(numberOf(s, "minLength", 1)))
	}
}

// acceptsValue tells whether a value is valid for a schema.
func (m *requestMaker) acceptsValue(s map[string]any, value any) bool {
	text, err := json.Marshal(s)
	if err != nil {
		m.t.Fatal(err)
	}
	return m.compiledSchema(string(text)).Validate(value) == nil
}

func numberOf(s map[string]any, name string, fallback float64) float64 {
	switch n := s[name].(type) {
	case float64:
		return n
	case json.Number:
		f, _ := n.Float64()
		return f
	}
	return fallback
}

// validQuery returns a query string that is valid for an operation.
func (m *requestMaker) validQuery(o map[string]any) string {
	q := url.Values{}
	parameters, _ := o["parameters"].([]any)
	for _, p := range parameters {
		if memberAt(p, "in") == "query" && (memberAt(p, "required") == true || m.rnd.IntN(3) == 0) {
			q.Set(memberAt(p, "name").(string), fmt.Sprint(m.validValue(m.resolveSchema(memberAt(p, "schema")))))
		}
	}
	return q.Encode()
}

// withQueryValue replaces a value in a query string; "" removes it.
func withQueryValue(query, name, value string) string {
	q, _ := url.ParseQuery(query)
	if q.Del(name); value != "" {
		q.Set(name, value)
	}
	return q.Encode()
}

// wrongTexts returns invalid texts for a parameter, by what is wrong.
func (m *requestMaker) wrongTexts(s map[string]any) map[string]string {
	out := map[string]string{}
	switch schemaType(s) {
	case "integer", "number":
		out["a word"], out["a fraction"], out["a huge number"], out["hexadecimal"], out["a space"] = "many", "1.5", strings.Repeat("9", 40), "0x10", " 1"
	case "boolean":
		out["a word"], out["2"] = "perhaps", "2"
	case "string":
		if _, ok := s["pattern"]; ok {
			out["a NUL"], out["a line break"] = "a\x00b", "a\nb"
		}
	}
	if n, ok := s["minimum"]; ok {
		out["less than "+fmt.Sprint(n)] = fmt.Sprint(int64(numberOf(s, "minimum", 0)) - 1)
	}
	if n, ok := s["maximum"]; ok {
		out["more than "+fmt.Sprint(n)] = fmt.Sprint(int64(numberOf(s, "maximum", 0)) + 1)
	}
	if n, ok := s["maxLength"]; ok {
		out["longer than "+fmt.Sprint(n)] = strings.Repeat("y", int(numberOf(s, "maxLength", 0))+1)
	}
	return out
}

// wrongValues returns invalid bodies for a schema, by what is wrong.
func (m *requestMaker) wrongValues(s map[string]any) map[string]any {
	out := map[string]any{"null": nil, "a list": []any{}, "a text": "x", "a number": 1, "true": true}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	addWrongValue := func(description, name string, value any) {
		body := m.validValue(s).(map[string]any)
		body[name] = value
		out[description+" for "+name] = body
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		member := m.resolveSchema(properties[name])
		for description, value := range map[string]any{
			"null": nil, "a text": plantedText, "a number": 7, "a fraction": 0.5, "true": true, "a list": []any{},
			"a list of lists": []any{[]any{}}, "an object": map[string]any{"a": 1}, "a list of null": []any{nil},
			"a NUL": "a\x00b", "1e308": 1e308,
		} {
			if !m.acceptsValue(member, value) {
				addWrongValue(description, name, value)
			}
		}
		if maximum := numberOf(member, "maxLength", 0); maximum > 0 {
			addWrongValue("too long a text", name, strings.Repeat("y", int(maximum)+1))
		}
		if numberOf(member, "minLength", 0) > 0 {
			addWrongValue("an empty text", name, "")
		}
		if maximum, ok := member["maximum"]; ok {
			addWrongValue("more than "+fmt.Sprint(maximum), name, int64(numberOf(member, "maximum", 0))+1)
		}
		if minimum, ok := member["minimum"]; ok {
			addWrongValue("less than "+fmt.Sprint(minimum), name, int64(numberOf(member, "minimum", 0))-1)
		}
		if largest := int(numberOf(member, "maxItems", 0)); largest > 0 {
			addWrongValue("too long a list", name, slices.Repeat([]any{"x"}, largest+1))
		}
		if numberOf(member, "minItems", 0) > 0 {
			addWrongValue("an empty list", name, []any{})
		}
		if slices.Contains(required, any(name)) {
			body := m.validValue(s).(map[string]any)
			delete(body, name)
			out["without "+name] = body
		}
	}
	addWrongValue("something unknown", "pl4nted", plantedText)
	return out
}
