package enforce

import (
	"fmt"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

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
type demand struct {
	statements, keys int
	returns          bool // it may send rows
}

// demanded adds up the statements of a text, and the keys of those that run now: what PREPARE and DECLARE name runs
// later. What ends a transaction or gives something back is not counted, so that an agent at its limit can do it.
func demanded(v *verdict.Verdict, runs []*verdict.Verdict) demand {
	var out demand
	j, ok := v.Detail.(*judgement)
	if !ok || !v.Allowed() {
		return demand{statements: 1}
	}
	out.returns = returns(v, runs)
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

// returns tells whether an execution may send rows.
func returns(v *verdict.Verdict, runs []*verdict.Verdict) bool {
	named := false // something that it runs by name may
	for _, run := range runs {
		for _, e := range run.Effects {
			named = named || e.Returns
		}
	}
	for _, e := range v.Effects {
		switch e.Kind {
		case verdict.Executes, verdict.Fetches:
			if e.Returns && named {
				return true
			}
		default:
			if e.Returns {
				return true
			}
		}
	}
	return false
}

// charge takes what an execution asks for of the rates, or refuses it. Rows are reserved: what is not used is given
// back when the execution is over.
func (s *session) charge(limits []applied, d demand) (reserved int64, refused *sqlstate.Error) {
	if len(limits) == 0 {
		return 0, nil
	}
	now := s.e.limiters.now()
	if d.returns && haveRows(limits) {
		var short *applied
		var wait time.Duration
		if reserved, short, wait = takeRows(limits, now); short != nil {
			return 0, s.exhausted(*short, "rows", "rows", 1, short.Rows, wait)
		}
	}
	for _, l := range limits {
		if l.Statements > 0 && d.statements > 0 {
			if ok, wait := l.count.statements.take(d.statements, l.Statements, now); !ok {
				return reserved, s.exhausted(l, "statements", "statements", d.statements, l.Statements, wait)
			}
		}
		if l.ByKey > 0 && d.keys > 0 {
			if ok, wait := l.count.byKey.take(d.keys, l.ByKey, now); !ok {
				return reserved, s.exhausted(l, "by_key", "rows fetched by key", d.keys, l.ByKey, wait)
			}
		}
	}
	return reserved, nil
}

// haveRows tells whether rows have a rate.
func haveRows(limits []applied) bool {
	for _, l := range limits {
		if l.Rows > 0 {
			return true
		}
	}
	return false
}

// maxChunk bounds how many rows are reserved at a time. Less is taken of small rates, so that sessions do not keep each
// other from rows that none of them uses.
const maxChunk = 256

// takeRows takes some rows of every rate, or says which has none and when it may have some.
func takeRows(limits []applied, now time.Time) (n int64, short *applied, wait time.Duration) {
	n = maxChunk
	for _, l := range limits {
		if l.Rows > 0 {
			n = min(n, int64(max(1, l.Rows/100)))
		}
	}
	for i, l := range limits {
		if l.Rows == 0 {
			continue
		}
		got, wait := l.count.rows.reserve(n, l.Rows, now)
		if got < n {
			giveRows(limits[:i], n-got, n-got, now)
			n = got
		}
		if n == 0 {
			return 0, &limits[i], wait
		}
	}
	return n, nil, 0
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
	err := sqlstate.New(sqlstate.LimitExceeded, sqlstate.ReasonLimit,
		"too many %s: the policy allows %d per minute and %s", what, perMin, l.per())
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

// bound is how much of the execution's result may be relayed: what the policy allows for one, and what there is of the
// minute's rows.
func (t *ticket) bound() verdict.Bound {
	b := verdict.Bound{}
	var ofRows, ofBytes *applied
	lower := func(into *int64, n int64) bool {
		if n > 0 && (*into == 0 || n < *into) {
			*into = n
			return true
		}
		return false
	}
	for i := range t.limits {
		if l := &t.limits[i]; lower(&b.Rows, l.ResultRows) {
			ofRows = l
		}
		if l := &t.limits[i]; lower(&b.Bytes, l.ResultBytes) {
			ofBytes = l
		}
	}
	if haveRows(t.limits) {
		b.More = t.more
	}
	if ofRows == nil && ofBytes == nil && b.More == nil {
		return verdict.Bound{}
	}
	b.Exceeded = func(by verdict.Excess) *sqlstate.Error {
		switch {
		case by == verdict.RateSpent && t.short != nil:
			return t.s.exhausted(*t.short, "rows", "rows", 1, t.short.Rows, t.wait)
		case by == verdict.TooManyRows && ofRows != nil:
			return t.s.tooLarge("result_rows", fmt.Sprintf("%d rows", ofRows.ResultRows))
		default:
			return t.s.tooLarge("result_bytes", fmt.Sprintf("%d bytes", b.Bytes))
		}
	}
	return b
}

// more gives the rows that were reserved for the execution, and then takes others from the rates.
func (t *ticket) more() int64 {
	if n := t.offered; n > 0 {
		t.offered = 0
		return n
	}
	n, short, wait := takeRows(t.limits, t.s.e.limiters.now())
	t.rows += n
	t.short, t.wait = short, wait
	return n
}

// tooLarge is the end of a result that is larger than the policy allows.
func (s *session) tooLarge(limit, most string) *sqlstate.Error {
	s.e.cfg.Metrics.Limited(limit)
	return sqlstate.New(sqlstate.LimitExceeded, sqlstate.ReasonLimit, "the result is larger than the policy allows: %s", most).
		WithHint("Ask for less: fewer columns, a narrower WHERE, or LIMIT and one page after the other.")
}

// giveRows ends a reservation of so many rows of every rate, of which this much was not used.
func giveRows(limits []applied, reserved, unused int64, now time.Time) {
	for _, l := range limits {
		if l.Rows > 0 && reserved > 0 {
			l.count.rows.settle(reserved, unused, now)
		}
	}
}
