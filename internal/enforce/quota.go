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

// quotas count the rows that agents have got under contracts with a quota, for each value of the quota's attribute. All
// sessions of this process share the counts.
//
// Before a statement is sent, it reserves the rows that it may return. When its result is complete, the rows that it
// did not return are given back. So concurrent sessions together cannot get more rows than one session could.
type quotas struct {
	mu     sync.Mutex
	counts map[quotaKey]*quotaCount
	now    func() time.Time // clock, which tests replace
}

// quotaKey identifies a count: executions with equal keys share it.
type quotaKey struct{ database, agent, contract, limitScope, value string }

type quotaCount struct {
	rows                int64 // number of rows that were returned or are reserved
	unsettledExecutions int   // number of executions whose reservation is not settled yet
	lastUsed            time.Time
}

// maxQuotas is how many counts there may be. When this number is reached, counts that were not used for quotaRetention
// are dropped. If there are none, statements that need a new count are refused.
const (
	maxQuotas      = 100_000
	quotaRetention = 24 * time.Hour
)

func newQuotas() *quotas {
	return &quotas{counts: map[quotaKey]*quotaCount{}, now: time.Now}
}

// reservation is the number of rows that one execution has reserved in one quota.
type reservation struct {
	quotas *quotas
	quota  *policy.Quota
	count  *quotaCount
	rows   int64
}

// reserve reserves the rows that a statement may return from a quota. If fewer rows are left and allowPart is set, it
// reserves the rest; otherwise it refuses.
func (q *quotas) reserve(key quotaKey, quota *policy.Quota, allowPart bool) (*reservation, *sqlstate.Error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.counts[key]
	if t == nil {
		if len(q.counts) >= maxQuotas && !q.dropUnused() {
			return nil, quota.ExceededRefusal(0)
		}
		t = &quotaCount{}
		q.counts[key] = t
	}
	t.lastUsed = q.now()
	rows, remaining := quota.Limit, quota.MaxRows-t.rows
	if rows > remaining {
		if !allowPart || remaining <= 0 {
			return nil, quota.ExceededRefusal(remaining)
		}
		rows = remaining
	}
	t.rows += rows
	t.unsettledExecutions++
	return &reservation{q, quota, t, rows}, nil
}

// settle ends the reservation and gives back the reserved rows that were not returned.
func (r *reservation) settle(returned int64) {
	r.quotas.mu.Lock()
	defer r.quotas.mu.Unlock()
	r.count.rows -= r.rows - min(max(returned, 0), r.rows)
	r.count.unsettledExecutions--
}

// dropUnused removes counts that were not used for quotaRetention. The caller holds the lock.
func (q *quotas) dropUnused() (dropped bool) {
	before := q.now().Add(-quotaRetention)
	for k, t := range q.counts {
		if t.unsettledExecutions == 0 && t.lastUsed.Before(before) {
			delete(q.counts, k)
			dropped = true
		}
	}
	return dropped
}

// quotasOf returns the quotas that limit an execution: those of the statements in its text that run now, and of the
// prepared statements and cursors that these run by name.
func quotasOf(v *verdict.Verdict, executed []*verdict.Verdict) []*policy.Quota {
	var out []*policy.Quota
	if j, ok := v.EnforcerDetail.(*judgement); ok {
		for i, e := range v.Effects {
			if e.Kind == verdict.EffectPrepare || e.Kind == verdict.EffectDeclare {
				continue
			}
			if j.preparedBy > 0 {
				i = j.preparedBy - 1
			}
			if i < len(j.quotas) {
				out = append(out, j.quotas[i]...)
			}
		}
	}
	for _, run := range executed {
		if j, ok := run.EnforcerDetail.(*judgement); ok && j.preparedBy > 0 && j.preparedBy <= len(j.quotas) {
			out = append(out, j.quotas[j.preparedBy-1]...)
		} else if ok {
			for _, statementQuotas := range j.quotas {
				out = append(out, statementQuotas...)
			}
		}
	}
	return out
}

// mayReturnPart reports whether an execution may return only a part of a result: a FETCH, or an Execute message with a
// row limit.
func mayReturnPart(v *verdict.Verdict) bool {
	return v.PartialResult || slices.ContainsFunc(v.Effects,
		func(e verdict.Effect) bool { return e.Kind == verdict.EffectFetch })
}

// reserve reserves the rows that an execution may return in each of its quotas. If a quota refuses, reserve returns
// that quota and reserves nothing.
func (s *session) reserve(v *verdict.Verdict, asked []*policy.Quota) ([]*reservation, *policy.Quota, *sqlstate.Error) {
	var out []*reservation
	for _, q := range asked {
		r, err := s.enforcer.quotas.reserve(quotaKey{s.db.cfg.Name, s.agent.Name, q.Contract, q.Per, q.Value}, q,
			mayReturnPart(v))
		if err != nil {
			settleAll(out, 0)
			return nil, q, err
		}
		out = append(out, r)
	}
	return out, nil, nil
}

func settleAll(all []*reservation, returned int64) {
	for _, r := range all {
		r.settle(returned)
	}
}

// withDenial returns a copy of the record's list of contracts. In the copy, the contract whose quota is exceeded denies
// instead of allowing.
func withDenial(list []audit.Contract, q *policy.Quota) []audit.Contract {
	out := slices.Clone(list)
	for i, c := range out {
		if c.Name == q.Contract && c.Verdict == "allow" {
			out[i].Verdict = "deny"
		}
	}
	return out
}

// boundByQuotas returns a bound that also ends a result after the reserved rows. It is needed only where an execution
// reserved less than the quota's limit for a statement.
func boundByQuotas(b verdict.ResultBound, all []*reservation) verdict.ResultBound {
	for _, r := range all {
		if r.rows >= r.quota.Limit || b.Rows > 0 && b.Rows <= r.rows {
			continue
		}
		others, quota := b.Exceeded, r.quota
		b.Rows = r.rows
		b.Exceeded = func(bound verdict.ExceededBound) *sqlstate.Error {
			if bound != verdict.TooManyRows {
				return others(bound)
			}
			return quota.ExceededRefusal(0)
		}
	}
	return b
}
