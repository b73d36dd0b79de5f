package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/pgconsent/pgconsent/internal/registry/sweep"
	"github.com/pgconsent/pgconsent/internal/run/serve"
)

type sweepCmd struct {
	DryRun   bool   `help:"Change nothing; print what would be deleted."`
	Database string `placeholder:"NAME" help:"The database. Default: all."`
}

func (sweepCmd) Help() string {
	return `Does at once what serve does every consent.sweep_every: records expired consents and lapsed requests, warns of coming
expiries, deletes rows whose subject's consent has ended, anonymises decayed ones (lifecycle in the policy), and delivers
messages to the webhook. Agents no longer saw those rows. One sweep runs at a time; the next finishes an interrupted one.

  pgconsent sweep --dry-run
  pgconsent sweep --json`
}

func (c sweepCmd) Run(s *session) error {
	cfg, err := s.loadConfig()
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(cfg.Databases))
	if c.Database != "" {
		if _, err := chooseDatabases(cfg, c.Database); err != nil {
			return err
		}
		names = []string{c.Database}
	}
	type result struct {
		Database string `json:"database"`
		sweep.Report
		Sent   int `json:"messages_sent"`
		Unsent int `json:"messages_failed"`
	}
	out, hasFailed := []result{}, false
	for _, name := range names {
		r, err := serve.OpenRegistry(cfg, name)
		if err != nil {
			return err
		}
		sweeper := &sweep.Sweeper{Registry: r}
		if s.stdoutIsTerminal && !s.jsonOutput {
			sweeper.Progress = func(stage string, done, total int) {
				if done%100 == 0 || done == total {
					fmt.Fprintf(s.err, "\r%s: %s %s ", name, stage, formatDoneOf(done, total))
				}
			}
		}
		report, err := sweeper.Run(s.ctx, c.DryRun)
		if sweeper.Progress != nil {
			fmt.Fprint(s.err, "\r\x1b[K")
		}
		result := result{Database: name, Report: report}
		if err == nil && !c.DryRun {
			var outbox *sweep.Outbox
			if outbox, err = serve.NewOutbox(cfg, r); err == nil && outbox != nil {
				var d sweep.DeliveryCounts
				d, err = outbox.Deliver(s.ctx)
				result.Sent, result.Unsent = d.Sent, d.Failed
			}
		}
		r.Close()
		if err != nil {
			return err
		}
		hasFailed = hasFailed || len(report.Failures) > 0
		out = append(out, result)
	}
	if s.jsonOutput {
		if err := s.printJSON(out); err != nil {
			return err
		}
	} else {
		for _, result := range out {
			s.printSweep(result.Database, result.Report)
			if result.Sent+result.Unsent > 0 {
				fmt.Fprintf(s.out, "  messages: %d delivered, %d to be tried again\n", result.Sent, result.Unsent)
			}
		}
	}
	if hasFailed {
		return errSilent
	}
	return nil
}

func formatDoneOf(done, total int) string {
	if total == 0 {
		return fmt.Sprint(done)
	}
	return fmt.Sprintf("%d of %d", done, total)
}

// printSweep prints the report of a sweep as text.
func (s *session) printSweep(name string, r sweep.Report) {
	if r.SweepRunning {
		fmt.Fprintf(s.out, "%s: another sweep is at work\n", name)
		return
	}
	deletedText, changedText, prefix := "deleted", "made anonymous", ""
	if r.DryRun {
		prefix = ", if it were done"
	}
	var eventTexts []string
	for _, event := range slices.Sorted(maps.Keys(r.RecordedEvents)) {
		eventTexts = append(eventTexts, fmt.Sprintf("%d %s", r.RecordedEvents[event], event))
	}
	if len(eventTexts) == 0 {
		eventTexts = []string{"nothing to record"}
	}
	fmt.Fprintf(s.out, "%s: %s%s\n", name, strings.Join(eventTexts, ", "), prefix)
	if len(r.Tables) > 0 {
		w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
		fmt.Fprintf(w, "  table\tsubjects\t%s\t%s\n", deletedText, changedText)
		for _, t := range r.Tables {
			fmt.Fprintf(w, "  %s\t%d\t%d\t%d\n", t.Table, t.Subjects, t.Deleted, t.Anonymised)
		}
		_ = w.Flush()
	}
	for _, f := range r.Failures {
		fmt.Fprintf(s.out, "  FAILED  %s\n", f)
	}
}
