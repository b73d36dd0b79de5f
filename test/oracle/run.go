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

// Report has the counts of statements by result.
type Report struct {
	Statements, Answered, Refused, DependsOnHidden, Failed int // Failed: they fail in the same way on the filtered copy
	MustBeAnswered                                         int
	Differences                                            int
}

func (r *Report) add(o Report) {
	r.Statements += o.Statements
	r.Answered += o.Answered
	r.Refused += o.Refused
	r.DependsOnHidden += o.DependsOnHidden
	r.Failed += o.Failed
	r.MustBeAnswered += o.MustBeAnswered
	r.Differences += o.Differences
}

func (r Report) String() string {
	return fmt.Sprintf("%d statements: %d answered, %d of them sensitive to hidden rows; %d refused, %d fail on both sides; %d must be answered",
		r.Statements, r.Answered, r.DependsOnHidden, r.Refused, r.Failed, r.MustBeAnswered)
}

// Options selects a part of the corpus: the handwritten statements, and those made from testdata/shapes.sql.
type Options struct {
	Schemas              []string // names of schemas; nil: all
	Modes                []instance.Mode
	EveryNth             int  // run only every n-th statement; 0: all
	EveryNthInOtherModes int  // run only every n-th statement in all modes except the first; 0: all
	OneOtherMode         bool // run each schema in the first mode and in one of the other modes
	Quick                bool // stop at the first difference
	WholeRelations       bool // run only one query of each relation of the policy, with all of its rows
}

// Run compares the answers to the corpus with those of the filtered copies. The report counts the first mode only.
func Run(t testing.TB, o Options) Report {
	t.Helper()
	var total Report
	names := o.Schemas
	if names == nil {
		names = SchemaNames()
	}
	for i, name := range names {
		o := o
		if others := o.Modes[1:]; o.OneOtherMode && len(others) > 0 {
			o.Modes = []instance.Mode{o.Modes[0], others[i%len(others)]}
		}
		if runAndCleanUp(t, name, func(t testing.TB) { schemaNamed(t, name).runCorpus(t, o, &total) }); o.Quick && total.Differences > 0 {
			break
		}
	}
	return total
}

// runAndCleanUp runs a part of a test, and then closes what the part has opened: the server does not have enough
// connections for all schemas at once.
func runAndCleanUp(t testing.TB, name string, part func(testing.TB)) {
	if test, ok := t.(*testing.T); ok {
		test.Run(name, func(t *testing.T) { part(t) })
		return
	}
	part(t)
}

// runCorpus compares the answers to the statements of one schema.
func (s Schema) runCorpus(t testing.TB, o Options, total *Report) {
	corpus := everyNth(s.Statements(t), o.EveryNth)
	if o.WholeRelations {
		corpus = s.wholeRelationQueries(t)
	}
	reference := newReferenceAnswers(t, s)
	for i, mode := range o.Modes {
		corpus := corpus
		if i > 0 {
			corpus = everyNth(corpus, o.EveryNthInOtherModes)
		}
		r := s.compareMode(t, mode, reference, corpus, o.Quick)
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

// readPattern and writePattern recognize statements that change neither rows nor the session. Other statements do not
// depend on them.
var (
	readPattern  = regexp.MustCompile(`(?i)^\s*\(*(SELECT|TABLE|VALUES|WITH|EXPLAIN)\b`)
	writePattern = regexp.MustCompile(`(?i)\b(INSERT|UPDATE|DELETE|MERGE|set_config|nextval|setval)\b|;\s*\S`)
)

// everyNth returns every n-th of those statements that must be answered and on which no other depends, and all other
// statements.
func everyNth(corpus []Statement, n int) []Statement {
	if n <= 1 {
		return corpus
	}
	var chosen []Statement
	for i, q := range corpus {
		if i%n == 0 || !q.MustBeAnswered || !readPattern.MatchString(q.SQL) || writePattern.MatchString(q.SQL) {
			chosen = append(chosen, q)
		}
	}
	return chosen
}

// referenceAnswers asks the filtered copy once for the correct answer to each statement. It also asks a copy with all
// rows, to find the statements whose answers depend on hidden rows.
type referenceAnswers struct {
	t                    testing.TB
	filtered, unfiltered *pgconn.PgConn
	answersBySQL         map[string]expectation
}

type expectation struct {
	want            instance.Answer
	dependsOnHidden bool
}

func newReferenceAnswers(t testing.TB, s Schema) *referenceAnswers {
	t.Helper()
	tr := &referenceAnswers{t: t, answersBySQL: map[string]expectation{}}
	tr.filtered, tr.unfiltered = instance.ConnectSuperuser(t, s.Filtered(t)), instance.ConnectSuperuser(t, s.Database(t))
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

func (tr *referenceAnswers) answerTo(sql string) expectation {
	e, ok := tr.answersBySQL[sql]
	if !ok {
		e.want = sendInTransaction(tr.filtered, sql)
		e.dependsOnHidden = sendInTransaction(tr.unfiltered, sql).SortedString() != e.want.SortedString()
		tr.answersBySQL[sql] = e
	}
	return e
}

// ReferenceAnswers returns a function that returns the answer of a schema's filtered copy to a statement. sensitive is
// true if the answer depends on hidden rows.
func ReferenceAnswers(t testing.TB, s Schema) func(sql string) (want instance.Answer, sensitive bool) {
	tr := newReferenceAnswers(t, s)
	return func(sql string) (instance.Answer, bool) {
		e := tr.answerTo(sql)
		return e.want, e.dependsOnHidden
	}
}

// sendInTransaction sends a statement, and rolls back a transaction that is open after it. The answer to a COPY
// contains its data.
func sendInTransaction(c *pgconn.PgConn, sql string) instance.Answer {
	a := instance.AskCopy(c, sql)
	if c.TxStatus() != 'I' && !c.IsClosed() {
		instance.Ask(c, "ROLLBACK")
	}
	return a
}

func (s Schema) compareMode(t testing.TB, mode instance.Mode, reference *referenceAnswers, corpus []Statement, quick bool) Report {
	t.Helper()
	proxy := instance.Start(t, mode, s.BehindProxy(t), s.Attributes)
	agent := proxy.Agent(t, "agent", s.Name)
	var r Report
	for _, q := range corpus {
		if q.OnlyRowSecurity && mode.RowSecurity == rls.SealOnly {
			continue
		}
		r.Statements++
		if q.MustBeAnswered {
			r.MustBeAnswered++
		}
		e := reference.answerTo(q.SQL)
		got := sendInTransaction(agent, q.SQL)
		if agent.IsClosed() {
			t.Errorf("%s, %s: the session ended: %s", q.Source, mode.Name, got.Err)
			r.Differences++
			agent = proxy.Agent(t, "agent", s.Name)
			continue
		}
		switch {
		case e.want.Err != "" && got.Code == e.want.Code:
			r.Failed++ // the texts of errors are compared by other tests
			if q.MustBeAnswered {
				t.Errorf("%s: PostgreSQL itself fails: %s", q.Source, e.want.Err)
			}
		case got.Refused(), got.PlanNotShown():
			r.Refused++
			if q.MustBeAnswered && mode.Name != instance.InjectedOnly.Name {
				t.Errorf("%s, %s: %s\nrefused: %s", q.Source, mode.Name, instance.OneLine(q.SQL), got.Err)
			}
		case got.WithoutNotices().SortedString() != e.want.WithoutNotices().SortedString():
			r.Differences++
			t.Errorf("%s, %s: %s\nagent:\n%s\nfiltered copy:\n%s", q.Source, mode.Name,
				q.SQL, instance.Truncate(got.SortedString()), instance.Truncate(e.want.SortedString()))
			if quick {
				return r
			}
		default:
			r.Answered++
			if e.dependsOnHidden {
				r.DependsOnHidden++
			}
		}
	}
	if found, _ := proxy.Tap().MarkerHits(); len(found) > 0 {
		r.Differences++
	}
	proxy.Tap().RequireNoMarker(t)
	return r
}
