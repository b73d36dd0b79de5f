package console_test

import (
	"context"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/demo"
	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/test/demos"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.MainAlone(m) }

const (
	script = `<script>alert("x")</script>`
	image  = `"><img src=x onerror=alert(1)>`
	braces = `{{.CSRF}} javascript:alert(1)//'"`
)

// servedDemo is a demo that is started once for all tests.
type servedDemo struct {
	sync.Once
	runningDemo *demo.RunningDemo
	dir         string
	err         error
}

var started, kernle servedDemo

// running returns a demo whose ids and names of tables look like markup. All tests share the demo.
func running(t *testing.T) *demo.RunningDemo {
	t.Helper()
	return started.world(t, "./testdata/markup")
}

func (s *servedDemo) world(t *testing.T, name string) *demo.RunningDemo {
	t.Helper()
	s.Do(func() {
		ctx := context.Background()
		dsn, err := demos.GuestDSN()
		if s.err = err; err != nil {
			return
		}
		w, err := world.Open(name)
		if s.err = err; err != nil {
			return
		}
		if s.dir, s.err = os.MkdirTemp("", "console"); s.err != nil {
			return
		}
		s.runningDemo, s.err = demo.Start(ctx, demo.Config{World: w, ServerDSN: dsn,
			Folder: s.dir, Listen: pgtest.FreeAddress(t), HTTP: pgtest.FreeAddress(t), Log: slog.New(slog.DiscardHandler)})
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.runningDemo
}

// personView is a person with a browser that stores cookies and runs no scripts.
type personView struct {
	t    *testing.T
	base string
	http *http.Client
}

// page is the response to a request.
type page struct {
	status int
	path   string
	body   string
	header http.Header
}

func consoleRoles(t *testing.T) *personView {
	t.Helper()
	return newVisitor(t, running(t))
}

func newVisitor(t *testing.T, r *demo.RunningDemo) *personView {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &personView{t, r.Access.HTTP + "/console/", &http.Client{Jar: jar, Timeout: tier.Patience}}
}

// signInAs signs in to the shared demo with a token of the role.
func signInAs(t *testing.T, role string) *personView {
	t.Helper()
	return signInTo(t, running(t), role)
}

// signInTo signs in to a demo with a token of the role.
func signInTo(t *testing.T, r *demo.RunningDemo, role string) *personView {
	t.Helper()
	p := newVisitor(t, r)
	token := r.Access.Tokens[role]
	if token == "" {
		t.Fatalf("there is no token of %s", role)
	}
	if got := p.signIn(token); got.status != 200 || strings.HasSuffix(got.path, "login") {
		t.Fatalf("%s cannot sign in: %d %s", role, got.status, got.path)
	}
	return p
}

func (p *personView) do(r *http.Request) page {
	p.t.Helper()
	response, err := p.http.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return page{status: response.StatusCode, path: response.Request.URL.RequestURI(), body: string(body), header: response.Header}
}

func (p *personView) request(method, path string, form url.Values) *http.Request {
	p.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.base+path, body)
	if err != nil {
		p.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return r
}

func (p *personView) get(path string) page {
	p.t.Helper()
	return p.do(p.request(http.MethodGet, path, nil))
}

func (p *personView) post(path string, form url.Values) page {
	p.t.Helper()
	return p.do(p.request(http.MethodPost, path, form))
}

func (p *personView) signIn(token string) page {
	p.t.Helper()
	f := p.get("login").forms(p.t)
	if len(f) != 1 {
		p.t.Fatalf("%d forms to sign in by", len(f))
	}
	f[0].fields.Set("token", token)
	return p.submit(f[0])
}

// form is a form of a page.
type form struct {
	action  string
	fields  url.Values
	buttons []string
}

var (
	formText   = regexp.MustCompile(`(?s)<form([^>]*)>(.*?)</form>`)
	inputText  = regexp.MustCompile(`<input([^>]*)>`)
	buttonText = regexp.MustCompile(`(?s)<button([^>]*)>(.*?)</button>`)
	optionText = regexp.MustCompile(`(?s)<select[^>]* name="([^"]*)"[^>]*>\s*<option( value="([^"]*)")?[^>]*>(.*?)</option>`)
)

func attribute(text, name string) string {
	if m := regexp.MustCompile(`(?:^|\s)` + name + `="([^"]*)"`).FindStringSubmatch(text); m != nil {
		return html.UnescapeString(m[1])
	}
	return ""
}

func (p page) forms(t *testing.T) (out []form) {
	t.Helper()
	for _, m := range formText.FindAllStringSubmatch(p.body, -1) {
		f := form{action: strings.TrimPrefix(attribute(m[1], "action"), "/console/"), fields: url.Values{}}
		if attribute(m[1], "method") != "post" {
			t.Errorf("a form that is not posted: %s", m[1])
		}
		for _, i := range inputText.FindAllStringSubmatch(m[2], -1) {
			f.fields.Set(attribute(i[1], "name"), attribute(i[1], "value"))
		}
		for _, o := range optionText.FindAllStringSubmatch(m[2], -1) {
			value := o[3]
			if o[2] == "" {
				value = o[4]
			}
			f.fields.Set(o[1], html.UnescapeString(value))
		}
		for _, b := range buttonText.FindAllStringSubmatch(m[2], -1) {
			f.buttons = append(f.buttons, html.UnescapeString(b[2]))
		}
		out = append(out, f)
	}
	return out
}

// button returns the form that contains the button with a text.
func (p page) button(t *testing.T, text string) form {
	t.Helper()
	for _, f := range p.forms(t) {
		if slices.Contains(f.buttons, text) {
			return f
		}
	}
	t.Fatalf("%s has no button %q:\n%s", p.path, text, p.body)
	return form{}
}

func (p *personView) submit(f form) page {
	p.t.Helper()
	return p.post(f.action, f.fields)
}

// says checks that a page contains the texts.
func (p page) says(t *testing.T, texts ...string) {
	t.Helper()
	plainText := strings.Join(strings.Fields(html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(p.body, " "))), " ")
	for _, text := range texts {
		if !strings.Contains(plainText, text) {
			t.Errorf("%s does not say %q:\n%s", p.path, text, plainText)
		}
	}
}

// rows returns how many notes of a person an agent sees.
func rows(t *testing.T, agent, subjectID string) int {
	t.Helper()
	for _, a := range running(t).Access.Agents {
		if a.Name != agent {
			continue
		}
		conn, err := pgx.Connect(t.Context(), a.DSN)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		response, err := conn.Query(t.Context(), `SELECT id FROM "<i>notes</i>" WHERE who = $1`, subjectID)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := pgx.CollectRows(response, pgx.RowTo[int32])
		if err != nil {
			t.Fatal(err)
		}
		return len(ids)
	}
	t.Fatalf("there is no agent %s", agent)
	return 0
}

func TestSubjectWithdrawsAndGives(t *testing.T) {
	p := signInAs(t, "subject:ada")
	ownPage := p.get("me")
	ownPage.says(t, "Agents may see some of your data", "Essential", "unless you are in touch before", "4 of 4 records, one by one",
		"sees nothing")
	if n := rows(t, "assistant", "ada"); n != 3 {
		t.Fatalf("the agent sees %d notes, want 3", n)
	}

	withdraw := ownPage.button(t, "Withdraw consent")
	ownPage = p.submit(withdraw)
	if ownPage.status != 200 || ownPage.path != "/console/me" {
		t.Errorf("withdrawn: %d %s", ownPage.status, ownPage.path)
	}
	ownPage.says(t, "Your consent is withdrawn", "agents see nothing by this consent", "You can give it again below",
		"No agent may see your data by your consent", "None of 4 records")
	if n := rows(t, "assistant", "ada"); n != 0 {
		t.Errorf("after the withdrawal the agent sees %d notes", n)
	}
	if pageAfter := p.get("me"); strings.Contains(pageAfter.body, "agents see nothing by this consent") {
		t.Error("what was said once is said again")
	}
	// The second time, the same form changes nothing.
	p.submit(withdraw).says(t, "This was withdrawn before")

	// Withdrawing and giving take the same effort: one form without fields to fill in.
	give := p.get("me").button(t, "Give consent")
	if len(give.fields) != len(withdraw.fields) || len(withdraw.fields) != 1 {
		t.Errorf("withdrawing asks for %v, granting for %v", withdraw.fields, give.fields)
	}
	p.submit(give).says(t, "You have given your consent", "Agents may see some of your data")

	p.get("me/history").says(t, "Consent given", "Consent withdrawn", "by way of this console", "by the person ada")
}

func TestPartnership(t *testing.T) {
	p := signInAs(t, "subject:user-01")
	ownPage := p.submit(p.get("me").button(t, "Ask for a partnership"))
	ownPage.says(t, "You have asked for a partnership", "The agent's side decides, until", "Asked for a partnership")
	admin := signInAs(t, "admin")
	admin.get("pending").says(t, "user-01", "Essential, Behaviour, Improvement")

	bob := signInAs(t, "subject:bob")
	bob.get("me").says(t, "You are in a partnership", "Essential Behaviour Improvement")
	pageWithLess := bob.submit(bob.get("me").button(t, "Statistics only"))
	pageWithLess.says(t, "Agents see less of you from now on", "within 90 days", "Your data are used in statistics of groups only",
		"statistics of groups include them")

	stranger := signInAs(t, "subject:new")
	stranger.get("me").says(t, "No consent of yours is recorded")
	stranger.get("me/history").says(t, "No consent of yours is recorded")
	stranger.submit(stranger.get("me").button(t, "Give consent")).says(t, "You have given your consent")
}

func TestHistoryNamesTheRecorder(t *testing.T) {
	if n := rows(t, "assistant", "user-02"); n != 3 {
		t.Fatalf("the agent sees %d notes", n)
	}
	p := signInAs(t, "subject:user-02")
	p.get("me/seen").says(t, "assistant", "exact 3 records of <i>notes</i>", "May have included")

	for format, want := range map[string]string{"html": "Report on personal data", "json": `"subject": "user-02"`} {
		f := p.get("me").button(t, "Download as JSON")
		f.fields.Set("format", format)
		got := p.submit(f)
		if got.status != 200 || !strings.Contains(got.body, want) || !strings.HasPrefix(got.header.Get("Content-Disposition"), "attachment") {
			t.Errorf("%s: %d %v", format, got.status, got.header)
		}
	}
	p.get("me/history").says(t, "Access report made")
}

func TestAdmin(t *testing.T) {
	p := signInAs(t, "admin")
	first := p.get("people")
	first.says(t, "user-01", script, "Active")
	nextLink := regexp.MustCompile(`href="/console/(people/after/[^"]+)"`).FindStringSubmatch(first.body)
	if nextLink == nil {
		t.Fatal("there is no second page")
	}
	second := p.get(nextLink[1])
	second.says(t, "user-24", "A later page", "First page")
	if p.get("people/after/xyz").status != 404 || p.get("person/xyz").status != 404 {
		t.Error("a handle that nobody made leads somewhere")
	}

	search := first.button(t, "Search")
	search.fields.Set("text", "EVE")
	found := p.submit(search)
	found.says(t, "eve", "Statistics only")
	if found.path != "/console/people" || strings.Contains(found.body, "user-01") {
		t.Errorf("what was looked for: %s", found.path)
	}
	person := p.get(regexp.MustCompile(`href="/console/(person/[^"]+)"`).FindStringSubmatch(found.body)[1])
	person.says(t, "eve", "What each agent can see of them now", "None of 4 records", "Consent given")
	reason := p.submit(person.button(t, "Why?"))
	reason.says(t, "assistant does not see it", "✗ fails consent", "STATISTICAL", "agrees")

	// An administrator can read, and cannot change anybody's consent.
	for _, path := range []string{"me/withdraw", "me/give", "me/less", "me/partnership", "me/report"} {
		f := first.button(t, "Search")
		if got := p.post(path, f.fields); got.status != 403 {
			t.Errorf("%s: %d", path, got.status)
		}
	}
	askForm := p.get("why").button(t, "Ask")
	for _, c := range []struct {
		agent, table, key string
		status            int
		wantText          string
	}{
		{"assistant", "people", "nobody", 200, "There is no such row"},
		{"nobody", "people", "ada", 404, "There is no such"},
		{"assistant", `<img src=x onerror=alert(1)>`, "1", 404, "<img src=x onerror=alert(1)>"},
		{"assistant", "public.<i>notes</i>", "no number", 422, "This is no key"},
		{"assistant", "people", "", 422, "Which row"},
		{"assistant", "public.<i>notes</i>", "id=1", 200, "id=1"},
	} {
		askForm.fields.Set("agent", c.agent)
		askForm.fields.Set("table", c.table)
		askForm.fields.Set("key", c.key)
		got := p.submit(askForm)
		if got.status != c.status {
			t.Errorf("%+v: %d", c, got.status)
		}
		got.says(t, c.wantText)
	}
}

func TestOperator(t *testing.T) {
	agent := running(t).Access.Agents[0]
	conn, err := pgx.Connect(t.Context(), agent.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), `SELECT body FROM "<i>notes</i>", nowhere WHERE who = 'ada' AND id = 424242`); err == nil {
		t.Fatal("the statement is allowed")
	}
	p := signInAs(t, "operator")
	got := p.get("operations")
	got.says(t, "Healthy", "served", "strict", agent.Name, "relation 42501", "every 6h0m0s", "records are written", "Findings of the checks")
	for _, secret := range []string{"ROWMARK", "424242", `\bada\b`, "user-0"} { // a digest may have "ada" within
		if regexp.MustCompile(secret).MatchString(got.body) {
			t.Errorf("%q is shown to the operator", secret)
		}
	}
}

// A subject gets the same refusal for every page of other roles, so that it learns nothing about the page.
func TestRefusalsAreUniform(t *testing.T) {
	admin := signInAs(t, "admin")
	handle := regexp.MustCompile(`href="/console/(person/[^"]+)"`).FindStringSubmatch(admin.get("people").body)[1]
	p := signInAs(t, "subject:user-03")
	refusal := p.get("people")
	if refusal.status != 403 {
		t.Fatalf("a subject sees people: %d", refusal.status)
	}
	for _, path := range []string{"people/after/x", "pending", handle, "person/x", "why", "operations"} {
		if got := p.get(path); got.status != 403 || got.body != refusal.body {
			t.Errorf("%s: %d, another answer than for people", path, got.status)
		}
	}
	csrf := p.get("me").button(t, "Withdraw consent").fields
	for _, path := range []string{"people", "why"} {
		if got := p.post(path, csrf); got.status != 403 {
			t.Errorf("POST %s: %d", path, got.status)
		}
	}
	// A form with the id of another person still changes the consent of the sender only.
	f := url.Values{"csrf": csrf["csrf"], "subject": {"user-04"}}
	p.post("me/withdraw", f).says(t, "Your consent is withdrawn")
	if rows(t, "assistant", "user-03") != 0 || rows(t, "assistant", "user-04") != 3 {
		t.Error("a subject has withdrawn another's consent")
	}
	operator := signInAs(t, "operator")
	for _, path := range []string{"me", "me/seen", "me/history", "people", "pending", "why", handle} {
		if got := operator.get(path); got.status != 403 || strings.Contains(got.body, "user-") {
			t.Errorf("operator, %s: %d", path, got.status)
		}
	}
}

func TestCrossSiteForms(t *testing.T) {
	p, otherSession := signInAs(t, "subject:user-05"), signInAs(t, "subject:user-05")
	withdraw := p.get("me").button(t, "Withdraw consent")
	refused := func(description string, r *http.Request, status int) {
		t.Helper()
		if got := p.do(r); got.status != status {
			t.Errorf("%s: %d, want %d", description, got.status, status)
		}
		if rows(t, "assistant", "user-05") != 3 {
			t.Fatalf("%s: it was done", description)
		}
	}
	refused("without a token", p.request("POST", "me/withdraw", url.Values{"csrf": nil}), 403)
	refused("without a form", p.request("POST", "me/withdraw", nil), 400)
	refused("with the token of another session", p.request("POST", "me/withdraw", otherSession.get("me").button(t, "Withdraw consent").fields),
		403)
	refused("with an invented token", p.request("POST", "me/withdraw", url.Values{"csrf": {strings.Repeat("A", 43)}}), 403)
	refused("with the token twice", p.request("POST", "me/withdraw", url.Values{"csrf": {withdraw.fields.Get("csrf"), "x"}}), 400)
	refused("with a NUL", p.request("POST", "me/withdraw", url.Values{"csrf": withdraw.fields["csrf"], "scope": {"a\x00"}}), 400)
	refused("not UTF-8", p.request("POST", "me/withdraw", url.Values{"csrf": withdraw.fields["csrf"], "scope": {"\xff"}}), 400)
	refused("too long", p.request("POST", "me/withdraw", url.Values{"csrf": withdraw.fields["csrf"], "reason": {strings.Repeat("x", 10<<20)}}), 413)
	refused("by GET", p.request("GET", "me/withdraw?csrf="+withdraw.fields.Get("csrf"), nil), 405)
	for header, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		r := p.request("POST", "me/withdraw", withdraw.fields)
		r.Header.Set(header, value)
		refused(header, r, 403)
	}
	json := p.request("POST", "me/withdraw", withdraw.fields)
	json.Header.Set("Content-Type", "text/plain")
	refused("as plain text", json, 400)

	// A login form that was given to another browser signs nobody in.
	stranger := consoleRoles(t)
	form := consoleRoles(t).get("login").forms(t)[0]
	form.fields.Set("token", running(t).Access.Tokens["subject:user-05"])
	if got := stranger.submit(form); got.status != 403 {
		t.Errorf("a sign-in by a foreign form: %d", got.status)
	}
	if got := stranger.get("me"); !strings.HasSuffix(got.path, "/login") {
		t.Errorf("and is signed in: %s", got.path)
	}
}

func TestSignIn(t *testing.T) {
	tokens := running(t).Access.Tokens
	formTokenPattern := regexp.MustCompile(`name="form" value="[^"]*"`)
	var first string
	for _, token := range []string{"", "nonsense", tokens["agent:assistant"], tokens["system"], tokens["admin"] + "x",
		script, strings.Repeat("x", 60000)} {
		p := consoleRoles(t)
		got := p.signIn(token)
		body := formTokenPattern.ReplaceAllString(got.body, "")
		if first == "" {
			first = body
		}
		if got.status != 401 || body != first {
			t.Errorf("%.20q: %d, or another answer than for no token", token, got.status)
		}
		if got := p.get("people"); !strings.HasSuffix(got.path, "/login") {
			t.Errorf("%.20q opens %s", token, got.path)
		}
	}

	p := consoleRoles(t)
	p.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	got := p.signIn("  " + tokens["subject:user-06"] + "\n")
	var cookie string
	for _, c := range got.header.Values("Set-Cookie") {
		if strings.HasPrefix(c, "pgconsent=") {
			cookie = c
		}
	}
	for _, flag := range []string{"HttpOnly", "SameSite=Strict", "Path=/console/"} {
		if !strings.Contains(cookie, flag) {
			t.Errorf("the cookie %q has no %s", cookie, flag)
		}
	}
	if got.status != 303 || strings.Contains(cookie, tokens["subject:user-06"]) || strings.Contains(cookie, "Max-Age") {
		t.Errorf("%d, %q", got.status, cookie)
	}
	p.http.CheckRedirect = nil

	// After the user has signed out, a copy of the session's cookie is useless.
	u, err := url.Parse(p.base)
	if err != nil {
		t.Fatal(err)
	}
	oldCookies := p.http.Jar.Cookies(u)
	out := p.get("me").button(t, "Sign out")
	if got := p.submit(out); !strings.HasSuffix(got.path, "/login") {
		t.Errorf("signed out: %s", got.path)
	}
	p.http.Jar.SetCookies(u, oldCookies)
	if got := p.get("me"); !strings.HasSuffix(got.path, "/login") {
		t.Errorf("the old cookie opens %s", got.path)
	}
}

// A session of the console ends when its token is revoked.
func TestRevokedToken(t *testing.T) {
	running(t)
	path := filepath.Join(started.dir, "tokens.yaml")
	tokens, err := identity.ReadTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	p := signInAs(t, "subject:user-07")
	withdraw := p.get("me").button(t, "Withdraw consent")
	for _, token := range tokens {
		if token.Subject == "user-07" {
			if err := identity.RevokeToken(path, token.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := p.submit(withdraw); !strings.HasSuffix(got.path, "/login") {
		t.Errorf("a revoked token changes something: %d %s", got.status, got.path)
	}
	p.get("me").says(t, "Your token")
	if rows(t, "assistant", "user-07") != 3 {
		t.Error("the consent was withdrawn by a token that was revoked before")
	}
}

var paths = map[string][]string{
	"":                  {"login"},
	"subject:" + script: {"me", "me/seen", "me/history"},
	"subject:" + image:  {"me", "me/seen", "me/history"},
	"subject:" + braces: {"me", "me/seen", "me/history"},
	"admin":             {"people", "pending", "why", "nowhere"},
	"operator":          {"operations", "people"},
}

// Ids, reasons and names of tables appear on pages as text and not as markup. No address contains them.
func TestMarkupIsText(t *testing.T) {
	for _, id := range []string{script, image, braces} {
		p := signInAs(t, "subject:"+id)
		askForm := p.get("me").button(t, "Ask for a partnership")
		askForm.fields.Set("reason", "</p><script>alert(2)</script>"+id)
		p.submit(askForm).says(t, "You have asked for a partnership", id)
		rows(t, "assistant", id)
	}
	handler := regexp.MustCompile(`(?i)<[a-z][^<>]*\son[a-z]+=[^<>]*>`)
	address := regexp.MustCompile(`(?:href|action|src)="([^"]*)"`)
	checkNoMarkup := func(description string, got page) {
		t.Helper()
		for _, markup := range []string{"<script", "<img src=x", "onerror=alert(1)>", "<i>notes", "style=\"", "<style",
			"javascript:alert(1)//'\""} {
			if strings.Contains(got.body, markup) {
				t.Errorf("%s: %s has %q:\n%s", description, got.path, markup, got.body)
			}
		}
		if m := handler.FindString(got.body); m != "" {
			t.Errorf("%s: %s has a handler: %s", description, got.path, m)
		}
		for _, m := range address.FindAllStringSubmatch(got.body, -1) {
			if !strings.HasPrefix(m[1], "/console/") && m[1] != "#content" || strings.ContainsAny(m[1], "?<%{") {
				t.Errorf("%s: %s leads to %q", description, got.path, m[1])
			}
		}
	}
	for role, list := range paths {
		p := consoleRoles(t)
		if role != "" {
			p = signInAs(t, role)
		}
		for _, path := range list {
			checkNoMarkup(role, p.get(path))
		}
		if role != "admin" {
			continue
		}
		people := p.get("people")
		people.says(t, script, image)
		for _, m := range regexp.MustCompile(`href="/console/(person/[^"]+)"`).FindAllStringSubmatch(people.body, -1)[:7] {
			personPage := p.get(m[1])
			if personPage.status != 200 {
				t.Errorf("%s: %d", m[1], personPage.status)
			}
			checkNoMarkup("a person", personPage)
			checkNoMarkup("why", p.submit(personPage.button(t, "Why?")))
		}
		p.get("pending").says(t, script, image, braces)
		search := people.button(t, "Search")
		search.fields.Set("text", `"><script>`)
		checkNoMarkup("search", p.submit(search))
	}
}

// Every response has the security headers, also refusals and static files.
func TestHeaders(t *testing.T) {
	check := func(description string, got page, status int) {
		t.Helper()
		if got.status != status {
			t.Errorf("%s: %d, want %d", description, got.status, status)
		}
		policy := got.header.Get("Content-Security-Policy")
		for _, directive := range []string{"default-src 'none'", "style-src 'self'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"} {
			if !strings.Contains(policy, directive) {
				t.Errorf("%s: the policy is %q", description, policy)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "script-src") {
			t.Errorf("%s: the policy is %q", description, policy)
		}
		for name, value := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got.header.Get(name) != value {
				t.Errorf("%s: %s is %q", description, name, got.header.Get(name))
			}
		}
		if c := got.header.Get("Cache-Control"); c != "no-store" && !strings.HasSuffix(description, ".css") &&
			!strings.HasSuffix(description, ".svg") {
			t.Errorf("%s: Cache-Control is %q", description, c)
		}
		if got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: other origins may read it", description)
		}
	}
	p := consoleRoles(t)
	for path, status := range map[string]int{"": 200, "login": 200, "me": 200, "nowhere": 404, "console.css": 200,
		"icon.svg": 200, "pages/page.html": 404, "me/withdraw": 405, "../v1": 404, "login/": 404} {
		if path == "../v1" {
			continue // the response is from the API, not from the console
		}
		check(path, p.get(path), status)
	}
	for _, method := range []string{"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"} {
		for _, path := range []string{"me", "login", "people"} {
			got := p.do(p.request(method, path, nil))
			check(method+" "+path, got, 405)
			if got.header.Get("Allow") == "" {
				t.Errorf("%s %s: nothing is said to be allowed", method, path)
			}
		}
	}
	ada := signInAs(t, "subject:user-08")
	check("me", ada.get("me"), 200)
	f := ada.get("me").button(t, "Download as JSON")
	f.fields.Set("format", "pdf")
	check("report", ada.submit(f), 400)
	f.fields.Set("format", "json")
	check("report", ada.submit(f), 200)
	f.action, f.fields = "me/less", url.Values{"csrf": f.fields["csrf"], "to": {"PARTNERED"}}
	check("less", ada.submit(f), 422)
	f.action, f.fields = "me/give", url.Values{"csrf": f.fields["csrf"], "grantee": {"si:nobody"}}
	check("give", ada.submit(f), 404)
}

// Each call is recorded, and no record contains a person's name.
func TestCallsAreRecorded(t *testing.T) {
	p := signInAs(t, "subject:user-09")
	p.get("me")
	p.submit(p.get("me").button(t, "Withdraw consent"))
	p.get("people")
	signInAs(t, "admin").get("people")
	files, err := filepath.Glob(filepath.Join(started.dir, "audit", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var logText strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		logText.Write(text)
	}
	for _, want := range []string{`"face":"console"`, `"operation":"console.login"`, `"operation":"consent.status"`,
		`"operation":"consent.revoke"`, `"operation":"consent.people"`, `"outcome":"refused"`, `"everybody":true`} {
		if !strings.Contains(logText.String(), want) {
			t.Errorf("no record has %s", want)
		}
	}
	for _, id := range []string{"user-09", "ROWMARK", "csrf\":"} {
		if strings.Contains(logText.String(), id) {
			t.Errorf("a record has %q", id)
		}
	}
}
