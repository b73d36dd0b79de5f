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
	for _, at := range []string{path, "/v1/sources/"} {
		status, header, text := getPage("agent:advisor", at+entry+"1")
		want := `{"id":"` + entry + `1","collection":"playbooks","title":"The first thirty days","category":"onboarding","last_reviewed":"2026-05-01",` +
			`"body":"Write to a new member on the first day, the third and the tenth. BODYMARK0001\nAsk one question in each letter. BODYMARK0001"}` + "\n"
		if status != 200 || text != want || header.Get("Cache-Control") != "private" || header.Get("Content-Type") != "application/json" {
			t.Errorf("%d %v %s", status, header, text)
		}
	}
	// seeds/004:55-58 one's own, and 404 for everything else, in the same bytes, headers too: another tenant's row,
	// none, and no id.
	if status, _, text := getPage("agent:advisor", path+entry+"2"); status != 200 || !strings.Contains(text, "BODYMARK0002") {
		t.Errorf("%d %s", status, text)
	}
	if status, _, text := getPage("agent:coach", path+entry+"3"); status != 200 || strings.Contains(text, `"null"`) {
		t.Errorf("%d %s", status, text)
	}
	var first string
	for _, id := range []string{entry + "3", "99999999-9999-4999-8999-999999999999", "x", "", "..%2f", "%ff",
		"1/2", entry + "1%00", strings.Repeat("a", 3000), entry + "1x", "'or'1'='1", "00000000-0000-0000-0000-000000000000"} {
		status, header, text := getPage("agent:advisor", path+id)
		header.Del("Date")
		got := fmt.Sprint(status, header, text)
		if first == "" {
			first = got
		}
		if status != 404 || got != first {
			t.Errorf("%q: %s\nwant %s", id, got, first)
		}
	}
	// 401 without a token, before anything is looked at; other roles have no rows.
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

	// A value that is no string is null, never a text of it: seeds/004:61, SYSTEMS 5b.
	for _, field := range []string{"title", "category", "last_reviewed"} {
		nulls := 0
		for _, id := range oneColumn(t, demoRun,
			"SELECT id FROM brain_entries WHERE tenant_id = 'global' AND (metadata IS NULL OR "+
				"jsonb_typeof(metadata) <> 'object' OR jsonb_typeof(metadata->'"+field+"') <> 'string') ORDER BY md5(id::text) LIMIT 6") {
			status, _, text := getPage("agent:coach", path+id)
			var body map[string]any
			value, exists := any(nil), false
			err := json.Unmarshal([]byte(text), &body)
			if value, exists = body[field]; status != 200 || err != nil || value != nil || !exists ||
				strings.Contains(text, `"None"`) || strings.Contains(text, `"null"`) {
				t.Errorf("%s: %d %s", field, status, text)
				continue
			}
			if got := slices.Sorted(maps.Keys(body)); fmt.Sprint(got) != "[body category collection id last_reviewed title]" {
				t.Errorf("%v", got)
			}
			nulls++
		}
		if nulls == 0 {
			t.Errorf("no entry of the world has a %s that is no string", field)
		}
	}

	// seeds/004:60: what is left without the title, if that is anything.
	owner := harness.Connect(t, demoRun.Access.OwnerDSN)
	for stored, want := range map[string]string{
		`E'# A title\n\nOne line.\n\n# Another\nand more\n'`: "One line.\n\n# Another\nand more\n",
		`E'# A title\r\n\r\nOne line.'`:                      "One line.", `E'# A title\n  indented'`: "  indented",
		`'# A title'`: "", `E'# A title\n'`: "", `''`: "", `NULL`: "",
	} {
		harness.Ask(owner, "UPDATE brain_entries SET content = "+stored+" WHERE id = '"+entry+"1'")
		status, _, text := getPage("agent:coach", path+entry+"1")
		var body struct{ Body *string }
		if err := json.Unmarshal([]byte(text), &body); status != 200 || err != nil || body.Body == nil || *body.Body != want {
			t.Errorf("%s: %d %s", stored, status, text)
		}
	}

	// seeds/004:63: it is read, and nothing else.
	before := oneColumn(t, demoRun, "SELECT md5(string_agg(b::text, '' ORDER BY id)) FROM brain_entries b")
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
	if after := oneColumn(t, demoRun, "SELECT md5(string_agg(b::text, '' ORDER BY id)) FROM brain_entries b"); after[0] != before[0] {
		t.Error("an entry has changed")
	}

	// SQL and HTTP use up one limit, misses counted: 429, and when to come again. SYSTEMS 5c.
	c := harness.Connect(t, dsnOf(demoRun, "member_ui"))
	// The allowance comes back by the second: on a slow machine a round may find one that has just done so.
	var status, wait int
	for round := 0; round < 20 && status != 429; round++ {
		spent := false
		for i := 0; i < 200 && !spent; i++ {
			spent = harness.Ask(c, fmt.Sprintf("SELECT content FROM brain_entries WHERE id = '99999999-9999-4999-8999-0000000000%02d'", i)).Code == limitExhausted
		}
		if !spent {
			t.Fatal("200 entries by their keys do not use up the limit")
		}
		var header http.Header
		status, header, _ = getPage("agent:advisor", path+entry+"1")
		wait, _ = strconv.Atoi(header.Get("Retry-After"))
	}
	if status != 429 || wait < 1 {
		t.Errorf("what SQL has used up, HTTP has: %d, Retry-After %d", status, wait)
	}
	if status, _, _ := getPage("agent:coach", path+entry+"3"); status != 200 {
		t.Errorf("another user has %d", status)
	}
}

// oneColumn is one column as the owner sees it.
func oneColumn(t *testing.T, demoRun *demo.RunningDemo, sql string) []string {
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
