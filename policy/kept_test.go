package policy_test

import (
	"strings"
	"testing"
)

// What cannot be kept, or says nothing by the time, is refused when the policy is loaded.
func TestKeptIsRefused(t *testing.T) {
	snap := derivedSnapshot(t)
	for rule, want := range map[string]string{
		"memories: { rows: [ consent: { every: [ people: { id: person_id } ], status: consent, is: granted, materialize: true } ] }":                                                                 "",
		"memories: { rows: [ consent: { every: [ people: { id: person_id } ], status: consent, is: granted, materialize: true } ], write: { commands: [update], columns: [body] } }":                 "agents write public.memories, and what is kept is settled when a transaction commits",
		"loose: { rows: [ consent: { every: [ people: { id: from_id } ], status: consent, is: granted, materialize: true } ] }":                                                                      "public.loose has no primary key",
		"memories: { rows: [ consent: { every: [ people: { id: person_id } ], status: consent, is: granted, expires: consent } ] }":                                                                  "public.people.consent is a text (a moment is a timestamp with time zone",
		"memories: { rows: [ consent: { subject: person_id, materialize: true, record: { table: people, grantor: id, grantee: { column: id, to: user } } } ] }":                                      "expires and materialize are for consent by a status",
		"summaries: { rows: [ derived: { from: { memories: { id: memory_id } }, where: [ consent: { every: [ people: { id: person_id } ], status: consent, is: granted, materialize: true } ] } ] }": "the policy does not list public.memories",
	} {
		_, got := derivedCompile(t, snap, derivedHead+"  "+rule)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", rule, got, want)
		}
	}
}
