package e2e

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	harness "github.com/pgconsent/pgconsent/test/instance"
)

// Reminders over HTTP: who may tell of whom, what comes back, and that nothing of it is anywhere else.
func (f *httpFace) air(t *testing.T) {
	for _, kind := range []string{"APPLICATION/JSON", "application/json; charset=\"UTF-8\"", "Application/Json;x=y"} { // RFC 9110, 8.3.1
		f.want(f.call("system", "POST", "/v1/air/interactions", map[string]any{"user_id": "u1", "channel_id": "cli_1"}, "Content-Type", kind), 200, "")
	}
	ids := f.subjects()
	userID, other := ids["TEMPORARY"][0], ids["ANONYMOUS"][0]
	caller, channel := "subject:"+userID, "api_air_marker"
	sendMessage := func(sender, user string) httpAnswer {
		return f.call(sender, "POST", "/v1/air/interactions", map[string]any{"user_id": user, "channel_id": channel})
	}
	for i := range 19 {
		sender := []string{caller, "system"}[i%2] // both report on one session
		if a := f.want(sendMessage(sender, userID), 200, ""); !strings.Contains(a.Text, `"reminder":null`) {
			t.Errorf("message %d: %s", i+1, a.Text)
		}
	}
	if a := f.want(sendMessage("agent:companion", userID), 200, ""); !strings.Contains(a.Text, `"reminder":null`) {
		t.Errorf("an agent learns of what others reported: %s", a.Text)
	}
	if a := f.want(f.call("subject:"+userID, "POST", "/v1/air/interactions", map[string]any{"channel_id": channel}),
		200, ""); !strings.Contains(a.str("reminder"), "You've sent 20 messages in the last 30 minutes.") {
		t.Errorf("message 20: %s", a.Text)
	}
	if a := f.want(sendMessage("system", userID), 200, ""); a.Body["reminder"] != nil {
		t.Errorf("reminded twice: %s", a.Text)
	}
	query := "/v1/air/session?user_id=" + userID + "&channel_id=" + channel
	a := f.want(f.call("system", "GET", query, nil), 200, "")
	if a.Body["reminder_sent"] != true || len(a.Body["message_timestamps"].([]any)) != 20 || a.str("user_id") != userID {
		t.Errorf("the session is %s", a.Text)
	}
	// Another user: the same bytes whether there is one or not.
	texts := map[string]bool{}
	for _, user := range []string{other, "nobody"} {
		texts[f.want(sendMessage(caller, user), 403, "42501").Text] = true
		texts[f.want(f.call(caller, "GET", "/v1/air/session?user_id="+user+"&channel_id="+channel, nil), 403, "42501").Text] = true
		f.want(sendMessage("admin", user), 403, "42501")
		f.want(sendMessage("operator", user), 403, "42501")
	}
	if len(texts) != 1 {
		t.Errorf("refusals differ: %v", texts)
	}
	f.want(f.call("system", "POST", "/v1/air/interactions", map[string]any{"user_id": userID, "channel_id": "discord_1"}), 200, "")
	f.want(f.call("system", "GET", "/v1/air/session?user_id="+userID+"&channel_id=discord_1", nil), 404, "42704")
	// seeds/001:295-299, 306: a channel is of the type that its id tells, or that is given.
	for _, c := range []struct {
		channel, given string
		tracked        bool
	}{
		{"api-air", "", true}, {"cli_air", "", false}, {"cli-air", "", false}, {"discord_2", "api", true}, {
			"123456789012345678", "", false}, {"api_other", "discord", false}, {"web_air", "", false},
	} {
		body := map[string]any{"user_id": userID, "channel_id": c.channel}
		if c.given != "" {
			body["channel_type"] = c.given
		}
		f.want(f.call("system", "POST", "/v1/air/interactions", body), 200, "")
		a := f.call("system", "DELETE", "/v1/air/session?user_id="+userID+"&channel_id="+c.channel, nil)
		if (a.Status == 200) != c.tracked || a.Status != 200 && a.Status != 404 {
			f.t.Errorf("%s, said to be of type %q: %d %s", c.channel, c.given, a.Status, a.Text)
		}
	}
	f.want(f.call("system", "POST", "/v1/air/interactions", map[string]any{"user_id": userID}), 422, "22023")
	f.want(f.call("system", "DELETE", query, nil), 200, "")
	f.want(f.call("system", "DELETE", query, nil), 404, "42704")
	f.want(f.call("system", "GET", query, nil), 404, "42704")

	// seeds/001:333-338.
	response, err := http.Get(f.run.Access.HTTP + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]string{}
	var name, value string
	for _, line := range strings.Split(string(body), "\n") {
		if n, _ := fmt.Sscan(line, &name, &value); n == 2 {
			counted[name] = value
		}
	}
	for name, want := range map[string]string{"consent_air_total_interactions": "24",
		"consent_air_reminders_sent": "1", "consent_air_message_triggered": "1", "consent_air_time_triggered": "0", "consent_air_active_sessions": "1"} {
		if counted[name] != want {
			t.Errorf("%s is %q, want %s", name, counted[name], want)
		}
	}
	if !strings.HasPrefix(counted["consent_air_reminder_rate_percent"], "4.16") { // 1 of 24
		t.Errorf("the rate is %q", counted["consent_air_reminder_rate_percent"])
	}
	// Never in audit, log or table.
	if err := filepath.WalkDir(f.run.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // files that disappear meanwhile
		}
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(channel)) {
			t.Errorf("%s has the channel", path)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	super := harness.Connect(t, fmt.Sprintf("host=%s port=%d user=postgres dbname=pgconsent_demo_ciris", pgtest.SocketDir(), pgtest.Port()))
	tables := splitLines(oneText(super,
		"SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"))
	if len(tables) < 10 {
		t.Errorf("of the tables only %q are seen", tables)
	}
	for _, table := range tables {
		if got := oneText(super, "SELECT count(*) FROM "+table+" AS x WHERE x::text LIKE '%"+channel+"%'"); got != "0" {
			t.Errorf("%s of %s have the channel", got, table)
		}
	}
}
