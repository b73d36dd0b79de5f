package predicate

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// CurrentConsents is the name of the table with the current records of the consent registry: the last record for each
// subject, grantee and scope.
var CurrentConsents = catalog.Name{Schema: OwnSchema, Name: "consent_current"}

// registryTable describes the table CurrentConsents as the base migrations create it. The table is in no snapshot,
// since agents and policies cannot name it.
var registryTable = &catalog.Relation{
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

// RegistryRelation returns a description of [CurrentConsents], with the columns that rules read.
func RegistryRelation() *catalog.Relation { return registryTable }

// The streams of the consent registry that rules distinguish.
const (
	Temporary = "TEMPORARY"
	Partnered = "PARTNERED"
	Anonymous = "ANONYMOUS"
)

// RegistryConsent shows a row if each of its subjects consents by the consent registry. A consenting record is given,
// not expired, and about this row, this caller and the requested categories and purposes. No other record about this
// row and caller may be a refusal.
type RegistryConsent struct {
	Subjects RecordedConsent // the subjects, and the caller's own ids; the field Record stays empty

	Categories, Purposes []string // all words that a record must list
	// SessionCategories are attributes with the session's categories, which must include all of Categories. If Categories
	// is empty, the record must list the session's categories. SessionPurposes and Purposes work in the same way.
	SessionCategories []Grantee
	SessionPurposes   []Grantee
	Streams           []string  // the streams whose rows are visible; nil: every stream whose rows are visible one by one
	Grantees          []Grantee // attributes with grantees: consents to these and to everybody count
	Tables            []string  // names of the row's table in scopes: table:NAME
	KeyColumn         string    // the column with the row's key in scopes: row:NAME:KEY
	Contexts          []Grantee // attributes with the session's contexts, which scopes can name
	// DataTimeColumn is the column with the row's time. "": a record counts for rows of every age, and no row decays.
	DataTimeColumn string
	// DecayDays is for rows older than the beginning of a countdown: such a row is visible during the first DecayDays full
	// days of the countdown. 0: it is hidden.
	DecayDays      int
	CountsInGroups bool // the node says which rows count in groups, not which rows are visible one by one
}

// NeverDecays is a value of DecayDays so large that no row decays.
const NeverDecays = 1 << 20

func (RegistryConsent) node() {}

// hasSingleSubject reports whether the only subject is in a column of the row and must consent even if the subject is
// the caller.
func (n RegistryConsent) hasSingleSubject() bool {
	return n.Subjects.Subject != "" && len(n.Subjects.Steps) == 0 && len(n.Subjects.ExceptCallers) == 0
}

// dependsOnSubjectOnly reports whether the conditions on a record depend only on its subject and the session, and on no
// other column of the row.
func (n RegistryConsent) dependsOnSubjectOnly() bool {
	return n.hasSingleSubject() && n.KeyColumn == "" && n.DataTimeColumn == ""
}

// fromColumns returns the columns of the row that the node reads.
func (n RegistryConsent) fromColumns() []string {
	out := n.Subjects.fromColumns()
	if n.KeyColumn != "" {
		out = append(out, n.KeyColumn)
	}
	if n.DataTimeColumn != "" {
		out = append(out, n.DataTimeColumn)
	}
	return out
}

func registryColumns() []string {
	var out []string
	for _, c := range registryTable.Columns {
		out = append(out, c.Name)
	}
	return out
}

// subjectText returns the SQL that converts an id to the registry's form, text. It has an explicit collation, so that
// PostgreSQL can use the registry's index whatever collation the column has.
func subjectText(id string) string {
	return `(` + id + `::pg_catalog.text COLLATE pg_catalog."default")`
}

// registryConsentSQL writes a RegistryConsent in the probe form: for each subject of a row, the subject's records are
// looked up.
func (w *predicateWriter) registryConsentSQL(n RegistryConsent, row string) string {
	if n.Subjects.subjectColumn() == "" {
		return w.hidesAllSQL()
	}
	if n.hasSingleSubject() {
		return "EXISTS (" + w.consentsSQL(n, row, columnSQL(row, n.Subjects.Subject)) + offsetZeroEnd
	}
	return w.noSubjectSQL(n.Subjects, row, func(id string) []string {
		return []string{"NOT EXISTS (" + w.consentsSQL(n, row, id) + offsetZeroEnd}
	})
}

// consentsSQL returns a query that finds the records by which the subject with this id consents.
func (w *predicateWriter) consentsSQL(n RegistryConsent, row, id string) string {
	r := w.newAlias()
	where := append([]string{equalSQL(columnSQL(r, "subject"), subjectText(id))}, w.consentConditions(n, r, row)...)
	refusalAlias := w.newAlias()
	refusal := append([]string{equalSQL(columnSQL(refusalAlias, "subject"), columnSQL(r, "subject"))},
		n.recordConcernsRowConditions(refusalAlias, row)...)
	refusal = append(refusal, oneOfSQL(columnSQL(refusalAlias, "state"), textArray(refusingStates)),
		"NOT ("+equalSQL(columnSQL(refusalAlias, "grantee"), "'*'::pg_catalog.text")+" AND "+
			equalSQL(columnSQL(refusalAlias, "scope"), "'*'::pg_catalog.text")+" AND "+columnSQL(refusalAlias, "number")+
			" OPERATOR(pg_catalog.<) "+columnSQL(r, "number")+")")
	end := offsetZeroEnd
	if w.sublinks == existsForm {
		end = ")"
	}
	where = append(where, "NOT EXISTS (SELECT 1 FROM "+w.lookupName(registryTable)+" AS "+refusalAlias+
		" WHERE "+strings.Join(refusal, " AND ")+end)
	return "SELECT 1 FROM " + w.lookupName(registryTable) + " AS " + r + " WHERE " + strings.Join(where, " AND ")
}

// refusingStates are the states of records in which the subject or the controller has refused. An expired record does
// not refuse.
var refusingStates = []string{"refused", "withdrawn", "revoked"}

// recordConcernsRowConditions returns the SQL conditions that the record r is about the row and the caller.
func (n RegistryConsent) recordConcernsRowConditions(r, row string) []string {
	out := []string{oneOfSQL(columnSQL(r, "grantee"),
		Grant{Grantees: n.Grantees, EverybodyWord: "*"}.idArraySQL()+"::pg_catalog.text[]")}
	scope, words := columnSQL(r, "scope"), []string{"*"}
	for _, name := range n.Tables {
		words = append(words, "table:"+name)
	}
	scopes := []string{oneOfSQL(scope, textArray(words))}
	for _, name := range n.Tables {
		if n.KeyColumn != "" {
			scopes = append(scopes, equalSQL(scope,
				"("+catalog.QuoteLiteral("row:"+name+":")+"::pg_catalog.text OPERATOR(pg_catalog.||) "+
					subjectText(columnSQL(row, n.KeyColumn))+")"))
		}
	}
	if len(n.Contexts) > 0 {
		contextsSQL := Grant{Grantees: n.Contexts}.idArraySQL() + "::pg_catalog.text[]"
		scopes = append(scopes, "(pg_catalog.starts_with("+scope+", 'ctx:'::pg_catalog.text) AND ("+oneOfSQL(scope,
			contextsSQL)+
			" OR "+oneOfSQL("pg_catalog.substr("+scope+", 5)", contextsSQL)+"))")
	}
	if len(scopes) == 1 {
		return append(out, scopes[0])
	}
	return append(out, "("+strings.Join(scopes, " OR ")+")")
}

// consentConditions returns the SQL conditions that the record r is about the row and consents to the requested
// categories and purposes.
func (w *predicateWriter) consentConditions(n RegistryConsent, r, row string) []string {
	out := append(n.recordConcernsRowConditions(r, row), equalSQL(columnSQL(r, "state"), "'given'::pg_catalog.text"),
		"("+columnSQL(r, "expires_at")+" IS NULL OR "+columnSQL(r, "expires_at")+
			" OPERATOR(pg_catalog.>) pg_catalog.statement_timestamp())",
		n.streamCondition(r, row))
	out = append(out, w.requestConditions(n.Categories, n.SessionCategories,
		func(has listCondition) string { return n.categoryCondition(r, row, has) })...)
	out = append(out, w.requestConditions(n.Purposes, n.SessionPurposes,
		func(has listCondition) string { return has(columnSQL(r, "purposes")) })...)
	if n.DataTimeColumn == "" {
		return out
	}
	since := columnSQL(row, n.DataTimeColumn)
	out = append(out, "("+columnSQL(r, "void_before")+" IS NULL OR "+since+" OPERATOR(pg_catalog.>=) "+
		columnSQL(r, "void_before")+")")
	if n.DecayDays >= NeverDecays || n.CountsInGroups {
		return out
	}
	counting, counted := "false", "false"
	if n.DecayDays > 0 {
		counting, counted = n.runningCountdownSQL(r, since), n.stoppedCountdownSQL(r, since)
	}
	return append(out,
		"("+columnSQL(r, "decay_from")+" IS NULL OR "+since+" OPERATOR(pg_catalog.>=) "+columnSQL(r,
			"decay_from")+" OR "+counting+")",
		"("+columnSQL(r, "decayed_before")+" IS NULL OR "+since+" OPERATOR(pg_catalog.>=) "+columnSQL(r, "decayed_before")+
			" OR "+counted+")")
}

// runningCountdownSQL returns the SQL condition that the row is older than the beginning of the running countdown, and
// that fewer than DecayDays full days of the countdown have passed. It subtracts the days from the clock: adding them
// to a time in the far future could raise an error. A day is 24 hours in every time zone.
func (n RegistryConsent) runningCountdownSQL(r, since string) string {
	out := since + " OPERATOR(pg_catalog.<) " + columnSQL(r, "decay_from")
	if n.DecayDays >= NeverDecays {
		return out
	}
	return "(" + out + " AND pg_catalog.statement_timestamp() OPERATOR(pg_catalog.-) '" + strconv.Itoa(n.DecayDays*24) +
		":00:00'::pg_catalog.interval OPERATOR(pg_catalog.<) " + columnSQL(r, "decay_from") + ")"
}

// stoppedCountdownSQL returns the same condition as runningCountdownSQL for a countdown that was stopped.
func (n RegistryConsent) stoppedCountdownSQL(r, since string) string {
	return "(" + since + " OPERATOR(pg_catalog.<) " + columnSQL(r, "decayed_before") + " AND COALESCE(" +
		columnSQL(r, "decayed_days") + ", 0) OPERATOR(pg_catalog.<) " + strconv.Itoa(n.DecayDays) + ")"
}

func (n RegistryConsent) mayDecay() bool { return n.DataTimeColumn != "" && n.DecayDays > 0 }

// streamCondition returns the SQL condition that rows in the record's stream are visible. Rows of a record without a
// stream are visible unless Streams is set.
func (n RegistryConsent) streamCondition(r, row string) string {
	stream := columnSQL(r, "stream")
	var out []string
	switch {
	case n.Streams != nil:
		out = append(out, oneOfSQL(stream, textArray(n.Streams)))
	case n.CountsInGroups:
		out = append(out, stream+" IS NULL", oneOfSQL(stream, textArray([]string{Temporary, Partnered, Anonymous})))
	default:
		out = append(out, stream+" IS NULL", oneOfSQL(stream, textArray([]string{Temporary, Partnered})))
	}
	if n.mayDecay() && !n.CountsInGroups {
		out = append(out, "("+equalSQL(stream, "'"+Anonymous+"'::pg_catalog.text")+" AND "+columnSQL(row, n.DataTimeColumn)+
			" OPERATOR(pg_catalog.<) "+columnSQL(r, "decay_from")+")")
	}
	return "(" + strings.Join(out, " OR ") + ")"
}

// categoryCondition returns the SQL condition that the record lists the requested categories. For rows that are
// decaying, these are the categories that the record listed when the countdown began.
func (n RegistryConsent) categoryCondition(r, row string, inList listCondition) string {
	listed := inList(columnSQL(r, "categories"))
	if !n.mayDecay() {
		return listed
	}
	keptAtCountdown := inList(columnSQL(r, "decay_categories"))
	if !n.CountsInGroups {
		return "CASE WHEN " + columnSQL(r, "stream") + " OPERATOR(pg_catalog.=) '" + Anonymous +
			"'::pg_catalog.text THEN " + keptAtCountdown + " ELSE " + listed + " END"
	}
	since := columnSQL(row, n.DataTimeColumn)
	if n.DecayDays < NeverDecays {
		listed = "(" + listed + " AND (" + columnSQL(r, "decayed_before") + " IS NULL OR " + since +
			" OPERATOR(pg_catalog.>=) " + columnSQL(r, "decayed_before") + " OR " + n.stoppedCountdownSQL(r, since) + "))"
	}
	return "(" + listed + " OR (" + keptAtCountdown + " AND " + n.runningCountdownSQL(r, since) + "))"
}

// listCondition writes the SQL condition that a list covers the requested words. A consent to a node in the tree of
// categories, or of purposes, covers all nodes below it.
type listCondition func(list string) string

// requestConditions returns the SQL conditions that the record covers the requested words, and that the session's
// attributes list them. has writes the condition on the record.
func (w *predicateWriter) requestConditions(words []string, session []Grantee, has func(listCondition) string) []string {
	var out []string
	sessionWordsSQL := Grant{Grantees: session}.idArraySQL() + "::pg_catalog.text[]"
	for _, word := range words {
		above := func(list string) string { return list + " OPERATOR(pg_catalog.&&) " + textArray(withAncestors(word)) }
		out = append(out, has(above))
		if len(session) > 0 {
			out = append(out, above(sessionWordsSQL))
		}
	}
	if len(words) == 0 && len(session) > 0 {
		out = append(out, "pg_catalog.cardinality("+sessionWordsSQL+") OPERATOR(pg_catalog.>) 0",
			has(func(list string) string {
				a, b := w.newAlias(), w.newAlias()
				return "NOT EXISTS (SELECT 1 FROM pg_catalog.unnest(" + sessionWordsSQL + ") AS " + a +
					" (id) WHERE NOT EXISTS (SELECT 1 FROM pg_catalog.unnest(" + list + ") AS " + b + " (id) WHERE " +
					equalSQL(a+".id", b+".id") + " OR pg_catalog.starts_with(" + a + ".id, " +
					b + ".id OPERATOR(pg_catalog.||) '/'::pg_catalog.text)))"
			}))
	}
	return out
}

// withAncestors returns a node of a tree and its ancestors: for research/medical, also research.
func withAncestors(path string) []string {
	out := []string{path}
	for i := strings.LastIndexByte(path, '/'); i >= 0; i = strings.LastIndexByte(path, '/') {
		path = path[:i]
		out = append(out, path)
	}
	return out
}

// listCoversWord evaluates a listCondition in memory; see [Eval].
func listCoversWord(list []string, word string) bool {
	return slices.ContainsFunc(withAncestors(word), func(p string) bool { return slices.Contains(list, p) })
}

// consentingSubjectsSQL returns a query of all subjects who consent, for a node for which dependsOnSubjectOnly is true.
func (w *predicateWriter) consentingSubjectsSQL(n RegistryConsent) string {
	r := w.newAlias()
	where := w.consentConditions(n, r, "")
	refusalAlias := w.newAlias()
	refusal := append([]string{equalSQL(columnSQL(refusalAlias, "subject"), columnSQL(r, "subject"))},
		n.recordConcernsRowConditions(refusalAlias, "")...)
	refusal = append(refusal, oneOfSQL(columnSQL(refusalAlias, "state"), textArray(refusingStates)),
		"NOT ("+equalSQL(columnSQL(refusalAlias, "grantee"), "'*'::pg_catalog.text")+" AND "+
			equalSQL(columnSQL(refusalAlias, "scope"), "'*'::pg_catalog.text")+" AND "+columnSQL(refusalAlias, "number")+
			" OPERATOR(pg_catalog.<) "+columnSQL(r, "number")+")")
	where = append(where, "NOT EXISTS (SELECT 1 FROM "+w.lookupName(registryTable)+" AS "+refusalAlias+
		" WHERE "+strings.Join(refusal, " AND ")+")")
	return "SELECT " + columnSQL(r, "subject") + " FROM " + w.lookupName(registryTable) + " AS " + r + " WHERE " +
		strings.Join(where, " AND ")
}

// subjectConsents evaluates a RegistryConsent over rows in memory for one subject; see [Eval].
func (n RegistryConsent) subjectConsents(subject string, row Row, w World) bool {
	records := w.Tables[CurrentConsents]
	return slices.ContainsFunc(records, func(r Row) bool {
		return r["subject"] == subject && n.concernsRow(r, row, w) && n.isConsentingRecord(r, row, w) &&
			!slices.ContainsFunc(records, func(no Row) bool {
				return no["subject"] == subject && n.concernsRow(no, row, w) && slices.Contains(refusingStates, no["state"]) &&
					(no["grantee"] != "*" || no["scope"] != "*" || !isEarlierTime(no["number"], r["number"]))
			})
	})
}

func isEarlierTime(a, b string) bool {
	return compareValues(parseValue(a, Number), parseValue(b, Number)) < 0
}

func (n RegistryConsent) concernsRow(r, row Row, w World) bool {
	if r["grantee"] != "*" && !slices.Contains(callerIDs(n.Grantees, w), r["grantee"]) {
		return false
	}
	scope := r["scope"]
	if scope == "*" {
		return true
	}
	for _, name := range n.Tables {
		if key, ok := row[n.KeyColumn]; scope == "table:"+name || n.KeyColumn != "" && ok && scope == "row:"+name+":"+key {
			return true
		}
	}
	context, isContext := strings.CutPrefix(scope, "ctx:")
	contexts := callerIDs(n.Contexts, w)
	return isContext && (slices.Contains(contexts, scope) || slices.Contains(contexts, context))
}

func (n RegistryConsent) isConsentingRecord(r, row Row, w World) bool {
	if r["state"] != "given" {
		return false
	}
	if expires, ok := r["expires_at"]; ok && !parseValue(expires, TimestampTZ).time.After(w.Now) {
		return false
	}
	since, dated := row[n.DataTimeColumn]
	before := func(c string) (older, applies bool) {
		timeText, ok := r[c]
		if !ok || n.DataTimeColumn == "" {
			return false, false
		}
		return dated && parseValue(since, TimestampTZ).time.Before(parseValue(timeText, TimestampTZ).time), true
	}
	if older, applies := before("void_before"); applies && (older || !dated) {
		return false
	}
	older, counting := before("decay_from")
	passed := false // true if the running countdown has lasted for DecayDays full days
	if counting && older && n.DecayDays < NeverDecays {
		passed = w.Now.Sub(parseValue(r["decay_from"], TimestampTZ).time) >= time.Duration(n.DecayDays)*24*time.Hour
	}
	wasOlder, counted := before("decayed_before")
	days := "0"
	if d, hasDays := r["decayed_days"]; hasDays {
		days = d
	}
	removed := wasOlder && n.DecayDays < NeverDecays && !isEarlierTime(days, strconv.Itoa(n.DecayDays))
	decaying := counting && older && n.DecayDays > 0
	if n.DataTimeColumn != "" && !n.CountsInGroups && n.DecayDays < NeverDecays &&
		(counting && (!dated || older && (passed || n.DecayDays == 0)) || counted && (!dated || removed || wasOlder &&
			n.DecayDays == 0)) {
		return false
	}
	stream, streamed := r["stream"]
	switch {
	case n.Streams != nil && slices.Contains(n.Streams, stream), n.Streams == nil &&
		(!streamed || stream == Temporary || stream == Partnered || stream == Anonymous && n.CountsInGroups):
	case decaying && !n.CountsInGroups && stream == Anonymous:
	default:
		return false
	}
	lists := func(c string, words []string) bool {
		listedWords := nonNullElements(r[c])
		return !slices.ContainsFunc(words, func(word string) bool { return !listCoversWord(listedWords, word) })
	}
	categories := func(words []string) bool {
		if n.DataTimeColumn == "" || n.DecayDays == 0 {
			return lists("categories", words)
		}
		_, kept := r["decay_categories"]
		if !n.CountsInGroups {
			if stream == Anonymous {
				return kept && lists("decay_categories", words)
			}
			return lists("categories", words)
		}
		return lists("categories", words) && (n.DecayDays >= NeverDecays || !counted || dated && !removed) ||
			kept && lists("decay_categories", words) && decaying && !passed
	}
	return coversRequested(n.Categories, n.SessionCategories, w, categories) &&
		coversRequested(n.Purposes, n.SessionPurposes, w, func(words []string) bool { return lists("purposes", words) })
}

func coversRequested(words []string, session []Grantee, w World, has func([]string) bool) bool {
	sessionWords := callerIDs(session, w)
	switch {
	case len(words) == 0 && len(session) == 0:
		return true
	case len(words) == 0:
		for _, g := range session { // no list contains a NULL
			value, ok := w.Attributes[g.Attribute]
			if !ok && !g.IsList {
				return false
			}
			if list, _ := ParseArray(value); g.IsList && slices.Contains(list, nil) {
				return false
			}
		}
		return len(sessionWords) > 0 && has(sessionWords)
	}
	return has(words) && (len(session) == 0 ||
		!slices.ContainsFunc(words, func(word string) bool { return !listCoversWord(sessionWords, word) }))
}

// everySubjectConsents evaluates a RegistryConsent over rows in memory: every subject of the row must consent.
func everySubjectConsents(n RegistryConsent, row Row, w World) bool {
	if n.Subjects.subjectColumn() == "" {
		return false
	}
	return allSubjectsAgree(n.Subjects, row, w, func(id string) bool { return n.subjectConsents(id, row, w) })
}
