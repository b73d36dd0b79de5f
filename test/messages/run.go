package messages

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/test/instance"
)

// Config says how much to try.
type Config struct {
	Sequences int
	Seed      uint64
	Length    int // about how many messages a sequence has at most
	Settings  []setting
	Save      bool // under testdata/found
	Progress  io.Writer
}

// Report counts.
type Report struct {
	Sequences, Messages, Changes int
	Seen                         map[string]int // answers, by their beginnings
	Unstable                     int            // showed a difference once, and none when they were played again: it went by when what arrived
	Differences                  int
}

func (r Report) String() string {
	return fmt.Sprintf("%d sequences of %d messages, %d with a withdrawal, %d not the same twice: %d differences",
		r.Sequences, r.Messages, r.Changes, r.Unstable, r.Differences)
}

// perStage is how many sequences in turn are played on one setting.
const perStage = 200

// Run plays sequences until enough are played.
func Run(t testing.TB, cfg Config) Report {
	t.Helper()
	r := &runner{Config: cfg, t: t, start: time.Now()}
	r.Report.Seen = map[string]int{}
	stages := make([]*stage, len(cfg.Settings))
	for n := 0; n < cfg.Sequences && !r.over(); n++ {
		at := n / perStage % len(stages)
		if n < perStage { // a short run sees all of them
			at = n % len(stages)
		}
		if stages[at] == nil {
			stages[at] = newStage(t, cfg.Settings[at])
		}
		r.try(stages[at], cfg.Seed<<24+uint64(n))
	}
	r.progress(true)
	for _, st := range stages {
		if st == nil {
			continue
		}
		if r.Report.Sequences > 0 {
			st.proxy.Tap().NoMarker(t)
		}
		if logged := st.proxy.Errors(); logged != "" {
			t.Errorf("%s: the proxy's log has errors:\n%s", st.setting.name, instance.Shorten(logged))
		}
	}
	return r.Report
}

type runner struct {
	Config
	Report Report
	t      testing.TB
	start  time.Time
	shown  time.Time
}

func (r *runner) over() bool {
	return r.Report.Differences >= 12
}

func (r *runner) try(st *stage, seed uint64) {
	s := newSequence(seed, r.Length)
	r.Report.Sequences++
	r.Report.Messages += len(s)
	why, got := st.compare(s)
	for _, a := range got[one].answers {
		r.Report.Seen[firstWords(a.text)]++
	}
	if got[one].changed >= 0 {
		r.Report.Changes++
	}
	for again := 0; why != "" && again < 2; again++ {
		if why, got = st.compare(s); why == "" {
			r.Report.Unstable++
		}
	}
	if why != "" {
		r.Report.Differences++
		s, why, got = st.shrink(s, why, got)
		if r.Save {
			save(r.t, s, st.setting, why, seed)
		}
		r.t.Errorf("seed %d, %s: %s\n%s%s", seed, st.setting.name, why, s, instance.Shorten(diff(got)))
	}
	r.progress(false)
}

// firstWords is what kind of answer it is.
func firstWords(text string) string {
	words := strings.Fields(text)
	if len(words) > 0 && words[0] != "E" && words[0] != "Z" {
		return words[0]
	}
	return strings.Join(words, " ")
}

// compare plays a sequence everywhere and tells what is wrong, or "".
func (st *stage) compare(s sequence) (why string, got [places]transcript) {
	st.t.Helper()
	var wait sync.WaitGroup
	for i := range got {
		if i == alone && st.setting.apart {
			continue
		}
		wait.Add(1)
		go func() { defer wait.Done(); got[i] = st.play(i, s) }()
	}
	wait.Wait()
	for i := range got {
		if !st.left(i) {
			return names[i] + ": the session is over, and goes on on the server: " +
				st.ask(i, "SELECT usename, state, wait_event, query FROM pg_stat_activity WHERE datname = current_database()"), got
		}
	}
	var rows, hidden [places]string
	for i := range rows {
		rows[i], hidden[i] = st.ask(i, visibleRows), st.ask(i, hiddenRows)
		if rows[i] != st.visible || hidden[i] != st.hidden[i] {
			st.fill(i)
		}
	}
	if why := st.judge(s, got); why != "" {
		return why, got
	}
	switch {
	case hidden != st.hidden:
		return "hidden rows were changed", got
	case rows[one] != rows[two]:
		return "other rows are left in the twins", got
	case rows[one] != rows[alone] && !st.setting.apart && st.cut(s, got[one]) < 0 && broken(got[alone]) < 0:
		return "other rows are left than PostgreSQL itself leaves:\n" + rows[one] + "not\n" + rows[alone], got
	}
	return "", got
}

// judge looks at what came.
func (st *stage) judge(s sequence, got [places]transcript) string {
	for i, t := range got {
		if t.wrong != got[alone].wrong && !st.setting.apart && st.cut(s, t) < 0 || t.wrong == unanswered {
			return fmt.Sprintf("%s: %q, and PostgreSQL itself: %q", names[i], t.wrong, got[alone].wrong)
		}
		if i != alone && t.changed >= 0 {
			for _, a := range t.answers[t.changed:] {
				if strings.Contains(a.raw, withdrawn) {
					return names[i] + ": what was withdrawn before is shown"
				}
			}
		}
	}
	a, b := raw(got[one]), raw(got[two])
	want, have := told(got[alone].answers), told(got[one].answers)
	if cut := st.cut(s, got[one]); cut >= 0 { // what comes then, PostgreSQL answers otherwise
		have = told(got[one].answers[:cut])
		want = want[:min(len(want), len(have))]
	}
	if end := broken(got[alone]); end >= 0 {
		want = want[:min(len(want), len(told(got[alone].answers[:end])))]
		have = have[:min(len(want), len(have))]
	}
	if s.has(terminate) || got[alone].wrong != "" { // what the server has not sent when it ends it may keep
		a, b, want, have = answered(a), answered(b), answered(want), answered(have)
		if s.has(terminate) {
			a, b = a[:min(len(a), len(b))], b[:min(len(a), len(b))]
			want, have = want[:min(len(want), len(have))], have[:min(len(want), len(have))]
		}
	}
	switch {
	case !slices.Equal(a, b):
		return "the twins are told apart"
	case !st.setting.apart && !slices.Equal(want, have):
		return "the answers are not those of PostgreSQL"
	}
	return ""
}

// broken is from where on PostgreSQL itself has lost its way, or -1: 18.4 answers an Execute with XX000, "unexpected
// state STARTED", where a Query ran to its end behind an Execute without a Sync.
func broken(t transcript) int {
	return slices.IndexFunc(t.answers, func(a answer) bool { return a.typ == 'E' && strings.Contains(a.raw, "\x00CXX000\x00") })
}

// cut is from where on a transcript has its own course, or -1. Either the consent is withdrawn, or there is an error of
// these:
//   - what a session sees is outdated, where something changed that decides who sees a row: a row that is deleted is enough;
//   - nothing but rows may come while a COPY runs: the server could have failed at one of them a moment before;
//   - a key is there already: COPY into a view looks at each row, COPY into a table when it has some;
//   - nobody knows how old what a portal sees is, that was run to its end before;
//   - a Query stands behind an Execute without a Sync, where the server makes a block of what does (18);
//   - there is no such portal or cursor, in a transaction that has failed: a Bind or a Query that fails leaves one, as far as it came.
func (st *stage) cut(s sequence, t transcript) int {
	changes, failed := false, false
	for _, m := range s {
		changes = changes || m.Kind == withdraw || strings.Contains(m.Text, "DELETE FROM item")
	}
	for i, a := range t.answers {
		switch {
		case i == t.changed:
			return i
		case a.typ == 'Z':
			failed = a.text == "Z E"
		case a.typ != 'E':
		case changes && strings.Contains(a.raw, "C40001\x00Mcould not serialize access: consent has changed"),
			strings.Contains(a.raw, "during COPY from stdin"), strings.Contains(a.raw, "a Query behind an Execute without a Sync"),
			strings.Contains(a.raw, "C40001\x00Mcould not serialize access: it is not known"),
			i > 0 && t.answers[i-1].typ == 'G' && strings.Contains(a.raw, "C23505\x00"), failed && strings.Contains(a.raw, "C34000\x00"):
			return i
		}
	}
	return -1
}

func (s sequence) has(k kind) bool {
	return slices.ContainsFunc(s, func(m message) bool { return m.Kind == k })
}

// told is what of a transcript PostgreSQL and the proxy must have in common. Where results are bounded a Query is
// described before it runs: whether an error comes before its columns or behind them is not the same. What a setting is
// now PostgreSQL says before it is ready, and so it does between the statements of a message that are sent one by one.
func told(answers []answer) (out []string) {
	var settings []string
	for _, a := range answers {
		if a.typ == 'S' {
			settings = append(settings, a.text)
			continue
		}
		if a.typ == 'Z' {
			out, settings = append(out, settings...), nil
		}
		if last := len(out) - 1; a.typ == 'E' && last >= 0 && out[last][0] == 'T' {
			out = out[:last]
		}
		if a.text != "" {
			out = append(out, a.text)
		}
	}
	return append(out, settings...)
}

// raw is what of a transcript twins must have in common.
func raw(t transcript) (out []string) {
	for _, a := range t.answers {
		out = append(out, a.raw)
	}
	return out
}

// answered is a transcript up to the last ReadyForQuery.
func answered(lines []string) []string {
	for len(lines) > 0 && lines[len(lines)-1][0] != 'Z' {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// diff shows where transcripts part.
func diff(got [places]transcript) string {
	var b strings.Builder
	for i, t := range got {
		fmt.Fprintf(&b, "%s:\n%s", names[i], t)
	}
	return b.String()
}

// progress draws a line every second.
func (r *runner) progress(end bool) {
	if r.Progress == nil || !end && time.Since(r.shown) < time.Second {
		return
	}
	r.shown = time.Now()
	done := float64(r.Report.Sequences) / float64(max(r.Config.Sequences, 1))
	bar := strings.Repeat("#", int(done*30)) + strings.Repeat(".", 30-int(min(done, 1)*30))
	fmt.Fprintf(r.Progress, "\r[%s] %d/%d  %.0f/s  %d messages  %d differences ", bar, r.Report.Sequences,
		r.Config.Sequences, float64(r.Report.Sequences)/time.Since(r.start).Seconds(), r.Report.Messages, r.Report.Differences)
	if end {
		fmt.Fprintln(r.Progress)
	}
}
