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

	"github.com/pgconsent/pgconsent/internal/face/identity"
	"github.com/pgconsent/pgconsent/internal/face/operations"
)

// Operation describes one operation of a resource.
type Operation struct {
	ID          string // as consent-status: its name in the document, and with a dot in records
	Method      string
	Path        string
	Tag         string
	Summary     string
	Description string

	Roles     []identity.Role // who may call it at all; what else they may is package operations's to say
	Writes    bool            // it changes something
	Everybody bool            // it is about all persons of the database
	Silent    bool            // it is in no record
	// a call with the Idempotency-Key of one before is answered as that was: what it changes keeps no keys
	Once   bool
	Status int            // of success; 0: 200
	Also   map[int]string // other statuses of success, with the same body
	Errors []int          // besides those that every operation has
}

// Idempotent is embedded in the input of what can be asked for twice and is done once.
type Idempotent struct {
	Key string `header:"Idempotency-Key" maxLength:"200" doc:"A key of your choice: the same change with the same key is done once. Another change with it is refused."`
}

// commonErrors are the errors that every operation has.
var commonErrors = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestURITooLong,
	http.StatusUnprocessableEntity, http.StatusTooManyRequests,
	http.StatusInternalServerError, http.StatusNotImplemented, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// add makes an operation. Whoever has no role of it is refused before anything of the request is looked at.
func add[I, O any](s *Server, o Operation, do func(context.Context, *Call, *I) (*O, error)) {
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
		Description:   o.Description + "\n\nRoles: " + operations.Roles(o.Roles) + ".",
		DefaultStatus: o.Status, Errors: slices.Compact(errs), Security: []map[string][]string{{"bearer": {}}},
		MaxBodyBytes: -1, BodyReadTimeout: -1, // the whole body is there already
	}
	op.Middlewares = huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) {
		call := ctx.Context().Value(callKey{}).(*Call)
		call.operation, call.writes, call.silent, call.everybody = strings.ReplaceAll(o.ID, "-",
			"."), o.Writes, o.Silent, o.Everybody
		if err := operations.RequireRole(call.Caller, o.Roles...); err != nil {
			call.everybody = false
			_ = huma.WriteErr(s.api, ctx, http.StatusForbidden, "", err)
			return
		}
		if where := findNull(call.body); where != "" {
			_ = huma.WriteErr(s.api, ctx, http.StatusUnprocessableEntity,
				"", &huma.ErrorDetail{Location: where, Message: "null is no value here: leave the member out"})
			return
		}
		if !o.Once {
			next(ctx)
			return
		}
		s.doOnce(ctx.Context(), call, &onceRequest{o.Method, o.Path, ctx.Header("Idempotency-Key"), call.answer},
			func() { next(ctx) })
	}}
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := do(ctx, ctx.Value(callKey{}).(*Call), in)
		if err != nil {
			p := problem(err)
			if p.Status >= 500 {
				s.Log.Warn("a call failed", "operation", o.ID, "code", p.Code, "cause", cause(err))
			}
			return nil, p
		}
		return out, nil
	})
	documented := s.api.OpenAPI().Paths[o.Path]
	for _, one := range []*huma.Operation{documented.Get, documented.Post, documented.Put, documented.Delete} {
		if one == nil || one.OperationID != o.ID {
			continue
		}
		for status, description := range o.Also {
			one.Responses[code(status)] = &huma.Response{Description: description, Content: one.Responses[code(o.Status)].Content}
		}
		for status, r := range one.Responses {
			if o.Once && status[0] == '2' {
				r.Headers = map[string]*huma.Header{
					replayedHeader: {Description: "true: it was done before, and is answered as it was then.",
						Schema: &huma.Schema{Type: huma.TypeString}}}
			}
		}
		for status, headers := range extraHeaders {
			if r := one.Responses[code(status)]; r != nil {
				r.Headers = headers
			}
		}
	}
}

// findNull is where a body has one; "" if nowhere. No member of a request takes it, and the library takes it for a member
// that is not there.
func findNull(body []byte) string {
	var value any
	if len(body) == 0 || json.Unmarshal(body, &value) != nil {
		return ""
	}
	var look func(where string, value any) string
	look = func(where string, value any) string {
		switch v := value.(type) {
		case nil:
			return where
		case []any:
			for i, one := range v {
				if found := look(fmt.Sprintf("%s[%d]", where, i), one); found != "" {
					return found
				}
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if found := look(where+"."+name, v[name]); found != "" {
					return found
				}
			}
		}
		return ""
	}
	return look("body", value)
}

// extraHeaders are the headers that answers have besides those of all of them.
var extraHeaders = map[int]map[string]*huma.Header{
	http.StatusUnauthorized: {"WWW-Authenticate": {
		Description: "Bearer", Required: true, Schema: &huma.Schema{Type: huma.TypeString}}},
	http.StatusTooManyRequests: {"Retry-After": {Description: "After how many seconds to call again.", Required: true,
		Schema: &huma.Schema{Type: huma.TypeInteger}}},
}

func code(status int) string {
	return string([]byte{byte('0' + status/100), byte('0' + status/10%10), byte('0' + status%10)})
}
