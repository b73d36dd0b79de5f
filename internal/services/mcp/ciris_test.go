package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pgconsent/pgconsent/test/tier"
)

// The world ciris over MCP: its tools. A partnership needs both sides, and a downgrade only one.
// seeds/001:69-78, 123-138, 303-328.
func TestCiris(t *testing.T) {
	tier.All(t)
	f := serveWorld(t, "ciris")
	owner := f.sql(t, f.demo.Access.OwnerDSN)
	subject := func(stream string, n int) string {
		var id string
		if err := owner.QueryRow(t.Context(),
			"SELECT user_id FROM users WHERE stream = $1 ORDER BY user_id OFFSET $2 LIMIT 1", stream, n).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	agent := f.as(t, "agent:assistant")
	rows := func(user string) string {
		a := ask(t, agent, "query", args{"sql": "SELECT id FROM interactions WHERE user_id = $1", "parameters": []any{user}})
		if a.hasFailed {
			t.Errorf("rows of %s: %s", user, a.text)
		}
		return fmt.Sprint(a.member["row_count"])
	}

	t.Run("tools", func(t *testing.T) {
		change := []string{"consent_grant", "consent_revoke", "degrade_relationship", "upgrade_relationship"}
		for role, want := range map[string][]string{
			"subject:" + subject("TEMPORARY", 0): append(slices.Clone(change[:2]), "consent_status",
				"degrade_relationship", "interaction_end", "interaction_session", "track_interaction", "upgrade_relationship"),
			"admin":    {"consent_status"},
			"system":   {"consent_status", "interaction_end", "interaction_session", "track_interaction"},
			"operator": nil,
			"agent:companion": {"consent_status", "interaction_end", "interaction_session", "list_tables",
				"partnership_decide", "partnership_pending", "query", "track_interaction"},
		} {
			if got := toolNames(t, f.as(t, role)); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", role, got, want)
			}
		}
	})

	t.Run("status", func(t *testing.T) {
		ada := subject("TEMPORARY", 1)
		s := f.as(t, "subject:"+ada)
		for _, in := range []args{{}, {"user_id": ada}} {
			a := ask(t, s, "consent_status", in)
			if a.member["user_id"] != ada || a.member["stream"] != "TEMPORARY" ||
				fmt.Sprint(a.member["categories"]) != "[ESSENTIAL]" || a.member["state"] != "given" {
				t.Errorf("%s", a.text)
			}
			for _, timeMember := range []string{"granted_at", "expires_at", "last_modified"} {
				if _, err := time.Parse(time.RFC3339, fmt.Sprint(a.member[timeMember])); err != nil {
					t.Errorf("%s: %v", timeMember, err)
				}
			}
		}
		if a := ask(t, f.as(t, "subject:"+subject("PARTNERED", 0)), "consent_status",
			nil); a.member["expires_at"] != nil || !strings.Contains(a.text, `"expires_at":null`) {
			t.Errorf("what does not expire: %s", a.text)
		}
		otherAnswer := ask(t, s, "consent_status", args{"user_id": subject("TEMPORARY", 2)})
		if nobodyAnswer := ask(t, s, "consent_status", args{"user_id": "nobody"}); nobodyAnswer.text != otherAnswer.text ||
			!strings.HasPrefix(otherAnswer.text, "ERROR 42501") {
			t.Errorf("another user: %s; nobody: %s", otherAnswer.text, nobodyAnswer.text)
		}
		if a := ask(t, f.as(t, "subject:newcomer"), "consent_status", nil); !strings.HasPrefix(a.text, "ERROR PC404: ConsentNotFoundError: ") {
			t.Errorf("nothing recorded: %s", a.text)
		}
		admin := f.as(t, "admin")
		if a := ask(t, admin, "consent_status", args{"user_id": ada}); a.member["stream"] != "TEMPORARY" {
			t.Errorf("admin: %s", a.text)
		}
		if _, err := admin.CallTool(t.Context(), &sdk.CallToolParams{Name: "consent_revoke", Arguments: args{"user_id": ada}}); err == nil {
			t.Error("an admin changes a consent")
		}
	})

	t.Run("partnership", func(t *testing.T) {
		bea := subject("TEMPORARY", 3)
		s := f.as(t, "subject:"+bea)
		a := ask(t, s, "upgrade_relationship", args{"user_id": bea, "reason": "we work together"})
		if a.hasFailed || a.member["stream"] != "TEMPORARY" || a.member["task"] == nil {
			t.Errorf("asked: %s", a.text)
		}
		// With one credential it is not possible both to request a partnership and to decide about it.
		for _, c := range []struct {
			role *sdk.ClientSession
			tool string
			in   args
		}{
			{s, "partnership_decide", args{"user_id": bea, "decision": "TASK_COMPLETE"}},
			{agent, "upgrade_relationship", args{"user_id": bea, "reason": "please"}},
			{agent, "consent_grant", args{"user_id": bea, "stream": "PARTNERED"}},
			{f.as(t, "system"), "partnership_decide", args{"user_id": bea, "decision": "TASK_COMPLETE"}},
			{f.as(t, "admin"), "partnership_decide", args{"user_id": bea, "decision": "TASK_COMPLETE"}},
		} {
			if r, err := c.role.CallTool(t.Context(), &sdk.CallToolParams{Name: c.tool, Arguments: c.in}); err == nil {
				t.Errorf("%s: %v", c.tool, r.StructuredContent)
			}
		}
		// An empty argument is an error. It does not mean everybody, everything or the caller, as a missing argument may.
		for tool, in := range map[string]args{
			"consent_grant": {"grantee": "si:vet", "scope": "", "purposes": []string{"care"}}, "consent_revoke": {
				"grantee": ""}, "consent_status": {"user_id": ""},
			"upgrade_relationship": {"user_id": "", "reason": "x"},
		} {
			if a := ask(t, s, tool, in); !strings.HasPrefix(a.text, "ERROR 22023") || !strings.Contains(a.text, "is empty") {
				t.Errorf("%s of %v: %s", tool, in, a.text)
			}
		}
		if a := ask(t, agent, "partnership_pending", nil); !strings.Contains(a.text, bea) {
			t.Errorf("pending: %s", a.text)
		}
		if a := ask(t, agent, "partnership_decide", args{"user_id": bea, "decision": "MAYBE"}); !strings.HasPrefix(a.text, "ERROR 22023") {
			t.Errorf("an unknown decision: %s", a.text)
		}
		if a := ask(t, agent, "partnership_decide", args{"user_id": bea, "decision": "DEFER"}); a.hasFailed || a.member["task"] == nil {
			t.Errorf("deferred: %s", a.text)
		}
		a = ask(t, agent, "partnership_decide", args{"user_id": bea, "decision": "TASK_COMPLETE", "reason": "gladly"})
		if a.hasFailed || a.member["stream"] != "PARTNERED" {
			t.Errorf("decided: %s", a.text)
		}
		if a := ask(t, s, "consent_status", nil); a.member["stream"] != "PARTNERED" ||
			a.member["expires_at"] != nil || len(a.member["categories"].([]any)) != 3 {
			t.Errorf("afterwards: %s", a.text)
		}
		// An agent gets the same error for a user without a request and for a user who does not exist.
		first := ask(t, agent, "partnership_decide", args{"user_id": subject("TEMPORARY", 4), "decision": "REJECT"})
		if second := ask(t, agent, "partnership_decide",
			args{"user_id": "nobody", "decision": "REJECT"}); first.text != second.text || !strings.HasPrefix(first.text, "ERROR PC404") {
			t.Errorf("%s, and %s", first.text, second.text)
		}
	})

	t.Run("degrade", func(t *testing.T) {
		cy := subject("PARTNERED", 1)
		s := f.as(t, "subject:"+cy)
		if rows(cy) == "0" {
			t.Fatal("nothing shows of a partner")
		}
		if a := ask(t, s, "degrade_relationship", args{"user_id": cy, "target_stream": "PARTNERED"}); !strings.HasPrefix(a.text, "ERROR 22023") {
			t.Errorf("to PARTNERED: %s", a.text)
		}
		if a := ask(t, s, "degrade_relationship", args{"user_id": cy, "target_stream": "ANONYMOUS"}); a.hasFailed || a.member["stream"] != "ANONYMOUS" {
			t.Errorf("%s", a.text)
		}
		if a := ask(t, s, "degrade_relationship",
			args{"user_id": cy, "target_stream": "TEMPORARY"}); !strings.HasPrefix(a.text, "ERROR PC422: ConsentValidationError: ") {
			t.Errorf("back: %s", a.text)
		}
		otherAnswer := ask(t, s, "degrade_relationship", args{"user_id": subject("PARTNERED", 2), "target_stream": "TEMPORARY"})
		if nobodyAnswer := ask(t, s, "degrade_relationship",
			args{"user_id": "nobody", "target_stream": "TEMPORARY"}); nobodyAnswer.text != otherAnswer.text || !strings.HasPrefix(otherAnswer.text, "ERROR 42501") {
			t.Errorf("another user: %s; nobody: %s", otherAnswer.text, nobodyAnswer.text)
		}
	})

	t.Run("grant and revoke", func(t *testing.T) {
		di := subject("TEMPORARY", 5)
		s := f.as(t, "subject:"+di)
		if rows(di) == "0" {
			t.Fatal("nothing shows of a user")
		}
		if a := ask(t, s, "consent_revoke", args{}); a.hasFailed || a.member["state"] != "withdrawn" || rows(di) != "0" {
			t.Errorf("withdrawn: %s, and %s rows", a.text, rows(di))
		}
		if a := ask(t, s, "consent_grant", args{"stream": "TEMPORARY", "request": "k1"}); a.hasFailed || a.member["state"] != "given" {
			t.Errorf("given: %s", a.text)
		}
		before := ask(t, s, "consent_status", nil).member["last_modified"]
		if a := ask(t, s, "consent_grant", args{"stream": "TEMPORARY", "request": "k1"}); a.hasFailed ||
			ask(t, s, "consent_status", nil).member["last_modified"] != before {
			t.Errorf("the same request again: %s", a.text)
		}
		if a := ask(t, s, "consent_grant", args{"stream": "TEMPORARY", "categories": []any{"BEHAVIORAL"}}); !strings.HasPrefix(a.text, "ERROR PC422") {
			t.Errorf("more than the stream allows: %s", a.text)
		}
		if a := ask(t, s, "consent_grant", args{"grantee": "si:vet", "scope": "ctx:bella_health",
			"purposes": []any{"care"}, "duration_days": 30}); a.hasFailed || a.member["grantee"] != "si:vet" {
			t.Errorf("to one: %s", a.text)
		}
		if a := ask(t, s, "consent_status", nil); !strings.Contains(a.text, `"grantee":"si:vet"`) || a.member["stream"] != "TEMPORARY" {
			t.Errorf("both: %s", a.text)
		}
		if a := ask(t, s, "consent_grant", args{"grantee": "", "scope": "ctx:walks",
			"purposes": []any{"care"}}); !strings.HasPrefix(a.text, "ERROR 22023") {
			t.Errorf("an empty grantee: %s", a.text)
		}
		if a := ask(t, s, "consent_grant", args{}); !strings.HasPrefix(a.text, "ERROR 22023") {
			t.Errorf("to nothing: %s", a.text)
		}
		if a := ask(t, s, "consent_grant", args{"user_id": "nobody", "stream": "TEMPORARY"}); !strings.HasPrefix(a.text, "ERROR 42501") {
			t.Errorf("for somebody else: %s", a.text)
		}
		if a := ask(t, s, "consent_grant", args{"stream": "PARTNERED"}); a.hasFailed || a.member["task"] == nil || a.member["stream"] != "TEMPORARY" {
			t.Errorf("PARTNERED: %s", a.text)
		}
	})

	// The members of results have the same names and times as over HTTP.
	t.Run("as over HTTP", func(t *testing.T) {
		flo := subject("TEMPORARY", 7)
		token := f.token(t, "subject:"+flo)
		s := f.connect(t, token)
		checkSameMembers := func(names ...string) {
			t.Helper()
			r, err := (&http.Client{Transport: bearer(token)}).Get(strings.TrimSuffix(f.url, "/mcp") + "/v1/consent/status")
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			var byHTTP map[string]any
			if err := json.NewDecoder(r.Body).Decode(&byHTTP); err != nil {
				t.Fatal(err)
			}
			byMCP := ask(t, s, "consent_status", nil).member
			for _, name := range append(names, "user_id", "stream", "categories", "state", "granted_at", "expires_at", "last_modified", "task") {
				if fmt.Sprint(byMCP[name]) != fmt.Sprint(byHTTP[name]) {
					t.Errorf("%s is %v by MCP and %v by HTTP", name, byMCP[name], byHTTP[name])
				}
			}
		}
		checkSameMembers()
		if a := ask(t, s, "upgrade_relationship", args{"user_id": flo, "reason": "x"}); a.member["task"].(map[string]any)["due_at"] == nil {
			t.Errorf("asked: %s", a.text)
		}
		checkSameMembers()
		if a := ask(t, agent, "partnership_pending", nil); !strings.Contains(a.text, `"due_at":`) || len(a.member["tasks"].([]any)) == 0 {
			t.Errorf("pending: %s", a.text)
		}
		if a := ask(t, s, "consent_revoke", nil); !strings.Contains(a.text, `"expires_at":null`) {
			t.Errorf("withdrawn: %s", a.text)
		}
		checkSameMembers()
		if a := ask(t, s, "consent_status", nil); a.member["state"] != "withdrawn" || !strings.Contains(a.text, `"expires_at":null`) {
			t.Errorf("withdrawn: %s", a.text)
		}
	})

	// No message of an agent renews a consent (SYSTEMS: n of this world).
	t.Run("interactions", func(t *testing.T) {
		ed := subject("TEMPORARY", 6)
		s := f.as(t, "subject:"+ed)
		before := ask(t, s, "consent_status", nil).text
		for range 3 {
			if a := ask(t, agent, "track_interaction", args{"user_id": ed, "channel_id": "api_1"}); a.hasFailed || a.member["reminder"] != nil {
				t.Errorf("%s", a.text)
			}
		}
		var remindedCount int
		for range 25 {
			if ask(t, s, "track_interaction", args{"user_id": ed, "channel_id": "api_2"}).member["reminder"] != nil {
				remindedCount++
			}
		}
		if remindedCount != 1 {
			t.Errorf("%d reminders in 25 messages", remindedCount)
		}
		// A user can show and end the user's own session of interactions. An agent can do so only with sessions that it has
		// reported.
		shownSession := ask(t, s, "interaction_session", args{"channel_id": "api_2"})
		if shownSession.hasFailed || shownSession.member["user_id"] != ed || shownSession.member["reminder_sent"] != true ||
			len(shownSession.member["message_timestamps"].([]any)) != 20 {
			t.Errorf("shown: %s", shownSession.text)
		}
		if a := ask(t, agent, "interaction_session", args{"user_id": ed, "channel_id": "api_2"}); !strings.HasPrefix(a.text, "ERROR 42704") {
			t.Errorf("to an agent that has not reported it: %s", a.text)
		}
		if a := ask(t, agent, "interaction_session", args{"user_id": ed, "channel_id": "api_1"}); len(a.member["message_timestamps"].([]any)) != 3 {
			t.Errorf("to the agent that has: %s", a.text)
		}
		if a := ask(t, s, "interaction_end", args{"user_id": "nobody", "channel_id": "api_2"}); !strings.HasPrefix(a.text, "ERROR 42501") {
			t.Errorf("another user's is ended: %s", a.text)
		}
		if a := ask(t, s, "interaction_end", args{"channel_id": "api_2"}); a.hasFailed || a.member["ended"] != true {
			t.Errorf("ended: %s", a.text)
		}
		for _, tool := range []string{"interaction_end", "interaction_session"} {
			if a := ask(t, s, tool, args{"channel_id": "api_2"}); !strings.HasPrefix(a.text, "ERROR 42704") {
				t.Errorf("%s of an ended session: %s", tool, a.text)
			}
		}
		if a := ask(t, s, "track_interaction", args{"user_id": "nobody", "channel_id": "api_1"}); !strings.HasPrefix(a.text, "ERROR 42501") {
			t.Errorf("another user's: %s", a.text)
		}
		if after := ask(t, s, "consent_status", nil).text; after != before {
			t.Errorf("%s became %s", before, after)
		}
	})
}
