package predicate

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// CurrentConsents has the current records of the consent registry: the last one of each subject, grantee and scope.
var CurrentConsents = catalog.Name{Schema: Schema, Name: "consent_current"}

// registry is the table as the base migrations make it. No snapshot has it, since agents and policies cannot name it.
var registry = &catalog.Relation{
	Name: CurrentConsents, Kind: catalog.Table, PrimaryKey: []string{"subject", "grantee", "scope"},
	Columns: []catalog.Column{
		{Name: "subject", Type: "text", TypeOID: 25, NotNull: true}, {Name: "grantee", Type: "text", TypeOID: 25, NotNull: true},
		{Name: "scope", Type: "text", TypeOID: 25, NotNull: true}, {Name: "number", Type: "bigint", TypeOID: 20, NotNull: true},
		{Name: "state", Type: "text", TypeOID: 25, NotNull: true}, {Name: "stream", Type: "text", TypeOID: 25},
		{Name: "categories", Type: "text[]", TypeOID: 1009, NotNull: true}, {
			Name: "purposes", Type: "text[]", TypeOID: 1009, NotNull: true},
		{Name: "expires_at", Type: "timestamp with time zone", TypeOID: 1184}, {
			Name: "decay_from", Type: "timestamp with time zone", TypeOID: 1184},
		{Name: "decayed_before", Type: "timestamp with time zone", TypeOID: 1184}, {
			Name: "decayed_days", Type: "integer", TypeOID: 23},
		{Name: "void_before", Type: "timestamp with time zone", TypeOID: 1184}, {Name: "decay_categories", Type: "text[]", TypeOID: 1009},
	},
}

// RegistryRelation describes the columns of [CurrentConsents] that rules read.
func RegistryRelation() *catalog.Relation { return registry }

// The streams of the registry.
const (
	Temporary = "TEMPORARY"
	Partnered = "PARTNERED"
	Anonymous = "ANONYMOUS"
)

// Registered shows a row if each of its subjects consents by the registry: a record is given, has not expired, and is
// about this row, this caller and what is asked for; and no record about them is a refusal.
type Registered struct {
	Of Recorded // the subjects, and the session's own ids; its Record is left empty

	Categories, Purposes []string  // a record lists each of these
	SessionCategories    []Grantee // the session lists each of Categories; if there are none, the record lists the session's
	SessionPurposes      []Grantee
	Streams              []string  // nil: every stream whose rows show one by one
	Grantees             []Grantee // the grantees whose consents count, besides consents to everybody
	Tables               []string  // the names of the row's table in scopes: table:NAME
	Key                  string    // the column with a row's key in scopes: row:NAME:KEY
	Contexts             []Grantee // the session's contexts, which scopes may name
	// the column that says how old the row is; "": no record ends for old rows only, and none decays
	Since string
	// a row from before a countdown shows during the first Days full days of the countdown; 0: it does not show
	Days    int
	Grouped bool // the row counts in groups, and does not show by itself
}

// Forever is a number of days after which nothing decays.
const Forever = 1 << 20

func (Registered) node() {}

// singleSubject tells whether the subject is in a column of the row, and must consent whoever the caller is.
func (n Registered) singleSubject() bool {
	return n.Of.Subject != "" && len(n.Of.Steps) == 0 && len(n.Of.But) == 0
}

// dependsOnSubjectOnly tells whether the conditions on a record depend on its subject and the session only, and on no
// other column of the row.
func (n Registered) dependsOnSubjectOnly() bool {
	return n.singleSubject() && n.Key == "" && n.Since == ""
}

// fromColumns are the columns of the row that the node reads.
func (n Registered) fromColumns() []string {
	out := n.Of.fromColumns()
	if n.Key != "" {
		out = append(out, n.Key)
	}
	if n.Since != "" {
		out = append(out, n.Since)
	}
	return out
}

func registryColumns() []string {
	var out []string
	for _, c := range registry.Columns {
		out = append(out, c.Name)
	}
	return out
}

// subjectText is an id as the registry has it. It has an explicit collation, so that the registry's index can be used
// whatever the column's own collation is.
func subjectText(id string) string {
	return `(` + id + `::pg_catalog.text COLLATE pg_catalog."default")`
}

// registeredSQL writes the probe: for each subject of a row its records are looked up.
func (w *writer) registeredSQL(n Registered, row string) string {
	if n.Of.subject() == "" {
		return w.nothing()
	}
	if n.singleSubject() {
		return "EXISTS (" + w.consentsSQL(n, row, column(row, n.Of.Subject)) + fence
	}
	return w.forEachSubject(n.Of, row, func(id string) []string {
		return []string{"NOT EXISTS (" + w.consentsSQL(n, row, id) + fence}
	})
}

// consentsSQL is a query that finds the records by which a subject consents.
func (w *writer) consentsSQL(n Registered, row, id string) string {
	r := w.alias()
	where := append([]string{equal(column(r, "subject"), subjectText(id))}, w.consentConditions(n, r, row)...)
	no := w.alias()
	refusal := append([]string{equal(column(no, "subject"), column(r, "subject"))}, n.aboutConditions(no, row)...)
	refusal = append(refusal, oneOf(column(no, "state"), textArray(refusals)),
		"NOT ("+equal(column(no, "grantee"), "'*'::pg_catalog.text")+" AND "+
			equal(column(no, "scope"), "'*'::pg_catalog.text")+" AND "+column(no, "number")+
			" OPERATOR(pg_catalog.<) "+column(r, "number")+")")
	end := fence
	if w.form == flat {
		end = ")"
	}
	where = append(where, "NOT EXISTS (SELECT 1 FROM "+w.helper(registry)+" AS "+no+
		" WHERE "+strings.Join(refusal, " AND ")+end)
	return "SELECT 1 FROM " + w.helper(registry) + " AS " + r + " WHERE " + strings.Join(where, " AND ")
}

// refusals are the states of a refusal, by the subject or the controller. An expired record is none.
var refusals = []string{"refused", "withdrawn", "revoked"}

// aboutConditions are the conditions that a record is about the row and the caller.
func (n Registered) aboutConditions(r, row string) []string {
	out := []string{oneOf(column(r, "grantee"), Grant{To: n.Grantees, All: "*"}.idArraySQL()+"::pg_catalog.text[]")}
	scope, words := column(r, "scope"), []string{"*"}
	for _, name := range n.Tables {
		words = append(words, "table:"+name)
	}
	scopes := []string{oneOf(scope, textArray(words))}
	for _, name := range n.Tables {
		if n.Key != "" {
			scopes = append(scopes, equal(scope,
				"("+catalog.QuoteLiteral("row:"+name+":")+"::pg_catalog.text OPERATOR(pg_catalog.||) "+
					subjectText(column(row, n.Key))+")"))
		}
	}
	if len(n.Contexts) > 0 {
		who := Grant{To: n.Contexts}.idArraySQL() + "::pg_catalog.text[]"
		scopes = append(scopes, "(pg_catalog.starts_with("+scope+", 'ctx:'::pg_catalog.text) AND ("+oneOf(scope, who)+
			" OR "+oneOf("pg_catalog.substr("+scope+", 5)", who)+"))")
	}
	if len(scopes) == 1 {
		return append(out, scopes[0])
	}
	return append(out, "("+strings.Join(scopes, " OR ")+")")
}

// consentConditions are the conditions that a record about the row is a consent to what is asked for.
func (w *writer) consentConditions(n Registered, r, row string) []string {
	out := append(n.aboutConditions(r, row), equal(column(r, "state"), "'given'::pg_catalog.text"),
		"("+column(r, "expires_at")+" IS NULL OR "+column(r, "expires_at")+
			" OPERATOR(pg_catalog.>) pg_catalog.statement_timestamp())",
		n.streamCondition(r, row))
	out = append(out, w.requestConditions(n.Categories, n.SessionCategories,
		func(has listCondition) string { return n.categoryCondition(r, row, has) })...)
	out = append(out, w.requestConditions(n.Purposes, n.SessionPurposes,
		func(has listCondition) string { return has(column(r, "purposes")) })...)
	if n.Since == "" {
		return out
	}
	since := column(row, n.Since)
	out = append(out, "("+column(r, "void_before")+" IS NULL OR "+since+" OPERATOR(pg_catalog.>=) "+
		column(r, "void_before")+")")
	if n.Days >= Forever || n.Grouped {
		return out
	}
	counting, counted := "false", "false"
	if n.Days > 0 {
		counting, counted = n.inRunningCountdown(r, since), n.inStoppedCountdown(r, since)
	}
	return append(out,
		"("+column(r, "decay_from")+" IS NULL OR "+since+" OPERATOR(pg_catalog.>=) "+column(r, "decay_from")+" OR "+counting+")",
		"("+column(r, "decayed_before")+" IS NULL OR "+since+" OPERATOR(pg_catalog.>=) "+column(r, "decayed_before")+
			" OR "+counted+")")
}

// inRunningCountdown is the condition that a row is older than the running countdown, and fewer full days have passed.
// The days are subtracted from the clock: adding them to a time in the far future could raise an error. Days are 24
// hours, in every time zone.
func (n Registered) inRunningCountdown(r, since string) string {
	out := since + " OPERATOR(pg_catalog.<) " + column(r, "decay_from")
	if n.Days >= Forever {
		return out
	}
	return "(" + out + " AND pg_catalog.statement_timestamp() OPERATOR(pg_catalog.-) '" + strconv.Itoa(n.Days*24) +
		":00:00'::pg_catalog.interval OPERATOR(pg_catalog.<) " + column(r, "decay_from") + ")"
}

// inStoppedCountdown is the same condition for a countdown that was stopped.
func (n Registered) inStoppedCountdown(r, since string) string {
	return "(" + since + " OPERATOR(pg_catalog.<) " + column(r, "decayed_before") + " AND COALESCE(" +
		column(r, "decayed_days") + ", 0) OPERATOR(pg_catalog.<) " + strconv.Itoa(n.Days) + ")"
}

func (n Registered) decays() bool { return n.Since != "" && n.Days > 0 }

// streamCondition is the condition that rows of the record's stream show; a record without a stream counts as well.
func (n Registered) streamCondition(r, row string) string {
	stream := column(r, "stream")
	var out []string
	switch {
	case n.Streams != nil:
		out = append(out, oneOf(stream, textArray(n.Streams)))
	case n.Grouped:
		out = append(out, stream+" IS NULL", oneOf(stream, textArray([]string{Temporary, Partnered, Anonymous})))
	default:
		out = append(out, stream+" IS NULL", oneOf(stream, textArray([]string{Temporary, Partnered})))
	}
	if n.decays() && !n.Grouped {
		out = append(out, "("+equal(stream, "'"+Anonymous+"'::pg_catalog.text")+" AND "+column(row, n.Since)+
			" OPERATOR(pg_catalog.<) "+column(r, "decay_from")+")")
	}
	return "(" + strings.Join(out, " OR ") + ")"
}

// categoryCondition is the condition that the record lists categories. While rows decay, the categories count that it
// listed when the countdown began.
func (n Registered) categoryCondition(r, row string, has listCondition) string {
	listed := has(column(r, "categories"))
	if !n.decays() {
		return listed
	}
	kept := has(column(r, "decay_categories"))
	if !n.Grouped {
		return "CASE WHEN " + column(r, "stream") + " OPERATOR(pg_catalog.=) '" + Anonymous +
			"'::pg_catalog.text THEN " + kept + " ELSE " + listed + " END"
	}
	since := column(row, n.Since)
	if n.Days < Forever {
		listed = "(" + listed + " AND (" + column(r, "decayed_before") + " IS NULL OR " + since +
			" OPERATOR(pg_catalog.>=) " + column(r, "decayed_before") + " OR " + n.inStoppedCountdown(r, since) + "))"
	}
	return "(" + listed + " OR (" + kept + " AND " + n.inRunningCountdown(r, since) + "))"
}

// listCondition is the condition that a list covers what is asked for: a consent to a node of the tree of categories,
// or of purposes, covers all nodes below it.
type listCondition func(list string) string

// requestConditions are the conditions that a list of the record covers what is asked for, and that the session is for
// that.
func (w *writer) requestConditions(words []string, session []Grantee, has func(listCondition) string) []string {
	var out []string
	who := Grant{To: session}.idArraySQL() + "::pg_catalog.text[]"
	for _, word := range words {
		above := func(list string) string { return list + " OPERATOR(pg_catalog.&&) " + textArray(above(word)) }
		out = append(out, has(above))
		if len(session) > 0 {
			out = append(out, above(who))
		}
	}
	if len(words) == 0 && len(session) > 0 {
		out = append(out, "pg_catalog.cardinality("+who+") OPERATOR(pg_catalog.>) 0", has(func(list string) string {
			a, b := w.alias(), w.alias()
			return "NOT EXISTS (SELECT 1 FROM pg_catalog.unnest(" + who + ") AS " + a +
				" (id) WHERE NOT EXISTS (SELECT 1 FROM pg_catalog.unnest(" + list + ") AS " + b + " (id) WHERE " +
				equal(a+".id", b+".id") + " OR pg_catalog.starts_with(" + a + ".id, " +
				b + ".id OPERATOR(pg_catalog.||) '/'::pg_catalog.text)))"
		}))
	}
	return out
}

// above are a node of a tree and its ancestors: research/medical, research.
func above(path string) []string {
	out := []string{path}
	for i := strings.LastIndexByte(path, '/'); i >= 0; i = strings.LastIndexByte(path, '/') {
		path = path[:i]
		out = append(out, path)
	}
	return out
}

// covers evaluates a listCondition in memory; see Eval.
func covers(list []string, word string) bool {
	return slices.ContainsFunc(above(word), func(p string) bool { return slices.Contains(list, p) })
}

// registeredSet is a query of all subjects who consent, for a node of which dependsOnSubjectOnly holds.
func (w *writer) registeredSet(n Registered) string {
	r := w.alias()
	where := w.consentConditions(n, r, "")
	no := w.alias()
	refusal := append([]string{equal(column(no, "subject"), column(r, "subject"))}, n.aboutConditions(no, "")...)
	refusal = append(refusal, oneOf(column(no, "state"), textArray(refusals)),
		"NOT ("+equal(column(no, "grantee"), "'*'::pg_catalog.text")+" AND "+
			equal(column(no, "scope"), "'*'::pg_catalog.text")+" AND "+column(no, "number")+
			" OPERATOR(pg_catalog.<) "+column(r, "number")+")")
	where = append(where, "NOT EXISTS (SELECT 1 FROM "+w.helper(registry)+" AS "+no+
		" WHERE "+strings.Join(refusal, " AND ")+")")
	return "SELECT " + column(r, "subject") + " FROM " + w.helper(registry) + " AS " + r + " WHERE " +
		strings.Join(where, " AND ")
}

// subjectConsents evaluates Registered in memory for one subject; see Eval.
func (n Registered) subjectConsents(subject string, row Row, w World) bool {
	records := w.Tables[CurrentConsents]
	return slices.ContainsFunc(records, func(r Row) bool {
		return r["subject"] == subject && n.isAbout(r, row, w) && n.consents(r, row, w) &&
			!slices.ContainsFunc(records, func(no Row) bool {
				return no["subject"] == subject && n.isAbout(no, row, w) && slices.Contains(refusals, no["state"]) &&
					(no["grantee"] != "*" || no["scope"] != "*" || !less(no["number"], r["number"]))
			})
	})
}

func less(a, b string) bool { return compareValues(read(a, Number), read(b, Number)) < 0 }

func (n Registered) isAbout(r, row Row, w World) bool {
	if r["grantee"] != "*" && !slices.Contains(idsOf(n.Grantees, w), r["grantee"]) {
		return false
	}
	scope := r["scope"]
	if scope == "*" {
		return true
	}
	for _, name := range n.Tables {
		if key, ok := row[n.Key]; scope == "table:"+name || n.Key != "" && ok && scope == "row:"+name+":"+key {
			return true
		}
	}
	context, isContext := strings.CutPrefix(scope, "ctx:")
	own := idsOf(n.Contexts, w)
	return isContext && (slices.Contains(own, scope) || slices.Contains(own, context))
}

func (n Registered) consents(r, row Row, w World) bool {
	if r["state"] != "given" {
		return false
	}
	if expires, ok := r["expires_at"]; ok && !read(expires, TimestampTZ).time.After(w.Now) {
		return false
	}
	since, dated := row[n.Since]
	before := func(c string) (older, applies bool) {
		at, ok := r[c]
		if !ok || n.Since == "" {
			return false, false
		}
		return dated && read(since, TimestampTZ).time.Before(read(at, TimestampTZ).time), true
	}
	if older, applies := before("void_before"); applies && (older || !dated) {
		return false
	}
	older, counting := before("decay_from")
	passed := false // the running countdown has lasted for Days full days
	if counting && older && n.Days < Forever {
		passed = w.Now.Sub(read(r["decay_from"], TimestampTZ).time) >= time.Duration(n.Days)*24*time.Hour
	}
	wasOlder, counted := before("decayed_before")
	days := "0"
	if d, said := r["decayed_days"]; said {
		days = d
	}
	removed := wasOlder && n.Days < Forever && !less(days, strconv.Itoa(n.Days))
	decaying := counting && older && n.Days > 0
	if n.Since != "" && !n.Grouped && n.Days < Forever &&
		(counting && (!dated || older && (passed || n.Days == 0)) || counted && (!dated || removed || wasOlder && n.Days == 0)) {
		return false
	}
	stream, streamed := r["stream"]
	switch {
	case n.Streams != nil && slices.Contains(n.Streams, stream), n.Streams == nil &&
		(!streamed || stream == Temporary || stream == Partnered || stream == Anonymous && n.Grouped):
	case decaying && !n.Grouped && stream == Anonymous:
	default:
		return false
	}
	lists := func(c string, words []string) bool {
		have := elements(r[c])
		return !slices.ContainsFunc(words, func(word string) bool { return !covers(have, word) })
	}
	categories := func(words []string) bool {
		if n.Since == "" || n.Days == 0 {
			return lists("categories", words)
		}
		_, kept := r["decay_categories"]
		if !n.Grouped {
			if stream == Anonymous {
				return kept && lists("decay_categories", words)
			}
			return lists("categories", words)
		}
		return lists("categories", words) && (n.Days >= Forever || !counted || dated && !removed) ||
			kept && lists("decay_categories", words) && decaying && !passed
	}
	return coversRequested(n.Categories, n.SessionCategories, w, categories) &&
		coversRequested(n.Purposes, n.SessionPurposes, w, func(words []string) bool { return lists("purposes", words) })
}

func coversRequested(words []string, session []Grantee, w World, has func([]string) bool) bool {
	own := idsOf(session, w)
	switch {
	case len(words) == 0 && len(session) == 0:
		return true
	case len(words) == 0:
		for _, g := range session { // a NULL is contained in nothing
			value, ok := w.Attributes[g.Attribute]
			if !ok && !g.List {
				return false
			}
			if list, _ := ParseArray(value); g.List && slices.Contains(list, nil) {
				return false
			}
		}
		return len(own) > 0 && has(own)
	}
	return has(words) && (len(session) == 0 ||
		!slices.ContainsFunc(words, func(word string) bool { return !covers(own, word) }))
}

// everySubjectConsents is the model of Registered: every subject of the row consents.
func everySubjectConsents(n Registered, row Row, w World) bool {
	if n.Of.subject() == "" {
		return false
	}
	return everySubject(n.Of, row, w, func(id string) bool { return n.subjectConsents(id, row, w) })
}
