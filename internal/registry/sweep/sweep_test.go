package sweep

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) {
	if os.Getenv("SWEEP_DSN") != "" { // this is the child process of TestKilledSweepIsResumed
		os.Exit(m.Run())
	}
	pgtest.Main(m)
}

const schema = `
CREATE TABLE people (user_id text PRIMARY KEY, name text);
CREATE TABLE interactions (
  id bigserial PRIMARY KEY, user_id text NOT NULL, at timestamptz,
  channel text, account text, style text, errors text, messages int, anonymous boolean NOT NULL DEFAULT false
);
CREATE INDEX ON interactions (user_id);
CREATE TABLE summaries (id bigserial PRIMARY KEY, of bigint, body text);
`

const rules = `
version: 1
attributes: { user: { type: text, source: credential } }
tables:
  people:
    rows: [ consent: { subject: user_id, registry: {} } ]
    lifecycle: { subject: user_id }
  interactions:
    rows: [ consent: { subject: user_id, registry: { since: at, decay: { less_than: 90 days } } } ]
    consent: { subject: user_id, registry: { since: at } }
    columns:
      id: allow
      user_id: allow
      at: allow
      channel: allow
      account: { category: ESSENTIAL, until: { decay: 60 days } }
      style: { category: BEHAVIORAL, until: { decay: 30 days, groups: 60 days } }
      errors: { category: IMPROVEMENT, until: { decay: 30 days, groups: 60 days } }
      messages: allow
      anonymous: allow
    aggregate:
      subject: user_id
      rows: [ any: [ consent: { subject: user_id, registry: { stream: ANONYMOUS, since: at } }, status: { column: anonymous, is: "true" } ] ]
      minimum: 2
      dimensions: { channel: allow }
      measures: { messages: { between: [0, 100] } }
    lifecycle:
      subject: user_id
      at: at
      columns:
        account: { becomes: null, after: 60 days }
        style: { becomes: null, after: 60 days }
        errors: { becomes: null, after: 60 days }
        at: { becomes: { generalise: month } }
        user_id: { becomes: hash }
        anonymous: { becomes: { value: true } }
  summaries: { rows: [ derived: { from: { interactions: { id: of } } } ] }
`

// site is a database with the policy, its registry, and the sweeper.
type site struct {
	*Sweeper
	db   *pgtest.DB
	conn *pgx.Conn // a connection of the owner
	key  string    // the path of the registry's key file
	t    testing.TB
}

func build(t testing.TB, s consent.Settings) *site {
	t.Helper()
	return buildWith(t, s, schema, rules)
}

func buildWith(t testing.TB, s consent.Settings, schema, rules string) *site {
	t.Helper()
	db := pgtest.Database(t)
	conn := db.Connect(t, "postgres")
	if _, err := conn.Exec(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	harness.Migrate(t, harness.Database{Name: "app", DB: db, Policy: rules, SearchPath: []string{"public"}}, harness.Auto)
	dir := t.TempDir()
	key := filepath.Join(dir, "consent.key")
	if _, err := registry.MakeKey(key); err != nil {
		t.Fatal(err)
	}
	keys, err := registry.LoadKeys(key)
	if err != nil {
		t.Fatal(err)
	}
	connect, err := pgx.ParseConfig(db.DSN("pgconsent_control", "role-password"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := registry.Open(registry.Config{Connect: connect, Database: "app", Keys: keys, Anchor: filepath.Join(dir, "consent.anchor"), Settings: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return &site{Sweeper: &Sweeper{Registry: r}, db: db, conn: conn, key: key, t: t}
}

func (s *site) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.conn.Exec(context.Background(), sql, args...); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

// ago sets the registry's clock so many days back; a negative number sets it forward.
func (s *site) ago(days int) {
	s.t.Helper()
	body := "pg_catalog.clock_timestamp()"
	if days != 0 {
		body += fmt.Sprintf(" - interval '%d hours'", 24*days)
	}
	s.exec("CREATE OR REPLACE FUNCTION pgconsent.consent_now() RETURNS pg_catalog.timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE RETURN " + body)
}

func (s *site) do(c consent.Command) {
	s.t.Helper()
	if c.Caller.Role == "" {
		c.Caller = consent.Party{Role: consent.RoleSubject, ID: c.Subject}
	}
	if _, err := s.Registry.Execute(context.Background(), c); err != nil {
		s.t.Fatalf("%s of %s: %v", c.Action, c.Subject, err)
	}
}

func (s *site) temporary(subjectID string) {
	s.t.Helper()
	s.do(consent.Command{Action: consent.ActionInteract, Subject: subjectID})
}

func (s *site) partner(subjectID string) {
	s.t.Helper()
	s.do(consent.Command{Action: consent.ActionUpgrade, Subject: subjectID})
	s.do(consent.Command{Action: consent.ActionDecide, Subject: subjectID, Decision: consent.DecisionApprove,
		Caller: consent.Party{Role: consent.RoleAgent, ID: "chat"}})
}

func (s *site) degrade(subjectID string, stream consent.Stream) {
	s.t.Helper()
	s.do(consent.Command{Action: consent.ActionDegrade, Subject: subjectID, Stream: stream})
}

// row inserts an interaction that is so many days old, and a summary of it.
func (s *site) row(subjectID string, days int) {
	s.t.Helper()
	s.exec(`WITH i AS (INSERT INTO interactions (user_id, at, channel, account, style, errors, messages)
		VALUES ($1, now() - $2 * interval '24 hours', 'api', 'account', 'style', 'errors', 10) RETURNING id, user_id)
		INSERT INTO summaries (of, body) SELECT id, user_id FROM i`, subjectID, days)
}

// verify fails the test if the registry does not verify, apart from the test's own change of the clock.
func (s *site) verify() {
	s.t.Helper()
	report, err := s.Registry.Verify(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range report.Findings {
		if !strings.Contains(f.String(), "migrate") {
			s.t.Error(f)
		}
	}
}

func (s *site) sweep() Report {
	s.t.Helper()
	out, err := s.Run(context.Background(), false)
	if err != nil || len(out.Failures) > 0 || out.SweepRunning {
		s.t.Fatalf("%+v %v", out, err)
	}
	return out
}

// rows returns the rows of the table: the subject, and the columns that are not yet removed.
func (s *site) rows() string { return s.query(leftRows) }

const leftRows = `SELECT CASE WHEN user_id LIKE 'anonymous-%' THEN 'nobody' ELSE user_id END || ':' ||
	CASE WHEN account IS NOT NULL THEN 'a' ELSE '' END || CASE WHEN style IS NOT NULL THEN 's' ELSE '' END || CASE WHEN errors IS NOT NULL THEN 'e' ELSE '' END ||
	CASE WHEN anonymous THEN ' anonymous' ELSE '' END FROM interactions ORDER BY 1`

func (s *site) query(sql string) string {
	s.t.Helper()
	rows, err := s.conn.Query(context.Background(), sql)
	if err != nil {
		s.t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Join(list, ", ")
}

func (s *site) want(want string) {
	s.t.Helper()
	if got := s.rows(); got != want {
		s.t.Errorf("rows: %s\nwant: %s", got, want)
	}
}

// TEMPORARY: "Full deletion after expiry"; an interaction afterwards brings nothing back.
// seeds/001:23-28, 160.
func TestExpiry(t *testing.T) {
	s := build(t, consent.Settings{})
	s.ago(20)
	for _, subjectID := range []string{"old", "back", "renewed"} {
		s.temporary(subjectID)
		s.exec("INSERT INTO people VALUES ($1, 'name')", subjectID)
		s.row(subjectID, 19)
	}
	s.ago(10)
	s.temporary("renewed")
	s.row("renewed", 1)
	s.ago(0)
	s.temporary("back")
	s.row("back", 0)
	s.temporary("new")
	s.row("new", 0)
	before, records := s.rows(), s.query("SELECT count(*)::text FROM pgconsent.consent_record")
	dryRun, err := s.Run(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if s.rows() != before || s.query("SELECT count(*)::text FROM pgconsent.consent_record") != records {
		t.Error("a dry run has changed something")
	}
	if want := []Table{{"public.interactions", 2, 2, 0}, {"public.people", 1, 1, 0},
		{"public.summaries", 2, 2, 0}}; !slices.Equal(dryRun.Tables, want) || dryRun.RecordedEvents["expired"] != 1 {
		t.Errorf("a dry run says %+v", dryRun)
	}
	if out := s.sweep(); !slices.Equal(out.Tables, dryRun.Tables) || out.RecordedEvents["expired"] != 1 {
		t.Errorf("done: %+v, and the dry run said %+v", out, dryRun)
	}
	s.want("back:ase, new:ase, renewed:ase, renewed:ase")
	if got := s.query("SELECT user_id FROM people ORDER BY 1"); got != "back, renewed" {
		t.Error(got)
	}
	if got := s.query("SELECT body FROM summaries ORDER BY 1"); got != "back, new, renewed, renewed" {
		t.Errorf("summaries of %s", got)
	}
	if out := s.sweep(); len(out.Tables) != 0 || len(out.RecordedEvents) != 0 {
		t.Errorf("the second time: %+v", out)
	}
	history, err := s.Registry.History(t.Context(), "old")
	if err != nil || history[len(history)-1].Event != consent.EventDeleted ||
		history[len(history)-2].Event != consent.EventExpired ||
		history[len(history)-2].RecordedBy.Role != consent.RoleSystem {
		t.Errorf("%+v %v", history, err)
	}
	s.verify()
}

// A withdrawal or an erasure deletes the subject's rows at the next sweep.
// seeds/001:116-119, 170-174, 201, 202.
func TestWithdrawalAndErasure(t *testing.T) {
	s := build(t, consent.Settings{})
	for _, subjectID := range []string{"withdrawn", "revoked", "erased", "again", "stays"} {
		s.temporary(subjectID)
		s.exec("INSERT INTO people VALUES ($1, 'name')", subjectID)
		s.row(subjectID, 0)
	}
	s.row("unknown", 0)
	s.do(consent.Command{Action: consent.ActionRevoke, Subject: "withdrawn"})
	s.do(consent.Command{Action: consent.ActionRevoke, Subject: "revoked", Caller: consent.Party{Role: consent.RoleController, ID: "us"}})
	s.do(consent.Command{Action: consent.ActionErase, Subject: "erased"})
	s.do(consent.Command{Action: consent.ActionErase, Subject: "again"})
	s.temporary("again")
	s.exec("INSERT INTO interactions (user_id, at, account) VALUES ('again', clock_timestamp(), 'a')")
	s.sweep()
	s.want("again:a, stays:ase, unknown:ase")
	if got := s.query("SELECT user_id FROM people ORDER BY 1"); got != "again, stays" {
		t.Error(got)
	}
	// No table of pgconsent contains the erased name any more.
	for _, table := range strings.Split(s.query(
		"SELECT c.oid::regclass::text FROM pg_class c WHERE c.relnamespace = 'pgconsent'::regnamespace AND c.relkind = 'r'"), ", ") {
		if got := s.query("SELECT t::text FROM " + table + " AS t WHERE t::text LIKE '%erased,%' AND t::text NOT LIKE '%,erased,%'"); got != "" {
			t.Errorf("%s: %s", table, got)
		}
	}
	if got := s.query("SELECT subject FROM pgconsent.sweep_erased"); got != "" {
		t.Errorf("still noted: %s", got)
	}
}

// "90-day gradual anonymization", counted in full days.
// seeds/001:163-168.
func TestDecay(t *testing.T) {
	s := build(t, consent.Settings{})
	days := []int{200, 90, 89, 61, 60, 31, 30, 0}
	s.ago(300)
	for _, d := range days {
		s.partner(fmt.Sprintf("d%03d", d))
		s.row(fmt.Sprintf("d%03d", d), d+4)
	}
	for _, d := range days {
		s.ago(d)
		s.degrade(fmt.Sprintf("d%03d", d), consent.StreamAnonymous)
	}
	s.ago(0)
	s.sweep()
	s.want("d000:ase, d030:ase, d031:ase, d060:ase, d061:, d089:, nobody: anonymous, nobody: anonymous")
	if got := s.query("SELECT body FROM summaries ORDER BY 1"); got != "d000, d030, d031, d060, d061, d089" {
		t.Errorf("summaries of %s", got) // summaries of fully anonymized rows are deleted
	}
	// New rows of a subject in the stream ANONYMOUS are made anonymous at the next sweep.
	s.row("d000", 0)
	s.sweep()
	s.want("d000:ase, d030:ase, d031:ase, d060:ase, d061:, d089:, nobody: anonymous, nobody: anonymous, nobody: anonymous")
	// After they are made anonymous, two rows of one person still belong to one person, and to nobody else.
	s.row("d000", 0)
	s.row("d030", 0)
	s.sweep()
	if got := s.query("SELECT count(DISTINCT user_id)::text FROM interactions WHERE anonymous"); got != "4" {
		t.Errorf("%s people, want 4", got)
	}
	if out := s.sweep(); len(out.Tables) != 0 {
		t.Errorf("once more: %+v", out)
	}
}

// "A new partnership stops the countdown": what was removed stays removed, and everything else remains.
// seeds/001:425.
func TestDecayStopped(t *testing.T) {
	tier.All(t)
	s := build(t, consent.Settings{})
	s.ago(100)
	for _, d := range []int{65, 10} {
		s.partner(fmt.Sprintf("d%d", d))
		s.row(fmt.Sprintf("d%d", d), d+19)
	}
	for _, d := range []int{65, 10} {
		s.ago(d + 10)
		s.degrade(fmt.Sprintf("d%d", d), consent.StreamAnonymous)
	}
	s.ago(10)
	for _, d := range []int{65, 10} {
		s.partner(fmt.Sprintf("d%d", d))
		s.row(fmt.Sprintf("d%d", d), 9)
	}
	s.ago(0)
	s.sweep()
	s.want("d10:ase, d10:ase, d65:, d65:ase")
	s.degrade("d65", consent.StreamAnonymous) // the countdown begins at 0 again
	s.sweep()
	s.want("d10:ase, d10:ase, d65:, d65:ase")
}

// "PARTNERED → TEMPORARY: Immediate": the other categories are deleted at once.
// seeds/001:81-85.
func TestToTemporary(t *testing.T) {
	s := build(t, consent.Settings{})
	s.partner("ada")
	s.row("ada", 1)
	s.degrade("ada", consent.StreamTemporary)
	s.row("ada", 0)
	s.exec("UPDATE interactions SET at = at + interval '1 minute' WHERE at > now() - interval '1 hour'")
	s.sweep()
	s.want("ada:a, ada:ase")
}

// Without ENABLE_DECAY_PROTOCOL, rows are made anonymous at once.
// seeds/001:230-233.
func TestWithoutDecay(t *testing.T) {
	tier.All(t)
	s := build(t, consent.Settings{NoDecay: true})
	s.partner("ada")
	s.row("ada", 1)
	s.degrade("ada", consent.StreamAnonymous)
	s.sweep()
	s.want("nobody: anonymous")
}

// If the subject has given another consent, to one grantee, the rows that it shows are not deleted.
func TestAnotherConsentKeepsRows(t *testing.T) {
	s := build(t, consent.Settings{})
	s.ago(20)
	s.temporary("ada")
	s.row("ada", 19)
	s.do(consent.Command{Action: consent.ActionGrant, Subject: "ada", Grantee: "vet", Categories: []string{"ESSENTIAL"},
		Duration: 100 * 24 * time.Hour})
	s.ago(0)
	s.sweep()
	s.want("ada:ase")
	s.do(consent.Command{Action: consent.ActionRevoke, Subject: "ada", Grantee: "vet"})
	s.sweep()
	s.want("")
}
