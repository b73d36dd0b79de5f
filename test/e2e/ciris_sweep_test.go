package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/registry/sweep"
	harness "github.com/pgconsent/pgconsent/test/instance"
)

func (g *governedWorld) sweep() sweep.Report {
	g.Helper()
	report, err := (&sweep.Sweeper{Registry: g.registry}).Run(context.Background(), false)
	if err != nil || len(report.Failures) > 0 {
		g.Fatalf("%+v %v", report, err)
	}
	return report
}

func (g *governedWorld) stored(user, description string) string {
	g.Helper()
	return oneText(g.super, "SELECT "+description+" FROM interactions WHERE user_id = '"+user+"'")
}

// TEMPORARY: "Full deletion after expiry", "Nodes past expiry are deleted"; erasure and the
// user's wish: "Immediate Deletion". Nobody else's rows go, and a new interaction revives nothing.
// seeds/001:23-28, 160, 170-174.
func TestCirisF_TheSweeperDeletes(t *testing.T) {
	g := startGoverned(t, harness.Auto, consent.Settings{})
	agent := g.proxy.Agent(g, "agent", "ciris")
	expired, revoked, erased, active := g.users[0], g.users[1], g.users[2], g.users[3]
	g.clock("- interval '20 days'")
	g.temporary(expired)
	g.clock("")
	g.settle(agent)
	for _, user := range []string{revoked, erased, active} {
		g.temporary(user)
	}
	g.do(consent.Command{Action: consent.ActionRevoke, Subject: revoked})
	g.do(consent.Command{Action: consent.ActionErase, Subject: erased})
	g.Exec("UPDATE interactions SET occurred_at = now() - interval '8 days' WHERE user_id IN ('" + expired + "', '" + active + "')")
	before := oneText(agent, "SELECT * FROM interactions ORDER BY id")
	g.temporary(expired) // a user with a new consent
	g.want("after an expiry", oneText(agent, "SELECT * FROM interactions ORDER BY id"), before)
	g.Exec("UPDATE interactions SET occurred_at = now() - interval '8 days' WHERE user_id = '" + expired + "'")
	g.Exec("UPDATE interactions SET occurred_at = now() - interval '8 hours' WHERE id = (SELECT min(id) FROM " +
		"interactions WHERE user_id = '" + expired + "')")
	before = oneText(agent, "SELECT * FROM interactions ORDER BY id")
	report := g.sweep()
	g.want("what agents see", oneText(agent, "SELECT * FROM interactions ORDER BY id"), before)
	g.want("withdrawn", g.stored(revoked, "count(*)")+g.stored(erased, "count(*)"), "00")
	if report.Tables[0].Deleted == 0 || g.stored(active, "count(*) > 0") != "t" {
		g.Errorf("%+v", report)
	}
	g.want("of the consent that ended, and of the new one", g.stored(expired, "count(*), min(occurred_at) > now() - interval '1 day'"), "1\tt")
	g.proxy.Tap().RequireNoMarker(g)
}

// "90-day gradual anonymization", in the table too, at each day on which something changes: what agents
// are answered is the same before and after a sweep, one by one and in groups.
// seeds/001:163-168.
func TestCirisE_TheSweeperAnonymises(t *testing.T) {
	g := startGoverned(t, harness.Auto, consent.Settings{})
	agent := g.proxy.Agent(g, "agent", "ciris")
	days := []int{90, 89, 61, 60, 31, 30}
	g.clock("- interval '2400 hours'")
	for i := range days {
		g.partner(g.users[i])
		g.Exec("UPDATE interactions SET occurred_at = '2026-01-02' WHERE user_id = '" + g.users[i] + "'")
	}
	for i, d := range days {
		g.clock(fmt.Sprintf("- interval '%d hours'", 24*d))
		g.degrade(g.users[i], consent.StreamAnonymous)
	}
	g.clock("")
	g.settle(agent)
	n := make([]string, len(days))
	for i := range days {
		n[i] = g.stored(g.users[i], "count(*)")
	}
	questions := []string{"SELECT * FROM interactions ORDER BY id", "SELECT * FROM users ORDER BY 1",
		"SELECT channel_type, count(*), sum(usage_statistics) FROM interactions GROUP BY 1 ORDER BY 1",
		"SELECT sum(interaction_frequency) FROM interactions"}
	ask := func() (out string) {
		for _, q := range questions {
			out += oneText(agent, q) + "\n"
		}
		return out
	}
	before := ask()
	g.sweep()
	g.want("what agents are answered", ask(), before)
	const what = "count(*), count(user_identification), count(communication_context), count(communication_style), " +
		"count(*) FILTER (WHERE channel_id LIKE 'anonymous-%'), count(usage_statistics)"
	swept := func(n string) string { return n + "\t0\t0\t0\t" + n + "\t" + n }
	unswept := func(n string) string { return n + "\t" + n + "\t" + n + "\t" + n + "\t0\t" + n }
	for i, want := range []string{"0\t0\t0\t0\t0\t0", swept(n[1]), swept(n[2]), unswept(n[3]), unswept(n[4]), unswept(n[5])} {
		g.want(fmt.Sprintf("in the table, day %d", days[i]), g.stored(g.users[i], what), want)
	}
	g.want("nobody's", oneText(g.super,
		"SELECT count(*), count(DISTINCT user_id), bool_and(anonymised), max(occurred_at) = '2026-01-01+00' FROM "+
			"interactions WHERE user_id LIKE 'anonymous-%'"), n[0]+"\t1\tt\tt")
	g.want("names of users", oneText(g.super,
		fmt.Sprintf("SELECT count(*), count(name) FROM users WHERE user_id IN ('%s', '%s', '%s')", g.users[0], g.users[1], g.users[2])), "0\t0")
	if report := g.sweep(); len(report.Tables) > 0 {
		g.Errorf("once more: %+v", report.Tables)
	}
	g.proxy.Tap().RequireNoMarker(g)
}

// Without ENABLE_DECAY_PROTOCOL all of it is at once, and a table that is swept counts as it did.
// seeds/001:230-233.
func TestCirisE_TheSweeperAnonymisesAtOnce(t *testing.T) {
	g := startGoverned(t, harness.Auto, consent.Settings{NoDecay: true})
	agent := g.proxy.Agent(g, "agent", "ciris")
	for _, user := range g.users[:8] {
		g.partner(user)
		g.degrade(user, consent.StreamAnonymous)
	}
	const groups = "SELECT channel_type, count(*), sum(usage_statistics) FROM interactions GROUP BY 1 ORDER BY 1"
	before := oneText(agent, groups)
	g.want("one by one", oneText(agent, "SELECT count(*) FROM interactions AS visible_i"), "0")
	g.sweep()
	g.want("in groups", oneText(agent, groups), before)
	g.want("of somebody", oneText(g.super, "SELECT count(*) FROM interactions WHERE user_id IN ('"+strings.Join(g.users[:8], "', '")+"')"), "0")
	g.want("nobody's", oneText(g.super, "SELECT count(DISTINCT user_id), count(user_identification) FROM interactions WHERE anonymised"), "8\t0")
	if !strings.Contains(before, "api") {
		g.Errorf("no group counts: %s", before)
	}
}
