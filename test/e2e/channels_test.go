package e2e

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Agents can listen to the channels that the policy lists, and to no others.
func TestChannels(t *testing.T) {
	policy, err := os.ReadFile(policyFile(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	in := start(t, options{policy: string(policy) + "\nchannels: [news, Jobs]\n"})
	agent, owner := in.connectPgx(t, "caregiver"), in.superuserConn(t)
	ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
	defer cancel()
	exec := func(sql string, args ...any) string {
		_, err := agent.Exec(ctx, sql, args...)
		return codeOf(err)
	}
	for sql, want := range map[string]string{
		`LISTEN news; LISTEN "Jobs"`: "", "LISTEN jobs": "0A000", "LISTEN pgconsent_changed": "0A000", "NOTIFY other, 'x'": "0A000",
		"SELECT pg_notify('other', 'x')": "42501", "SELECT pg_notify('news', title) FROM memories": "42501", "UNLISTEN other": "",
	} {
		if got := exec(sql); got != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
	if got := exec("SELECT pg_notify($1, $2)", "other", "x"); got != "0A000" {
		t.Errorf("a parameter that is no channel: %q", got)
	}
	for _, sql := range []string{"NOTIFY hidden, 'no'", "NOTIFY news, 'from the owner'", "NOTIFY jobs, 'no'"} {
		if a := harness.Ask(owner, sql); a.Err != "" {
			t.Fatal(a.Err)
		}
	}
	nextNotice := func() string {
		n, err := agent.WaitForNotification(ctx)
		if err != nil {
			t.Fatal(err)
		}
		ownMark := map[bool]string{true: " of mine"}[n.PID == agent.PgConn().PID()]
		return n.Channel + ": " + n.Payload + ownMark
	}
	if got := nextNotice(); got != "news: from the owner" {
		t.Errorf("heard %q", got)
	}
	if got := exec("SELECT pg_notify($1, $2)", "Jobs", "mine"); got != "" {
		t.Errorf("a parameter that is a channel: %q", got)
	}
	if got := nextNotice(); got != "Jobs: mine of mine" {
		t.Errorf("heard %q", got)
	}
	// A NOTIFY that is rolled back is not sent. After UNLISTEN the agent gets no more notifications of the channel.
	for _, sql := range []string{"BEGIN; NOTIFY news, 'undone'; ROLLBACK", "UNLISTEN news", "NOTIFY news, 'unheard'", `NOTIFY "Jobs", 'last'`} {
		if got := exec(sql); got != "" {
			t.Errorf("%s: %q", sql, got)
		}
	}
	if got := nextNotice(); got != "Jobs: last of mine" {
		t.Errorf("heard %q", got)
	}
	shortCtx, cancelShort := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancelShort()
	if n, err := agent.WaitForNotification(shortCtx); err == nil {
		t.Errorf("heard %v besides", n)
	} else if !strings.Contains(err.Error(), "deadline") {
		t.Error(err)
	}
}
