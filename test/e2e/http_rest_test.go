package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// This file covers statuses and members of answers that the document declares and that occur in few cases only.

// checkPendingPartnership tests the answers about a consent while a partnership is requested.
func (f *httpAPI) checkPendingPartnership() {
	ids := f.subjectsByStream()
	id := ids["TEMPORARY"][len(ids["TEMPORARY"])-1]
	caller := "subject:" + id
	f.checkStatus(f.call(caller, "POST", "/v1/consent/upgrade", map[string]any{"reason": "we work together"}, "Idempotency-Key", "asks"),
		202, "")
	for _, path := range []string{"/v1/consent/status", "/v1/consent/grants"} {
		if a := f.checkStatus(f.call(caller, "GET", path, nil), 200, ""); !strings.Contains(a.Text, `"task":{"id":"partnership-`) {
			f.t.Errorf("%s while a partnership is asked for: %s", path, a.Text)
		}
	}
	f.checkStatus(f.call("agent:assistant", "POST", "/v1/consent/decide", map[string]any{"user_id": id, "decision": "REJECT"}), 200, "")
	if a := f.checkStatus(f.call(caller, "POST", "/v1/consent/upgrade", map[string]any{"reason": "we work together"},
		"Idempotency-Key", "asks"), 202, ""); a.Body["repeated"] != true {
		f.t.Errorf("asked again with the key, after the decision: %s", a.Text)
	}
	f.checkStatus(f.call("subject:"+ids["ANONYMOUS"][0], "GET", "/v1/consent/grants", nil), 200, "")
	// Too many calls in a short time are refused.
	for range 300 {
		if a := f.call("operator", "GET", "/v1/audit?limit=0", nil); a.Status == http.StatusTooManyRequests {
			return
		}
	}
	f.t.Error("300 calls at once are not too many")
}

// checkMemoryReports tests answers about memories that have unusual members.
func (f *httpAPI) checkMemoryReports() {
	type body = map[string]any
	createdMemory := f.checkStatus(f.call("agent:ash", "POST", "/v1/memories",
		body{"kind": "episode", "content": "Rex says it again", "source_entity": "si:rex", "told_from": "episode:1009"}), 201, "")
	f.checkStatus(f.call("agent:ash", "POST", "/v1/privacy/grant", body{"id": createdMemory.stringMember("id"),
		"who": []string{"si:bella_agent"}}), 200, "")
	f.checkStatus(f.call("agent:sean", "POST", "/v1/privacy/consents", body{"grantor": "dog:bella", "grantee": "si:new_vet", "scope": "episode:1002"}), 201, "")
	f.checkStatus(f.call("agent:ash", "POST", "/v1/privacy/grant",
		body{"id": "episode:1002", "who": []string{"si:new_vet"}, "reason": "the vet has moved"}), 200, "")
	if a := f.checkStatus(f.call("agent:ash", "GET", "/v1/privacy/audit?id=episode:1002", nil),
		200, ""); !strings.Contains(a.Text, `"reason":"the vet has moved"`) || !strings.Contains(a.Text, `"context":"ctx:bella_health"`) {
		f.t.Errorf("what is granted to a context: %s", a.Text)
	}
	if a := f.checkStatus(f.call("agent:ash", "GET", "/v1/privacy/audit?id=episode:1005", nil),
		200, ""); !strings.Contains(a.Text, `"missing_consent":["human:kid_123"]`) {
		f.t.Errorf("what nobody has consented to: %s", a.Text)
	}
	firstPage := f.checkStatus(f.call("agent:sean", "GET", "/v1/privacy/audit?subject=dog:bella", nil), 200, "")
	if nextCursor := firstPage.stringMember("next"); nextCursor == "" || firstPage.stringMember("subject") != "dog:bella" ||
		!strings.Contains(firstPage.Text, `"other_subjects":1`) {
		f.t.Errorf("a guardian is told %.600s", firstPage.Text)
	} else if secondPage := f.checkStatus(f.call("agent:sean", "GET", "/v1/privacy/audit?subject=dog:bella&after="+nextCursor,
		nil), 200, ""); len(secondPage.Body["memories"].([]any)) == 0 {
		f.t.Errorf("the next page: %s", secondPage.Text)
	}
	if a := f.checkStatus(f.call("agent:ash", "POST", "/v1/contexts/enter",
		body{"context": "ctx:evenings", "role": "care_agent"}), 201, ""); a.stringMember("role") != "care_agent" || a.Body["role_held"] == true {
		f.t.Errorf("entered as %s", a.Text)
	}
	f.checkStatus(f.call("agent:tutor_a", "POST", "/v1/contexts/enter", body{"context": "ctx:student_123_academic", "role": "role:tutor"}),
		200, "")
	f.checkStatus(f.call("agent:ash", "POST", "/v1/contexts", body{"context": "ctx:evenings"}), 409, "PrivacyConflictError")
	for i := range 50 {
		f.checkStatus(f.call("agent:ash", "POST", "/v1/generalize",
			body{"source": "episode:1003", "belief": fmt.Sprintf("Dogs rest well, as %d others say", i), "access_grants": []string{}}), 201, "")
	}
	if a := f.checkStatus(f.call("subject:si:ash", "GET", "/v1/generalize", nil),
		200, ""); len(a.Body["generalizations"].([]any)) != 50 || a.stringMember("next") == "" {
		f.t.Errorf("a page of beliefs: %.300s", a.Text)
	}
}

// recordMembers records which members of a schema an answer has.
func (f *httpAPI) recordMembers(schema any, name string, value any) {
	s, name := f.followReference(schema, name)
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			f.recordMembers(s["items"], name+"[]", element)
		}
	case map[string]any:
		for member, element := range v {
			f.answeredMembers[name+"."+member] = true
			f.recordMembers(memberAt(s, "properties", member), name+"."+member, element)
		}
	}
}

// followReference follows the references of a schema. It returns the name of the schema in the document, or else the
// given path to it.
func (f *httpAPI) followReference(schema any, name string) (map[string]any, string) {
	resolved, _ := schema.(map[string]any)
	for {
		ref, ok := resolved["$ref"].(string)
		if !ok {
			return resolved, name
		}
		parts := strings.Split(strings.TrimPrefix(ref, "#/"), "/")
		resolved, _ = memberAt(f.document, parts...).(map[string]any)
		name = parts[len(parts)-1]
	}
}

// unansweredMembers returns the members of a schema, at any depth, that no answer had.
func (f *httpAPI) unansweredMembers(schema any, name string, visitedSchemas map[string]bool) (out []string) {
	s, name := f.followReference(schema, name)
	if visitedSchemas[name] {
		return nil
	}
	visitedSchemas[name] = true
	if items, ok := s["items"]; ok {
		out = append(out, f.unansweredMembers(items, name+"[]", visitedSchemas)...)
	}
	properties, _ := s["properties"].(map[string]any)
	for _, member := range slices.Sorted(maps.Keys(properties)) {
		if !f.answeredMembers[name+"."+member] {
			out = append(out, name+"."+member)
			continue
		}
		out = append(out, f.unansweredMembers(properties[member], name+"."+member, visitedSchemas)...)
	}
	return out
}

// checkEveryAnswer checks that each success of the document was answered, and each refusal that a request can cause.
// Each member of an answer must have been in at least one answer.
func (f *httpAPI) checkEveryAnswer() {
	visitedSchemas, statusesAnywhere := map[string]bool{}, map[string]bool{}
	for answer := range f.answeredStatuses {
		statusesAnywhere[answer[strings.LastIndex(answer, " ")+1:]] = true
	}
	for path, methods := range f.document["paths"].(map[string]any) {
		for method, operation := range methods.(map[string]any) {
			for status, response := range memberAt(operation, "responses").(map[string]any) {
				switch {
				case status >= "500": // no request can cause them
				case slices.Contains([]string{"404", "409", "410", "429"}, status): // these answers have the same form for every operation
					if !statusesAnywhere[status] {
						f.t.Errorf("nothing was answered with %s", status)
					}
				case !f.answeredStatuses[method+" "+path+" "+status]:
					f.t.Errorf("%s %s was never answered with %s", method, path, status)
				}
				for _, content := range memberAt(response, "content").(map[string]any) {
					for _, member := range f.unansweredMembers(memberAt(content, "schema"), method+" "+path, visitedSchemas) {
						if member != "ConsentEvent.task" { // a member of the status, which an event lacks
							f.t.Errorf("%s was in no answer", member)
						}
					}
				}
			}
		}
	}
}
