package oracle

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/instance"
)

// RandomConfig says how much to try.
type RandomConfig struct {
	Schema   Schema
	Mode     instance.Mode
	Large    bool // to the planner and to the rewriter, whatever rows there are
	Cases    int
	Seed     uint64
	Progress io.Writer // nil: none
}

// RandomReport counts.
type RandomReport struct {
	Cases, Answered, Refused, Failed, FailedOtherwise, Sensitive, Empty, Open, Constrained, Slow, Differences int
	// the case with the first difference; 0: none
	First                                    int
	Forms, Ways, Refusals, Reasons, Failures map[string]int
	// of each refusal the shortest statement
	Samples map[string]string
}

func (r *RandomReport) String() string {
	text := fmt.Sprintf("%d cases: %d answered, %d of them sensitive to hidden rows, %d with no row; %d refused; "+
		"%d fail on both sides, and %d with another error; %d open by SQL, %d writes not comparable, %d too slow; %d differences",
		r.Cases, r.Answered, r.Sensitive, r.Empty, r.Refused, r.Failed, r.FailedOtherwise, r.Open, r.Constrained, r.Slow, r.Differences)
	for _, counts := range []struct {
		what string
		of   map[string]int
	}{{"sent", r.Ways}, {"forms", r.Forms}, {"row security and hardened plans", r.Reasons}, {"refused", r.Refusals}, {"fail", r.Failures}} {
		names := slices.SortedFunc(maps.Keys(counts.of), func(x, y string) int { return counts.of[y] - counts.of[x] })
		text += "\n  " + counts.what + ":"
		for i, name := range names {
			if i == 24 {
				break
			}
			text += fmt.Sprintf(" %s %d;", name, counts.of[name])
		}
	}
	for why, sql := range r.Samples {
		text += "\n  " + why + ":\n    " + sql
	}
	return text
}

// Add sums reports up.
func (r *RandomReport) Add(o *RandomReport) {
	r.Cases, r.Answered, r.Refused, r.Failed, r.FailedOtherwise, r.Sensitive, r.Empty = r.Cases+o.Cases, r.Answered+
		o.Answered, r.Refused+o.Refused, r.Failed+o.Failed, r.FailedOtherwise+o.FailedOtherwise, r.Sensitive+o.Sensitive, r.Empty+o.Empty
	r.Open, r.Constrained, r.Slow, r.Differences = r.Open+o.Open, r.Constrained+o.Constrained, r.Slow+o.Slow, r.Differences+o.Differences
	for _, m := range []struct{ into, from *map[string]int }{
		{&r.Forms, &o.Forms}, {&r.Ways, &o.Ways}, {&r.Refusals, &o.Refusals}, {&r.Reasons, &o.Reasons}, {&r.Failures, &o.Failures}} {
		if *m.into == nil {
			*m.into = map[string]int{}
		}
		for k, n := range *m.from {
			(*m.into)[k] += n
		}
	}
	for why, sql := range o.Samples {
		r.sample(why, sql)
	}
}

type randomRun struct {
	RandomConfig
	*RandomReport
	t                    testing.TB
	proxy                *instance.Proxy
	agent                *pgconn.PgConn
	filtered, unfiltered *pgconn.PgConn
	rewriter             *rewrite.Rewriter
	began, shown         time.Time
}

// Random holds statements that are made up against the filtered copy.
func Random(t testing.TB, cfg RandomConfig) *RandomReport {
	t.Helper()
	scope := &instance.Scope{TB: t}
	defer scope.End()
	s := cfg.Schema
	behind := s.Behind(scope)
	filtered, unfiltered := s.Filtered(scope), s.Database(scope)
	for _, db := range []*pgtest.DB{behind.DB, filtered, unfiltered} {
		instance.Ask(instance.Super(scope, db), "CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA "+catalog.QuoteIdent(s.SearchPath[0]))
	}
	m := newModel(scope, s, filtered, instance.Compile(scope, behind, cfg.Mode).Policy)
	m.dress(scope, behind.DB, s.SearchPath)
	migrated := instance.Migrate(scope, behind, cfg.Mode)
	if cfg.Large {
		// What planner and rewriter take for the size of a table is how many rows a page had, and the pages now.
		instance.Exec(scope, behind.DB,
			"ANALYZE; UPDATE pg_class SET reltuples = reltuples * 300 WHERE relkind IN ('r', 'm', 'p') AND "+
				"relnamespace::regnamespace::text !~ '^(pg_|information)' AND reltuples > 0")
	}
	r := &randomRun{RandomConfig: cfg, RandomReport: &RandomReport{
		Forms: map[string]int{}, Ways: map[string]int{}, Refusals: map[string]int{}, Reasons: map[string]int{},
		Failures: map[string]int{}, Samples: map[string]string{}}, t: scope}
	r.proxy = instance.Serve(scope, cfg.Mode, []instance.Database{behind}, []instance.Agent{{Name: "agent", Database: s.Name, Attributes: s.Attributes}})
	r.connect()
	r.filtered, r.unfiltered = instance.Super(scope, filtered), instance.Super(scope, unfiltered)
	for _, c := range []*pgconn.PgConn{r.filtered, r.unfiltered} {
		instance.Ask(c, "SET search_path = "+strings.Join(quoted(s.SearchPath), ", ")+"; SET statement_timeout = '2s'")
	}
	var tables []*catalog.Relation
	for _, t := range migrated.Policy.Tables() {
		tables = append(tables, t.Relation)
	}
	sizes, err := pgcatalog.Sizes(context.Background(), behind.DB.Connect(scope, "postgres"), tables)
	if err != nil {
		t.Fatal(err)
	}
	r.rewriter = rewrite.New(migrated.Snapshot, migrated.Policy, cfg.Mode.Rewrite).WithSizes(sizes)
	r.began = time.Now()
	for n := range cfg.Cases {
		a := &author{Rand: rand.New(rand.NewPCG(cfg.Seed, uint64(n))), model: m}
		k, want := r.worthwhile(a)
		r.try(k, want)
		r.progress(false)
	}
	r.progress(true)
	if found, _ := r.proxy.Tap().Hits(); len(found) > 0 {
		r.Differences++
		r.proxy.Tap().NoMarker(t)
	}
	return r.RandomReport
}

func (r *randomRun) connect() {
	r.agent = r.proxy.Agent(r.t, "agent", r.Schema.Name)
	instance.Ask(r.agent, "SET statement_timeout = '180s'")
}

// send sends a case. What it writes is taken back.
func send(c *pgconn.PgConn, k randomCase) instance.Answer {
	values := func(n int) [][]byte {
		var out [][]byte
		for _, p := range k.params {
			if v := p.values[n]; v != nil {
				out = append(out, []byte(*v))
			} else {
				out = append(out, nil)
			}
		}
		return out
	}
	var types []uint32
	for _, p := range k.params {
		types = append(types, p.oid)
	}
	var a instance.Answer
	switch k.way {
	case "extended":
		a = instance.AskDeclared(c, k.sql, types, values(0)...)
	case "prepared":
		a = instance.AskPrepared(c, k.sql, types, values(0), values(1), values(2), values(3))
	case "cursor":
		a = steps(c, "BEGIN", "DECLARE c CURSOR FOR "+k.sql, "FETCH 3 FROM c", "FETCH ALL FROM c")
		if len(a.Results) > 3 { // in which order they came is open
			a.Results[3].Rows = append(a.Results[3].Rows, a.Results[2].Rows...)
			a.Results = a.Results[3:]
			a.Results[0].Tag = ""
		}
	case "execute":
		a = steps(c, "PREPARE asked AS "+k.sql, "EXECUTE asked", "EXECUTE asked")
		instance.Ask(c, "DEALLOCATE ALL")
	case "copy":
		a = instance.AskCopy(c, "COPY ("+k.sql+") TO STDOUT")
	case "write":
		a = steps(c, "BEGIN", k.sql, k.after)
		for _, result := range a.Results {
			for i, row := range result.Rows {
				result.Rows[i] = strings.ReplaceAll(row, "pgconsent_agent", "postgres") // whom a trigger notes
			}
		}
	default:
		a = instance.Ask(c, k.sql)
	}
	if c.TxStatus() != 'I' && !c.IsClosed() {
		instance.Ask(c, "ROLLBACK")
	}
	a.Notices = nil
	return a
}

// steps sends messages up to the first error.
func steps(c *pgconn.PgConn, messages ...string) instance.Answer {
	var all instance.Answer
	for _, m := range messages {
		a := instance.Ask(c, m)
		all.Results = append(all.Results, a.Results...)
		if a.Err != "" {
			all.Err, all.Code, all.Message = a.Err, a.Code, a.Message
			break
		}
	}
	return all
}

// what is the same in two right answers.
func (k randomCase) what(a instance.Answer) string {
	if k.ordered && a.Err == "" && k.way != "cursor" {
		return a.String()
	}
	return a.Multiset()
}

const cancelled = "57014"

// mostRows bounds answers: some policies have limits.
const mostRows = 2000

// rows is how many rows a case gives; what is asked behind a write does not count.
func (k randomCase) rows(a instance.Answer) int {
	n := 0
	for i, r := range a.Results {
		if k.way != "write" || i < 2 {
			n += len(r.Rows)
		}
	}
	return n
}

// worthwhile makes a statement and what the copy answers. One of which there are no rows is mostly made anew, as no
// rule can leave one out, and so is one that fails; and many of those that row security answers as they stand.
func (r *randomRun) worthwhile(a *author) (randomCase, instance.Answer) {
	for {
		k := a.statement()
		if groupingSets(k.sql) && strings.Contains(k.sql, "SELECT DISTINCT") { // see limit
			continue
		}
		if r.Mode.Rewrite.UsesSignedPath() && a.in(60) {
			if result := r.judged(k); result != nil && result.Path == verdict.PathRowSecurity && len(result.SearchedByKey) == 0 && !result.UseIndex {
				continue
			}
		}
		want := send(r.filtered, k)
		if n := k.rows(want); want.Code != cancelled && n <= mostRows && (n > 0 || a.in(25)) {
			return k, want
		}
	}
}

func (r *randomRun) try(k randomCase, want instance.Answer) {
	r.RandomReport.Cases++
	got := r.ask(k)
	r.Ways[k.way]++
	switch {
	case got.Code == cancelled:
		r.Slow++
		r.t.Logf("slow through the proxy: %s", k)
		return
	case r.Mode.RowSecurity == rls.SealOnly && (got.Err != "" || want.Err != ""):
		r.Refused++
		return
	case want.Err != "" && got.Code == want.Code:
		r.Failed++
		r.Failures[normal(want.Message)]++
		return
	case k.way == "write" && (want.Code == "23502" && got.Err == "" ||
		strings.Contains(want.Err, "PL/pgSQL function") || strings.Contains(got.Message, "the new row is not one that you may write")):
		// The proxy stamps what an INSERT leaves out; the copy has not all columns that a trigger may write; and what
		// the policy lets be written the copy does not know.
		r.Constrained++
		return
	case want.Err != "" && got.Err != "":
		r.FailedOtherwise++
		return
	case got.Refused(), got.PlanNotShown():
		r.refused(k, got)
		return
	case want.Err == "" && got.Code == "42803" && strings.Contains(got.Message, "must appear in the GROUP BY clause"):
		// What a key that stands for a row means of a narrowed table is limited (docs/reference/refused-statements.md).
		r.refused(k, got)
		return
	case k.way == "write" && strings.HasPrefix(got.Code, "23"):
		r.Constrained++
		return
	}
	if k.what(got) == k.what(want) {
		r.Answered++
		if k.rows(got) == 0 {
			r.Empty++
		}
		r.classify(k)
		if k.what(send(r.unfiltered, k)) != k.what(want) {
			r.Sensitive++
		}
		return
	}
	if r.open(k, got) {
		r.Open++
		r.sample("open by SQL", k.sql)
		return
	}
	r.Differences++
	if r.First == 0 {
		r.First = r.RandomReport.Cases
	}
	if r.Differences <= 8 {
		number := r.RandomReport.Cases
		small := r.shrink(k)
		r.t.Errorf("%s, %s, seed %d, case %d: the answer is not that of the visible rows alone\n%s\nshrunk "+
			"to\n%s\nagent:\n%s\nfiltered copy:\n%s\nas\n%s", r.Schema.Name, r.Mode.Name, r.Seed, number, k, small,
			instance.Shorten(small.what(r.ask(small))), instance.Shorten(small.what(send(r.filtered, small))), r.rewritten(small))
	}
}

// refused notes a refusal.
func (r *randomRun) refused(k randomCase, got instance.Answer) {
	why := normal(got.Message)
	r.Refused++
	r.Refusals[why]++
	r.sample(why, k.sql)
}

// sample keeps the shortest statement of each kind.
func (r *RandomReport) sample(what, sql string) {
	if r.Samples == nil {
		r.Samples = map[string]string{}
	}
	if old, ok := r.Samples[what]; !ok || len(sql) < len(old) {
		r.Samples[what] = sql
	}
}

func (r *randomRun) rewritten(k randomCase) string {
	result, refused := r.rewriter.Rewrite(k.sql, k.way == "extended" || k.way == "prepared")
	if refused != nil {
		return refused.Message
	}
	return result.Text
}

func (k randomCase) String() string {
	text := k.way + ": " + k.sql
	for i, p := range k.params {
		text += fmt.Sprintf("\n  $%d (type %d):", i+1, p.oid)
		for _, v := range p.values {
			if v == nil {
				text += " NULL"
			} else {
				text += " " + literal(*v)
			}
		}
	}
	return text
}

func (r *randomRun) ask(k randomCase) instance.Answer {
	got := send(r.agent, k)
	if r.agent.IsClosed() {
		r.connect()
	}
	return got
}

// plans lead the planner of the copy other ways: where they lead to other answers, several are right.
var otherPlans = []string{"enable_hashagg = off", "enable_sort = off", "enable_nestloop = off",
	"enable_hashjoin = off; SET enable_mergejoin = off", "enable_seqscan = off",
	"enable_indexscan = off; SET enable_bitmapscan = off", "from_collapse_limit = 1; SET join_collapse_limit = 1",
	"enable_material = off; SET enable_memoize = off"}

// open tells whether PostgreSQL may give that answer by another plan: it does, or its answers differ among themselves,
// in rows or in whether there is an error.
func (r *randomRun) open(k randomCase, got instance.Answer) bool {
	if again := r.ask(k); k.what(again) != k.what(got) {
		return true // not the same twice
	}
	first := k.what(send(r.filtered, k))
	for _, plan := range otherPlans {
		instance.Ask(r.filtered, "SET "+plan)
		a := send(r.filtered, k)
		for _, part := range strings.Split(plan, "; SET ") {
			instance.Ask(r.filtered, "RESET "+strings.Fields(part)[0])
		}
		if a.Code != cancelled && k.what(a) != first {
			return true
		}
	}
	return false
}

// shrink takes tokens out as long as the answers differ.
func (r *randomRun) shrink(k randomCase) randomCase {
	steps := 0
	differs := func(k randomCase) bool {
		if steps++; steps > 500 {
			return false
		}
		want := send(r.filtered, k)
		if want.Err != "" {
			return false
		}
		got := r.ask(k)
		return !got.Refused() && k.what(got) != k.what(want) && got.Code != cancelled && !r.open(k, got)
	}
	if want := send(r.filtered, k); want.Err != "" {
		return k
	}
	if len(k.params) == 0 {
		if simple := (randomCase{sql: k.sql, way: "simple", ordered: k.ordered}); k.way != "write" && differs(simple) {
			k = simple
		}
	}
	source, refused := sqltext.Scan(k.sql)
	if refused != nil {
		return k
	}
	var tokens []string
	for _, token := range source.Tokens {
		tokens = append(tokens, source.String(token))
	}
	for size := len(tokens) / 2; size >= 1; size /= 2 {
		for at := 0; at+size <= len(tokens); {
			rest := slices.Concat(tokens[:at], tokens[at+size:])
			smaller := k // what is ordered stays so
			smaller.sql = strings.Join(rest, " ")
			if differs(smaller) {
				k, tokens = smaller, rest
			} else {
				at++
			}
		}
	}
	return k
}

// judged is what becomes of a case's statement; nil: it is refused.
func (r *randomRun) judged(k randomCase) *rewrite.Result {
	sql, extended := k.sql, k.way == "extended" || k.way == "prepared"
	switch k.way {
	case "copy":
		sql = "COPY (" + sql + ") TO STDOUT"
	case "cursor":
		sql = "DECLARE c CURSOR FOR " + sql
	case "execute":
		sql = "PREPARE asked AS " + sql
	}
	result, refused := r.rewriter.Rewrite(sql, extended)
	if refused != nil {
		return nil
	}
	return result
}

// classify counts the forms that a statement was answered in.
func (r *randomRun) classify(k randomCase) {
	result := r.judged(k)
	if result == nil {
		return
	}
	switch {
	case result.Path == verdict.PathSigned && strings.Contains(result.Text, " OFFSET 0) AS "):
		r.Forms["signed path, found first"]++
	case result.Path == verdict.PathSigned && result.AboveFenceReason != "":
		r.Forms["signed path, outputs"]++
	case result.Path == verdict.PathSigned:
		r.Forms["signed path"]++
	case len(result.SearchedByKey) > 0:
		r.Forms["found by key"]++
	default:
		r.Forms["row security"]++
		r.Reasons["no signed path: "+normal(result.RowSecurityReason)]++
	}
	if result.HardenedReason != "" {
		r.Reasons["hardened: "+normal(result.HardenedReason)]++
	}
	for name, is := range map[string]bool{"hint use_hash": result.UseHash, "hint use_index": result.UseIndex,
		"hint estimate_rows": len(result.EstimateRows) > 0, "hardened plan": result.HardenedReason != "", "formed parameters": result.ExpectsForms,
		"grouped cells": strings.Contains(result.Text, "pgconsent_cells"), "guard": strings.Contains(result.Text,
			"CASE WHEN") && !strings.Contains(k.sql, "CASE WHEN")} {
		if is {
			r.Forms[name]++
		}
	}
}

var detail = regexp.MustCompile(`"[^"]*"|\d+|'[^']*'`)

// normal leaves the names out of a message.
func normal(message string) string {
	m := detail.ReplaceAllString(message, "…")
	return m[:min(len(m), 110)]
}

func (r *randomRun) progress(end bool) {
	if r.Progress == nil || !end && time.Since(r.shown) < 15*time.Second {
		return
	}
	r.shown = time.Now()
	fmt.Fprintf(r.Progress, "%s, %s: %d/%d  %.0f/s  %d differences  %d refused  %d answered\n", r.Schema.Name,
		r.Mode.Name, r.RandomReport.Cases, r.RandomConfig.Cases, float64(r.RandomReport.Cases)/time.Since(r.began).
			Seconds(), r.Differences, r.Refused, r.Answered)
}
