package enforce

import (
	"fmt"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// sessionLimit is a limit of the policy with the counter of what was used; sessions may share the counter.
type sessionLimit struct {
	policy.Limit
	buckets *rateBuckets
}

// limits returns the limits of this session under a policy, while it acts for a user with these attributes.
func (s *session) limits(p *policy.Policy, user map[string]string) []sessionLimit {
	if len(p.Limits()) == 0 {
		return nil
	}
	if cached := s.cachedLimits.Load(); cached != nil && cached.policy == p && user == nil {
		return cached.limits
	}
	out := make([]sessionLimit, 0, len(p.Limits()))
	for _, l := range p.Limits() {
		value := s.agent.Name
		if l.RateAttribute != "" {
			value = s.attributes[l.RateAttribute]
			if rateValue, ok := user[l.RateAttribute]; ok {
				value = rateValue
			}
		}
		out = append(out, sessionLimit{l, s.enforcer.limiters.bucketsFor(rateKey{s.db.cfg.Name, l.RateAttribute, value})})
	}
	if user == nil {
		s.cachedLimits.Store(&policyLimits{p, out})
	}
	return out
}

type policyLimits struct {
	policy *policy.Policy
	limits []sessionLimit
}

// executionCost is what one execution uses up of the limits per minute.
type executionCost struct {
	statements, keys int
	mayReturnRows    bool // the execution may send rows
}

// executionCostOf counts the statements of a text, and the keys of the statements that run now; the query of a PREPARE
// or DECLARE runs later. COMMIT, CLOSE and the like do not count, so that an agent at its limit can still end
// transactions and cursors.
func executionCostOf(v *verdict.Verdict, executed []*verdict.Verdict) executionCost {
	var out executionCost
	j, ok := v.EnforcerDetail.(*judgement)
	if !ok || !v.IsAllowed() {
		return executionCost{statements: 1}
	}
	out.mayReturnRows = mayReturnRows(v, executed)
	for i, e := range v.Effects {
		switch e.Kind {
		case verdict.EffectBegin, verdict.EffectEnd, verdict.EffectDeallocate, verdict.EffectClose, verdict.EffectResetAll,
			verdict.EffectDiscard:
		case verdict.EffectPrepare, verdict.EffectDeclare:
			out.statements++
		default:
			out.statements++
			if j.preparedBy > 0 {
				i = j.preparedBy - 1
			}
			if i < len(j.keyCounts) {
				out.keys += j.keyCounts[i]
			}
		}
	}
	for _, run := range executed {
		if detail, ok := run.EnforcerDetail.(*judgement); ok && detail.preparedBy > 0 &&
			detail.preparedBy <= len(detail.keyCounts) {
			out.keys += detail.keyCounts[detail.preparedBy-1]
		} else if ok {
			for _, n := range detail.keyCounts {
				out.keys += n
			}
		}
	}
	return out
}

// mayReturnRows reports whether an execution may send rows.
func mayReturnRows(v *verdict.Verdict, executed []*verdict.Verdict) bool {
	named := false // whether a statement that v runs by name may send rows
	for _, run := range executed {
		for _, e := range run.Effects {
			named = named || e.ReturnsRows
		}
	}
	for _, e := range v.Effects {
		switch e.Kind {
		case verdict.EffectExecute, verdict.EffectFetch:
			if e.ReturnsRows && named {
				return true
			}
		default:
			if e.ReturnsRows {
				return true
			}
		}
	}
	return false
}

// charge takes the cost of an execution from the limits per minute, or refuses the execution. Rows are only reserved:
// the unused ones are given back when the execution is over.
func (s *session) charge(limits []sessionLimit, cost executionCost) (reserved int64, refused *sqlstate.Error) {
	if len(limits) == 0 {
		return 0, nil
	}
	now := s.enforcer.limiters.now()
	if cost.mayReturnRows && limitsRowRate(limits) {
		var short *sessionLimit
		var wait time.Duration
		if reserved, short, wait = takeFromRates(limits, now); short != nil {
			return 0, s.rateExceededRefusal(*short, "rows", "rows", 1, short.Rows, wait)
		}
	}
	for _, l := range limits {
		if l.Statements > 0 && cost.statements > 0 {
			if ok, wait := l.buckets.statements.take(cost.statements, l.Statements, now); !ok {
				return reserved, s.rateExceededRefusal(l, "statements", "statements", cost.statements, l.Statements, wait)
			}
		}
		if l.ByKey > 0 && cost.keys > 0 {
			if ok, wait := l.buckets.keyLookups.take(cost.keys, l.ByKey, now); !ok {
				return reserved, s.rateExceededRefusal(l, "by_key", "rows fetched by key", cost.keys, l.ByKey, wait)
			}
		}
	}
	return reserved, nil
}

// limitsRowRate reports whether a limit bounds how many rows are returned per minute.
func limitsRowRate(limits []sessionLimit) bool {
	for _, l := range limits {
		if l.Rows > 0 {
			return true
		}
	}
	return false
}

// maxReservedRows is how many rows an execution reserves at a time. If the limit per minute is small, it reserves
// fewer, so that sessions do not block each other with rows that none of them uses.
const maxReservedRows = 256

// takeFromRates reserves up to maxReservedRows rows from every limit on rows per minute. If a limit has no rows left,
// it returns that limit and how long to wait until it has some.
func takeFromRates(limits []sessionLimit, now time.Time) (n int64, exhausted *sessionLimit, wait time.Duration) {
	n = maxReservedRows
	for _, l := range limits {
		if l.Rows > 0 {
			n = min(n, int64(max(1, l.Rows/100)))
		}
	}
	for i, l := range limits {
		if l.Rows == 0 {
			continue
		}
		granted, wait := l.buckets.rows.reserve(n, l.Rows, now)
		if granted < n {
			returnToRates(limits[:i], n-granted, n-granted, now)
			n = granted
		}
		if n == 0 {
			return 0, &limits[i], wait
		}
	}
	return n, nil, 0
}

// chargeRefused counts a statement that was refused for another reason towards the limits on statements per minute.
func (s *session) chargeRefused(limits []sessionLimit) {
	for _, l := range limits {
		if l.Statements > 0 {
			l.buckets.statements.take(1, l.Statements, s.enforcer.limiters.now())
		}
	}
}

// rateExceededRefusal is the refusal of an execution that would exceed a limit per minute.
func (s *session) rateExceededRefusal(l sessionLimit, limit, unit string, requested, perMin int,
	wait time.Duration) *sqlstate.Error {
	s.enforcer.cfg.Metrics.CountLimited(limit)
	err := sqlstate.New(sqlstate.LimitExceeded, sqlstate.ReasonLimit,
		"too many %s: the policy allows %d per minute and %s, which come back evenly, and %d at once", unit, perMin,
		l.scopeName(), perMin)
	if requested > perMin {
		return err.WithHint("This asks for %d at once: ask for less at a time.", requested)
	}
	return err.WithHint("Try again in %d seconds.", max(1, int(wait/time.Second)))
}

func (l sessionLimit) scopeName() string {
	if l.RateAttribute == "" {
		return "agent"
	}
	return l.RateAttribute
}

// resultBound returns how much of the execution's result the proxy may relay: the policy's limit for one result, and
// the rows left of the limits per minute.
func (t *execution) resultBound() verdict.ResultBound {
	b := verdict.ResultBound{}
	var rowLimit, byteLimit *sessionLimit
	lower := func(into *int64, n int64) bool {
		if n > 0 && (*into == 0 || n < *into) {
			*into = n
			return true
		}
		return false
	}
	for i := range t.limits {
		if l := &t.limits[i]; lower(&b.Rows, l.ResultRows) {
			rowLimit = l
		}
		if l := &t.limits[i]; lower(&b.Bytes, l.ResultBytes) {
			byteLimit = l
		}
	}
	if limitsRowRate(t.limits) {
		b.MoreRows = t.moreRows
	}
	if rowLimit == nil && byteLimit == nil && b.MoreRows == nil {
		return verdict.ResultBound{}
	}
	b.Exceeded = func(bound verdict.ExceededBound) *sqlstate.Error {
		switch {
		case bound == verdict.RateExhausted && t.exhaustedRate != nil:
			return t.session.rateExceededRefusal(*t.exhaustedRate, "rows", "rows", 1, t.exhaustedRate.Rows, t.retryAfter)
		case bound == verdict.TooManyRows && rowLimit != nil:
			return t.session.resultTooLargeError("result_rows", fmt.Sprintf("%d rows", rowLimit.ResultRows))
		default:
			return t.session.resultTooLargeError("result_bytes", fmt.Sprintf("%d bytes", b.Bytes))
		}
	}
	return b
}

// moreRows returns how many more rows may be relayed: first the rows reserved for the execution, later rows newly taken
// from the limits per minute.
func (t *execution) moreRows() int64 {
	if n := t.unusedRows; n > 0 {
		t.unusedRows = 0
		return n
	}
	n, short, wait := takeFromRates(t.limits, t.session.enforcer.limiters.now())
	t.reservedRows += n
	t.exhaustedRate, t.retryAfter = short, wait
	return n
}

// resultTooLargeError is the error that ends a result larger than the policy allows.
func (s *session) resultTooLargeError(limit, most string) *sqlstate.Error {
	s.enforcer.cfg.Metrics.CountLimited(limit)
	return sqlstate.New(sqlstate.LimitExceeded, sqlstate.ReasonLimit, "the result is larger than the policy allows: %s", most).
		WithHint("Ask for less: fewer columns, a narrower WHERE, or LIMIT and one page after the other.")
}

// returnToRates ends a reservation of rows in every limit on rows per minute, and gives back the unused rows.
func returnToRates(limits []sessionLimit, reserved, unused int64, now time.Time) {
	for _, l := range limits {
		if l.Rows > 0 && reserved > 0 {
			l.buckets.rows.settle(reserved, unused, now)
		}
	}
}
