package air

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/test/property"
	"github.com/pgconsent/pgconsent/test/tier"
)

// These tests play the examples of seeds/001; each test names its lines.

var startTime = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

var sessionKey = SessionKey{Database: "app", User: "u1", Channel: "api_1"}

// conversation is the messages of one user in one channel.
type conversation struct {
	t                *testing.T
	tracker          *Tracker
	key              SessionKey
	now              time.Time
	remindedMessages []int // the numbers of the messages, from 1 on, that were answered with the reminder
	elapsed          []time.Duration
	text             string
	sentCount        int
}

func talk(t *testing.T, c Config) *conversation {
	return &conversation{t: t, tracker: New(c), key: sessionKey, now: startTime}
}

// send sends n messages, the first one now, and waits for pause before each of the others.
func (c *conversation) send(n int, pause time.Duration) {
	c.t.Helper()
	for i := range n {
		if i > 0 {
			c.now = c.now.Add(pause)
		}
		c.sentCount++
		text, err := c.tracker.Track(c.now, c.key, "")
		if err != nil {
			c.t.Fatal(err)
		}
		if text != "" {
			c.text = text
			c.remindedMessages = append(c.remindedMessages, c.sentCount)
			c.elapsed = append(c.elapsed, c.now.Sub(startTime))
		}
	}
}

func (c *conversation) wait(d time.Duration) { c.now = c.now.Add(d) }

// want checks at which messages the reminder came, and how often each trigger caused it.
func (c *conversation) want(byTime, byMessages uint64, messages ...int) {
	c.t.Helper()
	counts := c.tracker.Counts(c.now)
	if fmt.Sprint(c.remindedMessages) != fmt.Sprint(messages) || counts.RemindersByTime != byTime || counts.RemindersByMessages != byMessages {
		c.t.Errorf("reminded at messages %v (%v), %d by time and %d by messages; want %v, %d and %d", c.remindedMessages,
			c.elapsed, counts.RemindersByTime, counts.RemindersByMessages, messages, byTime, byMessages)
	}
}

// "1 message/minute for 30 minutes = TRIGGER". The reminder comes with the 20th message.
// seeds/001:249-253.
func TestOneMessageAMinute(t *testing.T) {
	c := talk(t, Config{})
	c.send(31, time.Minute)
	c.want(0, 1, 20)
	c = talk(t, Config{MaxMessages: 100}) // only the time can trigger it
	c.send(31, time.Minute)
	c.want(1, 0, 31)
}

// The reminder comes when 30 minutes have passed from the session's start to the current message.
// seeds/001:249-253.
func TestTimeThreshold(t *testing.T) {
	c := talk(t, Config{})
	c.send(2, 29*time.Minute+59*time.Second)
	c.want(0, 0)
	c.wait(time.Second)
	c.send(1, 0)
	c.want(1, 0, 3)
}

// After more than 30 idle minutes a new session begins; after exactly 30 it does not.
// seeds/001:249-253, 282-287.
func TestSessionReset(t *testing.T) {
	c := talk(t, Config{})
	c.send(2, 30*time.Minute+time.Nanosecond)
	c.send(1, 0)
	c.want(0, 0)
	if s, ok := c.tracker.Session(c.now, sessionKey); !ok || !s.StartedAt.Equal(c.now) || len(s.MessageTimes) != 2 {
		t.Errorf("the session is %+v, %v", s, ok)
	}
	c = talk(t, Config{})
	c.send(2, 30*time.Minute)
	c.want(1, 0, 2)
}

// "20 messages in 5 minutes = TRIGGER", and Example 2: the reminder comes with message 20.
// seeds/001:255-259, 350-354.
func TestExample2IntensiveInteraction(t *testing.T) {
	c := talk(t, Config{})
	c.send(20, 5*time.Minute/19)
	c.want(0, 1, 20)
}

// "19 messages, wait 40 minutes, 19 more = NO TRIGGER", and Example 1: twice 19 messages in 10 minutes: no reminder.
// seeds/001:255-259, 342-348.
func TestExample1HealthySpread(t *testing.T) {
	c := talk(t, Config{})
	c.send(19, 10*time.Minute/18)
	c.wait(40 * time.Minute)
	c.send(19, 10*time.Minute/18)
	c.want(0, 0)
	if c.sentCount != 38 {
		t.Errorf("%d messages were sent", c.sentCount)
	}
}

// Example 3: one message every 2 minutes for 30 minutes; the reminder comes with the message at minute 30.
// seeds/001:356-360.
func TestExample3ContinuousInteraction(t *testing.T) {
	c := talk(t, Config{})
	c.send(15, 2*time.Minute)
	c.want(0, 0)
	c.wait(2 * time.Minute)
	c.send(1, 0)
	c.want(1, 0, 16)
	if c.elapsed[0] != 30*time.Minute || !strings.Contains(c.text, "You've sent 15 messages in the last 30 minutes.") {
		t.Errorf("at %v: %s", c.elapsed, c.text)
	}
}

// Example 4: one message every 6 minutes for 2 hours; the reminder comes once, at 30 minutes.
// seeds/001:362-367.
func TestExample4SpreadOutMessages(t *testing.T) {
	c := talk(t, Config{})
	c.send(20, 6*time.Minute)
	c.want(1, 0, 6)
	if c.elapsed[0] != 30*time.Minute {
		t.Errorf("reminded after %v", c.elapsed)
	}
}

// The reminder comes at 20 messages within the last 30 minutes; older messages do not count.
// seeds/001:255-259.
func TestSlidingWindow(t *testing.T) {
	longReminderConfig := Config{ReminderAfter: 10 * time.Hour}
	c := talk(t, longReminderConfig)
	c.send(200, 30*time.Minute/19+time.Second) // never more than 19 in 30 minutes
	c.want(0, 0)
	c = talk(t, longReminderConfig)
	c.send(10, 2*time.Minute)
	c.wait(13 * time.Minute) // the first messages are 31 minutes old; 9 are within 30 minutes
	c.send(10, time.Second)
	c.want(0, 0)
	c.send(1, 0)
	c.want(0, 1, 21)
}

// The reminder comes once in a session. In the next session it comes again.
// seeds/001:285-286, 289-293.
func TestReminderOncePerSession(t *testing.T) {
	c := talk(t, Config{})
	c.send(100, 10*time.Second)
	c.want(0, 1, 20)
	c.wait(31 * time.Minute)
	c.send(20, 10*time.Second)
	c.want(0, 2, 20, 120)
}

// The reminder's text is that of the source, with the session's duration and number of messages.
// seeds/001:261-278.
func TestReminderContent(t *testing.T) {
	c := talk(t, Config{})
	c.send(20, time.Second)
	want := "🕒 **Mindful Interaction Reminder**\n\n" +
		"We've been chatting for a while now. I want to remind you:\n\n" +
		"• I'm an AI assistant, not a friend or companion\n" +
		"• Taking breaks from AI interactions is healthy\n" +
		"• Real human connections are irreplaceable\n\n" +
		"You've sent 20 messages in the last 30 minutes. Consider taking\n" +
		"a break, stepping away from your screen, or connecting with\n" +
		"people in your life.\n\n" +
		"I'll be here when you need me, but your wellbeing comes first."
	if c.text != want {
		t.Errorf("the text is\n%s", c.text)
	}
}

// A text from the configuration gets these numbers at its placeholders.
// seeds/001:387-399.
func TestReminderConfigured(t *testing.T) {
	c := talk(t, Config{MaxMessages: 3, Window: 10 * time.Minute, Reminder: "{messages} in {minutes}, {messages}"})
	c.send(3, time.Second)
	if c.text != "3 in 10, 3" {
		t.Errorf("the text is %q", c.text)
	}
}

// The kind of a channel follows from its id, unless the caller gives it.
// seeds/001:242-245, 295-299, 407-411.
func TestChannelTypes(t *testing.T) {
	for channel, want := range map[string]string{
		"api_1": "api", "api-1": "api", "api_": "api", "apis": "", "API_1": "", "web_1": "",
		"discord_1": "discord", "discord-1": "", "cli_1": "cli", "cli-1": "cli",
		strings.Repeat("1", 16): "", strings.Repeat("1", 17): "discord", strings.Repeat("9", 18): "discord",
		strings.Repeat("1", 19): "discord", strings.Repeat("1", 20): "", strings.Repeat("1", 17) + "x": "",
		strings.Repeat("١", 9): "", // digits that are not ASCII, 18 bytes
	} {
		if got := ChannelType(channel); got != want {
			t.Errorf("%q is of type %q, want %q", channel, got, want)
		}
	}
	for _, c := range []struct {
		channel, givenType string
		tracked            bool
	}{
		{"api_1", "", true}, {"api_1", "discord", false}, {"discord_1", "", false}, {"discord_1", "api", true},
		{"cli_1", "", false}, {"whatever", "", false}, {"whatever", "api", true}, {"api_1", "unheard-of", false},
	} {
		tracker := New(Config{MaxMessages: 1})
		text, err := tracker.Track(startTime, SessionKey{User: "u", Channel: c.channel}, c.givenType)
		if err != nil || (text != "") != c.tracked || (tracker.Counts(startTime).Interactions == 1) != c.tracked {
			t.Errorf("%q of type %q: %q, %v", c.channel, c.givenType, text, err)
		}
	}
}

// A session is removed after an hour without messages, even if no other message arrives.
// seeds/001:282-287, 378-383, 390.
func TestCleanup(t *testing.T) {
	c := talk(t, Config{})
	c.send(5, time.Minute)
	c.wait(time.Hour - time.Nanosecond)
	c.tracker.RemoveIdleSessions(c.now)
	if _, ok := c.tracker.Session(c.now, sessionKey); !ok {
		t.Error("the session is gone before its hour")
	}
	c.wait(time.Nanosecond)
	if _, ok := c.tracker.Session(c.now, sessionKey); ok {
		t.Error("the session is there after its hour")
	}
	c.tracker.RemoveIdleSessions(c.now)
	if n := len(c.tracker.slotByDigest); n != 0 || len(c.tracker.sessions.pages) != 0 {
		t.Errorf("%d sessions and %d pages are held", n, len(c.tracker.sessions.pages))
	}
}

// Session returns the state of a session (get_session_info), and EndSession ends it (end_session).
// seeds/001:290-293, 378-383.
func TestSessionInfoAndEnd(t *testing.T) {
	c := talk(t, Config{})
	c.send(3, time.Minute)
	s, ok := c.tracker.Session(c.now, sessionKey)
	if !ok || !s.StartedAt.Equal(startTime) || !s.LastInteraction.Equal(startTime.Add(2*time.Minute)) || s.IsReminded ||
		len(s.MessageTimes) != 3 || !s.MessageTimes[0].Equal(startTime) || !s.MessageTimes[2].Equal(startTime.Add(2*time.Minute)) {
		t.Errorf("the session is %+v, %v", s, ok)
	}
	if !c.tracker.EndSession(c.now, sessionKey) || c.tracker.EndSession(c.now, sessionKey) {
		t.Error("a session ends once")
	}
	if _, ok := c.tracker.Session(c.now, sessionKey); ok {
		t.Error("a session that was ended is there")
	}
	c.send(19, time.Second)
	c.want(0, 0)
	c.send(1, 0)
	c.want(0, 1, 23)
	if s, _ := c.tracker.Session(c.now, sessionKey); !s.IsReminded {
		t.Error("the session does not know that it was reminded")
	}
}

// The counters of reminders: each reminder counts for one trigger only, for the time if both apply.
// seeds/001:330-338, 378-383.
func TestCounts(t *testing.T) {
	c := talk(t, Config{MaxMessages: 2, ReminderAfter: time.Minute})
	c.send(2, time.Minute) // it reaches both thresholds at once
	c.want(1, 0, 2)
	c.key.User = "u2"
	c.send(2, time.Second)
	c.key.Channel = "discord_1"
	c.send(5, time.Second)
	got := c.tracker.Counts(c.now)
	if want := (Counts{Interactions: 4, RemindersByTime: 1, RemindersByMessages: 1, ActiveSessions: 2}); got != want || got.Reminders() != 2 {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

// Each user and channel has separate sessions. Messages are not added up over channels, users, databases
// or callers that record them.
// seeds/001:401-405, 407-411.
func TestSessionsAreSeparate(t *testing.T) {
	tracker := New(Config{})
	keys := []SessionKey{
		sessionKey, {Database: "app", User: "u1", Channel: "api_2"}, {Database: "app", User: "u2", Channel: "api_1"},
		{Database: "other", User: "u1", Channel: "api_1"},
		{Database: "app", RecordedBy: "assistant", User: "u1", Channel: "api_1"},
		{Database: "ap", User: "pu1", Channel: "api_1"}, {Database: "app", User: "u1a", Channel: "pi_1"},
	}
	for range 19 {
		for _, k := range keys {
			if text, err := tracker.Track(startTime, k, APIChannel); text != "" || err != nil {
				t.Fatalf("%+v: %q, %v", k, text, err)
			}
		}
	}
	if text, _ := tracker.Track(startTime, keys[4], ""); text == "" {
		t.Error("an agent's own recording has no reminder")
	}
	if text, _ := tracker.ReminderOfSession(startTime, sessionKey); text != "" {
		t.Error("the reminder of one session is another's")
	}
}

func TestIDs(t *testing.T) {
	tracker := New(Config{})
	for _, k := range []SessionKey{
		{Channel: "api_1"}, {User: "u"}, {User: "u\x00", Channel: "api_1"}, {User: "u\xff", Channel: "api_1"},
		{User: "u", Channel: "api_" + strings.Repeat("x", MaxIDBytes)}, {User: "u\n", Channel: "api_1"},
	} {
		_, err := tracker.Track(startTime, k, "")
		var e *sqlstate.Error
		if !errors.As(err, &e) || e.Code != sqlstate.ConsentValidation || strings.Contains(e.Error(), k.User+k.Channel) {
			t.Errorf("%+v: %v", k, err)
		}
	}
	if c := tracker.Counts(startTime); c != (Counts{}) {
		t.Errorf("counted %+v", c)
	}
}

// If the clock goes back, no time passes until it has caught up. Nothing else changes.
func TestClockGoesBack(t *testing.T) {
	c := talk(t, Config{})
	c.send(2, 10*time.Minute)
	c.wait(-time.Hour)
	c.send(1, 0)
	if s, _ := c.tracker.Session(c.now, sessionKey); len(s.MessageTimes) != 3 || !s.LastInteraction.Equal(startTime.Add(10*time.Minute)) {
		t.Errorf("the session is %+v", s)
	}
}

// If there is no room for another session, active sessions stay and the caller gets an error. Idle sessions are removed
// to make room.
func TestSessionsInMemoryAreBounded(t *testing.T) {
	tracker := New(Config{MaxSessions: 3})
	key := func(n int) SessionKey { return SessionKey{User: fmt.Sprint("u", n), Channel: "api_1"} }
	for n := range 3 {
		if _, err := tracker.Track(startTime.Add(time.Duration(n)*time.Minute), key(n), ""); err != nil {
			t.Fatal(err)
		}
	}
	now := startTime.Add(30 * time.Minute) // the first session has been idle for exactly 30 minutes, so it is still active
	_, err := tracker.Track(now, key(3), "")
	var e *sqlstate.Error
	if !errors.As(err, &e) || e.Code != sqlstate.LimitExceeded {
		t.Fatalf("there was room: %v", err)
	}
	if _, err := tracker.Track(now, key(1), ""); err != nil {
		t.Errorf("a session that is there is not served: %v", err)
	}
	if c := tracker.Counts(now); c.RefusedInteractions != 1 || c.ActiveSessions != 3 {
		t.Errorf("counted %+v", c)
	}
	now = now.Add(time.Second)
	if _, err := tracker.Track(now, key(3), ""); err != nil {
		t.Errorf("an idle session makes no room: %v", err)
	}
	if _, ok := tracker.Session(now, key(0)); ok {
		t.Error("the one that was idle longest is there")
	}
	for _, n := range []int{1, 2, 3} {
		if _, ok := tracker.Session(now, key(n)); !ok {
			t.Errorf("session %d is gone", n)
		}
	}
}

// The sessions that one agent records may take only a part of the room.
func TestAgentShare(t *testing.T) {
	tracker := New(Config{MaxSessions: 20})
	refused := 0
	for n := range 20 {
		if _, err := tracker.Track(startTime, SessionKey{RecordedBy: "a", User: fmt.Sprint(n), Channel: "api_1"}, ""); err != nil {
			refused++
		}
	}
	if refused != 18 {
		t.Errorf("%d of 20 were refused", refused)
	}
	if _, err := tracker.Track(startTime, SessionKey{RecordedBy: "b", User: "1", Channel: "api_1"}, ""); err != nil {
		t.Error(err)
	}
	if !tracker.EndSession(startTime, SessionKey{RecordedBy: "a", User: "0", Channel: "api_1"}) {
		t.Error("no session to end")
	}
	if _, err := tracker.Track(startTime, SessionKey{RecordedBy: "a", User: "new", Channel: "api_1"}, ""); err != nil {
		t.Error(err)
	}
}

// A user who uses ever more channels can fill only a limited number of sessions, so that room is left for others.
func TestUsersOwnSessionsAreBounded(t *testing.T) {
	tracker := New(Config{MaxSessions: 100_000, MaxMessages: 1})
	startedAt := func(user string, recordedByUser bool) (n int) {
		for i := range 2 * maxSessionsByUserToken {
			if _, err := tracker.Track(startTime, SessionKey{User: user, Channel: fmt.Sprint("api_", i), RecordedByUser: recordedByUser},
				""); err == nil {
				n++
			}
		}
		return n
	}
	if n := startedAt("u1", true); n != maxSessionsByUserToken {
		t.Errorf("u1 has begun %d sessions", n)
	}
	// Sessions that the application records do not have this limit, since a user cannot invent them. Each user has a
	// limit of their own.
	if n := startedAt("u2", false); n != 2*maxSessionsByUserToken {
		t.Errorf("of u2 %d sessions were told", n)
	}
	if n := startedAt("u3", true); n != maxSessionsByUserToken {
		t.Errorf("u3 has begun %d sessions", n)
	}
	// A user at the limit can continue a session. An ended session makes room for a new one.
	if _, err := tracker.Track(startTime, SessionKey{User: "u1", Channel: "api_0", RecordedByUser: true}, ""); err != nil {
		t.Error(err)
	}
	if !tracker.EndSession(startTime, SessionKey{User: "u1", Channel: "api_0", RecordedByUser: true}) {
		t.Error("no session to end")
	}
	if _, err := tracker.Track(startTime, SessionKey{User: "u1", Channel: "api_new", RecordedByUser: true}, ""); err != nil {
		t.Error(err)
	}
	tracker.RemoveIdleSessions(startTime.Add(2 * time.Hour))
	if n := startedAt("u1", true); n != maxSessionsByUserToken {
		t.Errorf("two hours later u1 has begun %d sessions", n)
	}
}

// ReminderOfSession returns the reminder from when it was given until its session is over.
func TestReminderOfSession(t *testing.T) {
	c := talk(t, Config{})
	c.send(19, time.Second)
	if text, _ := c.tracker.ReminderOfSession(c.now, sessionKey); text != "" || c.tracker.RemindersGiven() != 0 {
		t.Error("due before it was given")
	}
	c.send(1, 0)
	c.send(3, time.Minute)
	text, since := c.tracker.ReminderOfSession(c.now, sessionKey)
	if text != c.text || !since.Equal(startTime) || c.tracker.RemindersGiven() != 1 {
		t.Errorf("due: %q, %v", text, since)
	}
	if text, _ := c.tracker.ReminderOfSession(c.now.Add(31*time.Minute), sessionKey); text != "" {
		t.Error("due after the session")
	}
}

// Caller.SessionKey returns for whom a caller may record and read sessions; for others it is refused.
func TestCaller(t *testing.T) {
	for _, c := range []struct {
		caller     Caller
		recordedBy string
		ok         bool
	}{
		{Caller{Role: "subject", Subject: "u1", Database: "d"}, "", true},
		{Caller{Role: "subject", Subject: "u2", Database: "d"}, "", false},
		{Caller{Role: "subject", Database: "d"}, "", false},
		{Caller{Role: "system", Database: "d"}, "", true},
		{Caller{Role: "agent", Agent: "assistant", Database: "d"}, "assistant", true},
		{Caller{Role: "agent", Database: "d"}, "", false},
		{Caller{Role: "admin", Database: "d"}, "", false},
		{Caller{Role: "operator"}, "", false},
		{Caller{}, "", false},
	} {
		k, err := c.caller.SessionKey("u1", "api_1")
		if (err == nil) != c.ok || c.ok && k != (SessionKey{Database: "d", RecordedBy: c.recordedBy, User: "u1", Channel: "api_1",
			RecordedByUser: c.caller.Role == "subject"}) {
			t.Errorf("%+v: %+v, %v", c.caller, k, err)
		}
	}
	_, a := Caller{Role: "subject", Subject: "u1"}.SessionKey("u2", "api_1")
	_, b := Caller{Role: "subject", Subject: "u1"}.SessionKey("nobody", "api_9")
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("%v and %v differ", a, b)
	}
}

// model is a session as the seed describes it: it stores the times of all messages (seeds/001:292).
type model struct {
	times    []time.Duration
	reminded bool
}

// For random messages, the tracker gives the same results as a simple implementation of the seed's text.
// seeds/001:289-293.
func TestTrackerAgreesWithModel(t *testing.T) {
	property.Check(t, func(r *rapid.T) {
		c := Config{
			ReminderAfter: time.Duration(rapid.IntRange(1, 60).Draw(r, "after")) * time.Minute, MaxMessages: rapid.IntRange(1, 6).Draw(r, "messages"),
			Window:     time.Duration(rapid.IntRange(1, 60).Draw(r, "window")) * time.Minute,
			SessionGap: time.Duration(rapid.IntRange(1, 60).Draw(r, "idle")) * time.Minute,
		}
		c.KeepFor = max(c.SessionGap, time.Duration(rapid.IntRange(1, 120).Draw(r, "keep"))*time.Minute)
		tracker, models := New(c), map[SessionKey]*model{}
		tracker.RemoveIdleSessions(startTime)
		elapsed, clock := time.Duration(0), time.Duration(0)
		if rapid.Bool().Draw(r, "late") { // times close to where the stored milliseconds overflow
			elapsed = 1<<32*time.Millisecond - time.Hour
			clock = elapsed
			tracker.RemoveIdleSessions(startTime.Add(clock))
		}
		for range rapid.IntRange(1, 80).Draw(r, "n") {
			clock += time.Duration(rapid.IntRange(0, 20).Draw(r, "pause")*rapid.SampledFrom([]int{1, 1, 1, 5}).Draw(r, "times")) * time.Minute
			if rapid.IntRange(0, 9).Draw(r, "back") == 0 {
				clock -= time.Duration(rapid.IntRange(1, 90).Draw(r, "by")) * time.Minute
			}
			elapsed = max(elapsed, clock) // the tracker's time waits until the clock has caught up
			k := SessionKey{User: rapid.SampledFrom([]string{"a", "b"}).Draw(r, "user"), Channel: "api_1"}
			if rapid.IntRange(0, 20).Draw(r, "end") == 0 {
				_, exists := models[k]
				exists = exists && elapsed-models[k].times[len(models[k].times)-1] < c.KeepFor
				if exists || c.KeepFor > c.SessionGap { // at Keep = Idle itself it still counts
					if got := tracker.EndSession(startTime.Add(clock), k); got != exists {
						r.Fatalf("ended: %v, want %v", got, exists)
					}
					delete(models, k)
				} else {
					tracker.RemoveIdleSessions(startTime.Add(clock))
				}
				continue
			}
			m := models[k]
			if m == nil || elapsed-m.times[len(m.times)-1] > c.SessionGap || c.KeepFor > c.SessionGap &&
				elapsed-m.times[len(m.times)-1] >= c.KeepFor {
				m = &model{}
				models[k] = m
			}
			m.times = append(m.times, elapsed)
			recentCount := 0
			for _, messageTime := range m.times {
				if elapsed-messageTime < c.Window {
					recentCount++
				}
			}
			isDue := !m.reminded && (elapsed-m.times[0] >= c.ReminderAfter || recentCount >= c.MaxMessages)
			m.reminded = m.reminded || isDue
			text, err := tracker.Track(startTime.Add(clock), k, "")
			if err != nil || (text != "") != isDue {
				r.Fatalf("at %v: %q, %v; want a reminder: %v", elapsed, text, err, isDue)
			}
			s, _ := tracker.Session(startTime.Add(clock), k)
			if want := min(recentCount, c.MaxMessages); len(s.MessageTimes) != want || s.IsReminded != m.reminded ||
				s.LastInteraction.Sub(startTime) != elapsed {
				r.Fatalf("at %v: %+v, want %d messages", elapsed, s, want)
			}
		}
	})
}

// The sessions of a million users take no more memory than docs/reference/air.md says. Later users use the same memory
// again. "Memory-Only", seeds/001:410.
func TestMillionUsers(t *testing.T) {
	users := 1_000_000
	if tier.Quick() {
		users = 100_000
	}
	before := heap()
	tracker := New(Config{MaxSessions: users})
	now := startTime
	for hour := range 2 {
		for i := range users {
			now = now.Add(100 * time.Microsecond)
			k := SessionKey{Database: "app", User: fmt.Sprintf("user-%d-%08d", hour, i), Channel: "api_0"}
			if _, err := tracker.Track(now, k, ""); err != nil {
				t.Fatal(err)
			}
		}
		bytesPerUser := float64(heap()-before) / float64(users)
		if c := tracker.Counts(now); c.ActiveSessions != users || bytesPerUser > 220 {
			t.Errorf("hour %d: %d sessions, %.0f bytes each", hour, c.ActiveSessions, bytesPerUser)
		}
		if _, err := tracker.Track(now, SessionKey{Database: "app", User: "one more", Channel: "api_0"}, ""); err == nil {
			t.Errorf("hour %d: there is room for one more", hour)
		}
		now = now.Add(2 * time.Hour)
	}
	tracker.RemoveIdleSessions(now)
	if c := tracker.Counts(now); c.ActiveSessions != 0 {
		t.Errorf("%d sessions are left", c.ActiveSessions)
	}
	if remainingBytes := heap(); remainingBytes > before+10<<20 {
		t.Errorf("%d bytes are left", remainingBytes-before)
	}
	runtime.KeepAlive(tracker)
}

// BenchmarkMillionUsers measures the memory that a million users take.
func BenchmarkMillionUsers(b *testing.B) {
	const users = 1_000_000
	for b.Loop() {
		before := heap()
		tracker := New(Config{})
		now := startTime
		for i := range 3 * users {
			now = now.Add(100 * time.Microsecond)
			k := SessionKey{Database: "app", User: fmt.Sprintf("user-%08d", i%users), Channel: "api_0"}
			if _, err := tracker.Track(now, k, ""); err != nil {
				b.Fatal(err)
			}
		}
		heldBytes := heap() - before
		if c := tracker.Counts(now); c.ActiveSessions != users {
			b.Fatalf("%d sessions", c.ActiveSessions)
		}
		b.ReportMetric(float64(heldBytes)/users, "bytes/user")
		now = now.Add(2 * time.Hour)
		removalStart := time.Now()
		if _, err := tracker.Track(now, sessionKey, ""); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(removalStart).Milliseconds()), "ms/all-over")
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
