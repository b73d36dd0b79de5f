package api

import (
	"context"
	"net/http"
	"time"

	"github.com/pgconsent/pgconsent/internal/services/identity"
)

const tagAIR = "air"

// Interaction is what an application reports about a message.
type Interaction struct {
	UserID      string `json:"user_id,omitempty" minLength:"1" maxLength:"256" doc:"The user who sent the message. Default: the caller, if that is a user."`
	ChannelID   string `json:"channel_id" minLength:"1" maxLength:"256" doc:"The channel. Each channel is counted by itself."`
	ChannelType string `json:"channel_type,omitempty" maxLength:"64" doc:"Only channels of type api are tracked. Default: inferred from the channel's id."`
}

// Interactions is a session of interactions between a user and an assistant.
type Interactions struct {
	UserID            string      `json:"user_id"`
	ChannelID         string      `json:"channel_id"`
	SessionStart      time.Time   `json:"session_start" doc:"When the first message of the session was sent."`
	LastInteraction   time.Time   `json:"last_interaction"`
	MessageTimestamps []time.Time `json:"message_timestamps" doc:"Of the messages within the window, oldest first; at most as many as the threshold."`
	ReminderSent      bool        `json:"reminder_sent"`
}

// InteractionsQuery has the parameters that name a session of interactions.
type InteractionsQuery struct {
	UserID    string `query:"user_id" minLength:"1" maxLength:"256" doc:"The user. Default: the caller, if that is a user."`
	ChannelID string `query:"channel_id" required:"true" minLength:"1" maxLength:"256"`
}

type (
	interactionRequest struct{ Body Interaction }
	reminderAnswer     struct {
		Body struct {
			Reminder *string `json:"reminder" doc:"The reminder to show to the user now; null: none."`
		}
	}
	interactionsAnswer struct{ Body Interactions }
	endedAnswer        struct {
		Body struct {
			Ended bool `json:"ended"`
		}
	}
)

// addInteractionOperations adds the operations on interactions. The audit does not record these calls: what they report
// stays in memory only.
func addInteractionOperations(s *Server) {
	roles := []identity.Role{identity.Subject, identity.System, identity.Agent}
	addOperation(s, Operation{ID: "air-interaction", Method: http.MethodPost, Path: "/v1/air/interactions", Tag: tagAIR,
		Roles: roles, SkipsAudit: true, Summary: "A user has sent a message",
		Description: "Returns the reminder if it is due with this message, once a session. What an agent reports " +
			"is counted apart, and it sees no other sessions."},
		func(_ context.Context, c *Call, in *interactionRequest) (*reminderAnswer, error) {
			out := &reminderAnswer{}
			text, err := s.Service.RecordInteraction(c.Caller, in.Body.UserID, in.Body.ChannelID, in.Body.ChannelType)
			if text != "" {
				out.Body.Reminder = &text
			}
			return out, err
		})
	addOperation(s, Operation{ID: "air-session", Method: http.MethodGet, Path: "/v1/air/session", Tag: tagAIR, Roles: roles,
		SkipsAudit: true, Errors: []int{http.StatusNotFound}, Summary: "What is known of a session",
		Description: "Times only. 404 where there is none."},
		func(_ context.Context, c *Call, in *InteractionsQuery) (*interactionsAnswer, error) {
			interactions, err := s.Service.Interactions(c.Caller, in.UserID, in.ChannelID)
			if err != nil {
				return nil, err
			}
			out := &interactionsAnswer{Interactions{
				UserID: in.UserID, ChannelID: in.ChannelID, SessionStart: interactions.StartedAt.UTC(),
				LastInteraction:   interactions.LastInteraction.UTC(),
				MessageTimestamps: []time.Time{}, ReminderSent: interactions.IsReminded}}
			if in.UserID == "" {
				out.Body.UserID = c.Caller.Subject
			}
			for _, sentAt := range interactions.MessageTimes {
				out.Body.MessageTimestamps = append(out.Body.MessageTimestamps, sentAt.UTC())
			}
			return out, nil
		})
	addOperation(s, Operation{ID: "air-end", Method: http.MethodDelete, Path: "/v1/air/session", Tag: tagAIR, Roles: roles,
		SkipsAudit: true, Errors: []int{http.StatusNotFound}, Summary: "End a session",
		Description: "What is known of it is forgotten; the next message begins a new one."},
		func(_ context.Context, c *Call, in *InteractionsQuery) (*endedAnswer, error) {
			out := &endedAnswer{}
			out.Body.Ended = true
			return out, s.Service.EndInteractions(c.Caller, in.UserID, in.ChannelID)
		})
}
