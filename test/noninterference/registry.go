package noninterference

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// asking is what a rule asks of the consent registry about the subjects in a column, of one or of a list.
type asking struct {
	list             bool
	category         string
	grantees         []string // attributes
	row, contexts    bool     // scopes besides everything and the table
	since            bool
	days             int // of a countdown; 0: none
	streams, purpose string
	of, fold         *table // whose rows, and the records
}

// fold is the registry as policies read it. No policy lists it, so every record is hidden; what it decides is not.
func fold() *table {
	t := &table{name: "consent_current", keys: 3}
	for _, c := range []string{"subject", "grantee", "scope", "number", "state", "stream", "categories", "purposes",
		"expires_at", "decay_from", "decay_categories", "decayed_before", "decayed_days", "void_before"} {
		t.columns = append(t.columns, column{name: c, kind: "code", ruled: true})
	}
	return t
}

// byRegistry lets the registry decide about the rows of some tables.
func (s *schema) byRegistry(r *rand.Rand, wide bool) {
	if !wide && r.IntN(3) > 0 {
		return
	}
	s.registry = fold()
	if wide {
		for _, name := range []string{"drafts", "calls"} {
			t := s.table(name)
			t.rule = s.asks(r, t, true)
			s.tables = append(s.tables, t)
		}
		return
	}
	for _, t := range s.tables {
		switch {
		case t.rule == nil || t.link() != nil || strings.HasPrefix(t.name, "link") || r.IntN(2) == 0:
		case t.rule.kind == "open" || r.IntN(2) == 0:
			t.rule = s.asks(r, t, true)
		default:
			t.rule = &rule{kind: pick(r, "any", "all"), parts: []*rule{t.rule, s.asks(r, t, true)}}
		}
	}
}

// asks draws what is asked of the registry about a row of t, of lists too.
func (s *schema) asks(r *rand.Rand, t *table, lists bool) *rule {
	a := asking{list: r.IntN(3) == 0 && lists, row: r.IntN(2) == 0 &&
		t.keys == 1, contexts: r.IntN(2) == 0, since: r.IntN(2) == 0, of: t, fold: s.registry}
	out := &rule{kind: "registry", column: "who", word: t.columns[0].name, registry: &a}
	if a.list {
		out.column = "heard"
		t.need("heard", "arr")
	}
	t.need(out.column, "code")
	if r.IntN(2) == 0 {
		a.category = pick(r, "ESSENTIAL", "BEHAVIORAL", "ESSENTIAL/x")
	}
	if r.IntN(3) == 0 {
		a.purpose = "care"
	}
	if r.IntN(2) == 0 {
		a.grantees = []string{"team", "groups"}[r.IntN(2):]
	}
	if r.IntN(6) == 0 {
		a.streams = pick(r, "TEMPORARY", "PARTNERED")
	}
	if a.since {
		t.need("since", "time")
		a.days = pick(r, 0, 30, 90)
	}
	return out
}

func (r *rule) registryYAML() string {
	a := r.registry
	var b strings.Builder
	add := func(format string, args ...any) {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, format, args...)
	}
	if a.category != "" {
		add("category: %s", a.category)
	}
	if a.purpose != "" {
		add("purpose: %s", a.purpose)
	}
	if a.streams != "" {
		add("stream: %s", a.streams)
	}
	if len(a.grantees) > 0 {
		add("grantee: [%s]", strings.Join(a.grantees, ", "))
	}
	var scopes []string
	if a.row {
		scopes = append(scopes, fmt.Sprintf("row: %q", r.word))
	}
	if a.contexts {
		scopes = append(scopes, "context: groups")
	}
	if len(scopes) > 0 {
		add("scope: { %s }", strings.Join(scopes, ", "))
	}
	if a.since {
		add("since: since")
	}
	if a.days > 0 {
		add("decay: { less_than: %d days }", a.days)
	}
	subject := "subject"
	if a.list {
		subject = "subjects"
	}
	return fmt.Sprintf("{ consent: { %s: %q, registry: { %s } } }", subject, r.column, b.String())
}

// persons are those whom records are of.
var persons = []string{"p1", "p2", "p3", "p4"}

const instantForm = "2006-01-02 15:04:05+00"

var started = time.Now().UTC().Truncate(time.Second)

// daysAgo is a time so many days ago, to the hour's half so that no day ends while a test runs.
func daysAgo(n int) string {
	return started.Add(-time.Duration(n)*24*time.Hour - 12*time.Hour).Format(instantForm)
}

// newRecord draws what the registry may say of somebody.
func (s *schema) newRecord(r *rand.Rand) row {
	scopes := []string{"*", "*", "*", "*", "*", "*", "ctx:x", "ctx:red", "ctx:blue", "x"}
	for _, t := range s.tables {
		scopes = append(scopes, "table:"+t.name, "row:"+t.name+":"+keyValue(t.columns[0].kind, r.IntN(rowsPerTable)))
	}
	out := row{
		"subject": pick(r, persons...), "grantee": pick(r, "*", "*", "*", "red", "blue", "x"), "scope": pick(r,
			scopes...), "number": fmt.Sprint(1 + r.IntN(99)),
		"state": pick(r, "given", "given", "given", "given", "given", "given", "given", "given", "given",
			"withdrawn", "revoked", "refused", "expired", "requested"),
		"categories": pick(r, "{ESSENTIAL}", "{ESSENTIAL,BEHAVIORAL}", "{BEHAVIORAL}", "{ESSENTIAL/x}", "{}",
			"{ESSENTIAL,BEHAVIORAL,IMPROVEMENT}"), "purposes": pick(r, "{}", "{care}", "{care,sale}", "{care}"),
	}
	maybe := func(column string, of int, values ...string) {
		if r.IntN(of) == 0 {
			out[column] = pick(r, values...)
		}
	}
	maybe("expires_at", 3, "2099-01-01 00:00:00+00", "2099-01-01 00:00:00+00", daysAgo(0))
	maybe("void_before", 6, daysAgo(0), daysAgo(40), daysAgo(200))
	maybe("decayed_before", 6, daysAgo(0), daysAgo(100))
	maybe("decayed_days", 2, "0", "29", "30", "90")
	if r.IntN(3) > 0 {
		out["stream"] = pick(r, "TEMPORARY", "PARTNERED", "PARTNERED", "ANONYMOUS")
	}
	if out["stream"] == "ANONYMOUS" && r.IntN(3) > 0 {
		out["decay_from"] = pick(r, daysAgo(0), daysAgo(29), daysAgo(30), daysAgo(89), daysAgo(90))
		maybe("decay_categories", 2, "{ESSENTIAL}", "{ESSENTIAL,BEHAVIORAL}", "{}")
	}
	return out
}

// byRecords is the model: everybody in the column has a record that says yes to what is asked, and none that says no.
func (d data) byRecords(r *rule, at row, caller map[string]string) bool {
	value, known := at[r.column]
	if !known {
		return false
	}
	subjects := []string{value}
	if r.registry.list {
		subjects = elements(value)
	}
	for _, subject := range subjects {
		if !d.agrees(r, at, caller, subject) {
			return false
		}
	}
	return true
}

func (d data) agrees(r *rule, at row, caller map[string]string, subject string) bool {
	a, t := r.registry, r.registry.of
	mine := func(attribute string) []string {
		if strings.HasPrefix(caller[attribute], "{") {
			return elements(caller[attribute])
		}
		return []string{caller[attribute]}
	}
	about := func(record row) bool {
		to := record["grantee"] == "*"
		for _, attribute := range a.grantees {
			to = to || slices.Contains(mine(attribute), record["grantee"])
		}
		scope := record["scope"]
		context, isContext := strings.CutPrefix(scope, "ctx:")
		return to && record["subject"] == subject && (scope == "*" || scope == "table:"+t.name || a.row && scope == "row:"+t.name+":"+at[r.word] ||
			a.contexts && isContext && slices.Contains(mine("groups"), context))
	}
	said := func(record row, column string) (time.Time, bool) {
		v, ok := record[column]
		at, _ := time.Parse(instantForm, v)
		return at, ok
	}
	covers := func(list, word string) bool {
		top, _, _ := strings.Cut(word, "/")
		return slices.Contains(elements(list), word) || slices.Contains(elements(list), top)
	}
	for _, yes := range d[a.fold] {
		if !about(yes) || yes["state"] != "given" {
			continue
		}
		if expires, ok := said(yes, "expires_at"); ok && !expires.After(started) {
			continue
		}
		since, dated := said(at, "since")
		began, counting := said(yes, "decay_from")
		decaying := a.since && a.days > 0 && counting && dated && since.Before(began)
		stream, streamed := yes["stream"]
		switch {
		case a.streams != "" && stream == a.streams, a.streams == "" && (!streamed || stream == "TEMPORARY" || stream == "PARTNERED"):
		case stream == "ANONYMOUS" && decaying:
		default:
			continue
		}
		listed := yes["categories"]
		if a.since && a.days > 0 && stream == "ANONYMOUS" {
			listed = yes["decay_categories"]
		}
		if a.category != "" && !covers(listed, a.category) || a.purpose != "" && !covers(yes["purposes"], a.purpose) {
			continue
		}
		if a.since {
			if void, ok := said(yes, "void_before"); ok && (!dated || since.Before(void)) {
				continue
			}
			if counting && (!dated || since.Before(began) && !(decaying && started.Sub(began) < time.Duration(a.days)*24*time.Hour)) {
				continue
			}
			days := 0
			_, _ = fmt.Sscan(yes["decayed_days"], &days)
			if before, ok := said(yes, "decayed_before"); ok && (!dated || since.Before(before) && !(a.days > 0 && days < a.days)) {
				continue
			}
		}
		if !slices.ContainsFunc(d[a.fold], func(no row) bool {
			var first, second int
			_, _ = fmt.Sscan(no["number"], &first)
			_, _ = fmt.Sscan(yes["number"], &second)
			return about(no) && slices.Contains([]string{"refused", "withdrawn", "revoked"}, no["state"]) &&
				!(no["grantee"] == "*" && no["scope"] == "*" && first < second)
		}) {
			return true
		}
	}
	return false
}

// loadRegistry replaces the records. Who speaks for whom is in there as well, and decides about no row.
func (s *schema) loadRegistry(d data) string {
	if s.registry == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString("DELETE FROM pgconsent.consent_current; DELETE FROM pgconsent.consent_guardian;\n")
	for i, record := range d[s.registry] {
		var names, values []string
		for _, c := range s.registry.columns {
			if v, ok := record[c.name]; ok {
				names, values = append(names, c.name), append(values, catalog.QuoteLiteral(v))
			}
		}
		fmt.Fprintf(&b, "INSERT INTO pgconsent.consent_current (%s) VALUES (%s);\n", strings.Join(names, ", "), strings.Join(values, ", "))
		fmt.Fprintf(&b, "INSERT INTO pgconsent.consent_guardian VALUES (%s, %s, %d) ON CONFLICT DO NOTHING;\n",
			catalog.QuoteLiteral(record["subject"]), catalog.QuoteLiteral("g"+record["number"]), i+1)
	}
	return b.String()
}
