// Package air reminds people who have talked to an AI for a long time that they might take a break: the artificial
// interaction reminder.
//
// It counts interactions per user and channel, in memory only, and keeps nothing of each but its time: of ids it keeps
// a keyed hash. Only its callers and the counters learn anything. It reads no clock: callers pass the time.
//
// Guarantee: a session gets its reminder at most once, at the first interaction that reaches a threshold. Memory is
// limited. An active session is never dropped for another: an interaction without room is refused with an error and
// counted ([decision 35]).
//
// [decision 35]: ../../../docs/decisions/0035-air.md
package air

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Config has the thresholds and the text of the reminder. For zero values, [DefaultConfig] apply.
type Config struct {
	ReminderAfter time.Duration // the time since a session's first interaction after which it gets the reminder
	MaxMessages   int           // the number of messages within Window after which it gets the reminder
	Window        time.Duration
	SessionGap    time.Duration // a pause longer than this begins a new session
	KeepFor       time.Duration // how long a session without interactions is remembered; at least SessionGap
	MaxSessions   int           // the largest number of sessions in memory
	Reminder      string        // the text, with {messages} and {minutes} in place of the figures
}

// DefaultReminder is the default text of the reminder.
const DefaultReminder = `🕒 **Mindful Interaction Reminder**

We've been chatting for a while now. I want to remind you:

• I'm an AI assistant, not a friend or companion
• Taking breaks from AI interactions is healthy
• Real human connections are irreplaceable

You've sent {messages} messages in the last {minutes} minutes. Consider taking
a break, stepping away from your screen, or connecting with
people in your life.

I'll be here when you need me, but your wellbeing comes first.`

// DefaultConfig returns the values that apply if nothing is configured.
func DefaultConfig() Config {
	return Config{
		ReminderAfter: 30 * time.Minute, MaxMessages: 20, Window: 30 * time.Minute, SessionGap: 30 * time.Minute,
		KeepFor:     time.Hour,
		MaxSessions: 1_000_000, Reminder: DefaultReminder,
	}
}

func (c Config) withDefaults() Config {
	d := DefaultConfig()
	for _, f := range []struct{ field, value *time.Duration }{
		{&c.ReminderAfter, &d.ReminderAfter}, {&c.Window, &d.Window}, {&c.SessionGap, &d.SessionGap}, {&c.KeepFor,
			&d.KeepFor}} {
		if *f.field <= 0 {
			*f.field = *f.value
		}
	}
	if c.MaxMessages <= 0 {
		c.MaxMessages = d.MaxMessages
	}
	if c.MaxSessions <= 0 {
		c.MaxSessions = d.MaxSessions
	}
	if c.Reminder == "" {
		c.Reminder = d.Reminder
	}
	c.MaxMessages = min(c.MaxMessages, MaxMessages)
	c.MaxSessions = min(c.MaxSessions, MaxSessions, MaxTimes/c.MaxMessages)
	c.Window, c.SessionGap = min(c.Window, MaxWindow), min(c.SessionGap, MaxWindow)
	c.KeepFor = min(max(c.KeepFor, c.SessionGap), MaxKeep)
	return c
}

// The limits of a configuration.
const (
	MaxMessages = 1000
	MaxSessions = 10_000_000
	MaxTimes    = 200_000_000 // the largest product of MaxMessages and MaxSessions; each message takes 4 bytes
	MaxWindow   = 24 * time.Hour
	MaxKeep     = 7 * 24 * time.Hour
)

// reminderText returns the reminder with its figures filled in.
func (c Config) reminderText(messages int) string {
	minutes := strconv.FormatFloat(math.Round(c.Window.Minutes()*10)/10, 'f', -1, 64)
	return strings.NewReplacer("{messages}", strconv.Itoa(messages), "{minutes}", minutes).Replace(c.Reminder)
}

// APIChannel is the type of the channels in which one person talks to an AI, the only type for which interactions are
// counted.
const APIChannel = "api"

// ChannelType infers the type of a channel from its id; "": unknown.
func ChannelType(channel string) string {
	for _, t := range []string{APIChannel, "discord", "cli"} {
		if strings.HasPrefix(channel, t+"_") || t != "discord" && strings.HasPrefix(channel, t+"-") {
			return t
		}
	}
	if n := len(channel); n >= 17 && n <= 19 && strings.Trim(channel, "0123456789") == "" {
		return "discord"
	}
	return ""
}

// MaxIDBytes is the largest length of an id, in bytes.
const MaxIDBytes = 256

// SessionKey identifies a session: the user, the channel and the recorder.
type SessionKey struct {
	Database string
	// RecordedBy is the agent that records the interactions, or "" for applications and users. The recordings of each
	// agent are counted separately: it neither learns nor changes what others have recorded.
	RecordedBy    string
	User, Channel string
	// RecordedByUser is set if the user's own token records the interactions. The number of such sessions is limited
	// for each user, since anybody can invent channels.
	RecordedByUser bool
}

// check refuses invalid ids.
func (k SessionKey) check() error {
	for _, id := range []struct{ label, value string }{{"user_id", k.User}, {"channel_id", k.Channel}} {
		switch {
		case id.value == "":
			return invalidError("%s is missing", id.label)
		case len(id.value) > MaxIDBytes:
			return invalidError("%s is longer than %d bytes", id.label, MaxIDBytes)
		case !utf8.ValidString(id.value) || strings.ContainsFunc(id.value, unicode.IsControl):
			return invalidError("%s is not plain text", id.label)
		}
	}
	return nil
}

func invalidError(format string, args ...any) error {
	return sqlstate.New(sqlstate.ConsentValidation, sqlstate.ReasonBounds, format, args...).
		WithHint("An interaction is {user_id, channel_id} and, where the channel's id does not tell, channel_type: \"api\".")
}

// Session is what the tracker knows about a session.
type Session struct {
	StartedAt       time.Time
	LastInteraction time.Time
	// the times of the messages within the window, oldest first; at most as many as the threshold
	MessageTimes []time.Time
	IsReminded   bool
}

// Counts has totals since the start.
type Counts struct {
	Interactions        uint64 // interactions that were tracked
	RemindersByTime     uint64 // reminders because of the time
	RemindersByMessages uint64
	RefusedInteractions uint64 // interactions that were refused because there was no room
	ActiveSessions      int    // sessions in memory now
}

// Reminders returns the number of reminders.
func (c Counts) Reminders() uint64 { return c.RemindersByTime + c.RemindersByMessages }
