package enforce

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

// bounds has the limits of a policy as numbers.
type bounds struct{ statements, rows, byKey, resultRows, resultBytes int }

// What a limit counts per minute.
const (
	ofStatements = iota
	ofKeys
	ofRows
	kinds
)

func (b bounds) rate(kind int) int { return [kinds]int{b.statements, b.byKey, b.rows}[kind] }

func (b bounds) String() string {
	var s []string
	for name, n := range map[string]int{"statements": b.statements, "rows": b.rows, "by_key": b.byKey,
		"result_rows": b.resultRows, "result_bytes": b.resultBytes} {
		if n > 0 {
			s = append(s, fmt.Sprintf("%s: %d", name, n))
		}
	}
	return strings.Join(s, ", ")
}

// TestLimitsOfAllExecutions: the executions of all sessions of an agent are counted together, and so are those of all
// agents of one user, in whatever way they are sent and whatever their result is. Those of others are not counted. The
// test compares the limits with plain sums while the clock stands still: no more is executed or returned than the
// smallest limit, nothing is refused before, and a reload adds nothing.
func TestLimitsOfAllExecutions(t *testing.T) {
	tier.All(t)
	const plain = `version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  memories:
    rows: [ { own: { column: user_id, is: user } } ]
    columns: { id: allow, title: { by_key: { key: [id], at_most: 5 } } }
  people: { rows: [ { own: { column: user_id, is: user } } ] }
`
	w := start(t, func(w *world) {
		w.write(plain)
		w.cfg.Agents = append(w.cfg.Agents, agent("twin", ann))
		if err := installWith(context.Background(), w.dba, plain, rls.Options{}); err != nil {
			t.Fatal(err)
		}
	})
	frozen := time.Now()
	w.limiters.now = func() time.Time { return frozen }
	users := map[string]string{"caregiver": ann, "twin": ann, "other": bob}
	var sessions []*client
	for _, name := range []string{"caregiver", "caregiver", "twin", "other"} {
		c, err := w.open(name)
		if err != nil {
			t.Fatal(err)
		}
		c.Decider.(*session).info.ID = fmt.Sprint(name, len(sessions)) // each session has another id
		sessions = append(sessions, c)
	}

	// An execution has a text, the statement that it runs by name, and what the two count as.
	type asked struct {
		text, byName     string
		statements, keys int
		mayReturnRows    bool
	}
	const byKey, list = "SELECT title FROM memories WHERE id = 1", "SELECT title FROM memories WHERE id IN (1, 2, 3)"
	all := []asked{
		{text: "SELECT name FROM people", statements: 1, mayReturnRows: true},
		{text: byKey, statements: 1, keys: 1, mayReturnRows: true},
		{text: list, statements: 1, keys: 3, mayReturnRows: true},
		{text: "SELECT 1; " + list, statements: 2, keys: 3, mayReturnRows: true},
		{text: "BEGIN"}, {text: "ROLLBACK"}, {text: "DEALLOCATE ALL"},
		{text: "COMMIT; " + byKey, statements: 1, keys: 1, mayReturnRows: true},
		{text: "SET application_name = 'x'", statements: 1},
		{text: "PREPARE p AS " + list, statements: 1},
		{text: "EXECUTE p", byName: "PREPARE p AS " + list, statements: 1, keys: 3, mayReturnRows: true},
		{text: "EXECUTE p", byName: byKey, statements: 1, keys: 1, mayReturnRows: true},
		{text: "EXECUTE p", byName: "SELECT 1; PREPARE p AS SELECT 1", statements: 1, mayReturnRows: true},
		{text: "BEGIN; DECLARE c CURSOR FOR " + byKey, statements: 1},
		{text: "FETCH ALL FROM c", byName: "DECLARE c CURSOR FOR " + list, statements: 1, keys: 3, mayReturnRows: true},
		{text: "MOVE c", byName: "DECLARE c CURSOR FOR " + byKey, statements: 1, keys: 1},
		{text: "DROP TABLE people", statements: 1}, {text: "SELECT title FROM memories", statements: 1}, // refused
	}
	judged := func(c *client, text string) *verdict.Verdict { return c.Decide(t.Context(), text, verdict.Simple) }
	met := map[string]int{}
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 3))
		w.limiters.buckets = map[rateKey]*rateBuckets{}
		some := func(n int) int { return []int{0, 1 + r.IntN(n), n, 3 * n}[r.IntN(4)] }
		drawn := func() bounds { return bounds{some(6), some(9), some(6), some(4), 1 + some(60)} } // resultBytes: never 0
		var perAgent, perUser bounds
		type place struct {
			who  string
			kind int
		}
		most := map[place]int{}  // the largest limit so far
		least := map[place]int{} // the smallest limit so far
		counted, since, tried := map[place]int{}, map[place]int{}, map[place]int{}
		places := func(c *client, kind int) map[place]int { // what counts an execution of c, with its limits
			out := map[place]int{}
			name := c.Decider.(*session).agent.Name
			if n := perAgent.rate(kind); n > 0 {
				out[place{name, kind}] = n
			}
			if n := perUser.rate(kind); n > 0 {
				out[place{users[name], kind}] = n
			}
			return out
		}
		counts := func(c *client, kind, n int) {
			for at, limit := range places(c, kind) {
				counted[at] += n
				since[at] += n
				if n > 0 && (since[at] > limit || counted[at] > most[at]) {
					t.Fatalf(
						"seed %d: %s had %d of kind %d, %d since the reload, where the limit is %d (per agent %s, "+
							"per user %s)", seed, at.who, counted[at], kind, since[at], limit, perAgent, perUser)
				}
			}
		}
		for range 4 {
			perAgent, perUser = drawn(), drawn()
			var limits []string
			if r.IntN(3) > 0 {
				limits = append(limits, "{ "+perAgent.String()+" }")
			} else {
				perAgent = bounds{}
			}
			if r.IntN(3) > 0 || len(limits) == 0 {
				limits = append(limits, "{ per: user, "+perUser.String()+" }")
			} else {
				perUser = bounds{}
			}
			w.write(strings.Replace(plain, "\ntables:", "\nlimits: [ "+strings.Join(limits, ", ")+" ]\ntables:", 1))
			if err := w.Reload(); err != nil {
				t.Fatal(err)
			}
			clear(since)
			for _, c := range sessions {
				for kind := range kinds {
					for at, limit := range places(c, kind) {
						if most[at] = max(most[at], limit); least[at] == 0 || limit < least[at] {
							least[at] = limit
						}
					}
				}
			}
			for range 40 {
				c, a := sessions[r.IntN(len(sessions))], all[r.IntN(len(all))]
				v := judged(c, a.text)
				var runs []*verdict.Verdict
				if a.byName != "" {
					run := judged(c, a.byName)
					if !run.IsAllowed() {
						t.Fatalf("%s: %v", a.byName, run.Refusal)
					}
					for _, e := range run.Effects {
						if e.Body != nil {
							run = e.Body
						}
					}
					runs = append(runs, run)
				}
				ticket := c.Record(v, runs...)
				refused := ticket.Release()
				for kind, n := range [kinds]int{a.statements, a.keys} {
					for at := range places(c, kind) {
						tried[at] += n
					}
				}
				switch {
				case !v.IsAllowed():
					// A refused statement is counted as long as the limit is not reached.
					for at, limit := range places(c, ofStatements) {
						if counted[at] < least[at] && since[at] < limit {
							counted[at]++
							since[at]++
						}
					}
					ticket.RecordOutcome(verdict.Outcome{Code: v.Refusal.Code})
					met["refused"]++
					continue
				case refused != nil:
					if refused.Code != sqlstate.LimitExceeded {
						t.Fatalf("seed %d: %s: %v", seed, a.text, refused)
					}
					room := true
					for kind, n := range [kinds]int{a.statements, a.keys, 1} {
						for at := range places(c, kind) {
							limit := least[at]
							spent := tried[at]
							if kind == ofRows {
								spent = counted[at] + n
							}
							room = room && (n == 0 || spent <= limit)
						}
					}
					if room {
						t.Fatalf("seed %d: %s is refused, and there is room: %v (per agent %s, per user %s)", seed, a.text, refused, perAgent, perUser)
					}
					ticket.RecordOutcome(verdict.Outcome{Code: refused.Code})
					met["exceeded"]++
					continue
				}
				counts(c, ofStatements, a.statements)
				counts(c, ofKeys, a.keys)

				// The proxy relays rows of ten bytes each, as many as it may.
				bound := ticket.ResultBound()
				var rows, granted, wanted int
				if a.mayReturnRows {
					wanted = r.IntN(8)
				}
				ended := verdict.ExceededBound(-1)
				for ended < 0 && rows < wanted {
					switch {
					case bound.Exceeded == nil:
					case bound.Rows > 0 && int64(rows) >= bound.Rows:
						ended = verdict.TooManyRows
					case bound.Bytes > 0 && int64(10*rows+10) > bound.Bytes:
						ended = verdict.TooManyBytes
					case bound.MoreRows != nil && granted == 0:
						if granted = int(bound.MoreRows()); granted <= 0 {
							ended = verdict.RateExhausted
						}
					}
					if ended < 0 {
						rows++
						granted--
					}
				}
				smallest := func(a, b int) int {
					if a == 0 || b > 0 && b < a {
						return b
					}
					return a
				}
				mostRows, mostBytes := smallest(perAgent.resultRows, perUser.resultRows), smallest(perAgent.resultBytes, perUser.resultBytes)
				whole := (mostRows == 0 || wanted <= mostRows) && (mostBytes == 0 || 10*wanted <= mostBytes)
				switch {
				case mostRows > 0 && rows > mostRows, mostBytes > 0 && 10*rows > mostBytes:
					t.Fatalf("seed %d: %s shows %d rows (per agent %s, per user %s)", seed, a.text, rows, perAgent, perUser)
				case (ended == verdict.TooManyRows || ended == verdict.TooManyBytes) && whole:
					t.Fatalf("seed %d: %s is ended at %d of %d rows (per agent %s, per user %s)", seed, a.text, rows, wanted, perAgent, perUser)
				}
				if ended >= 0 {
					if err := bound.Exceeded(ended); err == nil || err.Code != sqlstate.LimitExceeded {
						t.Fatalf("seed %d: an ended result says %v", seed, err)
					}
					met[fmt.Sprint("ended ", ended)]++
				}
				counts(c, ofRows, rows)
				ticket.RowsReturned(int64(rows))
				ticket.RecordOutcome(verdict.Outcome{Rows: int64(rows), Code: sqlstate.SuccessfulCompletion})
				met["ran"]++
			}
		}
	}
	t.Log(met)
	for _, what := range []string{"refused", "exceeded", "ran", "ended 0", "ended 1", "ended 2"} {
		if met[what] == 0 {
			t.Errorf("nothing was %s", what)
		}
	}
}
