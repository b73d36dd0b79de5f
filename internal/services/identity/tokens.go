package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pgconsent/pgconsent/internal/run/config"
)

// Tokens verifies static tokens by the tokens file. It reads the file again when it has changed, so that a revoked
// token is refused at the next call. While the file cannot be read or parsed, the tokens read before stay valid, and
// the error is logged.
type Tokens struct {
	path   string
	config func() *config.Config
	log    *slog.Logger

	mu           sync.Mutex
	fileState    string // size and times that the file had when it was read
	checkedAt    time.Time
	tokensByHash map[string]Token
}

// recheckPeriod is the time after which the file is read again even if its size and times have not changed. Two quick
// changes may leave both the same.
const recheckPeriod = time.Second

// OpenTokens reads the tokens file. At each call, c returns the configuration, which has the agents and databases.
func OpenTokens(path string, c func() *config.Config, log *slog.Logger) (*Tokens, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	t := &Tokens{path: path, config: c, log: log, tokensByHash: map[string]Token{}}
	tokens, err := ReadTokens(path)
	if err != nil {
		return nil, err
	}
	for _, token := range tokens {
		if _, err := token.caller(c()); err != nil {
			log.Warn("a token is refused until the file or the configuration is put right", "file", path, "error", err)
		}
	}
	return t, nil
}

// Verify implements Verifier.
func (t *Tokens) Verify(_ context.Context, bearer string) (Caller, error) {
	// The map is searched for the hash, not for the token, so that the time of the search reveals nothing of the token.
	token, ok := t.currentTokens()[TokenHash(bearer)]
	switch {
	case !ok:
		return Caller{}, NewRefusal(errors.New("no such token"))
	case token.Disabled:
		return Caller{}, NewRefusal(fmt.Errorf("token %s was revoked", token.Name))
	}
	caller, err := token.caller(t.config())
	if err != nil {
		return Caller{}, NewRefusal(err)
	}
	return caller, nil
}

// currentTokens returns the tokens by their hashes. It reads the file again if the file has changed.
func (t *Tokens) currentTokens() map[string]Token {
	t.mu.Lock()
	defer t.mu.Unlock()
	state := "none"
	if info, err := os.Stat(t.path); err == nil {
		state = fmt.Sprint(info.Mode(), info.Size(), info.ModTime())
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			state = fmt.Sprint(state, st.Ino, changeTime(st))
		}
	}
	now := time.Now()
	if state == t.fileState && now.Sub(t.checkedAt) < recheckPeriod {
		return t.tokensByHash
	}
	hasChanged := state != t.fileState
	t.fileState, t.checkedAt = state, now
	tokens, err := ReadTokens(t.path)
	if err != nil {
		if hasChanged {
			t.log.Error("the tokens file cannot be used: the tokens read before stay valid", "error", err)
		}
		return t.tokensByHash
	}
	m := make(map[string]Token, len(tokens))
	for _, token := range tokens {
		m[strings.ToLower(token.SHA256)] = token
	}
	t.tokensByHash = m
	return m
}
