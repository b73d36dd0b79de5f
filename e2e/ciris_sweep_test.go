package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/consent"
	"github.com/pgconsent/pgconsent/sweep"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/world"
)

// What becomes of the interactions of the world: an interaction outlives its user's row where it is anonymous.
const cirisLifecycle = `
    lifecycle:
      subject: user_id
      at: occurred_at
      columns:
        channel_id: { becomes: hash, after: 60 days }
        user_identification: { becomes: null, after: 60 days }
        session_management: { becomes: null, after: 60 days }
        communication_context: { becomes: null, after: 60 days }
        communication_style: { becomes: null, after: 60 days }
        response_preferences: { becomes: null, after: 60 days }
        interaction_frequency: { becomes: null, after: 60 days }
        error_patterns: { becomes: null, after: 60 days }
        feature_usage: { becomes: null, after: 60 days }
        performance_metrics: { becomes: null, after: 60 days }
        user_id: { becomes: hash }
`

func sweepable(t *testing.T, mode harness.Mode, s consent.Settings) *governed {
	t.Helper()
	g := govern(t, mode, s)
	w, err := world.Get("ciris")
	if err != nil {
		t.Fatal(err)
	}
	policy, err := w.File("policy_registry.yaml")
	if err != nil {
		t.Fatal(err)
	}
	g.Exec("ALTER TABLE interactions DROP CONSTRAINT interactions_user_id_fkey")
	d := harness.Database{Name: "ciris", DB: g.db, Policy: strings.TrimRight(string(policy), "\n") + cirisLifecycle, SearchPath: []string{"public"}}
	harness.Migrate(t, d, mode)
	g.proxy = harness.Serve(t, mode, []harness.Database{d}, []harness.Agent{{Name: "agent", Database: "ciris", Attributes: map[string]string{"categories": everyCategory}}})
	return g
}

func (g *governed) sweep() sweep.Report {
	g.Helper()
	out, err := (&sweep.Sweeper{Registry: g.registry}).Run(context.Background(), false)
	if err != nil || len(out.Failures) > 0 {
		g.Fatalf("%+v %v", out, err)
	}
	return out
}

func (g *governed) stored(user, what string) string {
	g.Helper()
	return told(g.super, "SELECT "+what+" FROM interactions WHERE user_id = '"+user+"'")
}

// TEMPORARY: "Full deletion after expiry" (seeds/001, line 30), "Nodes past expiry are deleted" (line 131); erasure and the
// user's wish: "Immediate Deletion" (lines 143 to 147). Nobody else's rows go, and a new interaction revives nothing.
func TestCirisF_TheSweeperDeletes(t *testing.T) {
	g := sweepable(t, harness.Doors, consent.Settings{})
	agent := g.proxy.Agent(g, "agent", "ciris")
	expired, revoked, erased, stays := g.users[0], g.users[1], g.users[2], g.users[3]
	g.clock("- interval '20 days'")
	g.temporary(expired)
	g.clock("")
	g.settle(agent)
	for _, user := range []string{revoked, erased, stays} {
		g.temporary(user)
	}
	g.do(consent.Command{Do: consent.Revoke, Subject: revoked})
	g.do(consent.Command{Do: consent.Erase, Subject: erased})
	g.Exec("UPDATE interactions SET occurred_at = now() - interval '8 days' WHERE user_id IN ('" + expired + "', '" + stays + "')")
	before := told(agent, "SELECT * FROM interactions ORDER BY id")
	g.temporary(expired) // who is back
	g.want("after an expiry", told(agent, "SELECT * FROM interactions ORDER BY id"), before)
	g.Exec("UPDATE interactions SET occurred_at = now() - interval '8 days' WHERE user_id = '" + expired + "'")
	g.Exec("UPDATE interactions SET occurred_at = now() - interval '8 hours' WHERE id = (SELECT min(id) FROM interactions WHERE user_id = '" + expired + "')")
	before = told(agent, "SELECT * FROM interactions ORDER BY id")
	out := g.sweep()
	g.want("what agents see", told(agent, "SELECT * FROM interactions ORDER BY id"), before)
	g.want("withdrawn", g.stored(revoked, "count(*)")+g.stored(erased, "count(*)"), "00")
	if out.Tables[0].Deleted == 0 || g.stored(stays, "count(*) > 0") != "t" {
		g.Errorf("%+v", out)
	}
	g.want("of the consent that ended, and of the new one", g.stored(expired, "count(*), min(occurred_at) > now() - interval '1 day'"), "1\tt")
	g.proxy.Tap().NoMarker(g)
}

// "Days 61-90: Identity markers removed", "Day 90: Complete anonymization" (seeds/001, lines 140 and 141): in the table too.
func TestCirisE_TheSweeperAnonymises(t *testing.T) {
	g := sweepable(t, harness.Doors, consent.Settings{})
	agent := g.proxy.Agent(g, "agent", "ciris")
	days := []int{90, 89, 61, 60, 30}
	g.clock("- interval '2400 hours'")
	for i := range days {
		g.partner(g.users[i])
		g.Exec("UPDATE interactions SET occurred_at = '2026-01-02' WHERE user_id = '" + g.users[i] + "'")
	}
	for i, d := range days {
		g.clock(fmt.Sprintf("- interval '%d hours'", 24*d))
		g.degrade(g.users[i], consent.Anonymous)
	}
	g.clock("")
	g.settle(agent)
	n := make([]string, len(days))
	for i := range days {
		n[i] = g.stored(g.users[i], "count(*)")
	}
	before := told(agent, "SELECT * FROM interactions ORDER BY id")
	g.sweep()
	g.want("what agents see", told(agent, "SELECT * FROM interactions ORDER BY id"), before)
	const identity = "count(*), count(user_identification), count(communication_style), count(*) FILTER (WHERE channel_id LIKE 'anonymous-%'), count(usage_statistics)"
	for i, want := range []string{"0\t0\t0\t0\t0", n[1] + "\t0\t0\t" + n[1] + "\t" + n[1], n[2] + "\t0\t0\t" + n[2] + "\t" + n[2], n[3] + "\t" + n[3] + "\t" + n[3] + "\t0\t" + n[3], n[4] + "\t" + n[4] + "\t" + n[4] + "\t0\t" + n[4]} {
		g.want(fmt.Sprintf("in the table, day %d", days[i]), g.stored(g.users[i], identity), want)
	}
	g.want("nobody's", told(g.super, "SELECT count(*), count(DISTINCT user_id) FROM interactions WHERE user_id LIKE 'anonymous-%'"), n[0]+"\t1")
}
