package mcp

import (
	"context"
	"errors"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/services/identity"
)

type pendingTasks struct {
	Tasks []partnershipTask `json:"tasks" jsonschema:"the requests that wait for a decision, the most urgent first"`
}

type decideInput struct {
	UserID   string `json:"user_id" jsonschema:"the user who asks, from partnership_pending"`
	Decision string `json:"decision" jsonschema:"TASK_COMPLETE approves, REJECT declines, DEFER leaves it open until the same deadline."`
	Reason   string `json:"reason,omitempty" jsonschema:"why; kept in the record"`
	Request  string `json:"request,omitempty" jsonschema:"a key of your choice: the same call with the same key is done once"`
}

// partnershipTools makes the tools by which the agent's side decides about requested partnerships.
func partnershipTools() []Tool {
	hasRegistry := func(d *Database) bool { return d.Registry != nil }
	agents := []identity.Role{identity.Agent}
	return []Tool{
		NewTool(Tool{
			Name: "partnership_pending", Title: "Partnerships to decide about", ReadOnly: true, IsOfferedFor: hasRegistry,
			Roles: agents,
			Description: "Lists the users who have asked for a partnership and wait for the decision of the agent's " +
				"side, with its deadline. Decide with partnership_decide.",
		}, partnershipPending),
		NewTool(Tool{
			Name: "partnership_decide", Title: "Decide about a partnership", IsIdempotent: true, IsOfferedFor: hasRegistry,
			Roles: agents,
			Description: "Decides, as the agent's side, about a partnership that a user has asked for. " +
				"Agents cannot ask for one. " +
				"ConsentNotFoundError (PC404): nobody of that id waits for a decision.",
		}, partnershipDecide).RestrictMember("decision", string(consent.DecisionApprove), string(consent.DecisionReject),
			string(consent.DecisionDefer)),
	}
}

func partnershipPending(ctx context.Context, c *Call, _ struct{}) (pendingTasks, error) {
	c.SetAboutEverybody()
	out := pendingTasks{Tasks: []partnershipTask{}}
	tasks, err := c.server.Service.PendingPartnerships(ctx, c.Caller)
	for _, q := range tasks {
		out.Tasks = append(out.Tasks, *newTask(&q))
	}
	return out, err
}

func partnershipDecide(ctx context.Context, c *Call, in decideInput) (consentChange, error) {
	out, err := c.change(ctx, consent.Command{
		Action: consent.ActionDecide, Subject: in.UserID, Decision: consent.Decision(in.Decision), Reason: in.Reason,
		RequestKey: in.Request,
	})
	// An agent gets the same error whether the user has requested no partnership or does not exist.
	var validationErr *consent.ValidationError
	if errors.As(err, &validationErr) {
		return out, consent.NewNotFound()
	}
	return out, err
}
