//go:build unix

package privacy

import (
	"context"
	"slices"
	"testing"

	"github.com/pgconsent/pgconsent/policy"
)

// The owner of a store makes a context and says who takes part, by entity or by role. Participants and the owner can
// enter and list it.
func checkContexts(k *kernle) {
	ctx := context.Background()
	list := func(agentName string) []string {
		out := []string{}
		for _, c := range must[[]Context](k, agentName)(k.session(agentName).readContexts(ctx, "")) {
			name := c.Store + "/" + c.Name
			if c.Owner {
				name += " owner"
			}
			if !c.MayEnter {
				name += " closed"
			}
			out = append(out, name)
		}
		return out
	}
	k.same("listed to a participant", list("bella"), "ash/ctx:health", "ash/ctx:talk", "left/ctx:two")
	k.same("listed to a role", list("vet"), "ash/ctx:health")
	k.same("listed to the owner", list("ash"), "ash/ctx:broken owner", "ash/ctx:health owner", "ash/ctx:talk owner")
	k.same("listed to a stranger", list("lou"))

	show := func(agentName, name string) Context {
		k.Helper()
		out := must[[]Context](k, name)(k.session(agentName).readContexts(ctx, name))
		if len(out) != 1 {
			k.Fatalf("%s: %+v", name, out)
		}
		return out[0]
	}
	health, talk, brokenContext := show("vet", "ctx:health"), show("ash", "ctx:talk"), show("ash", "ctx:broken")
	k.same("what new memories are granted to", health.Access, "human:sean", "ctx:health")
	k.same("that, where nothing says so", talk.Access, "si:bella", "human:mira", "ctx:talk")
	k.same("who takes part by what is no list", brokenContext.Participants)
	for description, name := range map[string]string{"of others": "ctx:talk", "that is not": "ctx:none",
		"in capitals": "CTX:health", "a part of its name": "ctx:heal", "a pattern": "ctx:%"} {
		if out := must[[]Context](k, description)(k.session("vet").readContexts(ctx, name)); len(out) != 0 {
			k.Errorf("a context %s: %+v", description, out)
		}
	}
	_, err := k.service.ContextsNamed(ctx, as("vet"), "ctx:talk")
	requireRefused(k.T, "a context of others", err, NameNotFound, "PC404")
	if contextList, err := k.service.Contexts(ctx, as("lou")); err != nil || contextList == nil || len(contextList) != 0 {
		k.Errorf("no contexts: %v, %v", contextList, err)
	}

	enter := func(agentName string, e ContextRequest) (*EnteredContext, error) {
		return k.service.EnterContext(ctx, as(agentName), e)
	}
	isTrue, isFalse := true, false
	for _, c := range []struct {
		description, agentName string
		e                      ContextRequest
		store                  string
		wantCreated            bool
		added                  []string
		participants           []string
		access                 []string
		owner                  bool
		isRoleHeld             *bool
	}{
		{"by a role that it has", "vet", ContextRequest{Context: "ctx:health", Role: "role:vet"}, "ash", false, nil,
			health.Participants, health.Access, false, &isTrue},
		{"by a role without its kind", "vet", ContextRequest{Context: "ctx:health", Role: "vet"}, "ash", false, nil,
			health.Participants, health.Access, false, &isTrue},
		{"by a role that it has not, with somebody who is there", "sean", ContextRequest{Context: "ctx:health",
			Role: "role:vet", Participants: []string{"si:bella"}}, "ash", false, nil, health.Participants,
			health.Access, false, &isFalse},
		{"one more, by the owner", "ash", ContextRequest{Context: "ctx:talk", Participants: []string{"si:bella", "si:rex"}},
			"ash", false, []string{"si:rex"},
			[]string{"si:bella", "human:mira", "si:rex"}, []string{"si:bella", "human:mira", "si:rex", "ctx:talk"},
			true, nil},
		{"a new one", "ash", ContextRequest{Context: "ctx:new", Participants: []string{"human:mira"}, Reason: "school begins"},
			"ash", true, []string{"human:mira"}, []string{"human:mira"}, []string{"human:mira", "ctx:new"}, true, nil},
		{"one of two of a name", "two", ContextRequest{Context: "ctx:two", Store: "right", Participants: []string{"si:rex"}},
			"right", false, []string{"si:rex"}, []string{"si:rex"}, []string{"si:rex", "ctx:two"}, true, nil},
	} {
		got, err := enter(c.agentName, c.e)
		if err != nil {
			k.Errorf("entered %s: %v", c.description, err)
			continue
		}
		k.same("added, "+c.description, got.Added, c.added...)
		k.same("taking part, "+c.description, got.Participants, c.participants...)
		k.same("granted to, "+c.description, got.Access, c.access...)
		if got.Store != c.store || got.Created != c.wantCreated || got.Owner != c.owner || !got.MayEnter ||
			got.Setting != "SET pgconsent.context = '"+c.e.Context+"'" || (got.CredentialHasRole == nil) != (c.isRoleHeld == nil) ||
			c.isRoleHeld != nil && *got.CredentialHasRole != *c.isRoleHeld || got.Role != c.e.Role {
			k.Errorf("entered %s: %+v", c.description, got)
		}
	}
	for _, c := range []struct {
		description, agentName string
		e                      ContextRequest
		name, code             string
	}{
		{"a context of others", "lou", ContextRequest{Context: "ctx:health"}, NameNotFound, "PC404"},
		{"a participant adds", "sean", ContextRequest{Context: "ctx:health", Participants: []string{"si:rex"}}, NameForbidden,
			"42501"},
		{"more in two of a name", "two", ContextRequest{Context: "ctx:two", Participants: []string{"human:lou"}}, NameValidation,
			"PC422"},
		{"what one that is there grants to", "ash", ContextRequest{Context: "ctx:talk", Access: []string{}}, NameConflict, "PC409"},
	} {
		_, err := enter(c.agentName, c.e)
		requireRefused(k.T, c.description, err, c.name, c.code)
	}
	for _, c := range []struct {
		description, agentName string
		e                      ContextRequest
		want                   Context
		name, code             string
	}{
		{"with what it grants to", "ash", ContextRequest{Context: "ctx:grants", Access: []string{"human:mira"}},
			Context{Store: "ash", Access: []string{"human:mira"}}, "", ""},
		{"in one store of two", "two", ContextRequest{Context: "ctx:new", Store: "right"},
			Context{Store: "right", Access: []string{"ctx:new"}}, "", ""},
		{"with two stores", "two", ContextRequest{Context: "ctx:newer"}, Context{}, NameValidation, "PC422"},
		{"without a store", "vet", ContextRequest{Context: "ctx:newer"}, Context{}, NameNotFound, "PC404"},
		{"in a store of others", "mallory", ContextRequest{Context: "ctx:newer", Store: "ash"}, Context{}, NameNotFound, "PC404"},
	} {
		got, err := k.session(c.agentName).insertContext(ctx, c.e, []string{}, c.e.Access)
		if c.name != "" {
			requireRefused(k.T, "a new one "+c.description, err, c.name, c.code)
		} else if err != nil || got.Name != c.e.Context || got.Store != c.want.Store ||
			!slices.Equal(got.Access, c.want.Access) || !got.Owner || !got.MayEnter {
			k.Errorf("a new one %s: %+v, %v", c.description, got, err)
		}
	}
	otherStoreContext := show("mallory", "ctx:health")
	if err := k.session("mallory").addParticipants(ctx, &otherStoreContext, []string{"si:rex"}); err != nil ||
		!slices.Equal(otherStoreContext.Participants, []string{"si:mallory", "si:rex"}) ||
		!slices.Equal(otherStoreContext.Access, []string{"*"}) {
		k.Errorf("one more, where new memories are granted to others: %+v, %v", otherStoreContext, err)
	}
	missingContext := Context{Name: "ctx:none", Store: "mallory", Owner: true}
	requireRefused(k.T, "one more in what has gone", k.session("mallory").addParticipants(ctx, &missingContext, []string{"si:rex"}),
		NameNotFound,
		"PC404")
	_, err = k.service.MakeContext(ctx, as("ash"), ContextRequest{Context: "ctx:talk"})
	requireRefused(k.T, "one that is there is made", err, NameConflict, "PC409")
	if wantCreated, err := k.service.MakeContext(ctx, as("mallory"), ContextRequest{Context: "ctx:talk"}); err != nil ||
		!wantCreated.Created ||
		wantCreated.Store != "mallory" {
		k.Errorf("a name that another store has is made: %+v, %v", wantCreated, err)
	}
	if got := k.value("SELECT string_agg(participants || ' ' || default_access_grants, ', ' ORDER BY stack_id, context_id) " +
		"FROM privacy_contexts WHERE context_id IN ('ctx:talk', 'ctx:grants')"); got !=
		`[] ["human:mira"], ["si:bella","human:mira","si:rex"] [], [] []` {
		k.Errorf("stored %s", got)
	}
	k.Run("by another policy", func(t *testing.T) {
		k := k.in(t)
		k.differently(func(p *policy.Privacy) {
			contexts := *p.Contexts
			contexts.Defaults.Column = ""
			p.Contexts = &contexts
		})
		_, err := k.session("ash").insertContext(ctx, ContextRequest{Context: "ctx:plain", Access: []string{"human:mira"}}, nil, nil)
		requireRefused(t, "grants of its own, without a column for them", err, NameValidation, "PC422")
		otherStoreContext := show("mallory", "ctx:health")
		if err := k.session("mallory").addParticipants(ctx, &otherStoreContext, []string{"si:late"}); err != nil ||
			!slices.Equal(otherStoreContext.Access, []string{"si:mallory", "si:rex", "si:late", "ctx:health"}) {
			t.Errorf("joined: %+v, %v", otherStoreContext, err)
		}
	})
}
