package privacy

import (
	"encoding/base64"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgconsent/pgconsent/policy"
)

// newAuditor returns an auditor of two stores. In the store ash human:sean speaks for dog:bella; in mallory's store
// human:mallory does.
func newAuditor(t *testing.T) auditor {
	t.Helper()
	p := withoutDatabase(t).Policy()
	section := *p.Privacy()
	section.Consents = &policy.Consents{Scope: "scope"}
	return auditor{policy: p, section: &section, stores: map[string]*storeConsents{
		"ash": {
			consents: []consentRow{
				{"consent:1", "human:sean", "si:bella", "*", "2026"},
				{"consent:2", "human:sean", "role:vet", "ctx:health", ""},
				{"consent:3", "human:noor", "*", "*", ""},
				{"consent:4", "human:lou", "si:bella", "note:7", ""},
				{"consent:5", "human:mallory", "si:rex", "*", ""},
			},
			guardians: [][2]string{{"dog:bella", "human:sean"}},
			contexts:  map[string][]string{"ctx:health": {"human:sean", "role:vet"}, "ctx:empty": nil},
		},
		"mallory": {guardians: [][2]string{{"dog:bella", "human:mallory"}},
			contexts: map[string][]string{"ctx:health": {"si:rex"}}},
	}}
}

func somebody(ids ...string) *possibleViewer { return &possibleViewer{entity: ids[0], ids: ids} }

// A consent counts if it meets three conditions. It is the subject's or its guardian's in this store; its grantee is
// the viewer, a role of the viewer, or everybody; and its scope is everything, this memory, or a context that it is
// granted to.
func TestConsentThatCounts(t *testing.T) {
	a := newAuditor(t)
	for _, c := range []struct {
		description, subject string
		viewer               *possibleViewer
		key                  string
		grants               []string
		want                 string // the id of the record; "": none
	}{
		{"a guardian's", "dog:bella", somebody("si:bella"), "note:1", nil, "consent:1"},
		{"the grantor's own", "human:sean", somebody("si:bella"), "note:1", nil, "consent:1"},
		{"to another", "dog:bella", somebody("si:bella_2"), "note:1", nil, ""},
		{"to a role", "dog:bella", somebody("human:vet", "role:vet"), "note:1", []string{"ctx:health"}, "consent:2"},
		{"about a context that it is not granted to", "dog:bella", somebody("human:vet", "role:vet"), "note:1",
			[]string{"role:vet"}, ""},
		{"to everybody", "human:noor", somebody("si:rex"), "note:1", nil, "consent:3"},
		{"about this memory", "human:lou", somebody("si:bella"), "note:7", nil, "consent:4"},
		{"about another memory", "human:lou", somebody("si:bella"), "note:70", nil, ""},
		{"of a guardian elsewhere", "dog:bella", somebody("si:rex"), "note:1", nil, ""},
		{"of nobody", "human:mira", somebody("si:bella"), "note:1", nil, ""},
	} {
		got, ok := a.findConsent(c.subject, c.viewer, memoryRow{store: "ash", key: c.key, grants: c.grants})
		if ok != (c.want != "") || got.Record != c.want || ok && (got.Subject != c.subject ||
			got.Guardian != (got.Grantor != c.subject)) {
			t.Errorf("%s: %+v, want %q", c.description, got, c.want)
		}
	}
	// Without a scope column, each consent is about everything.
	a.section.Consents.Scope = ""
	if got, ok := a.findConsent("human:lou", somebody("si:bella"), memoryRow{store: "ash", key: "note:70"}); !ok ||
		got.Record != "consent:4" {
		t.Errorf("without scopes: %+v", got)
	}
}

func TestGrantOfViewer(t *testing.T) {
	a := newAuditor(t)
	for _, c := range []struct {
		description      string
		viewer           *possibleViewer
		in               string
		grants           []string
		grant, grantedTo string
	}{
		{"itself", somebody("si:bella"), "", []string{"si:rex", "si:bella"}, "si:bella", ""},
		{"a role", somebody("human:vet", "role:vet"), "", []string{"role:vet"}, "role:vet", ""},
		{"itself before everybody", somebody("si:bella"), "", []string{"*", "si:bella"}, "si:bella", ""},
		{"everybody", somebody("si:rex"), "", []string{"*"}, "*", ""},
		{"a longer id", somebody("si:bell"), "", []string{"si:bella"}, "", ""},
		{"a context that it takes part in", somebody("human:sean"), "", []string{"ctx:health"}, "ctx:health",
			"ctx:health"},
		{"by a role", somebody("human:vet", "role:vet"), "ctx:health", []string{"ctx:health"}, "ctx:health",
			"ctx:health"},
		{"being in another context", somebody("human:sean"), "ctx:empty", []string{"ctx:health"}, "", ""},
		{"a context of others", somebody("si:rex"), "", []string{"ctx:health"}, "", ""},
		{"a context without anybody", somebody("human:sean"), "", []string{"ctx:empty"}, "", ""},
		{"what is no context", somebody("human:sean"), "", []string{"ctx:none"}, "", ""},
		{"nothing", somebody("human:sean"), "", nil, "", ""},
	} {
		if grant, grantedTo := a.grantForViewer(c.viewer, c.in, memoryRow{store: "ash", grants: c.grants}); grant != c.grant ||
			grantedTo != c.grantedTo {
			t.Errorf("%s: %q in %q, want %q in %q", c.description, grant, grantedTo, c.grant, c.grantedTo)
		}
	}
	a.section.EverybodyWord = "" // without a word for everybody, a grant to "" is no grant
	if grant, _ := a.grantForViewer(somebody("si:rex"), "", memoryRow{store: "ash", grants: []string{""}}); grant != "" {
		t.Errorf("without a word for everybody: %q", grant)
	}
}

// The report on a viewer: the owner needs no grant, and nobody must consent to seeing what is about themselves.
// Consents of others are not shown.
func TestViewerReport(t *testing.T) {
	a := newAuditor(t)
	row := memoryRow{store: "ash", key: "note:1", owner: "si:ash", grants: []string{"si:bella", "human:noor"},
		subjects: []string{"dog:bella", "human:noor", "human:mira"}}
	guardian := Agreement{Subject: "dog:bella", Grantor: "human:sean", Guardian: true, Grantee: "si:bella", Scope: "*",
		Record: "consent:1", Given: "2026"}
	consentForEverybody := Agreement{Subject: "human:noor", Grantor: "human:noor", Grantee: "*", Scope: "*", Record: "consent:3"}
	for _, c := range []struct {
		description   string
		viewer        *possibleViewer
		in            string
		shownConsents []string
		want          Viewer
	}{
		{"the owner", somebody("si:ash"), "ctx:health", row.subjects, Viewer{Entity: "si:ash", Through: "owner"}},
		{"somebody of whom only the name is the owner's", &possibleViewer{entity: "si:ash"}, "", row.subjects,
			Viewer{Entity: "si:ash", Through: "rule"}},
		{"a grantee", somebody("si:bella"), "", row.subjects, Viewer{Entity: "si:bella", Through: "grant",
			Grant: "si:bella", Consents: []Agreement{guardian, consentForEverybody}, Missing: []string{"human:mira"}}},
		{"a grantee, to a guardian", somebody("si:bella"), "", []string{"dog:bella"},
			Viewer{Entity: "si:bella", Through: "grant", Grant: "si:bella", Consents: []Agreement{guardian}}},
		{"a subject", somebody("human:noor"), "", []string{"human:noor"}, Viewer{Entity: "human:noor",
			Through: "grant", Grant: "human:noor"}},
		{"a subject by a role alone", somebody("si:bella", "human:mira"), "", []string{"human:mira"},
			Viewer{Entity: "si:bella", Through: "grant", Grant: "si:bella", Missing: []string{"human:mira"}}},
		{"without a grant", somebody("si:rex"), "", row.subjects, Viewer{Entity: "si:rex", Through: "rule"}},
	} {
		if diff := cmp.Diff(c.want, a.viewerEntry(c.viewer, c.in, row, c.shownConsents)); diff != "" {
			t.Errorf("%s: %s", c.description, diff)
		}
	}
}

// To find out who sees a memory, the service queries the database as each agent with an entity, once for agents with
// equal attributes. Then it does so as each other grantee, as each participant of a context with a grant, and last as
// anybody.
func TestAuditCandidates(t *testing.T) {
	a := newAuditor(t)
	logins := map[string]map[string]string{
		"ash": {"user": "si:ash"}, "vet": {"user": "human:vet", "roles": "{role:vet}"},
		"twin":          {"user": "human:vet", "roles": "{role:vet}"},
		"vet_elsewhere": {"user": "human:vet", "roles": "{role:vet}", "team": "team:a"}, "nobody": {"team": "team:b"},
	}
	var got []string
	for _, c := range a.possibleViewers(logins, []memoryRow{
		{store: "ash", grants: []string{"si:ash", "si:rex", "role:vet", "*", "ctx:health", "si:rex"}},
		{store: "mallory", grants: []string{"ctx:health", "ctx:none"}},
	}) {
		candidate := c.entity
		for _, identifier := range append(slices.Clone(c.agents), c.attributes["user"]) {
			candidate += " " + identifier
		}
		if c.ids == nil {
			candidate += " without ids"
		}
		got = append(got, candidate)
	}
	want := []string{"si:ash ash si:ash", "human:vet twin vet human:vet", "human:vet vet_elsewhere human:vet",
		"si:rex si:rex", "human:sean human:sean", "ctx:none ctx:none", "* (anybody) without ids"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"user": "si:rex", "roles": "{}"}, a.attributesOfUnknownEntity("si:rex")); diff != "" {
		t.Errorf("somebody of whom only an id is known: %s", diff)
	}
}

func TestAttributesAreTheSame(t *testing.T) {
	attributes := map[string]string{"user": "a", "team": ""}
	for _, c := range []struct {
		otherAttributes map[string]string
		want            bool
	}{
		{map[string]string{"user": "a", "team": ""}, true}, {map[string]string{"user": "b", "team": ""}, false},
		{map[string]string{"user": "a"}, false},
		{map[string]string{"user": "a", "other": ""}, false},
		{map[string]string{"user": "a", "team": "", "other": ""}, false},
	} {
		if got := equalAttributes(attributes, c.otherAttributes); got != c.want {
			t.Errorf("%v: %v", c.otherAttributes, got)
		}
	}
}

// A cursor is what a report returned: three texts. Everything else is refused.
func TestReportCursors(t *testing.T) {
	row := memoryRow{store: "ash", kind: "note", key: "note:1"}
	if got, err := parseCursor(row.nextCursor()); err != nil || !slices.Equal(got, []string{"ash", "note", "note:1"}) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := parseCursor(""); err != nil || got != nil {
		t.Errorf("no place: %q, %v", got, err)
	}
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for description, cursor := range map[string]string{
		"no base64": "*", "padded": base64.URLEncoding.EncodeToString([]byte(`["a","b","cc"]`)) + "=",
		"no JSON": encode("a"), "two": encodeCursor("a", "b"), "four": encodeCursor("a", "b", "c", "d"),
		"numbers": encode(`["a","b",1]`), "a NUL": encodeCursor("a", "b", "c\x00"),
		"no UTF-8": encode("[\"a\",\"b\",\"\xff\"]"), "null": encode("null"),
	} {
		_, err := parseCursor(cursor)
		requireRefused(t, description, err, NameValidation, "PC422")
	}
}

func TestListDifference(t *testing.T) {
	for _, c := range []struct{ a, b, want []string }{
		{nil, nil, nil}, {[]string{"a", "b"}, []string{"b"}, []string{"a"}}, {[]string{"a"}, []string{"a", "b"}, nil},
		{[]string{"a", "A"}, []string{"a"}, []string{"A"}},
	} {
		if got := idsNotIn(c.a, c.b); !slices.Equal(got, c.want) {
			t.Errorf("%q without %q: %q", c.a, c.b, got)
		}
	}
}

func TestBeliefMakersWithoutBeliefs(t *testing.T) {
	for description, g := range map[string]*policy.Generalize{"no place for beliefs": nil, "no beliefs": {}} {
		keys := map[bool][]string{true: {"belief:1"}}[g == nil]
		if out, err := (auditor{}).beliefMakers(t.Context(), g, keys); err != nil || len(out) != 0 {
			t.Errorf("%s: %v, %v", description, out, err)
		}
	}
}
