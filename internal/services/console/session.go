package console

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/services/identity"
)

// Each request verifies the token of its session again, so that the session must hold the token. The token is encrypted
// with a key that is derived from the browser's cookie. Sessions are in memory, so that a restart ends them.

const (
	idleTimeout          = 15 * time.Minute // after this time without a request, a session ends
	maxSessionLifetime   = 8 * time.Hour    // after this time, a session ends in any case
	maxSessions          = 1000             // number of sessions of all users
	maxSessionsPerToken  = 20               // number of sessions of one token
	maxHandlesPerSession = 5000             // number of handles that one session remembers
)

// sessionStore holds the open sessions.
type sessionStore struct {
	now          func() time.Time
	mu           sync.Mutex
	bySecretHash map[[sha256.Size]byte]*session
}

// session is the session of a signed-in user.
type session struct {
	id             [sha256.Size]byte
	token          [sha256.Size]byte // SHA-256 of the token, to count the sessions of one token
	encryptedToken []byte
	csrf           string
	startedAt      time.Time

	mu           sync.Mutex
	lastUsedAt   time.Time
	pendingFlash *flash
	filter       registry.PeopleFilter
	handleKey    [16]byte
	handles      map[string]string
}

// flash is a message that is shown once, at the top of the next page.
type flash struct {
	Kind  string // "done" or "note"
	Title string
	Text  string
}

func newSessions(now func() time.Time) *sessionStore {
	return &sessionStore{now: now, bySecretHash: map[[sha256.Size]byte]*session{}}
}

// deriveKey derives a key or an id from the secret in a cookie. One derived value does not reveal another.
func deriveKey(secret []byte, purpose string) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte("pgconsent console " + purpose))
	return m.Sum(nil)
}

// sessionCipher returns the cipher with which the token of a session is encrypted.
func sessionCipher(secret []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(deriveKey(secret, "token"))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// begin makes a session, and returns it with the value of its cookie. If there are too many sessions, it ends those
// that have been idle for longest.
func (o *sessionStore) begin(token string) (*session, string, error) {
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return nil, "", err
	}
	seal, err := sessionCipher(secret)
	if err != nil {
		return nil, "", err
	}
	now := o.now()
	s := &session{
		id: [sha256.Size]byte(deriveKey(secret, "id")), token: sha256.Sum256([]byte(token)), encryptedToken: seal.Seal(nil,
			nil, []byte(token), nil),
		csrf: base64.RawURLEncoding.EncodeToString(deriveKey(secret, "form")), startedAt: now, lastUsedAt: now,
		handles: map[string]string{},
	}
	if _, err := rand.Read(s.handleKey[:]); err != nil {
		return nil, "", err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.removeExpired(now)
	o.makeRoom(func(*session) bool { return true }, maxSessions)
	o.makeRoom(func(other *session) bool { return other.token == s.token }, maxSessionsPerToken)
	o.bySecretHash[s.id] = s
	return s, base64.RawURLEncoding.EncodeToString(secret), nil
}

// makeRoom ends the longest idle sessions for which mayEnd returns true, until fewer of these than limit are left.
func (o *sessionStore) makeRoom(mayEnd func(*session) bool, limit int) {
	for {
		n := 0
		var oldest *session
		for _, s := range o.bySecretHash {
			if !mayEnd(s) {
				continue
			}
			n++
			if oldest == nil || s.lastUsed().Before(oldest.lastUsed()) {
				oldest = s
			}
		}
		if n < limit {
			return
		}
		delete(o.bySecretHash, oldest.id)
	}
}

// removeExpired removes the expired sessions.
func (o *sessionStore) removeExpired(now time.Time) {
	for id, s := range o.bySecretHash {
		if s.hasExpired(now) {
			delete(o.bySecretHash, id)
		}
	}
}

// hasExpired reports whether a timeout has ended the session.
func (s *session) hasExpired(now time.Time) bool {
	return now.Sub(s.lastUsed()) > idleTimeout || now.Sub(s.startedAt) > maxSessionLifetime
}

func (s *session) lastUsed() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastUsedAt
}

// find returns the session that belongs to the secret in a cookie, and sets the time at which it was last used.
func (o *sessionStore) find(secret []byte) *session {
	now := o.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	s, ok := o.bySecretHash[[sha256.Size]byte(deriveKey(secret, "id"))]
	if !ok {
		return nil
	}
	if s.hasExpired(now) {
		delete(o.bySecretHash, s.id)
		return nil
	}
	s.mu.Lock()
	s.lastUsedAt = now
	s.mu.Unlock()
	return s
}

// end ends a session.
func (o *sessionStore) end(s *session) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.bySecretHash, s.id)
}

// verifyCaller verifies the session's token again, and returns the caller whom the token identifies.
func (s *session) verifyCaller(ctx context.Context, v identity.Verifier, secret []byte) (identity.Caller, error) {
	seal, err := sessionCipher(secret)
	if err != nil {
		return identity.Caller{}, err
	}
	token, err := seal.Open(nil, nil, s.encryptedToken, nil)
	if err != nil {
		return identity.Caller{}, errors.New("the session's token does not open")
	}
	caller, err := v.Verify(ctx, string(token))
	if err == nil && !isPerson(caller) {
		err = errors.New("the token is not a person's")
	}
	return caller, err
}

// isPerson reports whether the caller may use the console, which is for persons. Agents and applications use HTTP and
// MCP.
func isPerson(c identity.Caller) bool {
	switch c.Role {
	case identity.Subject, identity.Admin, identity.Operator:
		return true
	}
	return false
}

// hasCSRFToken reports whether a form has the session's token against cross-site requests.
func (s *session) hasCSRFToken(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.csrf)) == 1
}

// setFlash sets the message at the top of the next page.
func (s *session) setFlash(t flash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pendingFlash = &t
}

func (s *session) takeFlash() *flash {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.pendingFlash
	s.pendingFlash = nil
	return t
}

// handleFor returns the handle that stands for an id in addresses of this session. Only this session can make the
// handle or resolve it.
func (s *session) handleFor(id string) string {
	m := hmac.New(sha256.New, s.handleKey[:])
	m.Write([]byte(id))
	h := base64.RawURLEncoding.EncodeToString(m.Sum(nil)[:12])
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.handles) >= maxHandlesPerSession {
		clear(s.handles)
	}
	s.handles[h] = id
	return h
}

func (s *session) idOf(handle string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := s.handles[handle]
	return id, ok
}

// peopleFilter returns the last search that the user made on the page of people.
func (s *session) peopleFilter() registry.PeopleFilter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.filter
}

func (s *session) setPeopleFilter(f registry.PeopleFilter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.filter = f
}

func (o *Console) cookieName() string {
	if o.ServedOverTLS {
		return "__Secure-pgconsent"
	}
	return "pgconsent"
}

// sessionCookie returns the session cookie. Browsers send it to the console's pages only, and not with requests from
// other sites. Scripts cannot read it, and it is deleted when the browser closes.
func (o *Console) sessionCookie(value string) *http.Cookie {
	c := &http.Cookie{Name: o.cookieName(), Value: value, Path: Base, HttpOnly: true, Secure: o.ServedOverTLS,
		SameSite: http.SameSiteStrictMode}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

// sessionOf returns the session of a request, and the secret in its cookie. The session is nil if none is open.
func (o *Console) sessionOf(r *http.Request) (*session, []byte) {
	c, err := r.Cookie(o.cookieName())
	if err != nil {
		return nil, nil
	}
	secret, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil || len(secret) != 32 {
		return nil, []byte{}
	}
	return o.sessions.find(secret), secret
}
