package console_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/demo"
	"github.com/pgconsent/pgconsent/test/tier"
)

// asAgent calls the HTTP API with the token of an agent.
func asAgent(t *testing.T, r *demo.RunningDemo, agent, path string, body map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.Access.HTTP+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+r.Access.Tokens["agent:"+agent])
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var out map[string]any
	if err := json.NewDecoder(response.Body).Decode(&out); err != nil || response.StatusCode >= 300 {
		t.Fatalf("%s: %d %v %v", path, response.StatusCode, out, err)
	}
	return out
}

// The console shows the beliefs drawn from a memory only to the owner of the memory. It shows who can see a memory to
// those who may ask. If no rule reads the consent registry, no page says that consents in it have an effect.
func TestMemories(t *testing.T) {
	tier.All(t)
	r := kernle.world(t, "kernle")
	// An agent draws a belief without granting it to anybody. The page names its author nevertheless.
	asAgent(t, r, "ash", "/v1/generalize", map[string]any{"source": "episode:1001", "belief": "Rest after play helps", "access_grants": []string{}})
	signInTo(t, r, "subject:si:ash").get("me/general").says(t, "Rest after play helps", "Made by si:ash",
		"Granted to nobody", "It is granted to nobody: only you see it")
	const belief = "Heart murmurs in small breeds need exercise monitoring"
	beliefResult := asAgent(t, r, "ash", "/v1/generalize", map[string]any{"source": "episode:1001", "belief": belief, "access_grants": []string{"*"},
		"abstraction_note": "It applies to the breed, not to one dog.", "reason": "useful to others"})
	id := beliefResult["memory"].(map[string]any)["id"].(string)

	owner := signInTo(t, r, "subject:si:ash")
	owner.get("me").says(t, "This service does not use these consents", "as far as its rules let them", "Beliefs")
	for _, f := range owner.get("me").forms(t) {
		for _, b := range f.buttons {
			if b == "Give consent" || b == "Ask for a partnership" || b == "Give this consent" {
				t.Errorf("a button %q where no rule asks for it", b)
			}
		}
	}
	general := owner.get("me/general")
	general.says(t, id, belief, "Drawn from episode:1001", "How It applies to the breed, not to one dog.",
		"Made by si:ash", "Granted to everybody", "si:bella_agent (agent bella) : granted to everybody",
		"si:ash (agent ash) : the owner", "by si:ash: useful to others", "Take it back")
	asAgent(t, r, "ash", "/v1/privacy/revoke", map[string]any{"id": id, "who": []string{"*"}, "reason": "it tells too much"})
	general = owner.get("me/general")
	general.says(t, "It is granted to nobody: only you see it", "taken from everybody, by si:ash: it tells too much")
	if strings.Contains(general.body, "si:bella_agent") {
		t.Error("who saw it before is said to see it")
	}

	// To other persons the page shows no belief, and refuses the addresses of the owner's entries.
	for _, role := range []string{"subject:si:mallory", "subject:human:sean", "subject:dog:bella"} {
		p := signInTo(t, r, role).get("me/general")
		p.says(t, "No belief was drawn from your memories")
		if strings.Contains(p.body, "episode:1001") || strings.Contains(p.body, id) || strings.Contains(p.body, "murmur") {
			t.Errorf("%s is told of a belief of another", role)
		}
	}
	for _, role := range []string{"admin", "operator"} {
		for _, path := range []string{"me/general", "me/memories"} {
			if p := signInTo(t, r, role).get(path); p.status != http.StatusForbidden {
				t.Errorf("%s of %s: %d", path, role, p.status)
			}
		}
	}

	// A guardian asks about a ward's memories, page by page. Another person gets the same answer for a person who exists
	// and for one who does not.
	sean := signInTo(t, r, "subject:human:sean")
	sean.get("me/memories").says(t, "The application has no memory with you as a subject")
	askAbout := func(p *personView, subject string) page {
		f := p.get("me/memories").button(t, "Show")
		f.fields.Set("subject", subject)
		return p.submit(f)
	}
	// The page offers the guardian the wards to choose from, and no other persons.
	form := sean.get("me/memories").button(t, "dog:bella")
	if got := slices.DeleteFunc(slices.Clone(form.buttons), func(b string) bool { return b == "dog:bella" }); len(got) > 0 {
		t.Errorf("sean is offered %q too", got)
	}
	form.fields.Set("subject", "dog:bella")
	sean.submit(form).says(t, "Who sees memories about dog:bella", "kept by si:ash")
	ash := signInTo(t, r, "subject:si:ash").get("me/memories")
	ash.button(t, "dog:bella")
	ash.button(t, "human:mira")
	pageAboutWard := askAbout(sean, "dog:bella")
	pageAboutWard.says(t, "Who sees memories about dog:bella", "kept by si:ash", "dog:bella consented, by human:sean")
	nextCursor := strings.Split(strings.SplitN(pageAboutWard.body, `/console/me/memories/`, 2)[1], `"`)[0]
	if strings.Contains(nextCursor, "bella") {
		t.Errorf("the address of the next page is %q", nextCursor)
	}
	nextPage := sean.get("me/memories/" + nextCursor)
	nextPage.says(t, "Who sees memories about dog:bella")
	if nextPage.body == pageAboutWard.body {
		t.Error("the next page is the same")
	}
	if p := signInTo(t, r, "subject:human:sean").get("me/memories/" + nextCursor); p.status != http.StatusNotFound {
		t.Errorf("another session's address: %d", p.status)
	}
	mallory := signInTo(t, r, "subject:human:mallory")
	hiddenPage, absentPage := askAbout(mallory, "human:kid_123"), askAbout(mallory, "human:nobodyx")
	if strings.Contains(mallory.get("me/memories").body, `value="human:kid_123"`) {
		t.Error("a stranger is offered somebody to ask about")
	}
	hiddenPage.says(t, "There is nothing to show about human:kid_123")
	if clean(hiddenPage.body, "human:kid_123") != clean(absentPage.body, "human:nobodyx") || hiddenPage.status != absentPage.status {
		t.Errorf("somebody and nobody are told apart:\n%s\n%s", hiddenPage.body, absentPage.body)
	}
	if p := askAbout(mallory, "not an id"); p.status != http.StatusUnprocessableEntity {
		t.Errorf("what is no id: %d", p.status)
	}

	c := browser(t)
	c.size(360, 740, true)
	c.open(r.Access.HTTP + "/console/")
	c.write(r.Access.Tokens["subject:si:ash"])
	c.loading(func() { c.press("Enter") })
	c.looks(t, r, "memories", "me", "me/general", "me/memories")
}

func clean(body, id string) string { return strings.ReplaceAll(body, id, "ID") }
