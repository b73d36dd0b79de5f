package oracle

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/instance"
)

// Report counts what a run saw.
type Report struct {
	Statements, Answered, Refused, Sensitive, Failed int // Failed: on both sides
	Must                                             int
	Differences                                      int
}

func (r *Report) add(o Report) {
	r.Statements += o.Statements
	r.Answered += o.Answered
	r.Refused += o.Refused
	r.Sensitive += o.Sensitive
	r.Failed += o.Failed
	r.Must += o.Must
	r.Differences += o.Differences
}

func (r Report) String() string {
	return fmt.Sprintf("%d statements: %d answered, %d of them sensitive to hidden rows; %d refused, %d fail on both sides; %d must be answered",
		r.Statements, r.Answered, r.Sensitive, r.Refused, r.Failed, r.Must)
}

// Options choose a part of the corpus.
type Options struct {
	Schemas []string // nil: all
	Modes   []instance.Mode
	Every   int  // only each n-th statement; 0: all
	Spare   int  // in all modes but the first, only each n-th statement; 0: all
	Quick   bool // stop at the first difference
	Whole   bool // ask for each relation of the policy as a whole, and nothing else
}

// Run holds the corpus against the filtered copies. The report is that of the first mode.
func Run(t testing.TB, o Options) Report {
	t.Helper()
	var total Report
	names := o.Schemas
	if names == nil {
		names = Names()
	}
	for _, name := range names {
		if within(t, name, func(t testing.TB) { find(t, name).run(t, o, &total) }); o.Quick && total.Differences > 0 {
			break
		}
	}
	return total
}

// within runs a part, and what it has opened is closed at its end: a server has connections for a few schemas, not for
// all.
func within(t testing.TB, name string, part func(testing.TB)) {
	if test, is := t.(*testing.T); is {
		test.Run(name, func(t *testing.T) { part(t) })
		return
	}
	part(t)
}

// run holds the corpus of one schema.
func (s Schema) run(t testing.TB, o Options, total *Report) {
	corpus := each(s.Statements(t), o.Every)
	if o.Whole {
		corpus = s.whole(t)
	}
	truth := newTruth(t, s)
	for i, mode := range o.Modes {
		corpus := corpus
		if i > 0 {
			corpus = each(corpus, o.Spare)
		}
		r := s.hold(t, mode, truth, corpus, o.Quick)
		t.Logf("%s, %s: %s", s.Name, mode.Name, r)
		if i == 0 {
			total.add(r)
		} else {
			total.Differences += r.Differences
		}
		if o.Quick && r.Differences > 0 {
			return
		}
	}
}

// reads finds what changes nothing that a later statement goes by: neither rows, nor the session, which SET and
// PREPARE do.
var (
	reads  = regexp.MustCompile(`(?i)^\s*\(*(SELECT|TABLE|VALUES|WITH|EXPLAIN)\b`)
	writes = regexp.MustCompile(`(?i)\b(INSERT|UPDATE|DELETE|MERGE|set_config|nextval|setval)\b|;\s*\S`)
)

// each leaves out some of what must be answered, and nothing of what may be refused or of what others go by.
func each(corpus []Statement, n int) []Statement {
	if n <= 1 {
		return corpus
	}
	var some []Statement
	for i, q := range corpus {
		if i%n == 0 || !q.Must || !reads.MatchString(q.SQL) || writes.MatchString(q.SQL) {
			some = append(some, q)
		}
	}
	return some
}

// truth asks the filtered copy and, to see what is sensitive, the unfiltered one; each statement once.
type truth struct {
	t                    testing.TB
	filtered, unfiltered *pgconn.PgConn
	known                map[string]expectation
}

type expectation struct {
	want      instance.Answer
	sensitive bool
}

func newTruth(t testing.TB, s Schema) *truth {
	t.Helper()
	tr := &truth{t: t, known: map[string]expectation{}}
	tr.filtered, tr.unfiltered = instance.Super(t, s.Filtered(t)), instance.Super(t, s.Database(t))
	var path []string
	for _, p := range s.SearchPath {
		path = append(path, catalog.QuoteIdent(p))
	}
	for _, c := range []*pgconn.PgConn{tr.filtered, tr.unfiltered} {
		if a := instance.Ask(c, "SET search_path = "+strings.Join(path, ", ")); a.Err != "" {
			t.Fatal(a.Err)
		}
	}
	return tr
}

func (tr *truth) of(sql string) expectation {
	e, ok := tr.known[sql]
	if !ok {
		e.want = ask(tr.filtered, sql)
		e.sensitive = ask(tr.unfiltered, sql).Multiset() != e.want.Multiset()
		tr.known[sql] = e
	}
	return e
}

// Superuser tells what the filtered copy of a schema answers.
func Superuser(t testing.TB, s Schema) func(sql string) (want instance.Answer, sensitive bool) {
	tr := newTruth(t, s)
	return func(sql string) (instance.Answer, bool) {
		e := tr.of(sql)
		return e.want, e.sensitive
	}
}

// ask sends a statement so that COPY's data count too, and leaves no transaction open.
func ask(c *pgconn.PgConn, sql string) instance.Answer {
	a := instance.AskCopy(c, sql)
	if c.TxStatus() != 'I' && !c.IsClosed() {
		instance.Ask(c, "ROLLBACK")
	}
	return a
}

func (s Schema) hold(t testing.TB, mode instance.Mode, truth *truth, corpus []Statement, quick bool) Report {
	t.Helper()
	proxy := instance.Start(t, mode, s.Behind(t), s.Attributes)
	agent := proxy.Agent(t, "agent", s.Name)
	var r Report
	for _, q := range corpus {
		if q.RLS && mode.RowSecurity == rls.SealOnly {
			continue
		}
		r.Statements++
		if q.Must {
			r.Must++
		}
		e := truth.of(q.SQL)
		got := ask(agent, q.SQL)
		if agent.IsClosed() {
			t.Errorf("%s, %s: the session ended: %s", q.Where, mode.Name, got.Err)
			r.Differences++
			agent = proxy.Agent(t, "agent", s.Name)
			continue
		}
		switch {
		case e.want.Err != "" && got.Code == e.want.Code:
			r.Failed++ // what the proxy adds to and takes from an error is tested elsewhere
			if q.Must {
				t.Errorf("%s: PostgreSQL itself fails: %s", q.Where, e.want.Err)
			}
		case got.Refused(), got.PlanNotShown():
			r.Refused++
			if q.Must && mode.Name != instance.InjectedOnly.Name {
				t.Errorf("%s, %s: %s\nrefused: %s", q.Where, mode.Name, instance.OneLine(q.SQL), got.Err)
			}
		case got.WithoutNotices().Multiset() != e.want.WithoutNotices().Multiset():
			r.Differences++
			t.Errorf("%s, %s: %s\nagent:\n%s\nfiltered copy:\n%s", q.Where, mode.Name,
				q.SQL, instance.Shorten(got.Multiset()), instance.Shorten(e.want.Multiset()))
			if quick {
				return r
			}
		default:
			r.Answered++
			if e.sensitive {
				r.Sensitive++
			}
		}
	}
	if found, _ := proxy.Tap().Hits(); len(found) > 0 {
		r.Differences++
	}
	proxy.Tap().NoMarker(t)
	return r
}
