package operations

import (
	"bytes"
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Limits of the answers that an AnswerStore remembers.
const (
	answerLifetime   = 24 * time.Hour
	maxKeysPerCaller = 1000 // how many keys of one caller are remembered
	// size of the answers to all callers; beyond that, the caller with the most bytes loses its oldest answers
	maxAnswerBytes = 32 << 20

	// MaxKeyBytes is the length of the longest idempotency key, in bytes.
	MaxKeyBytes = 200
)

// AnswerStore remembers the answers to calls that have an idempotency key, so that a repeated call gets the first
// answer. It is for operations whose changes leave no record with the key. HTTP and MCP share it. A restart loses the
// answers. The zero value is ready to use.
type AnswerStore struct {
	mu       sync.Mutex
	byCaller map[string]*callerAnswers // by callerKey
	bytes    int
}

// callerAnswers has the remembered answers to one caller.
type callerAnswers struct {
	byKey map[string]*list.Element
	order *list.List // a list of *Answer, oldest first
	bytes int
}

// IdempotentAnswer is the answer to a call with an idempotency key, or stands for such a call in progress.
type IdempotentAnswer struct {
	key         string
	requestHash [sha256.Size]byte
	startedAt   time.Time
	answered    chan struct{} // closed when the call has been answered

	Response
	isKnown bool // the call succeeded, and Response is its answer
}

// Response is the answer to a call that succeeded, as HTTP or MCP sends it.
type Response struct {
	Status      int
	ContentType string
	Body        []byte
	Subjects    []string
}

// RequestDigest returns a hash of a request that does not depend on the order of its members or on white space.
func RequestDigest(operation string, body []byte) ([sha256.Size]byte, error) {
	var value any
	if len(body) > 0 {
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		if err := d.Decode(&value); err != nil {
			return [sha256.Size]byte{}, err
		}
	}
	canonical, err := json.Marshal(value) // Marshal sorts the names of members.
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return sha256.Sum256(fmt.Appendf(nil, "%s\n%s", operation, canonical)), nil
}

// callerKey returns a text that identifies a caller. The same token with another subject, agent or attributes is
// another caller.
func callerKey(c identity.Caller) string {
	parts := []string{string(c.Role), c.Name, c.Subject, c.Agent, c.Database}
	for _, name := range slices.Sorted(maps.Keys(c.Claims)) {
		parts = append(parts, name, c.Claims[name])
	}
	return strings.Join(parts, "\x00")
}

// NewKeyReusedError returns the error for a key that was used for a different request before.
func NewKeyReusedError() error {
	return sqlstate.New(sqlstate.ConsentConflict, sqlstate.ReasonConsent, "the key was used for another change").
		WithHint("Use a key of its own for each change.")
}

// BeginCall reserves a key for a call and returns newAnswer, or returns the storedAnswer to an earlier call with the
// key. While another call with the key is in progress, BeginCall waits. EndCall releases the key.
func (a *AnswerStore) BeginCall(ctx context.Context, c identity.Caller, key string, sum [sha256.Size]byte,
	now time.Time) (newAnswer, storedAnswer *IdempotentAnswer, err error) {
	caller := callerKey(c)
	for {
		a.mu.Lock()
		if a.byCaller == nil {
			a.byCaller = map[string]*callerAnswers{}
		}
		r := a.byCaller[caller]
		if r == nil {
			r = &callerAnswers{byKey: map[string]*list.Element{}, order: list.New()}
			a.byCaller[caller] = r
		}
		for first := r.order.Front(); first != nil &&
			now.Sub(first.Value.(*IdempotentAnswer).startedAt) > answerLifetime; first = r.order.Front() {
			a.remove(caller, first)
		}
		element, ok := r.byKey[key]
		if !ok {
			a.byCaller[caller] = r // The loop above may have removed the caller's last answer, and with it the caller's entry.
			newAnswer = &IdempotentAnswer{key: key, requestHash: sum, startedAt: now, answered: make(chan struct{})}
			r.byKey[key] = r.order.PushBack(newAnswer)
			for r.order.Len() > maxKeysPerCaller {
				a.remove(caller, r.order.Front())
			}
			a.mu.Unlock()
			return newAnswer, nil, nil
		}
		storedAnswer = element.Value.(*IdempotentAnswer)
		a.mu.Unlock()
		if storedAnswer.requestHash != sum {
			return nil, nil, NewKeyReusedError()
		}
		select {
		case <-storedAnswer.answered:
			if storedAnswer.isKnown {
				return nil, storedAnswer, nil
			}
			// The call that held the key has failed, so that the key is free again.
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// EndCall stores the response of a call that succeeded. If response is nil, the call has failed, and the key becomes
// free again.
func (a *AnswerStore) EndCall(c identity.Caller, answer *IdempotentAnswer, response *Response) {
	caller := callerKey(c)
	a.mu.Lock()
	defer a.mu.Unlock()
	defer close(answer.answered)
	r := a.byCaller[caller]
	var element *list.Element
	if r != nil {
		element = r.byKey[answer.key]
	}
	exists := element != nil && element.Value == answer
	if response == nil {
		if exists {
			a.remove(caller, element)
		}
		return
	}
	answer.isKnown, answer.Response = true, Response{response.Status, response.ContentType, bytes.Clone(response.Body),
		slices.Clone(response.Subjects)}
	if !exists { // The answer was removed while the call ran.
		return
	}
	r.bytes += len(answer.Body)
	a.bytes += len(answer.Body)
	for a.bytes > maxAnswerBytes {
		limit := ""
		for name, answers := range a.byCaller {
			if limit == "" || answers.bytes > a.byCaller[limit].bytes {
				limit = name
			}
		}
		a.remove(limit, a.byCaller[limit].order.Front())
	}
}

// remove removes an answer. The caller of remove must hold a.mu.
func (a *AnswerStore) remove(caller string, element *list.Element) {
	r := a.byCaller[caller]
	answer := element.Value.(*IdempotentAnswer)
	r.order.Remove(element)
	delete(r.byKey, answer.key)
	r.bytes -= len(answer.Body)
	a.bytes -= len(answer.Body)
	if r.order.Len() == 0 {
		delete(a.byCaller, caller)
	}
}
