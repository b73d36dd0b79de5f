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

// Config says how much to try.
type Config struct {
	Cases    int
	Seed     uint64
	PerData  int // cases on one pair of contents; 0: 60
	PerTable int // pairs of contents on one schema; 0: 4
	Modes    []instance.Mode
	Wide     bool      // schemas with every kind of rule
	Quick    bool      // stop at the first difference, and do not shrink it
	Save     bool      // under testdata/found
	Progress io.Writer // nil: none
}

// Report counts.
type Report struct {
	Cases, Refused, Failed, Answered, Open, Unstable int
	Differences                                      int
}

func (r Report) String() string {
	return fmt.Sprintf("%d cases: %d answered, %d refused, %d failed alike, %d open by SQL, %d not the same "+
		"twice; %d differences", r.Cases, r.Answered, r.Refused, r.Failed, r.Open, r.Unstable, r.Differences)
}

// Run makes schemas, data and statements until enough cases have been tried.
func Run(t testing.TB, cfg Config) Report {
	t.Helper()
	if cfg.PerData == 0 {
		cfg.PerData = 60
	}
	if cfg.PerTable == 0 {
		cfg.PerTable = 4
	}
	r := &runner{Config: cfg, t: t, catalog: newVocabulary(t, pgtest.Database(t)), start: time.Now()}
	for n := uint64(0); r.Report.Cases < cfg.Cases && !r.done(); n++ {
		r.schema(cfg.Seed<<20+n, cfg.Modes[int(n)%len(cfg.Modes)])
	}
	r.progress(true)
	return r.Report
}

type runner struct {
	Config
	Report  Report
	t       testing.TB
	catalog *vocabulary
	notated bool // both notations of calls were compared
	start   time.Time
	shown   time.Time
}

func (r *runner) done() bool {
	return r.Quick && r.Report.Differences > 0
}

func (r *runner) schema(seed uint64, mode instance.Mode) {
	s := newSchema(seed, r.Wide)
	text := script{ddl: s.ddl(), policy: s.policy(), narrow: s.narrow(), callers: s.credentials()}
	scope := &instance.Scope{TB: r.t}
	defer scope.End()
	st := newStage(scope, mode, text)
	st.grouped = s.grouped
	defer st.fresh()
	rng := rand.New(rand.NewPCG(seed, 11))
	for round := range r.PerTable {
		st.caller = round % len(s.callers)
		st.fresh()
		caller := s.callers[st.caller]
		one := s.newData(rng, caller)
		two := s.twin(rng, one, caller)
		loads := [3]string{s.load(one, caller, false), s.load(two, caller, false), s.load(s.visibleOnly(one, caller), caller, true)}
		st.load(loads[0], loads[1], loads[2])
		if rng.IntN(2) == 0 {
			for _, w := range st.writers {
				instance.Ask(w, "ANALYZE")
			}
		}
		if round == 0 && mode.RowSecurity == rls.Enforce {
			r.leaks(st.unsealed(), text, seed)
			r.leaks(st.emptied(s, one), text, seed)
		}
		r.leaks(st.unkept(), text, seed)
		if !r.notated {
			r.notated = true
			r.leaks(st.notations(r.catalog), text, seed)
		}
		for _, t := range s.readable() { // first of all, which rows there are
			r.try(st, testCase{messages: []string{"SELECT * FROM " + t.sql()}}, text, loads, seed)
			for _, c := range t.columns[t.keys:] {
				if c.kind == "int" && !c.secret { // the simplest of questions
					r.try(st, testCase{messages: []string{fmt.Sprintf("SELECT count(*) FROM %s WHERE %s > %d", t.sql(), c.sql(), rng.IntN(20))}}, text, loads, seed)
				}
			}
		}
		for _, call := range s.calls {
			r.try(st, testCase{messages: []string{"SELECT " + call}}, text, loads, seed)
		}
		for _, t := range s.tables { // and which of them may be written
			for _, c := range append(t.blind(), t.fetches()...) {
				r.try(st, c, text, loads, seed)
			}
		}
		for _, relation := range append([]string{"pg_class"}, some(rng, r.catalog.relations, 6)...) {
			r.try(st, testCase{messages: []string{"SELECT * FROM " + relation}}, text, loads, seed)
		}
		w := &writer{Rand: rng, schema: s, catalog: r.catalog}
		for range r.PerData {
			r.try(st, w.next(), text, loads, seed)
			if r.Report.Cases >= r.Config.Cases || r.done() {
				return
			}
		}
	}
	if found, _ := st.proxy.Tap().Hits(); len(found) > 0 {
		r.Report.Differences++
		st.proxy.Tap().NoMarker(r.t)
	}
}

func some(r *rand.Rand, list []string, n int) []string {
	var out []string
	for range n {
		out = append(out, pick(r, list...))
	}
	return out
}

func (r *runner) try(st *stage, c testCase, text script, loads [3]string, seed uint64) {
	if r.done() {
		return
	}
	if r.Report.Cases++; r.Report.Cases == 1 { // what it takes to get there is not of the time
		r.start = time.Now()
	}
	if d := st.compare(c, &r.Report); d != nil {
		r.Report.Differences++
		d.script, d.loads, d.seed = text, loads, seed
		r.report(st, d)
	}
	r.progress(false)
}

// leaks reports what the database let out.
func (r *runner) leaks(wrong []string, text script, seed uint64) {
	for _, w := range wrong {
		r.Report.Differences++
		r.t.Errorf("seed %d: %s\npolicy:\n%s", seed, w, text.policy)
	}
}

// difference is a case that tells the pair apart, or that answers otherwise than the visible rows.
type difference struct {
	script script
	loads  [3]string
	seed   uint64
	caller int
	mode   string
	c      testCase
	why    string
	got    [2]transcript
	want   string
}

// compare runs a case and tells what is wrong with it, or nil.
func (st *stage) compare(c testCase, count *Report) *difference {
	got := st.ask(c)
	if strings.HasPrefix(c.messages[0], "S") && len(c.messages) == 3 {
		defer st.fresh() // a setting may stay
	}
	d := &difference{caller: st.caller, mode: st.mode.Name, c: c, got: got}
	if st.mode.RowSecurity == rls.SealOnly {
		return st.rowsOnly(d)
	}
	if got[0].String() != got[1].String() {
		// Once more on new connections: what is not the same twice on one database tells nothing here.
		st.fresh()
		again := st.ask(c)
		if again[0].String() != got[0].String() || again[1].String() != got[1].String() {
			count.Unstable++
			st.fresh()
			return nil
		}
		if i := first(got); i >= 0 && st.open(c, i, got[0][i], got[1][i]) {
			count.Open++
			return nil
		}
		d.why = "two databases that differ in hidden rows only are told apart"
		return d
	}
	for i, a := range got[0] {
		if a.Code == "client" {
			d.why = "the session ended"
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
	return st.wrong(d)
}

// rowsOnly asks of predicates in the text alone what they promise: the rows of what succeeds. Errors tell, without row
// security.
func (st *stage) rowsOnly(d *difference) *difference {
	for _, t := range d.got {
		for _, a := range t {
			if a.Err != "" {
				return nil
			}
		}
	}
	if readsCatalog(strings.Join(d.c.messages, " ")) {
		return nil
	}
	return st.wrong(d)
}

// wrong compares an answer with what the visible rows alone answer.
func (st *stage) wrong(d *difference) *difference {
	if st.grouped {
		return nil
	}
	c := d.c
	c.extended = false
	alone := send(st.super, c)
	for i := range alone {
		if i >= len(d.got[0]) || readsCatalog(c.messages[i]) {
			return nil
		}
		want := rename(alone[i], st.alone.Name)
		if want.Err != "" {
			return nil
		}
		if outcome(want) != outcome(d.got[0][i]) && !st.possible(c, i)[outcome(d.got[0][i])] {
			// Functions that tell of the session are not the same for the superuser.
			if again := send(st.super, c); i < len(again) && outcome(again[i]) != outcome(alone[i]) {
				return nil
			}
			d.why, d.want = "the answer is not that of the visible rows alone", want.Multiset()
			return d
		}
	}
	return nil
}

// readsCatalog tells whether a message may be answered from stand-ins, which differ from PostgreSQL's own on purpose.
func readsCatalog(message string) bool {
	for _, word := range []string{"pg_", "information_schema", "current_", "has_", "SHOW", "set_config", "regclass",
		"to_reg", "_user", "inet_", "obj_", "col_description", "format_type", "version", "txid", "row_security", "acl", "getpgusername", "session"} {
		if strings.Contains(message, word) {
			return true
		}
	}
	return false
}

// first is the first message whose answers differ, or -1.
func first(got [2]transcript) int {
	for i := range min(len(got[0]), len(got[1])) {
		if got[0][i].Multiset() != got[1][i].Multiset() {
			return i
		}
	}
	return -1
}

func (r *runner) report(st *stage, d *difference) {
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
		d.seed, d.mode, d.script.callers[d.caller], d.why,
		strings.Join(d.c.messages, "\n"), instance.Shorten(d.got[0].String()), instance.Shorten(d.got[1].String()),
		instance.Shorten(d.want), d.script.policy)
}

// progress draws a line every second.
func (r *runner) progress(end bool) {
	if r.Progress == nil || !end && time.Since(r.shown) < time.Second {
		return
	}
	r.shown = time.Now()
	seconds := time.Since(r.start).Seconds()
	done := float64(r.Report.Cases) / float64(max(r.Config.Cases, 1))
	bar := strings.Repeat("#", int(done*30)) + strings.Repeat(".", 30-int(min(done, 1)*30))
	fmt.Fprintf(r.Progress, "\r[%s] %d/%d  %.0f/s  %d differences  %.0f%% refused  %.0f%% answered ",
		bar, r.Report.Cases, r.Config.Cases, float64(r.Report.Cases)/seconds, r.Report.Differences,
		100*float64(r.Report.Refused)/float64(max(r.Report.Cases, 1)), 100*float64(r.Report.Answered)/float64(max(r.Report.Cases, 1)))
	if end {
		fmt.Fprintln(r.Progress)
	}
}
