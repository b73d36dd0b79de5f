package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/test/network"
	"github.com/pgconsent/pgconsent/test/tier"
)

// faultKind says what fails in a round.
type faultKind struct {
	name                               string
	breaksClientSide, breaksServerSide bool     // connections of clients fail; connections to the server fail
	events                             []string // events that affect all sessions, repeated in this order
	losesSessions                      bool     // even a session without a fault on its client connection may be lost
	quick                              bool     // the quick run has such a round, too
}

var faultKinds = []faultKind{
	{name: "clients' networks", breaksClientSide: true, quick: true},
	{name: "server's networks", breaksServerSide: true, losesSessions: true, quick: true},
	{name: "both networks", breaksClientSide: true, breaksServerSide: true, events: []string{"cut clients", "cut server"}, losesSessions: true},
	{name: "server processes", breaksClientSide: true, events: []string{"terminate", "terminate", "kill"}, losesSessions: true},
	{name: "server", breaksClientSide: true, events: []string{"restart"}, losesSessions: true},
	{name: "all", breaksClientSide: true, breaksServerSide: true, events: []string{"terminate", "cut server", "kill", "cut clients", "restart"},
		losesSessions: true, quick: true},
}

// outcome is what a client knows about the commit of its transaction.
type outcome int

const (
	acknowledged outcome = iota // the server has confirmed the commit to the client
	rolledBack                  // the client has not sent COMMIT
	uncertain                   // the client has sent COMMIT and got no answer
)

// transaction is a transaction in which a session has inserted rows.
type transaction struct {
	rows int
	outcome
}

// round is a set of sessions that work while faults occur.
type round struct {
	*stage
	faultKind
	number   int
	seed     uint64
	sessions int // number of sessions in each mode

	doneSessions, steps atomic.Int64
	hasGivenUp          atomic.Bool // a session was not let in, so that the others do not wait for it

	mu      sync.Mutex
	written map[string]transaction // transactions by mark and number
	counts  map[string]int         // numbers of early ends and of faults, by kind
}

func (s *session) recordOutcome(rows int, o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written[fmt.Sprint(s.mark, " ", s.transactionNumber)] = transaction{rows, o}
}

func (r *round) count(kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[kind]++
}

// countEnd counts a session that has ended early, by the kind of the end and its error.
func (r *round) countEnd(kind string, err error) {
	code := "connection lost"
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		if code = pg.Code; !slices.Contains([]string{"08006", "57P01", "57P02", "57P03"}, code) {
			code += " (" + pg.Message + ")"
		}
	}
	r.count(kind + " " + code)
}

// isExplained reports whether faults of the round can cause this error in a statement, while the session continues.
func (r *round) isExplained(code string) bool {
	return len(r.events) > 0 && slices.Contains([]string{"40001", "57P03", "08006"}, code)
}

// run runs the same number of sessions in each mode, and then checks the rows and resources that they have left.
func (r *round) run(t testing.TB) {
	t.Helper()
	r.written = map[string]transaction{}
	r.awaitServed() // The first session creates resources that stay; it must run before resources are counted.
	r.written, r.counts = map[string]transaction{}, map[string]int{}
	resourcesBefore := r.awaitRest(nil)
	r.steps.Store(0)
	var workers, helpers sync.WaitGroup
	ended := make(chan struct{})
	for index, m := range r.modes {
		if r.breaksClientSide {
			m.clientRelay.Plan(r.planner(uint64(2*index), 3))
		}
		if r.breaksServerSide {
			m.serverRelay.Plan(r.planner(uint64(2*index+1), 6))
		}
		if !r.losesSessions {
			helpers.Go(func() { r.runWitness(m, ended) })
		}
		var next atomic.Int64
		for range 5 {
			workers.Go(func() {
				for n := next.Add(1); n <= int64(r.sessions); n = next.Add(1) {
					r.playSession(m, int(n))
				}
			})
		}
	}
	helpers.Go(func() { r.causeEvents(ended) })
	workers.Wait()
	close(ended)
	helpers.Wait()
	r.checkRows()
	r.awaitServed()
	r.awaitRest(&resourcesBefore)
	r.checkLog()
}

// playSession runs a session. If its login fails, playSession tries again.
func (r *round) playSession(m *mode, n int) {
	mark := fmt.Sprintf("%s-%d-%d", m.name, r.number, n)
	for end := time.Now().Add(tier.Patience); ; time.Sleep(10 * time.Millisecond) {
		random := rand.New(rand.NewPCG(r.seed, uint64(r.number)<<32+uint64(n)))
		answered, err := r.runSession(m, agents[random.IntN(len(agents))], mark, false, random)
		r.steps.Add(int64(answered))
		if err == nil || errors.Is(err, errConnectionEnded) {
			if r.doneSessions.Add(1); err != nil {
				r.countEnd("sessions ended with", err)
			}
			return
		}
		r.countEnd("logins ended with", err)
		if r.hasGivenUp.Load() {
			return
		}
		if time.Now().After(end) {
			r.hasGivenUp.Store(true)
			r.t.Errorf("%s is not let in: %v", mark, err)
			return
		}
	}
}

// runWitness runs sessions whose client connections have no faults. Each of their statements must be answered.
func (r *round) runWitness(m *mode, ended chan struct{}) {
	random := rand.New(rand.NewPCG(r.seed, uint64(r.number)<<32+1<<31))
	for n := 0; ; n++ {
		select {
		case <-ended:
			return
		default:
		}
		mark := fmt.Sprintf("%s-%d-witness-%d", m.name, r.number, n)
		if _, err := r.runSession(m, agents[n%len(agents)], mark, true, random); err != nil {
			r.t.Errorf("%s, whose network holds, ended: %v", mark, err)
		}
	}
}

// planner returns a function that chooses the faults of new connections: one of oneIn is cut, and as many are slow.
func (r *round) planner(stream uint64, oneIn int) func() network.Fault {
	random := rand.New(rand.NewPCG(r.seed, uint64(r.number)<<32+1<<30+stream))
	return func() network.Fault {
		f, kind := randomFault(random, oneIn)
		if kind != "" {
			r.count(kind)
		}
		return f
	}
}

// causeEvents causes the events of the round one after the other, each after some more sessions have ended.
func (r *round) causeEvents(ended chan struct{}) {
	if len(r.events) == 0 {
		return
	}
	random := rand.New(rand.NewPCG(r.seed, uint64(r.number)<<32+1<<29))
	allSessions := r.sessions * len(r.modes)
	for i := 0; ; i++ {
		dueSessions := int64((i + 1) * max(allSessions/(2*len(r.events)+1), 1))
		for r.doneSessions.Load() < dueSessions {
			select {
			case <-ended:
				return
			case <-time.After(time.Millisecond):
			}
		}
		r.causeEvent(r.events[i%len(r.events)], random)
	}
}

// checkRows compares the rows in the table with what the sessions know about the outcomes of their transactions.
func (r *round) checkRows() {
	r.t.Helper()
	found := map[string]int{}
	r.cluster.withSuperuser(func(ctx context.Context, conn *pgx.Conn) error {
		clear(found)
		rows, err := conn.Query(ctx, "SELECT mark || ' ' || part, count(*) FROM marks GROUP BY 1")
		if err != nil {
			return err
		}
		var key string
		var n int
		_, err = pgx.ForEachRow(rows, []any{&key, &n}, func() error { found[key] = n; return nil })
		return err
	})
	for _, key := range slices.Sorted(maps.Keys(r.written)) {
		switch w, n := r.written[key], found[key]; {
		case w.outcome == acknowledged && n != w.rows:
			r.t.Errorf("%s: %d rows of %d are there, whose commit was acknowledged", key, n, w.rows)
		case w.outcome == rolledBack && n != 0:
			r.t.Errorf("%s: %d rows are there, whose commit was not asked for", key, n)
		case w.outcome == uncertain && n != 0 && n != w.rows:
			r.t.Errorf("%s: %d rows of %d are there, of one transaction", key, n, w.rows)
		}
		r.counts[[]string{"transactions acknowledged", "transactions rolled back", "transactions that nobody knows of"}[r.written[key].outcome]]++
		delete(found, key)
	}
	if len(found) > 0 {
		r.t.Errorf("rows that nobody wrote: %v", found)
	}
	r.cluster.withSuperuser(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "TRUNCATE marks")
		return err
	})
}

// awaitServed waits until every agent is served again in every mode.
func (r *round) awaitServed() {
	r.t.Helper()
	for _, m := range r.modes {
		m.clientRelay.Plan(nil)
		m.serverRelay.Plan(nil)
		for i, a := range agents {
			end := time.Now().Add(tier.Patience)
			for attempt := 1; ; attempt++ {
				// A failed attempt may have committed rows, so that the next attempt needs another mark.
				mark := fmt.Sprintf("%s-%d-served-%d-%d", m.name, r.number, i, attempt)
				_, err := r.runSession(m, a, mark, true, rand.New(rand.NewPCG(r.seed, uint64(i))))
				if err == nil {
					break
				}
				if time.Now().After(end) {
					r.t.Fatalf("agent %s is not served any more: %v", a.name, err)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
	r.cluster.withSuperuser(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "TRUNCATE marks")
		return err
	})
}

func (r *round) String() string {
	out := []string{fmt.Sprintf("%d sessions, %d steps", r.doneSessions.Load(), r.steps.Load())}
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(append(out, sortedCounts(r.counts)...), ", ")
}

// sortedCounts returns each count with its name as text, sorted by name.
func sortedCounts(counts map[string]int) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%d %s", counts[name], name))
	}
	return out
}
