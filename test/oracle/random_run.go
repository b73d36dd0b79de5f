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

// RandomConfig says how many cases Random tries, and how.
type RandomConfig struct {
	Schema        Schema
	Mode          instance.Mode
	AsLargeTables bool // make the tables look large to the planner and the rewriter
	Cases         int
	Seed          uint64
	Progress      io.Writer // gets a line about the progress each second; nil: no progress is reported
}

// RandomReport has the counts of cases by result.
type RandomReport struct {
	Cases, Answered, Refused, Failed, FailedOtherwise, DependsOnHidden, Empty, OrderUndefined, RefusedByConstraint, Slow, Differences int
	// number of the first case with a difference; 0: there is none
	FirstDifference                                               int
	ByRewriteForm, BySendMode, Refusals, RefusalReasons, Failures map[string]int
	// the shortest refused statement by the message of the refusal
	ShortestRefused map[string]string
}

func (r *RandomReport) String() string {
	text := fmt.Sprintf("%d cases: %d answered, %d of them sensitive to hidden rows, %d with no row; %d refused; "+
		"%d fail on both sides, and %d with another error; %d open by SQL, %d writes not comparable, %d too slow; %d differences",
		r.Cases, r.Answered, r.DependsOnHidden, r.Empty, r.Refused, r.Failed, r.FailedOtherwise, r.OrderUndefined, r.RefusedByConstraint, r.Slow, r.Differences)
	for _, counts := range []struct {
		title   string
		numbers map[string]int
	}{{"sent", r.BySendMode}, {"forms", r.ByRewriteForm}, {"row security and hardened plans", r.RefusalReasons}, {"refused", r.Refusals}, {"fail", r.Failures}} {
		names := slices.SortedFunc(maps.Keys(counts.numbers), func(x, y string) int { return counts.numbers[y] - counts.numbers[x] })
		text += "\n  " + counts.title + ":"
		for i, name := range names {
			if i == 24 {
				break
			}
			text += fmt.Sprintf(" %s %d;", name, counts.numbers[name])
		}
	}
	for why, sql := range r.ShortestRefused {
		text += "\n  " + why + ":\n    " + sql
	}
	return text
}

// Add adds the counts of another report.
func (r *RandomReport) Add(o *RandomReport) {
	r.Cases, r.Answered, r.Refused, r.Failed, r.FailedOtherwise, r.DependsOnHidden, r.Empty = r.Cases+o.Cases, r.Answered+
		o.Answered, r.Refused+o.Refused, r.Failed+o.Failed, r.FailedOtherwise+o.FailedOtherwise, r.DependsOnHidden+o.DependsOnHidden, r.Empty+o.Empty
	r.OrderUndefined, r.RefusedByConstraint = r.OrderUndefined+o.OrderUndefined, r.RefusedByConstraint+o.RefusedByConstraint
	r.Slow, r.Differences = r.Slow+o.Slow, r.Differences+o.Differences
	for _, m := range []struct{ into, from *map[string]int }{
		{&r.ByRewriteForm, &o.ByRewriteForm}, {&r.BySendMode, &o.BySendMode},
		{&r.Refusals, &o.Refusals}, {&r.RefusalReasons, &o.RefusalReasons}, {&r.Failures, &o.Failures}} {
		if *m.into == nil {
			*m.into = map[string]int{}
		}
		for k, n := range *m.from {
			(*m.into)[k] += n
		}
	}
	for why, sql := range o.ShortestRefused {
		r.keepShortest(why, sql)
	}
}

type randomRun struct {
	RandomConfig
	*RandomReport
	t                       testing.TB
	proxy                   *instance.Proxy
	agent                   *pgconn.PgConn
	filtered, unfiltered    *pgconn.PgConn
	rewriter                *rewrite.Rewriter
	startedAt, lastProgress time.Time
}

// Random sends random statements through the proxy, and compares the answers with those of the filtered copy.
func Random(t testing.TB, cfg RandomConfig) *RandomReport {
	t.Helper()
	scope := &instance.Scope{TB: t}
	defer scope.End()
	s := cfg.Schema
	served := s.BehindProxy(scope)
	filtered, unfiltered := s.Filtered(scope), s.Database(scope)
	for _, db := range []*pgtest.DB{served.DB, filtered, unfiltered} {
		instance.Ask(instance.ConnectSuperuser(scope, db), "CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA "+catalog.QuoteIdent(s.SearchPath[0]))
	}
	m := newStatementModel(scope, s, filtered, instance.Compile(scope, served, cfg.Mode).Policy)
	m.addIndexesAndSizes(scope, served.DB, s.SearchPath)
	migrated := instance.Migrate(scope, served, cfg.Mode)
	if cfg.AsLargeTables {
		// Planner and rewriter estimate the number of rows as the present number of pages, times the rows per page that
		// ANALYZE has found.
		instance.Exec(scope, served.DB,
			"ANALYZE; UPDATE pg_class SET reltuples = reltuples * 300 WHERE relkind IN ('r', 'm', 'p') AND "+
				"relnamespace::regnamespace::text !~ '^(pg_|information)' AND reltuples > 0")
	}
	r := &randomRun{RandomConfig: cfg, RandomReport: &RandomReport{
		ByRewriteForm: map[string]int{}, BySendMode: map[string]int{}, Refusals: map[string]int{}, RefusalReasons: map[string]int{},
		Failures: map[string]int{}, ShortestRefused: map[string]string{}}, t: scope}
	r.proxy = instance.Serve(scope, cfg.Mode, []instance.Database{served}, []instance.Agent{{Name: "agent", Database: s.Name, Attributes: s.Attributes}})
	r.connect()
	r.filtered, r.unfiltered = instance.ConnectSuperuser(scope, filtered), instance.ConnectSuperuser(scope, unfiltered)
	for _, c := range []*pgconn.PgConn{r.filtered, r.unfiltered} {
		instance.Ask(c, "SET search_path = "+strings.Join(quoteAll(s.SearchPath), ", ")+"; SET statement_timeout = '2s'")
	}
	var tables []*catalog.Relation
	for _, t := range migrated.Policy.Tables() {
		tables = append(tables, t.Relation)
	}
	sizes, err := pgcatalog.Sizes(context.Background(), served.DB.Connect(scope, "postgres"), tables)
	if err != nil {
		t.Fatal(err)
	}
	r.rewriter = rewrite.New(migrated.Snapshot, migrated.Policy, cfg.Mode.Rewrite).WithSizes(sizes)
	r.startedAt = time.Now()
	for n := range cfg.Cases {
		a := &statementAuthor{Rand: rand.New(rand.NewPCG(cfg.Seed, uint64(n))), model: m}
		k, want := r.nextCaseWithRows(a)
		r.tryCase(k, want)
		r.printProgress(false)
	}
	r.printProgress(true)
	if markers, _ := r.proxy.Tap().MarkerHits(); len(markers) > 0 {
		r.Differences++
		r.proxy.Tap().RequireNoMarker(t)
	}
	return r.RandomReport
}

func (r *randomRun) connect() {
	r.agent = r.proxy.Agent(r.t, "agent", r.Schema.Name)
	instance.Ask(r.agent, "SET statement_timeout = '180s'")
}

// sendCase sends a case, and returns the answer. It rolls back what the case has written.
func sendCase(c *pgconn.PgConn, k randomCase) instance.Answer {
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
	switch k.sendMode {
	case "extended":
		a = instance.AskDeclared(c, k.sql, types, values(0)...)
	case "prepared":
		a = instance.AskPrepared(c, k.sql, types, values(0), values(1), values(2), values(3))
	case "cursor":
		a = sendInOrder(c, "BEGIN", "DECLARE c CURSOR FOR "+k.sql, "FETCH 3 FROM c", "FETCH ALL FROM c")
		if len(a.Results) > 3 { // SQL does not define which rows the first FETCH returns
			a.Results[3].Rows = append(a.Results[3].Rows, a.Results[2].Rows...)
			a.Results = a.Results[3:]
			a.Results[0].Tag = ""
		}
	case "execute":
		a = sendInOrder(c, "PREPARE asked AS "+k.sql, "EXECUTE asked", "EXECUTE asked")
		instance.Ask(c, "DEALLOCATE ALL")
	case "copy":
		a = instance.AskCopy(c, "COPY ("+k.sql+") TO STDOUT")
	case "write":
		a = sendInOrder(c, "BEGIN", k.sql, k.queryAfterWrite)
		for _, result := range a.Results {
			for i, row := range result.Rows {
				result.Rows[i] = strings.ReplaceAll(row, "pgconsent_agent", "postgres") // a trigger writes the name of the role into this row
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

// sendInOrder sends messages one after the other until one fails.
func sendInOrder(c *pgconn.PgConn, messages ...string) instance.Answer {
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

// comparableText returns the part of an answer that is the same in all correct answers.
func (k randomCase) comparableText(a instance.Answer) string {
	if k.isOrdered && a.Err == "" && k.sendMode != "cursor" {
		return a.String()
	}
	return a.SortedString()
}

const queryCanceledCode = "57014"

// maxRows is the largest number of rows that an answer may have, since some policies limit it.
const maxRows = 2000

// rowCount returns how many rows the statement of a case returns, without the rows of the query after a write.
func (k randomCase) rowCount(a instance.Answer) int {
	n := 0
	for i, r := range a.Results {
		if k.sendMode != "write" || i < 2 {
			n += len(r.Rows)
		}
	}
	return n
}

// nextCaseWithRows returns a random case, and the answer of the filtered copy. It mostly discards statements that
// return no rows, since no rule can remove rows from their answers. It also discards statements that fail, and many
// that the rewriter leaves unchanged for row security.
func (r *randomRun) nextCaseWithRows(a *statementAuthor) (randomCase, instance.Answer) {
	for {
		k := a.newCase()
		if hasGroupingSets(k.sql) && strings.Contains(k.sql, "SELECT DISTINCT") { // PostgreSQL may order the rows of such a query wrongly: see withLimit
			continue
		}
		if r.Mode.Rewrite.UsesSignedPath() && a.chance(60) {
			if result := r.rewriteCase(k); result != nil && result.Path == verdict.PathRowSecurity && len(result.SearchedByKey) == 0 && !result.UseIndex {
				continue
			}
		}
		want := sendCase(r.filtered, k)
		if n := k.rowCount(want); want.Code != queryCanceledCode && n <= maxRows && (n > 0 || a.chance(25)) {
			return k, want
		}
	}
}

func (r *randomRun) tryCase(k randomCase, want instance.Answer) {
	r.RandomReport.Cases++
	got := r.sendToProxy(k)
	r.BySendMode[k.sendMode]++
	switch {
	case got.Code == queryCanceledCode:
		r.Slow++
		r.t.Logf("slow through the proxy: %s", k)
		return
	case r.Mode.RowSecurity == rls.SealOnly && (got.Err != "" || want.Err != ""):
		r.Refused++
		return
	case want.Err != "" && got.Code == want.Code:
		r.Failed++
		r.Failures[withoutNames(want.Message)]++
		return
	case k.sendMode == "write" && (want.Code == "23502" && got.Err == "" ||
		strings.Contains(want.Err, "PL/pgSQL function") || strings.Contains(got.Message, "the new row is not one that you may write")):
		// The proxy sets stamped columns that an INSERT leaves out. The copy does not have columns that a trigger may write,
		// and does not restrict which rows agents may write.
		r.RefusedByConstraint++
		return
	case want.Err != "" && got.Err != "":
		r.FailedOtherwise++
		return
	case got.Refused(), got.PlanNotShown():
		r.countRefusal(k, got)
		return
	case want.Err == "" && got.Code == "42803" && strings.Contains(got.Message, "must appear in the GROUP BY clause"):
		// If a table has hidden columns, GROUP BY with its primary key does not allow its other columns
		// (docs/reference/refused-statements.md).
		r.countRefusal(k, got)
		return
	case k.sendMode == "write" && strings.HasPrefix(got.Code, "23"):
		r.RefusedByConstraint++
		return
	}
	if k.comparableText(got) == k.comparableText(want) {
		r.Answered++
		if k.rowCount(got) == 0 {
			r.Empty++
		}
		r.countForms(k)
		if k.comparableText(sendCase(r.unfiltered, k)) != k.comparableText(want) {
			r.DependsOnHidden++
		}
		return
	}
	if r.isOrderUndefined(k, got) {
		r.OrderUndefined++
		r.keepShortest("open by SQL", k.sql)
		return
	}
	r.Differences++
	if r.FirstDifference == 0 {
		r.FirstDifference = r.RandomReport.Cases
	}
	if r.Differences <= 8 {
		number := r.RandomReport.Cases
		shrunk := r.shrink(k)
		r.t.Errorf("%s, %s, seed %d, case %d: the answer is not that of the visible rows alone\n%s\nshrunk "+
			"to\n%s\nagent:\n%s\nfiltered copy:\n%s\nas\n%s", r.Schema.Name, r.Mode.Name, r.Seed, number, k, shrunk,
			instance.Truncate(shrunk.comparableText(r.sendToProxy(shrunk))),
			instance.Truncate(shrunk.comparableText(sendCase(r.filtered, shrunk))), r.rewrittenText(shrunk))
	}
}

// countRefusal counts a refusal by its message.
func (r *randomRun) countRefusal(k randomCase, got instance.Answer) {
	why := withoutNames(got.Message)
	r.Refused++
	r.Refusals[why]++
	r.keepShortest(why, k.sql)
}

// keepShortest stores the statement if it is the shortest with this message.
func (r *RandomReport) keepShortest(message, sql string) {
	if r.ShortestRefused == nil {
		r.ShortestRefused = map[string]string{}
	}
	if old, ok := r.ShortestRefused[message]; !ok || len(sql) < len(old) {
		r.ShortestRefused[message] = sql
	}
}

func (r *randomRun) rewrittenText(k randomCase) string {
	result, refused := r.rewriter.Rewrite(k.sql, k.sendMode == "extended" || k.sendMode == "prepared")
	if refused != nil {
		return refused.Message
	}
	return result.Text
}

func (k randomCase) String() string {
	text := k.sendMode + ": " + k.sql
	for i, p := range k.params {
		text += fmt.Sprintf("\n  $%d (type %d):", i+1, p.oid)
		for _, v := range p.values {
			if v == nil {
				text += " NULL"
			} else {
				text += " " + stringLiteral(*v)
			}
		}
	}
	return text
}

func (r *randomRun) sendToProxy(k randomCase) instance.Answer {
	got := sendCase(r.agent, k)
	if r.agent.IsClosed() {
		r.connect()
	}
	return got
}

// otherPlanSettings make the planner of the filtered copy choose other plans. If these yield other answers, several
// answers are correct.
var otherPlanSettings = []string{"enable_hashagg = off", "enable_sort = off", "enable_nestloop = off",
	"enable_hashjoin = off; SET enable_mergejoin = off", "enable_seqscan = off",
	"enable_indexscan = off; SET enable_bitmapscan = off", "from_collapse_limit = 1; SET join_collapse_limit = 1",
	"enable_material = off; SET enable_memoize = off"}

// isOrderUndefined reports whether several answers are correct: the proxy gives another answer when asked again, or the
// filtered copy gives another answer with another plan.
func (r *randomRun) isOrderUndefined(k randomCase, got instance.Answer) bool {
	if again := r.sendToProxy(k); k.comparableText(again) != k.comparableText(got) {
		return true // the proxy gives another answer this time
	}
	firstAnswer := k.comparableText(sendCase(r.filtered, k))
	for _, plan := range otherPlanSettings {
		instance.Ask(r.filtered, "SET "+plan)
		a := sendCase(r.filtered, k)
		for _, part := range strings.Split(plan, "; SET ") {
			instance.Ask(r.filtered, "RESET "+strings.Fields(part)[0])
		}
		if a.Code != queryCanceledCode && k.comparableText(a) != firstAnswer {
			return true
		}
	}
	return false
}

// shrink removes tokens from a statement as long as the answers still differ.
func (r *randomRun) shrink(k randomCase) randomCase {
	steps := 0
	differs := func(k randomCase) bool {
		if steps++; steps > 500 {
			return false
		}
		want := sendCase(r.filtered, k)
		if want.Err != "" {
			return false
		}
		got := r.sendToProxy(k)
		return !got.Refused() && k.comparableText(got) != k.comparableText(want) && got.Code != queryCanceledCode && !r.isOrderUndefined(k, got)
	}
	if want := sendCase(r.filtered, k); want.Err != "" {
		return k
	}
	if len(k.params) == 0 {
		if simple := (randomCase{sql: k.sql, sendMode: "simple", isOrdered: k.isOrdered}); k.sendMode != "write" && differs(simple) {
			k = simple
		}
	}
	source, refused := sqltext.Scan(k.sql)
	if refused != nil {
		return k
	}
	var tokens []string
	for _, token := range source.Tokens {
		tokens = append(tokens, source.TokenText(token))
	}
	for size := len(tokens) / 2; size >= 1; size /= 2 {
		for at := 0; at+size <= len(tokens); {
			remaining := slices.Concat(tokens[:at], tokens[at+size:])
			smaller := k // isOrdered stays set, so that ordered answers are compared
			smaller.sql = strings.Join(remaining, " ")
			if differs(smaller) {
				k, tokens = smaller, remaining
			} else {
				at++
			}
		}
	}
	return k
}

// rewriteCase returns the rewriter's result for a case, and nil if the rewriter refuses it.
func (r *randomRun) rewriteCase(k randomCase) *rewrite.Result {
	sql, extended := k.sql, k.sendMode == "extended" || k.sendMode == "prepared"
	switch k.sendMode {
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

// countForms counts the forms in which the rewriter has written a statement.
func (r *randomRun) countForms(k randomCase) {
	result := r.rewriteCase(k)
	if result == nil {
		return
	}
	switch {
	case result.Path == verdict.PathSigned && strings.Contains(result.Text, " OFFSET 0) AS "):
		r.ByRewriteForm["signed path, found first"]++
	case result.Path == verdict.PathSigned && result.AboveFenceReason != "":
		r.ByRewriteForm["signed path, outputs"]++
	case result.Path == verdict.PathSigned:
		r.ByRewriteForm["signed path"]++
	case len(result.SearchedByKey) > 0:
		r.ByRewriteForm["found by key"]++
	default:
		r.ByRewriteForm["row security"]++
		r.RefusalReasons["no signed path: "+withoutNames(result.RowSecurityReason)]++
	}
	if result.HardenedReason != "" {
		r.RefusalReasons["hardened: "+withoutNames(result.HardenedReason)]++
	}
	for name, isUsed := range map[string]bool{"hint use_hash": result.UseHash, "hint use_index": result.UseIndex,
		"hint estimate_rows": len(result.EstimateRows) > 0, "hardened plan": result.HardenedReason != "", "formed parameters": result.ExpectsForms,
		"grouped cells": strings.Contains(result.Text, "pgconsent_cells"), "guard": strings.Contains(result.Text,
			"CASE WHEN") && !strings.Contains(k.sql, "CASE WHEN")} {
		if isUsed {
			r.ByRewriteForm[name]++
		}
	}
}

var namesAndLiterals = regexp.MustCompile(`"[^"]*"|\d+|'[^']*'`)

// withoutNames replaces names and literals in a message by "…".
func withoutNames(message string) string {
	m := namesAndLiterals.ReplaceAllString(message, "…")
	return m[:min(len(m), 110)]
}

func (r *randomRun) printProgress(isLast bool) {
	if r.Progress == nil || !isLast && time.Since(r.lastProgress) < 15*time.Second {
		return
	}
	r.lastProgress = time.Now()
	fmt.Fprintf(r.Progress, "%s, %s: %d/%d  %.0f/s  %d differences  %d refused  %d answered\n", r.Schema.Name,
		r.Mode.Name, r.RandomReport.Cases, r.RandomConfig.Cases, float64(r.RandomReport.Cases)/time.Since(r.startedAt).
			Seconds(), r.Differences, r.Refused, r.Answered)
}
