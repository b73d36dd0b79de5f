package registry

import (
	"fmt"
	"testing"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// The pages of the list contain each person once, in order. A search returns only people that match.
func TestPeople(t *testing.T) {
	r := open(t, database(t), defaults)
	if people, hasMore, now, err := r.People(t.Context(), PeopleFilter{PageSize: 10}); err != nil || len(people) != 0 ||
		hasMore || now.IsZero() {
		t.Fatalf("of nobody: %v %v %v", people, hasMore, err)
	}
	for i := range 7 {
		mustExecute(t, r, grant(fmt.Sprintf("user-%d", i), consent.StreamTemporary))
	}
	mustExecute(t, r, grant("Zoë%_<b>", consent.StreamAnonymous))
	mustExecute(t, r, consent.Command{Action: consent.ActionUpgrade, Subject: "user-3", Caller: subject("user-3")})
	mustExecute(t, r, consent.Command{Action: consent.ActionRevoke, Subject: "user-4", Caller: subject("user-4")})
	mustExecute(t, r, consent.Command{Action: consent.ActionGrant, Subject: "user-5", Grantee: "si:vet", Scope: "ctx:x",
		Purposes: []string{"care"}, Caller: subject("user-5")})
	mustExecute(t, r, consent.Command{Action: consent.ActionGrant, Subject: "only", Grantee: "si:vet", Caller: subject("only")})

	readAllPages := func(f PeopleFilter) (ids []string, consents map[string][]consent.Consent) {
		t.Helper()
		consents = map[string][]consent.Consent{}
		for {
			people, hasMore, _, err := r.People(t.Context(), f)
			if err != nil || len(people) > f.PageSize || hasMore && len(people) < f.PageSize {
				t.Fatalf("%+v: %d, more %v: %v", f, len(people), hasMore, err)
			}
			for _, p := range people {
				if consents[p.Subject] != nil {
					t.Errorf("%s is there twice", p.Subject)
				}
				ids, consents[p.Subject] = append(ids, p.Subject), p.Consents
			}
			if !hasMore {
				return ids, consents
			}
			f.After = people[len(people)-1].Subject
		}
	}
	for _, limit := range []int{1, 2, 3, 9, 10} {
		if ids, _ := readAllPages(PeopleFilter{PageSize: limit}); len(ids) != 9 {
			t.Errorf("pages of %d: %v", limit, ids)
		}
	}
	_, consents := readAllPages(PeopleFilter{PageSize: 4})
	if c := consents["user-5"]; len(c) != 2 || c[0].Stream != consent.StreamTemporary || c[1].Grantee != "si:vet" ||
		c[1].Scope != "ctx:x" || len(c[1].Purposes) != 1 || len(c[0].Purposes) != 0 {
		t.Errorf("user-5: %+v", c)
	}
	if c := consents["user-3"]; len(c) != 1 || len(c[0].RequestedCategories) != 3 || c[0].DueAt.IsZero() || c[0].ExpiresAt.IsZero() {
		t.Errorf("user-3: %+v", c)
	}
	if c := consents["user-4"]; len(c) != 1 || c[0].State != consent.StateWithdrawn {
		t.Errorf("user-4: %+v", c)
	}
	for _, c := range []struct {
		find PeopleFilter
		want string
	}{
		{PeopleFilter{Text: "ZO", PageSize: 5}, "[Zoë%_<b>]"},
		{PeopleFilter{Text: "%_", PageSize: 5}, "[Zoë%_<b>]"},
		{PeopleFilter{Text: "er-6", PageSize: 5}, "[user-6]"},
		{PeopleFilter{Text: "' OR true --", PageSize: 5}, "[]"},
		{PeopleFilter{Stream: consent.StreamAnonymous, PageSize: 5}, "[Zoë%_<b>]"},
		{PeopleFilter{Stream: consent.StreamTemporary, PageSize: 2}, "[user-0 user-1 user-2 user-3 user-5 user-6]"},
		{PeopleFilter{Stream: consent.StreamPartnered, PageSize: 5}, "[]"},
	} {
		if ids, _ := readAllPages(c.find); fmt.Sprint(ids) != c.want {
			t.Errorf("%+v: %v, want %s", c.find, ids, c.want)
		}
	}
	mustExecute(t, r, consent.Command{Action: consent.ActionErase, Subject: "user-6", Caller: subject("user-6")})
	if ids, _ := readAllPages(PeopleFilter{Text: "user-6", PageSize: 5}); len(ids) != 0 {
		t.Errorf("erased: %v", ids)
	}
}
