// Package air reminds people who have talked to an AI for a long time that they might take a break: the artificial
// interaction reminder.
//
// It counts interactions for each user and channel, in memory only. Of an interaction it stores only the time, and of
// ids a keyed hash. Only the callers and the counters learn about interactions. The package reads no clock: callers
// pass the time.
//
// Guarantee: a session gets its reminder at most once, at the first interaction that reaches a threshold. Memory is
// limited. An active session is never dropped for another: if there is no room, the tracker refuses the interaction
// with an error and counts the refusal ([decision 35]).
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

// Config has the thresholds and the text of the reminder. A zero value means that of [DefaultConfig].
type Config struct {
	ReminderAfter time.Duration // a session gets the reminder when its first interaction is this long ago
	MaxMessages   int           // a session gets the reminder when it has this many messages within Window
	Window        time.Duration
	SessionGap    time.Duration // after a pause longer than this, the next interaction begins a new session
	KeepFor       time.Duration // how long the tracker remembers a session without interactions; at least SessionGap
	MaxSessions   int           // the largest number of sessions in memory
	Reminder      string        // the text; the tracker fills in {messages} and {minutes}
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

// DefaultConfig returns the configuration that applies if nothing is configured.
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

// The largest values of a configuration.
const (
	MaxMessages = 1000
	MaxSessions = 10_000_000
	MaxTimes    = 200_000_000 // the largest product of MaxMessages and MaxSessions; each message takes 4 bytes
	MaxWindow   = 24 * time.Hour
	MaxKeep     = 7 * 24 * time.Hour
)

// reminderText returns the reminder with the numbers filled in.
func (c Config) reminderText(messages int) string {
	minutes := strconv.FormatFloat(math.Round(c.Window.Minutes()*10)/10, 'f', -1, 64)
	return strings.NewReplacer("{messages}", strconv.Itoa(messages), "{minutes}", minutes).Replace(c.Reminder)
}

// APIChannel is the type of a channel in which one person talks to an AI. The tracker counts interactions in such
// channels only.
const APIChannel = "api"

// ChannelType infers the type of a channel from the beginning of its id. It returns "" if the type is unknown.
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

// SessionKey identifies a session by the user, the channel and the agent that records.
type SessionKey struct {
	Database string
	// RecordedBy is the agent that records the interactions, or "" for applications and users. Each agent's recordings are
	// counted separately, so an agent neither learns nor changes what others have recorded.
	RecordedBy    string
	User, Channel string
	// RecordedByUser is true if the user's own token records the interactions. The number of such sessions of one user is
	// limited, since users can invent channels.
	RecordedByUser bool
}

// check returns an error if an id is invalid.
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

// Session is what the tracker knows about a session at a moment.
type Session struct {
	StartedAt       time.Time
	LastInteraction time.Time
	// the times of the messages within Window, oldest first; at most MaxMessages
	MessageTimes []time.Time
	IsReminded   bool
}

// Counts has totals since the tracker was made.
type Counts struct {
	Interactions        uint64 // interactions that were counted
	RemindersByTime     uint64 // reminders because of ReminderAfter
	RemindersByMessages uint64
	RefusedInteractions uint64 // interactions that were refused because there was no room for a new session
	ActiveSessions      int    // sessions in memory now
}

// Reminders returns the number of reminders.
func (c Counts) Reminders() uint64 { return c.RemindersByTime + c.RemindersByMessages }
