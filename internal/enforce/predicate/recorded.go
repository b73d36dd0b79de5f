package predicate

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// RecordedConsent shows a row if each of its subjects has consented by a record. The subjects are ids: the elements of
// a list in the row, the id in a column of the row, or the ids in a column of the rows to which Steps lead. A NULL
// counts as a subject who cannot consent. A row without subjects is visible.
type RecordedConsent struct {
	Steps         []Step // steps to the rows with the subjects; none: the subjects are in the row itself
	FirstRequired bool   // the first step must lead to a row

	Subject string // the column with a single subject; "": Subjects has the column
	// Subjects is the column with several subjects. Its Form is also the type of a single subject's id: text, uuid or
	// integer.
	Subjects List

	ExceptCallers []Grantee // attributes with the caller's own ids: a subject who is the caller needs no record
	Record        Record
}

// Record says which rows of a table count as a subject's consent: rows in whose GrantorColumn is the subject, or a
// guardian of the subject.
type Record struct {
	Relation       *catalog.Relation
	GrantorColumn  string
	MatchedColumns []ColumnPair // further columns of the record, each with the column of the row that it must equal
	Guardians      *Guardians   // the table of guardians; nil: only subjects themselves can consent
	Scope          *Scope       // which rows a record is about; nil: every row that it matches
	// Grantee says to whom a record gives consent. Its Column has one id, of Form text, uuid or integer. Its Grantees are
	// empty if ElementColumn is set.
	Grantee Grant
	// If the rule checks the elements of a list, ElementColumn is the column of the record that must equal the element.
	// "": it does not.
	ElementColumn string
	Rows          Node // a condition on the record's own columns; nil: none
}

// Guardians is the table that says who may consent for a subject.
type Guardians struct {
	Relation                      *catalog.Relation
	SubjectColumn, GuardianColumn string
	MatchedColumns                []ColumnPair
	Rows                          Node // a condition on the columns of the table; nil: none
}

// Scope says which rows a record is about. A column of the record has a word, and the record is about the rows that
// have this word in one of WordColumns or ListColumns.
type Scope struct {
	Column       string
	WordColumns  []string // columns of the row with a single word
	ListColumns  []List   // columns of the row with a list of words
	EveryRowWord string   // a word that means every row; "": there is none
}

func (RecordedConsent) node() {}

// idForm returns the form of the subjects' ids, also if the row has a single subject.
func (n RecordedConsent) idForm() GrantForm { return n.Subjects.Form }

// fromColumns returns the columns of the row that the node reads.
func (n RecordedConsent) fromColumns() []string {
	var out []string
	if len(n.Steps) > 0 {
		out = append(out, n.Steps[0].fromColumns()...)
	} else {
		out = append(out, n.subjectColumn())
	}
	for _, p := range n.Record.MatchedColumns {
		out = append(out, p.FromColumn)
	}
	if g := n.Record.Guardians; g != nil {
		for _, p := range g.MatchedColumns {
			out = append(out, p.FromColumn)
		}
	}
	if s := n.Record.Scope; s != nil {
		out = append(out, s.WordColumns...)
		for _, l := range s.ListColumns {
			out = append(out, l.Column)
		}
	}
	return out
}

// subjectColumn returns the name of the column with the ids of subjects.
func (n RecordedConsent) subjectColumn() string {
	if n.Subject != "" {
		return n.Subject
	}
	return n.Subjects.Column
}

// stepColumns returns the columns that step i+1, or the list of subjects, needs of the rows to which step i leads.
func (n RecordedConsent) stepColumns(i int) []string {
	if i+1 < len(n.Steps) {
		return n.Steps[i+1].fromColumns()
	}
	return []string{n.subjectColumn()}
}

// ownColumns returns the columns of the record that the node reads, without those that only Rows reads.
func (r Record) ownColumns() []string {
	out := []string{r.GrantorColumn}
	for _, p := range r.MatchedColumns {
		out = append(out, p.Column)
	}
	if r.Scope != nil {
		out = append(out, r.Scope.Column)
	}
	if r.ElementColumn != "" {
		out = append(out, r.ElementColumn)
	}
	if len(r.Grantee.Grantees) > 0 {
		out = append(out, r.Grantee.Column)
	}
	return out
}

func (g Guardians) columns() []string {
	out := []string{g.SubjectColumn, g.GuardianColumn}
	for _, p := range g.MatchedColumns {
		out = append(out, p.Column)
	}
	return out
}

// hasSingleSubject reports whether the only subject is in a column of the row and has no guardians. Then SQL can
// compare that column with the records directly.
func (n RecordedConsent) hasSingleSubject() bool {
	return n.Subject != "" && len(n.Steps) == 0 && n.Record.Relation != nil && n.Record.Guardians == nil &&
		n.Record.ElementColumn == ""
}

// orCallerSQL extends a condition: it is also true if the subject is the caller, who needs no record.
func (w *predicateWriter) orCallerSQL(n RecordedConsent, row, agreed string) string {
	if len(n.ExceptCallers) == 0 {
		return agreed
	}
	return "(" + oneOfSQL(columnSQL(row, n.Subject), n.ownIDsSQL()) + " OR " + agreed + ")"
}

// ownIDsSQL returns the SQL expression of the caller's own ids as an array.
func (n RecordedConsent) ownIDsSQL() string {
	return Grant{Form: n.idForm(), Grantees: n.ExceptCallers}.idArraySQL() + "::" + n.idForm().elementType() + "[]"
}

// recordedConsentSQL writes a RecordedConsent in the probe form: for each subject of a row, records are looked up by
// their grantor. There is no other form for lists, links and guardians: a record must match the row and also the list's
// element, and PostgreSQL cannot join a list.
func (w *predicateWriter) recordedConsentSQL(n RecordedConsent, row string) string {
	if n.subjectColumn() == "" || n.Record.Relation == nil {
		return w.hidesAllSQL()
	}
	return w.noSubjectSQL(n, row, func(id string) []string {
		out := []string{"NOT EXISTS (" + w.recordSQL(n.Record, row, id) + offsetZeroEnd}
		if n.Record.Guardians != nil {
			out = append(out, w.noGuardianAgreesSQL(n, row, id))
		}
		return out
	})
}

// noSubjectSQL writes the condition that no subject of a row refuses. The function refuses returns the conditions under
// which the subject with this id does.
func (w *predicateWriter) noSubjectSQL(n RecordedConsent, row string, refuses func(id string) []string) string {
	outer := w.sublinks
	w.sublinks = probeForm
	defer func() { w.sublinks = outer }()

	var parts []string
	from, first := "", ""
	subject := w.newAlias()
	if len(n.Steps) == 0 {
		from = n.subjectsSQL(row, subject)
	} else {
		parts = append(parts, n.Steps[0].startNotNullSQL(row))
		if w.forRowPolicy && !n.FirstRequired {
			parts = append(parts, readableSQL(n.Steps[0].Relation))
		}
		if n.FirstRequired {
			there := w.newAlias()
			parts = append(parts, "EXISTS (SELECT 1 FROM "+w.lookupName(n.Steps[0].Relation)+" AS "+there+" WHERE "+
				n.Steps[0].onSQL(there, row)+offsetZeroEnd)
		}
		first = w.newAlias()
		last := first
		from = w.lookupName(n.Steps[0].Relation) + " AS " + first
		for i, step := range n.Steps[1:] {
			next := w.newAlias()
			from += w.linkSQL(step, last, next, n.stepColumns(i+1))
			last = next
		}
		from += " CROSS JOIN LATERAL " + n.subjectsSQL(last, subject)
	}
	var where []string
	if first != "" {
		where = append(where, n.Steps[0].onSQL(first, row))
	}
	id := subject + ".id"
	if len(n.ExceptCallers) > 0 {
		where = append(where, "("+oneOfSQL(id, n.ownIDsSQL())+") IS NOT TRUE")
	}
	where = append(where, refuses(id)...)
	parts = append(parts, "NOT EXISTS (SELECT 1 FROM "+from+" WHERE "+strings.Join(where, " AND ")+offsetZeroEnd)
	if len(parts) == 1 {
		return parts[0]
	}
	return "(" + strings.Join(parts, " AND ") + ")"
}

// noGuardianAgreesSQL writes the condition that no guardian of the subject has agreed by a record.
func (w *predicateWriter) noGuardianAgreesSQL(n RecordedConsent, row, id string) string {
	g := n.Record.Guardians
	guardian, record := w.newAlias(), w.newAlias()
	conditions := []string{equalSQL(columnSQL(guardian, g.SubjectColumn), id)}
	conditions = append(conditions, pairConditions(g.MatchedColumns, guardian, row)...)
	if g.Rows != nil {
		conditions = append(conditions, w.nodeSQL(g.Rows, guardian))
	}
	return "NOT EXISTS (SELECT 1 FROM " + w.lookupName(g.Relation) + " AS " + guardian +
		" CROSS JOIN LATERAL (" + w.recordSQL(n.Record, row, columnSQL(guardian, g.GuardianColumn)) + " OFFSET 0) AS " +
		record +
		" WHERE " + strings.Join(conditions, " AND ") + offsetZeroEnd
}

// subjectsSQL returns a FROM item with the ids of the subjects of a row.
func (n RecordedConsent) subjectsSQL(row, alias string) string {
	if n.Subject != "" {
		return "(SELECT " + columnSQL(row, n.Subject) + " AS id) AS " + alias
	}
	return n.Subjects.elementsSQL(row, alias)
}

// recordSQL returns a query that finds the records of a grantor that are about the row.
func (w *predicateWriter) recordSQL(n Record, row, grantor string) string {
	if n.ElementColumn != "" && w.element == "" {
		return "SELECT 1 WHERE false"
	}
	r := w.newAlias()
	where := append(pairConditions(n.MatchedColumns, r, row), equalSQL(columnSQL(r, n.GrantorColumn), grantor))
	where = append(where, w.recordConditions(n, r, row)...)
	return "SELECT 1 FROM " + w.lookupName(n.Relation) + " AS " + r + " WHERE " + strings.Join(where, " AND ")
}

// recordConditions returns the conditions that a record must meet, except the condition on its grantor.
func (w *predicateWriter) recordConditions(n Record, r, row string) []string {
	var where []string
	if s := n.Scope; s != nil {
		where = append(where, s.sql(r, row))
	}
	if n.ElementColumn != "" {
		where = append(where, equalSQL(columnSQL(r, n.ElementColumn), w.element))
	}
	if len(n.Grantee.Grantees) > 0 {
		where = append(where, oneOfSQL(columnSQL(r, n.Grantee.Column),
			n.Grantee.idArraySQL()+"::"+n.Grantee.Form.elementType()+"[]"))
	}
	if n.Rows != nil {
		where = append(where, w.nodeSQL(n.Rows, r))
	}
	return where
}

func pairConditions(pairs []ColumnPair, to, row string) []string {
	var out []string
	for _, p := range pairs {
		out = append(out, equalSQL(columnSQL(to, p.Column), columnSQL(row, p.FromColumn)))
	}
	return out
}

func (s Scope) sql(record, row string) string {
	value := columnSQL(record, s.Column)
	var out []string
	if s.EveryRowWord != "" {
		out = append(out, equalSQL(value, catalog.QuoteLiteral(s.EveryRowWord)+"::pg_catalog.text"))
	}
	for _, c := range s.WordColumns {
		out = append(out, equalSQL(value, columnSQL(row, c)))
	}
	for _, l := range s.ListColumns {
		out = append(out, l.oneOfSQL(value, row))
	}
	if len(out) == 0 {
		return "false"
	}
	return "(" + strings.Join(out, " OR ") + ")"
}

func everySubjectAgreed(n RecordedConsent, row Row, w World) bool {
	if n.subjectColumn() == "" || n.Record.Relation == nil {
		return false
	}
	return allSubjectsAgree(n, row, w, func(id string) bool { return n.Record.hasAgreed(id, row, w) })
}

// allSubjectsAgree reports whether each subject of a row agrees or is the caller.
func allSubjectsAgree(n RecordedConsent, row Row, w World, agrees func(id string) bool) bool {
	reached := []Row{row}
	for i, step := range n.Steps {
		var next []Row
		for _, from := range reached {
			to := followStep(step, from, w)
			if len(to) == 0 && (i > 0 || n.FirstRequired) {
				return false
			}
			next = append(next, to...)
		}
		if i == 0 {
			for _, from := range step.fromColumns() {
				if _, ok := row[from]; !ok {
					return false
				}
			}
		}
		reached = next
	}
	own := callerIDs(n.ExceptCallers, w)
	for _, reachedRow := range reached {
		ids := []*string{nil}
		if n.Subject == "" {
			if list, ok := n.Subjects.idsOf(reachedRow); ok {
				ids = list
			}
		} else if id, ok := reachedRow[n.Subject]; ok {
			ids = []*string{&id}
		}
		for _, id := range ids {
			if id == nil || !slices.Contains(own, *id) && !agrees(*id) {
				return false
			}
		}
	}
	return true
}

// callerIDs returns the caller's ids, which are the values of these attributes.
func callerIDs(attributes []Grantee, w World) []string {
	var out []string
	for _, g := range attributes {
		if id, ok := w.Attributes[g.Attribute]; ok && g.IsList {
			out = append(out, nonNullElements(id)...)
		} else if ok {
			out = append(out, id)
		}
	}
	return out
}

// hasAgreed reports whether the subject, or a guardian of the subject, has agreed by a record.
func (n Record) hasAgreed(subject string, row Row, w World) bool {
	grantors := []string{subject}
	if g := n.Guardians; g != nil {
		for _, r := range w.Tables[g.Relation.Name] {
			guardian, ok := r[g.GuardianColumn]
			if s, known := r[g.SubjectColumn]; ok && known && s == subject && arePairsEqual(g.MatchedColumns, r, row) &&
				(g.Rows == nil || evalNode(g.Rows, r, w) == truthYes) {
				grantors = append(grantors, guardian)
			}
		}
	}
	return slices.ContainsFunc(w.Tables[n.Relation.Name], func(r Row) bool {
		grantor, ok := r[n.GrantorColumn]
		return ok && slices.Contains(grantors, grantor) && arePairsEqual(n.MatchedColumns, r, row) &&
			(n.Scope == nil || n.Scope.includesRow(r, row)) &&
			n.ElementColumn == "" && n.Grantee.includesCaller(r, w) && (n.Rows == nil || evalNode(n.Rows, r, w) == truthYes)
	})
}

// includesCaller reports whether the id in a record's column is the caller's, or the word for everybody.
func (n Grant) includesCaller(record Row, w World) bool {
	if len(n.Grantees) == 0 {
		return true
	}
	id, ok := record[n.Column]
	return ok && (n.EverybodyWord != "" && id == n.EverybodyWord || slices.Contains(callerIDs(n.Grantees, w), id))
}

func arePairsEqual(pairs []ColumnPair, to, row Row) bool {
	for _, p := range pairs {
		a, ok := to[p.Column]
		b, known := row[p.FromColumn]
		if !ok || !known || a != b {
			return false
		}
	}
	return true
}

func (s Scope) includesRow(record, row Row) bool {
	value, ok := record[s.Column]
	if !ok {
		return false
	}
	if s.EveryRowWord != "" && value == s.EveryRowWord {
		return true
	}
	for _, c := range s.WordColumns {
		if v, ok := row[c]; ok && v == value {
			return true
		}
	}
	for _, l := range s.ListColumns {
		if ids, ok := l.idsOf(row); ok && slices.ContainsFunc(ids, func(id *string) bool {
			return id != nil &&
				*id == value
		}) {
			return true
		}
	}
	return false
}
