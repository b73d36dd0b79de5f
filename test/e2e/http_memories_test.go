package e2e

import (
	"fmt"
	"strings"
)

// checkMemories tests memories, grants, consents, contexts and beliefs, over HTTP in the world kernle.
func (f *httpAPI) checkMemories() {
	type body = map[string]any
	createdMemory := f.checkStatus(f.call("agent:ash", "POST", "/v1/memories",
		body{"kind": "episode", "content": "Bella limps since Tuesday", "subject_ids": []string{"dog:bella"},
			"source_entity": "human:sean", "access_grants": []string{"human:sean"}}), 201, "")
	id := createdMemory.stringMember("id")
	// A request that is repeated with its idempotency key makes one memory. The key cannot be used for another change, and
	// each caller has keys of its own.
	noteBody := body{"kind": "note", "content": "said once"}
	firstAnswer := f.checkStatus(f.call("agent:ash", "POST", "/v1/memories", noteBody, "Idempotency-Key", "k1"), 201, "")
	if repeatedAnswer := f.checkStatus(f.call("agent:ash", "POST", "/v1/memories", noteBody, "Idempotency-Key", "k1"),
		201, ""); repeatedAnswer.Text != firstAnswer.Text || repeatedAnswer.Header.Get("Idempotent-Replayed") != "true" ||
		firstAnswer.Header.Get("Idempotent-Replayed") != "" {
		f.t.Errorf("again: %s %v, %s", repeatedAnswer.Text, repeatedAnswer.Header, firstAnswer.Text)
	}
	f.checkStatus(f.call("agent:ash", "POST", "/v1/memories", body{"kind": "note", "content": "something else"},
		"Idempotency-Key", "k1"), 409, "PrivacyConflictError")
	f.checkStatus(f.call("agent:ash", "POST", "/v1/privacy/grant", body{"id": id, "who": []string{"si:rex"}},
		"Idempotency-Key", "k1"), 409, "PrivacyConflictError")
	if otherAnswer := f.checkStatus(f.call("agent:sean", "POST", "/v1/memories",
		body{"kind": "note", "content": "said once",
			"store": "ash"}, "Idempotency-Key", "k1"), 201, ""); otherAnswer.stringMember("id") == firstAnswer.stringMember("id") {
		f.t.Errorf("another caller's: %s", otherAnswer.Text)
	}
	f.checkStatus(f.call("agent:ash", "POST", "/v1/memories", body{"kind": "note", "content": ""}, "Idempotency-Key", "k2"), 422, "PrivacyValidationError")
	f.checkStatus(f.call("agent:ash", "POST", "/v1/memories", body{"kind": "note", "content": "said right"}, "Idempotency-Key", "k2"), 201, "")
	f.checkStatus(f.call("agent:rex", "POST", "/v1/privacy/grant", body{"id": id, "who": []string{"si:rex"}}), 404, "PrivacyNotFoundError")
	f.checkStatus(f.call("agent:ash", "POST", "/v1/privacy/grant", body{"id": id, "who": []string{"si:rex"}}), 403, "PrivacyForbiddenError")
	recordedConsent := f.checkStatus(f.call("agent:sean", "POST", "/v1/privacy/consents", body{"grantee": "si:rex", "store": "ash"}), 201, "")
	f.checkStatus(f.call("agent:sean", "POST", "/v1/privacy/consents", body{"grantee": "si:rex", "store": "ash"}), 200, "")
	f.checkStatus(f.call("agent:ash", "POST", "/v1/privacy/grant", body{"id": id, "who": []string{"si:rex"}}), 200, "")
	if auditAnswer := f.checkStatus(f.call("agent:ash", "GET", "/v1/privacy/audit?id="+id, nil), 200,
		""); !strings.Contains(auditAnswer.Text, "si:rex") || strings.Contains(auditAnswer.Text, "limps") {
		f.t.Errorf("the audit: %s", auditAnswer.Text)
	}
	f.checkStatus(f.call("agent:ash", "POST", "/v1/privacy/revoke", body{"id": id, "who": []string{"si:rex"}}), 200, "")
	f.checkStatus(f.call("agent:sean", "POST", "/v1/privacy/consents/revoke", body{"id": recordedConsent.stringMember("id")}), 200, "")
	f.checkStatus(f.call("agent:ash", "GET", "/v1/contexts", nil), 200, "")
	f.checkStatus(f.call("agent:ash", "POST", "/v1/contexts", body{"context": "ctx:walks", "participants": []string{"human:sean"}}), 201, "")
	f.checkStatus(f.call("agent:sean", "POST", "/v1/contexts/enter", body{"context": "ctx:walks"}), 200, "")

	// A belief is checked, refused, stored, and stored only once.
	const path = "/v1/generalize"
	goodBody := body{"source": id, "belief": "Small dogs that limp need rest", "access_grants": []string{"*"},
		"abstraction_note": "Of the breed, not of one dog."}
	bodyWith := func(members body) body {
		out := body{}
		for _, request := range []body{goodBody, members} {
			for name, value := range request {
				out[name] = value
			}
		}
		return out
	}
	if a := f.checkStatus(f.call("agent:ash", "POST", path, bodyWith(body{"check": true})), 200, ""); a.Body["made"] != false || a.Body["memory"] != nil {
		f.t.Errorf("judged: %s", a.Text)
	}
	createdBelief := f.checkStatus(f.call("agent:ash", "POST", path, goodBody), 201, "")
	repeatedAnswer := f.checkStatus(f.call("agent:ash", "POST", path, goodBody), 200, "")
	if createdBelief.Body["made"] != true || repeatedAnswer.Body["repeated"] != true ||
		fmt.Sprint(createdBelief.Body["memory"]) != fmt.Sprint(repeatedAnswer.Body["memory"]) {
		f.t.Errorf("made: %s, %s", createdBelief.Text, repeatedAnswer.Text)
	}
	for _, memoryText := range []string{"Bella needs rest", "A dog called B\u200bE\u0301lla needs rest", "Bellissima needs rest"} {
		a := f.checkStatus(f.call("agent:ash", "POST", path, bodyWith(body{"belief": memoryText})), 422, "PrivacyBlockedError")
		if report, _ := a.Body["report"].(map[string]any); report["verdict"] != "blocked" {
			f.t.Errorf("%q: %s", memoryText, a.Text)
		}
	}
	if a := f.checkStatus(f.call("agent:ash", "POST", path, bodyWith(body{"belief": "Dogs that limp on a Tuesday need rest"})),
		201, ""); !strings.Contains(a.Text, `"warned"`) {
		f.t.Errorf("warned: %s", a.Text)
	}
	// The owner of the store sees the new belief with any credential; nobody else sees its source.
	beliefID := createdBelief.Body["memory"].(map[string]any)["id"].(string)
	for _, user := range []string{"agent:ash", "subject:si:ash"} {
		a := f.checkStatus(f.call(user, "GET", path, nil), 200, "")
		beliefs := a.Body["generalizations"].([]any)
		newestBelief := beliefs[0].(map[string]any)
		oldestBelief := beliefs[len(beliefs)-1].(map[string]any)
		if len(beliefs) != 2 || newestBelief["text"] != "Dogs that limp on a Tuesday need rest" || oldestBelief["source"] != id ||
			oldestBelief["source_kind"] != "episode" || oldestBelief["by"] != "si:ash" || oldestBelief["at"] == nil ||
			oldestBelief["abstraction_note"] != "Of the breed, not of one dog." ||
			!strings.Contains(fmt.Sprint(oldestBelief["belief"]), "id:"+beliefID) ||
			!strings.Contains(fmt.Sprint(oldestBelief["belief"]), "si:rex") {
			f.t.Errorf("%s is told %s", user, a.Text)
		}
	}
	for _, user := range []string{"agent:rex", "agent:ash_as_guest", "agent:sean", "subject:dog:bella"} {
		if a := f.checkStatus(f.call(user, "GET", path, nil), 200, ""); a.Text != "{\"generalizations\":[]}\n" {
			f.t.Errorf("%s is told %s", user, a.Text)
		}
	}
	f.checkStatus(f.call("agent:ash", "GET", path+"?after=nowhere", nil), 422, "PrivacyValidationError")
	f.checkStatus(f.call("admin", "GET", path, nil), 403, "42501")
	hiddenAnswer := f.checkStatus(f.call("agent:rex", "POST", path, goodBody), 404, "PrivacyNotFoundError")
	if missingAnswer := f.checkStatus(f.call("agent:rex", "POST", path, bodyWith(body{"source": "episode:none"})), 404,
		"PrivacyNotFoundError"); missingAnswer.Text != hiddenAnswer.Text {
		f.t.Errorf("the answers differ: %s, %s", hiddenAnswer.Text, missingAnswer.Text)
	}
	if a := f.checkStatus(f.call("subject:dog:bella", "POST", path, goodBody), 403,
		"42501"); a.Body["hint"] != "This is for the roles: agent. The caller's is subject." {
		f.t.Errorf("a subject's token is told %s", a.Text)
	}
	f.checkStatus(f.call("agent:ash", "POST", path, `{"source":"`+id+`","belief":"`+"\xff"+`"}`), 400, "")
	f.checkStatus(f.call("agent:ash", "POST", path, bodyWith(body{"belief": ""})), 422, "")
}
