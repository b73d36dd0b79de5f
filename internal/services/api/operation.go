package api

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/services/operations"
)

// Operation describes an operation of the API.
type Operation struct {
	ID          string // id of the operation in /openapi.json, such as consent-status
	Method      string
	Path        string
	Tag         string
	Summary     string
	Description string

	Roles          []identity.Role // roles that may call the operation; package operations may refuse further callers
	Writes         bool            // the operation may change something
	AboutEverybody bool            // the operation is about all data subjects of the database
	SkipsAudit     bool            // the audit does not record calls of the operation
	// A repeated call with the same Idempotency-Key gets the first answer from memory, because the change itself does not
	// record the key.
	HasIdempotencyKey bool
	Status            int            // the HTTP status of success; 0: 200
	OtherStatuses     map[int]string // other success statuses, with their descriptions
	Errors            []int          // error statuses besides those that every operation has
}

// Idempotent is embedded in the inputs of operations that accept an idempotency key.
type Idempotent struct {
	Key string `header:"Idempotency-Key" maxLength:"200" doc:"A key of your choice: a repeated call with the same key makes the change only once. Another change with it is refused."`
}

// commonErrors are the error statuses that every operation has.
var commonErrors = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestURITooLong,
	http.StatusUnprocessableEntity, http.StatusTooManyRequests,
	http.StatusInternalServerError, http.StatusNotImplemented, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// addOperation adds an operation to the API. A caller that has none of the operation's roles is refused before the
// request is parsed.
func addOperation[I, O any](s *Server, o Operation, handler func(context.Context, *Call, *I) (*O, error)) {
	if o.Status == 0 {
		o.Status = http.StatusOK
	}
	errs := append(slices.Clone(commonErrors), o.Errors...)
	if o.Method != http.MethodGet {
		errs = append(errs, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	slices.Sort(errs)
	op := huma.Operation{
		OperationID: o.ID, Method: o.Method, Path: o.Path, Tags: []string{o.Tag}, Summary: o.Summary,
		Description:   o.Description + "\n\nRoles: " + operations.RoleList(o.Roles) + ".",
		DefaultStatus: o.Status, Errors: slices.Compact(errs), Security: []map[string][]string{{"bearer": {}}},
		MaxBodyBytes: -1, BodyReadTimeout: -1, // this package has read the body already
	}
	op.Middlewares = huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) {
		call := ctx.Context().Value(callKey{}).(*Call)
		call.operation, call.mayWrite, call.skipsAudit, call.aboutEverybody = strings.ReplaceAll(o.ID, "-",
			"."), o.Writes, o.SkipsAudit, o.AboutEverybody
		if err := operations.RequireRole(call.Caller, o.Roles...); err != nil {
			call.aboutEverybody = false
			_ = huma.WriteErr(s.api, ctx, http.StatusForbidden, "", err)
			return
		}
		if nullPath := findNull(call.body); nullPath != "" {
			_ = huma.WriteErr(s.api, ctx, http.StatusUnprocessableEntity,
				"", &huma.ErrorDetail{Location: nullPath, Message: "null is no value here: leave the member out"})
			return
		}
		if !o.HasIdempotencyKey {
			next(ctx)
			return
		}
		s.runOnce(ctx.Context(), call, &idempotentRequest{o.Method, o.Path, ctx.Header("Idempotency-Key"), call.answer},
			func() { next(ctx) })
	}}
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := handler(ctx, ctx.Value(callKey{}).(*Call), in)
		if err != nil {
			p := problemOf(err)
			if p.Status >= 500 {
				s.Log.Warn("a call failed", "operation", o.ID, "code", p.Code, "cause", logCause(err))
			}
			return nil, p
		}
		return out, nil
	})
	documented := s.api.OpenAPI().Paths[o.Path]
	for _, documentedOperation := range []*huma.Operation{documented.Get, documented.Post, documented.Put,
		documented.Delete} {
		if documentedOperation == nil || documentedOperation.OperationID != o.ID {
			continue
		}
		for status, description := range o.OtherStatuses {
			documentedOperation.Responses[statusCodeText(status)] = &huma.Response{Description: description,
				Content: documentedOperation.Responses[statusCodeText(o.Status)].Content}
		}
		for status, r := range documentedOperation.Responses {
			if o.HasIdempotencyKey && status[0] == '2' {
				r.Headers = map[string]*huma.Header{
					replayedHeader: {Description: "true: it was done before, and is answered as it was then.",
						Schema: &huma.Schema{Type: huma.TypeString}}}
			}
		}
		for status, headers := range extraHeaders {
			if r := documentedOperation.Responses[statusCodeText(status)]; r != nil {
				r.Headers = headers
			}
		}
	}
}

// findNull returns the place of a null in a body, or "" if there is none. No member may be null; package huma would
// treat null like a missing member.
func findNull(body []byte) string {
	var value any
	if len(body) == 0 || json.Unmarshal(body, &value) != nil {
		return ""
	}
	var look func(path string, value any) string
	look = func(path string, value any) string {
		switch v := value.(type) {
		case nil:
			return path
		case []any:
			for i, element := range v {
				if found := look(fmt.Sprintf("%s[%d]", path, i), element); found != "" {
					return found
				}
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if found := look(path+"."+name, v[name]); found != "" {
					return found
				}
			}
		}
		return ""
	}
	return look("body", value)
}

// extraHeaders has, by HTTP status, headers of answers that not every answer has.
var extraHeaders = map[int]map[string]*huma.Header{
	http.StatusUnauthorized: {"WWW-Authenticate": {
		Description: "Bearer", Required: true, Schema: &huma.Schema{Type: huma.TypeString}}},
	http.StatusTooManyRequests: {"Retry-After": {Description: "After how many seconds to call again.", Required: true,
		Schema: &huma.Schema{Type: huma.TypeInteger}}},
}

// statusCodeText returns an HTTP status as text of three digits.
func statusCodeText(status int) string {
	return string([]byte{byte('0' + status/100), byte('0' + status/10%10), byte('0' + status%10)})
}
