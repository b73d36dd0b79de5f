package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/services/operations"
)

// roleVerifier accepts tokens that begin with the name of a role.
type roleVerifier struct{}

// Verify implements identity.Verifier.
func (roleVerifier) Verify(_ context.Context, bearer string) (identity.Caller, error) {
	role, _, ok := strings.Cut(bearer, "-")
	if !ok {
		return identity.Caller{}, identity.NewRefusal(errors.New("not known"))
	}
	return identity.Caller{Name: bearer, Role: identity.Role(role), Database: "app"}, nil
}

func limited(t *testing.T, c Config) *Server {
	t.Helper()
	c.Service, c.Verifier = &operations.Service{Databases: map[string]*operations.Database{},
		Record: func(context.Context, audit.Call) error { return nil }}, roleVerifier{}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func get(t *testing.T, s *Server, path, token string) (*httptest.ResponseRecorder, Problem) {
	t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	var p Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("%s: %v: %s", path, err, w.Body)
	}
	return w, p
}

// The API limits the calls of each caller separately. The rate is so low here that the speed of the machine does not
// matter.
func TestRateOfACaller(t *testing.T) {
	s := limited(t, Config{CallsPerSecond: 1e-6, BurstCalls: 3})
	for i := range 5 {
		w, p := get(t, s, "/v1/nothing", "admin-1")
		if i < 3 && w.Code != http.StatusNotFound ||
			i >= 3 && (w.Code != http.StatusTooManyRequests || p.Code != "53400" || w.Header().Get("Retry-After") != "1") {
			t.Errorf("call %d: %d %s", i+1, w.Code, w.Body)
		}
	}
	if w, _ := get(t, s, "/v1/nothing", "admin-2"); w.Code != http.StatusNotFound {
		t.Errorf("another caller: %d", w.Code)
	}
	// Calls without a valid token are limited by address. They do not count as calls of callers with a token.
	s.addressLimits = newRateLimiter(1e-6, 3)
	for i := range 5 {
		w, _ := get(t, s, "/v1/nothing", "wrong")
		if want := map[bool]int{true: http.StatusUnauthorized,
			false: http.StatusTooManyRequests}[i < 3]; w.Code != want || i >= 3 && w.Header().Get("Retry-After") == "" {
			t.Errorf("wrong token, call %d: %d, want %d", i+1, w.Code, want)
		}
	}
	if w, _ := get(t, s, "/v1/nothing", "admin-3"); w.Code != http.StatusNotFound {
		t.Errorf("a caller beside them: %d", w.Code)
	}
}

// A caller whose burst is used up gets new calls at the rate, and the limiter forgets callers that no longer call.
func TestRateLimiterBurst(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	r := newRateLimiter(50, 200)
	countAllowed := func(caller string, calls int) (n int) {
		for range calls {
			if r.allowCall(caller, now) {
				n++
			}
		}
		return n
	}
	if n := countAllowed("a", 300); n != 200 {
		t.Errorf("%d at once", n)
	}
	now = now.Add(time.Second)
	if n := countAllowed("a", 300); n != 50 {
		t.Errorf("%d a second later", n)
	}
	now = now.Add(time.Hour)
	if n := countAllowed("a", 300); n != 200 {
		t.Errorf("%d an hour later", n)
	}
	for i := range 2 * maxCallers {
		r.allowCall(string(rune('A'+i%26))+time.Duration(i).String(), now)
	}
	if len(r.buckets) > maxCallers {
		t.Errorf("%d callers are told apart", len(r.buckets))
	}
}

// The number of calls at the same time, and the duration of a call, are limited.
func TestConcurrentCallsAreBounded(t *testing.T) {
	s := limited(t, Config{Timeout: time.Millisecond})
	for range cap(s.callSlots) {
		s.callSlots <- struct{}{}
	}
	if w, p := get(t, s, "/v1/nothing", "admin-1"); w.Code != http.StatusServiceUnavailable || p.Code != "53300" || w.Header().Get("Retry-After") == "" {
		t.Errorf("one too many: %d %s", w.Code, w.Body)
	}
	<-s.callSlots
	if w, _ := get(t, s, "/v1/nothing", "admin-1"); w.Code != http.StatusNotFound {
		t.Errorf("one that there is room for: %d", w.Code)
	}
	addOperation(s, Operation{ID: "wait", Method: http.MethodGet, Path: "/v1/wait", Tag: "test",
		Roles: []identity.Role{identity.Admin}}, func(ctx context.Context, _ *Call, _ *struct{}) (*struct{}, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if w, p := get(t, s, "/v1/wait", "admin-1"); w.Code != http.StatusGatewayTimeout || p.Code != "57014" {
		t.Errorf("one that lasts: %d %s", w.Code, w.Body)
	}
}
