package api

import (
	"context"
	"net/http"
	"testing"

	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// If all sessions of an agent are in use, the API answers with status 503 and the header Retry-After (RFC 9110,
// 10.2.3).
func TestRetryAfterWhenSessionsAreFull(t *testing.T) {
	s := limited(t, Config{})
	addOperation(s, Operation{ID: "look", Method: http.MethodGet, Path: "/v1/looked", Tag: "test", Roles: []identity.Role{identity.Admin}},
		func(context.Context, *Call, *struct{}) (*struct{}, error) {
			return nil, sqlstate.New(sqlstate.TooManyConnections, sqlstate.ReasonLimit, "sorry, too many clients already").WithHint("try again")
		})
	w, p := get(t, s, "/v1/looked", "admin-1")
	if w.Code != http.StatusServiceUnavailable || p.Code != "53300" || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %s, Retry-After %q", w.Code, w.Body, w.Header().Get("Retry-After"))
	}
}
