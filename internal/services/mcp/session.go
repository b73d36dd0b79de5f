package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"github.com/pgconsent/pgconsent/internal/services/identity"
)

// Limits of open sessions: of one caller, and of all. One more session ends the session that was unused for longest.
const (
	maxSessionsPerCaller = 32
	maxSessions          = 4096
)

// Limits of one caller, over all of its sessions.
const (
	maxConcurrentCalls = 8   // calls that run side by side
	messagesPerSecond  = 50  // messages that a caller may send each second
	burstMessages      = 200 // messages that a caller may send at once
)

// session is a client that has sent "initialize".
type session struct {
	id     string
	caller identity.Caller
	bearer string // the bearer token, to verify it again

	ctx       context.Context // the context of the session's calls
	cancel    context.CancelFunc
	sdkServer *sdk.Server
	*callerLimits

	mu         sync.Mutex
	ready      bool // "notifications/initialized" has come
	lastUsedAt time.Time
	settings   map[string]string // statements that set attributes, by the setting that each one sets
}

// touch notes that the session is used now.
func (s *session) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastUsedAt = time.Now()
}

func (s *session) lastUsed() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastUsedAt
}

func (s *session) setReady() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = true
}

func (s *session) isReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// rememberSetting keeps a statement that sets an attribute, for later connections.
func (s *session) rememberSetting(setting, statement string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if statement == "" {
		delete(s.settings, setting)
		return
	}
	s.settings[setting] = statement
}

func (s *session) setStatements() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.settings)) {
		out = append(out, s.settings[name])
	}
	return out
}

// callerLimits is shared by the sessions of one token.
type callerLimits struct {
	callSlots      chan struct{} // has one element for each call in progress
	messageLimiter *rate.Limiter
}

// sessions are the open sessions of the server.
type sessions struct {
	mu      sync.Mutex
	all     map[string]*session
	callers map[string]*callerLimits // the callers of open sessions, by the owner of the session
}

func newSessions() *sessions {
	return &sessions{all: map[string]*session{}, callers: map[string]*callerLimits{}}
}

// sharedOf returns what the sessions of a caller share.
func (a *sessions) sharedOf(c identity.Caller) *callerLimits {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := a.callers[ownerOf(c)]
	if one == nil {
		one = &callerLimits{make(chan struct{}, maxConcurrentCalls), rate.NewLimiter(messagesPerSecond, burstMessages)}
		a.callers[ownerOf(c)] = one
	}
	return one
}

// forgetUnused removes callers that have neither sessions nor calls.
func (a *sessions) forgetUnused() {
	a.mu.Lock()
	defer a.mu.Unlock()
	busy := map[string]bool{}
	for _, s := range a.all {
		busy[ownerOf(s.caller)] = true
	}
	for name, one := range a.callers {
		if !busy[name] && len(one.callSlots) == 0 && one.messageLimiter.Tokens() >= burstMessages {
			delete(a.callers, name)
		}
	}
}

// ownerOf returns a text that identifies the token and database that a session is bound to.
func ownerOf(c identity.Caller) string { return c.Database + "\x00" + string(c.Role) + "\x00" + c.Name }

// begin makes a session that is not registered yet.
func (a *sessions) begin(c identity.Caller, bearer string) *session {
	s := &session{id: rand.Text(), caller: c, callerLimits: a.sharedOf(c), bearer: bearer, lastUsedAt: time.Now(),
		settings: map[string]string{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// add registers a session, and ends others if there are too many.
func (a *sessions) add(s *session) {
	a.mu.Lock()
	a.all[s.id] = s
	var endedSessions []*session
	var callerSessions []*session
	for _, one := range a.all {
		if ownerOf(one.caller) == ownerOf(s.caller) {
			callerSessions = append(callerSessions, one)
		}
	}
	crowd := callerSessions
	for _, limit := range []int{maxSessionsPerCaller, maxSessions} {
		for len(crowd) > limit {
			oldest := slices.MinFunc(crowd, func(x, y *session) int {
				return cmp.Compare(x.lastUsed().UnixNano(), y.lastUsed().UnixNano())
			})
			endedSessions = append(endedSessions, oldest)
			delete(a.all, oldest.id)
			crowd = slices.DeleteFunc(crowd, func(one *session) bool { return one == oldest })
		}
		crowd = slices.Collect(maps.Values(a.all))
	}
	a.mu.Unlock()
	for _, one := range endedSessions {
		one.close()
	}
}

// find returns the caller's session with the id; sessions of others are not found.
func (a *sessions) find(id string, c identity.Caller) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.all[id]
	if s == nil || ownerOf(s.caller) != ownerOf(c) {
		return nil
	}
	return s
}

// remove removes a session.
func (a *sessions) remove(s *session) {
	a.mu.Lock()
	delete(a.all, s.id)
	a.mu.Unlock()
	s.close()
}

// list returns the open sessions.
func (a *sessions) list() []*session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.all))
}

// close ends the calls in progress, and then the SDK's session, which waits for them.
func (s *session) close() {
	s.cancel()
	if s.sdkServer == nil {
		return
	}
	go func() {
		for one := range s.sdkServer.Sessions() {
			_ = one.Close()
		}
	}()
}
