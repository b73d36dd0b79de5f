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

// keyCache caches the public keys of an identity provider. They are read again when they are old, or when a token names
// an unknown key.
type keyCache struct {
	source   string
	isRemote bool

	mu          sync.Mutex
	keys        []jwk.Key
	readAt      time.Time // when the keys were read; zero: never
	lastAttempt time.Time
	lastError   error
	inFlight    chan struct{} // closed when the request in progress is answered; nil: there is none
}

// Lifetimes and limits of the keys.
const (
	keysRefreshAge    = 5 * time.Minute // how old keys may be before they are read again
	keysMaxAge        = time.Hour       // how old keys may be used if reading them again has failed
	keysRetryPause    = 5 * time.Second // pause between two requests for keys
	keysTimeout       = 5 * time.Second // timeout of a request for keys
	maxKeysBytes      = 1 << 20         // largest answer with keys, in bytes
	keyFileRefreshAge = time.Second     // how old keys from a file may be: reading a file again is cheap
)

var keysClient = &http.Client{
	Timeout:       keysTimeout,
	CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("the address of the keys redirects") },
}

// find returns the key with the id that fits the algorithm; "" finds the only key. As long as the keys are fresh, a
// known key is found without waiting.
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
	// The id may be that of a new key, which the cached keys do not have.
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

// cachedKeys returns the cached keys, when they were read, and the last error.
func (k *keyCache) cachedKeys() ([]jwk.Key, time.Time, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keys, k.readAt, k.lastError
}

// keysWithID returns the keys with the id.
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

// singleKey returns the one key that fits the algorithm. Keys of several kinds may share an id; if two fit, it is not
// known which is meant.
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

// refresh requests the keys. If a request is in progress, it waits for its answer only if wait is set. A caller for
// whom the present keys suffice does not wait for a slow provider. After an error the present keys stay.
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
			// Not wrapped: a timeout of the provider must not look like one of the call.
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

// parseKeys parses a key set. It skips keys of an unknown kind.
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
	// A caller that gives up must not end the request: other callers wait for its answer, too.
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
