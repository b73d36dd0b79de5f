package mcp

import (
	"context"
	"time"

	"github.com/pgconsent/pgconsent/internal/face/identity"
	"github.com/pgconsent/pgconsent/internal/registry/air"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

type trackInput struct {
	UserID      string `json:"user_id" jsonschema:"the user who wrote the message"`
	ChannelID   string `json:"channel_id" jsonschema:"the channel; time and messages are counted for each user and channel"`
	ChannelType string `json:"channel_type,omitempty" jsonschema:"the type of the channel, if it cannot be inferred from channel_id"`
}

type trackOutput struct {
	Reminder *string `json:"reminder" jsonschema:"a text to show to the user unchanged; null: none"`
}

func interactionTools() []Tool {
	return []Tool{
		NewTool(Tool{
			Name: "track_interaction", Title: "Note a message of a user", Unrecorded: true,
			Roles: []identity.Role{identity.Agent, identity.System, identity.Subject},
			Description: "Call it once for each message that a user sends. After long use it returns a reminder " +
				"that they talk to a machine; show it to the user unchanged. Usually reminder is null. " +
				"Only the time is stored, in memory, and nothing of the text. It renews no consent.",
		}, trackInteraction),
	}
}

func trackInteraction(_ context.Context, c *Call, in trackInput) (out trackOutput, err error) {
	if c.server.AIR == nil {
		return out, sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonConsent,
			"interactions are not tracked here").WithHint("This server was started without a tracker.")
	}
	key, err := air.Caller{Role: string(c.Caller.Role), Subject: c.Caller.Subject, Agent: c.Caller.Agent,
		Database: c.Caller.Database}.Key(in.UserID, in.ChannelID)
	if err != nil {
		return out, err
	}
	reminder, err := c.server.AIR.Track(time.Now(), key, in.ChannelType)
	if reminder != "" {
		out.Reminder = &reminder
	}
	return out, err
}
