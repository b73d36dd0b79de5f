package privacy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// withoutDatabase returns a service for memories in a table notes. Using its database fails with errReached.
func withoutDatabase(t *testing.T) *Service {
	t.Helper()
	var columns []catalog.Column
	for _, name := range []string{"id", "store", "content", "subjects", "grants"} {
		columns = append(columns, catalog.Column{Name: name, Type: "text"})
	}
	snap := catalog.NewSnapshot(catalog.Spec{Database: "d", ServerVersion: 150000, SearchPath: []string{"public"},
		Relations: []*catalog.Relation{
			{Name: catalog.Name{Schema: "public", Name: "notes"}, Kind: catalog.Table, PrimaryKey: []string{"id"},
				Columns: columns},
		}})
	doc, err := policy.Parse("policy.yaml", []byte(`version: 1
attributes:
  user: { type: text, source: credential }
  roles: { type: "text[]", source: credential }
  team: { type: text, source: credential }
privacy:
  entity: user
  roles: [roles, team]
  all: "*"
  memories: [ { tables: { note: notes }, store: store, content: content, subjects: subjects, grants: grants } ]
tables: { notes: { rows: open } }
`))
	if err != nil {
		t.Fatal(err)
	}
	compiledPolicy, err := policy.Compile(doc, snap)
	if err != nil {
		t.Fatal(err)
	}
	unreachable := func(context.Context) (*pgx.Conn, error) { return nil, errReached }
	return &Service{
		Policy:        func() *policy.Policy { return compiledPolicy },
		ConnectCaller: func(context.Context, identity.Caller) (*pgx.Conn, error) { return nil, errReached },
		AgentAttributes: func() map[string]map[string]string {
			return map[string]map[string]string{"ash": {"user": "si:ash"}, "nobody": {"team": "vets"}}
		},
		ConnectControl: unreachable, ConnectAgentRole: unreachable,
	}
}

var errReached = errors.New("the database was asked")

func as(agent string) identity.Caller {
	return identity.Caller{Name: "token of " + agent, Role: identity.Agent, Agent: agent, Database: "kernle"}
}

// operations are all operations of the service, each with valid arguments.
func operations(d *Service, caller identity.Caller) map[string]func() error {
	ctx := context.Background()
	onlyError := func(_ any, err error) error { return err }
	return map[string]func() error{
		"add": func() error { return onlyError(d.AddMemory(ctx, caller, NewMemory{Content: "x"})) },
		"grant": func() error {
			return onlyError(d.Grant(ctx, caller, GrantChange{ID: "note:1", Grantees: []string{"si:rex"}}))
		},
		"revoke": func() error {
			return onlyError(d.Revoke(ctx, caller, GrantChange{ID: "note:1", Grantees: []string{"si:rex"}}))
		},
		"consent":  func() error { return onlyError(d.RecordConsent(ctx, caller, ConsentRequest{Grantee: "si:rex"})) },
		"withdraw": func() error { return onlyError(d.WithdrawConsent(ctx, caller, ConsentRequest{Grantee: "si:rex"})) },
		"contexts": func() error { return onlyError(d.Contexts(ctx, caller)) },
		"context":  func() error { return onlyError(d.ContextsNamed(ctx, caller, "ctx:x")) },
		"enter":    func() error { return onlyError(d.EnterContext(ctx, caller, ContextRequest{Context: "ctx:x"})) },
		"make":     func() error { return onlyError(d.MakeContext(ctx, caller, ContextRequest{Context: "ctx:x"})) },
		"audit":    func() error { return onlyError(d.Audit(ctx, caller, AuditQuery{ID: "note:1"})) },
		"whom":     func() error { _, _, err := d.AuditableSubjects(ctx, caller, 5); return err },
		"drawn":    func() error { return onlyError(d.ListDerivedBeliefs(ctx, caller, "")) },
		"generalize": func() error {
			return onlyError(d.AddBelief(ctx, caller, Generalization{Source: "note:1", Belief: "x"}))
		},
	}
}

// An agent with a known entity gets through to the database, and a subject does in the operations for subjects. Every
// other caller is refused before.
func TestCallersThatMayAudit(t *testing.T) {
	d := withoutDatabase(t)
	subjects := []string{"audit", "whom", "drawn"}
	for description, caller := range map[string]identity.Caller{
		"an agent": as("ash"), "a subject": {Role: identity.Subject, Subject: "human:sean"},
		"an admin": {Role: identity.Admin, Name: "admin"}, "an operator": {Role: identity.Operator, Name: "op"},
		"a system": {Role: identity.System, Name: "system"}, "an agent without a name": as(""),
		"an agent without an entity": as("nobody"), "an agent of another configuration": as("who"),
		"a subject without an id": {Role: identity.Subject},
	} {
		for name, operation := range operations(d, caller) {
			err := operation()
			switch {
			case description == "an agent" && name == "generalize":
				requireRefused(t, description+": "+name, err, NameNotFound, "PC404") // this policy has no table for beliefs
			case description == "an agent", description == "a subject" && slices.Contains(subjects, name):
				if !errors.Is(err, errReached) {
					t.Errorf("%s: %s: %v", description, name, err)
				}
			case name == "generalize":
				requireRefused(t, description+": "+name, err, NameNotFound, "PC404")
			default:
				requireRefused(t, description+": "+name, err, NameForbidden, "42501")
			}
		}
	}
}

// A token's claims may say which entity its bearer is. Without the name of an agent, no session is opened.
func TestClaimsDoNotNameTheAgent(t *testing.T) {
	d, c := withoutDatabase(t), as("")
	c.Claims = map[string]string{"user": "si:ash"}
	_, err := d.Contexts(t.Context(), c)
	requireRefused(t, "without a name", err, NameForbidden, "42501")
	c.Agent = "ash"
	if _, err := d.Contexts(t.Context(), c); !errors.Is(err, errReached) {
		t.Errorf("with a name: %v", err)
	}
}

// Without a policy, or with one that has no privacy section, every operation is refused.
func TestWithoutPrivacySection(t *testing.T) {
	d := withoutDatabase(t)
	doc, err := policy.Parse("policy.yaml", []byte("version: 1\nattributes: {}\ntables: {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	policyWithoutPrivacy, err := policy.Compile(doc, catalog.NewSnapshot(catalog.Spec{ServerVersion: 150000}))
	if err != nil {
		t.Fatal(err)
	}
	for description, p := range map[string]*policy.Policy{"no policy": nil, "no section": policyWithoutPrivacy} {
		d.Policy = func() *policy.Policy { return p }
		for name, operation := range operations(d, as("ash")) {
			requireRefused(t, description+": "+name, operation(), NameNotFound, "PC404")
		}
	}
}

// A malformed call is refused before the service connects to the database.
func TestMalformedCallsReachNoDatabase(t *testing.T) {
	d, caller, ctx := withoutDatabase(t), as("ash"), context.Background()
	const quotedList = `["human:sean"]`
	badIDs, tooManyIDs := []string{quotedList}, make([]string, maxIDs+1)
	onlyError := func(_ any, err error) error { return err }
	for description, err := range map[string]error{
		"add: subjects":      onlyError(d.AddMemory(ctx, caller, NewMemory{Content: "x", Subjects: badIDs})),
		"add: many subjects": onlyError(d.AddMemory(ctx, caller, NewMemory{Content: "x", Subjects: tooManyIDs})),
		"add: consent":       onlyError(d.AddMemory(ctx, caller, NewMemory{Content: "x", Consent: badIDs})),
		"add: access":        onlyError(d.AddMemory(ctx, caller, NewMemory{Content: "x", Access: badIDs})),
		"add: no content":    onlyError(d.AddMemory(ctx, caller, NewMemory{Content: " \n"})),
		"add: much content":  onlyError(d.AddMemory(ctx, caller, NewMemory{Content: strings.Repeat("x", maxContentBytes+1)})),
		"add: store":         onlyError(d.AddMemory(ctx, caller, NewMemory{Content: "x", Store: quotedList})),
		"add: source":        onlyError(d.AddMemory(ctx, caller, NewMemory{Content: "x", Source: quotedList})),
		"add: told":          onlyError(d.AddMemory(ctx, caller, NewMemory{Content: "x", ToldFrom: quotedList})),
		"add: no kind":       onlyError(d.AddMemory(ctx, caller, NewMemory{Content: "x", Kind: "notes"})),
		"add: context":       onlyError(d.AddMemory(ctx, caller, NewMemory{Content: "x", Context: quotedList})),
		"add: reason":        onlyError(d.AddMemory(ctx, caller, NewMemory{Content: "x", Reason: "a\nb"})),
		"grant: nobody":      onlyError(d.Grant(ctx, caller, GrantChange{ID: "note:1"})),
		"grant: who":         onlyError(d.Grant(ctx, caller, GrantChange{ID: "note:1", Grantees: badIDs})),
		"grant: consent":     onlyError(d.Grant(ctx, caller, GrantChange{ID: "note:1", Grantees: []string{"x"}, Consent: badIDs})),
		"grant: id":          onlyError(d.Grant(ctx, caller, GrantChange{ID: quotedList, Grantees: []string{"x"}})),
		"grant: reason":      onlyError(d.Grant(ctx, caller, GrantChange{ID: "note:1", Grantees: []string{"x"}, Reason: "a\nb"})),
		"revoke: evidence": onlyError(d.Revoke(ctx, caller, GrantChange{ID: "note:1", Grantees: []string{"x"},
			Consent: []string{"x"}})),
		"revoke: nobody":        onlyError(d.Revoke(ctx, caller, GrantChange{ID: "note:1"})),
		"consent: no grantee":   onlyError(d.RecordConsent(ctx, caller, ConsentRequest{})),
		"consent: an id alone":  onlyError(d.RecordConsent(ctx, caller, ConsentRequest{ID: "consent:1"})),
		"consent: grantor":      onlyError(d.RecordConsent(ctx, caller, ConsentRequest{Grantee: "x", Grantor: quotedList})),
		"consent: scope":        onlyError(d.RecordConsent(ctx, caller, ConsentRequest{Grantee: "x", Scope: quotedList})),
		"consent: store":        onlyError(d.RecordConsent(ctx, caller, ConsentRequest{Grantee: "x", Store: quotedList})),
		"withdraw: no grantee":  onlyError(d.WithdrawConsent(ctx, caller, ConsentRequest{})),
		"withdraw: id":          onlyError(d.WithdrawConsent(ctx, caller, ConsentRequest{ID: quotedList})),
		"context: none":         onlyError(d.ContextsNamed(ctx, caller, "")),
		"context: name":         onlyError(d.ContextsNamed(ctx, caller, quotedList)),
		"enter: none":           onlyError(d.EnterContext(ctx, caller, ContextRequest{})),
		"enter: participants":   onlyError(d.EnterContext(ctx, caller, ContextRequest{Context: "x", Participants: badIDs})),
		"enter: access":         onlyError(d.EnterContext(ctx, caller, ContextRequest{Context: "x", Access: badIDs})),
		"enter: store":          onlyError(d.EnterContext(ctx, caller, ContextRequest{Context: "x", Store: quotedList})),
		"enter: role":           onlyError(d.EnterContext(ctx, caller, ContextRequest{Context: "x", Role: quotedList})),
		"audit: nothing":        onlyError(d.Audit(ctx, caller, AuditQuery{})),
		"audit: both":           onlyError(d.Audit(ctx, caller, AuditQuery{Subject: "x", ID: "y"})),
		"audit: subject":        onlyError(d.Audit(ctx, caller, AuditQuery{Subject: quotedList})),
		"audit: id":             onlyError(d.Audit(ctx, caller, AuditQuery{ID: quotedList})),
		"audit: no kind":        onlyError(d.Audit(ctx, caller, AuditQuery{ID: "x", Kind: "notes"})),
		"audit: place":          onlyError(d.Audit(ctx, caller, AuditQuery{ID: "x", After: "x"})),
		"drawn: place":          onlyError(d.ListDerivedBeliefs(ctx, caller, "x")),
		"generalize: source":    onlyError(d.AddBelief(ctx, caller, Generalization{Source: quotedList, Belief: "x"})),
		"generalize: no source": onlyError(d.AddBelief(ctx, caller, Generalization{Belief: "x"})),
		"generalize: empty":     onlyError(d.AddBelief(ctx, caller, Generalization{Source: "x", Belief: "\u2003"})),
		"generalize: long": onlyError(d.AddBelief(ctx, caller, Generalization{Source: "x",
			Belief: strings.Repeat("x", maxBeliefBytes+1)})),
		"generalize: long note": onlyError(d.AddBelief(ctx, caller, Generalization{Source: "x", Belief: "x",
			Note: strings.Repeat("x", maxNoteBytes+1)})),
		"generalize: access": onlyError(d.AddBelief(ctx, caller, Generalization{Source: "x", Belief: "x", Access: badIDs})),
	} {
		requireRefused(t, description, err, NameValidation, "PC422")
	}
	// A consent that is revoked by its id needs no grantee.
	if _, err := d.WithdrawConsent(ctx, caller, ConsentRequest{ID: "consent:1"}); !errors.Is(err, errReached) {
		t.Errorf("withdraw by an id: %v", err)
	}
}

// The entity comes first, then its roles. A roles attribute that is not a list counts as one role.
func TestEntityAndRoles(t *testing.T) {
	p := &policy.Privacy{CallerAttribute: "user", RoleAttributes: []string{"roles", "team"}}
	for _, c := range []struct {
		attributes      map[string]string
		entity          string
		entityWithRoles []string
	}{
		{nil, "", nil},
		{map[string]string{"user": "si:ash"}, "si:ash", []string{"si:ash"}},
		{map[string]string{"user": "human:vet", "roles": `{role:vet,"role:b c",NULL}`, "team": "team:a"}, "human:vet",
			[]string{"human:vet", "role:vet", "role:b c", "team:a"}},
		{map[string]string{"user": "human:vet", "roles": "{}", "team": ""}, "human:vet", []string{"human:vet"}},
		{map[string]string{"roles": "{role:vet}"}, "", []string{"role:vet"}},
		{map[string]string{"user": "x", "roles": "role:vet", "other": "role:admin"}, "x", []string{"x", "role:vet"}},
	} {
		if entity, entityWithRoles := entityAndRoles(p, c.attributes); entity != c.entity || !slices.Equal(entityWithRoles, c.entityWithRoles) {
			t.Errorf("%v: %q %q, want %q %q", c.attributes, entity, entityWithRoles, c.entity, c.entityWithRoles)
		}
	}
	// What a token says of the entity overrides the configuration of its agent.
	caller := as("ash")
	caller.Claims = map[string]string{"user": "human:guest", "team": "team:a"}
	if got := withoutDatabase(t).attributesOf(caller); got["user"] != "human:guest" || got["team"] != "team:a" ||
		len(got) != 2 {
		t.Errorf("attributes %v", got)
	}
}

// A list is parsed in the encoding of its column. A value that is not a list of texts counts as no list.
func TestListEncodings(t *testing.T) {
	array, document := predicate.List{Column: "c", Form: predicate.GrantText},
		predicate.List{Column: "c", Form: predicate.GrantJSON}
	for _, c := range []struct {
		list  predicate.List
		value string
		want  []string // nil: not a list
	}{
		{array, `{}`, []string{}}, {array, `{a,"b c"}`, []string{"a", "b c"}}, {array, `{a,NULL}`, nil},
		{array, `["a"]`, nil}, {array, ``, nil}, {array, `{{a}}`, nil},
		{document, `[]`, []string{}}, {document, `["a", "b c"]`, []string{"a", "b c"}},
		{document, `["a", null]`, nil}, {document, `["a", 1]`, nil}, {document, `[["a"]]`, nil},
		{document, `null`, nil}, {document, `{}`, nil}, {document, `"a"`, nil}, {document, ``, nil},
		{document, `["a"`, nil}, {document, `{a}`, nil},
	} {
		if got, ok := decodeList(c.list, &c.value); ok != (c.want != nil) || ok && !slices.Equal(got, c.want) {
			t.Errorf("%s: %q %v, want %q", c.value, got, ok, c.want)
		}
	}
	if got, ok := decodeList(array, nil); ok || got != nil {
		t.Errorf("NULL: %q", got)
	}
	for _, list := range []predicate.List{array, document} {
		for _, ids := range [][]string{nil, {}, {"a"}, {"human:sean", `b"\c`, "d,e", "{f}", "NULL"}} {
			encodedList := encodeList(list, ids)
			if got, ok := decodeList(list, &encodedList); !ok || !slices.Equal(got, ids) {
				t.Errorf("%q is written as %s, and read as %q", ids, encodedList, got)
			}
		}
	}
	if got := encodeList(document, nil); got != "[]" {
		t.Errorf("no ids are written as %s", got)
	}
}

// An operation that needs a missing part of the policy is refused with an error that says so.
func TestMissingPartsOfThePolicy(t *testing.T) {
	s, ctx := &callerSession{section: &policy.Privacy{}, entity: "si:ash"}, context.Background()
	_, err := s.readContexts(ctx, "")
	requireRefused(t, "contexts", err, NameNotFound, "PC404")
	requireRefused(t, "entering one", s.enterContext(ctx, "ctx:x"), NameNotFound, "PC404")
	// Without a table of stores, a store's name is its owner's id. Without a table of guardians, nobody speaks for
	// others.
	if got, err := s.ownStores(ctx); err != nil || !slices.Equal(got, []string{"si:ash"}) {
		t.Errorf("stores %q, %v", got, err)
	}
	if got, err := s.storesOfWard(ctx, "dog:bella"); err != nil || got != nil {
		t.Errorf("wards %q, %v", got, err)
	}
	if got, err := s.storesOfWards(ctx); err != nil || got != nil {
		t.Errorf("stores of wards %q, %v", got, err)
	}
	requireRefused(t, "speaking for somebody", s.checkGuardian(ctx, "dog:bella", "ash"), NameForbidden, "42501")
}

func TestIsStamped(t *testing.T) {
	stamps := []policy.Stamp{{Column: "grantor"}, {Column: "source", Unless: predicate.Open{}}}
	for column, want := range map[string]bool{"grantor": true, "source": false, "other": false} {
		if got := hasStampedColumn(stamps, column); got != want {
			t.Errorf("%s: %v", column, got)
		}
	}
}

func TestRoleNotInCredential(t *testing.T) {
	isTrue, isFalse := true, false
	for _, c := range []struct {
		isRoleHeld *bool
		hasNotice  bool
	}{{nil, false}, {&isTrue, false}, {&isFalse, true}} {
		got := (&EnteredContext{Role: "role:vet", CredentialHasRole: c.isRoleHeld}).RoleNote()
		if strings.HasPrefix(got, "vet is no role") != c.hasNotice || c.hasNotice != (got != "") {
			t.Errorf("%v: %q", c.isRoleHeld, got)
		}
	}
}
