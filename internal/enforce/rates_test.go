package enforce

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/test/tier"
)

// TestReservations: sessions that reserve at the same time never get more than the smallest of the rates, and what they
// give back is available again.
func TestReservations(t *testing.T) {
	now := time.Now()
	for _, perMin := range []int{1, 50, 10_000} {
		limits := []sessionLimit{{policy.Limit{Rows: perMin}, &rateBuckets{}}, {policy.Limit{Statements: 5}, &rateBuckets{}},
			{policy.Limit{Rows: perMin / 2 * 3}, &rateBuckets{}}}
		if perMin == 1 {
			limits = limits[:2]
		}
		var mu sync.Mutex
		var used int64
		var sessions sync.WaitGroup
		for session := range 8 {
			sessions.Go(func() {
				random := tier.Rand(uint64(session))
				for {
					n, short, wait := takeFromRates(limits, now)
					if short != nil {
						if wait <= 0 {
							t.Error("there is no time to wait")
						}
						return
					}
					show := random.Int64N(n) + 1
					returnToRates(limits, n, n-show, now)
					mu.Lock()
					used += show
					mu.Unlock()
				}
			})
		}
		sessions.Wait()
		// A session may have found no room because others gave back only later.
		for {
			n, short, _ := takeFromRates(limits, now)
			if short != nil {
				break
			}
			returnToRates(limits, n, 0, now)
			used += n
		}
		if used != int64(perMin) {
			t.Errorf("%d rows were used of %d", used, perMin)
		}
		if n, _, _ := takeFromRates(limits, now.Add(time.Minute)); n < 1 || limits[0].buckets.rows.isFull(now.Add(time.Minute)) {
			t.Errorf("%d rows a minute later, and the count is forgotten: %t", n, limits[0].buckets.rows.isFull(now.Add(time.Minute)))
		}
	}
}

// TestRatesChange: a reload changes the available amount at once, and a clock that goes back adds nothing.
func TestRatesChange(t *testing.T) {
	var b tokenBucket
	now := time.Now()
	if ok, _ := b.take(60, 60, now); !ok {
		t.Error("a fresh bucket is not full")
	}
	if ok, wait := b.take(1, 60, now); ok || wait != time.Second {
		t.Errorf("an empty bucket gives: %t, or in %s", ok, wait)
	}
	if ok, _ := b.take(1, 60, now.Add(-time.Hour)); ok {
		t.Error("a clock that goes back fills it")
	}
	if ok, _ := b.take(1, 60, now); ok {
		t.Error("a clock that went back and comes forward again fills it")
	}
	if ok, _ := b.take(30, 60, now.Add(30*time.Second)); !ok {
		t.Error("half a minute does not fill half of it")
	}
	if got, _ := b.reserve(100, 10, now.Add(time.Hour)); got != 10 {
		t.Errorf("%d of 10", got)
	}
}

// TestOnlyFullBucketsAreDropped: if there is no room for more buckets, only those are dropped that are full, as a new
// bucket would be.
func TestOnlyFullBucketsAreDropped(t *testing.T) {
	l := newRateLimiters()
	now := time.Now()
	l.now = func() time.Time { return now }
	use := []func(*rateBuckets){
		func(*rateBuckets) {},
		func(c *rateBuckets) { c.statements.take(1, 10, now) },
		func(c *rateBuckets) { c.keyLookups.take(1, 10, now) },
		func(c *rateBuckets) { c.rows.reserve(1, 10, now) },
		func(c *rateBuckets) { c.rows.reserve(1, 10, now.Add(-time.Hour)) }, // full by now, but not refilled yet
	}
	for n := range 1 << len(use) {
		c := l.bucketsFor(rateKey{value: strconv.Itoa(n)})
		for i, f := range use {
			if n&(1<<i) != 0 {
				f(c)
			}
		}
	}
	l.dropFullBuckets()
	for n := range 1 << len(use) {
		if _, notReloaded := l.buckets[rateKey{value: strconv.Itoa(n)}]; notReloaded != (n > 1) {
			t.Errorf("the count with uses %05b is kept: %t", n, notReloaded)
		}
	}
	now = now.Add(time.Minute)
	l.dropFullBuckets()
	for k, c := range l.buckets {
		if c.rows.unsettledRows == 0 {
			t.Errorf("count %s is kept, and nothing of it is in use", k.value)
		}
	}
}
