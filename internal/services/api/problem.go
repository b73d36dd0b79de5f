package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pgconsent/pgconsent/internal/memory/privacy"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Problem is the body of every answer with an error.
type Problem struct {
	Type   string  `json:"type" doc:"about:blank: the code says which error it is."`
	Title  string  `json:"title" doc:"The status in words."`
	Status int     `json:"status" doc:"The HTTP status."`
	Code   string  `json:"code" doc:"The SQLSTATE, which is stable: docs/reference/errors.md lists them." pattern:"^[0-9A-Z]{5}$"`
	Name   string  `json:"name,omitempty" doc:"The name of an error of consent, such as ConsentNotFoundError."`
	Detail string  `json:"detail" doc:"What is wrong."`
	Hint   string  `json:"hint,omitempty" doc:"What to do about it."`
	Errors []Place `json:"errors,omitempty" doc:"What is wrong with the request, and where."`

	// Consent is set only if the error is a ConsentExpiredError.
	Consent *ConsentStatus `json:"consent,omitempty" doc:"With ConsentExpiredError of a status: the expired consent."`

	// Report is set only if the error is a PrivacyBlockedError.
	Report *GeneralizeReport `json:"report,omitempty" doc:"With PrivacyBlockedError: the findings of the checks."`
}

// Place is one error in a request, and the place in the request where it is.
type Place struct {
	Location string `json:"location,omitempty" doc:"The parameter or the member of the body."`
	Message  string `json:"message"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return problemJSON }

// GetHeaders implements huma.HeadersError. If there were too many calls at a time, the client may try again after one
// second.
func (p *Problem) GetHeaders() http.Header {
	if p.Code != string(sqlstate.TooManyConnections) {
		return nil
	}
	return http.Header{"Retry-After": {"1"}}
}

const problemJSON = "application/problem+json"

// statusOf maps an error code to the HTTP status. A single code takes precedence over its class.
func statusOf(code sqlstate.Code) int {
	switch code {
	case sqlstate.ConsentNotFound, sqlstate.UndefinedObject:
		return http.StatusNotFound
	case sqlstate.ConsentConflict:
		return http.StatusConflict
	case sqlstate.ConsentExpired:
		return http.StatusGone
	case sqlstate.ConsentValidation:
		return http.StatusUnprocessableEntity
	case sqlstate.ConsentTampered:
		return http.StatusInternalServerError
	case sqlstate.ConsentClock:
		return http.StatusServiceUnavailable
	case sqlstate.InsufficientPrivilege:
		return http.StatusForbidden
	case sqlstate.LimitExceeded:
		return http.StatusTooManyRequests
	case sqlstate.QueryCanceled:
		return http.StatusGatewayTimeout
	case sqlstate.ConfigFileError:
		return http.StatusNotImplemented
	case sqlstate.FeatureNotSupported, sqlstate.ProtocolViolation:
		return http.StatusBadRequest
	}
	switch class := string(code)[:2]; class {
	case "28":
		return http.StatusUnauthorized
	case "22", "42":
		return http.StatusBadRequest
	case "23", "55":
		return http.StatusConflict
	case "54":
		return http.StatusRequestEntityTooLarge
	case "08", "3D", "40", "53", "57", "58":
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// problemOf converts an error to the problem that the caller gets. An error from outside pgconsent gets a fixed text.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = sqlstate.New(sqlstate.QueryCanceled, sqlstate.ReasonLimit, "the call took too long").
			WithHint("Try again; with an Idempotency-Key a change is made only once.")
	}
	e := sqlstate.AsError(err)
	p := newProblem(statusOf(e.Code), e)
	var namedErr consent.Named
	if errors.As(err, &namedErr) {
		p.Name = namedErr.Name()
	}
	if blocked, ok := errors.AsType[*privacy.BlockedError](err); ok {
		report := generalizeReport(blocked.Report)
		p.Report = &report
	}
	return p
}

func newProblem(status int, e *sqlstate.Error) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: string(e.Code),
		Detail: e.Message, Hint: e.Hint}
}

// Package huma calls huma.NewError for its own errors: those of requests that do not match /openapi.json.
func init() {
	huma.DefaultArrayNullable = false
	huma.ValidateStrictCasing = true
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		return invalidRequest(nil, status, message, errs)
	}
	huma.NewErrorWithContext = func(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
		return invalidRequest(ctx, status, message, errs)
	}
}

// invalidRequest returns the error for a request that does not match /openapi.json. It leaves out the values in the
// request, which the caller knows.
func invalidRequest(ctx huma.Context, status int, message string, errs []error) huma.StatusError {
	for _, err := range errs {
		var statusError *sqlstate.Error
		if errors.As(err, &statusError) || status >= 500 {
			return problemOf(err)
		}
	}
	code := sqlstate.InvalidParameterValue
	if status == http.StatusInternalServerError {
		return problemOf(errors.New(message))
	}
	p := newProblem(status, sqlstate.New(code, sqlstate.ReasonSyntax, "the request does not match /openapi.json"))
	if ctx != nil && ctx.Operation() != nil && status == http.StatusUnprocessableEntity {
		for _, tag := range ctx.Operation().Tags {
			switch tag {
			case tagConsent:
				p.Code, p.Name = string(sqlstate.ConsentValidation), (*consent.ValidationError)(nil).Name()
			case tagPrivacy:
				p.Code, p.Name = string(sqlstate.ConsentValidation), privacy.NameValidation
			}
		}
	}
	for _, err := range errs {
		place := Place{Message: err.Error()}
		if d, ok := err.(huma.ErrorDetailer); ok {
			place = Place{Location: d.ErrorDetail().Location, Message: d.ErrorDetail().Message}
		}
		place.Message = strings.ToValidUTF8(place.Message, "?")
		p.Errors = append(p.Errors, place)
	}
	if len(p.Errors) == 0 {
		p.Errors = []Place{{Message: message}}
	}
	return p
}

// write sends the problem as the answer.
func (p *Problem) write(w http.ResponseWriter) {
	text, err := json.Marshal(p)
	if err != nil {
		text = []byte(
			`{"type":"about:blank","title":"Internal Server Error","status":500,"code":"XX000","detail":"internal error in pgconsent"}`)
	}
	w.Header().Set("Content-Type", problemJSON)
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="pgconsent"`)
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(text, '\n'))
}
