package e2e

import (
	"fmt"
	"strings"
)

// Memories, grants, consents, contexts and beliefs, over HTTP in the world kernle.
func (f *httpFace) memories() {
	type body = map[string]any
	made := f.want(f.call("agent:ash", "POST", "/v1/memories",
		body{"kind": "episode", "content": "Bella limps since Tuesday", "subject_ids": []string{"dog:bella"},
			"source_entity": "human:sean", "access_grants": []string{"human:sean"}}), 201, "")
	id := made.str("id")
	// Sent again with a key it is made once; the key of another change is refused, and another caller's is another.
	once := body{"kind": "note", "content": "said once"}
	said := f.want(f.call("agent:ash", "POST", "/v1/memories", once, "Idempotency-Key", "k1"), 201, "")
	if again := f.want(f.call("agent:ash", "POST", "/v1/memories", once, "Idempotency-Key", "k1"),
		201, ""); again.Text != said.Text || again.Header.Get("Idempotent-Replayed") != "true" || said.Header.Get("Idempotent-Replayed") != "" {
		f.t.Errorf("again: %s %v, %s", again.Text, again.Header, said.Text)
	}
	f.want(f.call("agent:ash", "POST", "/v1/memories", body{"kind": "note", "content": "something else"},
		"Idempotency-Key", "k1"), 409, "PrivacyConflictError")
	f.want(f.call("agent:ash", "POST", "/v1/privacy/grant", body{"id": id, "who": []string{"si:rex"}},
		"Idempotency-Key", "k1"), 409, "PrivacyConflictError")
	if other := f.want(f.call("agent:sean", "POST", "/v1/memories",
		body{"kind": "note", "content": "said once", "store": "ash"}, "Idempotency-Key", "k1"), 201, ""); other.str("id") == said.str("id") {
		f.t.Errorf("another caller's: %s", other.Text)
	}
	f.want(f.call("agent:ash", "POST", "/v1/memories", body{"kind": "note", "content": ""}, "Idempotency-Key", "k2"), 422, "PrivacyValidationError")
	f.want(f.call("agent:ash", "POST", "/v1/memories", body{"kind": "note", "content": "said right"}, "Idempotency-Key", "k2"), 201, "")
	f.want(f.call("agent:rex", "POST", "/v1/privacy/grant", body{"id": id, "who": []string{"si:rex"}}), 404, "PrivacyNotFoundError")
	f.want(f.call("agent:ash", "POST", "/v1/privacy/grant", body{"id": id, "who": []string{"si:rex"}}), 403, "PrivacyForbiddenError")
	given := f.want(f.call("agent:sean", "POST", "/v1/privacy/consents", body{"grantee": "si:rex", "store": "ash"}), 201, "")
	f.want(f.call("agent:sean", "POST", "/v1/privacy/consents", body{"grantee": "si:rex", "store": "ash"}), 200, "")
	f.want(f.call("agent:ash", "POST", "/v1/privacy/grant", body{"id": id, "who": []string{"si:rex"}}), 200, "")
	if audit := f.want(f.call("agent:ash", "GET", "/v1/privacy/audit?id="+id, nil), 200,
		""); !strings.Contains(audit.Text, "si:rex") || strings.Contains(audit.Text, "limps") {
		f.t.Errorf("the audit: %s", audit.Text)
	}
	f.want(f.call("agent:ash", "POST", "/v1/privacy/revoke", body{"id": id, "who": []string{"si:rex"}}), 200, "")
	f.want(f.call("agent:sean", "POST", "/v1/privacy/consents/revoke", body{"id": given.str("id")}), 200, "")
	f.want(f.call("agent:ash", "GET", "/v1/contexts", nil), 200, "")
	f.want(f.call("agent:ash", "POST", "/v1/contexts", body{"context": "ctx:walks", "participants": []string{"human:sean"}}), 201, "")
	f.want(f.call("agent:sean", "POST", "/v1/contexts/enter", body{"context": "ctx:walks"}), 200, "")

	// A belief: judged, refused, made, and made once.
	const path = "/v1/generalize"
	good := body{"source": id, "belief": "Small dogs that limp need rest", "access_grants": []string{"*"},
		"abstraction_note": "Of the breed, not of one dog."}
	with := func(members body) body {
		out := body{}
		for _, from := range []body{good, members} {
			for name, value := range from {
				out[name] = value
			}
		}
		return out
	}
	if a := f.want(f.call("agent:ash", "POST", path, with(body{"check": true})), 200, ""); a.Body["made"] != false || a.Body["memory"] != nil {
		f.t.Errorf("judged: %s", a.Text)
	}
	first := f.want(f.call("agent:ash", "POST", path, good), 201, "")
	again := f.want(f.call("agent:ash", "POST", path, good), 200, "")
	if first.Body["made"] != true || again.Body["repeated"] != true || fmt.Sprint(first.Body["memory"]) != fmt.Sprint(again.Body["memory"]) {
		f.t.Errorf("made: %s, %s", first.Text, again.Text)
	}
	for _, named := range []string{"Bella needs rest", "A dog called B\u200bE\u0301lla needs rest", "Bellissima needs rest"} {
		a := f.want(f.call("agent:ash", "POST", path, with(body{"belief": named})), 422, "PrivacyBlockedError")
		if report, _ := a.Body["report"].(map[string]any); report["verdict"] != "blocked" {
			f.t.Errorf("%q: %s", named, a.Text)
		}
	}
	if a := f.want(f.call("agent:ash", "POST", path, with(body{"belief": "Dogs that limp on a Tuesday need rest"})),
		201, ""); !strings.Contains(a.Text, `"warned"`) {
		f.t.Errorf("warned: %s", a.Text)
	}
	// The owner of the store sees the made memory, with any credential, and nobody else does.
	beliefID := first.Body["memory"].(map[string]any)["id"].(string)
	for _, who := range []string{"agent:ash", "subject:si:ash"} {
		a := f.want(f.call(who, "GET", path, nil), 200, "")
		list := a.Body["generalizations"].([]any)
		newest := list[0].(map[string]any)
		oldest := list[len(list)-1].(map[string]any)
		if len(list) != 2 || newest["text"] != "Dogs that limp on a Tuesday need rest" || oldest["source"] != id ||
			oldest["source_kind"] != "episode" || oldest["by"] != "si:ash" || oldest["at"] == nil ||
			oldest["abstraction_note"] != "Of the breed, not of one dog." ||
			!strings.Contains(fmt.Sprint(oldest["belief"]), "id:"+beliefID) || !strings.Contains(fmt.Sprint(oldest["belief"]), "si:rex") {
			f.t.Errorf("%s is told %s", who, a.Text)
		}
	}
	for _, who := range []string{"agent:rex", "agent:ash_as_guest", "agent:sean", "subject:dog:bella"} {
		if a := f.want(f.call(who, "GET", path, nil), 200, ""); a.Text != "{\"generalizations\":[]}\n" {
			f.t.Errorf("%s is told %s", who, a.Text)
		}
	}
	f.want(f.call("agent:ash", "GET", path+"?after=nowhere", nil), 422, "PrivacyValidationError")
	f.want(f.call("admin", "GET", path, nil), 403, "42501")
	hidden := f.want(f.call("agent:rex", "POST", path, good), 404, "PrivacyNotFoundError")
	if none := f.want(f.call("agent:rex", "POST", path, with(body{"source": "episode:none"})), 404, "PrivacyNotFoundError"); none.Text != hidden.Text {
		f.t.Errorf("the answers differ: %s, %s", hidden.Text, none.Text)
	}
	if a := f.want(f.call("subject:dog:bella", "POST", path, good), 403,
		"42501"); a.Body["hint"] != "This is for the roles: agent. The caller's is subject." {
		f.t.Errorf("a subject's token is told %s", a.Text)
	}
	f.want(f.call("agent:ash", "POST", path, `{"source":"`+id+`","belief":"`+"\xff"+`"}`), 400, "")
	f.want(f.call("agent:ash", "POST", path, with(body{"belief": ""})), 422, "")
}
