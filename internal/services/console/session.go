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

// A session holds its token, so that each request can check whether the token is still valid. The token is encrypted
// with a key that only the browser's cookie has. Sessions are in memory: a restart ends them.

const (
	idleTimeout          = 15 * time.Minute // how long a session lasts without a request
	maxSessionLifetime   = 8 * time.Hour    // how long a session lasts at most
	maxSessions          = 1000             // how many sessions there may be
	maxSessionsPerToken  = 20               // how many sessions one token may have
	maxHandlesPerSession = 5000             // how many handles a session may have
)

// sessionStore are the open sessions.
type sessionStore struct {
	now          func() time.Time
	mu           sync.Mutex
	bySecretHash map[[sha256.Size]byte]*session
}

// session is a signed-in user.
type session struct {
	id             [sha256.Size]byte
	token          [sha256.Size]byte // SHA-256 of the token, by which the sessions of one token are counted
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

// flash is a message at the top of the next page.
type flash struct {
	Kind  string // done, note
	Title string
	Text  string
}

func newSessions(now func() time.Time) *sessionStore {
	return &sessionStore{now: now, bySecretHash: map[[sha256.Size]byte]*session{}}
}

// deriveKey derives a key or an id from the secret of a cookie. No derived value can be computed from another one.
func deriveKey(secret []byte, purpose string) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte("pgconsent console " + purpose))
	return m.Sum(nil)
}

// sessionCipher returns the cipher that encrypts the token of a session.
func sessionCipher(secret []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(deriveKey(secret, "token"))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// begin makes a session, and returns the value of its cookie. If there are too many sessions, those that were idle
// longest end.
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

// makeRoom ends sessions for which mayEnd returns true until one more session is allowed.
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

// hasExpired reports whether the session has ended by a timeout.
func (s *session) hasExpired(now time.Time) bool {
	return now.Sub(s.lastUsed()) > idleTimeout || now.Sub(s.startedAt) > maxSessionLifetime
}

func (s *session) lastUsed() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastUsedAt
}

// find returns the session whose cookie has this secret, and notes that it was used.
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

// verifyCaller verifies the session's token again and returns its caller.
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

// isPerson reports whether the console is for this caller: agents and applications use the other APIs.
func isPerson(c identity.Caller) bool {
	switch c.Role {
	case identity.Subject, identity.Admin, identity.Operator:
		return true
	}
	return false
}

// hasCSRFToken reports whether a form was made for this session.
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

// handleFor returns the handle that stands for an id in addresses of this session. Nobody else can make or resolve it.
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

// peopleFilter returns the search that the user made last on the page of people.
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

// sessionCookie makes the session cookie. It is for these pages only, not sent by other sites or visible to scripts,
// and gone with the browser.
func (o *Console) sessionCookie(value string) *http.Cookie {
	c := &http.Cookie{Name: o.cookieName(), Value: value, Path: Base, HttpOnly: true, Secure: o.ServedOverTLS,
		SameSite: http.SameSiteStrictMode}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

// sessionOf returns the session of a request, and the secret of its cookie, if there is one.
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
