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

// Config says how many sequences Run plays, and how.
type Config struct {
	Sequences int
	Seed      uint64
	Length    int // approximate largest number of messages of a sequence
	Settings  []policySetting
	Save      bool // save sequences that show a difference under testdata/found
	Progress  io.Writer
}

// Report has counts of sequences, of messages and of results.
type Report struct {
	Sequences, Messages, Withdrawals int
	AnswerCounts                     map[string]int // numbers of answers, by their first words
	Unstable                         int            // sequences whose difference did not occur again
	Differences                      int
}

func (r Report) String() string {
	return fmt.Sprintf("%d sequences of %d messages, %d with a withdrawal, %d not the same twice: %d differences",
		r.Sequences, r.Messages, r.Withdrawals, r.Unstable, r.Differences)
}

// sequencesPerSetting is the number of sequences that are played with one setting before the next setting is used.
const sequencesPerSetting = 200

// Run plays sequences until their number is reached or the test fails too often.
func Run(t testing.TB, cfg Config) Report {
	t.Helper()
	r := &runner{Config: cfg, t: t, start: time.Now()}
	r.Report.AnswerCounts = map[string]int{}
	trios := make([]*databaseTrio, len(cfg.Settings))
	for n := 0; n < cfg.Sequences && !r.isOver(); n++ {
		index := n / sequencesPerSetting % len(trios)
		if n < sequencesPerSetting { // so that a short run uses every setting
			index = n % len(trios)
		}
		if trios[index] == nil {
			trios[index] = newDatabaseTrio(t, cfg.Settings[index])
		}
		r.trySequence(trios[index], cfg.Seed<<24+uint64(n))
	}
	r.printProgress(true)
	for _, st := range trios {
		if st == nil {
			continue
		}
		if r.Report.Sequences > 0 {
			st.proxy.Tap().RequireNoMarker(t)
		}
		if logged := st.proxy.Errors(); logged != "" {
			t.Errorf("%s: the proxy's log has errors:\n%s", st.setting.name, instance.Truncate(logged))
		}
	}
	return r.Report
}

type runner struct {
	Config
	Report       Report
	t            testing.TB
	start        time.Time
	lastProgress time.Time
}

func (r *runner) isOver() bool {
	return r.Report.Differences >= 12
}

func (r *runner) trySequence(st *databaseTrio, seed uint64) {
	s := newSequence(seed, r.Length)
	r.Report.Sequences++
	r.Report.Messages += len(s)
	why, got := st.compare(s)
	for _, a := range got[firstTwin].answers {
		r.Report.AnswerCounts[answerKind(a.comparableText)]++
	}
	if got[firstTwin].answersBeforeWithdrawal >= 0 {
		r.Report.Withdrawals++
	}
	for attempt := 0; why != "" && attempt < 2; attempt++ {
		if why, got = st.compare(s); why == "" {
			r.Report.Unstable++
		}
	}
	if why != "" {
		r.Report.Differences++
		s, why, got = st.shrink(s, why, got)
		if r.Save {
			saveSequence(r.t, s, st.setting, why, seed)
		}
		r.t.Errorf("seed %d, %s: %s\n%s%s", seed, st.setting.name, why, s, instance.Truncate(transcriptDiff(got)))
	}
	r.printProgress(false)
}

// answerKind returns the first words of an answer, by which answers are counted.
func answerKind(text string) string {
	words := strings.Fields(text)
	if len(words) > 0 && words[0] != "E" && words[0] != "Z" {
		return words[0]
	}
	return strings.Join(words, " ")
}

// compare plays a sequence on all databases. why describes the first difference or failure, and is "" if there is none.
func (st *databaseTrio) compare(s sequence) (why string, got [databaseCount]transcript) {
	st.t.Helper()
	var wait sync.WaitGroup
	for i := range got {
		if i == visibleOnly && st.setting.onlyTwins {
			continue
		}
		wait.Add(1)
		go func() { defer wait.Done(); got[i] = st.playOn(i, s) }()
	}
	wait.Wait()
	for i := range got {
		if !st.waitForSessionsEnd(i) {
			return databaseNames[i] + ": the session is over, and goes on on the server: " +
				st.queryAsOwner(i, "SELECT usename, state, wait_event, query FROM pg_stat_activity WHERE datname = current_database()"), got
		}
	}
	var rows, hidden [databaseCount]string
	for i := range rows {
		rows[i], hidden[i] = st.queryAsOwner(i, visibleRowsQuery), st.queryAsOwner(i, hiddenRowsQuery)
		if rows[i] != st.visibleText || hidden[i] != st.hiddenText[i] {
			st.fill(i)
		}
	}
	if why := st.findFailure(s, got); why != "" {
		return why, got
	}
	switch {
	case hidden != st.hiddenText:
		return "hidden rows were changed", got
	case rows[firstTwin] != rows[secondTwin]:
		return "other rows are left in the twins", got
	case rows[firstTwin] != rows[visibleOnly] && !st.setting.onlyTwins &&
		st.firstAllowedDifference(s, got[firstTwin]) < 0 && firstBrokenAnswer(got[visibleOnly]) < 0:
		return "other rows are left than PostgreSQL itself leaves:\n" + rows[firstTwin] + "not\n" + rows[visibleOnly], got
	}
	return "", got
}

// findFailure describes the first difference or failure in the transcripts, and returns "" if there is none.
func (st *databaseTrio) findFailure(s sequence, got [databaseCount]transcript) string {
	for i, t := range got {
		if t.failure != got[visibleOnly].failure && !st.setting.onlyTwins && st.firstAllowedDifference(s, t) < 0 ||
			t.failure == noAnswerFailure {
			return fmt.Sprintf("%s: %q, and PostgreSQL itself: %q", databaseNames[i], t.failure, got[visibleOnly].failure)
		}
		if i != visibleOnly && t.answersBeforeWithdrawal >= 0 {
			for _, a := range t.answers[t.answersBeforeWithdrawal:] {
				if strings.Contains(a.raw, withdrawnMarker) {
					return databaseNames[i] + ": what was withdrawn before is shown"
				}
			}
		}
	}
	a, b := rawLines(got[firstTwin]), rawLines(got[secondTwin])
	want, have := comparableLines(got[visibleOnly].answers), comparableLines(got[firstTwin].answers)
	if allowedFrom := st.firstAllowedDifference(s, got[firstTwin]); allowedFrom >= 0 { // PostgreSQL may differ from here
		have = comparableLines(got[firstTwin].answers[:allowedFrom])
		want = want[:min(len(want), len(have))]
	}
	if brokenAt := firstBrokenAnswer(got[visibleOnly]); brokenAt >= 0 {
		want = want[:min(len(want), len(comparableLines(got[visibleOnly].answers[:brokenAt])))]
		have = have[:min(len(want), len(have))]
	}
	if s.has(terminateMessage) || got[visibleOnly].failure != "" { // unsent messages may be lost
		a, b, want, have = completeLines(a), completeLines(b), completeLines(want), completeLines(have)
		if s.has(terminateMessage) {
			a, b = a[:min(len(a), len(b))], b[:min(len(a), len(b))]
			want, have = want[:min(len(want), len(have))], have[:min(len(want), len(have))]
		}
	}
	switch {
	case !slices.Equal(a, b):
		return "the twins are told apart"
	case !st.setting.onlyTwins && !slices.Equal(want, have):
		return "the answers are not those of PostgreSQL"
	}
	return ""
}

// firstBrokenAnswer returns the index of the first answer that a bug of PostgreSQL has changed, and -1 if there is
// none. PostgreSQL 18.4 answers an Execute with XX000, "unexpected state STARTED", if a Query after another Execute
// completed without a Sync between them.
func firstBrokenAnswer(t transcript) int {
	return slices.IndexFunc(t.answers, func(a serverMessage) bool { return a.messageType == 'E' && strings.Contains(a.raw, "\x00CXX000\x00") })
}

// firstAllowedDifference returns the index of the first answer from which on a transcript may differ from PostgreSQL's,
// and -1 if there is none. It is the answer after which the owner withdrew the consent, or one of these errors:
//   - 40001, because the rows that the session sees are outdated: a deleted row may have changed who sees a row;
//   - a message that is not for a COPY came during the COPY, one of whose rows PostgreSQL might have refused before;
//   - 23505 in a COPY: COPY into a view checks each row, and COPY into a table checks several rows together;
//   - 40001, because the proxy does not know the age of the rows in a portal that had been run to its end before;
//   - a Query follows an Execute without a Sync, where PostgreSQL 18 runs all the messages in one transaction block;
//   - 34000 in a failed transaction: a Bind or Query that fails may leave a portal or cursor, or may not.
func (st *databaseTrio) firstAllowedDifference(s sequence, t transcript) int {
	mayChangeConsent, inFailedTransaction := false, false
	for _, m := range s {
		mayChangeConsent = mayChangeConsent || m.Kind == withdrawStep || strings.Contains(m.Text, "DELETE FROM item")
	}
	for i, a := range t.answers {
		switch {
		case i == t.answersBeforeWithdrawal:
			return i
		case a.messageType == 'Z':
			inFailedTransaction = a.comparableText == "Z E"
		case a.messageType != 'E':
		case mayChangeConsent && strings.Contains(a.raw, "C40001\x00Mcould not serialize access: consent has changed"),
			strings.Contains(a.raw, "during COPY from stdin"), strings.Contains(a.raw, "a Query behind an Execute without a Sync"),
			strings.Contains(a.raw, "C40001\x00Mcould not serialize access: it is not known"),
			i > 0 && t.answers[i-1].messageType == 'G' && strings.Contains(a.raw, "C23505\x00"),
			inFailedTransaction && strings.Contains(a.raw, "C34000\x00"):
			return i
		}
	}
	return -1
}

func (s sequence) has(k messageKind) bool {
	return slices.ContainsFunc(s, func(m message) bool { return m.Kind == k })
}

// comparableLines returns the part of a transcript in which PostgreSQL and the proxy must agree. It leaves out the
// columns of a result that fails: if results are limited, the proxy has a Query described before it runs, so that the
// columns may come before the error. It also leaves out at which point a changed setting is reported, since the proxy
// may send the statements of a message one by one.
func comparableLines(answers []serverMessage) (out []string) {
	var settings []string
	for _, a := range answers {
		if a.messageType == 'S' {
			settings = append(settings, a.comparableText)
			continue
		}
		if a.messageType == 'Z' {
			out, settings = append(out, settings...), nil
		}
		if last := len(out) - 1; a.messageType == 'E' && last >= 0 && out[last][0] == 'T' {
			out = out[:last]
		}
		if a.comparableText != "" {
			out = append(out, a.comparableText)
		}
	}
	return append(out, settings...)
}

// rawLines returns the part of a transcript in which the twins must agree.
func rawLines(t transcript) (out []string) {
	for _, a := range t.answers {
		out = append(out, a.raw)
	}
	return out
}

// completeLines returns the lines up to and including the last ReadyForQuery.
func completeLines(lines []string) []string {
	for len(lines) > 0 && lines[len(lines)-1][0] != 'Z' {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// transcriptDiff returns the transcripts as text, for a message.
func transcriptDiff(got [databaseCount]transcript) string {
	var b strings.Builder
	for i, t := range got {
		fmt.Fprintf(&b, "%s:\n%s", databaseNames[i], t)
	}
	return b.String()
}

// printProgress prints a line about the progress, at most one each second.
func (r *runner) printProgress(isLast bool) {
	if r.Progress == nil || !isLast && time.Since(r.lastProgress) < time.Second {
		return
	}
	r.lastProgress = time.Now()
	done := float64(r.Report.Sequences) / float64(max(r.Config.Sequences, 1))
	bar := strings.Repeat("#", int(done*30)) + strings.Repeat(".", 30-int(min(done, 1)*30))
	fmt.Fprintf(r.Progress, "\r[%s] %d/%d  %.0f/s  %d messages  %d differences ", bar, r.Report.Sequences,
		r.Config.Sequences, float64(r.Report.Sequences)/time.Since(r.start).Seconds(), r.Report.Messages, r.Report.Differences)
	if isLast {
		fmt.Fprintln(r.Progress)
	}
}
