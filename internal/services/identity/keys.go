package identity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
)

// keyCache caches the public keys of an identity provider. It reads the keys again when they are older than
// keysRefreshAge, or when a token names an unknown key.
type keyCache struct {
	source   string
	isRemote bool

	mu          sync.Mutex
	keys        []jwk.Key
	readAt      time.Time // when the keys were read; zero: never
	lastAttempt time.Time
	lastError   error
	inFlight    chan struct{} // closed when the request in progress is answered; nil: no request is in progress
}

// Lifetimes and limits of the keys.
const (
	keysRefreshAge    = 5 * time.Minute // age from which keys are read again
	keysMaxAge        = time.Hour       // age up to which keys are used if reading them again fails
	keysRetryPause    = 5 * time.Second // shortest time between two requests for keys
	keysTimeout       = 5 * time.Second // timeout of a request for keys
	maxKeysBytes      = 1 << 20         // size of the largest accepted answer, in bytes
	keyFileRefreshAge = time.Second     // as keysRefreshAge, for keys in a file: reading a file is cheap
)

var keysClient = &http.Client{
	Timeout:       keysTimeout,
	CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("the address of the keys redirects") },
}

// find returns the key that has the id and fits the algorithm; for the id "" it returns the only key. A known key is
// found without waiting as long as the keys are fresh.
func (k *keyCache) find(ctx context.Context, id string, algorithm jwa.SignatureAlgorithm, now time.Time) (jwk.Key, error) {
	maxAge := keysRefreshAge
	if !k.isRemote {
		maxAge = keyFileRefreshAge
	}
	keys, readAt, trouble := k.cachedKeys()
	if readAt.IsZero() || now.Sub(readAt) > maxAge {
		k.refresh(ctx, now, trouble == nil || now.Sub(readAt) > keysMaxAge)
		keys, readAt, trouble = k.cachedKeys()
	}
	// The id may be that of a new key, which is not in the cache yet.
	if len(keysWithID(keys, id)) == 0 && now.Sub(readAt) > 0 {
		k.refresh(ctx, now, true)
		keys, readAt, trouble = k.cachedKeys()
	}
	candidates := keysWithID(keys, id)
	switch {
	case readAt.IsZero() || now.Sub(readAt) > keysMaxAge || len(candidates) == 0 && trouble != nil:
		if trouble == nil {
			trouble = errors.New("the provider's keys cannot be read now")
		}
		return nil, trouble
	case len(candidates) == 0 && id == "" && len(keys) > 1:
		return nil, errors.New("it names no key, and the provider has several")
	case len(candidates) == 0:
		return nil, errors.New("the provider has no such key")
	}
	return singleKey(candidates, algorithm)
}

// cachedKeys returns the cached keys, when they were read, and the error of the last request.
func (k *keyCache) cachedKeys() ([]jwk.Key, time.Time, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keys, k.readAt, k.lastError
}

// keysWithID returns the keys that have the id; for the id "" it returns the only key.
func keysWithID(keys []jwk.Key, id string) (out []jwk.Key) {
	if id == "" {
		if len(keys) != 1 {
			return nil
		}
		return keys
	}
	for _, key := range keys {
		if keyID, ok := key.KeyID(); ok && keyID == id {
			out = append(out, key)
		}
	}
	return out
}

// singleKey returns the one key that fits the algorithm. Keys of several types may share an id. If two keys fit,
// singleKey returns an error, since the token does not say which one it means.
func singleKey(candidates []jwk.Key, algorithm jwa.SignatureAlgorithm) (found jwk.Key, err error) {
	var reason error
	for _, key := range candidates {
		if e := checkKey(key, algorithm); e != nil {
			reason = e
			continue
		}
		if found != nil {
			return nil, errors.New("the provider has several keys of its id")
		}
		found = key
	}
	if found == nil {
		return nil, reason
	}
	return found, nil
}

// refresh fetches the keys. If another goroutine is fetching them, refresh waits for its answer only if wait is set: a
// caller for whom the cached keys suffice does not wait for a slow provider. If the request fails, the cached keys
// stay.
func (k *keyCache) refresh(ctx context.Context, now time.Time, wait bool) {
	k.mu.Lock()
	if inFlight := k.inFlight; inFlight != nil {
		k.mu.Unlock()
		if !wait {
			return
		}
		select {
		case <-inFlight:
		case <-ctx.Done():
		}
		return
	}
	if k.isRemote && !k.lastAttempt.IsZero() && now.Sub(k.lastAttempt) < keysRetryPause {
		k.mu.Unlock()
		return
	}
	answered := make(chan struct{})
	k.lastAttempt, k.inFlight = now, answered
	k.mu.Unlock()
	keys, err := []jwk.Key(nil), errors.New("nothing was read")
	defer func() {
		k.mu.Lock()
		if k.inFlight = nil; err == nil {
			k.keys, k.readAt, k.lastError = keys, now, nil
		} else {
			// The error is not wrapped: a timeout of the provider must not be taken for a timeout of the call.
			k.lastError = fmt.Errorf("the provider's keys cannot be read: %v", err)
		}
		k.mu.Unlock()
		close(answered)
	}()
	text, e := k.fetchKeys(ctx)
	if err = e; err == nil {
		keys, err = parseKeys(text)
	}
}

// parseKeys parses a set of keys (JWKS). It skips keys of an unknown type.
func parseKeys(text []byte) ([]jwk.Key, error) {
	keySet, err := jwk.Parse(text, jwk.WithStrictKeySetParsing(false))
	if err != nil {
		return nil, errors.New("what is there is no set of keys")
	}
	var out []jwk.Key
	for i := range keySet.Len() {
		if key, ok := keySet.Key(i); ok {
			out = append(out, key)
		}
	}
	return out, nil
}

func (k *keyCache) fetchKeys(ctx context.Context) ([]byte, error) {
	if !k.isRemote {
		file, err := os.Open(k.source)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return readBounded(file)
	}
	// A caller that gives up must not cancel the request: other callers wait for the same answer.
	request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, k.source, nil)
	if err != nil {
		return nil, err
	}
	response, err := keysClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", response.StatusCode)
	}
	return readBounded(response.Body)
}

func readBounded(from io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxKeysBytes+1))
	if err == nil && len(text) > maxKeysBytes {
		err = errors.New("they are too many")
	}
	return text, err
}
