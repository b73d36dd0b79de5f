package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// The rest of what the document has: statuses and members of answers that come about in few cases only.

// pending are a relationship's answers while a partnership is asked for.
func (f *httpFace) pending() {
	ids := f.subjects()
	id := ids["TEMPORARY"][len(ids["TEMPORARY"])-1]
	caller := "subject:" + id
	f.want(f.call(caller, "POST", "/v1/consent/upgrade", map[string]any{"reason": "we work together"}, "Idempotency-Key", "asks"), 202, "")
	for _, path := range []string{"/v1/consent/status", "/v1/consent/grants"} {
		if a := f.want(f.call(caller, "GET", path, nil), 200, ""); !strings.Contains(a.Text, `"task":{"id":"partnership-`) {
			f.t.Errorf("%s while a partnership is asked for: %s", path, a.Text)
		}
	}
	f.want(f.call("agent:assistant", "POST", "/v1/consent/decide", map[string]any{"user_id": id, "decision": "REJECT"}), 200, "")
	if a := f.want(f.call(caller, "POST", "/v1/consent/upgrade", map[string]any{"reason": "we work together"},
		"Idempotency-Key", "asks"), 202, ""); a.Body["repeated"] != true {
		f.t.Errorf("asked again with the key, after the decision: %s", a.Text)
	}
	f.want(f.call("subject:"+ids["ANONYMOUS"][0], "GET", "/v1/consent/grants", nil), 200, "")
	// Calls are answered until there are too many.
	for range 300 {
		if a := f.call("operator", "GET", "/v1/audit?limit=0", nil); a.Status == http.StatusTooManyRequests {
			return
		}
	}
	f.t.Error("300 calls at once are not too many")
}

// remembered are answers about memories that say more than most.
func (f *httpFace) remembered() {
	type body = map[string]any
	created := f.want(f.call("agent:ash", "POST", "/v1/memories",
		body{"kind": "episode", "content": "Rex says it again", "source_entity": "si:rex", "told_from": "episode:1009"}), 201, "")
	f.want(f.call("agent:ash", "POST", "/v1/privacy/grant", body{"id": created.str("id"), "who": []string{"si:bella_agent"}}), 200, "")
	f.want(f.call("agent:sean", "POST", "/v1/privacy/consents", body{"grantor": "dog:bella", "grantee": "si:new_vet", "scope": "episode:1002"}), 201, "")
	f.want(f.call("agent:ash", "POST", "/v1/privacy/grant",
		body{"id": "episode:1002", "who": []string{"si:new_vet"}, "reason": "the vet has moved"}), 200, "")
	if a := f.want(f.call("agent:ash", "GET", "/v1/privacy/audit?id=episode:1002", nil),
		200, ""); !strings.Contains(a.Text, `"reason":"the vet has moved"`) || !strings.Contains(a.Text, `"context":"ctx:bella_health"`) {
		f.t.Errorf("what is granted to a context: %s", a.Text)
	}
	if a := f.want(f.call("agent:ash", "GET", "/v1/privacy/audit?id=episode:1005", nil),
		200, ""); !strings.Contains(a.Text, `"missing_consent":["human:kid_123"]`) {
		f.t.Errorf("what nobody has consented to: %s", a.Text)
	}
	first := f.want(f.call("agent:sean", "GET", "/v1/privacy/audit?subject=dog:bella", nil), 200, "")
	if next := first.str("next"); next == "" || first.str("subject") != "dog:bella" || !strings.Contains(first.Text, `"other_subjects":1`) {
		f.t.Errorf("a guardian is told %.600s", first.Text)
	} else if second := f.want(f.call("agent:sean", "GET", "/v1/privacy/audit?subject=dog:bella&after="+next,
		nil), 200, ""); len(second.Body["memories"].([]any)) == 0 {
		f.t.Errorf("the next page: %s", second.Text)
	}
	if a := f.want(f.call("agent:ash", "POST", "/v1/contexts/enter",
		body{"context": "ctx:evenings", "role": "care_agent"}), 201, ""); a.str("role") != "care_agent" || a.Body["role_held"] == true {
		f.t.Errorf("entered as %s", a.Text)
	}
	f.want(f.call("agent:tutor_a", "POST", "/v1/contexts/enter", body{"context": "ctx:student_123_academic", "role": "role:tutor"}), 200, "")
	f.want(f.call("agent:ash", "POST", "/v1/contexts", body{"context": "ctx:evenings"}), 409, "PrivacyConflictError")
	for i := range 50 {
		f.want(f.call("agent:ash", "POST", "/v1/generalize",
			body{"source": "episode:1003", "belief": fmt.Sprintf("Dogs rest well, as %d others say", i), "access_grants": []string{}}), 201, "")
	}
	if a := f.want(f.call("subject:si:ash", "GET", "/v1/generalize", nil),
		200, ""); len(a.Body["generalizations"].([]any)) != 50 || a.str("next") == "" {
		f.t.Errorf("a page of beliefs: %.300s", a.Text)
	}
}

// saw notes the members of a schema that an answer has.
func (f *httpFace) saw(schema any, name string, value any) {
	s, name := f.resolved(schema, name)
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			f.saw(s["items"], name+"[]", element)
		}
	case map[string]any:
		for member, element := range v {
			f.members[name+"."+member] = true
			f.saw(memberAt(s, "properties", member), name+"."+member, element)
		}
	}
}

// resolved follows references; a schema is called by the name that the document has for it, else by where it stands.
func (f *httpFace) resolved(schema any, name string) (map[string]any, string) {
	found, _ := schema.(map[string]any)
	for {
		ref, ok := found["$ref"].(string)
		if !ok {
			return found, name
		}
		parts := strings.Split(strings.TrimPrefix(ref, "#/"), "/")
		found, _ = memberAt(f.document, parts...).(map[string]any)
		name = parts[len(parts)-1]
	}
}

// unseen are the members below a schema of answers that no answer had.
func (f *httpFace) unseen(schema any, name string, visited map[string]bool) (out []string) {
	s, name := f.resolved(schema, name)
	if visited[name] {
		return nil
	}
	visited[name] = true
	if items, ok := s["items"]; ok {
		out = append(out, f.unseen(items, name+"[]", visited)...)
	}
	properties, _ := s["properties"].(map[string]any)
	for _, member := range slices.Sorted(maps.Keys(properties)) {
		if !f.members[name+"."+member] {
			out = append(out, name+"."+member)
			continue
		}
		out = append(out, f.unseen(properties[member], name+"."+member, visited)...)
	}
	return out
}

// everyAnswer: each success of the document was answered, and each refusal that any operation can be made to give. Each
// member of an answer was in at least one.
func (f *httpFace) everyAnswer() {
	visited, anywhere := map[string]bool{}, map[string]bool{}
	for answer := range f.answered {
		anywhere[answer[strings.LastIndex(answer, " ")+1:]] = true
	}
	for path, methods := range f.document["paths"].(map[string]any) {
		for method, operation := range methods.(map[string]any) {
			for status, response := range memberAt(operation, "responses").(map[string]any) {
				switch {
				case status >= "500": // no request can cause them
				case slices.Contains([]string{"404", "409", "410", "429"}, status): // these have the same form for every operation
					if !anywhere[status] {
						f.t.Errorf("nothing was answered with %s", status)
					}
				case !f.answered[method+" "+path+" "+status]:
					f.t.Errorf("%s %s was never answered with %s", method, path, status)
				}
				for _, content := range memberAt(response, "content").(map[string]any) {
					for _, member := range f.unseen(memberAt(content, "schema"), method+" "+path, visited) {
						if member != "ConsentEvent.task" { // a member of the status, which an event lacks
							f.t.Errorf("%s was in no answer", member)
						}
					}
				}
			}
		}
	}
}
