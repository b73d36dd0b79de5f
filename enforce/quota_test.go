package enforce

import (
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/verdict"
)

func TestQuotas(t *testing.T) {
	q := newQuotas()
	now := time.Now()
	q.now = func() time.Time { return now }
	key := quotaKey{agent: "ana", value: "turn 1"}
	ask := func(limit int64) *policy.Quota { return &policy.Quota{AtMost: 5, Limit: limit} }
	first, err := q.reserve(key, ask(3), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.reserve(key, ask(3), false); err == nil {
		t.Fatal("a second session reserved what the first may still return")
	}
	part, err := q.reserve(key, ask(3), true)
	if err != nil || part.rows != 2 {
		t.Fatalf("a part: %v", err)
	}
	if b := bounded(verdict.Bound{Rows: 10}, []*reservation{part}); b.Rows != 2 || b.Exceeded(verdict.TooManyRows) == nil {
		t.Errorf("a part is bounded by %d", b.Rows)
	}
	if b := bounded(verdict.Bound{}, []*reservation{first}); b.Rows != 0 {
		t.Errorf("a whole statement is bounded by %d", b.Rows)
	}
	if _, err := q.reserve(key, ask(1), true); err == nil {
		t.Fatal("more than there is")
	}
	first.settle(1)
	part.settle(7)
	if got := q.taken[key].rows; got != 3 {
		t.Errorf("%d rows are taken", got)
	}
	if _, err := q.reserve(quotaKey{agent: "ben", value: "turn 1"}, ask(5), false); err != nil {
		t.Error("another agent has its own")
	}
	if _, err := q.reserve(key, ask(0), false); err != nil {
		t.Error("none is always there")
	}
	for n := len(q.taken); n < maxQuotas; n++ {
		q.taken[quotaKey{value: time.Duration(n).String()}] = &taken{used: now}
	}
	if _, err := q.reserve(quotaKey{value: "one more"}, ask(1), false); err == nil {
		t.Error("there is room without end")
	}
	now = now.Add(keptFor + time.Minute)
	if _, err := q.reserve(quotaKey{value: "one more"}, ask(1), false); err != nil {
		t.Error("what was not used for a day makes no room")
	}
	if q.taken[key] == nil {
		t.Error("a count with a reservation was forgotten")
	}
}
