package mcp

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pgconsent/pgconsent/internal/services/operations"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// callOnce runs a call that has an idempotency key. If a call with the key has been answered before, callOnce returns
// the first answer. A caller's keys are the same in all of its sessions and over HTTP.
func callOnce[Out any](ctx context.Context, c *Call, operation, key string, arguments any, run func() (Out,
	error)) (out Out,
	isRepeated bool, err error) {
	if len(key) > operations.MaxKeyBytes {
		return out, false, sqlstate.New(sqlstate.InvalidParameterValue, sqlstate.ReasonBounds,
			"the request_key is longer than %d bytes", operations.MaxKeyBytes).WithHint("A UUID will do.")
	}
	text, err := json.Marshal(arguments)
	if err != nil {
		return out, false, err
	}
	sum, err := operations.RequestDigest(operation, text)
	if err != nil {
		return out, false, err
	}
	answers := &c.server.Service.Answers
	answer, storedAnswer, err := answers.BeginCall(ctx, c.Caller, key, sum, time.Now())
	if err != nil {
		return out, false, err
	}
	if storedAnswer != nil {
		c.AddAuditSubjects(storedAnswer.Subjects...)
		return out, true, json.Unmarshal(storedAnswer.Body, &out)
	}
	var response *operations.Response
	// The key is released also after a panic, when it is not known whether anything was changed.
	defer func() { answers.EndCall(c.Caller, answer, response) }()
	if out, err = run(); err != nil {
		return out, false, err
	}
	if text, err = json.Marshal(out); err == nil {
		response = &operations.Response{Status: 200, ContentType: "application/json", Body: text, Subjects: c.auditSubjects}
	}
	return out, false, err
}
