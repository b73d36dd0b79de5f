package e2e

import (
	"context"
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	"github.com/pgconsent/pgconsent/internal/memory/privacy"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// These tests call the operations of package privacy on the world kernle, each as its caller through the proxy. HTTP,
// MCP and the command line use the same operations. Points d, h, i and k.

// newService returns a privacy service for the world, with the proxy and the roles of the test's database.
func (k *kernle) newService(compiled *policy.Policy) *privacy.Service {
	logins := map[string]map[string]string{}
	w, err := world.Open("kernle")
	if err != nil {
		k.Fatal(err)
	}
	for _, a := range w.Agents {
		logins[a.Name] = a.Attributes
	}
	connectAs := func(role string) func(context.Context) (*pgx.Conn, error) {
		return func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, k.db.DSN(role, rolePassword)) }
	}
	return &privacy.Service{
		Policy: func() *policy.Policy { return compiled },
		ConnectCaller: func(ctx context.Context, c identity.Caller) (*pgx.Conn, error) {
			return pgx.Connect(ctx, k.proxy.DSN(c.Agent, "kernle"))
		},
		AgentAttributes: func() map[string]map[string]string { return logins }, ConnectControl: connectAs("pgconsent_control"),
		ConnectAgentRole: connectAs("pgconsent_agent"),
	}
}

// startPrivacy starts the world behind a proxy, and its privacy service.
func startPrivacy(t *testing.T, setup ...string) (*kernle, *privacy.Service) {
	t.Helper()
	k := &kernle{TB: t, db: pgtest.Template(t, "kernle", loadWorld("kernle", "kernle_owner"))}
	w, err := world.Open("kernle")
	if err != nil {
		t.Fatal(err)
	}
	text, err := w.File("policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := harness.Database{Name: "kernle", DB: k.db, Policy: string(text), SearchPath: []string{"public"}, Setup: strings.Join(setup, ";\n")}
	m := harness.Migrate(t, d, harness.Both)
	var agents []harness.Agent
	for _, a := range w.Agents {
		agents = append(agents, harness.Agent{Name: a.Name, Database: "kernle", Attributes: a.Attributes})
	}
	k.proxy = harness.Serve(t, harness.Both, []harness.Database{d}, agents)
	return k, k.newService(m.Policy)
}

func agentCaller(name string) identity.Caller {
	return identity.Caller{Name: "token of " + name, Role: identity.Agent, Agent: name, Database: "kernle"}
}

// wantError checks that an error has this name.
func wantError(t *testing.T, description string, err error, name string) {
	t.Helper()
	var privacyError *privacy.Error
	if !errors.As(err, &privacyError) || privacyError.Name() != name {
		t.Errorf("%s: %v, want %s", description, err, name)
		return
	}
	var stateError *sqlstate.Error
	if !errors.As(err, &stateError) || stateError.Hint == "" {
		t.Errorf("%s: %v has no hint", description, err)
	}
	if strings.Contains(err.Error(), "HIDDENMARK") {
		t.Errorf("%s: %v", description, err)
	}
}

func mustSucceed[T any](t *testing.T, description string) func(T, error) T {
	return func(out T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", description, err)
		}
		return out
	}
}

func withIDs(ids ...string) []string { return append([]string{}, ids...) }

// `privacy add`, and MCP's memory_* tools.
// seeds/003:37-44, 107-113.
func TestKernleH_MemoriesAreMadeWithTheirPrivacy(t *testing.T) {
	k, d := startPrivacy(t,
		`INSERT INTO consent_records (id, stack_id, grantor, grantee, scope) VALUES ('consent:h1', 'ash', 'human:sean', 'si:new_vet', '*')`)
	ctx := context.Background()
	memory := mustSucceed[*privacy.Memory](t, "the seed's line")(d.AddMemory(ctx, agentCaller("ash"), privacy.NewMemory{
		Kind: "raw", Content: "Bella has a heart murmur", Subjects: withIDs("dog:bella"), Access: withIDs("human:sean",
			"si:bella_agent"), Consent: withIDs("human:sean"), Source: "vet:dr_smith"}))
	if memory.Store != "ash" || memory.Source != "vet:dr_smith" ||
		!slices.Equal(memory.Access, withIDs("human:sean", "si:bella_agent")) ||
		!slices.Equal(memory.Consent, withIDs("human:sean")) || !slices.Equal(memory.Subjects, withIDs("dog:bella")) {
		t.Errorf("made %+v", memory)
	}
	if got := k.queryList(k.connectAs("sean", ""), "SELECT content FROM raw_entries WHERE id = '"+memory.ID+"'"); len(got) != 1 {
		t.Errorf("human:sean sees %v of it", got)
	}
	if got := k.queryList(k.connectAs("rex", ""), "SELECT content FROM raw_entries WHERE id = '"+memory.ID+"'"); len(got) != 0 {
		t.Errorf("si:rex sees %v of it", got)
	}
	// Ids are taken from the text as they are written.
	subjectIDs := withIDs("human:sean", "human:kid_123", "si:ash", "si:my-project", "dog:bella")
	memory = mustSucceed[*privacy.Memory](t, "ids")(d.AddMemory(ctx, agentCaller("ash"),
		privacy.NewMemory{Kind: "note", Content: "of everybody", Subjects: subjectIDs}))
	if !slices.Equal(memory.Subjects, subjectIDs) || len(memory.Access) != 0 {
		t.Errorf("made %+v", memory)
	}
	// The same holds for each form of a list.
	for _, kind := range []string{"episode", "episode_array", "episode_jsonb", "belief", "note"} {
		memory := mustSucceed[*privacy.Memory](t, kind)(d.AddMemory(ctx, agentCaller("ash"),
			privacy.NewMemory{Kind: kind, Content: "in a context", Context: "ctx:bella_health"}))
		if !slices.Equal(memory.Access, withIDs("human:sean", "si:bella_agent", "ctx:bella_health")) {
			t.Errorf("%s: inherits %v", kind, memory.Access)
		}
		memory = mustSucceed[*privacy.Memory](t, kind)(d.AddMemory(ctx, agentCaller("ash"),
			privacy.NewMemory{Kind: kind, Content: "narrower", Context: "ctx:bella_health", Access: withIDs()}))
		if len(memory.Access) != 0 {
			t.Errorf("%s: %v, and nobody was asked for", kind, memory.Access)
		}
		// A participant writes into the store of the context, and is recorded as the source.
		memory = mustSucceed[*privacy.Memory](t, kind)(d.AddMemory(ctx, agentCaller("bella"),
			privacy.NewMemory{Kind: kind, Content: "told by a participant", Context: "ctx:bella_health", Source: "human:sean"}))
		if memory.Source != "si:bella_agent" || memory.Store != "ash" {
			t.Errorf("%s: %+v", kind, memory)
		}
	}
	// Line 65 of the seed: a memory that another SI has told, with its source memory. bella sees the source, and sean does
	// not.
	memory = mustSucceed[*privacy.Memory](t, "told")(d.AddMemory(ctx, agentCaller("ash"),
		privacy.NewMemory{Content: "Rex says so", Source: "si:rex", ToldFrom: "episode:1009"}))
	if memory.ToldFrom != "episode:1009" || !slices.Equal(memory.Access, withIDs("si:ash", "si:bella_agent")) {
		t.Errorf("told: %+v", memory)
	}
	_, err := d.AddMemory(ctx, agentCaller("ash"),
		privacy.NewMemory{Content: "Rex says so", Source: "si:rex", ToldFrom: "episode:1009", Access: withIDs("human:sean")})
	wantError(t, "told to one more", err, "PrivacyForbiddenError")
	for description, c := range map[string]struct {
		caller string
		n      privacy.NewMemory
		name   string
	}{
		"wider without consent":     {"ash", privacy.NewMemory{Content: "x", Subjects: withIDs("human:kid_123"), Access: withIDs("*")}, privacy.NameForbidden},
		"another SI told it":        {"ash", privacy.NewMemory{Content: "x", Source: "si:rex", Access: withIDs("human:sean")}, privacy.NameForbidden},
		"somebody else's store":     {"ashley", privacy.NewMemory{Content: "x", Store: "ash"}, privacy.NameForbidden},
		"no store":                  {"ashley", privacy.NewMemory{Content: "x"}, privacy.NameValidation},
		"a context of others":       {"ashley", privacy.NewMemory{Content: "x", Context: "ctx:bella_health"}, privacy.NameNotFound},
		"a context that is not":     {"ashley", privacy.NewMemory{Content: "x", Context: "ctx:none"}, privacy.NameNotFound},
		"no kind":                   {"ash", privacy.NewMemory{Content: "x", Kind: "stacks"}, privacy.NameValidation},
		"no content":                {"ash", privacy.NewMemory{Content: " "}, privacy.NameValidation},
		"a NUL":                     {"ash", privacy.NewMemory{Content: "x\x00"}, privacy.NameValidation},
		"content, not UTF-8":        {"ash", privacy.NewMemory{Content: "\xff"}, privacy.NameValidation},
		"much content":              {"ash", privacy.NewMemory{Content: strings.Repeat("x", 65537)}, privacy.NameValidation},
		"a subject like JSON":       {"ash", privacy.NewMemory{Content: "x", Subjects: withIDs(`["human:sean"]`)}, privacy.NameValidation},
		"a subject like SQL":        {"ash", privacy.NewMemory{Content: "x", Subjects: withIDs("human:sean';DROP")}, privacy.NameValidation},
		"a subject, not UTF-8":      {"ash", privacy.NewMemory{Content: "x", Subjects: withIDs("human:\xffsean")}, privacy.NameValidation},
		"a subject, zero width":     {"ash", privacy.NewMemory{Content: "x", Subjects: withIDs("human:se\u200ban")}, privacy.NameValidation},
		"an empty subject":          {"ash", privacy.NewMemory{Content: "x", Subjects: withIDs("")}, privacy.NameValidation},
		"many subjects":             {"ash", privacy.NewMemory{Content: "x", Subjects: make([]string, 257)}, privacy.NameValidation},
		"a context like SQL":        {"ash", privacy.NewMemory{Content: "x", Context: "ctx:x' OR true"}, privacy.NameValidation},
		"a reason of several lines": {"ash", privacy.NewMemory{Content: "x", Reason: "a\nb"}, privacy.NameValidation},
	} {
		_, err := d.AddMemory(ctx, agentCaller(c.caller), c.n)
		wantError(t, description, err, c.name)
	}
	_, err = d.AddMemory(ctx, identity.Caller{Role: identity.Subject, Subject: "human:sean"}, privacy.NewMemory{Content: "x"})
	wantError(t, "a subject's token", err, privacy.NameForbidden)
	k.proxy.Tap().RequireNoMarker(t)
}

// `privacy grant`, `privacy revoke`; point i: both are recorded with time and reason.
// seeds/003:123-126, 185-187.
func TestKernleI_GrantsAndRevocationsAreNotedWithTimeAndReason(t *testing.T) {
	k, d := startPrivacy(t,
		`INSERT INTO consent_records (id, stack_id, grantor, grantee, scope) VALUES ('consent:i1', 'ash', 'human:sean', 'si:new_vet', '*'), `+
			`('consent:i2', 'ash', 'vet:dr_smith', 'si:new_vet', '*')`)
	ctx := context.Background()
	start := time.Now().Add(-time.Minute)
	for _, kind := range []string{"episode", "episode_array", "episode_jsonb"} {
		grantChange := privacy.GrantChange{ID: "episode:1001", Kind: kind, Grantees: withIDs("si:new_vet"), Consent: withIDs("human:sean"),
			Reason: "the vet has moved"}
		result := mustSucceed[*privacy.GrantResult](t, "grant")(d.Grant(ctx, agentCaller("ash"), grantChange))
		if !slices.Equal(result.Granted, withIDs("si:new_vet")) || !slices.Contains(result.Access, "si:new_vet") || !slices.Contains(result.Consent, "human:sean") {
			t.Errorf("%s: %+v", kind, result)
		}
		repeatedResult := mustSucceed[*privacy.GrantResult](t, "grant again")(d.Grant(ctx, agentCaller("ash"), grantChange))
		if len(repeatedResult.Granted) != 0 || !slices.Equal(repeatedResult.Access, result.Access) {
			t.Errorf("%s: once more: %+v", kind, repeatedResult)
		}
		revokeResult := mustSucceed[*privacy.GrantResult](t, "revoke")(
			d.Revoke(ctx, agentCaller("ash"), privacy.GrantChange{ID: "episode:1001", Kind: kind, Grantees: withIDs("si:new_vet"),
				Reason: "moved back"}))
		if !slices.Equal(revokeResult.Revoked, withIDs("si:new_vet")) || slices.Contains(revokeResult.Access, "si:new_vet") {
			t.Errorf("%s: %+v", kind, revokeResult)
		}
		report := mustSucceed[*privacy.AuditReport](t, "audit")(d.Audit(ctx, agentCaller("ash"), privacy.AuditQuery{ID: "episode:1001", Kind: kind}))
		h := report.Rows[0].History
		if len(h) != 2 || h[0].Action != "grant" || h[0].Reason != "the vet has moved" || h[0].By != "si:ash" ||
			!slices.Equal(h[0].Grantees, withIDs("si:new_vet")) || h[0].At.Before(start) || h[1].Action != "revoke" || h[1].Reason != "moved back" {
			t.Errorf("%s: noted %+v", kind, h)
		}
		// Changes by SQL are recorded as well, and so are those of the owner of the database.
		k.mustExec(k.connectAs("ash", ""), "UPDATE "+map[string]string{
			"episode": "episodes", "episode_array": "episodes_array", "episode_jsonb": "episodes_jsonb"}[kind]+" SET access_grants = "+
			map[string]string{"episode": `'[]'`, "episode_array": "'{}'", "episode_jsonb": "'[]'"}[kind]+" WHERE id = 'episode:1001'")
		report = mustSucceed[*privacy.AuditReport](t, "audit")(d.Audit(ctx, agentCaller("sean"), privacy.AuditQuery{ID: "episode:1001", Kind: kind}))
		if h := report.Rows[0].History; len(h) != 3 || h[2].Action != "revoke" || len(h[2].Grantees) != 3 || h[2].By != "si:ash" {
			t.Errorf("%s: noted %+v", kind, h)
		}
	}
	super := harness.ConnectSuperuser(t, k.db)
	k.mustExec(super, `UPDATE notes SET access_grants = '["*"]' WHERE id = 'note:1003'`)
	report := mustSucceed[*privacy.AuditReport](t, "audit")(d.Audit(ctx, agentCaller("ash"), privacy.AuditQuery{ID: "note:1003"}))
	if h := report.Rows[0].History; len(h) != 1 || h[0].Action != "grant" || h[0].By != "postgres" {
		t.Errorf("by the owner: %+v", h)
	}
	// A person who is forgotten in the audit is forgotten in these records, too.
	k.mustExec(super, "SELECT pgconsent.audit_forget('si:new_vet')")
	report = mustSucceed[*privacy.AuditReport](t, "audit")(d.Audit(ctx, agentCaller("ash"), privacy.AuditQuery{ID: "episode:1001"}))
	if h := report.Rows[0].History; h[0].Grantees[0] != "(forgotten)" {
		t.Errorf("forgotten: %+v", h)
	}
	for description, c := range map[string]struct {
		caller string
		change privacy.GrantChange
		name   string
	}{
		"without consent": {"ash", privacy.GrantChange{ID: "episode:1005", Grantees: withIDs("si:new_vet")},
			privacy.NameForbidden},
		"one that is hidden": {"bella", privacy.GrantChange{ID: "episode:1003", Grantees: withIDs("si:bella_agent")},
			privacy.NameNotFound},
		"one that is not": {"bella", privacy.GrantChange{ID: "episode:none", Grantees: withIDs("si:bella_agent")},
			privacy.NameNotFound},
		"somebody else's": {"bella", privacy.GrantChange{ID: "episode:1004", Grantees: withIDs("si:rex")},
			privacy.NameForbidden},
		"nobody":         {"ash", privacy.GrantChange{ID: "episode:1001"}, privacy.NameValidation},
		"an id like SQL": {"ash", privacy.GrantChange{ID: "x' OR ''='", Grantees: withIDs("si:rex")}, privacy.NameValidation},
		"who, like JSON": {"ash", privacy.GrantChange{ID: "episode:1001", Grantees: withIDs(`{"*":1}`)},
			privacy.NameValidation},
		"a list that is broken": {"ash", privacy.GrantChange{ID: "episode:bad_12", Grantees: withIDs("si:rex")},
			privacy.NameConflict},
	} {
		_, err := d.Grant(ctx, agentCaller(c.caller), c.change)
		wantError(t, description, err, c.name)
	}
	_, err := d.Revoke(ctx, agentCaller("rex"), privacy.GrantChange{ID: "episode:1001", Grantees: withIDs("human:sean")})
	wantError(t, "a stranger revokes", err, privacy.NameNotFound)
	// Agents can neither read nor write these records.
	for _, sql := range []string{"SELECT * FROM pgconsent.privacy_event",
		"SELECT pgconsent.privacy_note('grant', 'x', 'y', 'z', '{}', 'si:ash')", "SELECT * FROM pgconsent.privacy_rows('si:ash', NULL, NULL, NULL, 10)"} {
		if a := harness.Ask(k.connectAs("bella", ""), sql); a.Code == "" {
			t.Errorf("%s: %s", sql, a)
		}
	}
	k.proxy.Tap().RequireNoMarker(t)
}

// Contexts are created by the owners of stores, and entered by participants.
// seeds/003:46-56, 115-121, 199-207.
func TestKernleC_ContextsAreMadeAndJoinedByTheirOwners(t *testing.T) {
	k, d := startPrivacy(t)
	ctx := context.Background()
	enterContext := func(caller string, e privacy.ContextRequest) (*privacy.EnteredContext, error) {
		return d.EnterContext(ctx, agentCaller(caller), e)
	}

	enteredContext := mustSucceed[*privacy.EnteredContext](t, "the seed's line")(
		enterContext("ash", privacy.ContextRequest{Context: "ctx:bella_health", Participants: withIDs("human:sean", "si:bella_agent"), Role: "care_agent"}))
	if enteredContext.Created || len(enteredContext.Added) > 0 || !slices.Equal(enteredContext.Access,
		withIDs("human:sean", "si:bella_agent", "ctx:bella_health")) || enteredContext.CredentialHasRole == nil ||
		*enteredContext.CredentialHasRole ||
		enteredContext.Setting != "SET pgconsent.context = 'ctx:bella_health'" {
		t.Errorf("entered %+v", enteredContext)
	}
	enteredContext = mustSucceed[*privacy.EnteredContext](t, "one's own role")(enterContext("tutor_b",
		privacy.ContextRequest{Context: "ctx:student_123_academic", Role: "role:tutor"}))
	if enteredContext.CredentialHasRole == nil || !*enteredContext.CredentialHasRole || enteredContext.Owner {
		t.Errorf("entered %+v", enteredContext)
	}
	// The owner of a store creates a new context by entering it.
	enteredContext = mustSucceed[*privacy.EnteredContext](t, "a new context")(
		enterContext("ash", privacy.ContextRequest{Context: "ctx:kid_school", Participants: withIDs("human:mira"), Reason: "school begins"}))
	if !enteredContext.Created || !slices.Equal(enteredContext.Access, withIDs("human:mira", "ctx:kid_school")) {
		t.Errorf("made %+v", enteredContext)
	}
	memory := mustSucceed[*privacy.Memory](t, "in it")(d.AddMemory(ctx, agentCaller("ash"), privacy.NewMemory{Content: "first day", Context: "ctx:kid_school"}))
	if !slices.Equal(memory.Access, withIDs("human:mira", "ctx:kid_school")) {
		t.Errorf("inherits %v", memory.Access)
	}
	enteredContext = mustSucceed[*privacy.EnteredContext](t, "one more")(enterContext("ash", privacy.ContextRequest{Context: "ctx:kid_school",
		Participants: withIDs("human:mira", "si:rex")}))
	if !slices.Equal(enteredContext.Added, withIDs("si:rex")) {
		t.Errorf("added %v", enteredContext.Added)
	}
	if got := mustSucceed[*privacy.EnteredContext](t, "who was added")(
		enterContext("rex", privacy.ContextRequest{Context: "ctx:kid_school", Participants: withIDs("si:rex")})); got.Owner || len(got.Added) != 0 {
		t.Errorf("entered %+v", got)
	}
	// --participants adds somebody only if the owner asks for it.
	_, err := enterContext("rex", privacy.ContextRequest{Context: "ctx:kid_school", Participants: withIDs("si:mallory")})
	wantError(t, "a participant adds", err, privacy.NameForbidden)
	for _, name := range []string{"ctx:kid_school", "ctx:none", "ctx:broken"} {
		_, err := enterContext("mallory", privacy.ContextRequest{Context: name, Store: "ash", Participants: withIDs("si:mallory")})
		wantError(t, "somebody else's "+name, err, privacy.NameNotFound)
		_, err = enterContext("ashley", privacy.ContextRequest{Context: name})
		wantError(t, "a stranger: "+name, err, privacy.NameNotFound)
	}
	if got := harness.Ask(harness.ConnectSuperuser(t, k.db),
		"SELECT participants FROM privacy_contexts WHERE context_id = 'ctx:kid_school'").Results[0].Rows; !slices.Equal(got, withIDs(`["human:mira", "si:rex"]`)) &&
		!slices.Equal(got, withIDs(`["human:mira","si:rex"]`)) {
		t.Errorf("participants %v", got)
	}
	// A second context of the same name is not created.
	_, err = d.MakeContext(ctx, agentCaller("ash"), privacy.ContextRequest{Context: "ctx:kid_school"})
	wantError(t, "made twice", err, privacy.NameConflict)
	// The name of a context in somebody else's store is free, and reveals nothing.
	enteredContext = mustSucceed[*privacy.EnteredContext](t, "mallory's own")(enterContext("mallory", privacy.ContextRequest{Context: "ctx:kid_school"}))
	if !enteredContext.Created || enteredContext.Store != "mallory" {
		t.Errorf("made %+v", enteredContext)
	}
	contexts := mustSucceed[[]privacy.Context](t, "list")(d.Contexts(ctx, agentCaller("bella")))
	var names []string
	for _, c := range contexts {
		names = append(names, c.Name)
	}
	if !slices.Equal(names, withIDs("ctx:bella_health", "ctx:dog_park")) {
		t.Errorf("si:bella_agent is told of %v", names)
	}
	_, err = d.ContextsNamed(ctx, agentCaller("bella"), "ctx:kid_school")
	wantError(t, "show", err, privacy.NameNotFound)
	for _, name := range []string{"", "ctx:a b", `ctx:"x"`, "ctx:x;", "ctx:\xff", strings.Repeat("x", 257)} {
		_, err := enterContext("ash", privacy.ContextRequest{Context: name})
		wantError(t, name, err, privacy.NameValidation)
	}
	k.proxy.Tap().RequireNoMarker(t)
}

// consent_grant; point k: only the grantor or its guardian can record a consent, by credential.
// seeds/003:168-177, 208-213.
func TestKernleK_ConsentIsRecordedByTheGrantorOrItsGuardian(t *testing.T) {
	k, d := startPrivacy(t)
	ctx := context.Background()
	seesMemory := func() bool {
		return len(k.queryList(k.connectAs("bella", ""), "SELECT id FROM episodes WHERE id = 'episode:1005'")) == 1
	}
	consentRequest := privacy.ConsentRequest{Grantor: "human:parent_456", Grantee: "si:reading_specialist", Scope: "ctx:student_123_academic"}
	consent := mustSucceed[*privacy.RecordedConsent](t, "the seed's line")(d.RecordConsent(ctx, agentCaller("parent"), consentRequest))
	if consent.Grantor != "human:parent_456" || consent.Store != "student_123" || !consent.Repeated || consent.ID != "consent:6" {
		t.Errorf("%+v", consent)
	}
	for _, caller := range []string{"ash", "tutor_a", "mallory", "bella", "specialist"} { // not even the owner of the store can
		_, err := d.RecordConsent(ctx, agentCaller(caller), consentRequest)
		wantError(t, caller, err, privacy.NameForbidden)
		_, err = d.RecordConsent(ctx, agentCaller(caller), privacy.ConsentRequest{Grantor: "human:kid_123", Grantee: "si:bella_agent", Store: "ash"})
		wantError(t, caller, err, privacy.NameForbidden)
	}
	// mallory calls herself a guardian in a stack of her own: this has no effect elsewhere.
	if seesMemory() {
		t.Fatal("without consent")
	}
	// The column consent_grants is evidence only, and has no effect alone.
	k.mustExec(harness.ConnectSuperuser(t, k.db),
		`UPDATE episodes SET consent_grants = '["human:mira", "human:kid_123"]' WHERE id = 'episode:1005'`)
	if seesMemory() {
		t.Error("by evidence alone")
	}
	// A guardian consents for its ward: mira has no agent here, so sean consents for bella.
	consent = mustSucceed[*privacy.RecordedConsent](t, "a guardian")(
		d.RecordConsent(ctx, agentCaller("sean"),
			privacy.ConsentRequest{Grantor: "dog:bella", Grantee: "human:guest", Scope: "episode:1002", Reason: "for the insurance"}))
	if consent.Grantor != "human:sean" || consent.OnBehalfOf != "dog:bella" || consent.Store != "ash" || consent.Repeated {
		t.Errorf("%+v", consent)
	}
	guestSeesMemory := func() bool {
		return len(k.queryList(k.connectAs("ash_as_guest", ""), "SELECT id FROM episodes WHERE id = 'episode:1002'")) == 1
	}
	// ash itself has told this memory about bella.
	mustSucceed[*privacy.GrantResult](t, "with consent")(d.Grant(ctx, agentCaller("ash"),
		privacy.GrantChange{ID: "episode:1002", Grantees: withIDs("human:guest")}))
	if !guestSeesMemory() {
		t.Error("a guardian's consent and a grant show nothing")
	}
	withdrawnConsents := mustSucceed[[]privacy.RecordedConsent](t, "withdraw")(d.WithdrawConsent(ctx, agentCaller("sean"),
		privacy.ConsentRequest{ID: consent.ID, Reason: "settled"}))
	if len(withdrawnConsents) != 1 || !withdrawnConsents[0].Revoked || withdrawnConsents[0].Repeated {
		t.Errorf("%+v", withdrawnConsents)
	}
	if guestSeesMemory() {
		t.Error("a withdrawn consent shows")
	}
	repeatedResult := mustSucceed[[]privacy.RecordedConsent](t,
		"withdraw again")(d.WithdrawConsent(ctx, agentCaller("sean"), privacy.ConsentRequest{ID: consent.ID}))
	if len(repeatedResult) != 1 || !repeatedResult[0].Repeated {
		t.Errorf("%+v", repeatedResult)
	}
	for _, caller := range []string{"bella", "ash", "mallory"} {
		_, err := d.WithdrawConsent(ctx, agentCaller(caller), privacy.ConsentRequest{ID: "consent:1"})
		if err == nil {
			t.Errorf("%s has withdrawn human:sean's consent", caller)
		}
	}
	// A guardian withdraws a consent that its ward has given.
	k.mustExec(harness.ConnectSuperuser(t, k.db),
		"INSERT INTO consent_records (id, stack_id, grantor, grantee, scope) VALUES ('consent:ward', 'ash', 'dog:bella', 'human:guest', '*')")
	mustSucceed[[]privacy.RecordedConsent](t, "a ward's")(d.WithdrawConsent(ctx, agentCaller("sean"),
		privacy.ConsentRequest{Grantor: "dog:bella",
			Grantee: "human:guest"}))
	if guestSeesMemory() {
		t.Error("what was withdrawn for a ward shows")
	}
	for description, g := range map[string]privacy.ConsentRequest{
		"no grantee": {}, "like SQL": {Grantee: "x' --"}, "like JSON": {Grantee: "*", Scope: `["*"]`}, "not UTF-8": {Grantee: "\xff"}} {
		_, err := d.RecordConsent(ctx, agentCaller("sean"), g)
		wantError(t, description, err, privacy.NameValidation)
	}
	_, err := d.WithdrawConsent(ctx, agentCaller("sean"), privacy.ConsentRequest{Grantee: "si:nobody"})
	wantError(t, "nothing to withdraw", err, privacy.NameNotFound)
	events := harness.Ask(harness.ConnectSuperuser(t, k.db),
		"SELECT did, reason FROM pgconsent.privacy_event WHERE relation = 'public.consent_records' ORDER BY number").Results[0].Rows
	if len(events) < 2 || !strings.Contains(strings.Join(events, " "), "for the insurance") || !strings.Contains(strings.Join(events, " "), "settled") {
		t.Errorf("noted: %v", events)
	}
	k.proxy.Tap().RequireNoMarker(t)
}

// `privacy audit` reports who sees a memory, or the memories about a subject, and by which grant.
// seeds/003:123-126.
func TestKernleH_AuditTellsOwnersSubjectsAndGuardiansWhoSees(t *testing.T) {
	k, d := startPrivacy(t)
	ctx := context.Background()
	report := mustSucceed[*privacy.AuditReport](t, "by the owner")(d.Audit(ctx, agentCaller("ash"), privacy.AuditQuery{ID: "episode:1001"}))
	if len(report.Rows) != 1 {
		t.Fatalf("%+v", report)
	}
	findViewer := func(row privacy.AuditedMemory, entity string) *privacy.Viewer {
		for i := range row.Viewers {
			if row.Viewers[i].Entity == entity {
				return &row.Viewers[i]
			}
		}
		return nil
	}
	row := report.Rows[0]
	bellaViewer, seanViewer, ashViewer := findViewer(row, "si:bella_agent"), findViewer(row, "human:sean"), findViewer(row, "si:ash")
	if ashViewer == nil || ashViewer.Through != "owner" || bellaViewer == nil || bellaViewer.Grant != "si:bella_agent" ||
		len(bellaViewer.Consents) != 1 || bellaViewer.Consents[0].Record != "consent:1" || !bellaViewer.Consents[0].Guardian ||
		bellaViewer.Consents[0].Subject != "dog:bella" ||
		seanViewer == nil || !slices.Equal(seanViewer.Agents, withIDs("sean")) || findViewer(row, "si:rex") != nil ||
		findViewer(row, "*") != nil {
		t.Errorf("%+v", row)
	}
	// A report of more memories than fit a page comes in several pages, with each memory once.
	if a := harness.Ask(harness.ConnectSuperuser(t, k.db),
		`INSERT INTO notes (id, stack_id, content, subject_ids) SELECT 'note:page' || i, 'ash', 'x', '["dog:page"]' FROM generate_series(1, 450) AS i`); a.Err != "" {
		t.Fatal(a)
	}
	pages, seenMemories := 0, map[string]bool{}
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		page := mustSucceed[*privacy.AuditReport](t, "a page")(d.Audit(ctx, agentCaller("ash"), privacy.AuditQuery{Subject: "dog:page", After: cursor}))
		for _, row := range page.Rows {
			seenMemories[row.Kind+" "+row.ID] = true
		}
		cursor = page.Next
		if cursor != "" {
			// The position of a page is of no use to another caller.
			if report := mustSucceed[*privacy.AuditReport](t,
				"mallory")(d.Audit(ctx, agentCaller("mallory"), privacy.AuditQuery{Subject: "dog:page", After: cursor})); len(report.Rows) != 0 || report.Next != "" {
				t.Errorf("mallory is told %+v", report)
			}
		}
	}
	if pages != 3 || len(seenMemories) != 450 {
		t.Errorf("%d memories in %d answers", len(seenMemories), pages)
	}
	_, err := d.Audit(ctx, agentCaller("ash"), privacy.AuditQuery{Subject: "dog:page", After: "x"})
	wantError(t, "a place that is none", err, privacy.NameValidation)
	// The report agrees with what each agent sees by SQL, for everything about a subject and in each form of a list.
	report = mustSucceed[*privacy.AuditReport](t, "about a subject")(d.Audit(ctx, agentCaller("sean"), privacy.AuditQuery{Subject: "dog:bella"}))
	if len(report.Rows) < 50 {
		t.Errorf("%d memories prove little", len(report.Rows))
	}
	tables := map[string]string{"episode": "episodes", "belief": "beliefs", "note": "notes", "raw": "raw_entries",
		"episode_array": "episodes_array", "episode_jsonb": "episodes_jsonb"}
	w, err := world.Open("kernle")
	if err != nil {
		t.Fatal(err)
	}
	visibleByAgent := map[string]map[string]bool{}
	for _, a := range w.Agents {
		visibleByAgent[a.Name] = map[string]bool{}
		c := k.connectAs(a.Name, "")
		for kind, table := range tables {
			for _, id := range k.queryList(c, "SELECT id FROM "+table) {
				visibleByAgent[a.Name][kind+" "+id] = true
			}
		}
		harness.Close(c)
	}
	for _, row := range report.Rows {
		if row.Store != "ash" || len(row.Subjects) != 1 || row.Subjects[0] != "dog:bella" {
			t.Fatalf("a guardian is told of %+v", row)
		}
		reportedLogins := map[string]bool{}
		for _, v := range row.Viewers {
			if v.Context == "" {
				for _, login := range v.Agents {
					reportedLogins[login] = true
				}
			}
		}
		for _, a := range w.Agents {
			if reportedLogins[a.Name] != visibleByAgent[a.Name][row.Kind+" "+row.ID] {
				t.Errorf("%s %s: the report says %v of %s, whose SQL says %v", row.Kind, row.ID, reportedLogins[a.Name], a.Name,
					!reportedLogins[a.Name])
			}
		}
	}
	// In a context.
	report = mustSucceed[*privacy.AuditReport](t, "a context's")(d.Audit(ctx, agentCaller("ash"), privacy.AuditQuery{ID: "episode:1002"}))
	if v := findViewer(report.Rows[0], "si:bella_agent"); v == nil || v.Context != "ctx:bella_health" || v.Grant != "ctx:bella_health" {
		t.Errorf("%+v", report.Rows[0])
	}
	// A memory that is granted but not visible, since a consent is missing.
	report = mustSucceed[*privacy.AuditReport](t, "without consent")(d.Audit(ctx, agentCaller("ash"), privacy.AuditQuery{ID: "episode:1005"}))
	if w := report.Rows[0].WithoutConsent; len(w) == 0 || !slices.Equal(w[0].Missing, withIDs("human:kid_123")) {
		t.Errorf("%+v", report.Rows[0])
	}
	// A memory that is granted to everybody.
	report = mustSucceed[*privacy.AuditReport](t, "public")(d.Audit(ctx, agentCaller("ash"), privacy.AuditQuery{ID: "episode:1004"}))
	if findViewer(report.Rows[0], "*") == nil {
		t.Errorf("%+v", report.Rows[0])
	}
	// A subject with its own token gets a report. All others get the same error, whether the memory or person exists or
	// not.
	mustSucceed[*privacy.AuditReport](t, "the subject")(d.Audit(ctx,
		identity.Caller{Role: identity.Subject, Subject: "dog:bella"}, privacy.AuditQuery{Subject: "dog:bella"}))
	var answers []string
	for description, c := range map[string]identity.Caller{
		"an agent that sees it": agentCaller("bella"), "a stranger": agentCaller("rex"),
		"mallory, who is a guardian elsewhere": agentCaller("mallory"), "another subject": {Role: identity.Subject, Subject: "human:mira"}} {
		for _, q := range []privacy.AuditQuery{{ID: "episode:1001"}, {ID: "episode:none"}, {Subject: "human:student_123"}, {Subject: "human:nobody"}} {
			_, err := d.Audit(ctx, c, q)
			wantError(t, description, err, privacy.NameNotFound)
			answers = append(answers, err.Error())
		}
	}
	if slices.Sort(answers); len(slices.Compact(answers)) != 1 {
		t.Errorf("the answers differ: %v", answers)
	}
	_, err = d.Audit(ctx, identity.Caller{Role: identity.Admin}, privacy.AuditQuery{Subject: "dog:bella"})
	wantError(t, "an admin", err, privacy.NameForbidden)
	for description, q := range map[string]privacy.AuditQuery{
		"nothing": {}, "both": {Subject: "a", ID: "b"}, "like SQL": {Subject: "a' OR true"}, "no kind": {ID: "x", Kind: "stacks"}} {
		_, err := d.Audit(ctx, agentCaller("ash"), q)
		wantError(t, description, err, privacy.NameValidation)
	}
	k.proxy.Tap().RequireNoMarker(t)
}

// A list that is left out is inherited, and a given list is kept. This holds for INSERT, COPY and EXECUTE.
func TestKernleD_CopyAndExecuteInheritAsInsertDoes(t *testing.T) {
	k, _ := startPrivacy(t)
	ctx := context.Background()
	super := harness.ConnectSuperuser(t, k.db)
	for _, table := range kernleTables() {
		emptyList := map[string]string{"episodes": "[]", "episodes_array": "{}", "episodes_jsonb": "[]"}[table]
		inheritedList := map[string]string{"episodes": `["human:sean", "si:bella_agent", "ctx:bella_health"]`,
			"episodes_array": "{human:sean,si:bella_agent,ctx:bella_health}", "episodes_jsonb": `["human:sean", "si:bella_agent", "ctx:bella_health"]`}[table]
		wantGrants := func(content, want string) {
			t.Helper()
			if got := harness.Ask(super, "SELECT access_grants::text FROM "+table+" WHERE content = '"+content+"'").
				Results[0].Rows; !slices.Equal(got, withIDs(want)) {
				t.Errorf("%s: %s is granted to %q, want %q", table, content, got, want)
			}
		}
		c := k.connectAs("ash", "ctx:bella_health")
		copyRow := func(columns, data, code string) {
			t.Helper()
			_, err := c.CopyFrom(ctx, strings.NewReader(data), "COPY "+table+" ("+columns+") FROM STDIN")
			var pg *pgconn.PgError
			if got := errors.As(err, &pg); code == "" && err != nil || code != "" && (!got || pg.Code != code) {
				t.Errorf("%s: COPY: %v, want %q", table, err, code)
			}
		}
		copyRow("stack_id, content", "ash\tcopied one\nash\tcopied two\n", "")
		wantGrants("copied one", inheritedList)
		wantGrants("copied two", inheritedList)
		copyRow("stack_id, content, access_grants", "ash\tcopied none\t"+emptyList+"\n", "")
		wantGrants("copied none", emptyList)
		copyRow("stack_id, content, access_grants", "ash\tcopied null\t\\N\n", "22023")
		copyRow("stack_id, content, subject_ids, access_grants",
			"ash\tcopied wide\t"+map[string]string{
				"episodes": `["dog:bella"]`, "episodes_array": "{dog:bella}",
				"episodes_jsonb": `["dog:bella"]`}[table]+"\t"+
				map[string]string{"episodes": `["si:mallory"]`, "episodes_array": "{si:mallory}", "episodes_jsonb": `["si:mallory"]`}[table]+"\n", "42501")

		k.mustExec(c, "PREPARE short (text) AS INSERT INTO "+table+" (stack_id, content) VALUES ('ash', $1)")
		k.mustExec(c, `PREPARE "Odd ""name" (text, text) AS INSERT INTO `+table+
			" (stack_id, content, access_grants) VALUES ('ash', $1, $2::"+
			map[string]string{"episodes": "text", "episodes_array": "text[]", "episodes_jsonb": "jsonb"}[table]+")")
		k.mustExec(c, `PREPARE "Left ""out" (text) AS INSERT INTO `+table+" (stack_id, content) VALUES ('ash', $1)")
		k.mustExec(c, "EXECUTE short('executed')")
		wantGrants("executed", inheritedList)
		k.mustExec(c, "/* a comment */ execute short('commented')")
		wantGrants("commented", inheritedList)
		k.mustExec(c, `EXECUTE "Left ""out"('quoted')`)
		wantGrants("quoted", inheritedList)
		k.mustExec(c, `EXECUTE "Odd ""name"('given none', '`+emptyList+`')`)
		wantGrants("given none", emptyList)
		// Outside a context there is nothing to inherit.
		k.mustExec(c, "RESET pgconsent.context")
		k.mustExec(c, "EXECUTE short('outside')")
		wantGrants("outside", emptyList)
		k.mustExec(c, "SET pgconsent.context = 'ctx:bella_health'")
		// An INSERT that writes the marker for a missing list is treated as if the list were missing, and gains nothing.
		k.mustExec(c, "INSERT INTO "+table+" (stack_id, content, access_grants) VALUES ('ash', 'by the word', "+
			map[string]string{"episodes": `'"pgconsent:left"'`, "episodes_array": "'[7432:7432]={NULL}'", "episodes_jsonb": `'"pgconsent:left"'`}[table]+")")
		wantGrants("by the word", inheritedList)
		k.mustExec(super, "DELETE FROM "+table+
			" WHERE content IN ('copied one', 'copied two', 'executed', 'commented', 'quoted', 'given none', "+
			"'outside', 'by the word', 'copied none', 'copied wide')")
		harness.Close(c)
	}
	k.proxy.Tap().RequireNoMarker(t)
}

// A grantee cannot lock the record of a consent: the grantor can withdraw it meanwhile.
func TestGranteeCannotLockConsentRecord(t *testing.T) {
	k, _ := startPrivacy(t)
	granteeConn := k.proxy.Agent(t, "specialist", "kernle")
	if a := harness.Ask(granteeConn,
		"BEGIN; SELECT id FROM consent_records WHERE grantor = 'human:parent_456'"); a.Err != "" || len(a.Results) != 2 || len(a.Results[1].Rows) != 1 {
		t.Fatalf("%+v", a)
	}
	for _, lockClause := range []string{"FOR UPDATE", "FOR NO KEY UPDATE", "FOR SHARE", "FOR KEY SHARE"} {
		_ = harness.Ask(granteeConn, "ROLLBACK")
		if a := harness.Ask(granteeConn, "BEGIN; SELECT id FROM consent_records "+lockClause); !strings.Contains(a.Err, "42501") {
			t.Errorf("%s: %+v", lockClause, a)
		}
	}
	for _, statement := range []string{
		"UPDATE consent_records SET revoked_at = NULL", "UPDATE consent_records SET revoked_at = revoked_at WHERE grantor = 'human:parent_456'",
	} {
		_ = harness.Ask(granteeConn, "ROLLBACK")
		if a := harness.Ask(granteeConn, "BEGIN; SAVEPOINT s"); a.Err != "" {
			t.Fatal(a.Err)
		}
		_ = harness.Ask(granteeConn, statement)
		if a := harness.Ask(granteeConn, "ROLLBACK TO s"); a.Err != "" {
			t.Fatal(a.Err)
		}
		grantorConn := k.proxy.Agent(t, "parent", "kernle")
		if a := harness.Ask(grantorConn,
			"SET lock_timeout = '180s'; BEGIN; UPDATE consent_records SET revoked_at = now() WHERE grantor = 'human:parent_456'; ROLLBACK"); a.Err != "" {
			t.Errorf("after %q the grantor cannot withdraw: %s", statement, a.Err)
		}
	}
}

// A stranger's question about a person in the memories reads as many pages of the database as one about nobody.
func TestKernleH_QuestionsOfStrangersTakeEqualWork(t *testing.T) {
	tier.All(t)
	k, _ := startPrivacy(t,
		`INSERT INTO episodes (id, stack_id, content, subject_ids) SELECT 'episode:many_' || n, 'ash', 'one of many', `+
			`'["human:kid_123"]' FROM generate_series(1, 500) n`)
	super := harness.ConnectSuperuser(t, k.db)
	hitsPattern := regexp.MustCompile(`Buffers: shared hit=(\d+)`)
	pagesRead := func(caller, subject string) int {
		t.Helper()
		a := harness.Ask(super,
			"EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM "+
				"pgconsent.privacy_rows('"+caller+"', '"+subject+"', NULL, NULL, NULL, 201)")
		if a.Err != "" {
			t.Fatal(a)
		}
		match := hitsPattern.FindStringSubmatch(strings.Join(a.Results[0].Rows, "\n"))
		if match == nil {
			t.Fatalf("no work is told: %v", a.Results[0].Rows)
		}
		n, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	// The test takes the smallest number of several runs, in turn about somebody and about nobody. Much DDL in another
	// database of the server makes a session read its catalogs again (SICleanupQueue of sinvaladt.c), which adds a
	// thousand pages.
	fewestReads := func(caller string) (existing, absent int) {
		t.Helper()
		existing, absent = math.MaxInt, math.MaxInt
		for range 8 {
			existing, absent = min(existing, pagesRead(caller, "human:kid_123")), min(absent, pagesRead(caller, "human:nobody_1"))
		}
		return existing, absent
	}
	for _, caller := range []string{"si:rex", "human:guest", "human:sean"} {
		if existing, absent := fewestReads(caller); existing != absent {
			t.Errorf("%s: %d pages are read about somebody, %d about nobody", caller, existing, absent)
		}
	}
	// For callers who may know the person, the question reads more pages.
	for _, caller := range []string{"human:mira", "si:ash", "human:kid_123"} {
		if existing, absent := fewestReads(caller); existing <= absent {
			t.Errorf("%s: %d pages are read about somebody, %d about nobody: the measure says nothing", caller, existing, absent)
		}
	}
}

// An agent that has changed a memory locks its row until its transaction ends. A person who grants or revokes meanwhile
// gets an error in time, and nothing is changed. A consent can still be withdrawn, since its record is not locked.
func TestKernleH_LockedRowsAreReported(t *testing.T) {
	k, service := startPrivacy(t)
	service.LockTimeout = 100 * time.Millisecond
	ctx := t.Context()
	holdingConn, err := pgx.Connect(ctx, k.proxy.DSN("ash", "kernle"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holdingConn.Close(context.Background()) }()
	for _, sql := range []string{"BEGIN", "UPDATE episodes SET access_grants = '[]' WHERE id = 'episode:1002'"} {
		if _, err := holdingConn.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	for description, change := range map[string]func() error{
		"revoked": func() error {
			_, err := service.Revoke(ctx, agentCaller("ash"),
				privacy.GrantChange{ID: "episode:1002", Grantees: withIDs("ctx:bella_health")})
			return err
		},
		"granted": func() error {
			_, err := service.Grant(ctx, agentCaller("ash"),
				privacy.GrantChange{ID: "episode:1002", Grantees: withIDs("si:bella_agent"), Reason: "so it is"})
			return err
		},
	} {
		err := change()
		wantError(t, description, err, privacy.NameBusy)
		if state, ok := errors.AsType[*sqlstate.Error](err); !ok || state.Code != "55P03" {
			t.Errorf("%s: %v, want SQLSTATE 55P03", description, err)
		}
	}
	if _, err := service.WithdrawConsent(ctx, agentCaller("sean"), privacy.ConsentRequest{Grantee: "si:bella_agent"}); err != nil {
		t.Errorf("a consent is not withdrawn: %v", err)
	}
	if _, err := holdingConn.Exec(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	service.LockTimeout = 0
	result, err := service.Revoke(ctx, agentCaller("ash"),
		privacy.GrantChange{ID: "episode:1002", Grantees: withIDs("ctx:bella_health")})
	if err != nil || !slices.Equal(result.Revoked, withIDs("ctx:bella_health")) {
		t.Errorf("%+v, %v", result, err)
	}
}
