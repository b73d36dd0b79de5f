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

// checkReminders tests reminders over HTTP: who may report interactions of whom, and what comes back. The reported
// channels must not appear in the audit, the log or a table.
func (f *httpAPI) checkReminders(t *testing.T) {
	for _, contentType := range []string{"APPLICATION/JSON", "application/json; charset=\"UTF-8\"",
		"Application/Json;x=y"} { // RFC 9110, 8.3.1
		f.checkStatus(f.call("system", "POST", "/v1/air/interactions", map[string]any{"user_id": "u1", "channel_id": "cli_1"}, "Content-Type", contentType), 200, "")
	}
	ids := f.subjectsByStream()
	userID, anonymousID := ids["TEMPORARY"][0], ids["ANONYMOUS"][0]
	caller, channel := "subject:"+userID, "api_air_marker"
	sendMessage := func(sender, user string) httpAnswer {
		return f.call(sender, "POST", "/v1/air/interactions", map[string]any{"user_id": user, "channel_id": channel})
	}
	for i := range 19 {
		sender := []string{caller, "system"}[i%2] // both report on one session
		if a := f.checkStatus(sendMessage(sender, userID), 200, ""); !strings.Contains(a.Text, `"reminder":null`) {
			t.Errorf("message %d: %s", i+1, a.Text)
		}
	}
	if a := f.checkStatus(sendMessage("agent:companion", userID), 200, ""); !strings.Contains(a.Text, `"reminder":null`) {
		t.Errorf("an agent learns of what others reported: %s", a.Text)
	}
	if a := f.checkStatus(f.call("subject:"+userID, "POST", "/v1/air/interactions", map[string]any{"channel_id": channel}),
		200, ""); !strings.Contains(a.stringMember("reminder"), "You've sent 20 messages in the last 30 minutes.") {
		t.Errorf("message 20: %s", a.Text)
	}
	if a := f.checkStatus(sendMessage("system", userID), 200, ""); a.Body["reminder"] != nil {
		t.Errorf("reminded twice: %s", a.Text)
	}
	query := "/v1/air/session?user_id=" + userID + "&channel_id=" + channel
	a := f.checkStatus(f.call("system", "GET", query, nil), 200, "")
	if a.Body["reminder_sent"] != true || len(a.Body["message_timestamps"].([]any)) != 20 || a.stringMember("user_id") != userID {
		t.Errorf("the session is %s", a.Text)
	}
	// A request about another user gets the same bytes whether that user exists or not.
	texts := map[string]bool{}
	for _, user := range []string{anonymousID, "nobody"} {
		texts[f.checkStatus(sendMessage(caller, user), 403, "42501").Text] = true
		texts[f.checkStatus(f.call(caller, "GET", "/v1/air/session?user_id="+user+"&channel_id="+channel, nil), 403, "42501").Text] = true
		f.checkStatus(sendMessage("admin", user), 403, "42501")
		f.checkStatus(sendMessage("operator", user), 403, "42501")
	}
	if len(texts) != 1 {
		t.Errorf("refusals differ: %v", texts)
	}
	f.checkStatus(f.call("system", "POST", "/v1/air/interactions", map[string]any{"user_id": userID, "channel_id": "discord_1"}), 200, "")
	f.checkStatus(f.call("system", "GET", "/v1/air/session?user_id="+userID+"&channel_id=discord_1", nil), 404, "42704")
	// seeds/001:295-299, 306: the channel's type follows from its id, or is given.
	for _, c := range []struct {
		channel, givenType string
		isTracked          bool
	}{
		{"api-air", "", true}, {"cli_air", "", false}, {"cli-air", "", false}, {"discord_2", "api", true}, {
			"123456789012345678", "", false}, {"api_other", "discord", false}, {"web_air", "", false},
	} {
		body := map[string]any{"user_id": userID, "channel_id": c.channel}
		if c.givenType != "" {
			body["channel_type"] = c.givenType
		}
		f.checkStatus(f.call("system", "POST", "/v1/air/interactions", body), 200, "")
		a := f.call("system", "DELETE", "/v1/air/session?user_id="+userID+"&channel_id="+c.channel, nil)
		if (a.Status == 200) != c.isTracked || a.Status != 200 && a.Status != 404 {
			f.t.Errorf("%s, said to be of type %q: %d %s", c.channel, c.givenType, a.Status, a.Text)
		}
	}
	f.checkStatus(f.call("system", "POST", "/v1/air/interactions", map[string]any{"user_id": userID}), 422, "22023")
	f.checkStatus(f.call("system", "DELETE", query, nil), 200, "")
	f.checkStatus(f.call("system", "DELETE", query, nil), 404, "42704")
	f.checkStatus(f.call("system", "GET", query, nil), 404, "42704")

	// seeds/001:333-338.
	response, err := http.Get(f.demoRun.Access.HTTP + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	metricValues := map[string]string{}
	var name, value string
	for _, line := range strings.Split(string(body), "\n") {
		if n, _ := fmt.Sscan(line, &name, &value); n == 2 {
			metricValues[name] = value
		}
	}
	for name, want := range map[string]string{"consent_air_total_interactions": "24",
		"consent_air_reminders_sent": "1", "consent_air_message_triggered": "1", "consent_air_time_triggered": "0", "consent_air_active_sessions": "1"} {
		if metricValues[name] != want {
			t.Errorf("%s is %q, want %s", name, metricValues[name], want)
		}
	}
	if !strings.HasPrefix(metricValues["consent_air_reminder_rate_percent"], "4.16") { // 1 of 24
		t.Errorf("the rate is %q", metricValues["consent_air_reminder_rate_percent"])
	}
	// The channel's name is in no audit record, log or table.
	if err := filepath.WalkDir(f.demoRun.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // files may disappear meanwhile
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
