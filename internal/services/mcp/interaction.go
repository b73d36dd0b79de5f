package mcp

import (
	"context"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry/air"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

type interactionInput struct {
	UserID      string `json:"user_id" jsonschema:"the user who wrote the message"`
	ChannelID   string `json:"channel_id" jsonschema:"the channel; time and messages are counted for each user and channel"`
	ChannelType string `json:"channel_type,omitempty" jsonschema:"the type of the channel, if it cannot be inferred from channel_id"`
}

type reminderOutput struct {
	Reminder *string `json:"reminder" jsonschema:"a text to show to the user unchanged; null: none"`
}

type sessionInput struct {
	UserID    string `json:"user_id,omitempty" jsonschema:"the user; left out: the user of this session"`
	ChannelID string `json:"channel_id" jsonschema:"the channel"`
}

// sessionOutput is a session of interactions. Its members have the same names as in the answer of GET /v1/air/session.
type sessionOutput struct {
	UserID            string   `json:"user_id"`
	ChannelID         string   `json:"channel_id"`
	SessionStart      *string  `json:"session_start" jsonschema:"RFC 3339: when the first message of the session was sent"`
	LastInteraction   *string  `json:"last_interaction" jsonschema:"RFC 3339"`
	MessageTimestamps []string `json:"message_timestamps" jsonschema:"of the messages within the window, oldest first"`
	ReminderSent      bool     `json:"reminder_sent"`
}

type endSessionOutput struct {
	Ended bool `json:"ended"`
}

func interactionTools() []Tool {
	return []Tool{
		NewTool(Tool{
			Name: "track_interaction", Title: "Note a message of a user", SkipsAudit: true,
			Roles: []identity.Role{identity.Agent, identity.System, identity.Subject},
			Description: "Call it once for each message that a user sends. After long use it returns a reminder " +
				"that they talk to a machine; show it to the user unchanged. Usually reminder is null. " +
				"Only the time is stored, in memory, and nothing of the text. It renews no consent.",
		}, trackInteraction),
		NewTool(Tool{
			Name: "interaction_session", Title: "A session of interactions", ReadOnly: true, SkipsAudit: true,
			Roles: []identity.Role{identity.Agent, identity.System, identity.Subject},
			Description: "Shows what is known of a user's session in a channel: when it began, the times of the last " +
				"messages, and whether the reminder was given. 42704 means that there is none.",
		}, interactionSession),
		NewTool(Tool{
			Name: "interaction_end", Title: "End a session of interactions", IsDestructive: true, SkipsAudit: true,
			Roles: []identity.Role{identity.Agent, identity.System, identity.Subject},
			Description: "Ends a user's session in a channel: what is known of it is forgotten, and the next message " +
				"begins a new one.",
		}, endInteraction),
	}
}

func interactionSession(_ context.Context, c *Call, in sessionInput) (out sessionOutput, err error) {
	if err := requireTracker(c.server.Service.Reminders); err != nil {
		return out, err
	}
	interactions, err := c.server.Service.Interactions(c.Caller, in.UserID, in.ChannelID)
	if err != nil {
		return out, err
	}
	out = sessionOutput{UserID: in.UserID, ChannelID: in.ChannelID, SessionStart: timestampText(interactions.StartedAt),
		LastInteraction: timestampText(interactions.LastInteraction), MessageTimestamps: []string{},
		ReminderSent: interactions.IsReminded}
	if in.UserID == "" {
		out.UserID = c.Caller.Subject
	}
	for _, sentAt := range interactions.MessageTimes {
		out.MessageTimestamps = append(out.MessageTimestamps, *timestampText(sentAt))
	}
	return out, nil
}

func endInteraction(_ context.Context, c *Call, in sessionInput) (out endSessionOutput, err error) {
	if err := requireTracker(c.server.Service.Reminders); err != nil {
		return out, err
	}
	err = c.server.Service.EndInteractions(c.Caller, in.UserID, in.ChannelID)
	return endSessionOutput{Ended: err == nil}, err
}

// requireTracker returns an error if the server does not track interactions.
func requireTracker(t *air.Tracker) error {
	if t == nil {
		return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonConsent,
			"interactions are not tracked here").WithHint("This server was started without a tracker.")
	}
	return nil
}

func trackInteraction(_ context.Context, c *Call, in interactionInput) (out reminderOutput, err error) {
	if err := requireTracker(c.server.Reminders); err != nil {
		return out, err
	}
	key, err := air.Caller{Role: string(c.Caller.Role), Subject: c.Caller.Subject, Agent: c.Caller.Agent,
		Database: c.Caller.Database}.SessionKey(in.UserID, in.ChannelID)
	if err != nil {
		return out, err
	}
	reminder, err := c.server.Reminders.Track(time.Now(), key, in.ChannelType)
	if reminder != "" {
		out.Reminder = &reminder
	}
	return out, err
}
