package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// After a call that failed, its idempotency key can be used for a new call. After a call that succeeded, a repetition
// of the call changes nothing and gets the same answer.
func TestFailedCallsFreeTheirIdempotencyKey(t *testing.T) {
	type errorBody struct{ Status int }
	refused := sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonConsent, "no").WithHint("ask")
	upstreamError := sqlstate.New(sqlstate.AdminShutdown, sqlstate.ReasonUpstream, "gone")
	for name, c := range map[string]struct {
		firstResponse error
		want          int
	}{"done": {nil, http.StatusCreated}, "refused": {refused, http.StatusForbidden},
		"failed": {upstreamError, http.StatusServiceUnavailable}} {
		t.Run(name, func(t *testing.T) {
			s, callCount := limited(t, Config{}), 0
			result := c.firstResponse
			addOperation(s, Operation{ID: "make", Method: http.MethodPost, Path: "/v1/made", Tag: "test",
				Roles: []identity.Role{identity.Admin}, HasIdempotencyKey: true, Status: http.StatusCreated},
				func(context.Context, *Call, *struct{}) (*errorBody, error) {
					callCount++
					return &errorBody{Status: http.StatusCreated}, result
				})
			call := func() *httptest.ResponseRecorder {
				r := httptest.NewRequest("POST", "/v1/made", nil)
				r.Header.Set("Authorization", "Bearer admin-1")
				r.Header.Set("Idempotency-Key", "k")
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				return w
			}
			if w := call(); w.Code != c.want || w.Header().Get(replayedHeader) != "" {
				t.Fatalf("the first call: %d %s", w.Code, w.Body)
			}
			result = nil
			secondResponse := call()
			wantCallCount := map[bool]int{true: 1, false: 2}[c.firstResponse == nil]
			if secondResponse.Code != http.StatusCreated || callCount != wantCallCount ||
				(secondResponse.Header().Get(replayedHeader) == "true") != (c.firstResponse == nil) {
				t.Errorf("repeated: %d %s, done %d times, %s %q", secondResponse.Code, secondResponse.Body, callCount, replayedHeader,
					secondResponse.Header().Get(replayedHeader))
			}
			if lastResponse := call(); lastResponse.Code != http.StatusCreated || callCount != wantCallCount ||
				lastResponse.Header().Get(replayedHeader) != "true" {
				t.Errorf("repeated after a success: %d %s, done %d times", lastResponse.Code, lastResponse.Body, callCount)
			}
		})
	}
}
