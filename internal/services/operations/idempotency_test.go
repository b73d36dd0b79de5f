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
	requestSum := sumOf(t, `{"content":"x","kind":"note"}`)
	if requestSum != sumOf(t, "{ \"kind\": \"note\",\n\"content\":\"\\u0078\" }") ||
		requestSum == sumOf(t, `{"content":"y","kind":"note"}`) || requestSum == sumOf(t, "") {
		t.Error("what is asked is told apart by how it is written, or not at all")
	}
	callerNamed := func(name string) identity.Caller { return identity.Caller{Name: name} }
	beginCall := func(caller, key string, sum [32]byte) (newAnswer, storedAnswer *IdempotentAnswer, err error) {
		t.Helper()
		return a.BeginCall(t.Context(), callerNamed(caller), key, sum, now)
	}
	firstAnswer, _, err := beginCall("ash", "k", requestSum)
	if err != nil || firstAnswer == nil {
		t.Fatal(err)
	}
	// A repetition waits while the first call is still running.
	waitedAnswer := make(chan *IdempotentAnswer)
	go func() {
		_, storedAnswer, err := a.BeginCall(context.Background(), callerNamed("ash"), "k", requestSum, now)
		if err != nil {
			t.Error(err)
		}
		waitedAnswer <- storedAnswer
	}()
	shortCtx, stop := context.WithCancel(t.Context())
	stop()
	if _, _, err := a.BeginCall(shortCtx, callerNamed("ash"), "k", requestSum, now); err == nil {
		t.Error("a call that has ended waits")
	}
	a.EndCall(callerNamed("ash"), firstAnswer, &Response{201, "application/json", []byte(`{"id":"1"}`), []string{"dog:bella"}})
	if storedAnswer := <-waitedAnswer; storedAnswer != firstAnswer || string(storedAnswer.Body) != `{"id":"1"}` ||
		storedAnswer.Status != 201 || storedAnswer.Subjects[0] != "dog:bella" {
		t.Errorf("who has waited got %v", storedAnswer)
	}
	var conflict *sqlstate.Error
	if _, _, err := beginCall("ash", "k", sumOf(t, `{"content":"y"}`)); !errors.As(err, &conflict) ||
		conflict.Code != sqlstate.ConsentConflict {
		t.Errorf("another change: %v", err)
	}
	if newAnswer, storedAnswer, err := beginCall("rex", "k", sumOf(t, `{"content":"y"}`)); err != nil || newAnswer == nil ||
		storedAnswer != nil {
		t.Error("a key is another caller's")
	}
	// After a call that failed, its key can be used again, also for another request.
	failed, _, _ := beginCall("ash", "f", requestSum)
	a.EndCall(callerNamed("ash"), failed, nil)
	if newAnswer, _, err := beginCall("ash", "f", sumOf(t, `{"content":"y"}`)); err != nil || newAnswer == nil {
		t.Errorf("after a failure: %v", err)
	}
	// After a day the answer is forgotten.
	now = now.Add(answerLifetime + time.Second)
	if newAnswer, storedAnswer, _ := beginCall("ash", "k", requestSum); newAnswer == nil || storedAnswer != nil {
		t.Error("it is remembered for ever")
	}
	// The number of stored answers is limited, per caller and in all.
	for i := range maxKeysPerCaller + 10 {
		newAnswer, _, err := beginCall("many", strconv.Itoa(i), requestSum)
		if err != nil || newAnswer == nil {
			t.Fatal(err)
		}
		a.EndCall(callerNamed("many"), newAnswer, &Response{Status: 200, Body: []byte("x")})
	}
	if n := a.byCaller[callerKey(callerNamed("many"))].order.Len(); n != maxKeysPerCaller {
		t.Errorf("%d are remembered", n)
	}
	if _, storedAnswer, _ := beginCall("many", strconv.Itoa(maxKeysPerCaller+9), requestSum); storedAnswer == nil {
		t.Error("the newest is forgotten")
	}
	largeAnswer := []byte(strings.Repeat("x", 1<<20))
	for i := range 40 {
		newAnswer, _, _ := beginCall("large", strconv.Itoa(i), requestSum)
		a.EndCall(callerNamed("large"), newAnswer, &Response{Status: 200, Body: largeAnswer})
	}
	if _, storedAnswer, _ := beginCall("many", strconv.Itoa(maxKeysPerCaller+9), requestSum); a.bytes > maxAnswerBytes || storedAnswer == nil {
		t.Errorf("%d bytes, and who has little gives way: %v", a.bytes, storedAnswer)
	}
	// A caller who acts for a user is a different caller for each user.
	alice, bob := identity.Caller{Role: identity.Agent, Name: "jwt 1",
		Claims: map[string]string{"user": "alice"}}, identity.Caller{Role: identity.Agent, Name: "jwt 1", Claims: map[string]string{"user": "bob"}}
	if callerKey(alice) == callerKey(bob) {
		t.Error("two users of one agent are one caller")
	}
}

// If a token's name is later given to another agent or subject, that one is a different caller: stored answers to the
// former are not returned.
func TestReusedTokenNames(t *testing.T) {
	chat := identity.Caller{Name: "app", Role: identity.Agent, Agent: "chat", Database: "d"}
	for _, otherCaller := range []identity.Caller{
		{Name: "app", Role: identity.Agent, Agent: "voice", Database: "d"}, {Name: "app", Role: identity.Subject, Subject: "chat", Database: "d"},
	} {
		if callerKey(chat) == callerKey(otherCaller) {
			t.Errorf("%+v has the answers of %+v", otherCaller, chat)
		}
	}
}
