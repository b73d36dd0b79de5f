package audit

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"
)

// Whatever the disk does, each released decision is in the log once. Each outcome follows its decision in the log, and
// no decision has two outcomes.
func TestOutcomesBelongToDecisions(t *testing.T) {
	for _, mode := range []Mode{ModeStrict, ModeBuffered} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s/%d", mode, seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 7))
				dir, disk := t.TempDir(), &failingDisk{}
				released := map[string]bool{}
				for run := range 2 {
					l := open(t, Config{Mode: mode, Dir: dir, ReleaseTimeout: 150 * time.Millisecond, openFile: disk.file})
					var undone []*Ticket
					for i := range 60 {
						switch r.IntN(12) {
						case 0:
							disk.set(syscall.ENOSPC, nil)
						case 1:
							disk.set(nil, syscall.EIO)
						case 2, 3:
							disk.set(nil, nil)
							eventually(t, l, fmt.Sprintf("well-%d-%d", run, i))
						}
						name := fmt.Sprintf("%d-%d", run, i)
						ticket := l.Decision(decision(name))
						if ticket.Release() == nil {
							released[name] = true
						}
						undone = append(undone, ticket)
						for len(undone) > 0 && r.IntN(3) > 0 {
							index := r.IntN(len(undone))
							undone[index].RecordOutcome(Outcome{Rows: 1, SQLState: "00000"})
							undone = append(undone[:index], undone[index+1:]...)
						}
					}
					disk.set(nil, nil)
					eventually(t, l, fmt.Sprintf("after-%d", run))
					for _, ticket := range undone {
						ticket.RecordOutcome(Outcome{Rows: 1, SQLState: "00000"})
					}
					closeLog(t, l)
				}

				decisions, outcomes := map[uint64]string{}, map[uint64]int{}
				if _, err := Walk(dir, func(rec Record) error {
					switch rec.Kind {
					case KindDecision:
						var d Decision
						if err := json.Unmarshal(rec.Line, &d); err != nil {
							return err
						}
						decisions[rec.Seq] = d.Session
					case KindOutcome:
						var o Outcome
						if err := json.Unmarshal(rec.Line, &o); err != nil {
							return err
						}
						if decisions[o.Decision] == "" || decisions[o.Decision] != o.Session {
							t.Errorf(
								"record %d is the outcome of record %d in session %s, which is no such decision (%q)", rec.Seq, o.Decision, o.Session, decisions[o.Decision])
						}
						if outcomes[o.Decision]++; outcomes[o.Decision] > 1 {
							t.Errorf("decision %d has %d outcomes", o.Decision, outcomes[o.Decision])
						}
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				times := map[string]int{}
				for seq, session := range decisions {
					times[session]++
					if released[session] && outcomes[seq] != 1 {
						t.Errorf("decision %d of session %s was released, and has %d outcomes", seq, session, outcomes[seq])
					}
				}
				for session := range released {
					if times[session] != 1 {
						t.Errorf("the decision of session %s was released, and is there %d times", session, times[session])
					}
				}
			})
		}
	}
}
