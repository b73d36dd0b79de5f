package mcp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// An agent's client uses the tools for memories in one session.
// seeds/003:143-148, 199-207, 208-213.
func TestMCPPrivacy(t *testing.T) {
	f := runFace(t, "kernle")
	ash, bella, sean, rex, vet := f.as(t, "agent:ash"), f.as(t, "agent:bella"), f.as(t, "agent:sean"), f.as(t, "agent:rex"), f.as(t, "agent:vet")
	names := toolNames(t, ash)
	for _, name := range []string{"memory_episode", "memory_belief", "memory_note", "memory_raw", "memory_generalize",
		"context_enter", "context_leave", "context_list", "privacy_audit", "privacy_grant", "privacy_revoke", "consent_grant", "consent_revoke", "query"} {
		if i := slices.Index(names, name); i < 0 || slices.Contains(names[i+1:], name) {
			t.Errorf("tool %s is there not once: %q", name, names)
		}
	}
	list := func(a answered, member string) string {
		text, _ := json.Marshal(a.member[member])
		return string(text)
	}
	refused := func(a answered, code string) {
		t.Helper()
		if got, _, hint := a.fault(); !a.failed || got != code || hint == "" {
			t.Errorf("%s, want %s with a hint", a.text, code)
		}
		if strings.Contains(a.text, "HIDDENMARK") {
			t.Error(a.text)
		}
	}
	made := ask(t, ash, "memory_raw", args{"content": "Bella has a heart murmur",
		"subject_ids": []string{"dog:bella"}, "source": "human:sean", "access_grants": []string{"human:sean"}})
	if made.failed || list(made, "access_grants") != `["human:sean"]` || made.member["source_entity"] != "human:sean" {
		t.Fatalf("made %s", made.text)
	}
	// With a request key, a memory is created once over all sessions. The same key with another change, or a malformed
	// key, is refused.
	keyed := args{"content": "Bella limps", "subject_ids": []string{"dog:bella"}, "request_key": "0b7c-1"}
	once := ask(t, ash, "memory_note", keyed)
	ash = f.as(t, "agent:ash") // with a new token of the same name
	twice := ask(t, ash, "memory_note", keyed)
	if once.failed || once.member["repeated"] != nil || twice.failed || twice.member["repeated"] != true ||
		once.member["id"] != twice.member["id"] || list(once, "subject_ids") != list(twice, "subject_ids") {
		t.Errorf("made %s, again %s", once.text, twice.text)
	}
	if got := list(ask(t, ash, "query", args{"sql": "SELECT count(*) FROM notes WHERE content = 'Bella limps'"}),
		"rows"); got != "[[1]]" && got != `[["1"]]` {
		t.Errorf("it was made %s times", got)
	}
	refused(ask(t, ash, "memory_note", args{"content": "Bella runs", "request_key": "0b7c-1"}), "PC409")
	refused(ask(t, ash, "memory_episode", keyed), "PC409")
	refused(ask(t, ash, "memory_note", args{"content": "x", "request_key": strings.Repeat("k", 201)}), "22023")
	if other := ask(t, rex, "memory_note", args{"content": "mine", "request_key": "0b7c-1"}); strings.Contains(
		other.text, "PC409") || other.member["repeated"] != nil {
		t.Errorf("a key of another caller's: %s", other.text)
	}
	refused(ask(t, ash, "memory_note", args{"content": "", "request_key": "0b7c-2"}), "PC422")
	if put := ask(t, ash, "memory_note", args{"content": "put right", "request_key": "0b7c-2"}); put.failed {
		t.Errorf("after a refusal: %s", put.text)
	}

	// A context is entered for the session: memories that it grants become visible, and new memories get its grants.
	seen := func() string {
		a := ask(t, bella, "query", args{"sql": "SELECT id FROM episodes WHERE id = 'episode:1002'"})
		return list(a, "rows")
	}
	if seen() != "[]" {
		t.Error("without the context")
	}
	entered := ask(t, bella, "context_enter", args{"context": "ctx:bella_health", "role": "care_agent"})
	if entered.failed || entered.member["role_held"] != false ||
		list(entered, "default_access_grants") != `["human:sean","si:bella_agent","ctx:bella_health"]` {
		t.Errorf("entered %s", entered.text)
	}
	if seen() == "[]" {
		t.Error("in the context")
	}
	told := ask(t, bella, "memory_episode", args{"content": "She sleeps well"})
	if told.failed || list(told, "access_grants") != `["human:sean","si:bella_agent","ctx:bella_health"]` ||
		told.member["store"] != "ash" || told.member["source_entity"] != "si:bella_agent" {
		t.Errorf("made %s", told.text)
	}
	if left := ask(t, bella, "context_leave", args{}); left.failed || seen() != "[]" {
		t.Error("after the context")
	}
	refused(ask(t, vet, "context_enter", args{"context": "ctx:bella_health"}), "PC404")
	refused(ask(t, vet, "context_enter", args{"context": "ctx:none"}), "PC404")
	refused(ask(t, bella, "context_enter", args{"context": "ctx:bella_health", "participants": []string{"si:mallory"}}), "42501")

	// A guardian consents, the consent allows a grant, and the audit shows who sees the memory.
	refused(ask(t, ash, "privacy_grant", args{"id": made.member["id"], "who": []string{"si:rex"}}), "42501")
	refused(ask(t, ash, "consent_grant", args{"grantor": "human:sean", "grantee": "si:rex"}), "42501")
	given := ask(t, sean, "consent_grant", args{"grantor": "human:sean", "grantee": "si:rex", "scope": "*", "store": "ash", "reason": "a walk"})
	if given.failed || given.member["grantor"] != "human:sean" {
		t.Fatalf("given %s", given.text)
	}
	if granted := ask(t, ash, "privacy_grant",
		args{"id": made.member["id"], "who": []string{"si:rex"}, "reason": "for the walk"}); granted.failed || list(granted, "granted") != `["si:rex"]` {
		t.Fatalf("granted %s", granted.text)
	}
	audit := ask(t, sean, "privacy_audit", args{"id": made.member["id"]})
	for _, part := range []string{`"entity":"si:rex"`, `"record":"` + given.member["id"].(string) + `"`, `"reason":"for the walk"`} {
		if !strings.Contains(strings.ReplaceAll(audit.text, `": "`, `":"`), part) {
			t.Errorf("the audit lacks %s: %s", part, audit.text)
		}
	}
	if got := list(ask(t, rex, "query", args{"sql": "SELECT content FROM raw_entries WHERE id = $1",
		"parameters": []any{made.member["id"]}}), "rows"); !strings.Contains(got, "heart murmur") {
		t.Errorf("si:rex sees %s", got)
	}
	if taken := ask(t, sean, "consent_revoke", args{"id": given.member["id"]}); taken.failed {
		t.Errorf("taken %s", taken.text)
	}
	if got := list(ask(t, rex, "query", args{"sql": "SELECT content FROM raw_entries WHERE id = $1",
		"parameters": []any{made.member["id"]}}), "rows"); got != "[]" {
		t.Errorf("si:rex sees %s", got)
	}
	refused(ask(t, rex, "privacy_audit", args{"id": made.member["id"]}), "PC404")
	refused(ask(t, rex, "privacy_audit", args{"subject": "dog:bella"}), "PC404")
	if subject := ask(t, f.as(t, "subject:dog:bella"), "privacy_audit", args{"subject": "dog:bella"}); subject.failed {
		t.Errorf("the subject: %s", subject.text)
	}

	// A belief from a private memory is refused if it names the dog. Otherwise it is made, once.
	learned := args{"source": made.member["id"], "belief": "Heart murmurs in small breeds need exercise monitoring",
		"access_grants": []string{"*"}, "abstraction_note": "Of the breed."}
	named := args{"source": made.member["id"], "belief": "Small breeds like Béllа need monitoring"}
	blocked := ask(t, ash, "memory_generalize", named)
	if refused(blocked, "PC422"); !strings.Contains(blocked.text, "PrivacyBlockedError") || !strings.Contains(blocked.text, "block") {
		t.Errorf("blocked: %s", blocked.text)
	}
	if named["check"] = true; !strings.Contains(list(ask(t, ash, "memory_generalize", named), "report"), `"verdict":"blocked"`) {
		t.Error("judged")
	}
	first, again := ask(t, ash, "memory_generalize", learned), ask(t, ash, "memory_generalize", learned)
	if first.failed || first.member["made"] != true || again.member["repeated"] != true || list(first, "memory") != list(again, "memory") {
		t.Errorf("made %s, again %s", first.text, again.text)
	}
	if got := list(ask(t, rex, "query", args{
		"sql": "SELECT content FROM beliefs WHERE content LIKE 'Heart murmurs in small breeds%' AND id NOT LIKE " +
			"'belief:1004'"}), "rows"); !strings.Contains(got, "monitoring") {
		t.Errorf("si:rex sees %s", got)
	}
	if got := list(ask(t, rex, "query", args{"sql": "SELECT * FROM generalizations"}), "rows"); got != "[]" {
		t.Errorf("si:rex sees %s", got)
	}
	refused(ask(t, rex, "memory_generalize", learned), "PC404")
	for _, bad := range []args{{"content": ""}, {"content": "x", "subject_ids": []string{`["x"]`}},
		{"content": "x", "access_grants": []string{"a b"}}, {"content": "x", "context": "ctx:'"}} {
		refused(ask(t, ash, "memory_episode", bad), "PC422")
	}
	refused(ask(t, ash, "memory_episode", args{"content": "x", "access_grants": "human:sean"}), "22023")

	tutored(t, f)

	// A refused call is recorded as one that would have changed something, as in every service.
	refusals := 0
	files, err := filepath.Glob(filepath.Join(f.config.Audit.File, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, `"tool memory_episode"`) && strings.Contains(line, `"refused"`) {
				if refusals++; !strings.Contains(line, `"written":true`) {
					t.Errorf("recorded: %s", line)
				}
			}
		}
	}
	if refusals == 0 {
		t.Errorf("no refusal is recorded in %q", files)
	}
}

// tutored plays the seed's last example: a tutor notes something in an academic context, and a parent lets a specialist
// see it. seeds/003:199-213.
func tutored(t *testing.T, f *face) {
	t.Helper()
	tutor, other, parent, specialist := f.as(t, "agent:tutor_a"), f.as(t, "agent:tutor_b"), f.as(t, "agent:parent"), f.as(t, "agent:specialist")
	const academic = "ctx:student_123_academic"
	list := func(a answered, member string) string {
		text, _ := json.Marshal(a.member[member])
		return string(text)
	}
	entered := ask(t, tutor, "context_enter", args{
		"context": academic, "participants": []string{"human:parent_456", "si:school_agent"}, "role": "role:tutor"})
	if entered.failed || entered.member["role_held"] != true || entered.member["created"] != false || list(entered, "added") != "[]" {
		t.Fatalf("entered %s", entered.text)
	}
	noted := ask(t, tutor, "memory_raw", args{"content": "Student struggling with algebra concepts",
		"subject_ids": []string{"human:student_123"}, "access_grants": []string{academic}})
	if noted.failed || list(noted, "access_grants") != `["`+academic+`"]` || noted.member["source_entity"] != nil ||
		noted.member["store"] != "student_123" {
		t.Fatalf("noted %s", noted.text)
	}
	sees := func(s *sdk.ClientSession) bool {
		t.Helper()
		return list(ask(t, s, "query", args{"sql": "SELECT content FROM raw_entries WHERE id = $1",
			"parameters": []any{noted.member["id"]}}), "rows") == `[["Student struggling with algebra concepts"]]`
	}
	if sees(parent) || sees(other) || sees(specialist) || !sees(tutor) {
		t.Error("outside of the context others see it, or its owner does not")
	}
	for _, s := range []*sdk.ClientSession{parent, other} {
		if a := ask(t, s, "context_enter", args{"context": academic}); a.failed {
			t.Errorf("entered %s", a.text)
		}
	}
	if a := ask(t, specialist, "context_enter", args{"context": academic}); !a.failed {
		t.Errorf("a stranger enters %s", a.text)
	}
	if !sees(parent) || sees(other) { // parent is the student's guardian; other is a tutor to whom no consent was given
		t.Error("in the context its guardian does not see it, or others do without consent")
	}
	// The world already has this consent of the parent. It is withdrawn and given again.
	consent := args{"grantor": "human:parent_456", "grantee": "si:reading_specialist", "scope": academic}
	if a := ask(t, parent, "consent_revoke", args{"grantee": "si:reading_specialist"}); a.failed {
		t.Fatalf("taken back %s", a.text)
	}
	grant := args{"id": noted.member["id"], "who": []string{"si:reading_specialist"}}
	if code, _, _ := ask(t, tutor, "privacy_grant", grant).fault(); code != "42501" {
		t.Errorf("granted without consent: %s", code)
	}
	if a := ask(t, tutor, "consent_grant", consent); !a.failed {
		t.Errorf("the tutor consents for the parent: %s", a.text)
	}
	if a := ask(t, parent, "consent_grant", consent); a.failed || a.member["grantor"] != "human:parent_456" ||
		a.member["store"] != "student_123" || a.member["repeated"] != false {
		t.Fatalf("consented %s", a.text)
	}
	if sees(specialist) {
		t.Error("by consent alone")
	}
	if a := ask(t, tutor, "privacy_grant", grant); a.failed || !sees(specialist) {
		t.Errorf("granted %s, and seen: %t", a.text, sees(specialist))
	}
	if a := ask(t, parent, "consent_revoke", args{"grantee": "si:reading_specialist", "scope": academic}); a.failed || sees(specialist) {
		t.Errorf("taken back %s, and seen: %t", a.text, sees(specialist))
	}
}
