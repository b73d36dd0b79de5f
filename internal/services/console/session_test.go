package console

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/services/identity"
)

// verifier accepts the tokens that it contains. A test can remove tokens from it.
type verifier map[string]identity.Caller

func (v verifier) Verify(_ context.Context, token string) (identity.Caller, error) {
	if c, ok := v[token]; ok {
		return c, nil
	}
	return identity.Caller{}, identity.NewRefusal(errors.New("unknown"))
}

func TestSessionsEnd(t *testing.T) {
	now := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	sessions := newSessions(func() time.Time { return now })
	v := verifier{"secret-token": {Name: "ada", Role: identity.Subject, Subject: "ada"}}
	openSession := func(token string) []byte {
		t.Helper()
		_, value, err := sessions.begin(token)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := base64.RawURLEncoding.DecodeString(value)
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	secret := openSession("secret-token")
	s := sessions.find(secret)
	if s == nil {
		t.Fatal("there is no session")
	}
	if caller, err := s.verifyCaller(t.Context(), v, secret); err != nil || caller.Subject != "ada" {
		t.Errorf("%+v %v", caller, err)
	}
	unknownSecret := make([]byte, 32)
	if sessions.find(unknownSecret) != nil {
		t.Error("an invented cookie opens a session")
	}
	if _, err := s.verifyCaller(t.Context(), v, unknownSecret); err == nil {
		t.Error("the token opens with another cookie")
	}
	// A session that is used continuously ends after its maximum lifetime.
	for range 32 {
		now = now.Add(14 * time.Minute)
		if sessions.find(secret) == nil {
			t.Fatalf("over at %v", now)
		}
	}
	now = now.Add(33 * time.Minute)
	if sessions.find(secret) != nil {
		t.Error("a session outlives its longest time")
	}
	secret = openSession("secret-token")
	now = now.Add(idleTimeout + time.Second)
	if sessions.find(secret) != nil {
		t.Error("an idle session lives on")
	}
	// A session ends if its token is removed, or now identifies a caller of another role.
	secret = openSession("secret-token")
	s = sessions.find(secret)
	v["secret-token"] = identity.Caller{Name: "chat", Role: identity.Agent, Agent: "chat"}
	if _, err := s.verifyCaller(t.Context(), v, secret); err == nil {
		t.Error("an agent's token goes on")
	}
	delete(v, "secret-token")
	if _, err := s.verifyCaller(t.Context(), v, secret); err == nil {
		t.Error("a token that was taken away goes on")
	}
	// The number of sessions is limited, in all and per token. The sessions idle for longest are ended first.
	first := openSession("of one")
	for range maxSessionsPerToken + 5 {
		now = now.Add(time.Millisecond)
		openSession("of one")
	}
	if sessions.find(first) != nil {
		t.Error("a token has any number of sessions")
	}
	for i := range maxSessions + 10 {
		now = now.Add(time.Millisecond)
		openSession(fmt.Sprint(i))
	}
	if n := len(sessions.bySecretHash); n > maxSessions {
		t.Errorf("%d sessions", n)
	}
}

func TestHandlesAreOfOneSession(t *testing.T) {
	sessions := newSessions(time.Now)
	a, _, err := sessions.begin("a")
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := sessions.begin("b")
	if err != nil {
		t.Fatal(err)
	}
	h := a.handleFor("ada")
	if id, ok := a.idOf(h); !ok || id != "ada" || a.handleFor("ada") != h {
		t.Error("a handle does not lead back")
	}
	if _, ok := b.idOf(h); ok || b.handleFor("ada") == h {
		t.Error("a handle of another session leads somewhere")
	}
	for i := range maxHandlesPerSession + 10 {
		a.handleFor(fmt.Sprint(i))
	}
	if len(a.handles) > maxHandlesPerSession {
		t.Errorf("%d handles", len(a.handles))
	}
}

// Logins with wrong tokens become limited. A login with a valid token always succeeds.
func TestLoginAttemptsAreSlowed(t *testing.T) {
	now := time.Now()
	tr := &loginLimiter{now: func() time.Time { return now }}
	for i := range freeAttempts {
		if !tr.countFailure() {
			t.Fatalf("try %d is too many", i)
		}
	}
	if tr.countFailure() {
		t.Error("any number is free")
	}
	now = now.Add(2 * time.Second)
	for i, want := range []bool{true, true, false} {
		if tr.countFailure() != want {
			t.Errorf("failure %d after two seconds: it is not one each second", i)
		}
	}
}
