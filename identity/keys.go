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

	"github.com/lestrrat-go/jwx/v3/jwk"
)

// keys are the public keys of an identity provider, kept as long as they may be, and asked for again when a token names one that is not among them.
type keys struct {
	source string
	remote bool

	mu      sync.Mutex
	set     jwk.Set
	got     time.Time // when set was read
	tried   time.Time
	trouble error
}

// How long keys are used, and how often they are asked for.
const (
	keysFresh  = 5 * time.Minute // then they are asked for again
	keysLast   = time.Hour       // then they are used no more, if nobody could be asked
	keysPause  = 5 * time.Second // between two questions
	keysWithin = 5 * time.Second // for an answer
	keysSize   = 1 << 20         // of it
	fileFresh  = time.Second     // a file is cheap
)

var fetcher = &http.Client{
	Timeout:       keysWithin,
	CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("the address of the keys redirects") },
}

// find is the key of that id; "" finds the only one.
func (k *keys) find(ctx context.Context, id string, now time.Time) (jwk.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	fresh := keysFresh
	if !k.remote {
		fresh = fileFresh
	}
	if k.set == nil || now.Sub(k.got) > fresh {
		k.read(ctx, now)
	}
	key, ok := k.look(id)
	if !ok && now.Sub(k.got) > 0 { // it may be a new one
		k.read(ctx, now)
		key, ok = k.look(id)
	}
	switch {
	case ok && now.Sub(k.got) <= keysLast:
		return key, nil
	case k.trouble != nil:
		return nil, k.trouble
	default:
		return nil, errors.New("the provider has no such key")
	}
}

func (k *keys) look(id string) (jwk.Key, bool) {
	if k.set == nil {
		return nil, false
	}
	if id == "" {
		if k.set.Len() != 1 {
			return nil, false
		}
		return k.set.Key(0)
	}
	return k.set.LookupKeyID(id)
}

// read asks for the keys; what cannot be read leaves those there are.
func (k *keys) read(ctx context.Context, now time.Time) {
	if k.remote && now.Sub(k.tried) < keysPause {
		return
	}
	k.tried = now
	text, err := k.fetch(ctx)
	if err == nil {
		var set jwk.Set
		if set, err = jwk.Parse(text); err == nil {
			k.set, k.got, k.trouble = set, now, nil
			return
		}
	}
	k.trouble = fmt.Errorf("the provider's keys cannot be read: %w", err)
}

func (k *keys) fetch(ctx context.Context) ([]byte, error) {
	if !k.remote {
		return os.ReadFile(k.source)
	}
	// Whoever waits for it gives up when he likes; the keys are for all.
	request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, k.source, nil)
	if err != nil {
		return nil, err
	}
	response, err := fetcher.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", response.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, keysSize+1))
	if err == nil && len(text) > keysSize {
		err = errors.New("they are too many")
	}
	return text, err
}
