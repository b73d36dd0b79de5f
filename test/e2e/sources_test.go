package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/demo"
	"github.com/pgconsent/pgconsent/test/demos"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// GET /api/v1/brain/sources/{source_id}, from a demo as a user starts it.
// seeds/004:50-54, 55-58, 59-62, 63, 82-84, 100, 129-131.
func TestSources(t *testing.T) {
	tier.All(t)
	demoRun := demos.StartDemo(t, "memberintel")
	const path, entry = "/api/v1/brain/sources/", "b0000000-0000-4000-8000-00000000000"
	getPage := func(user, path string) (int, http.Header, string) {
		t.Helper()
		request, err := http.NewRequest(http.MethodGet, demoRun.Access.HTTP+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if user != "" {
			request.Header.Set("Authorization", "Bearer "+demoRun.Access.Tokens[user])
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		if user == "agent:advisor" && strings.Contains(string(body)+fmt.Sprint(response.Header), "HIDDENMARK") { // the other user's rows have the marker
			t.Errorf("%s gets what is hidden: %s", path, body)
		}
		return response.StatusCode, response.Header, string(body)
	}

	// seeds/004:59 exactly these members; :60 the body without its first line; SYSTEMS 5e.
	for _, urlPath := range []string{path, "/v1/sources/"} {
		status, header, text := getPage("agent:advisor", urlPath+entry+"1")
		want := `{"id":"` + entry + `1","collection":"playbooks","title":"The first thirty days","category":"onboarding","last_reviewed":"2026-05-01",` +
			`"body":"Write to a new member on the first day, the third and the tenth. BODYMARK0001\nAsk one question in each letter. BODYMARK0001"}` + "\n"
		if status != 200 || text != want || header.Get("Cache-Control") != "private" || header.Get("Content-Type") != "application/json" {
			t.Errorf("%d %v %s", status, header, text)
		}
	}
	// seeds/004:55-58 the user's own source is found. Another tenant's, a missing one and an invalid id get the same 404,
	// in bytes and headers.
	if status, _, text := getPage("agent:advisor", path+entry+"2"); status != 200 || !strings.Contains(text, "BODYMARK0002") {
		t.Errorf("%d %s", status, text)
	}
	if status, _, text := getPage("agent:coach", path+entry+"3"); status != 200 || strings.Contains(text, `"null"`) {
		t.Errorf("%d %s", status, text)
	}
	var firstAnswer string
	for _, id := range []string{entry + "3", "99999999-9999-4999-8999-999999999999", "x", "", "..%2f", "%ff",
		"1/2", entry + "1%00", strings.Repeat("a", 3000), entry + "1x", "'or'1'='1", "00000000-0000-0000-0000-000000000000"} {
		status, header, text := getPage("agent:advisor", path+id)
		header.Del("Date")
		got := fmt.Sprint(status, header, text)
		if firstAnswer == "" {
			firstAnswer = got
		}
		if status != 404 || got != firstAnswer {
			t.Errorf("%q: %s\nwant %s", id, got, firstAnswer)
		}
	}
	// Without a token the answer is always 401, whether the id exists or not; other roles get 403.
	for _, id := range []string{entry + "1", entry + "3", "x"} {
		if status, _, _ := getPage("", path+id); status != 401 {
			t.Errorf("%q without a token: %d", id, status)
		}
		if status, _, _ := getPage("admin", path+id); status != 403 {
			t.Errorf("%q for an admin: %d", id, status)
		}
	}
	if status, _, _ := getPage("agent:advisor", "/api/v1/brain/other"); status != 404 {
		t.Error(status)
	}

	// A value that is not a string is null, and not converted to text: seeds/004:61, SYSTEMS 5b.
	for _, field := range []string{"title", "category", "last_reviewed"} {
		nullCount := 0
		for _, id := range ownerColumn(t, demoRun,
			"SELECT id FROM brain_entries WHERE tenant_id = 'global' AND (metadata IS NULL OR "+
				"jsonb_typeof(metadata) <> 'object' OR jsonb_typeof(metadata->'"+field+"') <> 'string') ORDER BY md5(id::text) LIMIT 6") {
			status, _, text := getPage("agent:coach", path+id)
			var body map[string]any
			value, isPresent := any(nil), false
			err := json.Unmarshal([]byte(text), &body)
			if value, isPresent = body[field]; status != 200 || err != nil || value != nil || !isPresent ||
				strings.Contains(text, `"None"`) || strings.Contains(text, `"null"`) {
				t.Errorf("%s: %d %s", field, status, text)
				continue
			}
			if got := slices.Sorted(maps.Keys(body)); fmt.Sprint(got) != "[body category collection id last_reviewed title]" {
				t.Errorf("%v", got)
			}
			nullCount++
		}
		if nullCount == 0 {
			t.Errorf("no entry of the world has a %s that is no string", field)
		}
	}

	// seeds/004:60: the body is the rest after the title, which may be empty.
	owner := harness.Connect(t, demoRun.Access.OwnerDSN)
	for storedContent, want := range map[string]string{
		`E'# A title\n\nOne line.\n\n# Another\nand more\n'`: "One line.\n\n# Another\nand more\n",
		`E'# A title\r\n\r\nOne line.'`:                      "One line.", `E'# A title\n  indented'`: "  indented",
		`'# A title'`: "", `E'# A title\n'`: "", `''`: "", `NULL`: "",
	} {
		harness.Ask(owner, "UPDATE brain_entries SET content = "+storedContent+" WHERE id = '"+entry+"1'")
		status, _, text := getPage("agent:coach", path+entry+"1")
		var body struct{ Body *string }
		if err := json.Unmarshal([]byte(text), &body); status != 200 || err != nil || body.Body == nil || *body.Body != want {
			t.Errorf("%s: %d %s", storedContent, status, text)
		}
	}

	// seeds/004:63: sources can be read, and not changed.
	before := ownerColumn(t, demoRun, "SELECT md5(string_agg(b::text, '' ORDER BY id)) FROM brain_entries b")
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		request, err := http.NewRequest(method, demoRun.Access.HTTP+path+entry+"1", strings.NewReader(`{"title":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+demoRun.Access.Tokens["agent:advisor"])
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != 405 || response.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d %v", method, response.StatusCode, response.Header)
		}
	}
	if after := ownerColumn(t, demoRun, "SELECT md5(string_agg(b::text, '' ORDER BY id)) FROM brain_entries b"); after[0] != before[0] {
		t.Error("an entry has changed")
	}

	// SQL and HTTP share one limit, which missing ids count for: 429, and when to try again. SYSTEMS 5c.
	c := harness.Connect(t, dsnOf(demoRun, "member_ui"))
	// One more fetch is allowed each second, so that on a slow machine a round may still succeed.
	var status, retryAfter int
	for round := 0; round < 20 && status != 429; round++ {
		isExhausted := false
		for i := 0; i < 200 && !isExhausted; i++ {
			isExhausted = harness.Ask(c, fmt.Sprintf("SELECT content FROM brain_entries WHERE id = '99999999-9999-4999-8999-0000000000%02d'", i)).Code == limitExhausted
		}
		if !isExhausted {
			t.Fatal("200 entries by their keys do not use up the limit")
		}
		var header http.Header
		status, header, _ = getPage("agent:advisor", path+entry+"1")
		retryAfter, _ = strconv.Atoi(header.Get("Retry-After"))
	}
	if status != 429 || retryAfter < 1 {
		t.Errorf("what SQL has used up, HTTP has: %d, Retry-After %d", status, retryAfter)
	}
	if status, _, _ := getPage("agent:coach", path+entry+"3"); status != 200 {
		t.Errorf("another user has %d", status)
	}
}

// ownerColumn returns one column of a query that the owner runs.
func ownerColumn(t *testing.T, demoRun *demo.RunningDemo, sql string) []string {
	t.Helper()
	return harness.Ask(harness.Connect(t, demoRun.Access.OwnerDSN), sql).Results[0].Rows
}

func dsnOf(demoRun *demo.RunningDemo, agent string) string {
	for _, a := range demoRun.Access.Agents {
		if a.Name == agent {
			return a.DSN
		}
	}
	return ""
}
