package enforce

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/xdg-go/scram"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/run/metrics"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.MainAlone(m) }

const (
	ann = "6f1e0000-0000-4000-8000-000000000001"
	bob = "6f1e0000-0000-4000-8000-000000000002"
)

const schema = `
CREATE TABLE public.people (id bigint PRIMARY KEY, user_id uuid NOT NULL, name text NOT NULL, consent_status text);
CREATE TABLE public.memories (id bigint PRIMARY KEY, user_id uuid NOT NULL, title text NOT NULL);
CREATE TABLE public.memory_participants (
	memory_id bigint NOT NULL REFERENCES public.memories, person_id bigint NOT NULL REFERENCES public.people, PRIMARY KEY (memory_id, person_id));
INSERT INTO public.people VALUES (1, '` + ann + `', 'Eve', 'granted'), (2, '` + ann + `', 'Ben', 'revoked');
INSERT INTO public.memories VALUES (1, '` + ann + `', 'lake'), (2, '` + ann + `', 'hill'), (3, '` + ann + `', 'sea'), (4, '` + bob + `', 'moor');
INSERT INTO public.memory_participants VALUES (1, 1), (2, 2);
`

const rules = `version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  memories:
    rows:
      - own: { column: user_id, is: user }
      - consent: { every: [ memory_participants: { memory_id: id }, people: { id: person_id } ], status: consent_status, is: granted }
  people: { rows: [ { own: { column: user_id, is: user } }, { status: { column: consent_status, is: granted } } ] }
`

// wider is rules with one more table, so that pgconsent migrate would install something else in the database.
const wider = rules + "  memory_participants: { rows: [ { visible: { memories: { id: memory_id } } }, { visible: " +
	"{ people: { id: person_id } } } ] }\n"

func install(ctx context.Context, conn *pgx.Conn, text string) error {
	return installWith(ctx, conn, text, rls.Options{})
}

func installWith(ctx context.Context, conn *pgx.Conn, text string, o rls.Options) error {
	doc, err := policy.Parse("policy.yaml", []byte(text))
	if err != nil {
		return err
	}
	snap, err := pgcatalog.Load(ctx, conn, []string{"public"})
	if err != nil {
		return err
	}
	p, err := policy.Compile(doc, snap, policy.WithViews(rewrite.RewriteViewQuery))
	if err != nil {
		return err
	}
	return migrations.Up(ctx, conn, migrations.Options{}, rls.Generate(p, snap, o))
}

// world is a database, an enforcer that serves it, and the enforcer's log and audit.
type world struct {
	t      testing.TB
	db     *pgtest.DB
	dba    *pgx.Conn
	policy string // path of the policy file
	audit  string // folder of the audit
	log    *syncBuffer
	cfg    Config
	*Enforcer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}
func (b *syncBuffer) String() string { b.mu.Lock(); defer b.mu.Unlock(); return b.b.String() }

// installation is what a test's database has from the beginning. Databases with the same one are copies of a template,
// in which the policy was installed once.
type installation struct {
	more    string // SQL to run after the schema
	policy  string
	options rls.Options
}

// The policy rules, without and with signed views.
var (
	plainRules  = installation{policy: rules}
	signedRules = installation{policy: rules, options: rls.Options{SignedViews: true}}
)

// prepare makes the database and a configuration of the enforcer. change may modify the configuration.
func prepare(t testing.TB, has installation, change func(*world)) *world {
	t.Helper()
	w := &world{t: t, log: &syncBuffer{}, audit: t.TempDir(), policy: filepath.Join(t.TempDir(), "policy.yaml")}
	w.db = pgtest.Template(t, fmt.Sprintf("enforced %+v", has), func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, schema+has.more); err != nil {
			return err
		}
		return installWith(ctx, conn, has.policy, has.options)
	})
	w.dba = w.db.Connect(t, "postgres")
	w.write(has.policy)
	w.cfg = Config{
		Databases:     []Database{{Name: "memories", PolicyPath: w.policy, ControlConnection: w.db.DSN("pgconsent_control", ""), SearchPath: []string{"public"}}},
		Agents:        []Agent{agent("caregiver", ann), agent("other", bob)},
		Metrics:       metrics.New(prometheus.NewRegistry()),
		Log:           slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		ProbeInterval: 20 * time.Millisecond,
	}
	if change != nil {
		change(w)
	}
	return w
}

func start(t testing.TB, change func(*world)) *world {
	t.Helper()
	return startWith(t, plainRules, change)
}

func startWith(t testing.TB, has installation, change func(*world)) *world {
	t.Helper()
	w := prepare(t, has, change)
	if w.cfg.Audit == nil {
		log, err := audit.Open(audit.Config{Dir: w.audit, Log: w.cfg.Log, ReleaseTimeout: tier.Patience})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = log.Close(context.Background()) })
		w.cfg.Audit = log
	}
	e, err := New(t.Context(), w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	w.Enforcer = e
	return w
}

func agent(name, user string) Agent {
	return Agent{Name: name, Database: "memories", Credential: &scram.StoredCredentials{}, Attributes: map[string]string{"user": user}}
}

func (w *world) write(text string) {
	w.t.Helper()
	if err := os.WriteFile(w.policy, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) exec(sql string) {
	w.t.Helper()
	if _, err := w.dba.Exec(w.t.Context(), sql); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

// client is a session of an agent with its connection to PostgreSQL, as package proxy would hold it.
type client struct {
	w *world
	verdict.Decider
	server  *pgconn.PgConn
	sealed  verdict.Seal
	revoked chan *sqlstate.Error
}

func (w *world) open(name string) (*client, error) {
	w.t.Helper()
	access, ok := w.Agent(name, "memories")
	if !ok {
		w.t.Fatalf("%s is no agent", name)
	}
	cfg, err := pgx.ParseConfig(w.db.DSN("pgconsent_agent", ""))
	if err != nil {
		w.t.Fatal(err)
	}
	for k, v := range access.Params {
		cfg.RuntimeParams[k] = v
	}
	conn, err := pgx.ConnectConfig(w.t.Context(), cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	c := &client{w: w, server: conn.PgConn(), revoked: make(chan *sqlstate.Error, 1)}
	var server string
	if err := conn.QueryRow(w.t.Context(), "SELECT "+serverStartSQL).Scan(&server); err != nil {
		w.t.Fatal(err)
	}
	c.Decider, err = access.OpenSession(w.t.Context(), SessionInfo{
		ID: name + "-1", Agent: name, Database: "memories", RemoteAddr: "test", BackendPID: c.server.PID(), Server: server,
		OnRevoke: func(err *sqlstate.Error) { c.revoked <- err },
	})
	if err == nil {
		w.t.Cleanup(c.Close)
	}
	return c, err
}

func (w *world) client(name string) *client {
	w.t.Helper()
	c, err := w.open(name)
	if err != nil {
		w.t.Fatal(err)
	}
	c.seal()
	return c
}

func (c *client) seal() verdict.Seal {
	c.w.t.Helper()
	s, err := c.Seal(c.w.t.Context(), verdict.Backend{PID: c.server.PID()})
	if err != nil {
		c.w.t.Fatal(err)
	}
	r := c.server.ExecParams(c.w.t.Context(), "SELECT pg_catalog.set_config($1, $2, false)",
		[][]byte{[]byte(s.Setting), []byte(s.Value)}, nil, nil, nil).Read()
	if r.Err != nil {
		c.w.t.Fatal(r.Err)
	}
	c.sealed = s
	return s
}

// run executes a verdict's text, and returns the first column of the result.
func (c *client) run(v *verdict.Verdict) ([]string, error) {
	c.w.t.Helper()
	ticket := c.Record(v)
	if err := ticket.Release(); err != nil {
		return nil, err
	}
	if !v.IsAllowed() {
		ticket.RecordOutcome(verdict.Outcome{Code: v.Refusal.Code})
		return nil, v.Refusal
	}
	results, err := c.server.Exec(c.w.t.Context(), v.Text).ReadAll()
	var values []string
	for _, r := range results {
		for _, row := range r.Rows {
			values = append(values, string(row[0]))
		}
	}
	ticket.RecordOutcome(verdict.Outcome{Rows: int64(len(values)), Code: sqlstate.SuccessfulCompletion})
	return values, err
}

func (c *client) query(sql string) ([]string, error) {
	c.w.t.Helper()
	v := c.Decide(c.w.t.Context(), sql, verdict.Simple)
	if c.sealed.IsStale != nil && c.sealed.IsStale() {
		c.seal()
	}
	return c.run(v)
}

func (c *client) want(sql string, want ...string) {
	c.w.t.Helper()
	got, err := c.query(sql)
	if err != nil || !slices.Equal(got, want) {
		c.w.t.Errorf("%s: %v, %v; want %v", sql, got, err, want)
	}
}

func (c *client) refused(sql string, code sqlstate.Code) *sqlstate.Error {
	c.w.t.Helper()
	_, err := c.query(sql)
	var e *sqlstate.Error
	if !errors.As(err, &e) || e.Code != code {
		c.w.t.Errorf("%s: %v, want SQLSTATE %s", sql, err, code)
		return &sqlstate.Error{}
	}
	if e.Hint == "" {
		c.w.t.Errorf("%s: %v has no hint", sql, err)
	}
	return e
}

// eventually waits until f returns true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(tier.Patience); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

const titles = "SELECT title FROM memories ORDER BY id"

func TestAgentSeesItsRows(t *testing.T) {
	w := start(t, nil)
	w.client("caregiver").want(titles, "lake", "sea")
	w.client("other").want(titles, "moor")

	// A session sees a change of consent at its next statement.
	c := w.client("caregiver")
	w.exec("UPDATE people SET consent_status = 'granted' WHERE id = 2")
	c.want(titles, "lake", "hill", "sea")
	w.exec("UPDATE people SET consent_status = 'revoked'")
	c.want(titles, "sea")
}

func TestUnsealedSessionSeesNothing(t *testing.T) {
	w := start(t, nil)
	c, err := w.open("caregiver")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.query(titles); err != nil || len(got) != 0 {
		t.Errorf("without a seal: %v, %v", got, err)
	}
}

func TestRefusals(t *testing.T) {
	w := start(t, nil)
	c := w.client("caregiver")
	for _, sql := range []string{"SELECT * FROM memory_participants", "DROP TABLE memories", "SELECT pg_sleep(1)", "SELEC 1", "SELECT '\x00'"} {
		v := c.Decide(t.Context(), sql, verdict.Simple)
		if v.IsAllowed() || v.Text != "" {
			t.Errorf("%q is allowed", sql)
			continue
		}
		if v.Refusal.Code == "" || v.Position(1) != 0 && v.Position(1) < 0 {
			t.Errorf("%q: %v", sql, v.Refusal)
		}
	}
}

// A position in an error of PostgreSQL is translated to the client's text, which has no signature.
func TestPosition(t *testing.T) {
	w := start(t, nil)
	c := w.client("caregiver")
	const sql = "SELECT title FROM memories WHERE title < now() - title"
	v := c.Decide(t.Context(), sql, verdict.Simple)
	if !v.IsAllowed() {
		t.Skipf("refused before the server could: %v", v.Refusal)
	}
	_, err := c.run(v)
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		t.Fatalf("the server answered %v", err)
	}
	if at := v.Position(int(pg.Position)); at < 34 || at > len(sql) {
		t.Errorf("position %d in the text sent leads to %d in the original", pg.Position, at)
	}
	for at := range len(v.Text) + 1 {
		if p := v.Position(at); p < 0 || p > len(sql)+1 {
			t.Errorf("position %d leads to %d", at, p)
		}
	}
}

// records returns the records of a kind, after the audit has been closed.
func (w *world) records(kind string) []map[string]any {
	w.t.Helper()
	w.Enforcer.Close()
	if err := w.cfg.Audit.Close(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	var found []map[string]any
	if _, err := audit.Walk(w.audit, func(r audit.Record) error {
		var m map[string]any
		if r.Kind == kind {
			found = append(found, m)
			return json.Unmarshal(r.Line, &found[len(found)-1])
		}
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
	return found
}

func TestRecords(t *testing.T) {
	w := start(t, nil)
	c := w.client("caregiver")
	const secret = "marker-in-the-text"
	c.want("SELECT title FROM memories WHERE title <> '"+secret+"' AND id < 2", "lake")
	_, _ = c.query("SELECT '" + secret + "' FROM memory_participants")
	c.Close()

	found := w.records("decision")
	if len(found) != 2 {
		t.Fatalf("%d decisions, want 2", len(found))
	}
	first, second := found[0], found[1]
	for k, want := range map[string]any{
		"session": "caregiver-1", "agent": "caregiver", "database": "memories", "protocol": "simple", "tag": "SELECT",
		"verdict": "allow", "path": "rls",
	} {
		if first[k] != want {
			t.Errorf("%s is %v, want %v", k, first[k], want)
		}
	}
	if behalf := fmt.Sprint(first["on_behalf_of"]); !strings.HasPrefix(behalf, "ref:") ||
		fmt.Sprint(first["attributes"]) != "map[user:"+behalf+"]" || first["accessed_by"] != "caregiver" ||
		!strings.Contains(fmt.Sprint(first["tables"]), "public.memories") || first["policy"] == "" || first["catalog"] == "" {
		t.Errorf("decision %v", first)
	}
	if second["verdict"] != "deny" || second["sqlstate"] != "42501" || second["reason"] != "relation" {
		t.Errorf("decision %v", second)
	}
	raw, err := os.ReadFile(filepath.Join(w.audit, "audit-000001.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, forbidden := range []string{secret, "lake", "SELECT title", ann} {
		if bytes.Contains(raw, []byte(forbidden)) || strings.Contains(w.log.String(), forbidden) {
			t.Errorf("%q is in the audit or the log", forbidden)
		}
	}
	if strings.Contains(w.log.String(), ann) {
		t.Error("an attribute's value is in the log")
	}
}

func TestAgentAttributesAreChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		attributes map[string]string
		log        string
	}{
		"missing":    {nil, "attribute user is missing"},
		"ill-typed":  {map[string]string{"user": "ann"}, "attribute user is not a uuid"},
		"separator":  {map[string]string{"user": ann + "|tenant=2"}, "attribute user"},
		"undeclared": {map[string]string{"user": ann, "tenant": "2"}, "attribute tenant is not one that the policy declares"},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, func(w *world) {
				w.cfg.Agents = []Agent{{Name: "wrong", Database: "memories", Credential: &scram.StoredCredentials{}, Attributes: tc.attributes}}
			})
			_, err := w.open("wrong")
			var e *sqlstate.Error
			if !errors.As(err, &e) || e.Code != sqlstate.InvalidAuthorization || e.Hint == "" {
				t.Errorf("login: %v, want 28000 with a hint", err)
			}
			if log := w.log.String(); !strings.Contains(log, tc.log) || !strings.Contains(log, "wrong") {
				t.Errorf("the log does not say what is wrong: %s", log)
			}
			if e != nil && strings.Contains(e.Message+e.Hint, "user") {
				t.Errorf("the client is told about attributes: %v", e)
			}
		})
	}
}

func TestUnknownAgent(t *testing.T) {
	w := start(t, func(w *world) {
		w.cfg.Agents = append(w.cfg.Agents, Agent{Name: "disabled", Database: "memories", Attributes: map[string]string{"user": ann}})
	})
	for _, who := range [][2]string{{"nobody", "memories"}, {"caregiver", "postgres"}, {"caregiver", ""}, {"disabled", "memories"}, {"", ""}} {
		if _, ok := w.Agent(who[0], who[1]); ok {
			t.Errorf("%q is an agent of %q", who[0], who[1])
		}
	}
}

func TestDisabledAgentLosesItsSessions(t *testing.T) {
	tier.All(t)
	for name, change := range map[string]func(*Agent){
		"removed":            func(a *Agent) { a.Name = "somebody else" },
		"no credential":      func(a *Agent) { a.Credential = nil },
		"other attributes":   func(a *Agent) { a.Attributes = map[string]string{"user": bob} },
		"attribute added":    func(a *Agent) { a.Attributes = map[string]string{"user": ann, "x": "y"} },
		"another database":   func(a *Agent) { a.Database = "elsewhere" },
		"nothing of its own": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, nil)
			c := w.client("caregiver")
			before := c.Record(c.Decide(t.Context(), titles, verdict.Simple))
			a := agent("caregiver", ann)
			if change != nil {
				change(&a)
			}
			w.SetAgents([]Agent{a, agent("other", ann)})
			if change == nil {
				c.want(titles, "lake", "sea")
				return
			}
			select {
			case err := <-c.revoked:
				if err.Code != sqlstate.AdminShutdown {
					t.Errorf("ended with %v", err)
				}
			default:
				t.Error("the session was not ended")
			}
			if before.Release() == nil {
				t.Error("a decision made before was still released")
			}
			c.refused(titles, sqlstate.AdminShutdown)
			if _, err := c.Seal(t.Context(), verdict.Backend{PID: 1}); err == nil {
				t.Error("an ended session was sealed")
			}
		})
	}
}

// The enforcer compares the policy installed in the database with its own, at the start and at each refresh.
func TestOtherPolicyInstalled(t *testing.T) {
	w := prepare(t, plainRules, nil)
	w.write(wider)
	log, err := audit.Open(audit.Config{Mode: audit.ModeOff})
	if err != nil {
		t.Fatal(err)
	}
	w.cfg.Audit = log
	if e, err := New(t.Context(), w.cfg); err == nil || !strings.Contains(err.Error(), "pgconsent migrate") {
		if e != nil {
			e.Close()
		}
		t.Errorf("New: %v, want it to name pgconsent migrate", err)
	}

	w = start(t, nil)
	c := w.client("caregiver")
	w.exec("UPDATE pgconsent.installed SET hash = 'x' || hash")
	eventually(t, "refused", func() bool { return w.Ready() != nil })
	if e := c.refused(titles, sqlstate.CannotConnectNow); e.Reason != sqlstate.ReasonStale {
		t.Errorf("reason %s", e.Reason)
	}
	w.exec("UPDATE pgconsent.installed SET hash = substr(hash, 2)")
	eventually(t, "served again", func() bool { return w.Ready() == nil })
	c.want(titles, "lake", "sea")
}

func TestCheckRefuses(t *testing.T) {
	var unsafe syncFlag
	w := start(t, func(w *world) {
		w.cfg.Check = func(context.Context, *pgx.Conn, Target) error {
			if unsafe.get() {
				return errors.New("rls_off")
			}
			return nil
		}
	})
	c := w.client("caregiver")
	unsafe.set(true)
	w.exec("CREATE INDEX another ON public.memories (id)") // the catalog changes, so that Check is called at once
	if err := w.databases["memories"].refresh(t.Context()); err == nil {
		t.Error("what Check refuses is taken over until it is asked again")
	}
	eventually(t, "refused", func() bool { return w.Ready() != nil })
	c.refused(titles, sqlstate.CannotConnectNow)
	unsafe.set(false)
	eventually(t, "served again", func() bool { return w.Ready() == nil })
	c.want(titles, "lake", "sea")
}

// If Check gives up waiting for a lock that somebody's DDL holds, agents are served as before, provided that the
// database reports DDL. If it does not report DDL, agents are refused, since what Check would have found is not known.
func TestCheckGivesUpOnLocks(t *testing.T) {
	var locked syncFlag
	w := start(t, func(w *world) {
		w.cfg.ProbeInterval, w.cfg.StaleAfter = time.Hour, time.Hour
		w.cfg.Check = func(context.Context, *pgx.Conn, Target) error {
			if locked.get() {
				return fmt.Errorf("a probe: %w", &pgconn.PgError{Code: "55P03", Message: "canceling statement due to lock timeout"})
			}
			return nil
		}
	})
	c := w.client("caregiver")
	locked.set(true)
	d := w.db0(t)
	d.mu.Lock()
	d.checkedAt = time.Time{}
	d.mu.Unlock()
	if err := d.refresh(t.Context()); !errors.Is(err, errCatalogsChanging) {
		t.Errorf("a look whose check met a lock: %v", err)
	}
	if err := w.Ready(); err != nil {
		t.Error(err)
	}
	c.want(titles, "lake", "sea")

	w.exec("DROP EVENT TRIGGER zz_pgconsent_ddl; DROP EVENT TRIGGER zz_pgconsent_drop")
	locked.set(false)
	if err := d.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	locked.set(true)
	d.mu.Lock()
	d.checkedAt = time.Time{}
	d.mu.Unlock()
	if err := d.refresh(t.Context()); err == nil || errors.Is(err, errCatalogsChanging) || w.Ready() == nil {
		t.Errorf("a check met a lock, and nothing tells of DDL: %v, %v", err, w.Ready())
	}
}

// Reading the catalogs does not block the owner's DDL: if it has to wait for a lock, it gives up, and reads again
// later.
func TestReadingCatalogsYieldsToDDL(t *testing.T) {
	tier.All(t)
	w := start(t, func(w *world) { w.cfg.ProbeInterval, w.cfg.StaleAfter = time.Hour, time.Hour })
	w.db0(t).stopListening(t)
	w.exec("CREATE TABLE public.held (id int); CREATE VIEW public.over_held AS SELECT id FROM public.held")
	owner := w.db.Connect(t, "postgres")
	if _, err := owner.Exec(t.Context(), "BEGIN; LOCK TABLE public.held IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	var pg *pgconn.PgError
	if err := w.db0(t).refresh(t.Context()); !errors.As(err, &pg) || pg.Code != "55P03" {
		t.Errorf("reading the catalogs while the owner has a lock: %v, want lock_not_available", err)
	}
	if _, err := owner.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := w.db0(t).refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.client("caregiver").want(titles, "lake", "sea")
}

type syncFlag struct {
	mu sync.Mutex
	b  bool
}

func (f *syncFlag) set(b bool) { f.mu.Lock(); f.b = b; f.mu.Unlock() }
func (f *syncFlag) get() bool  { f.mu.Lock(); defer f.mu.Unlock(); return f.b }

// A policy that is not installed in the database waits, and becomes active once it is migrated. Meanwhile sessions go
// on.
func TestReloadWaitsForMigrate(t *testing.T) {
	w := start(t, nil)
	c := w.client("caregiver")
	w.write("version: 1\nnonsense: true\n")
	if err := w.Reload(); err == nil {
		t.Error("nonsense was loaded")
	}
	c.want(titles, "lake", "sea")

	w.write(wider)
	if err := w.Reload(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(w.log.String(), "policy_pending") {
		t.Error("the log does not say that the policy waits")
	}
	c.refused("SELECT person_id FROM memory_participants", sqlstate.InsufficientPrivilege)
	c.want(titles, "lake", "sea")

	prepared := c.Decide(t.Context(), titles, verdict.Extended)
	if err := install(t.Context(), w.dba, wider); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the waiting policy is in force", func() bool {
		got, err := c.query("SELECT person_id FROM memory_participants")
		return err == nil && slices.Equal(got, []string{"1"})
	})
	c.want(titles, "lake", "sea") // with the old seal
	for range 2 {
		// The text that was prepared with the old profile has the old signature, so that it must be prepared again.
		if v := c.Recheck(t.Context(), prepared); v.IsAllowed() || v.Refusal.Code != sqlstate.FeatureNotSupported ||
			v.Refusal.Reason != sqlstate.ReasonStale {
			t.Errorf("a statement of the policy before: %+v", v)
		}
		c.seal()
	}
	c.want(titles, "lake", "sea")
}

// A policy file that was written and migrated since the last refresh is read by the refresh that finds it installed.
func TestPolicyMigratedSinceTheLastProbe(t *testing.T) {
	w := start(t, func(w *world) { w.cfg.ProbeInterval, w.cfg.StaleAfter = time.Hour, time.Hour })
	w.db0(t).stopListening(t)
	c := w.client("caregiver")
	w.write(wider)
	if err := install(t.Context(), w.dba, wider); err != nil {
		t.Fatal(err)
	}
	if err := w.db0(t).refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.seal()
	c.want("SELECT person_id FROM memory_participants", "1")
	c.want(titles, "lake", "sea")
}

func TestRecheck(t *testing.T) {
	tier.All(t)
	w := start(t, nil)
	c := w.client("caregiver")
	v := c.Decide(t.Context(), titles, verdict.Extended)
	all := c.Decide(t.Context(), "SELECT * FROM memories", verdict.Extended)
	if got := c.Recheck(t.Context(), v); got != v {
		t.Error("nothing changed and the verdict is another")
	}
	catalog := v.Versions.Catalog
	w.exec("CREATE INDEX another ON public.people (name)")
	eventually(t, "a new catalog", func() bool { return c.Decide(t.Context(), titles, verdict.Extended).Versions.Catalog != catalog })
	if got := c.Recheck(t.Context(), v); !got.IsAllowed() || got.Text != v.Text || got == v {
		t.Errorf("a change elsewhere: %+v", got.Refusal)
	}

	// A catalog row that is written anew without a change invalidates no verdict.
	v = c.Decide(t.Context(), titles, verdict.Extended)
	w.exec("ALTER FUNCTION pgconsent_signed.sealed() STABLE")
	time.Sleep(100 * time.Millisecond)
	if c.Decide(t.Context(), titles, verdict.Extended) != v {
		t.Error("an unchanged catalog drops cached verdicts")
	}

	w.exec("ALTER TABLE public.memories ADD COLUMN extra text")
	eventually(t, "not served, or another catalog", func() bool {
		now := c.Decide(t.Context(), titles, verdict.Extended)
		return !now.IsAllowed() || now.Versions.Catalog != catalog
	})
	if err := install(t.Context(), w.dba, rules); err != nil {
		t.Fatal(err)
	}
	eventually(t, "served", func() bool { return w.Ready() == nil })
	// Whatever the rewriter returns now, the old text must not run with a new meaning.
	if got := c.Recheck(t.Context(), all); got.IsAllowed() && got.Text != all.Text {
		t.Error("a changed text passes for the old one")
	} else if !got.IsAllowed() && (got.Refusal.Code != sqlstate.FeatureNotSupported || got.Refusal.Message != "cached plan must not change result type") {
		t.Errorf("refused with %v", got.Refusal)
	}
}

// Check examines a policy before it becomes active, and not again after that.
func TestReloadIsCheckedFirst(t *testing.T) {
	var before string
	var first sync.Once
	w := start(t, func(w *world) {
		w.cfg.Check = func(_ context.Context, _ *pgx.Conn, t Target) error {
			first.Do(func() { before = t.Policy.Version() })
			if t.Policy.Version() != before {
				return errors.New("unsafe under this policy")
			}
			return nil
		}
	})
	c := w.client("caregiver")
	w.write(strings.Replace(rules, "source: credential }", "source: credential }, other: { type: text, source: credential }", 1))
	if err := w.Reload(); err == nil {
		t.Error("a policy that Check refuses is in force")
	}
	if v := c.Decide(t.Context(), titles, verdict.Simple); v.Versions.Policy != before {
		t.Error("a statement was decided under it")
	}
	c.want(titles, "lake", "sea")
}

// After a key rotation, texts are not signed until the session has a seal of the new key. The rows stay the same.
func TestKeyRotation(t *testing.T) {
	w := start(t, nil)
	c := w.client("caregiver")
	signed := c.Decide(t.Context(), titles, verdict.Simple)
	if !strings.HasPrefix(signed.Text, "/*pgconsent:v1:") {
		t.Fatalf("not signed: %s", signed.Text)
	}
	w.exec("SELECT pgconsent.make_key()")
	eventually(t, "the new key", func() bool { return c.Decide(t.Context(), titles, verdict.Simple).Text != signed.Text })
	if v := c.Decide(t.Context(), titles, verdict.Simple); strings.HasPrefix(v.Text, "/*pgconsent") {
		t.Error("signed with a key that the session's seal is not of")
	}
	c.want(titles, "lake", "sea")
	c.seal()
	if v := c.Decide(t.Context(), titles, verdict.Simple); !strings.HasPrefix(v.Text, "/*pgconsent:v1:") || v.Text == signed.Text {
		t.Errorf("after a new seal: %s", v.Text)
	}
	c.want(titles, "lake", "sea")
}

// A signature belongs to a profile, so that sessions with the same rights share the verdict and its text.
func TestVerdictsAreShared(t *testing.T) {
	w := start(t, nil)
	a, b := w.client("caregiver"), w.client("other")
	if a.Decide(t.Context(), titles, verdict.Simple) != b.Decide(t.Context(), titles, verdict.Simple) {
		t.Error("two agents of one profile do not share a verdict")
	}
	if a.Decide(t.Context(), titles, verdict.Simple) == a.Decide(t.Context(), titles, verdict.Extended) {
		t.Error("the two protocols share a verdict")
	}
}

// If a database cannot be reached for too long, its agents are refused. They are served again when it is back.
func TestDatabaseLost(t *testing.T) {
	tier.All(t)
	w := start(t, func(w *world) { w.cfg.StaleAfter = 2 * time.Second })
	c := w.client("caregiver")
	c.want(titles, "lake", "sea")
	// The limit must be set first, since the proxy would connect again before it.
	w.exec("ALTER ROLE pgconsent_control CONNECTION LIMIT 0")
	w.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'pgconsent_control'")
	t.Cleanup(func() { _, _ = w.dba.Exec(context.Background(), "ALTER ROLE pgconsent_control CONNECTION LIMIT -1") })
	c.want(titles, "lake", "sea") // the last refresh is recent enough
	eventually(t, "refused", func() bool { return w.Ready() != nil })
	if e := c.refused(titles, sqlstate.CannotConnectNow); e.Reason != sqlstate.ReasonUpstream {
		t.Errorf("reason %s", e.Reason)
	}
	if _, err := c.Seal(t.Context(), verdict.Backend{}); err == nil {
		t.Error("sealed while the state is unknown")
	}
	w.exec("ALTER ROLE pgconsent_control CONNECTION LIMIT -1")
	eventually(t, "served again", func() bool { return w.Ready() == nil })
	c.want(titles, "lake", "sea")
}

// If the database is not running when the proxy starts, agents are refused until it is.
func TestStartWithoutDatabase(t *testing.T) {
	link := filepath.Join(t.TempDir(), "socket")
	w := start(t, func(w *world) {
		w.cfg.Databases[0].ControlConnection = fmt.Sprintf("host=%s port=%d user=pgconsent_control dbname=%s", link, w.db.Port, w.db.Name)
	})
	if w.Ready() == nil {
		t.Error("ready without a database")
	}
	access, ok := w.Agent("caregiver", "memories")
	if !ok {
		t.Fatal("no agent")
	}
	_, err := access.OpenSession(t.Context(), SessionInfo{ID: "s", Agent: "caregiver", Database: "memories"})
	var e *sqlstate.Error
	if !errors.As(err, &e) || e.Code != sqlstate.CannotConnectNow {
		t.Errorf("Open: %v", err)
	}
	if err := os.Symlink(w.db.SocketDir, link); err != nil {
		t.Fatal(err)
	}
	eventually(t, "served", func() bool { return w.Ready() == nil })
	w.client("caregiver").want(titles, "lake", "sea")
}

func TestNewRefuses(t *testing.T) {
	tier.All(t)
	log, err := audit.Open(audit.Config{Mode: audit.ModeOff})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no audit":       {func(c *Config) { c.Audit = nil }, "audit"},
		"no database":    {func(c *Config) { c.Databases = nil }, "no database"},
		"a name twice":   {func(c *Config) { c.Databases = append(c.Databases, c.Databases[0]) }, "twice"},
		"no policy":      {func(c *Config) { c.Databases[0].PolicyPath = "/nowhere" }, "nowhere"},
		"bad connection": {func(c *Config) { c.Databases[0].ControlConnection = "port=x" }, "control connection"},
		"no such database": {func(c *Config) {
			c.Databases[0].ControlConnection = strings.Replace(c.Databases[0].ControlConnection, "/test", "/nosuch_test", 1) + "&dbname=nosuch"
		}, "nosuch"},
		"wrong role": {func(c *Config) {
			c.Databases[0].ControlConnection = strings.Replace(c.Databases[0].ControlConnection, "pgconsent_control", "pgconsent_agent", 1)
		}, "permission denied"},
		"unsafe": {func(c *Config) {
			c.Check = func(context.Context, *pgx.Conn, Target) error { return errors.New("the wall is down") }
		}, "the wall is down"},
	} {
		t.Run(name, func(t *testing.T) {
			w := prepare(t, plainRules, nil)
			w.cfg.Audit = log
			tc.change(&w.cfg)
			e, err := New(t.Context(), w.cfg)
			if err == nil {
				e.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("New: %v, want %q", err, tc.want)
			}
		})
	}
}

// The times in a seal are by the clock of the database.
func TestSealUsesTheDatabasesClock(t *testing.T) {
	w := start(t, func(w *world) { w.cfg.ProbeInterval = time.Hour })
	c := w.client("caregiver")
	d := w.databases["memories"]
	d.stopListening(t)
	v := *d.servingState.Load()
	v.clockOffset += time.Hour
	d.servingState.Store(&v)
	s, err := c.Seal(t.Context(), verdict.Backend{PID: 7})
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Split(s.Value, "|")
	if fields[3] != "7" {
		t.Errorf("pid %s", fields[3])
	}
	expires, err := strconv.ParseInt(fields[4], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	ahead := time.Until(time.Unix(expires, 0))
	if ahead < time.Hour || ahead > time.Hour+2*seal.SealLifetime {
		t.Errorf("expires %v from now, want an hour and %v", ahead, seal.SealLifetime)
	}
	if renew := time.Until(s.RenewAfter); renew <= 0 || renew >= seal.SealLifetime {
		t.Errorf("renewed %v from now, want within %v", renew, seal.SealLifetime)
	}
}

// TestSealsAreSharedByEqualSessions: a session may use a seal that was made for another session with the same
// attributes, but no other seal.
func TestSealsAreSharedByEqualSessions(t *testing.T) {
	w := start(t, func(*world) {})
	first, second := w.client("caregiver"), w.client("caregiver")
	s := first.sealed
	if !second.Decider.(verdict.SealSharer).CanShareSeal(s) {
		t.Error("a session of the same agent does not take the seal")
	}
	if v := second.Decide(t.Context(), "SELECT title FROM memories", verdict.Simple); !v.IsAllowed() {
		t.Error(v.Refusal)
	}
	for name, attributes := range map[string]map[string]string{
		"another value": {"user": "22222222-2222-4222-8222-222222222222"}, "none": {},
		"one more": {"user": first.Decider.(*session).attributes["user"], "more": "x"},
	} {
		other := second.Decider.(*session)
		was := other.attributes
		other.attributes = attributes
		if other.CanShareSeal(s) {
			t.Errorf("%s: the seal was taken", name)
		}
		other.attributes = was
	}
	if second.Decider.(verdict.SealSharer).CanShareSeal(verdict.Seal{}) {
		t.Error("a seal of nobody was taken")
	}
}

func TestCacheIsBounded(t *testing.T) {
	tier.All(t)
	const limit = 128 << 10
	w := start(t, func(w *world) { w.cfg.CacheBytes = limit })
	var group sync.WaitGroup
	for i := range 4 {
		c := w.client("caregiver")
		group.Go(func() {
			for j := range 100 {
				v := c.Decide(t.Context(), fmt.Sprintf("SELECT title, %d FROM memories WHERE id = %d", j, i*j), verdict.Simple)
				if !v.IsAllowed() {
					t.Error(v.Refusal)
					return
				}
				_ = c.Decide(t.Context(), fmt.Sprintf("SELECT %d FROM nowhere", j), verdict.Simple)
			}
		})
	}
	group.Wait()
	w.verdictCache.verdicts.CleanUp()
	entries, size := w.verdictCache.size()
	if size > limit || entries == 0 {
		t.Errorf("%d entries of %d bytes, the limit is %d", entries, size, limit)
	}
}

// If a statement cannot be recorded, it is refused.
func TestBrokenAuditRefuses(t *testing.T) {
	w := start(t, nil)
	c := w.client("caregiver")
	if err := os.Remove(filepath.Join(w.audit, "audit-000001.jsonl")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c.refused(titles, sqlstate.IOError)
	}
	if w.Ready() == nil {
		t.Error("ready without an audit")
	}
	if _, err := w.open("other"); err == nil {
		t.Error("a session began without a record")
	}
}

// If the rewriter panics, the statement is refused.
func TestPanicRefuses(t *testing.T) {
	w := start(t, nil)
	c := w.client("caregiver")
	s := c.Decider.(*session)
	broken := *s.db.servingState.Load().state
	broken.activeRewriter, broken.unsignedRewriter = nil, nil
	v := s.rewriteText(&broken, titles, verdict.Simple, true)
	if v.IsAllowed() || v.Refusal.Code != sqlstate.InternalError {
		t.Errorf("verdict %+v", v)
	}
	if !strings.Contains(w.log.String(), "defect") || strings.Contains(w.log.String(), "FROM memories") {
		t.Errorf("log: %s", w.log.String())
	}
}

// A verdict that another session's Decide has not returned is never released.
func TestVerdictsOfOthersAreNotReleased(t *testing.T) {
	w := start(t, nil)
	c := w.client("caregiver")
	if c.Record(&verdict.Verdict{Text: titles}).Release() == nil {
		t.Error("released")
	}
}

func TestSessionsAreCounted(t *testing.T) {
	w := start(t, nil)
	c := w.client("caregiver")
	if n := w.Sessions(); n != 1 {
		t.Errorf("%d sessions, want 1", n)
	}
	c.Close()
	if n := w.Sessions(); n != 0 {
		t.Errorf("%d sessions, want 0", n)
	}
}

// BenchmarkRecord measures what an execution costs besides writing its records.
func BenchmarkRecord(b *testing.B) {
	w := start(b, func(w *world) { w.cfg.Audit, w.cfg.ProbeInterval = unwritten(b), time.Second })
	c := w.client("caregiver")
	v := c.Decide(b.Context(), titles, verdict.Extended)
	b.ReportAllocs()
	for b.Loop() {
		t := c.Record(v)
		if err := t.Release(); err != nil {
			b.Fatal(err)
		}
		t.ResultBound()
		t.RecordOutcome(verdict.Outcome{Rows: 1, Bytes: 30, Code: "00000"})
	}
}

// unwritten returns an audit log that writes nothing.
func unwritten(b *testing.B) *audit.Log {
	l, err := audit.Open(audit.Config{Mode: audit.ModeOff})
	if err != nil {
		b.Fatal(err)
	}
	return l
}

func BenchmarkDecide(b *testing.B) {
	w := start(b, func(w *world) { w.cfg.ProbeInterval = time.Second })
	c := w.client("caregiver")
	b.Run("hit", func(b *testing.B) {
		for b.Loop() {
			c.Decide(b.Context(), titles, verdict.Simple)
		}
	})
	b.Run("prepared", func(b *testing.B) { // cost of an execution, without its records
		v := c.Decide(b.Context(), titles, verdict.Extended)
		for b.Loop() {
			c.Recheck(b.Context(), v)
		}
	})
	b.Run("miss", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			c.Decide(b.Context(), fmt.Sprintf("SELECT title FROM memories WHERE id = %d", i), verdict.Simple)
		}
	})
	b.Run("refused", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			c.Decide(b.Context(), fmt.Sprintf("SELECT %d FROM nowhere", i), verdict.Simple)
		}
	})
}
