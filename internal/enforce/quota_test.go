package enforce

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

func TestQuotas(t *testing.T) {
	q := newQuotas()
	now := time.Now()
	q.now = func() time.Time { return now }
	key := quotaKey{agent: "ana", value: "turn 1"}
	ask := func(limit int64) *policy.Quota { return &policy.Quota{MaxRows: 5, Limit: limit} }
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
	if b := boundByQuotas(verdict.ResultBound{Rows: 10}, []*reservation{part}); b.Rows != 2 || b.Exceeded(verdict.TooManyRows) == nil {
		t.Errorf("a part is bounded by %d", b.Rows)
	}
	if b := boundByQuotas(verdict.ResultBound{}, []*reservation{first}); b.Rows != 0 {
		t.Errorf("a whole statement is bounded by %d", b.Rows)
	}
	if _, err := q.reserve(key, ask(1), true); err == nil {
		t.Fatal("more than there is")
	}
	first.settle(1)
	part.settle(7)
	if got := q.counts[key].rows; got != 3 {
		t.Errorf("%d rows are taken", got)
	}
	if _, err := q.reserve(quotaKey{agent: "ben", value: "turn 1"}, ask(5), false); err != nil {
		t.Error("another agent has its own")
	}
	if _, err := q.reserve(key, ask(0), false); err != nil {
		t.Error("none is always there")
	}
	for n := len(q.counts); n < maxQuotas; n++ {
		q.counts[quotaKey{value: time.Duration(n).String()}] = &quotaCount{lastUsed: now}
	}
	if _, err := q.reserve(quotaKey{value: "one more"}, ask(1), false); err == nil {
		t.Error("there is room without end")
	}
	now = now.Add(quotaRetention + time.Minute)
	if _, err := q.reserve(quotaKey{value: "one more"}, ask(1), false); err != nil {
		t.Error("what was not used for a day makes no room")
	}
	if q.counts[key] == nil {
		t.Error("a count with a reservation was forgotten")
	}
}

// TestQuotasCountTogether: for each contract, all sessions with the same agent and the same value share one quota;
// other sessions have others. The test compares quotas with plain sums: no more is reserved than there is, and what was
// reserved and not returned is available again. A quota with room does not allow what a rate refuses.
func TestQuotasCountTogether(t *testing.T) {
	w := start(t, func(w *world) {
		w.write(strings.Replace(rules, "\ntables:", "\nlimits: { statements: 1000 }\ntables:", 1))
	})
	frozen := time.Now()
	w.limiters.now = func() time.Time { return frozen }
	var sessions []*client
	for _, name := range []string{"caregiver", "caregiver", "other", "other"} {
		c, err := w.open(name)
		if err != nil {
			t.Fatal(err)
		}
		c.Decider.(*session).info.ID = fmt.Sprint(name, len(sessions)) // each session has another id
		sessions = append(sessions, c)
	}
	const atMost = 6
	type place struct{ agent, contract, value string }
	type running struct {
		verdict.Ticket
		of   []place
		rows []int64
	}
	returned, reserved, statements, exceeded := map[place]int64{}, map[place]int64{}, map[string]int{}, 0
	var open []running
	r := rand.New(rand.NewPCG(1, 19))
	for i := range 4000 {
		if len(open) > 0 && r.IntN(2) == 0 || i > 3900 {
			if len(open) == 0 {
				break
			}
			one := open[0]
			open = open[1:]
			rows := r.Int64N(4)
			for k, at := range one.of {
				reserved[at] -= one.rows[k]
				returned[at] += min(rows, one.rows[k])
			}
			one.RecordOutcome(verdict.Outcome{Rows: rows, Code: sqlstate.SuccessfulCompletion})
			continue
		}
		c := sessions[r.IntN(len(sessions))]
		name := c.Decider.(*session).agent.Name
		text := []string{"SELECT 1", "EXECUTE p"}[r.IntN(2)]
		var asked []*policy.Quota
		var of []place
		var rows []int64
		for _, contract := range []string{"reads", "joins"} {
			if r.IntN(3) > 0 {
				q := &policy.Quota{Contract: contract, Per: "turn", Value: fmt.Sprint("turn ", r.IntN(40)), MaxRows: atMost,
					Limit: 1 + r.Int64N(3)}
				asked, of, rows = append(asked, q), append(of, place{name, contract, q.Value}), append(rows, q.Limit)
			}
		}
		held := func(text string) *verdict.Verdict {
			v := c.Decide(t.Context(), text, verdict.Simple)
			if !v.IsAllowed() {
				t.Fatal(v.Refusal)
			}
			own, j := *v, *v.EnforcerDetail.(*judgement)
			j.quotas, own.EnforcerDetail = [][]*policy.Quota{asked}, &j
			return &own
		}
		var ticket verdict.Ticket
		if text == "EXECUTE p" {
			ticket = c.Record(c.Decide(t.Context(), text, verdict.Simple), held("SELECT 2"))
		} else {
			ticket = c.Record(held(text))
		}
		err := ticket.Release()
		room := true
		for k, at := range of {
			room = room && returned[at]+reserved[at]+rows[k] <= atMost
		}
		switch statements[name]++; {
		case statements[name] > 1000:
			if err == nil || err.Code != sqlstate.LimitExceeded {
				t.Fatalf("%d statements, and then: %v", statements[name], err)
			}
			exceeded++
		case (err == nil) != room:
			t.Fatalf("%s asks %v for %v, where %v are returned and %v reserved: %v", name, of, rows, returned, reserved, err)
		}
		if err != nil {
			ticket.RecordOutcome(verdict.Outcome{Code: err.Code})
			continue
		}
		for k, at := range of {
			reserved[at] += rows[k]
		}
		open = append(open, running{ticket, of, rows})
	}
	if exceeded == 0 || len(returned) < 100 {
		t.Errorf("%d are beyond the rate, %d quotas were used", exceeded, len(returned))
	}
}
