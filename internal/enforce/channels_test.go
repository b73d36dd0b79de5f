package enforce

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// Which notifications a session receives depends on the active policy, not on the policy that was active at its LISTEN.
func TestChannelsOfTheActivePolicy(t *testing.T) {
	w := start(t, nil)
	c := w.client("caregiver")
	hearer, ok := c.Decider.(verdict.ChannelFilter)
	if !ok {
		t.Fatal("a session does not say what it hears")
	}
	const listen, notify = "LISTEN news", "SELECT pg_notify($1, 'x')"
	if hearer.AllowsChannel("news") || c.Decide(t.Context(), listen, verdict.Extended).IsAllowed() {
		t.Error("a channel that the policy does not list is heard")
	}
	w.write(rules + "channels: [news]\n")
	if err := w.Reload(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the channel", func() bool { return hearer.AllowsChannel("news") })
	v := c.Decide(t.Context(), notify, verdict.Extended)
	if !c.Decide(t.Context(), listen, verdict.Extended).IsAllowed() || !v.IsAllowed() ||
		!c.CheckValues(v, [][]byte{[]byte("news")}).IsAllowed() || c.CheckValues(v, [][]byte{[]byte("other")}).IsAllowed() || hearer.AllowsChannel("other") {
		t.Error("the channel of the policy is not the one that is heard and notified")
	}
	w.write(rules)
	if err := w.Reload(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the channel", func() bool { return !hearer.AllowsChannel("news") })
	if now := c.Recheck(t.Context(), v); now.IsAllowed() && c.CheckValues(now, [][]byte{[]byte("news")}).IsAllowed() {
		t.Error("what was prepared before notifies a channel that is gone")
	}
}
