package api

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// rates bound how often each caller may call. Memory is bounded: who has not called for a while is forgotten, and had
// its burst back by then.
type rates struct {
	each  rate.Limit
	burst int

	mu    sync.Mutex
	of    map[string]*bucket
	swept time.Time
}

type bucket struct {
	*rate.Limiter
	used time.Time
}

// mostRates is how many callers are told apart at a time.
const mostRates = 10_000

func newRates(perSecond float64, burst int) *rates {
	return &rates{each: rate.Limit(perSecond), burst: burst, of: map[string]*bucket{}}
}

// allow takes one call of a caller.
func (r *rates) allow(who string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	full := time.Duration(float64(r.burst)/float64(r.each)*float64(time.Second)) + time.Second
	// not at each call: there may be many
	if since := now.Sub(r.swept); since > full || len(r.of) >= mostRates && since > time.Second {
		for name, b := range r.of {
			if now.Sub(b.used) > full {
				delete(r.of, name)
			}
		}
		r.swept = now
	}
	b, ok := r.of[who]
	if !ok {
		if len(r.of) >= mostRates {
			return false
		}
		b = &bucket{Limiter: rate.NewLimiter(r.each, r.burst)}
		r.of[who] = b
	}
	b.used = now
	return b.AllowN(now, 1)
}
