package noninterference

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/instance"
)

// Config says how many cases Run tries, and how.
type Config struct {
	Cases    int
	Seed     uint64
	PerData  int // number of cases with the same data; 0: 60
	PerTable int // how many data sets are made for one schema; 0: 4
	Modes    []instance.Mode
	Wide     bool      // make schemas that have every kind of rule
	Quick    bool      // stop at the first difference, and do not shorten it
	Save     bool      // save differences under testdata/found
	Progress io.Writer // gets a line about the progress each second; nil: no progress is reported
}

// Report has the counts of cases by result.
type Report struct {
	Cases, Refused, Failed, Answered, OrderUndefined, Unstable int
	Differences                                                int
}

func (r Report) String() string {
	return fmt.Sprintf("%d cases: %d answered, %d refused, %d failed alike, %d open by SQL, %d not the same "+
		"twice; %d differences", r.Cases, r.Answered, r.Refused, r.Failed, r.OrderUndefined, r.Unstable, r.Differences)
}

// Run makes schemas, data and statements until it has tried the number of cases.
func Run(t testing.TB, cfg Config) Report {
	t.Helper()
	if cfg.PerData == 0 {
		cfg.PerData = 60
	}
	if cfg.PerTable == 0 {
		cfg.PerTable = 4
	}
	r := &runner{Config: cfg, t: t, catalog: newVocabulary(t, pgtest.Database(t)), start: time.Now()}
	for n := uint64(0); r.Report.Cases < cfg.Cases && !r.isDone(); n++ {
		r.runSchema(cfg.Seed<<20+n, cfg.Modes[int(n)%len(cfg.Modes)])
	}
	r.printProgress(true)
	return r.Report
}

type runner struct {
	Config
	Report            Report
	t                 testing.TB
	catalog           *serverVocabulary
	notationsCompared bool // compareCallNotations has run
	start             time.Time
	lastProgress      time.Time
}

func (r *runner) isDone() bool {
	return r.Quick && r.Report.Differences > 0
}

func (r *runner) runSchema(seed uint64, mode instance.Mode) {
	s := newSchema(seed, r.Wide)
	script := databaseScript{ddl: s.ddl(), policy: s.policy(), dropColumns: s.dropHiddenColumnsSQL(), callers: s.credentials()}
	scope := &instance.Scope{TB: r.t}
	defer scope.End()
	st := newDatabaseTrio(scope, mode, script)
	st.countsHiddenRows = s.countsHiddenRows
	defer st.reconnectAgents()
	rng := rand.New(rand.NewPCG(seed, 11))
	for round := range r.PerTable {
		st.caller = round % len(s.callers)
		st.reconnectAgents()
		caller := s.callers[st.caller]
		one := s.newData(rng, caller)
		two := s.newTwin(rng, one, caller)
		loads := [3]string{s.loadSQL(one, caller, false), s.loadSQL(two, caller, false), s.loadSQL(s.visibleOnly(one, caller), caller, true)}
		st.load(loads[0], loads[1], loads[2])
		if rng.IntN(2) == 0 {
			for _, w := range st.writers {
				instance.Ask(w, "ANALYZE")
			}
		}
		if round == 0 && mode.RowSecurity == rls.Enforce {
			r.reportLeaks(st.findUnsealedLeaks(), script, seed)
			r.reportLeaks(st.findEmptyLookupTableLeaks(s, one), script, seed)
		}
		r.reportLeaks(st.findWrongMaterialized(), script, seed)
		if !r.notationsCompared {
			r.notationsCompared = true
			r.reportLeaks(st.compareCallNotations(r.catalog), script, seed)
		}
		for _, t := range s.readableTables() { // first the keys of all visible rows
			r.tryCase(st, testCase{messages: []string{"SELECT * FROM " + t.sql()}}, script, loads, seed)
			for _, c := range t.columns[t.keyCount:] {
				if c.kind == "int" && !c.isHidden { // then the simplest queries
					sql := fmt.Sprintf("SELECT count(*) FROM %s WHERE %s > %d", t.sql(), c.sql(), rng.IntN(20))
					r.tryCase(st, testCase{messages: []string{sql}}, script, loads, seed)
				}
			}
		}
		for _, call := range s.functionCalls {
			r.tryCase(st, testCase{messages: []string{"SELECT " + call}}, script, loads, seed)
		}
		for _, t := range s.tables { // then statements that write
			for _, c := range append(t.unconditionalWrites(), t.fetchByKeyCases()...) {
				r.tryCase(st, c, script, loads, seed)
			}
		}
		for _, relation := range append([]string{"pg_class"}, pickSome(rng, r.catalog.relations, 6)...) {
			r.tryCase(st, testCase{messages: []string{"SELECT * FROM " + relation}}, script, loads, seed)
		}
		w := &statementWriter{Rand: rng, schema: s, vocabulary: r.catalog}
		for range r.PerData {
			r.tryCase(st, w.nextCase(), script, loads, seed)
			if r.Report.Cases >= r.Config.Cases || r.isDone() {
				return
			}
		}
	}
	if found, _ := st.proxy.Tap().MarkerHits(); len(found) > 0 {
		r.Report.Differences++
		st.proxy.Tap().RequireNoMarker(r.t)
	}
}

func pickSome(r *rand.Rand, list []string, n int) []string {
	var out []string
	for range n {
		out = append(out, pick(r, list...))
	}
	return out
}

func (r *runner) tryCase(st *databaseTrio, c testCase, script databaseScript, loads [3]string, seed uint64) {
	if r.isDone() {
		return
	}
	if r.Report.Cases++; r.Report.Cases == 1 { // the time before the first case does not count
		r.start = time.Now()
	}
	if d := st.compare(c, &r.Report); d != nil {
		r.Report.Differences++
		d.script, d.loads, d.seed = script, loads, seed
		r.reportDifference(st, d)
	}
	r.printProgress(false)
}

// reportLeaks reports what the checks below the proxy have found.
func (r *runner) reportLeaks(leaks []string, script databaseScript, seed uint64) {
	for _, leak := range leaks {
		r.Report.Differences++
		r.t.Errorf("seed %d: %s\npolicy:\n%s", seed, leak, script.policy)
	}
}

// difference is a case in which the answers of the twins differ from each other, or from the answer that the visible
// rows alone give.
type difference struct {
	script   databaseScript
	loads    [3]string
	seed     uint64
	caller   int
	mode     string
	testCase testCase
	reason   string
	answers  [2]answerList
	want     string
}

// compare runs a case. It returns a difference if something is wrong with the answers, and nil otherwise.
func (st *databaseTrio) compare(c testCase, count *Report) *difference {
	got := st.sendToBoth(c)
	if strings.HasPrefix(c.messages[0], "S") && len(c.messages) == 3 {
		defer st.reconnectAgents() // the case may have changed settings of the session
	}
	d := &difference{caller: st.caller, mode: st.mode.Name, testCase: c, answers: got}
	if st.mode.RowSecurity == rls.SealOnly {
		return st.keepRowDifference(d)
	}
	if got[0].String() != got[1].String() {
		// The case is run again on new connections. If the same database answers differently, the case depends on something
		// else, and a difference proves nothing.
		st.reconnectAgents()
		again := st.sendToBoth(c)
		if again[0].String() != got[0].String() || again[1].String() != got[1].String() {
			count.Unstable++
			st.reconnectAgents()
			return nil
		}
		if i := firstDifference(got); i >= 0 && st.isOrderUndefined(c, i, got[0][i], got[1][i]) {
			count.OrderUndefined++
			return nil
		}
		d.reason = "two databases that differ in hidden rows only are told apart"
		return d
	}
	for i, a := range got[0] {
		if a.Code == "client" {
			d.reason = "the session ended"
			return d
		}
		if a.Refused() {
			count.Refused++
			return nil
		}
		if a.Err != "" {
			count.Failed++
			return nil
		}
		if i == len(got[0])-1 {
			count.Answered++
		}
	}
	return st.compareWithVisible(d)
}

// keepRowDifference drops a difference in which an answer is an error. Without row security, errors may depend on
// hidden rows.
func (st *databaseTrio) keepRowDifference(d *difference) *difference {
	for _, t := range d.answers {
		for _, a := range t {
			if a.Err != "" {
				return nil
			}
		}
	}
	if readsCatalog(strings.Join(d.testCase.messages, " ")) {
		return nil
	}
	return st.compareWithVisible(d)
}

// compareWithVisible compares an answer with the answer that PostgreSQL gives on the visible rows alone.
func (st *databaseTrio) compareWithVisible(d *difference) *difference {
	if st.countsHiddenRows {
		return nil
	}
	c := d.testCase
	c.extended = false
	visibleAnswers := send(st.visibleOnlyConn, c)
	for i := range visibleAnswers {
		if i >= len(d.answers[0]) || readsCatalog(c.messages[i]) {
			return nil
		}
		want := hideDatabaseName(visibleAnswers[i], st.visibleOnlyDB.Name)
		if want.Err != "" {
			return nil
		}
		if answerOutcome(want) != answerOutcome(d.answers[0][i]) && !st.possibleOutcomes(c, i)[answerOutcome(d.answers[0][i])] {
			// An answer that PostgreSQL itself does not repeat, such as one about the session, proves nothing.
			if again := send(st.visibleOnlyConn, c); i < len(again) && answerOutcome(again[i]) != answerOutcome(visibleAnswers[i]) {
				return nil
			}
			d.reason, d.want = "the answer is not that of the visible rows alone", want.SortedString()
			return d
		}
	}
	return nil
}

// readsCatalog reports whether a message may read the catalogs, for which agents get views that differ from
// PostgreSQL's catalogs on purpose.
func readsCatalog(message string) bool {
	for _, word := range []string{"pg_", "information_schema", "current_", "has_", "SHOW", "set_config", "regclass",
		"to_reg", "_user", "inet_", "obj_", "col_description", "format_type", "version", "txid", "row_security", "acl", "getpgusername", "session"} {
		if strings.Contains(message, word) {
			return true
		}
	}
	return false
}

// firstDifference returns the index of the first message whose answers differ, and -1 if there is none.
func firstDifference(got [2]answerList) int {
	for i := range min(len(got[0]), len(got[1])) {
		if got[0][i].SortedString() != got[1][i].SortedString() {
			return i
		}
	}
	return -1
}

func (r *runner) reportDifference(st *databaseTrio, d *difference) {
	if !r.Quick {
		st.shrink(d)
	}
	if r.Save {
		d.save(r.t)
	}
	if r.Report.Differences > 12 {
		return
	}
	r.t.Errorf("seed %d, mode %s, caller %v: %s\n%s\none:\n%s\ntwo:\n%s\nvisible rows alone:\n%s\npolicy:\n%s",
		d.seed, d.mode, d.script.callers[d.caller], d.reason,
		strings.Join(d.testCase.messages, "\n"), instance.Truncate(d.answers[0].String()), instance.Truncate(d.answers[1].String()),
		instance.Truncate(d.want), d.script.policy)
}

// printProgress prints a line about the progress, at most one each second.
func (r *runner) printProgress(isLast bool) {
	if r.Progress == nil || !isLast && time.Since(r.lastProgress) < time.Second {
		return
	}
	r.lastProgress = time.Now()
	seconds := time.Since(r.start).Seconds()
	done := float64(r.Report.Cases) / float64(max(r.Config.Cases, 1))
	bar := strings.Repeat("#", int(done*30)) + strings.Repeat(".", 30-int(min(done, 1)*30))
	fmt.Fprintf(r.Progress, "\r[%s] %d/%d  %.0f/s  %d differences  %.0f%% refused  %.0f%% answered ",
		bar, r.Report.Cases, r.Config.Cases, float64(r.Report.Cases)/seconds, r.Report.Differences,
		100*float64(r.Report.Refused)/float64(max(r.Report.Cases, 1)), 100*float64(r.Report.Answered)/float64(max(r.Report.Cases, 1)))
	if isLast {
		fmt.Fprintln(r.Progress)
	}
}
