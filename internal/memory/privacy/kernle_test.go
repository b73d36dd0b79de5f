//go:build unix

package privacy

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/policy"
	harness "github.com/pgconsent/pgconsent/test/instance"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// rows are few, each for a reason: the store of si:ash, one of si:mallory (who uses the names of others), and two of
// si:two.
const rows = `
INSERT INTO stacks VALUES ('ash', 'si:ash'), ('mallory', 'si:mallory'), ('left', 'si:two'), ('right', 'si:two');
INSERT INTO guardians VALUES ('ash', 'dog:bella', 'human:sean'), ('mallory', 'dog:bella', 'human:mallory'),
  ('ash', 'dog:rex', 'human:mira'), ('mallory', 'dog:rex', 'human:mira'), ('mallory', 'dog:gin', 'human:gina'),
  ('left', 'dog:lou', 'human:lou'), ('right', 'dog:lou', 'human:lou');
INSERT INTO privacy_contexts (stack_id, context_id, participants, default_access_grants) VALUES
  ('ash', 'ctx:health', '["human:sean", "si:bella", "role:vet"]', '["human:sean", "ctx:health"]'),
  ('mallory', 'ctx:health', '["si:mallory"]', '["*"]'),
  ('ash', 'ctx:talk', '["si:bella", "human:mira"]', '[]'), ('ash', 'ctx:broken', '{"si:bella": true}', '["*"'),
  ('left', 'ctx:two', '["si:bella"]', '[]'), ('right', 'ctx:two', '[]', '[]');
INSERT INTO consent_records (id, stack_id, grantor, grantee, scope, granted_at, revoked_at) VALUES
  ('consent:1', 'ash', 'human:sean', 'si:bella', '*', '2026-01-05', NULL),
  ('consent:2', 'ash', 'human:sean', 'role:vet', 'ctx:health', '2026-01-06', NULL),
  ('consent:3', 'ash', 'human:mira', 'si:bella', '*', '2026-01-07', '2026-02-01'),
  ('consent:ward', 'ash', 'dog:bella', 'si:rex', '*', '2026-01-08', NULL),
  ('consent:own', 'ash', 'si:bella', 'si:rex', '*', '2026-01-08', NULL),
  ('consent:left', 'left', 'human:lou', 'si:bella', '*', '2026-01-09', NULL),
  ('consent:right', 'right', 'human:lou', 'si:bella', 'ctx:two', '2026-01-09', NULL);
INSERT INTO aliases (stack_id, subject, alias) VALUES ('ash', 'dog:bella', 'Bellissima'),
  ('mallory', 'dog:bella', 'breeds');
INSERT INTO episodes (id, stack_id, content, source_entity, subject_ids, access_grants) VALUES
  ('episode:1', 'ash', 'Bella has a heart murmur', NULL, '["dog:bella"]', '["si:bella", "ctx:health"]'),
  ('episode:private', 'ash', 'What I keep to myself', NULL, '[]', '[]'),
  ('episode:kid', 'ash', 'What the child said', NULL, '["human:kid", "dog:bella"]', '["si:bella", "si:new"]'),
  ('episode:public', 'ash', 'Small breeds need exercise', NULL, '[]', '["*"]'),
  ('episode:both', 'ash', 'Small breeds are small', NULL, '[]', '["*", "si:new"]'),
  ('episode:grant', 'ash', 'To be granted', NULL, '["dog:bella"]', '["human:sean"]'),
  ('episode:_', 'ash', 'Of an odd id', NULL, '[]', '[]'), ('Episode:grant', 'ash', 'In capitals', NULL, '[]', '[]'),
  ('episode:held', 'ash', 'Held by another transaction', NULL, '[]', '["si:bella"]'),
  ('episode:bad', 'ash', 'What it is granted to is no list', NULL, '[]', '{"*": 1}'),
  ('episode:unknown', 'ash', 'About nobody knows whom', NULL, '["x"', '[]'),
  ('twice', 'ash', 'One of two', NULL, '["human:kid"]', '["si:bella"]'),
  ('episode:theirs', 'mallory', 'Of another store', NULL, '["dog:bella"]', '[]'),
  ('episode:told', 'ash', 'Doctor Smith says that Bella limps', 'vet:smith', '["dog:bella"]', '[]'),
  ('episode:mine', 'ash', 'Told by ash of Bella', 'si:ash', '["dog:bella"]', '[]'),
  ('episode:page1', 'ash', 'x', NULL, '["dog:page"]', '[]'),
  ('episode:page2', 'ash', 'x', NULL, '["dog:page"]', '[]'), ('episode:page3', 'ash', 'x', NULL, '["dog:page"]', '[]');
INSERT INTO episodes_array (id, stack_id, content, subject_ids, access_grants) VALUES
  ('twice', 'ash', 'The other of two', '{human:kid}', '{}'),
  ('episode:array', 'ash', 'As an array', '{dog:bella}', '{human:sean}');
`

// kernle has the schema and policy of the world kernle with few rows, behind a proxy. The policy is reduced to the
// parts that this package uses: two tables of memories, each with another form of list, and the table of beliefs.
// Beliefs of other SIs have tests of their own.
type kernle struct {
	*testing.T
	service  *Service
	db       *pgtest.DB
	proxy    *harness.Proxy
	sessions map[string]*callerSession
}

func start(t *testing.T) *kernle {
	t.Helper()
	w, err := world.Open("kernle")
	if err != nil {
		t.Fatal(err)
	}
	readFile := func(name string) string {
		text, err := w.File(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	k := &kernle{T: t, sessions: map[string]*callerSession{}, db: pgtest.Database(t)}
	harness.Exec(t, k.db, readFile("schema.sql")+rows)
	text := readFile("policy.yaml")
	for _, table := range []string{"notes", "raw_entries", "episodes_jsonb"} {
		text = regexp.MustCompile(`(?m)^  `+table+`:\n(    .*\n)+`).ReplaceAllString(text, "")
	}
	text = regexp.MustCompile(`(?m)^ *(- derived|chain): .*\n`).ReplaceAllString(text, "")
	text = strings.NewReplacer(", note: notes", "", ", raw: raw_entries", "", ", episode_jsonb: episodes_jsonb",
		"").Replace(text)
	d := harness.Database{Name: "kernle", DB: k.db, Policy: text, SearchPath: []string{"public"}}
	compiledPolicy := harness.Migrate(t, d, harness.Both).Policy
	logins := map[string]map[string]string{}
	var agents []harness.Agent
	for agent, roles := range map[string]string{"ash si:ash": "{}", "bella si:bella": "{}", "sean human:sean": "{}",
		"mira human:mira": "{}", "gina human:gina": "{}", "lou human:lou": "{}", "vet human:vet": "{role:vet}",
		"mallory si:mallory": "{}", "two si:two": "{}"} {
		name, entity, _ := strings.Cut(agent, " ")
		logins[name] = map[string]string{"user": entity, "roles": roles}
		agents = append(agents, harness.Agent{Name: name, Database: "kernle", Attributes: logins[name]})
	}
	k.proxy = harness.Serve(t, harness.Both, []harness.Database{d}, agents)
	connectDirectly := func(role string) func(context.Context) (*pgx.Conn, error) {
		return func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, k.db.DSN(role, "role-password")) }
	}
	k.service = &Service{
		Policy: func() *policy.Policy { return compiledPolicy },
		ConnectCaller: func(ctx context.Context, caller identity.Caller) (*pgx.Conn, error) {
			return pgx.Connect(ctx, k.proxy.DSN(caller.Agent, "kernle"))
		},
		AgentAttributes: func() map[string]map[string]string { return logins }, ConnectControl: connectDirectly("pgconsent_control"),
		ConnectAgentRole: connectDirectly("pgconsent_agent"),
	}
	return k
}

// in returns k for a subtest.
func (k *kernle) in(t *testing.T) *kernle { return &kernle{t, k.service, k.db, k.proxy, k.sessions} }

// session returns the session of an agent, opened as an operation opens it. A call of the service opens its own
// session. Tests that need one directly share it.
func (k *kernle) session(agent string) *callerSession {
	k.Helper()
	if k.sessions[agent] == nil {
		s, err := k.service.openSession(context.Background(), as(agent), "", "")
		if err != nil {
			k.Fatal(err)
		}
		k.sessions[agent] = s
	}
	return k.sessions[agent]
}

// value returns the result of a query that the superuser runs.
func (k *kernle) value(sql string) string {
	k.Helper()
	var out string
	if err := k.db.Connect(k, "postgres").QueryRow(context.Background(), sql).Scan(&out); err != nil {
		k.Fatalf("%s: %v", sql, err)
	}
	return out
}

// differently changes the privacy section of the policy for one subtest.
func (k *kernle) differently(change func(*policy.Privacy)) {
	section := k.service.Policy().Privacy()
	before := *section
	k.Cleanup(func() { *section = before })
	change(section)
}

// same checks a list of ids.
func (k *kernle) same(description string, got []string, want ...string) {
	k.Helper()
	if !slices.Equal(got, want) {
		k.Errorf("%s: %q, want %q", description, got, want)
	}
}

// One database and one proxy serve all these tests; each test uses rows of its own.
func TestPrivacyOverKernle(t *testing.T) {
	k := start(t)
	for _, c := range []struct {
		name string
		run  func(*kernle)
	}{
		{"adding", checkAddMemory}, {"granting and revoking", checkGrants}, {"what is held", checkLockTimeout}, {"consenting",
			checkRecordConsent},
		{"withdrawing", checkWithdrawConsent},
		{"contexts", checkContexts}, {"audit", checkAudit}, {"generalizing", checkGeneralize},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(k.in(t)) })
	}
	for _, s := range k.sessions {
		s.close(context.Background())
	}
}

func must[T any](k *kernle, description string) func(T, error) T {
	return func(out T, err error) T {
		k.Helper()
		if err != nil {
			k.Fatalf("%s: %v", description, err)
		}
		return out
	}
}

// Who may add a memory, to which store it goes, and which grants it gets by default.
func checkAddMemory(k *kernle) {
	ctx := context.Background()
	add := func(caller identity.Caller, n NewMemory) (*Memory, error) {
		n.Content = "x"
		return k.service.AddMemory(ctx, caller, n)
	}
	for _, c := range []struct {
		description, agentName string
		n                      NewMemory
		want                   Memory // without its id
	}{
		{"in one's own store", "ash", NewMemory{Source: "human:sean"}, Memory{Kind: "episode", Store: "ash",
			Source: "human:sean", Access: []string{"human:sean"}}},
		{"with all that may be said", "ash", NewMemory{Kind: "episode_array", Source: "human:sean", ToldFrom: "episode:array",
			Subjects: []string{"dog:bella"}, Access: []string{"human:sean"}, Consent: []string{"human:sean"}},
			Memory{Kind: "episode_array", Store: "ash", Source: "human:sean", ToldFrom: "episode:array",
				Subjects: []string{"dog:bella"}, Access: []string{"human:sean"}, Consent: []string{"human:sean"}}},
		{"for nobody", "ash", NewMemory{Source: "human:sean", Access: []string{}},
			Memory{Kind: "episode", Store: "ash", Source: "human:sean", Access: []string{}}},
		{"in the context's store, by a participant", "bella", NewMemory{Context: "ctx:talk", Source: "human:sean"},
			Memory{Kind: "episode", Store: "ash", Source: "si:bella", Access: []string{"si:bella", "human:mira",
				"ctx:talk"}}},
	} {
		got, err := add(as(c.agentName), c.n)
		if err != nil {
			k.Errorf("%s: %v", c.description, err)
			continue
		}
		for _, l := range []*[]string{&c.want.Subjects, &c.want.Access, &c.want.Consent} {
			if *l == nil {
				*l = []string{}
			}
		}
		if got.ID == "" || got.Kind != c.want.Kind || got.Store != c.want.Store || got.Source != c.want.Source ||
			got.ToldFrom != c.want.ToldFrom || got.Subjects == nil || got.Access == nil || got.Consent == nil ||
			!slices.Equal(got.Subjects, c.want.Subjects) || !slices.Equal(got.Access, c.want.Access) ||
			!slices.Equal(got.Consent, c.want.Consent) {
			k.Errorf("%s: %+v, want %+v", c.description, got, c.want)
		}
	}
	for _, c := range []struct {
		description, agentName string
		n                      NewMemory
		name, code             string
	}{
		{"in a store of others", "lou", NewMemory{Store: "ash"}, NameForbidden, "42501"},
		{"in a context that is not", "ash", NewMemory{Context: "ctx:none"}, NameNotFound, "PC404"},
		{"in a context of others", "lou", NewMemory{Context: "ctx:health"}, NameNotFound, "PC404"},
		{"granted without consent", "ash", NewMemory{Subjects: []string{"human:kid"}, Access: []string{"si:bella"}},
			NameForbidden, "42501"},
	} {
		_, err := add(as(c.agentName), c.n)
		requireRefused(k.T, c.description, err, c.name, c.code)
	}
	for _, c := range []struct {
		agentName, in, want string // want "": the error that no store can be determined
	}{{"ash", "", "ash"}, {"vet", "", ""}, {"two", "", ""}, {"vet", "ctx:health", "ash"}, {"two", "ctx:two", ""},
		{"bella", "ctx:two", "left"}, {"lou", "ctx:health", ""}} {
		got, err := k.session(c.agentName).storeForMemory(ctx, c.in)
		if requireValidity(k.T, c.agentName+" in "+c.in, err, c.want != ""); got != c.want {
			k.Errorf("a memory of %s in %q goes to %q, want %q", c.agentName, c.in, got, c.want)
		}
	}
	k.differently(func(p *policy.Privacy) {
		m := *p.Memories[0]
		m.TellerColumn, m.ToldFromColumn, m.Evidence.Column = "", "", ""
		p.Memories = []*policy.Memories{&m}
	})
	for description, n := range map[string]NewMemory{"who told it": {Source: "human:sean"},
		"from which it was told": {ToldFrom: "episode:1"}} {
		_, err := add(as("ash"), n)
		requireRefused(k.T, "no column says "+description, err, NameValidation, "PC422")
	}
}

// The owner grants access to those whom the consents allow, once even if asked again, and revokes access. A memory that
// the caller does not see is reported as not found.
func checkGrants(k *kernle) {
	ctx := context.Background()
	change := GrantChange{ID: "episode:grant", Grantees: []string{"si:bella", "human:sean", "si:bella"},
		Consent: []string{"human:sean"}, Reason: "it's so"}
	out := must[*GrantResult](k, "grant")(k.service.Grant(ctx, as("ash"), change))
	k.same("granted", out.Granted, "si:bella")
	k.same("revoked by a grant", out.Revoked)
	k.same("access", out.Access, "human:sean", "si:bella")
	k.same("evidence", out.Consent, "human:sean")
	const storedGrants = "SELECT access_grants || consent_grants FROM episodes WHERE id = 'episode:grant'"
	const events = "SELECT string_agg(did || ' ' || coalesce(reason, '-'), ', ' ORDER BY number) " +
		"FROM pgconsent.privacy_event WHERE key = 'episode:grant'"
	if got := k.value(storedGrants); got != `["human:sean","si:bella"]["human:sean"]` {
		k.Errorf("stored %s", got)
	}
	repeatedGrant := must[*GrantResult](k, "grant again")(k.service.Grant(ctx, as("ash"), change))
	k.same("granted again", repeatedGrant.Granted)
	k.same("access", repeatedGrant.Access, "human:sean", "si:bella")
	evidenceGrant := must[*GrantResult](k, "only evidence")(k.service.Grant(ctx, as("ash"), GrantChange{ID: "episode:grant",
		Grantees: []string{"si:bella"}, Consent: []string{"human:sean", "human:mira"}}))
	k.same("evidence", evidenceGrant.Consent, "human:sean", "human:mira")
	k.same("granted", evidenceGrant.Granted)
	out = must[*GrantResult](k, "revoke")(k.service.Revoke(ctx, as("ash"), GrantChange{ID: "episode:grant",
		Grantees: []string{"si:bella", "si:rex"}}))
	k.same("revoked", out.Revoked, "si:bella")
	k.same("granted by a revocation", out.Granted)
	if got := k.value(storedGrants); got != `["human:sean"]["human:sean","human:mira"]` {
		k.Errorf("stored %s", got)
	}
	if got := k.value(events); got != "grant it's so, revoke -" {
		k.Errorf("noted %s", got)
	}
	if out, err := k.service.Grant(ctx, as("ash"), GrantChange{ID: "episode:array", Kind: "episode_array",
		Grantees: []string{"human:sean", "si:bella"}}); err != nil || !slices.Equal(out.Granted, []string{"si:bella"}) {
		k.Errorf("of a kind that is said: %+v, %v", out, err)
	}
	for _, c := range []struct {
		description, agentName string
		change                 GrantChange
		name, code             string
	}{
		{"without consent", "ash", GrantChange{ID: "episode:grant", Grantees: []string{"si:new"}}, NameForbidden, "42501"},
		{"one that is seen and is another's", "bella", GrantChange{ID: "episode:1"}, NameForbidden, "42501"},
	} {
		if c.change.Grantees == nil {
			c.change.Grantees = []string{"human:sean"}
		}
		_, err := k.service.Grant(ctx, as(c.agentName), c.change)
		requireRefused(k.T, "grant "+c.description, err, c.name, c.code)
	}
	for _, c := range []struct {
		description, agentName, id, kind string
		name, code                       string // "" if the memory is found
	}{
		{"by its id", "ash", "episode:grant", "", "", ""},
		{"by its id and kind", "ash", "twice", "episode_array", "", ""},
		{"without a kind before its id", "ash", "twice", "episode", "", ""},
		{"seen by another", "bella", "episode:1", "", "", ""},
		{"that is hidden", "bella", "episode:private", "", NameNotFound, "PC404"},
		{"that is not", "bella", "episode:none", "", NameNotFound, "PC404"},
		{"in capitals", "ash", "EPISODE:grant", "", NameNotFound, "PC404"},
		{"by a part of its id", "ash", "episode:gran", "", NameNotFound, "PC404"},
		{"by a pattern", "ash", "episode:%", "", NameNotFound, "PC404"},
		{"of a kind that it is not", "ash", "episode:grant", "belief", NameNotFound, "PC404"},
		{"where another kind begins as its id", "ash", "episode:array", "", NameNotFound, "PC404"},
		{"of no kind", "ash", "episode:grant", "stacks", NameValidation, "PC422"},
		{"with an id of two kinds", "ash", "twice", "", NameConflict, "PC409"},
		{"granted to what is no list", "ash", "episode:bad", "", NameConflict, "PC409"},
	} {
		s := k.session(c.agentName)
		tx := must[pgx.Tx](k, "begin")(s.conn.Begin(ctx))
		m, memory, err := s.findMemory(ctx, tx, c.kind, c.id)
		switch _ = tx.Rollback(ctx); {
		case c.name != "":
			requireRefused(k.T, "a memory "+c.description, err, c.name, c.code)
		case err != nil || memory.ID != c.id || m.Kind != memory.Kind || c.kind != "" && m.Kind != c.kind:
			k.Errorf("a memory %s: %+v, %v", c.description, memory, err)
		}
	}
	if got := k.value("SELECT string_agg(access_grants, ' ' ORDER BY id) FROM episodes " +
		"WHERE id IN ('episode:_', 'Episode:grant', 'episode:1', 'twice', 'episode:bad')"); strings.Contains(got, "human:sean") {
		k.Errorf("an id that does not match whole, or a refusal, has changed %s", got)
	}
}

// A call that waits for a locked row gets an error after the service's lock timeout.
func checkLockTimeout(k *kernle) {
	ctx := context.Background()
	otherConn := k.db.Connect(k, "postgres")
	for _, sql := range []string{"BEGIN", "UPDATE episodes SET content = content WHERE id = 'episode:held'"} {
		if _, err := otherConn.Exec(ctx, sql); err != nil {
			k.Fatal(err)
		}
	}
	k.service.LockTimeout = 50 * time.Millisecond
	_, err := k.service.Revoke(ctx, as("ash"), GrantChange{ID: "episode:held", Grantees: []string{"si:bella"}})
	requireRefused(k.T, "a row that is held", err, NameBusy, "55P03")
	if _, err := otherConn.Exec(ctx, "ROLLBACK"); err != nil {
		k.Fatal(err)
	}
	k.service.LockTimeout = 0
	var got string
	if err := k.session("ash").conn.QueryRow(ctx,
		"SELECT pg_catalog.current_setting('lock_timeout')").Scan(&got); err != nil || got != "5s" {
		k.Errorf("by itself a session waits for %s, %v", got, err)
	}
}
