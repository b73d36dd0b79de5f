package e2e

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/memory/privacy"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// commonTwinSetup is run in both databases that a test compares. It inserts a memory of the caller about a person; other
// users have more memories about that person, which the caller may not see.
const commonTwinSetup = `
INSERT INTO stacks VALUES ('zstore', 'human:zowner');
INSERT INTO episodes (id, stack_id, content, subject_ids, access_grants)
VALUES ('episode:mine', 'mallory', 'Rex Zedwick likes Zeddy cake at Rosenheim', '["human:zed"]', '[]')`

// hiddenTwinSetup is run in one twin: it inserts rows that neither si:mallory nor si:ashley may see. They are contexts,
// records, guardians, aliases, memories and derived beliefs of other stores, under names that the callers use. It also
// inserts malformed lists, and more rows than fit a page.
const hiddenTwinSetup = `
INSERT INTO stacks VALUES ('hstore', 'human:hown');
INSERT INTO privacy_contexts (id, stack_id, context_id, participants, default_access_grants) VALUES ('context:h1', 'ash', 'ctx:secret', '["human:sean"]',
  '["*"]'), ('context:h2', 'rex', 'ctx:secret', '["human:zed"]', 'no list'), ('context:h3', 'zstore', 'ctx:zz', '["human:zed"]', '["*"]'),
	('context:h4', 'hstore', 'ctx:bella_health', '["si:ashley_", "si:malloryx"]', '["*"]');
INSERT INTO consent_records (id, stack_id, grantor, grantee, scope, revoked_at) VALUES ('consent:h1', 'rex', 'human:zed', 'human:other', '*', NULL),
  ('consent:h2', 'ash', 'human:zed', 'human:other', 'episode:mine', NULL), ('consent:h3', 'zstore', 'human:zed', '*x', '*', NULL),
	('consent:h4', 'hstore', 'human:zed', 'human:other', 'ctx:mine', NULL), ('consent:h5', 'ash', 'dog:bella', 'human:other', '*', '2026-01-06');
INSERT INTO guardians VALUES ('ash', 'human:zed', 'human:sean'), ('rex', 'human:zed', 'si:rex'),
  ('hstore', 'dog:bella', 'human:hown'), ('zstore', 'human:mallory_', 'human:zed');
INSERT INTO aliases (stack_id, subject, alias) VALUES ('ash', 'human:zed', 'Zeddy'), ('rex', 'human:zed', 'Rosenheim'), ('zstore', 'si:mallory', 'cake');
INSERT INTO episodes (id, stack_id, content, source_entity, subject_ids, access_grants, told_from)
VALUES ('episode:h1', 'ash', 'HIDDENMARK', NULL, '["human:zed"]', '["*"]', NULL), ('episode:h2', 'ash', 'HIDDENMARK', NULL, '[]', '[]', NULL),
  ('episode:h3', 'rex', 'HIDDENMARK', NULL, '["human:kid_123"]', '["si:mallory"]', NULL),
	('episode:h4', 'ash', 'HIDDENMARK', 'si:mallory_', '["human:zed"]', '["ctx:bella_health"]', 'episode:mine'), ('episode:h5', 'zstore', 'HIDDENMARK', NULL,
	'garbage [[[', '{{{', NULL), ('episode:h6', 'zstore', 'HIDDENMARK', NULL, '["human:zed", null]', '[1]', 'episode:h6'),
	('episode:h7', 'nostore', 'HIDDENMARK', NULL, '["human:zed"]', '["*", "si:mallory"]', NULL),
	('episode:h8', 'rex', 'HIDDENMARK', NULL, '["human:zed"]', '["si:mallory"]', 'episode:h3');
INSERT INTO beliefs (id, stack_id, content, subject_ids, access_grants) VALUES ('belief:h1', 'ash', 'Walks help', '[]', '[]'),
  ('belief:h2', 'zstore', 'Walks help', '["human:zed"]', '["*"]'), ('episode:mine', 'ash', 'HIDDENMARK', '[]', '[]');
INSERT INTO notes (id, stack_id, content, subject_ids, access_grants) VALUES ('note:h1', 'ash', 'HIDDENMARK Rosenheim', '["si:mallory_"]', '[]'),
  ('zzz', 'rex', 'HIDDENMARK', '["human:zed"]', '[]');
INSERT INTO raw_entries (id, stack_id, content, subject_ids, access_grants) VALUES ('zzz', 'rex', 'HIDDENMARK', '["human:zed"]', '[]');
INSERT INTO episodes_array (id, stack_id, content, subject_ids, access_grants)
VALUES ('episode:h1', 'ash', 'HIDDENMARK', ARRAY['human:zed', NULL], '{*}'), ('episode:h2', 'ash', 'HIDDENMARK', NULL, NULL);
INSERT INTO episodes_jsonb (id, stack_id, content, subject_ids, access_grants) VALUES ('episode:h1', 'ash', 'HIDDENMARK', '{"a":1}', '"*"'),
  ('episode:h2', 'ash', 'HIDDENMARK', (repeat('[', 2000) || repeat(']', 2000))::jsonb, '["*"]');
INSERT INTO generalizations (stack_id, belief_id, source_id, source_kind) VALUES ('ash', 'belief:h1', 'episode:mine', 'episode'),
  ('zstore', 'belief:h2', 'episode:mine', 'episode'), ('ash', 'belief:none', 'episode:h1', '');
INSERT INTO episodes (id, stack_id, content, subject_ids, access_grants) SELECT 'episode:bulk' || n, 'ash', 'HIDDENMARK Rosenheim cake ' || n,
  '["human:zed"]', '["si:mallory"]' FROM generate_series(1, 2500) n;
INSERT INTO privacy_contexts (id, stack_id, context_id, participants) SELECT 'context:bulk' || n, 'ash',
  'ctx:a' || n, '["human:sean"]' FROM generate_series(1, 1200) n`

var (
	generatedIDs = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	timestamps   = regexp.MustCompile(`20\d\d-\d\d-\d\d[T ][0-9:.]+Z?`)
)

// The operations of package privacy, and SQL statements, depend only on rows that the caller may see. Both twins answer
// every call alike.
func TestKernleH_TwinsAnswerAlike(t *testing.T) {
	tier.All(t)
	var steps []string
	var answers [2][]string
	for i, hiddenSetup := range []string{hiddenTwinSetup, ""} {
		setup := []string{commonTwinSetup}
		if hiddenSetup != "" {
			setup = append(setup, hiddenSetup)
		}
		k, service := startPrivacy(t, setup...)
		if i == 0 { // changes by others are recorded, too
			mustSucceed[*privacy.RecordedConsent](t, "a consent")(
				service.RecordConsent(t.Context(), agentCaller("tutor_a"), privacy.ConsentRequest{Grantee: "human:other", Store: "student_123", Reason: "HIDDENMARK"}))
			mustSucceed[*privacy.GrantResult](t, "a grant")(
				service.Revoke(t.Context(), agentCaller("ash"),
					privacy.GrantChange{ID: "episode:1001", Grantees: withIDs("human:sean"), Reason: "HIDDENMARK"}))
		}
		questions := 0
		ask := func(step string, call func() (any, error)) {
			if questions++; !tier.IsPicked(questions-1, 8) {
				return
			}
			answer, err := call()
			text, _ := json.Marshal(answer)
			if err != nil {
				var privacyError *privacy.Error
				var stateError *sqlstate.Error
				if !errors.As(err, &privacyError) || !errors.As(err, &stateError) {
					t.Errorf("%s: %v", step, err)
					return
				}
				text = fmt.Appendf(nil, "%s %s %s %s", privacyError.Name(), stateError.Code, stateError.Message, stateError.Hint)
			}
			if i == 0 {
				steps = append(steps, step)
			}
			answers[i] = append(answers[i], timestamps.ReplaceAllString(generatedIDs.ReplaceAllString(string(text), "NEW"), "TIME"))
		}
		for _, caller := range []identity.Caller{
			{Name: "token", Role: identity.Subject, Subject: "si:mallory", Database: "kernle"}, agentCaller("mallory"), agentCaller("ashley")} {
			askAllServices(t, service, caller, ask)
		}
		for _, name := range []string{"mallory", "ashley"} {
			c := k.proxy.Agent(t, name, "kernle")
			for _, sql := range twinStatements {
				ask(name+" "+sql, func() (any, error) { return harness.Ask(c, sql).SortedString(), nil })
			}
		}
	}
	errorCount := 0
	for n, step := range steps {
		if answers[0][n] != answers[1][n] || strings.Contains(answers[0][n], "HIDDENMARK") {
			t.Errorf("%s\n   %s\n   %s", step, harness.Truncate(answers[0][n]), harness.Truncate(answers[1][n]))
		}
		if strings.HasPrefix(answers[0][n], "Privacy") {
			errorCount++
		}
	}
	if errorCount > len(steps)*9/10 || len(answers[0]) != len(answers[1]) {
		t.Errorf("%d of %d steps are errors", errorCount, len(steps))
	}
}

// twinStatements are the SQL statements that the callers send.
var twinStatements = []string{
	"SELECT count(*) FROM episodes", "SELECT context_id, stack_id, participants FROM privacy_contexts ORDER BY 1, 2",
	"SELECT count(*) FROM consent_records", "SELECT * FROM stacks", "SELECT * FROM guardians",
	"SELECT * FROM aliases", "SELECT count(*) FROM generalizations",
	"SET pgconsent.context = 'ctx:secret'", "SET pgconsent.context = 'ctx:none'",
	"BEGIN; SET LOCAL pgconsent.context = 'ctx:a7'; SELECT count(*) FROM notes; COMMIT",
	"INSERT INTO consent_records (stack_id, grantee, scope) VALUES ('rex', 'human:other', '*') RETURNING grantor",
	"INSERT INTO episodes (stack_id, content, told_from, access_grants) VALUES ('mallory', 'x', 'episode:h1', " +
		"'[\"*\"]') RETURNING access_grants",
	"INSERT INTO episodes (stack_id, content, told_from) VALUES ('mallory', 'x', 'episode:h7') RETURNING access_grants",
}

// askAllServices calls every operation, with names that exist in one twin only.
func askAllServices(t *testing.T, service *privacy.Service, caller identity.Caller, ask func(step string, call func() (any, error))) {
	t.Helper()
	ctx := t.Context()
	user := caller.Agent + caller.Subject
	for _, subject := range []string{"human:zed", "dog:bella", "human:sean", "si:mallory", "human:other", "human:hown"} {
		for _, cursor := range []string{"", `["","",""]`, `["ash","episode","episode:h1"]`, `["zzzz","z","z"]`} {
			ask(user+" audits "+subject+cursor, func() (any, error) {
				return service.Audit(ctx, caller, privacy.AuditQuery{Subject: subject, After: base64.RawURLEncoding.EncodeToString([]byte(cursor)), MaxMemories: 3})
			})
		}
	}
	for _, id := range []string{"episode:h1", "episode:h5", "episode:mine", "belief:h1", "zzz", "episode:none"} {
		for _, kind := range []string{"", "note", "episode_array"} {
			ask(user+" audits "+id+" "+kind, func() (any, error) { return service.Audit(ctx, caller, privacy.AuditQuery{ID: id, Kind: kind}) })
		}
	}
	ask(user+" whom", func() (any, error) {
		subjects, otherSubjects, err := service.AuditableSubjects(ctx, caller, 5)
		return fmt.Sprint(subjects, otherSubjects), err
	})
	ask(user+" drawn", func() (any, error) { return service.ListDerivedBeliefs(ctx, caller, "") })
	if caller.Role != identity.Agent {
		return
	}
	for _, name := range []string{"ctx:secret", "ctx:zz", "ctx:bella_health", "ctx:mine", "ctx:a7"} {
		ask(user+" looks at "+name, func() (any, error) { return service.ContextsNamed(ctx, caller, name) })
		for _, e := range []privacy.ContextRequest{{Context: name}, {Context: name, Store: "rex"},
			{Context: name, Participants: withIDs("human:zed")}, {Context: name, Access: withIDs("*")}} {
			ask(fmt.Sprint(user, " enters ", e), func() (any, error) { return service.EnterContext(ctx, caller, e) })
		}
		ask(user+" adds in "+name, func() (any, error) {
			return service.AddMemory(ctx, caller, privacy.NewMemory{Content: "x", Context: name, Subjects: withIDs("human:zed")})
		})
		ask(user+" consents about "+name, func() (any, error) {
			return service.RecordConsent(ctx, caller, privacy.ConsentRequest{Grantee: "human:other", Scope: name})
		})
		ask(user+" withdraws about "+name, func() (any, error) {
			return service.WithdrawConsent(ctx, caller, privacy.ConsentRequest{Grantee: "human:other", Scope: name})
		})
	}
	for _, storeID := range []string{"ash", "hstore", "nostore", "zstore", "none"} {
		ask(user+" adds to "+storeID, func() (any, error) {
			return service.AddMemory(ctx, caller, privacy.NewMemory{Content: "x", Store: storeID})
		})
		for _, g := range []privacy.ConsentRequest{{Grantee: "human:other", Store: storeID}, {Grantee: "human:other", Store: storeID, Grantor: "human:zed"}} {
			ask(fmt.Sprint(user, " consents ", g), func() (any, error) { return service.RecordConsent(ctx, caller, g) })
			ask(fmt.Sprint(user, " withdraws ", g), func() (any, error) { return service.WithdrawConsent(ctx, caller, g) })
		}
	}
	for _, id := range []string{"consent:h1", "consent:h5", "consent:none"} {
		ask(user+" withdraws "+id, func() (any, error) { return service.WithdrawConsent(ctx, caller, privacy.ConsentRequest{ID: id}) })
	}
	for _, id := range []string{"episode:mine", "episode:h1", "episode:h3", "episode:h5", "zzz", "episode:none"} {
		for _, kind := range []string{"", "note", "belief"} {
			ask(user+" grants "+id+" "+kind, func() (any, error) {
				return service.Grant(ctx, caller, privacy.GrantChange{ID: id, Kind: kind, Grantees: withIDs("human:other")})
			})
		}
		ask(user+" revokes "+id, func() (any, error) {
			return service.Revoke(ctx, caller, privacy.GrantChange{ID: id, Grantees: withIDs("human:other")})
		})
		for _, access := range [][]string{nil, withIDs("*"), withIDs("si:mallory")} {
			ask(fmt.Sprint(user, " is told ", id, access), func() (any, error) {
				return service.AddMemory(ctx, caller, privacy.NewMemory{Content: "told", ToldFrom: id, Access: access, Source: "si:rex"})
			})
		}
		for _, belief := range []string{"Walks help", "Zeddy likes it", "Rosenheim is nice"} {
			ask(user+" generalizes "+id+" "+belief, func() (any, error) {
				return service.AddBelief(ctx, caller, privacy.Generalization{Source: id, Belief: belief, AcceptsWarnings: true,
					Access: withIDs("*")})
			})
		}
	}
	ask(user+" contexts", func() (any, error) {
		contexts, err := service.Contexts(ctx, caller)
		return len(contexts), err
	})
}
