package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// governedWorld is the world ciris by its policy on the registry, without a record at first.
type governedWorld struct {
	*testing.T
	db       *pgtest.DB
	proxy    *harness.Proxy
	registry *registry.Registry
	super    *pgconn.PgConn
	users    []string // users who have interactions
}

const everyCategory = "{ESSENTIAL,BEHAVIORAL,IMPROVEMENT,STATISTICAL}"

func startGoverned(t *testing.T, mode harness.Mode, s consent.Settings) *governedWorld {
	t.Helper()
	w, err := world.Open("ciris")
	if err != nil {
		t.Fatal(err)
	}
	policy, err := w.File("policy_registry.yaml")
	if err != nil {
		t.Fatal(err)
	}
	db := pgtest.Template(t, "ciris", func(ctx context.Context, conn *pgx.Conn) error { return w.Load(ctx, conn, nil) })
	d := harness.Database{Name: "ciris", DB: db, Policy: string(policy), SearchPath: []string{"public"}}
	harness.Install(t, d, mode)
	g := &governedWorld{T: t, db: db, registry: openRegistry(t, db, s), super: harness.ConnectSuperuser(t, db),
		proxy: harness.Serve(t, mode, []harness.Database{d}, []harness.Agent{
			{Name: "agent", Database: "ciris", Attributes: map[string]string{"categories": everyCategory}},
			{Name: "companion", Database: "ciris", Attributes: map[string]string{"categories": "{ESSENTIAL}"}},
			{Name: "analyst", Database: "ciris", Attributes: map[string]string{"categories": "{STATISTICAL}"}},
			{Name: "idle", Database: "ciris", Attributes: map[string]string{"categories": "{}"}},
		})}
	g.users = strings.Split(oneText(g.super,
		"SELECT user_id FROM interactions WHERE user_id LIKE 'user-%' GROUP BY 1 HAVING count(*) > 10 ORDER BY 1 LIMIT 20"), "\n")
	return g
}

// openRegistry opens the registry of a database with a key and an anchor of its own.
func openRegistry(t testing.TB, db *pgtest.DB, s consent.Settings) *registry.Registry {
	t.Helper()
	dir := t.TempDir()
	if _, err := registry.MakeKey(filepath.Join(dir, "consent.key")); err != nil {
		t.Fatal(err)
	}
	keys, err := registry.LoadKeys(filepath.Join(dir, "consent.key"))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := pgx.ParseConfig(db.DSN("pgconsent_control", ""))
	if err != nil {
		t.Fatal(err)
	}
	r, err := registry.Open(registry.Config{Connect: cfg, Database: "ciris", Keys: keys, Anchor: filepath.Join(dir, "consent.anchor"), Settings: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func (g *governedWorld) do(c consent.Command) {
	g.Helper()
	if c.Caller == (consent.Party{}) {
		c.Caller = consent.Party{Role: consent.RoleSubject, ID: c.Subject}
	}
	if _, err := g.registry.Execute(context.Background(), c); err != nil {
		g.Fatalf("%s of %s: %v", c.Action, c.Subject, err)
	}
}

func (g *governedWorld) temporary(user string) {
	g.Helper()
	g.do(consent.Command{Action: consent.ActionInteract, Subject: user, Caller: consent.Party{Role: consent.RoleApplication, ID: "app"}})
}

func (g *governedWorld) partner(user string, categories ...string) {
	g.Helper()
	g.do(consent.Command{Action: consent.ActionUpgrade, Subject: user, Categories: categories, Reason: "for long"})
	g.do(consent.Command{Action: consent.ActionDecide, Subject: user, Decision: consent.DecisionApprove,
		Caller: consent.Party{Role: consent.RoleAgent, ID: "agent"}})
}

func (g *governedWorld) degrade(user string, to consent.Stream) {
	g.Helper()
	g.do(consent.Command{Action: consent.ActionDegrade, Subject: user, Stream: to})
}

// ago moves what a record says of times into the past, as the owner of the schema can.
func (g *governedWorld) ago(user string, days int, seconds int) {
	g.Helper()
	text := oneText(g.super, fmt.Sprintf(
		`UPDATE pgconsent.consent_current SET decay_from = statement_timestamp() - interval '%d hours' - interval '%d seconds' `+
			`WHERE subject = '%s' AND decay_from IS NOT NULL RETURNING 1`, days*24, seconds, user))
	if text != "1" {
		g.Fatalf("nothing decays of %s: %s", user, text)
	}
	g.Exec(`UPDATE interactions SET occurred_at = '2026-01-02' WHERE user_id = '` + user + `'`)
}

// clock moves the registry's clock.
func (g *governedWorld) clock(by string) {
	g.Helper()
	g.Exec("CREATE OR REPLACE FUNCTION pgconsent.consent_now() RETURNS pg_catalog.timestamptz LANGUAGE sql " +
		"VOLATILE PARALLEL SAFE RETURN pg_catalog.clock_timestamp() " + by)
}

// settle waits until the proxy has looked at the changed catalog.
func (g *governedWorld) settle(c *pgconn.PgConn) {
	g.Helper()
	for deadline := time.Now().Add(tier.Patience); oneText(c, "SELECT count(*) FROM users WHERE false") != "0"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			g.Fatal("the catalog does not settle")
		}
	}
}

func (g *governedWorld) Exec(sql string) { g.Helper(); harness.Exec(g.T, g.db, sql) }

func (g *governedWorld) rows(c *pgconn.PgConn, user string) string {
	return oneText(c, fmt.Sprintf(`SELECT count(*) > 0 FROM interactions AS visible_i JOIN (VALUES %s) v (id) USING (id)`, g.ids(user)))
}

// ids are the keys of a user's interactions, which agents may know.
func (g *governedWorld) ids(user string) string {
	return oneText(g.super, fmt.Sprintf(
		`SELECT string_agg('(' || id || ')', ', ') FROM (SELECT id FROM interactions WHERE user_id = '%s' ORDER BY 1 LIMIT 5) AS i`, user))
}

// shows asks which columns have values in a user's rows.
func (g *governedWorld) shows(c *pgconn.PgConn, user string) string {
	g.Helper()
	var out []string
	for _, column := range []string{"user_id", "channel_id", "communication_context", "communication_style",
		"interaction_frequency", "feature_usage", "performance_metrics", "usage_statistics", "trend_analysis"} {
		if oneText(c, fmt.Sprintf(
			`SELECT count(%s) > 0 FROM interactions AS visible_i JOIN (VALUES %s) v (id) USING (id)`, column, g.ids(user))) == "t" {
			out = append(out, column)
		}
	}
	return strings.Join(out, " ")
}

func (g *governedWorld) want(description, got, want string) {
	g.Helper()
	if got != want {
		g.Errorf("%s: %q, want %q", description, got, want)
	}
}

func governedInModes(t *testing.T, s consent.Settings, test func(g *governedWorld)) {
	for _, mode := range harness.Modes(enforcedModes...) {
		t.Run(mode.Name, func(t *testing.T) { test(startGoverned(t, mode, s)) })
	}
}

const (
	essential   = "user_id channel_id communication_context"
	behavioral  = " communication_style interaction_frequency"
	improvement = " feature_usage performance_metrics"
)

// "TEMPORARY (Default) … ESSENTIAL only", "PARTNERED … ESSENTIAL, BEHAVIORAL, IMPROVEMENT", "ANONYMOUS … STATISTICAL
// only"; nothing shows of whom there is no record, and a user's first interaction makes one. seeds/001:23-28, 30-35,
// 43-62.
func TestCirisA_StreamsShowTheirCategories(t *testing.T) {
	governedInModes(t, consent.Settings{}, func(g *governedWorld) {
		agent, user := g.proxy.Agent(g, "agent", "ciris"), g.users[0]
		g.want("without a record", oneText(agent, "SELECT (SELECT count(*) FROM users), count(*) FROM interactions AS visible_i"), "0\t0")
		g.temporary(user)
		g.want("TEMPORARY", g.shows(agent, user), essential)
		g.want("its user", oneText(agent, "SELECT user_id FROM users"), user)
		g.partner(user)
		g.want("PARTNERED", g.shows(agent, user), essential+behavioral+improvement)
		g.do(consent.Command{Action: consent.ActionGrant, Subject: g.users[1], Stream: consent.StreamAnonymous})
		g.want("ANONYMOUS", g.shows(agent, g.users[1]), "")
		g.want("a stream that nobody knows",
			oneText(g.super, "UPDATE pgconsent.consent_current SET stream = 'OTHER' WHERE subject = '"+user+"'")+g.shows(agent, user), "")
	})
}

// With REQUIRE_EXPLICIT_CONSENT a first interaction gives nothing, and nothing shows.
// seeds/001:230-233.
func TestCirisA_ExplicitConsent(t *testing.T) {
	g := startGoverned(t, harness.Auto, consent.Settings{RequireExplicit: true})
	agent := g.proxy.Agent(t, "agent", "ciris")
	if _, err := g.registry.Execute(context.Background(),
		consent.Command{Action: consent.ActionInteract, Subject: g.users[0], Caller: consent.Party{Role: consent.RoleApplication, ID: "app"}}); err != nil {
		t.Logf("an interaction: %v", err)
	}
	g.want("after an interaction", g.rows(agent, g.users[0]), "f")
}

// A row or column is visible only if the record lists its category and the agent is for it: "Categories".
// A grant may list fewer, and none implies another.
// seeds/001:43-62.
func TestCirisB_PurposesAndCategories(t *testing.T) {
	governedInModes(t, consent.Settings{}, func(g *governedWorld) {
		agent, companion, analyst, idle := g.proxy.Agent(g, "agent", "ciris"), g.proxy.Agent(g, "companion",
			"ciris"), g.proxy.Agent(g, "analyst", "ciris"), g.proxy.Agent(g, "idle", "ciris")
		user, fewer, behavior := g.users[0], g.users[1], g.users[2]
		g.partner(user)
		g.partner(fewer, "ESSENTIAL", "IMPROVEMENT")
		g.partner(behavior, "BEHAVIORAL")
		g.want("all categories", g.shows(agent, user), essential+behavioral+improvement)
		g.want("fewer", g.shows(agent, fewer), essential+improvement)
		g.want("BEHAVIORAL does not imply ESSENTIAL", g.rows(agent, behavior), "f")
		g.want("for ESSENTIAL", g.shows(companion, user), essential)
		g.want("for STATISTICAL", g.rows(analyst, user), "f")
		g.want("for nothing", g.rows(idle, user), "f")
		// A condition on a value that does not show is a condition on NULL.
		g.want("asked for by its value", oneText(companion,
			`SELECT count(*) FROM interactions AS visible_i WHERE communication_style IS NOT NULL OR interaction_frequency > 0`), "0")
		g.want("an error of its value", oneText(companion,
			`SELECT count(*) FROM interactions AS visible_i WHERE 1 / (interaction_frequency - interaction_frequency) > 0`), "0")
	})
}

// An expired record hides at its instant, before any sweep: "14 days auto-expiry".
// seeds/001:23-28.
func TestCirisB_ExpiryActsWithoutASweep(t *testing.T) {
	governedInModes(t, consent.Settings{}, func(g *governedWorld) {
		agent, user := g.proxy.Agent(g, "agent", "ciris"), g.users[0]
		g.temporary(user)
		g.want("before", g.rows(agent, user), "t")
		g.want("14 days", oneText(g.super, "SELECT expires_at - given_at FROM pgconsent.consent_current"), "14 days")
		for _, c := range [][2]string{{"1 hour", "t"}, {"0", "f"}, {"-1 microseconds", "f"}, {"-90 days", "f"}} {
			g.Exec("UPDATE pgconsent.consent_current SET expires_at = statement_timestamp() + interval '" + c[0] + "'")
			g.want("expires in "+c[0], g.rows(agent, user), c[1])
		}
		g.want("it is given still", oneText(g.super, "SELECT state FROM pgconsent.consent_current"), "given")
		// It expires within a statement's reach: the rows are there, and with no change of anything they are not.
		was, deadline := "", time.Now().Add(tier.Patience)
		for reach := time.Second; was != "t" && time.Now().Before(deadline); reach *= 2 { // a busy machine asks too late
			g.Exec(fmt.Sprintf("UPDATE pgconsent.consent_current SET expires_at = clock_timestamp() + interval '%f seconds'", reach.Seconds()))
			was = g.rows(agent, user)
		}
		for g.rows(agent, user) == "t" && time.Now().Before(deadline) {
			time.Sleep(20 * time.Millisecond)
		}
		g.want("before and after it", was+g.rows(agent, user), "tf")
	})
}

// For ANONYMOUS subjects rows are in no row, and count in groups of five: "Aggregated statistics, no PII".
// seeds/001:37-41.
func TestCirisC_AnonymousByTheRegistry(t *testing.T) {
	governedInModes(t, consent.Settings{NoDecay: true}, func(g *governedWorld) {
		agent, companion := g.proxy.Agent(g, "agent", "ciris"), g.proxy.Agent(g, "companion", "ciris")
		g.Exec("UPDATE interactions SET channel_type = 'api', trend_analysis = 'steady', occurred_at = " +
			"'2026-03-05 12:00+00', usage_statistics = 10, interaction_frequency = 7")
		for i, user := range g.users[:5] {
			g.temporary(user)
			g.want("TEMPORARY", g.rows(agent, user), "t")
			g.degrade(user, consent.StreamAnonymous)
			g.want("ANONYMOUS at once", g.rows(agent, user), "f")
			want := "0" // an aggregate of no group has no row
			if i == 4 {
				want = oneText(g.super, "SELECT count(*) FROM interactions WHERE user_id = ANY ('{"+strings.Join(g.users[:5], ",")+"}')")
			}
			got := oneText(agent, "SELECT count(*) FROM interactions")
			if got == "" {
				got = "0"
			}
			g.want(fmt.Sprintf("%d users in groups", i+1), got, want)
		}
		g.want("their statistics", oneText(agent,
			"SELECT sum(usage_statistics) = 10 * count(*), count(interaction_frequency) FROM interactions GROUP BY trend_analysis"), "t\t0")
		g.want("an agent that is not for statistics", oneText(companion, "SELECT count(*) FROM interactions"), "")
		g.want("one by one", oneText(agent, "SELECT user_id, count(*) FROM interactions GROUP BY user_id"), "42501")
		// A new partnership begins anew, and what was anonymous stays so.
		g.partner(g.users[0])
		g.want("what was anonymous", g.rows(agent, g.users[0]), "f")
		g.Exec("INSERT INTO interactions (id, user_id, channel_id, channel_type, occurred_at) SELECT 900001, '" +
			g.users[0] + "', 'api_9', 'api', statement_timestamp()")
		g.want("what is new", oneText(agent, "SELECT id, channel_id FROM interactions WHERE id = 900001"), "900001\tapi_9")
	})
}

// "Partnership upgrades require mutual agreement": the person who asks does not decide. A postponed decision shows
// nothing and has the same deadline, and all of it counts at the next statement. Downgrades are the user's alone.
// seeds/001:30-35, 69-78, 81-85, 218-221.
func TestCirisD_PartnershipNeedsBoth(t *testing.T) {
	g := startGoverned(t, harness.Auto, consent.Settings{})
	agent := g.proxy.Agent(t, "agent", "ciris")
	deciding := consent.Party{Role: consent.RoleAgent, ID: "agent"}
	wantError := func(description string, c consent.Command, want any) {
		t.Helper()
		if _, err := g.registry.Execute(t.Context(), c); !errors.As(err, want) {
			t.Errorf("%s: %v, want %T", description, err, want)
		}
	}
	decide := func(user, decision string) {
		g.do(consent.Command{Action: consent.ActionDecide, Subject: user, Decision: consent.Decision(decision), Caller: deciding})
	}
	requestUpgrade := func(user string) {
		g.do(consent.Command{Action: consent.ActionUpgrade, Subject: user, Reason: "for long"})
	}
	approved, rejected, expired, never := g.users[0], g.users[1], g.users[2], g.users[3]
	wantError("nobody has consented", consent.Command{
		Action: consent.ActionDegrade, Stream: consent.StreamTemporary, Subject: never, Caller: consent.Party{
			Role: consent.RoleSubject, ID: never}}, new(*consent.NotFoundError))
	for _, user := range []string{approved, rejected, expired} {
		g.temporary(user)
		requestUpgrade(user)
		g.want("asked for", g.shows(agent, user), essential)
	}
	wantError("who asks decides", consent.Command{Action: consent.ActionDecide, Subject: approved,
		Decision: consent.DecisionApprove, Caller: consent.Party{Role: consent.RoleSubject, ID: approved}}, new(*consent.ForbiddenError))
	wantError("who decides asks", consent.Command{Action: consent.ActionUpgrade, Subject: approved, Caller: deciding}, new(*consent.ForbiddenError))

	due := oneText(g.super, "SELECT due_at FROM pgconsent.consent_current WHERE subject = '"+approved+"'")
	decide(approved, "DEFER")
	g.want("DEFER", g.shows(agent, approved), essential)
	g.want("the deadline", oneText(g.super, "SELECT due_at FROM pgconsent.consent_current WHERE subject = '"+approved+"'"), due)
	g.want("48 hours", oneText(g.super,
		"SELECT DISTINCT due_at - recorded_at FROM pgconsent.consent_record WHERE due_at IS NOT NULL AND event = 'requested'"), "2 days")
	decide(approved, "TASK_COMPLETE")
	g.want("TASK_COMPLETE", g.shows(agent, approved), essential+behavioral+improvement)
	decide(rejected, "REJECT")
	g.want("REJECT", g.shows(agent, rejected), essential)

	wantError("TEMPORARY to PARTNERED by a grant of one's own",
		consent.Command{Action: consent.ActionDegrade, Stream: consent.StreamPartnered, Subject: rejected,
			Caller: consent.Party{Role: consent.RoleSubject, ID: rejected}}, new(*consent.ValidationError))
	g.degrade(approved, consent.StreamTemporary)
	g.want("PARTNERED to TEMPORARY", g.shows(agent, approved), "user_id channel_id")
	g.degrade(rejected, consent.StreamAnonymous)
	g.Exec("INSERT INTO interactions (id, user_id, channel_id, channel_type, occurred_at) SELECT 900005, '" +
		rejected + "', 'api_9', 'api', statement_timestamp()")
	g.want("TEMPORARY to ANONYMOUS", oneText(agent, "SELECT count(*) FROM interactions AS visible_i WHERE id = 900005"), "0")

	g.clock("+ interval '48 hours'")
	g.settle(agent)
	wantError("decided after 48 hours", consent.Command{
		Action: consent.ActionDecide, Subject: expired, Decision: consent.DecisionApprove, Caller: deciding}, new(*consent.ExpiredError))
	g.want("lapsed", g.shows(agent, expired), essential)
	g.proxy.Tap().RequireNoMarker(t)
}

// Withdrawal counts at the next statement of an open connection, prepared statements included. Cursors and REPEATABLE
// READ that are older end with 40001. To TEMPORARY the other categories go at once. seeds/001:81-85, 116-119, 213-216.
func TestCirisE_WithdrawalAndDowngrade(t *testing.T) {
	governedInModes(t, consent.Settings{}, func(g *governedWorld) {
		user, other := g.users[0], g.users[1]
		g.partner(user)
		g.partner(other)
		agent, cursor, snapshot := g.proxy.Agent(g, "agent", "ciris"), g.proxy.Agent(g, "agent", "ciris"), g.proxy.Agent(g, "agent", "ciris")
		query := "SELECT count(*) FROM interactions AS visible_i WHERE user_id = '" + user + "' AND communication_style IS NOT NULL"
		all := oneText(g.super, "SELECT count(*) FROM interactions WHERE user_id = '"+user+"'")
		if _, err := agent.Prepare(context.Background(), "p", query, nil); err != nil {
			g.Fatal(err)
		}
		oneText(agent, "PREPARE q AS "+query)
		prepared := func() string {
			r := agent.ExecPrepared(context.Background(), "p", nil, nil, nil).Read()
			if r.Err != nil {
				return r.Err.Error()
			}
			return string(r.Rows[0][0]) + " " + oneText(agent, "EXECUTE q")
		}
		g.want("prepared", prepared(), all+" "+all)
		oneText(cursor, "BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT id, communication_style FROM interactions")
		g.want("a cursor", fmt.Sprint(strings.Count(oneText(cursor, "FETCH 1 FROM c"), "\n")), "0")
		oneText(snapshot, "BEGIN ISOLATION LEVEL REPEATABLE READ")
		oneText(snapshot, query)
		g.degrade(user, consent.StreamTemporary)
		g.want("prepared, after the downgrade", prepared(), "0 0")
		g.want("the cursor", oneText(cursor, "FETCH 1 FROM c"), "40001")
		g.want("the snapshot", oneText(snapshot, query), "40001")
		oneText(cursor, "ROLLBACK")
		oneText(snapshot, "ROLLBACK")
		g.want("what is left", g.shows(agent, user), "user_id channel_id")
		g.want("others keep theirs", g.shows(agent, other), essential+behavioral+improvement)

		oneText(snapshot, "BEGIN ISOLATION LEVEL REPEATABLE READ")
		g.want("before", g.rows(snapshot, user), "t")
		g.do(consent.Command{Action: consent.ActionRevoke, Subject: user})
		g.want("withdrawn", g.rows(agent, user)+oneText(agent, "SELECT count(*) FROM users WHERE user_id = '"+user+"'"), "f0")
		g.want("the snapshot", oneText(snapshot, "SELECT 1 FROM users"), "40001")
		oneText(snapshot, "ROLLBACK")
		g.do(consent.Command{Action: consent.ActionGrant, Subject: user, Stream: consent.StreamTemporary})
		g.want("a new consent revives nothing", g.rows(agent, user), "f")
		// A renewal takes nothing from anybody, and ends nothing.
		oneText(snapshot, "BEGIN ISOLATION LEVEL REPEATABLE READ")
		g.want("of another", g.rows(snapshot, other), "t")
		g.temporary(user)
		g.want("after a renewal", g.rows(snapshot, other), "t")
		// A first record, given or asked for, of an unknown person shows nothing either; one that refuses may.
		g.temporary(g.users[2])
		g.want("after somebody's first record", g.rows(snapshot, other), "t")
		g.do(consent.Command{Action: consent.ActionUpgrade, Subject: g.users[3]})
		g.want("after a first question", g.rows(snapshot, other), "t")
		g.do(consent.Command{Action: consent.ActionRefuse, Subject: g.users[4]})
		g.want("after a first no", oneText(snapshot, "SELECT 1 FROM users"), "40001")
		oneText(snapshot, "ROLLBACK")
		g.proxy.Tap().RequireNoMarker(g)
	})
}

// "90-day gradual anonymization", by full days elapsed. From 0 to 30 all is kept, from 31 to 60 behaviour is in
// aggregates only, from 61 to 89 identity is gone, and from 90 the row is anonymous. A new partnership stops the
// countdown. seeds/001:163-168, 425.
func TestCirisE_DecayByFullDays(t *testing.T) {
	governedInModes(t, consent.Settings{}, func(g *governedWorld) {
		agent, user, later := g.proxy.Agent(g, "agent", "ciris"), g.users[0], g.users[1]
		g.clock("- interval '40 days'") // records are in the order of time: the oldest first
		g.partner(later)
		g.degrade(later, consent.StreamAnonymous)
		g.clock("")
		g.settle(agent)
		g.partner(user, "ESSENTIAL", "BEHAVIORAL")
		g.degrade(user, consent.StreamAnonymous)
		for _, c := range []struct {
			days, seconds int
			want          string
		}{
			{0, 0, essential + behavioral},
			{30, 0, essential + behavioral},
			{30, 86_390, essential + behavioral},
			{31, 0, "user_id channel_id"},
			{60, 86_390, "user_id channel_id"},
			{61, 0, ""},
		} {
			g.ago(user, c.days, c.seconds)
			g.want(fmt.Sprintf("day %d and %d s", c.days, c.seconds), g.shows(agent, user), c.want)
			g.want("the row", g.rows(agent, user), "t")
		}
		g.ago(user, 60, 86_390)
		g.want("the user, day 60", oneText(agent, "SELECT count(*) FROM users WHERE user_id = '"+user+"'"), "1")
		g.ago(user, 61, 0)
		g.want("the user, day 61", oneText(agent, "SELECT count(*) FROM users WHERE user_id = '"+user+"'"), "0")
		g.ago(user, 89, 86_390)
		g.want("day 89", g.rows(agent, user), "t")
		g.ago(user, 90, 0)
		g.want("day 90", g.rows(agent, user), "f")
		// New data is anonymous at once, whatever the countdown says.
		g.ago(user, 1, 0)
		g.Exec("INSERT INTO interactions (id, user_id, channel_id, channel_type, occurred_at) SELECT 900002, '" +
			user + "', 'api_9', 'api', statement_timestamp()")
		g.want("a new row", oneText(agent, "SELECT count(*) FROM interactions AS visible_i WHERE id = 900002"), "0")
		// A new partnership stops it: what was removed stays removed.
		g.Exec("UPDATE interactions SET occurred_at = '2026-01-02' WHERE user_id = '" + later + "'")
		g.want("before a new partnership", g.shows(agent, later), "user_id channel_id")
		g.partner(later)
		g.Exec("INSERT INTO interactions (id, user_id, channel_id, channel_type, occurred_at) SELECT 900003, '" +
			later + "', 'api_9', 'api', statement_timestamp()")
		g.want("the countdown", oneText(g.super,
			"SELECT decay_from IS NULL, decayed_days FROM pgconsent.consent_current WHERE subject = '"+later+"'"), "t\t40")
		g.want("after a new partnership", g.shows(agent, later), "user_id channel_id")
		g.want("a new row", oneText(agent, "SELECT channel_id FROM interactions WHERE id = 900003"), "api_9")
	})
}

// "Days 31-60: Behavioral data aggregated": what does not show any more counts in groups of five.
// seeds/001:163-168.
func TestCirisE_DecayCountsInGroups(t *testing.T) {
	governedInModes(t, consent.Settings{}, func(g *governedWorld) {
		agent := g.proxy.Agent(g, "agent", "ciris")
		g.Exec("UPDATE interactions SET channel_type = 'api', trend_analysis = 'steady', interaction_frequency = 7")
		for _, user := range g.users[:5] {
			g.partner(user)
			g.degrade(user, consent.StreamAnonymous)
			g.ago(user, 45, 0)
		}
		sum := "SELECT sum(interaction_frequency) FROM interactions"
		want := oneText(g.super, sum+" WHERE user_id = ANY ('{"+strings.Join(g.users[:5], ",")+"}')")
		g.want("one by one", oneText(agent, "SELECT count(interaction_frequency) FROM interactions AS visible_i"), "0")
		g.want("in groups, day 45", oneText(agent, sum), want)
		g.ago(g.users[0], 61, 0)
		g.want("four of them, and one at day 61", oneText(agent, "SELECT count(interaction_frequency) FROM interactions"), "")
		g.partner(g.users[5])
		g.want("a partner's own", oneText(agent,
			"SELECT count(*) = count(interaction_frequency) FROM interactions AS visible_i WHERE user_id = '"+g.users[5]+"'"), "t")
	})
}

// Nothing an agent sends renews a consent, or says anything to the registry.
func TestCirisN_AgentsRenewNothing(t *testing.T) {
	governedInModes(t, consent.Settings{}, func(g *governedWorld) {
		agent, user := g.proxy.Agent(g, "agent", "ciris"), g.users[0]
		g.temporary(user)
		before := oneText(g.super, "SELECT number, expires_at FROM pgconsent.consent_current")
		for _, sql := range []string{
			"SELECT count(*) FROM users", "UPDATE users SET granted_at = now()",
			"INSERT INTO interactions (id, user_id, channel_id, channel_type, occurred_at) VALUES (900003, '" + user + "', 'a', 'api', now())",
			"SELECT * FROM pgconsent.consent_current", "UPDATE pgconsent.consent_current SET expires_at = NULL", "SELECT pgconsent.consent_now()",
			"SELECT * FROM pgconsent_signed.pgconsent_consent_current",
			"SELECT * FROM pgconsent.h_pgconsent_consent_current", "TABLE pgconsent_rows.public_interactions",
		} {
			if got := oneText(agent, sql); strings.HasPrefix(sql, "SELECT count") == (len(got) == 5) {
				g.Errorf("%s: %s", sql, got)
			}
		}
		g.want("the record", oneText(g.super, "SELECT number, expires_at FROM pgconsent.consent_current"), before)
	})
}
