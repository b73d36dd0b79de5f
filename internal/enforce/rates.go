package enforce

import (
	"math"
	"sync"
	"time"
)

// limiters count what agents do, for all sessions of this process.
type limiters struct {
	mu     sync.Mutex
	counts map[countKey]*count
	now    func() time.Time // tests set it
}

// countKey is what is counted together.
type countKey struct{ database, per, value string }

// count is what one agent, or one value of an attribute, has left of its rates.
type count struct {
	statements, rows, byKey bucket
}

// maxCounts bounds how many are kept; full ones are dropped first.
const maxCounts = 100_000

func newLimiters() *limiters {
	return &limiters{counts: map[countKey]*count{}, now: time.Now}
}

func (l *limiters) count(k countKey) *count {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.counts[k]
	if c == nil {
		if len(l.counts) >= maxCounts {
			l.drop()
		}
		c = &count{}
		l.counts[k] = c
	}
	return c
}

// drop forgets those that have used nothing for a minute: a new one would be the same.
func (l *limiters) drop() {
	now := l.now()
	for k, c := range l.counts {
		if c.statements.full(now) && c.rows.full(now) && c.byKey.full(now) {
			delete(l.counts, k)
		}
	}
}

// bucket holds what is left of a minute's worth. It fills up evenly, and is never overdrawn: what is not known
// beforehand is taken in chunks, and given back as far as it was not used.
type bucket struct {
	mu     sync.Mutex
	perMin int // 0: never used
	tokens float64
	at     time.Time // tokens are of then
	taken  int64     // and not settled yet
}

// fill brings the bucket up to date; a reload may have changed the rate. The caller holds the lock.
func (b *bucket) fill(perMin int, now time.Time) {
	switch {
	case b.perMin == 0:
		b.tokens = float64(perMin)
	case now.After(b.at):
		b.tokens += now.Sub(b.at).Minutes() * float64(b.perMin)
	default:
		now = b.at
	}
	b.tokens, b.perMin, b.at = min(b.tokens, float64(perMin)), perMin, now
}

// full tells whether forgetting the bucket would change nothing.
func (b *bucket) full(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.perMin == 0 {
		return true
	}
	b.fill(b.perMin, now)
	return b.tokens >= float64(b.perMin) && b.taken == 0
}

// take takes n, or says after how long it could.
func (b *bucket) take(n, perMin int, now time.Time) (ok bool, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(perMin, now)
	if b.tokens >= float64(n) {
		b.tokens -= float64(n)
		return true, 0
	}
	return false, waits(float64(min(n, perMin))-b.tokens, perMin)
}

// reserve takes as much of n as there is; it is to be settled. Where nothing is, it says after how long something may be.
func (b *bucket) reserve(n int64, perMin int, now time.Time) (got int64, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(perMin, now)
	if b.tokens < 1 {
		return 0, waits(1-b.tokens, perMin)
	}
	got = min(n, int64(b.tokens))
	b.tokens -= float64(got)
	b.taken += got
	return got, 0
}

// settle ends a reservation of which this much was not used.
func (b *bucket) settle(reserved, unused int64, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(b.perMin, now)
	b.taken -= reserved
	b.tokens = min(b.tokens+float64(unused), float64(b.perMin))
}

func waits(missing float64, perMin int) time.Duration {
	return time.Duration(math.Ceil(missing*60/float64(perMin))) * time.Second
}
