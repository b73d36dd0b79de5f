package api

import (
	"context"
	"net/http"
	"time"

	"github.com/pgconsent/pgconsent/internal/face/identity"
)

const tagAIR = "air"

// Interaction is what an application tells of a message.
type Interaction struct {
	UserID      string `json:"user_id,omitempty" minLength:"1" maxLength:"256" doc:"Who sent it. Default: the caller, if that is a user."`
	ChannelID   string `json:"channel_id" minLength:"1" maxLength:"256" doc:"Where. Each channel counts for itself."`
	ChannelType string `json:"channel_type,omitempty" maxLength:"64" doc:"api: it is tracked; another one: it is not. Default: as the channel's id tells."`
}

// Interactions is a session.
type Interactions struct {
	UserID            string      `json:"user_id"`
	ChannelID         string      `json:"channel_id"`
	SessionStart      time.Time   `json:"session_start" doc:"When the first message of the session was sent."`
	LastInteraction   time.Time   `json:"last_interaction"`
	MessageTimestamps []time.Time `json:"message_timestamps" doc:"Of the messages within the window, oldest first; at most as many as the threshold."`
	ReminderSent      bool        `json:"reminder_sent"`
}

// InteractionsQuery names a session.
type InteractionsQuery struct {
	UserID    string `query:"user_id" minLength:"1" maxLength:"256" doc:"Whose. Default: the caller, if that is a user."`
	ChannelID string `query:"channel_id" required:"true" minLength:"1" maxLength:"256"`
}

type (
	interactionRequest struct{ Body Interaction }
	reminderAnswer     struct {
		Body struct {
			Reminder *string `json:"reminder" doc:"What the user should be told now; null: nothing."`
		}
	}
	interactionsAnswer struct{ Body Interactions }
	endedAnswer        struct {
		Body struct {
			Ended bool `json:"ended"`
		}
	}
)

// airResource leaves no record of its calls: what it is told is kept in memory and nowhere else.
func airResource(s *Server) {
	roles := []identity.Role{identity.Subject, identity.System, identity.Agent}
	add(s, Operation{ID: "air-interaction", Method: http.MethodPost, Path: "/v1/air/interactions", Tag: tagAIR,
		Roles: roles, Silent: true, Summary: "A user has sent a message",
		Description: "Returns the reminder that is due with this message, once a session. An agent's reports " +
			"count for themselves, and it sees no others."},
		func(_ context.Context, c *Call, in *interactionRequest) (*reminderAnswer, error) {
			out := &reminderAnswer{}
			text, err := s.Service.Interaction(c.Caller, in.Body.UserID, in.Body.ChannelID, in.Body.ChannelType)
			if text != "" {
				out.Body.Reminder = &text
			}
			return out, err
		})
	add(s, Operation{ID: "air-session", Method: http.MethodGet, Path: "/v1/air/session", Tag: tagAIR, Roles: roles,
		Silent: true, Errors: []int{http.StatusNotFound}, Summary: "What is known of a session",
		Description: "Times only. 404 where there is none."},
		func(_ context.Context, c *Call, in *InteractionsQuery) (*interactionsAnswer, error) {
			known, err := s.Service.Interactions(c.Caller, in.UserID, in.ChannelID)
			if err != nil {
				return nil, err
			}
			out := &interactionsAnswer{Interactions{
				UserID: in.UserID, ChannelID: in.ChannelID, SessionStart: known.Started.UTC(), LastInteraction: known.Last.UTC(),
				MessageTimestamps: []time.Time{}, ReminderSent: known.Reminded}}
			if in.UserID == "" {
				out.Body.UserID = c.Caller.Subject
			}
			for _, at := range known.Messages {
				out.Body.MessageTimestamps = append(out.Body.MessageTimestamps, at.UTC())
			}
			return out, nil
		})
	add(s, Operation{ID: "air-end", Method: http.MethodDelete, Path: "/v1/air/session", Tag: tagAIR, Roles: roles,
		Silent: true, Errors: []int{http.StatusNotFound}, Summary: "End a session",
		Description: "What is known of it is forgotten; the next message begins a new one."},
		func(_ context.Context, c *Call, in *InteractionsQuery) (*endedAnswer, error) {
			out := &endedAnswer{}
			out.Body.Ended = true
			return out, s.Service.EndInteractions(c.Caller, in.UserID, in.ChannelID)
		})
}
