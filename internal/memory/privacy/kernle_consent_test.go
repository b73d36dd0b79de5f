//go:build unix

package privacy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// Only the grantor can record a consent, or a guardian in the guardian's own name. The store is the one in the call, or
// follows from the scope, the grantor, or the caller's earlier consents.
func checkRecordConsent(k *kernle) {
	ctx := context.Background()
	recordConsent := func(agentName string, g ConsentRequest) (*RecordedConsent, error) {
		return k.service.RecordConsent(ctx, as(agentName), g)
	}
	for _, c := range []struct {
		description, agentName string
		g                      ConsentRequest
		want                   RecordedConsent // without its id, which must not be empty
	}{
		{"one's own, which was revoked", "mira", ConsentRequest{Grantee: "si:bella", Store: "ash"},
			RecordedConsent{Store: "ash", Grantor: "human:mira", Grantee: "si:bella", Scope: "*"}},
		{"for a ward, in the one store where one speaks for it", "sean", ConsentRequest{Grantor: "dog:bella", Grantee: "si:new",
			Scope: "episode:1", Reason: "for the insurance"},
			RecordedConsent{Store: "ash", Grantor: "human:sean", OnBehalfOf: "dog:bella", Grantee: "si:new", Scope: "episode:1"}},
		{"naming oneself", "bella", ConsentRequest{Grantor: "si:bella", Grantee: "si:named"},
			RecordedConsent{Store: "ash", Grantor: "si:bella", Grantee: "si:named", Scope: "*"}},
	} {
		got, err := recordConsent(c.agentName, c.g)
		if err != nil {
			k.Errorf("%s: %v", c.description, err)
			continue
		}
		if c.want.ID = got.ID; got.ID == "" || *got != c.want {
			k.Errorf("%s: %+v, want %+v", c.description, *got, c.want)
		}
	}
	// An equal consent that is active is not recorded again. One with another scope or grantee, or after a revocation,
	// gets a new record.
	for _, c := range []struct {
		description, agentName string
		g                      ConsentRequest
		id                     string // "": a new record
	}{
		{"again", "sean", ConsentRequest{Grantee: "si:bella", Store: "ash"}, "consent:1"},
		{"again, in the name of a ward", "sean", ConsentRequest{Grantor: "dog:bella", Grantee: "si:bella"}, "consent:1"},
		{"of another scope", "sean", ConsentRequest{Grantee: "si:bella", Store: "ash", Scope: "ctx:health"}, ""},
		{"to another", "sean", ConsentRequest{Grantee: "si:bella_2", Store: "ash"}, ""},
		{"in another store", "lou", ConsentRequest{Grantee: "si:bella", Store: "right"}, ""},
	} {
		got, err := recordConsent(c.agentName, c.g)
		if err != nil || got.Repeated != (c.id != "") || got.Repeated && (got.ID != c.id || got.OnBehalfOf != c.g.Grantor) {
			k.Errorf("%s: %+v, %v, want %q", c.description, got, err, c.id)
		}
	}
	for _, c := range []struct {
		description, agentName string
		g                      ConsentRequest
		name, code             string
	}{
		{"the owner for a subject", "ash", ConsentRequest{Grantor: "dog:bella", Grantee: "si:rex", Store: "ash"}, NameForbidden,
			"42501"},
		{"a guardian, in another store", "sean", ConsentRequest{Grantor: "dog:bella", Grantee: "si:rex", Store: "mallory"},
			NameForbidden, "42501"},
	} {
		_, err := recordConsent(c.agentName, c.g)
		requireRefused(k.T, c.description, err, c.name, c.code)
	}
	for _, c := range []struct {
		description, agentName string
		g                      ConsentRequest
		want, name, code       string
	}{
		{"where it is said", "vet", ConsentRequest{Store: "left"}, "left", "", ""},
		{"where one speaks for the ward", "sean", ConsentRequest{Grantor: "dog:bella"}, "ash", "", ""},
		{"where the context is", "bella", ConsentRequest{Scope: "ctx:talk"}, "ash", "", ""},
		{"where the context and the ward are", "mira", ConsentRequest{Grantor: "dog:rex", Scope: "ctx:talk"}, "ash", "", ""},
		{"where the memory is", "bella", ConsentRequest{Scope: "episode:1"}, "ash", "", ""},
		{"in one's own store", "mallory", ConsentRequest{}, "mallory", "", ""},
		{"in one's own store, whatever memory there is not", "mallory", ConsentRequest{Scope: "episode:private"}, "mallory", "",
			""},
		{"where one has consented before", "bella", ConsentRequest{Grantor: "si:bella"}, "ash", "", ""},
		{"where one speaks for somebody", "gina", ConsentRequest{}, "mallory", "", ""},
		{"of one who speaks for others", "sean", ConsentRequest{Grantor: "human:kid"}, "", NameForbidden, "42501"},
		{"of the owner for a subject", "ash", ConsentRequest{Grantor: "dog:bella"}, "", NameForbidden, "42501"},
		{"of an id that begins as a ward's", "sean", ConsentRequest{Grantor: "dog:bell"}, "", NameForbidden, "42501"},
		{"of a guardian in two stores", "lou", ConsentRequest{Grantor: "dog:lou"}, "", NameValidation, "PC422"},
		{"of an owner of two", "two", ConsentRequest{}, "", NameValidation, "PC422"},
		{"of a context of two", "two", ConsentRequest{Scope: "ctx:two"}, "", NameValidation, "PC422"},
		{"with records in two", "lou", ConsentRequest{}, "", NameValidation, "PC422"},
		{"of what one does not see", "vet", ConsentRequest{Scope: "episode:private"}, "", NameValidation, "PC422"},
		{"of a memory that everybody sees, by an id that is a pattern", "vet", ConsentRequest{Scope: "episode:publi_"}, "",
			NameValidation, "PC422"},
	} {
		c.g.Grantee = "si:any"
		got, err := k.session(c.agentName).consentStore(ctx, c.g)
		if c.name != "" {
			requireRefused(k.T, "the store "+c.description, err, c.name, c.code)
		} else if err != nil || got != c.want {
			k.Errorf("the store %s: %q, %v, want %q", c.description, got, err, c.want)
		}
	}
	if got := k.value("SELECT string_agg(reason, ', ') FROM pgconsent.privacy_event " +
		"WHERE relation = 'public.consent_records' AND reason IS NOT NULL"); got != "for the insurance" {
		k.Errorf("noted %s", got)
	}
	k.Run("by another policy", func(t *testing.T) {
		k := k.in(t)
		k.differently(func(p *policy.Privacy) { p.Consents = nil })
		_, err := k.service.RecordConsent(ctx, as("sean"), ConsentRequest{Grantee: "si:bella", Store: "ash"})
		requireRefused(t, "without records", err, NameNotFound, "PC404")
	})
}

// The grantor, or a guardian for its ward, can withdraw a consent by its id, or all consents that match the request.
func checkWithdrawConsent(k *kernle) {
	ctx := context.Background()
	if _, err := k.db.Connect(k, "postgres").Exec(ctx, `
		INSERT INTO consent_records (id, stack_id, grantor, grantee, scope) VALUES
		('w:1', 'ash', 'human:sean', 'si:w', '*'), ('w:2', 'ash', 'human:sean', 'si:w', 'ctx:health'),
  ('w:3', 'mallory', 'human:sean', 'si:w', '*'), ('w:4', 'ash', 'human:sean', 'si:w_2', '*'),
		('w:5', 'ash', 'dog:bella', 'si:w', '*'), ('w:6', 'mallory', 'dog:bella', 'si:w', '*'),
  ('w:7', 'ash', 'human:mira', 'si:w', '*')`); err != nil {
		k.Fatal(err)
	}
	active := func() string {
		return k.value("SELECT coalesce(string_agg(id, ' ' ORDER BY id), '') FROM consent_records " +
			"WHERE id LIKE 'w:%' AND revoked_at IS NULL")
	}
	for _, c := range []struct {
		description string
		g           ConsentRequest
		ids         []string
		isRepeated  bool
		active      string
	}{
		{"of a scope", ConsentRequest{Grantee: "si:w", Scope: "ctx:health"}, []string{"w:2"}, false, "w:1 w:3 w:4 w:5 w:6 w:7"},
		{"of a store", ConsentRequest{Grantee: "si:w", Store: "mallory"}, []string{"w:3"}, false, "w:1 w:4 w:5 w:6 w:7"},
		{"a ward's", ConsentRequest{Grantor: "dog:bella", Grantee: "si:w"}, []string{"w:5"}, false, "w:1 w:4 w:6 w:7"},
		// only in the store where it speaks for the ward
		{"all to a grantee", ConsentRequest{Grantee: "si:w"}, []string{"w:1"}, false, "w:4 w:6 w:7"},
		{"all, again", ConsentRequest{Grantee: "si:w"}, []string{"w:1", "w:2", "w:3"}, true, "w:4 w:6 w:7"},
		{"by its id, whatever else is said", ConsentRequest{ID: "w:4", Grantee: "si:other"}, []string{"w:4"}, false, "w:6 w:7"},
	} {
		out, err := k.service.WithdrawConsent(ctx, as("sean"), c.g)
		var got []string
		for _, consent := range out {
			got = append(got, consent.ID)
			if !consent.Revoked || consent.Repeated != c.isRepeated {
				k.Errorf("%s: %+v", c.description, consent)
			}
		}
		if slices.Sort(got); err != nil || !slices.Equal(got, c.ids) {
			k.Errorf("%s: %q, %v, want %q", c.description, got, err, c.ids)
		}
		if now := active(); now != c.active {
			k.Errorf("%s: %s are active, want %s", c.description, now, c.active)
		}
	}
	for _, c := range []struct {
		description, agentName string
		g                      ConsentRequest
		name, code, hint       string
	}{
		{"another's, by its id", "sean", ConsentRequest{ID: "w:7"}, NameNotFound, "PC404", "Ids match whole"},
		{"another's, by the owner of the store", "ash", ConsentRequest{Grantor: "human:mira", Grantee: "si:w"}, NameForbidden,
			"42501", ""},
		{"what one has received", "bella", ConsentRequest{ID: "consent:1"}, NameForbidden, "42501", ""},
		{"a ward's in a store where one does not speak for it", "sean", ConsentRequest{ID: "w:6"}, NameNotFound, "PC404",
			"Ids match whole"},
		{"nothing", "sean", ConsentRequest{Grantor: "human:sean", Grantee: "si:nobody"}, NameNotFound, "PC404", "Ids match whole"},
		{"a guardian's own, as its ward's", "sean", ConsentRequest{Grantor: "dog:bella", Grantee: "si:w_2"}, NameNotFound, "PC404",
			"What you have recorded as a guardian"},
	} {
		_, err := k.service.WithdrawConsent(ctx, as(c.agentName), c.g)
		requireRefused(k.T, c.description, err, c.name, c.code)
		if state, ok := errors.AsType[*sqlstate.Error](err); ok && !strings.HasPrefix(state.Hint, c.hint) {
			k.Errorf("%s: the hint is %q", c.description, state.Hint)
		}
	}
	if now := active(); now != "w:6 w:7" {
		k.Errorf("%s are active", now)
	}
	k.Run("by another policy", func(t *testing.T) {
		k := k.in(t)
		k.differently(func(p *policy.Privacy) {
			consents := *p.Consents
			consents.Revoked = ""
			p.Consents = &consents
		})
		_, err := k.service.WithdrawConsent(ctx, as("sean"), ConsentRequest{Grantee: "si:w"})
		requireRefused(t, "without a column for it", err, NameNotFound, "PC404")
	})
}
