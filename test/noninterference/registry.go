package noninterference

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// registryQuestion is what a rule requires of the consent registry for the subjects of a row. A column of the row has
// the id of one subject, or a list of ids.
type registryQuestion struct {
	subjectsAreList             bool
	category                    string
	grantees                    []string // attributes of the session that name grantees
	rowScope, contextScopes     bool     // consents for a row count; consents for a context count
	sinceColumn                 bool
	countdownDays               int // how many days of a countdown the rows stay visible; 0: none
	streams, purpose            string
	subjectTable, registryTable *table // subjectTable is the rule's table; registryTable has the records
}

// newRegistryTable returns the table of registry records, as rules read it. The policy does not list the table, so that
// agents see no record. But records may decide whether a row is visible, and so must not differ between twins in that.
func newRegistryTable() *table {
	t := &table{name: "consent_current", keyCount: 3}
	for _, c := range []string{"subject", "grantee", "scope", "number", "state", "stream", "categories", "purposes",
		"expires_at", "decay_from", "decay_categories", "decayed_before", "decayed_days", "void_before"} {
		t.columns = append(t.columns, column{name: c, kind: "code", isReadByRule: true})
	}
	return t
}

// addRegistryRules adds rules that require a consent in the registry to some tables.
func (s *schema) addRegistryRules(r *rand.Rand, everyKind bool) {
	if !everyKind && r.IntN(3) > 0 {
		return
	}
	s.registry = newRegistryTable()
	if everyKind {
		for _, name := range []string{"drafts", "calls"} {
			t := s.tableNamed(name)
			t.rule = s.newRegistryRule(r, t, true)
			s.tables = append(s.tables, t)
		}
		return
	}
	for _, t := range s.tables {
		switch {
		case t.rule == nil || t.linkTable() != nil || strings.HasPrefix(t.name, "link") || r.IntN(2) == 0:
		case t.rule.kind == "open" || r.IntN(2) == 0:
			t.rule = s.newRegistryRule(r, t, true)
		default:
			t.rule = &rule{kind: pick(r, "any", "all"), parts: []*rule{t.rule, s.newRegistryRule(r, t, true)}}
		}
	}
}

// newRegistryRule makes a random rule that requires a consent in the registry for rows of t. If allowLists is set, the
// subjects may be in a list.
func (s *schema) newRegistryRule(r *rand.Rand, t *table, allowLists bool) *rule {
	question := registryQuestion{subjectsAreList: r.IntN(3) == 0 && allowLists, rowScope: r.IntN(2) == 0 &&
		t.keyCount == 1, contextScopes: r.IntN(2) == 0, sinceColumn: r.IntN(2) == 0, subjectTable: t, registryTable: s.registry}
	out := &rule{kind: "registry", column: "who", sharedWord: t.columns[0].name, registryQuestion: &question}
	if question.subjectsAreList {
		out.column = "heard"
		t.addRuleColumn("heard", "arr")
	}
	t.addRuleColumn(out.column, "code")
	if r.IntN(2) == 0 {
		question.category = pick(r, "ESSENTIAL", "BEHAVIORAL", "ESSENTIAL/x")
	}
	if r.IntN(3) == 0 {
		question.purpose = "care"
	}
	if r.IntN(2) == 0 {
		question.grantees = []string{"team", "groups"}[r.IntN(2):]
	}
	if r.IntN(6) == 0 {
		question.streams = pick(r, "TEMPORARY", "PARTNERED")
	}
	if question.sinceColumn {
		t.addRuleColumn("since", "time")
		question.countdownDays = pick(r, 0, 30, 90)
	}
	return out
}

func (r *rule) registryYAML() string {
	a := r.registryQuestion
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
	if a.rowScope {
		scopes = append(scopes, fmt.Sprintf("row: %q", r.sharedWord))
	}
	if a.contextScopes {
		scopes = append(scopes, "context: groups")
	}
	if len(scopes) > 0 {
		add("scope: { %s }", strings.Join(scopes, ", "))
	}
	if a.sinceColumn {
		add("since: since")
	}
	if a.countdownDays > 0 {
		add("decay: { less_than: %d days }", a.countdownDays)
	}
	subject := "subject"
	if a.subjectsAreList {
		subject = "subjects"
	}
	return fmt.Sprintf("{ consent: { %s: %q, registry: { %s } } }", subject, r.column, b.String())
}

// personIDs are the ids of persons about whom the registry has records.
var personIDs = []string{"p1", "p2", "p3", "p4"}

const timeLayout = "2006-01-02 15:04:05+00"

var startTime = time.Now().UTC().Truncate(time.Second)

// daysAgo returns the time n and a half days ago, so that the number of full days does not change during a test.
func daysAgo(n int) string {
	return startTime.Add(-time.Duration(n)*24*time.Hour - 12*time.Hour).Format(timeLayout)
}

// newRegistryRecord makes a random record about a person.
func (s *schema) newRegistryRecord(r *rand.Rand) row {
	scopes := []string{"*", "*", "*", "*", "*", "*", "ctx:x", "ctx:red", "ctx:blue", "x"}
	for _, t := range s.tables {
		scopes = append(scopes, "table:"+t.name, "row:"+t.name+":"+keyValue(t.columns[0].kind, r.IntN(rowsPerTable)))
	}
	out := row{
		"subject": pick(r, personIDs...), "grantee": pick(r, "*", "*", "*", "red", "blue", "x"), "scope": pick(r,
			scopes...), "number": fmt.Sprint(1 + r.IntN(99)),
		"state": pick(r, "given", "given", "given", "given", "given", "given", "given", "given", "given",
			"withdrawn", "revoked", "refused", "expired", "requested"),
		"categories": pick(r, "{ESSENTIAL}", "{ESSENTIAL,BEHAVIORAL}", "{BEHAVIORAL}", "{ESSENTIAL/x}", "{}",
			"{ESSENTIAL,BEHAVIORAL,IMPROVEMENT}"), "purposes": pick(r, "{}", "{care}", "{care,sale}", "{care}"),
	}
	maybe := func(column string, oneIn int, values ...string) {
		if r.IntN(oneIn) == 0 {
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

// registryShows computes the result of a registry rule in the model. Each subject in the column must have a record that
// consents as the rule requires, and no record that refuses.
func (d data) registryShows(r *rule, at row, caller map[string]string) bool {
	value, isSet := at[r.column]
	if !isSet {
		return false
	}
	subjects := []string{value}
	if r.registryQuestion.subjectsAreList {
		subjects = elements(value)
	}
	for _, subject := range subjects {
		if !d.subjectConsents(r, at, caller, subject) {
			return false
		}
	}
	return true
}

func (d data) subjectConsents(r *rule, at row, caller map[string]string, subject string) bool {
	question, t := r.registryQuestion, r.registryQuestion.subjectTable
	callerValues := func(attribute string) []string {
		if strings.HasPrefix(caller[attribute], "{") {
			return elements(caller[attribute])
		}
		return []string{caller[attribute]}
	}
	isAbout := func(record row) bool {
		isForCaller := record["grantee"] == "*"
		for _, attribute := range question.grantees {
			isForCaller = isForCaller || slices.Contains(callerValues(attribute), record["grantee"])
		}
		scope := record["scope"]
		context, isContext := strings.CutPrefix(scope, "ctx:")
		return isForCaller && record["subject"] == subject && (scope == "*" || scope == "table:"+t.name ||
			question.rowScope && scope == "row:"+t.name+":"+at[r.sharedWord] ||
			question.contextScopes && isContext && slices.Contains(callerValues("groups"), context))
	}
	timeOf := func(record row, column string) (time.Time, bool) {
		v, ok := record[column]
		at, _ := time.Parse(timeLayout, v)
		return at, ok
	}
	covers := func(list, word string) bool {
		top, _, _ := strings.Cut(word, "/")
		return slices.Contains(elements(list), word) || slices.Contains(elements(list), top)
	}
	for _, consent := range d[question.registryTable] {
		if !isAbout(consent) || consent["state"] != "given" {
			continue
		}
		if expires, ok := timeOf(consent, "expires_at"); ok && !expires.After(startTime) {
			continue
		}
		since, hasSince := timeOf(at, "since")
		decayStart, hasDecay := timeOf(consent, "decay_from")
		decaying := question.sinceColumn && question.countdownDays > 0 && hasDecay && hasSince && since.Before(decayStart)
		stream, hasStream := consent["stream"]
		switch {
		case question.streams != "" && stream == question.streams,
			question.streams == "" && (!hasStream || stream == "TEMPORARY" || stream == "PARTNERED"):
		case stream == "ANONYMOUS" && decaying:
		default:
			continue
		}
		categories := consent["categories"]
		if question.sinceColumn && question.countdownDays > 0 && stream == "ANONYMOUS" {
			categories = consent["decay_categories"]
		}
		if question.category != "" && !covers(categories, question.category) ||
			question.purpose != "" && !covers(consent["purposes"], question.purpose) {
			continue
		}
		if question.sinceColumn {
			if voidBefore, ok := timeOf(consent, "void_before"); ok && (!hasSince || since.Before(voidBefore)) {
				continue
			}
			if hasDecay && (!hasSince ||
				since.Before(decayStart) && !(decaying && startTime.Sub(decayStart) < time.Duration(question.countdownDays)*24*time.Hour)) {
				continue
			}
			days := 0
			_, _ = fmt.Sscan(consent["decayed_days"], &days)
			if before, ok := timeOf(consent, "decayed_before"); ok && (!hasSince ||
				since.Before(before) && !(question.countdownDays > 0 && days < question.countdownDays)) {
				continue
			}
		}
		if !slices.ContainsFunc(d[question.registryTable], func(refusal row) bool {
			var first, second int
			_, _ = fmt.Sscan(refusal["number"], &first)
			_, _ = fmt.Sscan(consent["number"], &second)
			return isAbout(refusal) && slices.Contains([]string{"refused", "withdrawn", "revoked"}, refusal["state"]) &&
				!(refusal["grantee"] == "*" && refusal["scope"] == "*" && first < second)
		}) {
			return true
		}
	}
	return false
}

// loadRegistry returns the SQL that replaces the records of the registry. It also inserts guardians, which must not
// affect any row.
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
