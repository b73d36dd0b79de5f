package dsar_test

import (
	"context"
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/record/dsar"
	"github.com/pgconsent/pgconsent/test/tier"
)

// BenchmarkReport makes reports from a log of PGCONSENT_CASES records (default 1,000,000). In "of one table", one
// statement in ten reads the person's table; else all do. It only measures, and no time makes it fail.
func BenchmarkReport(b *testing.B) {
	records := tier.Count(1_000_000, 1_000_000, 1_000_000)
	for _, c := range []struct {
		name  string
		oneIn int
		keys  bool
	}{{"a tenth of the statements over the person's tables", 10, false}, {"all of them", 1, false}, {"all of them, with keys", 1, true}} {
		b.Run(c.name, func(b *testing.B) {
			dir := b.TempDir()
			log, err := audit.Open(audit.Config{Dir: dir, Mode: audit.ModeBuffered, Key: key})
			if err != nil {
				b.Fatal(err)
			}
			for i := range records / 2 {
				table, session := "public.notes", fmt.Sprint("0123456789abcdef", i/100)
				if i%c.oneIn > 0 {
					table = "public.other"
				}
				if i%2000 == 0 {
					time.Sleep(10 * time.Millisecond) // the writer catches up
				}
				for tryCount := 0; ; tryCount++ {
					d := log.Decision(audit.Decision{
						Session: session, Agent: "chat", AccessedBy: "chat",
						OnBehalfOf: "ref:0e3b5a52-4a0f-4f2c-9be9-0f4c0b9e4f11", Database: "app", Purpose: "{ESSENTIAL}",
						Attributes: map[string]string{
							"user": "ref:0e3b5a52-4a0f-4f2c-9be9-0f4c0b9e4f11"}, Protocol: "extended", Tag: "SELECT", Fingerprint: "5f0c1f5f0c1f5f0c", Verdict: "allow",
						Tables: []audit.Table{
							{Name: table, Columns: []string{"id", "person", "said"}}}, Path: "signed",
						Policy: "0123456789abcdef0123456789abcdef", Catalog: "0123456789abcdef0123456789abcdef", Epoch: 12,
					})
					if d.Release() != nil { // the writer is behind
						if tryCount > 1000 {
							b.Fatal("the log cannot be written")
						}
						time.Sleep(10 * time.Millisecond)
						continue
					}
					o := audit.Outcome{Rows: 5, Bytes: 512, SQLState: "00000"}
					if c.keys {
						o.Keys = []audit.Keys{commitKeys(session, "public.notes", strconv.Itoa(i), "2")}
					}
					d.RecordOutcome(o)
					break
				}
			}
			if err := log.Close(context.Background()); err != nil {
				b.Fatal(err)
			}
			rows := subjectRows[0]
			rows.Keys = nil
			for i := range 100 {
				rows.Keys = append(rows.Keys, []string{strconv.Itoa(i)})
			}
			cpu, runs := cpuTime(), 0
			for b.Loop() {
				runs++
				collector := &dsar.Collector{Log: "audit", Rows: []dsar.SubjectRows{rows}, Commit: key.Committer, MaxPossible: 10000}
				report, err := dsar.LogScan{Source: audit.Folder(dir), Database: "app", Tables: tables,
					OnAccess: collector.AddAccess}.Run(b.Context())
				if err != nil || report.Problem != "" {
					b.Fatal(err, report.Problem)
				}
				r, err := dsar.Assemble(dsar.ReportInput{
					Subject: "me", Rows: []dsar.SubjectRows{rows}, History: reportInput(1, false).History, Retrievals: collector,
					Logs: []dsar.Log{report.ReportEntry("audit")}})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric((cpuTime()-cpu).Seconds()/float64(runs), "cpu-s/op")
				b.ReportMetric(float64(report.Records), "records")
				b.ReportMetric(float64(r.Retrievals.Exact+r.Retrievals.Possible), "retrievals")
			}
		})
	}
}

// cpuTime returns the CPU time that the process has used, which does not depend on other processes.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
