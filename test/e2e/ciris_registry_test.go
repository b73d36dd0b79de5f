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

// governedWorld is the example world ciris with its policy on the consent registry, which has no record at first.
type governedWorld struct {
	*testing.T
	db        *pgtest.DB
	proxy     *harness.Proxy
	registry  *registry.Registry
	superConn *pgconn.PgConn
	users     []string // users who have interactions
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
	g := &governedWorld{T: t, db: db, registry: openRegistry(t, db, s), superConn: harness.ConnectSuperuser(t, db),
		proxy: harness.Serve(t, mode, []harness.Database{d}, []harness.Agent{
			{Name: "agent", Database: "ciris", Attributes: map[string]string{"categories": everyCategory}},
			{Name: "companion", Database: "ciris", Attributes: map[string]string{"categories": "{ESSENTIAL}"}},
			{Name: "analyst", Database: "ciris", Attributes: map[string]string{"categories": "{STATISTICAL}"}},
			{Name: "idle", Database: "ciris", Attributes: map[string]string{"categories": "{}"}},
		})}
	g.users = strings.Split(oneText(g.superConn,
		"SELECT user_id FROM interactions WHERE user_id LIKE 'user-%' GROUP BY 1 HAVING count(*) > 10 ORDER BY 1 LIMIT 20"), "\n")
	return g
}

// openRegistry opens the consent registry of a database, with a new key and a new anchor.
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

func (g *governedWorld) executeCommand(c consent.Command) {
	g.Helper()
	if c.Caller == (consent.Party{}) {
		c.Caller = consent.Party{Role: consent.RoleSubject, ID: c.Subject}
	}
	if _, err := g.registry.Execute(context.Background(), c); err != nil {
		g.Fatalf("%s of %s: %v", c.Action, c.Subject, err)
	}
}

func (g *governedWorld) grantTemporary(user string) {
	g.Helper()
	g.executeCommand(consent.Command{Action: consent.ActionInteract, Subject: user, Caller: consent.Party{Role: consent.RoleApplication, ID: "app"}})
}

func (g *governedWorld) makePartner(user string, categories ...string) {
	g.Helper()
	g.executeCommand(consent.Command{Action: consent.ActionUpgrade, Subject: user, Categories: categories, Reason: "for long"})
	g.executeCommand(consent.Command{Action: consent.ActionDecide, Subject: user, Decision: consent.DecisionApprove,
		Caller: consent.Party{Role: consent.RoleAgent, ID: "agent"}})
}

func (g *governedWorld) degrade(user string, stream consent.Stream) {
	g.Helper()
	g.executeCommand(consent.Command{Action: consent.ActionDegrade, Subject: user, Stream: stream})
}

// moveDecayBack moves the start of a user's decay into the past, as the owner of the schema can.
func (g *governedWorld) moveDecayBack(user string, days int, seconds int) {
	g.Helper()
	text := oneText(g.superConn, fmt.Sprintf(
		`UPDATE pgconsent.consent_current SET decay_from = statement_timestamp() - interval '%d hours' - interval '%d seconds' `+
			`WHERE subject = '%s' AND decay_from IS NOT NULL RETURNING 1`, days*24, seconds, user))
	if text != "1" {
		g.Fatalf("nothing decays of %s: %s", user, text)
	}
	g.Exec(`UPDATE interactions SET occurred_at = '2026-01-02' WHERE user_id = '` + user + `'`)
}

// setClockOffset makes the registry's clock differ from the real time by an SQL interval.
func (g *governedWorld) setClockOffset(offset string) {
	g.Helper()
	g.Exec("CREATE OR REPLACE FUNCTION pgconsent.consent_now() RETURNS pg_catalog.timestamptz LANGUAGE sql " +
		"VOLATILE PARALLEL SAFE RETURN pg_catalog.clock_timestamp() " + offset)
}

// awaitCatalog waits until the proxy has loaded the changed catalog.
func (g *governedWorld) awaitCatalog(c *pgconn.PgConn) {
	g.Helper()
	for deadline := time.Now().Add(tier.Patience); oneText(c, "SELECT count(*) FROM users WHERE false") != "0"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			g.Fatal("the catalog does not settle")
		}
	}
}

func (g *governedWorld) Exec(sql string) { g.Helper(); harness.Exec(g.T, g.db, sql) }

func (g *governedWorld) hasVisibleRows(c *pgconn.PgConn, user string) string {
	return oneText(c, fmt.Sprintf(`SELECT count(*) > 0 FROM interactions AS visible_i JOIN (VALUES %s) v (id) USING (id)`,
		g.interactionIDs(user)))
}

// interactionIDs returns the keys of five interactions of a user. Agents may know keys.
func (g *governedWorld) interactionIDs(user string) string {
	return oneText(g.superConn, fmt.Sprintf(
		`SELECT string_agg('(' || id || ')', ', ') FROM (SELECT id FROM interactions WHERE user_id = '%s' ORDER BY 1 LIMIT 5) AS i`, user))
}

// visibleColumns returns the columns that have values in a user's rows, for an agent.
func (g *governedWorld) visibleColumns(c *pgconn.PgConn, user string) string {
	g.Helper()
	var out []string
	for _, column := range []string{"user_id", "channel_id", "communication_context", "communication_style",
		"interaction_frequency", "feature_usage", "performance_metrics", "usage_statistics", "trend_analysis"} {
		if oneText(c, fmt.Sprintf(
			`SELECT count(%s) > 0 FROM interactions AS visible_i JOIN (VALUES %s) v (id) USING (id)`, column, g.interactionIDs(user))) == "t" {
			out = append(out, column)
		}
	}
	return strings.Join(out, " ")
}

func (g *governedWorld) checkEqual(description, got, want string) {
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
	essentialColumns   = "user_id channel_id communication_context"
	behavioralColumns  = " communication_style interaction_frequency"
	improvementColumns = " feature_usage performance_metrics"
)

// "TEMPORARY (Default) … ESSENTIAL only", "PARTNERED … ESSENTIAL, BEHAVIORAL, IMPROVEMENT", "ANONYMOUS … STATISTICAL
// only". A user without a record is hidden, and the first interaction of a user makes a record. seeds/001:23-28, 30-35,
// 43-62.
func TestCirisA_StreamsShowTheirCategories(t *testing.T) {
	governedInModes(t, consent.Settings{}, func(g *governedWorld) {
		agent, user := g.proxy.Agent(g, "agent", "ciris"), g.users[0]
		g.checkEqual("without a record", oneText(agent, "SELECT (SELECT count(*) FROM users), count(*) FROM interactions AS visible_i"), "0\t0")
		g.grantTemporary(user)
		g.checkEqual("TEMPORARY", g.visibleColumns(agent, user), essentialColumns)
		g.checkEqual("its user", oneText(agent, "SELECT user_id FROM users"), user)
		g.makePartner(user)
		g.checkEqual("PARTNERED", g.visibleColumns(agent, user), essentialColumns+behavioralColumns+improvementColumns)
		g.executeCommand(consent.Command{Action: consent.ActionGrant, Subject: g.users[1], Stream: consent.StreamAnonymous})
		g.checkEqual("ANONYMOUS", g.visibleColumns(agent, g.users[1]), "")
		g.checkEqual("a stream that nobody knows",
			oneText(g.superConn, "UPDATE pgconsent.consent_current SET stream = 'OTHER' WHERE subject = '"+user+"'")+g.visibleColumns(agent,
				user), "")
	})
}

// With REQUIRE_EXPLICIT_CONSENT a first interaction makes no consent, and the user stays hidden.
// seeds/001:230-233.
func TestCirisA_ExplicitConsent(t *testing.T) {
	g := startGoverned(t, harness.Auto, consent.Settings{RequireExplicit: true})
	agent := g.proxy.Agent(t, "agent", "ciris")
	if _, err := g.registry.Execute(context.Background(),
		consent.Command{Action: consent.ActionInteract, Subject: g.users[0], Caller: consent.Party{Role: consent.RoleApplication, ID: "app"}}); err != nil {
		t.Logf("an interaction: %v", err)
	}
	g.checkEqual("after an interaction", g.hasVisibleRows(agent, g.users[0]), "f")
}

// "Categories": a column is visible only if the record lists its category and the agent has that purpose. A grant may
// list fewer categories, and none implies another.
// seeds/001:43-62.
func TestCirisB_PurposesAndCategories(t *testing.T) {
	governedInModes(t, consent.Settings{}, func(g *governedWorld) {
		agent, companionAgent, analystAgent, idleAgent := g.proxy.Agent(g, "agent", "ciris"), g.proxy.Agent(g, "companion",
			"ciris"), g.proxy.Agent(g, "analyst", "ciris"), g.proxy.Agent(g, "idle", "ciris")
		user, userWithFewer, behaviorUser := g.users[0], g.users[1], g.users[2]
		g.makePartner(user)
		g.makePartner(userWithFewer, "ESSENTIAL", "IMPROVEMENT")
		g.makePartner(behaviorUser, "BEHAVIORAL")
		g.checkEqual("all categories", g.visibleColumns(agent, user), essentialColumns+behavioralColumns+improvementColumns)
		g.checkEqual("fewer", g.visibleColumns(agent, userWithFewer), essentialColumns+improvementColumns)
		g.checkEqual("BEHAVIORAL does not imply ESSENTIAL", g.hasVisibleRows(agent, behaviorUser), "f")
		g.checkEqual("for ESSENTIAL", g.visibleColumns(companionAgent, user), essentialColumns)
		g.checkEqual("for STATISTICAL", g.hasVisibleRows(analystAgent, user), "f")
		g.checkEqual("for nothing", g.hasVisibleRows(idleAgent, user), "f")
		// A condition on a value that is hidden is evaluated as a condition on NULL.
		g.checkEqual("asked for by its value", oneText(companionAgent,
			`SELECT count(*) FROM interactions AS visible_i WHERE communication_style IS NOT NULL OR interaction_frequency > 0`), "0")
		g.checkEqual("an error of its value", oneText(companionAgent,
			`SELECT count(*) FROM interactions AS visible_i WHERE 1 / (interaction_frequency - interaction_frequency) > 0`), "0")
	})
}

// An expired record hides its rows at that instant, before any sweep: "14 days auto-expiry".
// seeds/001:23-28.
func TestCirisB_ExpiryActsWithoutASweep(t *testing.T) {
	governedInModes(t, consent.Settings{}, func(g *governedWorld) {
		agent, user := g.proxy.Agent(g, "agent", "ciris"), g.users[0]
		g.grantTemporary(user)
		g.checkEqual("before", g.hasVisibleRows(agent, user), "t")
		g.checkEqual("14 days", oneText(g.superConn, "SELECT expires_at - given_at FROM pgconsent.consent_current"), "14 days")
		for _, c := range [][2]string{{"1 hour", "t"}, {"0", "f"}, {"-1 microseconds", "f"}, {"-90 days", "f"}} {
			g.Exec("UPDATE pgconsent.consent_current SET expires_at = statement_timestamp() + interval '" + c[0] + "'")
			g.checkEqual("expires in "+c[0], g.hasVisibleRows(agent, user), c[1])
		}
		g.checkEqual("it is given still", oneText(g.superConn, "SELECT state FROM pgconsent.consent_current"), "given")
		// The record expires while the test reads: rows are visible first, and then hidden without any change of data.
		firstAnswer, deadline := "", time.Now().Add(tier.Patience)
		for lifetime := time.Second; firstAnswer != "t" &&
			time.Now().Before(deadline); lifetime *= 2 { // on a busy machine the first query may come after the expiry
			g.Exec(fmt.Sprintf("UPDATE pgconsent.consent_current SET expires_at = clock_timestamp() + interval '%f seconds'", lifetime.Seconds()))
			firstAnswer = g.hasVisibleRows(agent, user)
		}
		for g.hasVisibleRows(agent, user) == "t" && time.Now().Before(deadline) {
			time.Sleep(20 * time.Millisecond)
		}
		g.checkEqual("before and after it", firstAnswer+g.hasVisibleRows(agent, user), "tf")
	})
}

// The rows of ANONYMOUS subjects are never returned. They count in groups of at least five: "Aggregated statistics, no
// PII".
// seeds/001:37-41.
func TestCirisC_AnonymousByTheRegistry(t *testing.T) {
	governedInModes(t, consent.Settings{NoDecay: true}, func(g *governedWorld) {
		agent, companionAgent := g.proxy.Agent(g, "agent", "ciris"), g.proxy.Agent(g, "companion", "ciris")
		g.Exec("UPDATE interactions SET channel_type = 'api', trend_analysis = 'steady', occurred_at = " +
			"'2026-03-05 12:00+00', usage_statistics = 10, interaction_frequency = 7")
		for i, user := range g.users[:5] {
			g.grantTemporary(user)
			g.checkEqual("TEMPORARY", g.hasVisibleRows(agent, user), "t")
			g.degrade(user, consent.StreamAnonymous)
			g.checkEqual("ANONYMOUS at once", g.hasVisibleRows(agent, user), "f")
			want := "0" // an aggregate of no group has no row
			if i == 4 {
				want = oneText(g.superConn, "SELECT count(*) FROM interactions WHERE user_id = ANY ('{"+strings.Join(g.users[:5], ",")+"}')")
			}
			got := oneText(agent, "SELECT count(*) FROM interactions")
			if got == "" {
				got = "0"
			}
			g.checkEqual(fmt.Sprintf("%d users in groups", i+1), got, want)
		}
		g.checkEqual("their statistics", oneText(agent,
			"SELECT sum(usage_statistics) = 10 * count(*), count(interaction_frequency) FROM interactions GROUP BY trend_analysis"), "t\t0")
		g.checkEqual("an agent that is not for statistics", oneText(companionAgent, "SELECT count(*) FROM interactions"), "")
		g.checkEqual("one by one", oneText(agent, "SELECT user_id, count(*) FROM interactions GROUP BY user_id"), "42501")
		// A partnership that begins later shows only new rows; rows that were anonymous stay so.
		g.makePartner(g.users[0])
		g.checkEqual("what was anonymous", g.hasVisibleRows(agent, g.users[0]), "f")
		g.Exec("INSERT INTO interactions (id, user_id, channel_id, channel_type, occurred_at) SELECT 900001, '" +
			g.users[0] + "', 'api_9', 'api', statement_timestamp()")
		g.checkEqual("what is new", oneText(agent, "SELECT id, channel_id FROM interactions WHERE id = 900001"), "900001\tapi_9")
	})
}

// "Partnership upgrades require mutual agreement": the person who asks cannot decide. A deferred decision shows nothing
// and keeps its deadline, and each decision counts at the next statement. Downgrades need the user alone.
// seeds/001:30-35, 69-78, 81-85, 218-221.
func TestCirisD_PartnershipNeedsBoth(t *testing.T) {
	g := startGoverned(t, harness.Auto, consent.Settings{})
	agent := g.proxy.Agent(t, "agent", "ciris")
	deciderParty := consent.Party{Role: consent.RoleAgent, ID: "agent"}
	wantError := func(description string, c consent.Command, want any) {
		t.Helper()
		if _, err := g.registry.Execute(t.Context(), c); !errors.As(err, want) {
			t.Errorf("%s: %v, want %T", description, err, want)
		}
	}
	decide := func(user, decision string) {
		g.executeCommand(consent.Command{Action: consent.ActionDecide, Subject: user, Decision: consent.Decision(decision), Caller: deciderParty})
	}
	requestUpgrade := func(user string) {
		g.executeCommand(consent.Command{Action: consent.ActionUpgrade, Subject: user, Reason: "for long"})
	}
	approvedUser, rejectedUser, expiredUser, unknownUser := g.users[0], g.users[1], g.users[2], g.users[3]
	wantError("nobody has consented", consent.Command{
		Action: consent.ActionDegrade, Stream: consent.StreamTemporary, Subject: unknownUser, Caller: consent.Party{
			Role: consent.RoleSubject, ID: unknownUser}}, new(*consent.NotFoundError))
	for _, user := range []string{approvedUser, rejectedUser, expiredUser} {
		g.grantTemporary(user)
		requestUpgrade(user)
		g.checkEqual("asked for", g.visibleColumns(agent, user), essentialColumns)
	}
	wantError("who asks decides", consent.Command{Action: consent.ActionDecide, Subject: approvedUser,
		Decision: consent.DecisionApprove, Caller: consent.Party{Role: consent.RoleSubject, ID: approvedUser}}, new(*consent.ForbiddenError))
	wantError("who decides asks", consent.Command{Action: consent.ActionUpgrade, Subject: approvedUser, Caller: deciderParty}, new(*consent.ForbiddenError))

	dueAt := oneText(g.superConn, "SELECT due_at FROM pgconsent.consent_current WHERE subject = '"+approvedUser+"'")
	decide(approvedUser, "DEFER")
	g.checkEqual("DEFER", g.visibleColumns(agent, approvedUser), essentialColumns)
	g.checkEqual("the deadline", oneText(g.superConn, "SELECT due_at FROM pgconsent.consent_current WHERE subject = '"+approvedUser+"'"),
		dueAt)
	g.checkEqual("48 hours", oneText(g.superConn,
		"SELECT DISTINCT due_at - recorded_at FROM pgconsent.consent_record WHERE due_at IS NOT NULL AND event = 'requested'"), "2 days")
	decide(approvedUser, "TASK_COMPLETE")
	g.checkEqual("TASK_COMPLETE", g.visibleColumns(agent, approvedUser), essentialColumns+behavioralColumns+improvementColumns)
	decide(rejectedUser, "REJECT")
	g.checkEqual("REJECT", g.visibleColumns(agent, rejectedUser), essentialColumns)

	wantError("TEMPORARY to PARTNERED by a grant of one's own",
		consent.Command{Action: consent.ActionDegrade, Stream: consent.StreamPartnered, Subject: rejectedUser,
			Caller: consent.Party{Role: consent.RoleSubject, ID: rejectedUser}}, new(*consent.ValidationError))
	g.degrade(approvedUser, consent.StreamTemporary)
	g.checkEqual("PARTNERED to TEMPORARY", g.visibleColumns(agent, approvedUser), "user_id channel_id")
	g.degrade(rejectedUser, consent.StreamAnonymous)
	g.Exec("INSERT INTO interactions (id, user_id, channel_id, channel_type, occurred_at) SELECT 900005, '" +
		rejectedUser + "', 'api_9', 'api', statement_timestamp()")
	g.checkEqual("TEMPORARY to ANONYMOUS", oneText(agent, "SELECT count(*) FROM interactions AS visible_i WHERE id = 900005"), "0")

	g.setClockOffset("+ interval '48 hours'")
	g.awaitCatalog(agent)
	wantError("decided after 48 hours", consent.Command{
		Action: consent.ActionDecide, Subject: expiredUser, Decision: consent.DecisionApprove, Caller: deciderParty}, new(*consent.ExpiredError))
	g.checkEqual("lapsed", g.visibleColumns(agent, expiredUser), essentialColumns)
	g.proxy.Tap().RequireNoMarker(t)
}

// A withdrawal counts at the next statement of an open connection, also for prepared statements. Older cursors and
// REPEATABLE READ transactions end with 40001. A downgrade to TEMPORARY hides the other categories at once.
// seeds/001:81-85, 116-119, 213-216.
func TestCirisE_WithdrawalAndDowngrade(t *testing.T) {
	governedInModes(t, consent.Settings{}, func(g *governedWorld) {
		user, otherUser := g.users[0], g.users[1]
		g.makePartner(user)
		g.makePartner(otherUser)
		agent, cursorConn, snapshotConn := g.proxy.Agent(g, "agent", "ciris"), g.proxy.Agent(g, "agent", "ciris"), g.proxy.Agent(g, "agent",
			"ciris")
		query := "SELECT count(*) FROM interactions AS visible_i WHERE user_id = '" + user + "' AND communication_style IS NOT NULL"
		rowTotal := oneText(g.superConn, "SELECT count(*) FROM interactions WHERE user_id = '"+user+"'")
		if _, err := agent.Prepare(context.Background(), "p", query, nil); err != nil {
			g.Fatal(err)
		}
		oneText(agent, "PREPARE q AS "+query)
		preparedAnswers := func() string {
			r := agent.ExecPrepared(context.Background(), "p", nil, nil, nil).Read()
			if r.Err != nil {
				return r.Err.Error()
			}
			return string(r.Rows[0][0]) + " " + oneText(agent, "EXECUTE q")
		}
		g.checkEqual("prepared", preparedAnswers(), rowTotal+" "+rowTotal)
		oneText(cursorConn, "BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT id, communication_style FROM interactions")
		g.checkEqual("a cursor", fmt.Sprint(strings.Count(oneText(cursorConn, "FETCH 1 FROM c"), "\n")), "0")
		oneText(snapshotConn, "BEGIN ISOLATION LEVEL REPEATABLE READ")
		oneText(snapshotConn, query)
		g.degrade(user, consent.StreamTemporary)
		g.checkEqual("prepared, after the downgrade", preparedAnswers(), "0 0")
		g.checkEqual("the cursor", oneText(cursorConn, "FETCH 1 FROM c"), "40001")
		g.checkEqual("the snapshot", oneText(snapshotConn, query), "40001")
		oneText(cursorConn, "ROLLBACK")
		oneText(snapshotConn, "ROLLBACK")
		g.checkEqual("what is left", g.visibleColumns(agent, user), "user_id channel_id")
		g.checkEqual("others keep theirs", g.visibleColumns(agent, otherUser), essentialColumns+behavioralColumns+improvementColumns)

		oneText(snapshotConn, "BEGIN ISOLATION LEVEL REPEATABLE READ")
		g.checkEqual("before", g.hasVisibleRows(snapshotConn, user), "t")
		g.executeCommand(consent.Command{Action: consent.ActionRevoke, Subject: user})
		g.checkEqual("withdrawn", g.hasVisibleRows(agent, user)+oneText(agent, "SELECT count(*) FROM users WHERE user_id = '"+user+"'"), "f0")
		g.checkEqual("the snapshot", oneText(snapshotConn, "SELECT 1 FROM users"), "40001")
		oneText(snapshotConn, "ROLLBACK")
		g.executeCommand(consent.Command{Action: consent.ActionGrant, Subject: user, Stream: consent.StreamTemporary})
		g.checkEqual("a new consent revives nothing", g.hasVisibleRows(agent, user), "f")
		// A renewal hides nothing from anybody, and ends no older snapshot.
		oneText(snapshotConn, "BEGIN ISOLATION LEVEL REPEATABLE READ")
		g.checkEqual("of another", g.hasVisibleRows(snapshotConn, otherUser), "t")
		g.grantTemporary(user)
		g.checkEqual("after a renewal", g.hasVisibleRows(snapshotConn, otherUser), "t")
		// A first record of an unknown person, given or asked for, ends no older snapshot; one that refuses may.
		g.grantTemporary(g.users[2])
		g.checkEqual("after somebody's first record", g.hasVisibleRows(snapshotConn, otherUser), "t")
		g.executeCommand(consent.Command{Action: consent.ActionUpgrade, Subject: g.users[3]})
		g.checkEqual("after a first question", g.hasVisibleRows(snapshotConn, otherUser), "t")
		g.executeCommand(consent.Command{Action: consent.ActionRefuse, Subject: g.users[4]})
		g.checkEqual("after a first no", oneText(snapshotConn, "SELECT 1 FROM users"), "40001")
		oneText(snapshotConn, "ROLLBACK")
		g.proxy.Tap().RequireNoMarker(g)
	})
}

// "90-day gradual anonymization", by full days. Days 0 to 30 show everything, and days 31 to 60 show behaviour in
// aggregates only. From day 61 to 89 the identity is hidden, and from day 90 the row is anonymous. A new partnership
// stops the decay. seeds/001:163-168, 425.
func TestCirisE_DecayByFullDays(t *testing.T) {
	governedInModes(t, consent.Settings{}, func(g *governedWorld) {
		agent, user, laterUser := g.proxy.Agent(g, "agent", "ciris"), g.users[0], g.users[1]
		g.setClockOffset("- interval '40 days'") // records are in the order of time: the oldest first
		g.makePartner(laterUser)
		g.degrade(laterUser, consent.StreamAnonymous)
		g.setClockOffset("")
		g.awaitCatalog(agent)
		g.makePartner(user, "ESSENTIAL", "BEHAVIORAL")
		g.degrade(user, consent.StreamAnonymous)
		for _, c := range []struct {
			days, seconds int
			want          string
		}{
			{0, 0, essentialColumns + behavioralColumns},
			{30, 0, essentialColumns + behavioralColumns},
			{30, 86_390, essentialColumns + behavioralColumns},
			{31, 0, "user_id channel_id"},
			{60, 86_390, "user_id channel_id"},
			{61, 0, ""},
		} {
			g.moveDecayBack(user, c.days, c.seconds)
			g.checkEqual(fmt.Sprintf("day %d and %d s", c.days, c.seconds), g.visibleColumns(agent, user), c.want)
			g.checkEqual("the row", g.hasVisibleRows(agent, user), "t")
		}
		g.moveDecayBack(user, 60, 86_390)
		g.checkEqual("the user, day 60", oneText(agent, "SELECT count(*) FROM users WHERE user_id = '"+user+"'"), "1")
		g.moveDecayBack(user, 61, 0)
		g.checkEqual("the user, day 61", oneText(agent, "SELECT count(*) FROM users WHERE user_id = '"+user+"'"), "0")
		g.moveDecayBack(user, 89, 86_390)
		g.checkEqual("day 89", g.hasVisibleRows(agent, user), "t")
		g.moveDecayBack(user, 90, 0)
		g.checkEqual("day 90", g.hasVisibleRows(agent, user), "f")
		// A row that is recorded after the withdrawal is anonymous at once, whatever the day of the decay.
		g.moveDecayBack(user, 1, 0)
		g.Exec("INSERT INTO interactions (id, user_id, channel_id, channel_type, occurred_at) SELECT 900002, '" +
			user + "', 'api_9', 'api', statement_timestamp()")
		g.checkEqual("a new row", oneText(agent, "SELECT count(*) FROM interactions AS visible_i WHERE id = 900002"), "0")
		// A new partnership stops the decay: what was hidden by then stays hidden.
		g.Exec("UPDATE interactions SET occurred_at = '2026-01-02' WHERE user_id = '" + laterUser + "'")
		g.checkEqual("before a new partnership", g.visibleColumns(agent, laterUser), "user_id channel_id")
		g.makePartner(laterUser)
		g.Exec("INSERT INTO interactions (id, user_id, channel_id, channel_type, occurred_at) SELECT 900003, '" +
			laterUser + "', 'api_9', 'api', statement_timestamp()")
		g.checkEqual("the countdown", oneText(g.superConn,
			"SELECT decay_from IS NULL, decayed_days FROM pgconsent.consent_current WHERE subject = '"+laterUser+"'"), "t\t40")
		g.checkEqual("after a new partnership", g.visibleColumns(agent, laterUser), "user_id channel_id")
		g.checkEqual("a new row", oneText(agent, "SELECT channel_id FROM interactions WHERE id = 900003"), "api_9")
	})
}

// "Days 31-60: Behavioral data aggregated": values that are no longer visible count in groups of five.
// seeds/001:163-168.
func TestCirisE_DecayCountsInGroups(t *testing.T) {
	governedInModes(t, consent.Settings{}, func(g *governedWorld) {
		agent := g.proxy.Agent(g, "agent", "ciris")
		g.Exec("UPDATE interactions SET channel_type = 'api', trend_analysis = 'steady', interaction_frequency = 7")
		for _, user := range g.users[:5] {
			g.makePartner(user)
			g.degrade(user, consent.StreamAnonymous)
			g.moveDecayBack(user, 45, 0)
		}
		sumQuery := "SELECT sum(interaction_frequency) FROM interactions"
		want := oneText(g.superConn, sumQuery+" WHERE user_id = ANY ('{"+strings.Join(g.users[:5], ",")+"}')")
		g.checkEqual("one by one", oneText(agent, "SELECT count(interaction_frequency) FROM interactions AS visible_i"), "0")
		g.checkEqual("in groups, day 45", oneText(agent, sumQuery), want)
		g.moveDecayBack(g.users[0], 61, 0)
		g.checkEqual("four of them, and one at day 61", oneText(agent, "SELECT count(interaction_frequency) FROM interactions"), "")
		g.makePartner(g.users[5])
		g.checkEqual("a partner's own", oneText(agent,
			"SELECT count(*) = count(interaction_frequency) FROM interactions AS visible_i WHERE user_id = '"+g.users[5]+"'"), "t")
	})
}

// No statement of an agent renews a consent or changes the registry.
func TestCirisN_AgentsRenewNothing(t *testing.T) {
	governedInModes(t, consent.Settings{}, func(g *governedWorld) {
		agent, user := g.proxy.Agent(g, "agent", "ciris"), g.users[0]
		g.grantTemporary(user)
		before := oneText(g.superConn, "SELECT number, expires_at FROM pgconsent.consent_current")
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
		g.checkEqual("the record", oneText(g.superConn, "SELECT number, expires_at FROM pgconsent.consent_current"), before)
	})
}
