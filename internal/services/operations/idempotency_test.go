package operations

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

func sumOf(t *testing.T, body string) [32]byte {
	t.Helper()
	sum, err := RequestDigest("POST /v1/memories", []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestIdempotencyKeys(t *testing.T) {
	a, now := &AnswerStore{}, time.Unix(1_000_000, 0)
	one := sumOf(t, `{"content":"x","kind":"note"}`)
	if one != sumOf(t, "{ \"kind\": \"note\",\n\"content\":\"\\u0078\" }") || one == sumOf(t, `{"content":"y","kind":"note"}`) || one == sumOf(t, "") {
		t.Error("what is asked is told apart by how it is written, or not at all")
	}
	named := func(name string) identity.Caller { return identity.Caller{Name: name} }
	begin := func(caller, key string, sum [32]byte) (mine, known *IdempotentAnswer, err error) {
		t.Helper()
		return a.BeginCall(t.Context(), named(caller), key, sum, now)
	}
	first, _, err := begin("ash", "k", one)
	if err != nil || first == nil {
		t.Fatal(err)
	}
	// A repetition waits while the first call is still running.
	waited := make(chan *IdempotentAnswer)
	go func() {
		_, known, err := a.BeginCall(context.Background(), named("ash"), "k", one, now)
		if err != nil {
			t.Error(err)
		}
		waited <- known
	}()
	impatient, stop := context.WithCancel(t.Context())
	stop()
	if _, _, err := a.BeginCall(impatient, named("ash"), "k", one, now); err == nil {
		t.Error("a call that has ended waits")
	}
	a.EndCall(named("ash"), first, &Response{201, "application/json", []byte(`{"id":"1"}`), []string{"dog:bella"}})
	if known := <-waited; known != first || string(known.Body) != `{"id":"1"}` || known.Status != 201 || known.Subjects[0] != "dog:bella" {
		t.Errorf("who has waited got %v", known)
	}
	var conflict *sqlstate.Error
	if _, _, err := begin("ash", "k", sumOf(t, `{"content":"y"}`)); !errors.As(err, &conflict) || conflict.Code != sqlstate.ConsentConflict {
		t.Errorf("another change: %v", err)
	}
	if mine, known, err := begin("rex", "k", sumOf(t, `{"content":"y"}`)); err != nil || mine == nil || known != nil {
		t.Error("a key is another caller's")
	}
	// After a failure, the key can be used again, also for another request.
	failed, _, _ := begin("ash", "f", one)
	a.EndCall(named("ash"), failed, nil)
	if mine, _, err := begin("ash", "f", sumOf(t, `{"content":"y"}`)); err != nil || mine == nil {
		t.Errorf("after a failure: %v", err)
	}
	// After a day the answer is forgotten.
	now = now.Add(answerLifetime + time.Second)
	if mine, known, _ := begin("ash", "k", one); mine == nil || known != nil {
		t.Error("it is remembered for ever")
	}
	// The number of stored answers is limited, per caller and in all.
	for i := range maxKeysPerCaller + 10 {
		mine, _, err := begin("many", strconv.Itoa(i), one)
		if err != nil || mine == nil {
			t.Fatal(err)
		}
		a.EndCall(named("many"), mine, &Response{Status: 200, Body: []byte("x")})
	}
	if n := a.byCaller[callerKey(named("many"))].order.Len(); n != maxKeysPerCaller {
		t.Errorf("%d are remembered", n)
	}
	if _, known, _ := begin("many", strconv.Itoa(maxKeysPerCaller+9), one); known == nil {
		t.Error("the newest is forgotten")
	}
	large := []byte(strings.Repeat("x", 1<<20))
	for i := range 40 {
		mine, _, _ := begin("large", strconv.Itoa(i), one)
		a.EndCall(named("large"), mine, &Response{Status: 200, Body: large})
	}
	if _, known, _ := begin("many", strconv.Itoa(maxKeysPerCaller+9), one); a.bytes > maxAnswerBytes || known == nil {
		t.Errorf("%d bytes, and who has little gives way: %v", a.bytes, known)
	}
	// A caller who acts for a user is a different caller for each user.
	alice, bob := identity.Caller{Role: identity.Agent, Name: "jwt 1",
		Claims: map[string]string{"user": "alice"}}, identity.Caller{Role: identity.Agent, Name: "jwt 1", Claims: map[string]string{"user": "bob"}}
	if callerKey(alice) == callerKey(bob) {
		t.Error("two users of one agent are one caller")
	}
}

// If the name of a token is given to another agent or subject, it is a different caller: stored answers to the former
// are not returned.
func TestReusedTokenNames(t *testing.T) {
	chat := identity.Caller{Name: "app", Role: identity.Agent, Agent: "chat", Database: "d"}
	for _, other := range []identity.Caller{
		{Name: "app", Role: identity.Agent, Agent: "voice", Database: "d"}, {Name: "app", Role: identity.Subject, Subject: "chat", Database: "d"},
	} {
		if callerKey(chat) == callerKey(other) {
			t.Errorf("%+v has the answers of %+v", other, chat)
		}
	}
}
