package enforce

import (
	"math"
	"sync"
	"time"
)

// rateLimiters has the counters for limits per minute, for all sessions of this process.
type rateLimiters struct {
	mu      sync.Mutex
	buckets map[rateKey]*rateBuckets
	now     func() time.Time // clock, which tests replace
}

// rateKey identifies a counter: executions with equal keys share it.
type rateKey struct{ database, limitScope, value string }

// rateBuckets has what one agent, or the agents with one value of an attribute, may still use of the limits per minute.
type rateBuckets struct {
	statements, rows, keyLookups tokenBucket
}

// maxRates is how many counters there may be before counters that are full are removed.
const maxRates = 100_000

func newRateLimiters() *rateLimiters {
	return &rateLimiters{buckets: map[rateKey]*rateBuckets{}, now: time.Now}
}

// bucketsFor returns the counter for a key. If there is none, bucketsFor makes one.
func (l *rateLimiters) bucketsFor(k rateKey) *rateBuckets {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.buckets[k]
	if c == nil {
		if len(l.buckets) >= maxRates {
			l.dropFullBuckets()
		}
		c = &rateBuckets{}
		l.buckets[k] = c
	}
	return c
}

// dropFullBuckets removes the counters whose buckets are full: a new counter would start full as well.
func (l *rateLimiters) dropFullBuckets() {
	now := l.now()
	for k, c := range l.buckets {
		if c.statements.isFull(now) && c.rows.isFull(now) && c.keyLookups.isFull(now) {
			delete(l.buckets, k)
		}
	}
}

// tokenBucket is a token bucket with the unused part of one limit per minute. It refills evenly and never goes below
// zero. As the number of rows is not known beforehand, rows are taken in chunks, and the unused ones are given back.
type tokenBucket struct {
	mu            sync.Mutex
	perMin        int // the limit per minute; 0: the bucket was never used
	tokens        float64
	filledAt      time.Time // when tokens was computed
	unsettledRows int64     // number of rows that are reserved and not settled yet
}

// refill adds the tokens for the time that has passed. perMin differs from the bucket's if the policy was reloaded with
// another limit. The caller holds the lock.
func (b *tokenBucket) refill(perMin int, now time.Time) {
	switch {
	case b.perMin == 0:
		b.tokens = float64(perMin)
	case now.After(b.filledAt):
		b.tokens += now.Sub(b.filledAt).Minutes() * float64(b.perMin)
	default:
		now = b.filledAt
	}
	b.tokens, b.perMin, b.filledAt = min(b.tokens, float64(perMin)), perMin, now
}

// isFull reports whether all tokens are there and nothing is reserved, as in a new bucket.
func (b *tokenBucket) isFull(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.perMin == 0 {
		return true
	}
	b.refill(b.perMin, now)
	return b.tokens >= float64(b.perMin) && b.unsettledRows == 0
}

// take takes n tokens. If fewer are left, it takes none and returns how long to wait until there are enough.
func (b *tokenBucket) take(n, perMin int, now time.Time) (ok bool, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(perMin, now)
	if b.tokens >= float64(n) {
		b.tokens -= float64(n)
		return true, 0
	}
	return false, waitFor(float64(min(n, perMin))-b.tokens, perMin)
}

// reserve takes up to n tokens; the caller must settle them later. If there are no tokens, it returns how long to wait
// for one.
func (b *tokenBucket) reserve(n int64, perMin int, now time.Time) (granted int64, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(perMin, now)
	if b.tokens < 1 {
		return 0, waitFor(1-b.tokens, perMin)
	}
	granted = min(n, int64(b.tokens))
	b.tokens -= float64(granted)
	b.unsettledRows += granted
	return granted, 0
}

// settle ends a reservation and gives back its unused part.
func (b *tokenBucket) settle(reserved, unused int64, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(b.perMin, now)
	b.unsettledRows -= reserved
	b.tokens = min(b.tokens+float64(unused), float64(b.perMin))
}

func waitFor(missing float64, perMin int) time.Duration {
	return time.Duration(math.Ceil(missing*60/float64(perMin))) * time.Second
}
