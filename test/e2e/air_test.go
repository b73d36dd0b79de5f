package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/registry/air"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

const airPolicy = `version: 1
attributes:
  user:    { type: text, source: credential }
  channel: { type: text, source: set, optional: true, within: { table: channels, column: id, rows: [ own: { column: owner, is: user } ] } }
air: { user: user, channel: channel }
tables:
  channels: { rows: [ own: { column: owner, is: user } ] }
`

// A reminder comes as a notice, once per connection, to the agent whose session names the user and the channel. All
// other bytes of that session and of others are unchanged.
func TestReminderIsANotice(t *testing.T) {
	tier.All(t)
	db := pgtest.Database(t)
	if _, err := db.Connect(t, "postgres").Exec(context.Background(),
		"CREATE TABLE channels (id text PRIMARY KEY, owner text NOT NULL); INSERT INTO channels VALUES ('api_1', "+
			"'u1'), ('api_2', 'u1'), ('api_3', 'u2')"); err != nil {
		t.Fatal(err)
	}
	tracker := air.New(air.Config{MaxMessages: 3, Reminder: "rest, {messages}"})
	d := harness.Database{Name: "talks", DB: db, Policy: airPolicy, SearchPath: []string{"public"}, AIR: tracker}
	harness.Install(t, d, harness.Both)
	proxy := harness.Serve(t, harness.Both, []harness.Database{d}, []harness.Agent{
		{Name: "one", Database: "talks", Attributes: map[string]string{"user": "u1"}},
		{Name: "two", Database: "talks", Attributes: map[string]string{"user": "u2"}},
	})
	sendMessage := func(recordedBy, user, channel string, n int) {
		t.Helper()
		for range n {
			if _, err := tracker.Track(time.Now(), air.SessionKey{Database: "talks", RecordedBy: recordedBy, User: user, Channel: channel},
				""); err != nil {
				t.Fatal(err)
			}
		}
	}
	sameChannel, otherChannel, otherUser, withoutChannel := harness.Connect(t, proxy.DSN("one", "talks")), harness.Connect(t,
		proxy.DSN("one", "talks")), harness.Connect(t, proxy.DSN("two", "talks")), harness.Connect(t, proxy.DSN("one", "talks"))
	wantCode(t, sameChannel, "SET pgconsent.channel = 'api_1'", "")
	wantCode(t, otherChannel, "SET pgconsent.channel = 'api_2'", "")
	wantCode(t, otherUser, "SET pgconsent.channel = 'api_3'", "")
	wantCode(t, otherUser, "SET pgconsent.channel = 'api_1'", "42501") // the user may not name this channel
	conns := []*pgconn.PgConn{sameChannel, otherChannel, otherUser, withoutChannel}
	checkNotices := func(c *pgconn.PgConn, sql, code string, notices ...string) {
		t.Helper()
		if got := wantCode(t, c, sql, code).Notices; fmt.Sprint(got) != fmt.Sprint(notices) {
			t.Errorf("%s: notices %q, want %q", sql, got, notices)
		}
	}
	for _, c := range conns {
		checkNotices(c, "SELECT id FROM channels", "")
	}
	sendMessage("", "u1", "api_1", 2)
	sendMessage("", "u2", "api_1", 3) // another user's session in that channel
	for _, c := range conns {
		checkNotices(c, "SELECT id FROM channels", "")
	}
	sendMessage("", "u1", "api_1", 1)
	const notice = "NOTICE 00000 rest, 3 "
	for _, c := range conns[1:] {
		checkNotices(c, "SELECT id FROM channels", "")
	}
	checkNotices(sameChannel, "SELECT id FROM channels", "", notice)
	for range 3 {
		checkNotices(sameChannel, "SELECT id FROM channels", "")
	}
	sendMessage("", "u1", "api_1", 5)
	checkNotices(sameChannel, "SELECT id FROM channels", "")

	// Interactions that the agent itself records lead to notices for that agent alone. The notice also comes with a
	// refused statement.
	sendMessage("one", "u1", "api_2", 3)
	checkNotices(otherUser, "SELECT id FROM channels", "")
	checkNotices(otherChannel, "SELECT * FROM nothing", "42501", notice)
	sendMessage("two", "u1", "api_1", 3)
	checkNotices(sameChannel, "SELECT id FROM channels", "")

	// The notice also comes inside a transaction, by the extended protocol, and on a connection that is opened later.
	cfg, err := pgx.ParseConfig(proxy.DSN("one", "talks") + "&options=-c%20pgconsent.channel%3Dapi_1")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { got = append(got, n.Message) }
	ctx := context.Background()
	laterConn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer laterConn.Close(ctx)
	tx, err := laterConn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var n int
		if err := tx.QueryRow(ctx, "SELECT count(*) FROM channels WHERE owner = $1", "u1").Scan(&n); err != nil || n != 2 {
			t.Errorf("%d, %v", n, err)
		}
	}
	if err := tx.Commit(ctx); err != nil || fmt.Sprint(got) != "[rest, 3]" {
		t.Errorf("%q, %v", got, err)
	}
}
