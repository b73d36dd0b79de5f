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

func (g *governedWorld) runSweep() sweep.Report {
	g.Helper()
	report, err := (&sweep.Sweeper{Registry: g.registry}).Run(context.Background(), false)
	if err != nil || len(report.Failures) > 0 {
		g.Fatalf("%+v %v", report, err)
	}
	return report
}

func (g *governedWorld) storedValues(user, columns string) string {
	g.Helper()
	return oneText(g.superConn, "SELECT "+columns+" FROM interactions WHERE user_id = '"+user+"'")
}

// TEMPORARY: "Full deletion after expiry", "Nodes past expiry are deleted". Erasure and the user's wish: "Immediate
// Deletion". The sweeper deletes nobody else's rows, and a later interaction does not restore deleted rows.
// seeds/001:23-28, 160, 170-174.
func TestCirisF_TheSweeperDeletes(t *testing.T) {
	g := startGoverned(t, harness.Auto, consent.Settings{})
	agent := g.proxy.Agent(g, "agent", "ciris")
	expiredUser, revokedUser, erasedUser, activeUser := g.users[0], g.users[1], g.users[2], g.users[3]
	g.setClockOffset("- interval '20 days'")
	g.grantTemporary(expiredUser)
	g.setClockOffset("")
	g.awaitCatalog(agent)
	for _, user := range []string{revokedUser, erasedUser, activeUser} {
		g.grantTemporary(user)
	}
	g.executeCommand(consent.Command{Action: consent.ActionRevoke, Subject: revokedUser})
	g.executeCommand(consent.Command{Action: consent.ActionErase, Subject: erasedUser})
	g.Exec("UPDATE interactions SET occurred_at = now() - interval '8 days' WHERE user_id IN ('" + expiredUser + "', '" + activeUser + "')")
	answerBefore := oneText(agent, "SELECT * FROM interactions ORDER BY id")
	g.grantTemporary(expiredUser) // a user with a new consent
	g.checkEqual("after an expiry", oneText(agent, "SELECT * FROM interactions ORDER BY id"), answerBefore)
	g.Exec("UPDATE interactions SET occurred_at = now() - interval '8 days' WHERE user_id = '" + expiredUser + "'")
	g.Exec("UPDATE interactions SET occurred_at = now() - interval '8 hours' WHERE id = (SELECT min(id) FROM " +
		"interactions WHERE user_id = '" + expiredUser + "')")
	answerBefore = oneText(agent, "SELECT * FROM interactions ORDER BY id")
	report := g.runSweep()
	g.checkEqual("what agents see", oneText(agent, "SELECT * FROM interactions ORDER BY id"), answerBefore)
	g.checkEqual("withdrawn", g.storedValues(revokedUser, "count(*)")+g.storedValues(erasedUser, "count(*)"), "00")
	if report.Tables[0].Deleted == 0 || g.storedValues(activeUser, "count(*) > 0") != "t" {
		g.Errorf("%+v", report)
	}
	g.checkEqual("of the consent that ended, and of the new one", g.storedValues(expiredUser,
		"count(*), min(occurred_at) > now() - interval '1 day'"), "1\tt")
	g.proxy.Tap().RequireNoMarker(g)
}

// "90-day gradual anonymization", also in the stored rows, at each day on which something changes. Agents get the same
// answers before and after a sweep, for single rows and for groups.
// seeds/001:163-168.
func TestCirisE_TheSweeperAnonymises(t *testing.T) {
	g := startGoverned(t, harness.Auto, consent.Settings{})
	agent := g.proxy.Agent(g, "agent", "ciris")
	days := []int{90, 89, 61, 60, 31, 30}
	g.setClockOffset("- interval '2400 hours'")
	for i := range days {
		g.makePartner(g.users[i])
		g.Exec("UPDATE interactions SET occurred_at = '2026-01-02' WHERE user_id = '" + g.users[i] + "'")
	}
	for i, d := range days {
		g.setClockOffset(fmt.Sprintf("- interval '%d hours'", 24*d))
		g.degrade(g.users[i], consent.StreamAnonymous)
	}
	g.setClockOffset("")
	g.awaitCatalog(agent)
	n := make([]string, len(days))
	for i := range days {
		n[i] = g.storedValues(g.users[i], "count(*)")
	}
	questions := []string{"SELECT * FROM interactions ORDER BY id", "SELECT * FROM users ORDER BY 1",
		"SELECT channel_type, count(*), sum(usage_statistics) FROM interactions GROUP BY 1 ORDER BY 1",
		"SELECT sum(interaction_frequency) FROM interactions"}
	askAll := func() (out string) {
		for _, q := range questions {
			out += oneText(agent, q) + "\n"
		}
		return out
	}
	answersBefore := askAll()
	g.runSweep()
	g.checkEqual("what agents are answered", askAll(), answersBefore)
	const countColumns = "count(*), count(user_identification), count(communication_context), count(communication_style), " +
		"count(*) FILTER (WHERE channel_id LIKE 'anonymous-%'), count(usage_statistics)"
	sweptCounts := func(n string) string { return n + "\t0\t0\t0\t" + n + "\t" + n }
	unsweptCounts := func(n string) string { return n + "\t" + n + "\t" + n + "\t" + n + "\t0\t" + n }
	for i, want := range []string{"0\t0\t0\t0\t0\t0", sweptCounts(n[1]), sweptCounts(n[2]), unsweptCounts(n[3]), unsweptCounts(n[4]),
		unsweptCounts(n[5])} {
		g.checkEqual(fmt.Sprintf("in the table, day %d", days[i]), g.storedValues(g.users[i], countColumns), want)
	}
	g.checkEqual("nobody's", oneText(g.superConn,
		"SELECT count(*), count(DISTINCT user_id), bool_and(anonymised), max(occurred_at) = '2026-01-01+00' FROM "+
			"interactions WHERE user_id LIKE 'anonymous-%'"), n[0]+"\t1\tt\tt")
	g.checkEqual("names of users", oneText(g.superConn,
		fmt.Sprintf("SELECT count(*), count(name) FROM users WHERE user_id IN ('%s', '%s', '%s')", g.users[0], g.users[1], g.users[2])), "0\t0")
	if report := g.runSweep(); len(report.Tables) > 0 {
		g.Errorf("once more: %+v", report.Tables)
	}
	g.proxy.Tap().RequireNoMarker(g)
}

// Without ENABLE_DECAY_PROTOCOL the sweeper anonymises everything at once, and aggregates over the swept table stay the
// same.
// seeds/001:230-233.
func TestCirisE_TheSweeperAnonymisesAtOnce(t *testing.T) {
	g := startGoverned(t, harness.Auto, consent.Settings{NoDecay: true})
	agent := g.proxy.Agent(g, "agent", "ciris")
	for _, user := range g.users[:8] {
		g.makePartner(user)
		g.degrade(user, consent.StreamAnonymous)
	}
	const groupsQuery = "SELECT channel_type, count(*), sum(usage_statistics) FROM interactions GROUP BY 1 ORDER BY 1"
	before := oneText(agent, groupsQuery)
	g.checkEqual("one by one", oneText(agent, "SELECT count(*) FROM interactions AS visible_i"), "0")
	g.runSweep()
	g.checkEqual("in groups", oneText(agent, groupsQuery), before)
	g.checkEqual("of somebody", oneText(g.superConn, "SELECT count(*) FROM interactions WHERE user_id IN ('"+strings.Join(g.users[:8], "', '")+"')"), "0")
	g.checkEqual("nobody's", oneText(g.superConn, "SELECT count(DISTINCT user_id), count(user_identification) FROM interactions WHERE anonymised"), "8\t0")
	if !strings.Contains(before, "api") {
		g.Errorf("no group counts: %s", before)
	}
}
