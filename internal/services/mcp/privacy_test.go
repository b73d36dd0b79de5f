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
	f := serveWorld(t, "kernle")
	ash, bella, sean, rex, vet := f.as(t, "agent:ash"), f.as(t, "agent:bella"), f.as(t, "agent:sean"), f.as(t, "agent:rex"), f.as(t, "agent:vet")
	names := toolNames(t, ash)
	for _, name := range []string{"memory_episode", "memory_belief", "memory_note", "memory_raw", "memory_generalize",
		"context_enter", "context_leave", "context_list", "privacy_audit", "privacy_grant", "privacy_revoke", "consent_grant", "consent_revoke", "query"} {
		if i := slices.Index(names, name); i < 0 || slices.Contains(names[i+1:], name) {
			t.Errorf("tool %s is there not once: %q", name, names)
		}
	}
	list := func(a toolAnswer, member string) string {
		text, _ := json.Marshal(a.member[member])
		return string(text)
	}
	refused := func(a toolAnswer, code string) {
		t.Helper()
		if got, _, hint := a.fault(); !a.hasFailed || got != code || hint == "" {
			t.Errorf("%s, want %s with a hint", a.text, code)
		}
		if strings.Contains(a.text, "HIDDENMARK") {
			t.Error(a.text)
		}
	}
	rawMemory := ask(t, ash, "memory_raw", args{"content": "Bella has a heart murmur",
		"subject_ids": []string{"dog:bella"}, "source": "human:sean", "access_grants": []string{"human:sean"}})
	if rawMemory.hasFailed || list(rawMemory, "access_grants") != `["human:sean"]` || rawMemory.member["source_entity"] != "human:sean" {
		t.Fatalf("made %s", rawMemory.text)
	}
	// With a request key, a memory is made only once, even in several sessions. A key that was used for another change is
	// refused, and so is a malformed key.
	argsWithKey := args{"content": "Bella limps", "subject_ids": []string{"dog:bella"}, "request_key": "0b7c-1"}
	firstNote := ask(t, ash, "memory_note", argsWithKey)
	ash = f.as(t, "agent:ash") // a new token with the same name
	repeatedNote := ask(t, ash, "memory_note", argsWithKey)
	if firstNote.hasFailed || firstNote.member["repeated"] != nil || repeatedNote.hasFailed || repeatedNote.member["repeated"] != true ||
		firstNote.member["id"] != repeatedNote.member["id"] || list(firstNote, "subject_ids") != list(repeatedNote, "subject_ids") {
		t.Errorf("made %s, again %s", firstNote.text, repeatedNote.text)
	}
	if got := list(ask(t, ash, "query", args{"sql": "SELECT count(*) FROM notes WHERE content = 'Bella limps'"}),
		"rows"); got != "[[1]]" && got != `[["1"]]` {
		t.Errorf("it was made %s times", got)
	}
	refused(ask(t, ash, "memory_note", args{"content": "Bella runs", "request_key": "0b7c-1"}), "PC409")
	refused(ask(t, ash, "memory_episode", argsWithKey), "PC409")
	refused(ask(t, ash, "memory_note", args{"content": "x", "request_key": strings.Repeat("k", 201)}), "22023")
	if otherAgentNote := ask(t, rex, "memory_note", args{"content": "mine", "request_key": "0b7c-1"}); strings.Contains(
		otherAgentNote.text, "PC409") || otherAgentNote.member["repeated"] != nil {
		t.Errorf("a key of another caller's: %s", otherAgentNote.text)
	}
	refused(ask(t, ash, "memory_note", args{"content": "", "request_key": "0b7c-2"}), "PC422")
	if correctedNote := ask(t, ash, "memory_note", args{"content": "put right", "request_key": "0b7c-2"}); correctedNote.hasFailed {
		t.Errorf("after a refusal: %s", correctedNote.text)
	}

	// A context is active in the session that has entered it: memories that it grants become visible, and new memories get
	// its grants.
	seenMemories := func() string {
		a := ask(t, bella, "query", args{"sql": "SELECT id FROM episodes WHERE id = 'episode:1002'"})
		return list(a, "rows")
	}
	if seenMemories() != "[]" {
		t.Error("without the context")
	}
	enteredContext := ask(t, bella, "context_enter", args{"context": "ctx:bella_health", "role": "care_agent"})
	if enteredContext.hasFailed || enteredContext.member["role_held"] != false ||
		list(enteredContext, "default_access_grants") != `["human:sean","si:bella_agent","ctx:bella_health"]` {
		t.Errorf("entered %s", enteredContext.text)
	}
	if seenMemories() == "[]" {
		t.Error("in the context")
	}
	episode := ask(t, bella, "memory_episode", args{"content": "She sleeps well"})
	if episode.hasFailed || list(episode, "access_grants") != `["human:sean","si:bella_agent","ctx:bella_health"]` ||
		episode.member["store"] != "ash" || episode.member["source_entity"] != "si:bella_agent" {
		t.Errorf("made %s", episode.text)
	}
	if leftContext := ask(t, bella, "context_leave", args{}); leftContext.hasFailed || seenMemories() != "[]" {
		t.Error("after the context")
	}
	refused(ask(t, vet, "context_enter", args{"context": "ctx:bella_health"}), "PC404")
	refused(ask(t, vet, "context_enter", args{"context": "ctx:none"}), "PC404")
	refused(ask(t, bella, "context_enter", args{"context": "ctx:bella_health", "participants": []string{"si:mallory"}}), "42501")

	// A guardian consents, after which a grant is allowed. The privacy audit then shows who sees the memory.
	refused(ask(t, ash, "privacy_grant", args{"id": rawMemory.member["id"], "who": []string{"si:rex"}}), "42501")
	refused(ask(t, ash, "consent_grant", args{"grantor": "human:sean", "grantee": "si:rex"}), "42501")
	givenConsent := ask(t, sean, "consent_grant", args{"grantor": "human:sean", "grantee": "si:rex", "scope": "*", "store": "ash", "reason": "a walk"})
	if givenConsent.hasFailed || givenConsent.member["grantor"] != "human:sean" {
		t.Fatalf("given %s", givenConsent.text)
	}
	if grantResult := ask(t, ash, "privacy_grant",
		args{"id": rawMemory.member["id"], "who": []string{"si:rex"}, "reason": "for the walk"}); grantResult.hasFailed ||
		list(grantResult, "granted") != `["si:rex"]` {
		t.Fatalf("granted %s", grantResult.text)
	}
	audit := ask(t, sean, "privacy_audit", args{"id": rawMemory.member["id"]})
	for _, wantedText := range []string{`"entity":"si:rex"`, `"record":"` + givenConsent.member["id"].(string) + `"`,
		`"reason":"for the walk"`} {
		if !strings.Contains(strings.ReplaceAll(audit.text, `": "`, `":"`), wantedText) {
			t.Errorf("the audit lacks %s: %s", wantedText, audit.text)
		}
	}
	if got := list(ask(t, rex, "query", args{"sql": "SELECT content FROM raw_entries WHERE id = $1",
		"parameters": []any{rawMemory.member["id"]}}), "rows"); !strings.Contains(got, "heart murmur") {
		t.Errorf("si:rex sees %s", got)
	}
	if revokedConsent := ask(t, sean, "consent_revoke", args{"id": givenConsent.member["id"]}); revokedConsent.hasFailed {
		t.Errorf("taken %s", revokedConsent.text)
	}
	if got := list(ask(t, rex, "query", args{"sql": "SELECT content FROM raw_entries WHERE id = $1",
		"parameters": []any{rawMemory.member["id"]}}), "rows"); got != "[]" {
		t.Errorf("si:rex sees %s", got)
	}
	refused(ask(t, rex, "privacy_audit", args{"id": rawMemory.member["id"]}), "PC404")
	refused(ask(t, rex, "privacy_audit", args{"subject": "dog:bella"}), "PC404")
	if subject := ask(t, f.as(t, "subject:dog:bella"), "privacy_audit", args{"subject": "dog:bella"}); subject.hasFailed {
		t.Errorf("the subject: %s", subject.text)
	}

	// A belief drawn from a private memory is refused if it names the dog. Otherwise it is made, and only once.
	beliefArguments := args{"source": rawMemory.member["id"], "belief": "Heart murmurs in small breeds need exercise monitoring",
		"access_grants": []string{"*"}, "abstraction_note": "Of the breed."}
	beliefWithName := args{"source": rawMemory.member["id"], "belief": "Small breeds like Béllа need monitoring"}
	blockedBelief := ask(t, ash, "memory_generalize", beliefWithName)
	if refused(blockedBelief, "PC422"); !strings.Contains(blockedBelief.text, "PrivacyBlockedError") ||
		!strings.Contains(blockedBelief.text, "block") {
		t.Errorf("blocked: %s", blockedBelief.text)
	}
	if beliefWithName["check"] = true; !strings.Contains(list(ask(t, ash, "memory_generalize", beliefWithName), "report"),
		`"verdict":"blocked"`) {
		t.Error("judged")
	}
	firstBelief, secondBelief := ask(t, ash, "memory_generalize", beliefArguments), ask(t, ash, "memory_generalize", beliefArguments)
	if firstBelief.hasFailed || firstBelief.member["made"] != true || secondBelief.member["repeated"] != true ||
		list(firstBelief, "memory") != list(secondBelief, "memory") {
		t.Errorf("made %s, again %s", firstBelief.text, secondBelief.text)
	}
	if got := list(ask(t, rex, "query", args{
		"sql": "SELECT content FROM beliefs WHERE content LIKE 'Heart murmurs in small breeds%' AND id NOT LIKE " +
			"'belief:1004'"}), "rows"); !strings.Contains(got, "monitoring") {
		t.Errorf("si:rex sees %s", got)
	}
	if got := list(ask(t, rex, "query", args{"sql": "SELECT * FROM generalizations"}), "rows"); got != "[]" {
		t.Errorf("si:rex sees %s", got)
	}
	refused(ask(t, rex, "memory_generalize", beliefArguments), "PC404")
	for _, badArguments := range []args{{"content": ""}, {"content": "x", "subject_ids": []string{`["x"]`}},
		{"content": "x", "access_grants": []string{"a b"}}, {"content": "x", "context": "ctx:'"}} {
		refused(ask(t, ash, "memory_episode", badArguments), "PC422")
	}
	refused(ask(t, ash, "memory_episode", args{"content": "x", "access_grants": "human:sean"}), "22023")

	checkTutorExample(t, f)

	// The record of a refused call says that the call would have changed data.
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

// checkTutorExample plays the last example of the seed: a tutor notes something in an academic context, and a parent
// lets a specialist see it. seeds/003:199-213.
func checkTutorExample(t *testing.T, f *servedWorld) {
	t.Helper()
	tutor, otherTutor, parent, specialist := f.as(t, "agent:tutor_a"), f.as(t, "agent:tutor_b"), f.as(t, "agent:parent"), f.as(t, "agent:specialist")
	const academic = "ctx:student_123_academic"
	list := func(a toolAnswer, member string) string {
		text, _ := json.Marshal(a.member[member])
		return string(text)
	}
	enteredContext := ask(t, tutor, "context_enter", args{
		"context": academic, "participants": []string{"human:parent_456", "si:school_agent"}, "role": "role:tutor"})
	if enteredContext.hasFailed || enteredContext.member["role_held"] != true || enteredContext.member["created"] != false ||
		list(enteredContext, "added") != "[]" {
		t.Fatalf("entered %s", enteredContext.text)
	}
	notedMemory := ask(t, tutor, "memory_raw", args{"content": "Student struggling with algebra concepts",
		"subject_ids": []string{"human:student_123"}, "access_grants": []string{academic}})
	if notedMemory.hasFailed || list(notedMemory, "access_grants") != `["`+academic+`"]` || notedMemory.member["source_entity"] != nil ||
		notedMemory.member["store"] != "student_123" {
		t.Fatalf("noted %s", notedMemory.text)
	}
	canSeeNote := func(s *sdk.ClientSession) bool {
		t.Helper()
		return list(ask(t, s, "query", args{"sql": "SELECT content FROM raw_entries WHERE id = $1",
			"parameters": []any{notedMemory.member["id"]}}), "rows") == `[["Student struggling with algebra concepts"]]`
	}
	if canSeeNote(parent) || canSeeNote(otherTutor) || canSeeNote(specialist) || !canSeeNote(tutor) {
		t.Error("outside of the context others see it, or its owner does not")
	}
	for _, s := range []*sdk.ClientSession{parent, otherTutor} {
		if a := ask(t, s, "context_enter", args{"context": academic}); a.hasFailed {
			t.Errorf("entered %s", a.text)
		}
	}
	if a := ask(t, specialist, "context_enter", args{"context": academic}); !a.hasFailed {
		t.Errorf("a stranger enters %s", a.text)
	}
	if !canSeeNote(parent) || canSeeNote(otherTutor) { // parent is the guardian; otherTutor has no consent
		t.Error("in the context its guardian does not see it, or others do without consent")
	}
	// The parent's consent is in the world already. The test withdraws it and gives it again.
	consent := args{"grantor": "human:parent_456", "grantee": "si:reading_specialist", "scope": academic}
	if a := ask(t, parent, "consent_revoke", args{"grantee": "si:reading_specialist"}); a.hasFailed {
		t.Fatalf("taken back %s", a.text)
	}
	grant := args{"id": notedMemory.member["id"], "who": []string{"si:reading_specialist"}}
	if code, _, _ := ask(t, tutor, "privacy_grant", grant).fault(); code != "42501" {
		t.Errorf("granted without consent: %s", code)
	}
	if a := ask(t, tutor, "consent_grant", consent); !a.hasFailed {
		t.Errorf("the tutor consents for the parent: %s", a.text)
	}
	if a := ask(t, parent, "consent_grant", consent); a.hasFailed || a.member["grantor"] != "human:parent_456" ||
		a.member["store"] != "student_123" || a.member["repeated"] != false {
		t.Fatalf("consented %s", a.text)
	}
	if canSeeNote(specialist) {
		t.Error("by consent alone")
	}
	if a := ask(t, tutor, "privacy_grant", grant); a.hasFailed || !canSeeNote(specialist) {
		t.Errorf("granted %s, and seen: %t", a.text, canSeeNote(specialist))
	}
	if a := ask(t, parent, "consent_revoke", args{"grantee": "si:reading_specialist", "scope": academic}); a.hasFailed ||
		canSeeNote(specialist) {
		t.Errorf("taken back %s, and seen: %t", a.text, canSeeNote(specialist))
	}
}
