package enforce

import (
	"slices"
	"sync"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// quotas count the rows that contracts allow for one value of an attribute, for all sessions of this process.
//
// A statement reserves what it may return before it is sent, and what it did not return is given back when its result
// is complete. So sessions beside each other do not take more together than one could.
type quotas struct {
	mu    sync.Mutex
	taken map[quotaKey]*taken
	now   func() time.Time // tests set it
}

// quotaKey is what is counted together.
type quotaKey struct{ database, agent, contract, per, value string }

type taken struct {
	rows     int64 // sent, or reserved
	reserved int   // executions that are not settled
	used     time.Time
}

// maxQuotas bounds how many counts are kept. One that nothing used for keptFor is forgotten when there is no room; if
// there is none, there is nothing for new ones.
const (
	maxQuotas = 100_000
	keptFor   = 24 * time.Hour
)

func newQuotas() *quotas {
	return &quotas{taken: map[quotaKey]*taken{}, now: time.Now}
}

// reservation is what one execution has reserved.
type reservation struct {
	quotas *quotas
	asked  *policy.Quota
	of     *taken
	rows   int64
}

// reserve reserves what a quota is asked for. Where that is more than is left, partly takes what is left, if anything
// is.
func (q *quotas) reserve(key quotaKey, asked *policy.Quota, partly bool) (*reservation, *sqlstate.Error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.taken[key]
	if t == nil {
		if len(q.taken) >= maxQuotas && !q.forget() {
			return nil, asked.Exceeded(0)
		}
		t = &taken{}
		q.taken[key] = t
	}
	t.used = q.now()
	rows, left := asked.Limit, asked.AtMost-t.rows
	if rows > left {
		if !partly || left <= 0 {
			return nil, asked.Exceeded(left)
		}
		rows = left
	}
	t.rows += rows
	t.reserved++
	return &reservation{q, asked, t, rows}, nil
}

// settle gives back what was not returned.
func (r *reservation) settle(returned int64) {
	r.quotas.mu.Lock()
	defer r.quotas.mu.Unlock()
	r.of.rows -= r.rows - min(max(returned, 0), r.rows)
	r.of.reserved--
}

// forget drops what was not used for long. The caller holds the lock.
func (q *quotas) forget() (some bool) {
	before := q.now().Add(-keptFor)
	for k, t := range q.taken {
		if t.reserved == 0 && t.used.Before(before) {
			delete(q.taken, k)
			some = true
		}
	}
	return some
}

// quotasOf are those that an execution is held to: of the statements of its text that run now, and of what these run by
// name.
func quotasOf(v *verdict.Verdict, runs []*verdict.Verdict) []*policy.Quota {
	var out []*policy.Quota
	if j, ok := v.Detail.(*judgement); ok {
		for i, e := range v.Effects {
			if e.Kind == verdict.Prepares || e.Kind == verdict.Declares {
				continue
			}
			if j.part > 0 {
				i = j.part - 1
			}
			if i < len(j.quotas) {
				out = append(out, j.quotas[i]...)
			}
		}
	}
	for _, run := range runs {
		if j, ok := run.Detail.(*judgement); ok && j.part > 0 && j.part <= len(j.quotas) {
			out = append(out, j.quotas[j.part-1]...)
		} else if ok {
			for _, each := range j.quotas {
				out = append(out, each...)
			}
		}
	}
	return out
}

// partly tells whether an execution may take a part of a result: FETCH, and Execute of a portal in pieces.
func partly(v *verdict.Verdict) bool {
	return v.PartialResult || slices.ContainsFunc(v.Effects, func(e verdict.Effect) bool { return e.Kind == verdict.Fetches })
}

// reserve reserves the rows that an execution may return, for each of its quotas, or none.
func (s *session) reserve(v *verdict.Verdict, asked []*policy.Quota) ([]*reservation, *policy.Quota, *sqlstate.Error) {
	var out []*reservation
	for _, q := range asked {
		r, err := s.e.quotas.reserve(quotaKey{s.db.cfg.Name, s.agent.Name, q.Contract, q.Per, q.Value}, q, partly(v))
		if err != nil {
			settle(out, 0)
			return nil, q, err
		}
		out = append(out, r)
	}
	return out, nil, nil
}

func settle(all []*reservation, returned int64) {
	for _, r := range all {
		r.settle(returned)
	}
}

// denies is what the record has of the contracts where one of them has no rows left.
func denies(list []audit.Contract, q *policy.Quota) []audit.Contract {
	out := slices.Clone(list)
	for i, c := range out {
		if c.Name == q.Contract && c.Verdict == "allow" {
			out[i].Verdict = "deny"
		}
	}
	return out
}

// bounded is a bound that ends a result where what was reserved ends. A statement that is sent whole returns no more
// than it reserved; a part of one may.
func bounded(b verdict.Bound, all []*reservation) verdict.Bound {
	for _, r := range all {
		if r.rows >= r.asked.Limit || b.Rows > 0 && b.Rows <= r.rows {
			continue
		}
		others, asked := b.Exceeded, r.asked
		b.Rows = r.rows
		b.Exceeded = func(by verdict.Excess) *sqlstate.Error {
			if by != verdict.TooManyRows {
				return others(by)
			}
			return asked.Exceeded(0)
		}
	}
	return b
}
