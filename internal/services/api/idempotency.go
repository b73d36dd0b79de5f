package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/pgconsent/pgconsent/internal/memory/privacy"
	"github.com/pgconsent/pgconsent/internal/services/operations"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

func keyReusedProblem() *Problem {
	p := newProblem(http.StatusConflict, sqlstate.New(sqlstate.ConsentConflict, sqlstate.ReasonConsent,
		"the Idempotency-Key was used for another change").
		WithHint("Use a key of its own for each change."))
	p.Name = privacy.NameConflict
	return p
}

// replayAnswer sends the stored answer of the first call in answer to a repeated call.
func replayAnswer(a http.ResponseWriter, storedAnswer operations.Response) {
	a.Header().Set("Content-Type", storedAnswer.ContentType)
	a.Header().Set(replayedHeader, "true")
	a.WriteHeader(storedAnswer.Status)
	_, _ = a.Write(storedAnswer.Body)
}

const replayedHeader = "Idempotent-Replayed"

// runOnce runs a call that has an idempotency key. If a call with the key has been answered before, runOnce sends that
// answer instead.
func (s *Server) runOnce(ctx context.Context, call *Call, r *idempotentRequest, run func()) {
	sum, err := operations.RequestDigest(r.method+" "+r.path, call.body)
	if err != nil || r.key == "" || len(r.key) > operations.MaxKeyBytes {
		run() // run refuses a request whose key is not valid
		return
	}
	answer, storedAnswer, err := s.Service.Answers.BeginCall(ctx, call.Caller, r.key, sum, time.Now())
	var e *sqlstate.Error
	switch {
	case errors.As(err, &e) && e.Code == sqlstate.ConsentConflict:
		keyReusedProblem().write(r.answer)
	case err != nil:
		problemOf(err).write(r.answer)
	case storedAnswer != nil:
		call.AddAuditSubjects(storedAnswer.Subjects...)
		replayAnswer(r.answer, storedAnswer.Response)
	default:
		var response *operations.Response
		defer func() { s.Service.Answers.EndCall(call.Caller, answer, response) }() // also after a panic
		run()
		if status := r.answer.status; status >= 200 && status <= 299 {
			response = &operations.Response{Status: status, ContentType: r.answer.header.Get("Content-Type"),
				Body:     r.answer.body.Bytes(),
				Subjects: call.auditSubjects}
		}
	}
}

// idempotentRequest is a request that may have an idempotency key.
type idempotentRequest struct {
	method, path, key string
	answer            *bufferedAnswer
}
