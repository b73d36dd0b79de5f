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

	"github.com/pgconsent/pgconsent/internal/face/identity"
)

// Limits of open sessions: of one caller, and of all. One more ends the session that was unused for longest.
const (
	maxSessionsPerCaller = 32
	maxSessions          = 4096
)

// Limits of one caller, over all of its sessions.
const (
	atOnce    = 8  // calls side by side
	perSecond = 50 // messages
	burst     = 200
)

// session is a client that has sent "initialize".
type session struct {
	id     string
	who    identity.Caller
	bearer string // the bearer token, to verify it again

	ctx       context.Context // the context of the session's calls
	end       context.CancelFunc
	sdkServer *sdk.Server
	*caller

	mu       sync.Mutex
	ready    bool // "notifications/initialized" has come
	usedAt   time.Time
	settings map[string]string // statements, by what they set
}

func (s *session) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usedAt = time.Now()
}

func (s *session) lastUsed() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usedAt
}

func (s *session) initialized() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = true
}

func (s *session) isReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

func (s *session) remember(setting, statement string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if statement == "" {
		delete(s.settings, setting)
		return
	}
	s.settings[setting] = statement
}

func (s *session) set() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.settings)) {
		out = append(out, s.settings[name])
	}
	return out
}

// caller is shared by the sessions of one token.
type caller struct {
	calls chan struct{} // one for each that is under way
	pace  *rate.Limiter
}

// sessions are the open sessions.
type sessions struct {
	mu      sync.Mutex
	all     map[string]*session
	callers map[string]*caller // the callers of open sessions, by the owner of the session
}

func newSessions() *sessions {
	return &sessions{all: map[string]*session{}, callers: map[string]*caller{}}
}

// caller returns what the sessions of a caller share.
func (a *sessions) caller(c identity.Caller) *caller {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := a.callers[owner(c)]
	if one == nil {
		one = &caller{make(chan struct{}, atOnce), rate.NewLimiter(perSecond, burst)}
		a.callers[owner(c)] = one
	}
	return one
}

// forget removes callers without sessions and calls.
func (a *sessions) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	busy := map[string]bool{}
	for _, s := range a.all {
		busy[owner(s.who)] = true
	}
	for name, one := range a.callers {
		if !busy[name] && len(one.calls) == 0 && one.pace.Tokens() >= burst {
			delete(a.callers, name)
		}
	}
}

// owner identifies the token and database that a session is bound to.
func owner(c identity.Caller) string { return c.Database + "\x00" + string(c.Role) + "\x00" + c.Name }

// begin makes a session that is not registered yet.
func (a *sessions) begin(c identity.Caller, bearer string) *session {
	s := &session{id: rand.Text(), who: c, caller: a.caller(c), bearer: bearer, usedAt: time.Now(),
		settings: map[string]string{}}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// add registers a session, and ends others if there are too many.
func (a *sessions) add(s *session) {
	a.mu.Lock()
	a.all[s.id] = s
	var gone []*session
	var mine []*session
	for _, one := range a.all {
		if owner(one.who) == owner(s.who) {
			mine = append(mine, one)
		}
	}
	crowd := mine
	for _, limit := range []int{maxSessionsPerCaller, maxSessions} {
		for len(crowd) > limit {
			oldest := slices.MinFunc(crowd, func(x, y *session) int {
				return cmp.Compare(x.lastUsed().UnixNano(), y.lastUsed().UnixNano())
			})
			gone = append(gone, oldest)
			delete(a.all, oldest.id)
			crowd = slices.DeleteFunc(crowd, func(one *session) bool { return one == oldest })
		}
		crowd = slices.Collect(maps.Values(a.all))
	}
	a.mu.Unlock()
	for _, one := range gone {
		one.close()
	}
}

// find returns the caller's session with the id; sessions of others are not found.
func (a *sessions) find(id string, c identity.Caller) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.all[id]
	if s == nil || owner(s.who) != owner(c) {
		return nil
	}
	return s
}

func (a *sessions) remove(s *session) {
	a.mu.Lock()
	delete(a.all, s.id)
	a.mu.Unlock()
	s.close()
}

func (a *sessions) list() []*session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.all))
}

// close ends the calls in progress, and then the SDK's session, which waits for them.
func (s *session) close() {
	s.end()
	if s.sdkServer == nil {
		return
	}
	go func() {
		for one := range s.sdkServer.Sessions() {
			_ = one.Close()
		}
	}()
}
