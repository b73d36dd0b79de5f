package enforce

import (
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/sqlstate"
	"github.com/pgconsent/pgconsent/verdict"
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

// bucket holds what is left of a minute's worth. It fills up evenly.
type bucket struct {
	mu      sync.Mutex
	limiter *rate.Limiter
	perMin  int
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

// at returns the limiter for so many a minute; a reload may have changed that. The caller holds the lock.
func (b *bucket) at(perMin int, now time.Time) *rate.Limiter {
	if b.limiter == nil {
		b.limiter = rate.NewLimiter(rate.Limit(float64(perMin)/60), perMin)
	} else if b.perMin != perMin {
		b.limiter.SetLimitAt(now, rate.Limit(float64(perMin)/60))
		b.limiter.SetBurstAt(now, perMin)
	}
	b.perMin = perMin
	return b.limiter
}

func (b *bucket) full(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limiter == nil || b.limiter.TokensAt(now) >= float64(b.perMin)
}

// take takes n, or says after how long it could.
func (b *bucket) take(n, perMin int, now time.Time) (ok bool, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	limiter := b.at(perMin, now)
	if limiter.AllowN(now, n) {
		return true, 0
	}
	return false, waits(float64(min(n, perMin))-limiter.TokensAt(now), perMin)
}

// left is what may be used now, or after how long something may.
func (b *bucket) left(perMin int, now time.Time) (n int64, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	tokens := b.at(perMin, now).TokensAt(now)
	if tokens >= 1 {
		return int64(tokens), 0
	}
	return 0, waits(1-tokens, perMin)
}

// spend takes n although there may be less: what is owed is waited for.
func (b *bucket) spend(n int64, perMin int, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	limiter := b.at(perMin, now)
	n = min(n, 60*int64(perMin)) // an hour is enough
	for n > 0 {
		part := min(n, int64(perMin))
		limiter.ReserveN(now, int(part))
		n -= part
	}
}

func waits(missing float64, perMin int) time.Duration {
	return time.Duration(math.Ceil(missing*60/float64(perMin))) * time.Second
}

// applied is a limit of the policy and what this session shares of its counts.
type applied struct {
	policy.Limit
	count *count
}

// limits returns what bounds this session under a policy.
func (s *session) limits(p *policy.Policy) []applied {
	if len(p.Limits()) == 0 {
		return nil
	}
	if known := s.limited.Load(); known != nil && known.policy == p {
		return known.limits
	}
	out := make([]applied, 0, len(p.Limits()))
	for _, l := range p.Limits() {
		value := s.agent.Name
		if l.Per != "" {
			value = s.attributes[l.Per]
		}
		out = append(out, applied{l, s.e.limiters.count(countKey{s.db.cfg.Name, l.Per, value})})
	}
	s.limited.Store(&sessionLimits{p, out})
	return out
}

type sessionLimits struct {
	policy *policy.Policy
	limits []applied
}

// demand is what an execution asks for.
type demand struct{ statements, keys int }

// demanded adds up the statements of a text, and the keys of those that run now: what PREPARE and DECLARE name runs later.
// What ends a transaction or gives something back is not counted, so that an agent at its limit can do it.
func demanded(v *verdict.Verdict, runs []*verdict.Verdict) demand {
	var out demand
	j, ok := v.Detail.(*judgement)
	if !ok || !v.Allowed() {
		return demand{statements: 1}
	}
	for i, e := range v.Effects {
		switch e.Kind {
		case verdict.BeginsTx, verdict.EndsTx, verdict.Deallocates, verdict.Closes, verdict.Unseals, verdict.Discards:
		case verdict.Prepares, verdict.Declares:
			out.statements++
		default:
			out.statements++
			if j.part > 0 {
				i = j.part - 1
			}
			if i < len(j.keys) {
				out.keys += j.keys[i]
			}
		}
	}
	for _, run := range runs {
		if of, ok := run.Detail.(*judgement); ok && of.part > 0 && of.part <= len(of.keys) {
			out.keys += of.keys[of.part-1]
		} else if ok {
			for _, n := range of.keys {
				out.keys += n
			}
		}
	}
	return out
}

// charge takes what an execution asks for of the rates, or refuses it.
func (s *session) charge(limits []applied, d demand) *sqlstate.Error {
	now := s.e.limiters.now()
	for _, l := range limits {
		if l.Statements > 0 && d.statements > 0 {
			if ok, wait := l.count.statements.take(d.statements, l.Statements, now); !ok {
				return s.exhausted(l, "statements", "statements", d.statements, l.Statements, wait)
			}
		}
		if l.Rows > 0 && d.statements > 0 {
			if _, wait := l.count.rows.left(l.Rows, now); wait > 0 {
				return s.exhausted(l, "rows", "rows", 1, l.Rows, wait)
			}
		}
		if l.ByKey > 0 && d.keys > 0 {
			if ok, wait := l.count.byKey.take(d.keys, l.ByKey, now); !ok {
				return s.exhausted(l, "by_key", "rows fetched by key", d.keys, l.ByKey, wait)
			}
		}
	}
	return nil
}

// attempted counts a statement that is refused for another reason.
func (s *session) attempted(limits []applied) {
	for _, l := range limits {
		if l.Statements > 0 {
			l.count.statements.take(1, l.Statements, s.e.limiters.now())
		}
	}
}

// exhausted is the refusal of what a rate has no room for.
func (s *session) exhausted(l applied, limit, what string, asked, perMin int, wait time.Duration) *sqlstate.Error {
	s.e.cfg.Metrics.Limited(limit)
	err := sqlstate.New(sqlstate.LimitExceeded, sqlstate.ReasonLimit, "too many %s: the policy allows %d per minute and %s", what, perMin, l.per())
	if asked > perMin {
		return err.WithHint("This asks for %d at once: ask for less at a time.", asked)
	}
	return err.WithHint("Try again in %d seconds.", max(1, int(wait/time.Second)))
}

func (l applied) per() string {
	if l.Per == "" {
		return "agent"
	}
	return l.Per
}

// bound is how much of a result may be relayed: what the policy allows for one, and what is left of the minute's rows.
func (s *session) bound(limits []applied) verdict.Bound {
	var b verdict.Bound
	var rowsErr, bytesErr func() *sqlstate.Error
	lower := func(into *int64, n int64) bool {
		if n > 0 && (*into == 0 || n < *into) {
			*into = n
			return true
		}
		return false
	}
	now := s.e.limiters.now()
	for _, l := range limits {
		if lower(&b.Rows, l.ResultRows) {
			rowsErr = func() *sqlstate.Error { return s.tooLarge("result_rows", fmt.Sprintf("%d rows", l.ResultRows)) }
		}
		if l.Rows > 0 {
			if left, _ := l.count.rows.left(l.Rows, now); lower(&b.Rows, max(left, 1)) {
				rowsErr = func() *sqlstate.Error {
					_, wait := l.count.rows.left(l.Rows, s.e.limiters.now())
					return s.exhausted(l, "rows", "rows", 1, l.Rows, max(wait, waits(1, l.Rows)))
				}
			}
		}
		if lower(&b.Bytes, l.ResultBytes) {
			bytesErr = func() *sqlstate.Error { return s.tooLarge("result_bytes", fmt.Sprintf("%d bytes", l.ResultBytes)) }
		}
	}
	b.Exceeded = func(rows bool) *sqlstate.Error {
		if rows {
			return rowsErr()
		}
		return bytesErr()
	}
	return b
}

// tooLarge is the end of a result that is larger than the policy allows.
func (s *session) tooLarge(limit, most string) *sqlstate.Error {
	s.e.cfg.Metrics.Limited(limit)
	return sqlstate.New(sqlstate.LimitExceeded, sqlstate.ReasonLimit, "the result is larger than the policy allows: %s", most).
		WithHint("Ask for less: fewer columns, a narrower WHERE, or LIMIT and one page after the other.")
}

// spent counts the rows that were relayed.
func spent(limits []applied, rows int64, now time.Time) {
	for _, l := range limits {
		if l.Rows > 0 && rows > 0 {
			l.count.rows.spend(rows, l.Rows, now)
		}
	}
}
