package api

import (
	"bytes"
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pgconsent/pgconsent/identity"
	"github.com/pgconsent/pgconsent/privacy"
	"github.com/pgconsent/pgconsent/sqlstate"
)

// How long the answers to calls with a key are remembered, and how many.
const (
	onceFor   = 24 * time.Hour
	onceKeys  = 1000     // of one caller
	onceBytes = 32 << 20 // of all: the caller who has most gives way
	longKey   = 200
)

// answers are what was answered to calls with a key, of operations whose changes leave no record that has it. They are this process's: after a
// start it knows none.
type answers struct {
	mu    sync.Mutex
	of    map[string]*remembered // by caller
	bytes int
}

// remembered are those to one caller.
type remembered struct {
	byKey map[string]*list.Element
	order *list.List // of *onceAnswer, oldest first
	bytes int
}

// onceAnswer is what came of a call with a key.
type onceAnswer struct {
	key   string
	asked [sha256.Size]byte
	at    time.Time
	done  chan struct{} // closed when the call has been answered

	status int // of success; 0: there is no answer to remember
	kind   string
	body   []byte
	about  []string
}

func newAnswers() *answers { return &answers{of: map[string]*remembered{}} }

// asked is what a call asks for, however it is written.
func asked(method, path string, body []byte) ([sha256.Size]byte, error) {
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
	return sha256.Sum256(fmt.Appendf(nil, "%s %s\n%s", method, path, plain)), nil
}

// who are callers that are told apart: who acts for somebody else, as a token may say or a name that was given again, is another one.
func who(c identity.Caller) string {
	parts := []string{string(c.Role), c.Name, c.Subject, c.Agent, c.Database}
	for _, name := range slices.Sorted(maps.Keys(c.Claims)) {
		parts = append(parts, name, c.Claims[name])
	}
	return strings.Join(parts, "\x00")
}

// begin takes a key for a call that is to be done, or finds what was answered before. While a call with the same key is under way it waits.
func (a *answers) begin(ctx context.Context, caller, key string, sum [sha256.Size]byte, now time.Time) (mine, known *onceAnswer, err error) {
	for {
		a.mu.Lock()
		r := a.of[caller]
		if r == nil {
			r = &remembered{byKey: map[string]*list.Element{}, order: list.New()}
			a.of[caller] = r
		}
		for first := r.order.Front(); first != nil && now.Sub(first.Value.(*onceAnswer).at) > onceFor; first = r.order.Front() {
			a.forget(caller, first)
		}
		element, ok := r.byKey[key]
		if !ok {
			a.of[caller] = r // forgetting may have dropped it
			mine = &onceAnswer{key: key, asked: sum, at: now, done: make(chan struct{})}
			r.byKey[key] = r.order.PushBack(mine)
			for r.order.Len() > onceKeys {
				a.forget(caller, r.order.Front())
			}
			a.mu.Unlock()
			return mine, nil, nil
		}
		known = element.Value.(*onceAnswer)
		a.mu.Unlock()
		if known.asked != sum {
			return nil, nil, usedTwice()
		}
		select {
		case <-known.done:
			if known.status != 0 {
				return nil, known, nil
			}
			// It failed, and its key is free again.
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// end keeps the answer of success, and gives the key of anything else back.
func (a *answers) end(caller string, mine *onceAnswer, status int, kind string, body []byte, about []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer close(mine.done)
	r := a.of[caller]
	var element *list.Element
	if r != nil {
		element = r.byKey[mine.key]
	}
	there := element != nil && element.Value == mine
	if status < 200 || status > 299 {
		if there {
			a.forget(caller, element)
		}
		return
	}
	mine.status, mine.kind, mine.body, mine.about = status, kind, bytes.Clone(body), slices.Clone(about)
	if !there { // it was forgotten meanwhile
		return
	}
	r.bytes += len(mine.body)
	a.bytes += len(mine.body)
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
func (a *answers) forget(caller string, element *list.Element) {
	r := a.of[caller]
	one := element.Value.(*onceAnswer)
	r.order.Remove(element)
	delete(r.byKey, one.key)
	r.bytes -= len(one.body)
	a.bytes -= len(one.body)
	if r.order.Len() == 0 {
		delete(a.of, caller)
	}
}

func usedTwice() *Problem {
	p := newProblem(http.StatusConflict, sqlstate.New(sqlstate.ConsentConflict, sqlstate.ReasonConsent, "the Idempotency-Key was used for another change").
		WithHint("Use a key of its own for each change."))
	p.Name = privacy.Conflict
	return p
}

// replay answers as before.
func (o *onceAnswer) replay(a http.ResponseWriter) {
	a.Header().Set("Content-Type", o.kind)
	a.Header().Set(replayed, "true")
	a.WriteHeader(o.status)
	_, _ = a.Write(o.body)
}

const replayed = "Idempotent-Replayed"

// once has a call with a key done, unless it was.
func (s *Server) once(ctx context.Context, call *Call, r *onceRequest, do func()) {
	sum, err := asked(r.method, r.path, call.body)
	if err != nil || r.key == "" || len(r.key) > longKey {
		do() // and refuses it
		return
	}
	caller := who(call.Caller)
	mine, known, err := s.answers.begin(ctx, caller, r.key, sum, time.Now())
	switch {
	case err != nil:
		problem(err).write(r.answer)
	case known != nil:
		call.About(known.about...)
		known.replay(r.answer)
	default:
		ended := false
		defer func() {
			if !ended { // it panics: nobody knows what was done
				s.answers.end(caller, mine, http.StatusInternalServerError, "", nil, nil)
			}
		}()
		do()
		ended = true
		s.answers.end(caller, mine, r.answer.status, r.answer.header.Get("Content-Type"), r.answer.body.Bytes(), call.about)
	}
}

// onceRequest is a call that may have a key.
type onceRequest struct {
	method, path, key string
	answer            *answer
}
