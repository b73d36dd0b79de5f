package api

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// rateLimiter limits how often each caller may call. To bound memory, it forgets callers whose burst is full again
// because they have not called for long enough.
type rateLimiter struct {
	ratePerCaller rate.Limit
	burstCalls    int

	mu        sync.Mutex
	buckets   map[string]*callerBucket
	lastSweep time.Time
}

type callerBucket struct {
	*rate.Limiter
	lastUsed time.Time
}

// maxCallers is the number of callers that have a limit of their own at the same time.
const maxCallers = 10_000

func newRateLimiter(perSecond float64, burst int) *rateLimiter {
	return &rateLimiter{ratePerCaller: rate.Limit(perSecond), burstCalls: burst, buckets: map[string]*callerBucket{}}
}

// allowCall counts a call of a caller, and reports whether the limit allows it.
func (r *rateLimiter) allowCall(caller string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	refillTime := time.Duration(float64(r.burstCalls)/float64(r.ratePerCaller)*float64(time.Second)) + time.Second
	// Callers are forgotten from time to time, not at each call, since there may be many callers.
	if since := now.Sub(r.lastSweep); since > refillTime || len(r.buckets) >= maxCallers && since > time.Second {
		for name, b := range r.buckets {
			if now.Sub(b.lastUsed) > refillTime {
				delete(r.buckets, name)
			}
		}
		r.lastSweep = now
	}
	b, ok := r.buckets[caller]
	if !ok {
		if len(r.buckets) >= maxCallers {
			return false
		}
		b = &callerBucket{Limiter: rate.NewLimiter(r.ratePerCaller, r.burstCalls)}
		r.buckets[caller] = b
	}
	b.lastUsed = now
	return b.AllowN(now, 1)
}
