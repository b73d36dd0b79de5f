package e2e

import (
	"fmt"
	"strings"
)

// Memories, grants, consents, contexts and beliefs, over HTTP in the world kernle.
func (f *httpFace) memories() {
	type body = map[string]any
	created := f.want(f.call("agent:ash", "POST", "/v1/memories",
		body{"kind": "episode", "content": "Bella limps since Tuesday", "subject_ids": []string{"dog:bella"},
			"source_entity": "human:sean", "access_grants": []string{"human:sean"}}), 201, "")
	id := created.str("id")
	// Sent again with a key it is made once; the key of another change is refused, and another caller's is another.
	once := body{"kind": "note", "content": "said once"}
	createdOnce := f.want(f.call("agent:ash", "POST", "/v1/memories", once, "Idempotency-Key", "k1"), 201, "")
	if repeated := f.want(f.call("agent:ash", "POST", "/v1/memories", once, "Idempotency-Key", "k1"),
		201, ""); repeated.Text != createdOnce.Text || repeated.Header.Get("Idempotent-Replayed") != "true" || createdOnce.Header.Get("Idempotent-Replayed") != "" {
		f.t.Errorf("again: %s %v, %s", repeated.Text, repeated.Header, createdOnce.Text)
	}
	f.want(f.call("agent:ash", "POST", "/v1/memories", body{"kind": "note", "content": "something else"},
		"Idempotency-Key", "k1"), 409, "PrivacyConflictError")
	f.want(f.call("agent:ash", "POST", "/v1/privacy/grant", body{"id": id, "who": []string{"si:rex"}},
		"Idempotency-Key", "k1"), 409, "PrivacyConflictError")
	if other := f.want(f.call("agent:sean", "POST", "/v1/memories",
		body{"kind": "note", "content": "said once", "store": "ash"}, "Idempotency-Key", "k1"), 201, ""); other.str("id") == createdOnce.str("id") {
		f.t.Errorf("another caller's: %s", other.Text)
	}
	f.want(f.call("agent:ash", "POST", "/v1/memories", body{"kind": "note", "content": ""}, "Idempotency-Key", "k2"), 422, "PrivacyValidationError")
	f.want(f.call("agent:ash", "POST", "/v1/memories", body{"kind": "note", "content": "said right"}, "Idempotency-Key", "k2"), 201, "")
	f.want(f.call("agent:rex", "POST", "/v1/privacy/grant", body{"id": id, "who": []string{"si:rex"}}), 404, "PrivacyNotFoundError")
	f.want(f.call("agent:ash", "POST", "/v1/privacy/grant", body{"id": id, "who": []string{"si:rex"}}), 403, "PrivacyForbiddenError")
	consent := f.want(f.call("agent:sean", "POST", "/v1/privacy/consents", body{"grantee": "si:rex", "store": "ash"}), 201, "")
	f.want(f.call("agent:sean", "POST", "/v1/privacy/consents", body{"grantee": "si:rex", "store": "ash"}), 200, "")
	f.want(f.call("agent:ash", "POST", "/v1/privacy/grant", body{"id": id, "who": []string{"si:rex"}}), 200, "")
	if audit := f.want(f.call("agent:ash", "GET", "/v1/privacy/audit?id="+id, nil), 200,
		""); !strings.Contains(audit.Text, "si:rex") || strings.Contains(audit.Text, "limps") {
		f.t.Errorf("the audit: %s", audit.Text)
	}
	f.want(f.call("agent:ash", "POST", "/v1/privacy/revoke", body{"id": id, "who": []string{"si:rex"}}), 200, "")
	f.want(f.call("agent:sean", "POST", "/v1/privacy/consents/revoke", body{"id": consent.str("id")}), 200, "")
	f.want(f.call("agent:ash", "GET", "/v1/contexts", nil), 200, "")
	f.want(f.call("agent:ash", "POST", "/v1/contexts", body{"context": "ctx:walks", "participants": []string{"human:sean"}}), 201, "")
	f.want(f.call("agent:sean", "POST", "/v1/contexts/enter", body{"context": "ctx:walks"}), 200, "")

	// A belief: judged, refused, made, and made once.
	const path = "/v1/generalize"
	goodBody := body{"source": id, "belief": "Small dogs that limp need rest", "access_grants": []string{"*"},
		"abstraction_note": "Of the breed, not of one dog."}
	withMembers := func(members body) body {
		out := body{}
		for _, request := range []body{goodBody, members} {
			for name, value := range request {
				out[name] = value
			}
		}
		return out
	}
	if a := f.want(f.call("agent:ash", "POST", path, withMembers(body{"check": true})), 200, ""); a.Body["made"] != false || a.Body["memory"] != nil {
		f.t.Errorf("judged: %s", a.Text)
	}
	first := f.want(f.call("agent:ash", "POST", path, goodBody), 201, "")
	repeated := f.want(f.call("agent:ash", "POST", path, goodBody), 200, "")
	if first.Body["made"] != true || repeated.Body["repeated"] != true || fmt.Sprint(first.Body["memory"]) != fmt.Sprint(repeated.Body["memory"]) {
		f.t.Errorf("made: %s, %s", first.Text, repeated.Text)
	}
	for _, memoryText := range []string{"Bella needs rest", "A dog called B\u200bE\u0301lla needs rest", "Bellissima needs rest"} {
		a := f.want(f.call("agent:ash", "POST", path, withMembers(body{"belief": memoryText})), 422, "PrivacyBlockedError")
		if report, _ := a.Body["report"].(map[string]any); report["verdict"] != "blocked" {
			f.t.Errorf("%q: %s", memoryText, a.Text)
		}
	}
	if a := f.want(f.call("agent:ash", "POST", path, withMembers(body{"belief": "Dogs that limp on a Tuesday need rest"})),
		201, ""); !strings.Contains(a.Text, `"warned"`) {
		f.t.Errorf("warned: %s", a.Text)
	}
	// The owner of the store sees the made memory, with any credential, and nobody else does.
	beliefID := first.Body["memory"].(map[string]any)["id"].(string)
	for _, user := range []string{"agent:ash", "subject:si:ash"} {
		a := f.want(f.call(user, "GET", path, nil), 200, "")
		list := a.Body["generalizations"].([]any)
		newest := list[0].(map[string]any)
		oldest := list[len(list)-1].(map[string]any)
		if len(list) != 2 || newest["text"] != "Dogs that limp on a Tuesday need rest" || oldest["source"] != id ||
			oldest["source_kind"] != "episode" || oldest["by"] != "si:ash" || oldest["at"] == nil ||
			oldest["abstraction_note"] != "Of the breed, not of one dog." ||
			!strings.Contains(fmt.Sprint(oldest["belief"]), "id:"+beliefID) || !strings.Contains(fmt.Sprint(oldest["belief"]), "si:rex") {
			f.t.Errorf("%s is told %s", user, a.Text)
		}
	}
	for _, user := range []string{"agent:rex", "agent:ash_as_guest", "agent:sean", "subject:dog:bella"} {
		if a := f.want(f.call(user, "GET", path, nil), 200, ""); a.Text != "{\"generalizations\":[]}\n" {
			f.t.Errorf("%s is told %s", user, a.Text)
		}
	}
	f.want(f.call("agent:ash", "GET", path+"?after=nowhere", nil), 422, "PrivacyValidationError")
	f.want(f.call("admin", "GET", path, nil), 403, "42501")
	hidden := f.want(f.call("agent:rex", "POST", path, goodBody), 404, "PrivacyNotFoundError")
	if refusal := f.want(f.call("agent:rex", "POST", path, withMembers(body{"source": "episode:none"})), 404,
		"PrivacyNotFoundError"); refusal.Text != hidden.Text {
		f.t.Errorf("the answers differ: %s, %s", hidden.Text, refusal.Text)
	}
	if a := f.want(f.call("subject:dog:bella", "POST", path, goodBody), 403,
		"42501"); a.Body["hint"] != "This is for the roles: agent. The caller's is subject." {
		f.t.Errorf("a subject's token is told %s", a.Text)
	}
	f.want(f.call("agent:ash", "POST", path, `{"source":"`+id+`","belief":"`+"\xff"+`"}`), 400, "")
	f.want(f.call("agent:ash", "POST", path, withMembers(body{"belief": ""})), 422, "")
}
