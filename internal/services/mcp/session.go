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

// Limits of open sessions, for each caller and for all callers. If a new session exceeds a limit, the session that has
// been idle for longest ends.
const (
	maxSessionsPerCaller = 32
	maxSessions          = 4096
)

// Limits of each caller, for all of its sessions together.
const (
	maxConcurrentCalls = 8   // number of calls that run at the same time
	messagesPerSecond  = 50  // messages that a caller may send each second
	burstMessages      = 200 // messages that a caller may send at once
)

// mcpSession is the session of a client that has sent "initialize".
type mcpSession struct {
	id     string
	caller identity.Caller
	bearer string // the bearer token, which is verified again during the session

	ctx       context.Context // the context of the session's calls
	cancel    context.CancelFunc
	sdkServer *sdk.Server
	*callerLimits

	mu            sync.Mutex
	isInitialized bool // the client has sent "notifications/initialized"
	lastUsedAt    time.Time
	settings      map[string]string // statements that set an attribute, by the name of the setting
}

// setLastUsed sets the time at which the session was last used to now.
func (s *mcpSession) setLastUsed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastUsedAt = time.Now()
}

func (s *mcpSession) lastUsed() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastUsedAt
}

func (s *mcpSession) setReady() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isInitialized = true
}

func (s *mcpSession) isReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isInitialized
}

// rememberSetting stores a statement that sets an attribute, for later connections of the session. An empty statement
// removes the stored one.
func (s *mcpSession) rememberSetting(setting, statement string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if statement == "" {
		delete(s.settings, setting)
		return
	}
	s.settings[setting] = statement
}

func (s *mcpSession) setStatements() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.settings)) {
		out = append(out, s.settings[name])
	}
	return out
}

// callerLimits has the limits that all sessions of one token share.
type callerLimits struct {
	callSlots      chan struct{} // has one element for each call in progress
	messageLimiter *rate.Limiter
}

// sessionTable holds the open sessions of the server.
type sessionTable struct {
	mu      sync.Mutex
	byID    map[string]*mcpSession
	callers map[string]*callerLimits // limits of callers, by the text of ownerOf
}

func newSessions() *sessionTable {
	return &sessionTable{byID: map[string]*mcpSession{}, callers: map[string]*callerLimits{}}
}

// callerLimitsOf returns the limits that the sessions of a caller share.
func (a *sessionTable) callerLimitsOf(c identity.Caller) *callerLimits {
	a.mu.Lock()
	defer a.mu.Unlock()
	limits := a.callers[ownerOf(c)]
	if limits == nil {
		limits = &callerLimits{make(chan struct{}, maxConcurrentCalls), rate.NewLimiter(messagesPerSecond, burstMessages)}
		a.callers[ownerOf(c)] = limits
	}
	return limits
}

// dropUnusedCallers deletes the limits of callers without open sessions, calls in progress or recent messages.
func (a *sessionTable) dropUnusedCallers() {
	a.mu.Lock()
	defer a.mu.Unlock()
	busyCallers := map[string]bool{}
	for _, s := range a.byID {
		busyCallers[ownerOf(s.caller)] = true
	}
	for name, limits := range a.callers {
		if !busyCallers[name] && len(limits.callSlots) == 0 && limits.messageLimiter.Tokens() >= burstMessages {
			delete(a.callers, name)
		}
	}
}

// ownerOf returns a text that identifies the token and the database to which a session belongs.
func ownerOf(c identity.Caller) string { return c.Database + "\x00" + string(c.Role) + "\x00" + c.Name }

// begin makes a session. Method add has to add it to the table.
func (a *sessionTable) begin(c identity.Caller, bearer string) *mcpSession {
	s := &mcpSession{id: rand.Text(), caller: c, callerLimits: a.callerLimitsOf(c), bearer: bearer, lastUsedAt: time.Now(),
		settings: map[string]string{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// add adds a session to the table, and ends other sessions if there are too many.
func (a *sessionTable) add(s *mcpSession) {
	a.mu.Lock()
	a.byID[s.id] = s
	var endedSessions []*mcpSession
	var callerSessions []*mcpSession
	for _, session := range a.byID {
		if ownerOf(session.caller) == ownerOf(s.caller) {
			callerSessions = append(callerSessions, session)
		}
	}
	crowd := callerSessions
	for _, limit := range []int{maxSessionsPerCaller, maxSessions} {
		for len(crowd) > limit {
			oldest := slices.MinFunc(crowd, func(x, y *mcpSession) int {
				return cmp.Compare(x.lastUsed().UnixNano(), y.lastUsed().UnixNano())
			})
			endedSessions = append(endedSessions, oldest)
			delete(a.byID, oldest.id)
			crowd = slices.DeleteFunc(crowd, func(session *mcpSession) bool { return session == oldest })
		}
		crowd = slices.Collect(maps.Values(a.byID))
	}
	a.mu.Unlock()
	for _, session := range endedSessions {
		session.close()
	}
}

// find returns the session with the id, if it belongs to the caller, and nil otherwise.
func (a *sessionTable) find(id string, c identity.Caller) *mcpSession {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.byID[id]
	if s == nil || ownerOf(s.caller) != ownerOf(c) {
		return nil
	}
	return s
}

// remove removes a session from the table and closes it.
func (a *sessionTable) remove(s *mcpSession) {
	a.mu.Lock()
	delete(a.byID, s.id)
	a.mu.Unlock()
	s.close()
}

// list returns the open sessions.
func (a *sessionTable) list() []*mcpSession {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.byID))
}

// close cancels the calls in progress, and then closes the SDK's session, which waits for these calls.
func (s *mcpSession) close() {
	s.cancel()
	if s.sdkServer == nil {
		return
	}
	go func() {
		for sdkSession := range s.sdkServer.Sessions() {
			_ = sdkSession.Close()
		}
	}()
}
