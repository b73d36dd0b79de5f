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

	"github.com/pgconsent/pgconsent/internal/face/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// How long the answers to calls with a key are remembered, and how many.
const (
	onceFor   = 24 * time.Hour
	onceKeys  = 1000     // of one caller
	onceBytes = 32 << 20 // of all: the caller who has most gives way

	// LongestKey is what a key may have.
	LongestKey = 200
)

// Answers are what was answered to calls with a key, of operations whose changes leave no record that has it, whatever
// face was asked. They are this process's: after a start it knows none. The zero value is ready.
type Answers struct {
	mu    sync.Mutex
	of    map[string]*callerAnswers // by caller
	bytes int
}

// callerAnswers are those to one caller.
type callerAnswers struct {
	byKey map[string]*list.Element
	order *list.List // of *Answer, oldest first
	bytes int
}

// Answer is what came of a call with a key.
type Answer struct {
	key   string
	asked [sha256.Size]byte
	at    time.Time
	done  chan struct{} // closed when the call has been answered

	Response
	known bool // there is an answer to remember
}

// Response is an answer of success, as its face has it.
type Response struct {
	Status int
	Kind   string
	Body   []byte
	About  []string
}

// RequestDigest is what a call asks for, however it is written: of an operation, by its name.
func RequestDigest(operation string, body []byte) ([sha256.Size]byte, error) {
	var value any
	if len(body) > 0 {
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		if err := d.Decode(&value); err != nil {
			return [sha256.Size]byte{}, err
		}
	}
	plain, err := json.Marshal(value) // with the names of members in order
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return sha256.Sum256(fmt.Appendf(nil, "%s\n%s", operation, plain)), nil
}

// callerKey are callers that are told apart: who acts for somebody else, as a token may say or a name that was given again,
// is another one.
func callerKey(c identity.Caller) string {
	parts := []string{string(c.Role), c.Name, c.Subject, c.Agent, c.Database}
	for _, name := range slices.Sorted(maps.Keys(c.Claims)) {
		parts = append(parts, name, c.Claims[name])
	}
	return strings.Join(parts, "\x00")
}

// KeyReused is the error of a key that was used for another change.
func KeyReused() error {
	return sqlstate.New(sqlstate.ConsentConflict, sqlstate.ReasonConsent, "the key was used for another change").
		WithHint("Use a key of its own for each change.")
}

// Begin takes a key for a call that is to be done, or finds what was answered before. While a call with the same key is
// under way it waits. What was taken is given back by End.
func (a *Answers) Begin(ctx context.Context, c identity.Caller, key string, sum [sha256.Size]byte,
	now time.Time) (mine, known *Answer, err error) {
	caller := callerKey(c)
	for {
		a.mu.Lock()
		if a.of == nil {
			a.of = map[string]*callerAnswers{}
		}
		r := a.of[caller]
		if r == nil {
			r = &callerAnswers{byKey: map[string]*list.Element{}, order: list.New()}
			a.of[caller] = r
		}
		for first := r.order.Front(); first != nil && now.Sub(first.Value.(*Answer).at) > onceFor; first = r.order.Front() {
			a.forget(caller, first)
		}
		element, ok := r.byKey[key]
		if !ok {
			a.of[caller] = r // forgetting may have dropped it
			mine = &Answer{key: key, asked: sum, at: now, done: make(chan struct{})}
			r.byKey[key] = r.order.PushBack(mine)
			for r.order.Len() > onceKeys {
				a.forget(caller, r.order.Front())
			}
			a.mu.Unlock()
			return mine, nil, nil
		}
		known = element.Value.(*Answer)
		a.mu.Unlock()
		if known.asked != sum {
			return nil, nil, KeyReused()
		}
		select {
		case <-known.done:
			if known.known {
				return nil, known, nil
			}
			// It failed, and its key is free again.
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// End keeps the answer of success, and gives the key of anything else back: nil.
func (a *Answers) End(c identity.Caller, mine *Answer, said *Response) {
	caller := callerKey(c)
	a.mu.Lock()
	defer a.mu.Unlock()
	defer close(mine.done)
	r := a.of[caller]
	var element *list.Element
	if r != nil {
		element = r.byKey[mine.key]
	}
	there := element != nil && element.Value == mine
	if said == nil {
		if there {
			a.forget(caller, element)
		}
		return
	}
	mine.known, mine.Response = true, Response{said.Status, said.Kind, bytes.Clone(said.Body), slices.Clone(said.About)}
	if !there { // it was forgotten meanwhile
		return
	}
	r.bytes += len(mine.Body)
	a.bytes += len(mine.Body)
	for a.bytes > onceBytes {
		most := ""
		for name, one := range a.of {
			if most == "" || one.bytes > a.of[most].bytes {
				most = name
			}
		}
		a.forget(most, a.of[most].order.Front())
	}
}

// forget drops an answer. a.mu is held.
func (a *Answers) forget(caller string, element *list.Element) {
	r := a.of[caller]
	one := element.Value.(*Answer)
	r.order.Remove(element)
	delete(r.byKey, one.key)
	r.bytes -= len(one.Body)
	a.bytes -= len(one.Body)
	if r.order.Len() == 0 {
		delete(a.of, caller)
	}
}
