// Package air reminds people who have talked to an AI for long that they might take a break: the artificial interaction
// reminder.
//
// It counts interactions per user and channel, in memory only, and of each it keeps nothing but the time: not even the
// ids, of which it holds a keyed hash. What it is told leaves it in the answers to who told it, and as counts. It has
// no clock: the time is passed in.
//
// Guarantee: a session gets its reminder at most once, and at the first interaction that reaches a threshold. Memory is
// bounded, and a session that still counts is never dropped to make room for another: what would need that is refused
// with an error and counted ([decision 35]).
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

// Config are thresholds and text. What is zero is as in [Defaults].
type Config struct {
	After    time.Duration // from a session's first interaction
	Messages int           // within Window
	Window   time.Duration
	Idle     time.Duration // a longer pause begins a new session
	Keep     time.Duration // a session without any interaction is forgotten; at least Idle
	Sessions int           // that are held at most
	Reminder string        // where {messages} and {minutes} stand for the figures
}

// Text is the reminder.
const Text = `🕒 **Mindful Interaction Reminder**

We've been chatting for a while now. I want to remind you:

• I'm an AI assistant, not a friend or companion
• Taking breaks from AI interactions is healthy
• Real human connections are irreplaceable

You've sent {messages} messages in the last {minutes} minutes. Consider taking
a break, stepping away from your screen, or connecting with
people in your life.

I'll be here when you need me, but your wellbeing comes first.`

// Defaults are what holds where nothing else is said.
func Defaults() Config {
	return Config{
		After: 30 * time.Minute, Messages: 20, Window: 30 * time.Minute, Idle: 30 * time.Minute, Keep: time.Hour,
		Sessions: 1_000_000, Reminder: Text,
	}
}

func (c Config) withDefaults() Config {
	d := Defaults()
	for _, f := range []struct{ field, value *time.Duration }{
		{&c.After, &d.After}, {&c.Window, &d.Window}, {&c.Idle, &d.Idle}, {&c.Keep, &d.Keep}} {
		if *f.field <= 0 {
			*f.field = *f.value
		}
	}
	if c.Messages <= 0 {
		c.Messages = d.Messages
	}
	if c.Sessions <= 0 {
		c.Sessions = d.Sessions
	}
	if c.Reminder == "" {
		c.Reminder = d.Reminder
	}
	c.Messages = min(c.Messages, MostMessages)
	c.Sessions = min(c.Sessions, MostSessions, MostTimes/c.Messages)
	c.Window, c.Idle = min(c.Window, MostWindow), min(c.Idle, MostWindow)
	c.Keep = min(max(c.Keep, c.Idle), MostKeep)
	return c
}

// The bounds of a configuration.
const (
	MostMessages = 1000
	MostSessions = 10_000_000
	MostTimes    = 200_000_000 // Messages times Sessions: of each 4 bytes
	MostWindow   = 24 * time.Hour
	MostKeep     = 7 * 24 * time.Hour
)

// text is the reminder with its figures.
func (c Config) text(messages int) string {
	minutes := strconv.FormatFloat(math.Round(c.Window.Minutes()*10)/10, 'f', -1, 64)
	return strings.NewReplacer("{messages}", strconv.Itoa(messages), "{minutes}", minutes).Replace(c.Reminder)
}

// API is the type of the channels where one person talks to an AI: the only one that is tracked.
const API = "api"

// TypeOf infers a channel's type from its id; "" is none that is known.
func TypeOf(channel string) string {
	for _, t := range []string{API, "discord", "cli"} {
		if strings.HasPrefix(channel, t+"_") || t != "discord" && strings.HasPrefix(channel, t+"-") {
			return t
		}
	}
	if n := len(channel); n >= 17 && n <= 19 && strings.Trim(channel, "0123456789") == "" {
		return "discord"
	}
	return ""
}

// MostID is the length of an id in bytes.
const MostID = 256

// Key names a session: whose interactions, in which channel, as whom they are recorded.
type Key struct {
	Database string
	// By is the agent that records, or "" for applications and users themselves. What an agent records counts by itself: it
	// neither learns what others recorded nor adds to it.
	By            string
	User, Channel string
	// Self says that it is the user's own token that records: of that nobody but its bearer says how many channels
	// there are.
	Self bool
}

// check refuses what cannot be an id.
func (k Key) check() error {
	for _, id := range []struct{ what, is string }{{"user_id", k.User}, {"channel_id", k.Channel}} {
		switch {
		case id.is == "":
			return invalid("%s is missing", id.what)
		case len(id.is) > MostID:
			return invalid("%s is longer than %d bytes", id.what, MostID)
		case !utf8.ValidString(id.is) || strings.ContainsFunc(id.is, unicode.IsControl):
			return invalid("%s is not plain text", id.what)
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return sqlstate.New(sqlstate.ConsentValidation, sqlstate.ReasonBounds, format, args...).
		WithHint("An interaction is {user_id, channel_id} and, where the channel's id does not tell, channel_type: \"api\".")
}

// Session is what is known of one.
type Session struct {
	Started  time.Time
	Last     time.Time
	Messages []time.Time // within the window, oldest first; at most as many as the threshold
	Reminded bool
}

// Counts are of all sessions since the start.
type Counts struct {
	Interactions uint64 // tracked
	ByTime       uint64 // reminders
	ByMessages   uint64
	Refused      uint64 // interactions for which there was no room
	Active       int    // sessions held now
}

// Reminders is how many were given.
func (c Counts) Reminders() uint64 { return c.ByTime + c.ByMessages }
