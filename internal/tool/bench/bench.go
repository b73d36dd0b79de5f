// Package bench measures a statement that reads, over several connections to a database: transactions per second and
// latencies.
//
// The speed of one machine says little by itself, so several targets are compared, such as PostgreSQL itself and the
// proxy. In each round each target runs once for each protocol, and ratios are formed within a round. Results are
// medians of the rounds.
//
// Guarantee: every connection begins with default_transaction_read_only, and the statement runs outside of an explicit
// transaction. So the server refuses a statement that writes.
package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Protocol is a way to send a statement.
type Protocol string

// The protocols.
const (
	Simple   Protocol = "simple"   // a Query message with the values in the statement's text
	Extended Protocol = "extended" // each execution sends Parse, Bind and Execute, with an unnamed prepared statement
	Prepared Protocol = "prepared" // each execution sends Bind and Execute for a statement that was prepared once
)

// Target is a connection to measure: to the database itself, or through the proxy.
type Target struct {
	Name    string
	Connect *pgconn.Config
}

// Statement is the statement to measure. Texts[i] is Text with the values of Values[i] written as literals.
type Statement struct {
	Text   string     // text with parameters, for Extended and Prepared
	Texts  []string   // texts with literals, for Simple, which are sent one after the other
	Values [][][]byte // the values of Text's parameters, one set for each execution in turn; empty: Text has no parameters
}

// Plan says what to measure. All fields but ReportStep are required. The other targets are compared with the first one.
type Plan struct {
	Targets    []Target
	Protocols  []Protocol
	Statement  Statement
	Clients    int
	RoundTime  time.Duration // how long a round lasts for one target
	Rounds     int
	ReportStep func(RoundStep) // called before each target of a round; nil: nothing is reported
}

// RoundStep says which target is measured next: [Plan.ReportStep] gets it.
type RoundStep struct {
	Number, Total int
	Round         int
	Protocol      Protocol
	Target        string
}

// RoundResult is what one round measured for one target.
type RoundResult struct {
	TPS      float64 // transactions per second
	P50, P99 time.Duration
}

// Result has the medians over all rounds for one target and one protocol.
type Result struct {
	Protocol Protocol
	Target   string
	RoundResult
	Ratio                     float64       // the median of TPS divided by the TPS of the first target in the same round
	LowestRatio, HighestRatio float64       // the smallest and the largest of these ratios
	Rounds                    []RoundResult // the results, one for each round
}

// Run measures every target of the plan. An error names the target and the protocol that failed.
func Run(ctx context.Context, p Plan) ([]Result, error) {
	type key struct {
		protocol Protocol
		way      int
	}
	rounds := map[key][]RoundResult{}
	step := RoundStep{Total: p.Rounds * len(p.Protocols) * len(p.Targets)}
	for round := range p.Rounds {
		for _, protocol := range p.Protocols {
			for i := range p.Targets {
				w := (i + round) % len(p.Targets) // a different target is first in each round
				step.Number, step.Round, step.Protocol, step.Target = step.Number+1, round+1, protocol, p.Targets[w].Name
				if p.ReportStep != nil {
					p.ReportStep(step)
				}
				t, err := p.runRound(ctx, p.Targets[w], protocol)
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", p.Targets[w].Name, protocol, err)
				}
				rounds[key{protocol, w}] = append(rounds[key{protocol, w}], t)
			}
		}
	}
	var out []Result
	for _, protocol := range p.Protocols {
		for w := range p.Targets {
			out = append(out, newResult(protocol, p.Targets[w].Name, rounds[key{protocol, w}], rounds[key{protocol, 0}]))
		}
	}
	return out, nil
}

// newResult computes the medians of the rounds, and the ratios to the rounds of the first target (baseline).
func newResult(protocol Protocol, target string, rounds, baseline []RoundResult) Result {
	r := Result{Protocol: protocol, Target: target, Rounds: rounds}
	var tps, p50, p99, ratios []float64
	for i, t := range rounds {
		tps, p50, p99 = append(tps, t.TPS), append(p50, float64(t.P50)), append(p99, float64(t.P99))
		ratios = append(ratios, t.TPS/baseline[i].TPS)
	}
	r.TPS, r.P50, r.P99 = median(tps), time.Duration(median(p50)), time.Duration(median(p99))
	r.Ratio, r.LowestRatio, r.HighestRatio = median(ratios), slices.Min(ratios), slices.Max(ratios)
	return r
}

// median returns the middle of some values, or the mean of the two in the middle.
func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// quantile returns the smallest duration that is at least as long as a part q (0 to 1) of all durations.
func quantile(sortedTimes []time.Duration, q float64) time.Duration {
	return sortedTimes[max(0, int(math.Ceil(q*float64(len(sortedTimes))))-1)]
}

// errNoTransactions is the error of a round in which no transaction was finished.
var errNoTransactions = errors.New("no transaction was finished in time: give it more --time, or a shorter query")

// warmUp returns how long the first part of a round lasts, whose transactions are not counted: servers plan and caches
// fill.
func (p Plan) warmUp() time.Duration { return min(p.RoundTime/4, time.Second) }

// RoundDuration returns how long a round lasts for one target, without logins.
func (p Plan) RoundDuration() time.Duration { return p.warmUp() + p.RoundTime }

// runRound measures one target for one round. Its clients have logged in and prepared the statement before the time
// starts.
func (p Plan) runRound(ctx context.Context, w Target, protocol Protocol) (RoundResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	clients := make([]*benchClient, p.Clients)
	for i := range clients {
		c, err := connect(ctx, w, p.Statement, protocol, i)
		if err != nil {
			return RoundResult{}, err
		}
		defer c.close()
		clients[i] = c
	}
	failures := make(chan error, p.Clients)
	startedAt := time.Now().Add(p.warmUp())
	for _, c := range clients {
		go func() {
			err := c.run(ctx, startedAt, startedAt.Add(p.RoundTime))
			if err != nil {
				cancel() // the other clients need not go on
			}
			failures <- err
		}()
	}
	var err error
	for range clients {
		if e := <-failures; e != nil && (err == nil || errors.Is(err, context.Canceled)) {
			err = e
		}
	}
	took := time.Since(startedAt)
	if err != nil {
		return RoundResult{}, err
	}
	var latencies []time.Duration
	for _, c := range clients {
		latencies = append(latencies, c.durations...)
	}
	if len(latencies) == 0 {
		return RoundResult{}, errNoTransactions
	}
	slices.Sort(latencies)
	return RoundResult{float64(len(latencies)) / took.Seconds(), quantile(latencies, 0.5), quantile(latencies, 0.99)}, nil
}
