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

// Limits of the answers that are remembered by idempotency keys.
const (
	answerLifetime   = 24 * time.Hour
	maxKeysPerCaller = 1000 // how many keys are kept of one caller
	// bytes of the answers to all callers; beyond that, the caller with the most bytes loses its oldest answers
	maxAnswerBytes = 32 << 20

	// MaxKeyBytes is how many characters an idempotency key may have.
	MaxKeyBytes = 200
)

// AnswerStore are the answers to calls with an idempotency key, of operations whose changes leave no record with the
// key. HTTP and MCP share them. They are lost with the process. The zero value is ready.
type AnswerStore struct {
	mu       sync.Mutex
	byCaller map[string]*callerAnswers // the answers of each caller
	bytes    int
}

// callerAnswers are the answers to one caller.
type callerAnswers struct {
	byKey map[string]*list.Element
	order *list.List // a list of *Answer, oldest first
	bytes int
}

// IdempotentAnswer is the answer to a call with a key, or the call in progress.
type IdempotentAnswer struct {
	key         string
	requestHash [sha256.Size]byte
	startedAt   time.Time
	answered    chan struct{} // closed when the call has been answered

	Response
	isKnown bool // the call succeeded, and its answer is kept
}

// Response is a successful answer, in the form of its API.
type Response struct {
	Status      int
	ContentType string
	Body        []byte
	Subjects    []string
}

// RequestDigest identifies the request of a call, independent of the order of members and of spaces.
func RequestDigest(operation string, body []byte) ([sha256.Size]byte, error) {
	var value any
	if len(body) > 0 {
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		if err := d.Decode(&value); err != nil {
			return [sha256.Size]byte{}, err
		}
	}
	canonical, err := json.Marshal(value) // JSON writes the names of members in order.
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return sha256.Sum256(fmt.Appendf(nil, "%s\n%s", operation, canonical)), nil
}

// callerKey identifies a caller: a token that acts for another subject or agent is a different caller.
func callerKey(c identity.Caller) string {
	parts := []string{string(c.Role), c.Name, c.Subject, c.Agent, c.Database}
	for _, name := range slices.Sorted(maps.Keys(c.Claims)) {
		parts = append(parts, name, c.Claims[name])
	}
	return strings.Join(parts, "\x00")
}

// NewKeyReusedError is the error of a call whose key was used for another request.
func NewKeyReusedError() error {
	return sqlstate.New(sqlstate.ConsentConflict, sqlstate.ReasonConsent, "the key was used for another change").
		WithHint("Use a key of its own for each change.")
}

// BeginCall reserves a key for a call, or returns the earlier answer. While another call with the key is in progress,
// it waits. EndCall releases the key.
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
			a.byCaller[caller] = r // The removal of old answers may have removed the caller's entry.
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
			// The call that held the key failed, and its key is free again.
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// EndCall stores a successful answer, and releases its key if there is none (nil).
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
	if !exists { // The answer was forgotten meanwhile.
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

// remove removes an answer. The goroutine that calls it holds a.mu.
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
