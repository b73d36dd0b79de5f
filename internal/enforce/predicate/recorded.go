package predicate

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Recorded shows a row if each of its subjects has consented by a record. The subjects are ids: the elements of a list
// in the row, the id in a column, or the ids in a column of the rows that steps lead to. A NULL counts as a subject who
// cannot consent. A row without subjects shows.
type Recorded struct {
	Steps    []Step // empty: the subjects are in the row itself
	Required bool   // the first step is a reference to one row, which must be there

	Subject  string // the column of one subject; or
	Subjects List   // the column of several. Its Form is that of the one as well: text, uuid or integer

	But    []Grantee // the session's own ids: a subject who is the caller needs no record
	Record Record
}

// Record says which rows count as the consent of a subject: those whose Grantor is the subject, or a guardian of it.
type Record struct {
	Relation  *catalog.Relation
	Grantor   string
	Match     []Pair     // further columns of the record, and the columns of the row that they equal
	Guardians *Guardians // nil: only subjects themselves consent
	Scope     *Scope     // nil: a record is about every row that it matches
	// the grantee of the record: Column is one id, of Form text, uuid or integer. To is empty if Element is set.
	Grantee Grant
	Element string // the column that equals an element, if the elements of a list are checked; "": they are not
	Rows    Node   // conditions on the record's own columns; nil: none
}

// Guardians is the table that says who consents for a subject.
type Guardians struct {
	Relation          *catalog.Relation
	Subject, Guardian string
	Match             []Pair
	Rows              Node // conditions on its own columns
}

// Scope is the column of a record that says which rows it is about: rows that have the word in one of these columns.
type Scope struct {
	Column string
	Is     []string // columns of one word
	In     []List   // columns of several
	All    string   // the word for every row; "": none
}

func (Recorded) node() {}

// form is the form of the subjects' ids, also when there is one subject.
func (n Recorded) form() GrantForm { return n.Subjects.Form }

// fromColumns are the columns of the row that the node reads.
func (n Recorded) fromColumns() []string {
	var out []string
	if len(n.Steps) > 0 {
		out = append(out, n.Steps[0].fromColumns()...)
	} else {
		out = append(out, n.subject())
	}
	for _, p := range n.Record.Match {
		out = append(out, p.From)
	}
	if g := n.Record.Guardians; g != nil {
		for _, p := range g.Match {
			out = append(out, p.From)
		}
	}
	if s := n.Record.Scope; s != nil {
		out = append(out, s.Is...)
		for _, l := range s.In {
			out = append(out, l.Column)
		}
	}
	return out
}

// subject is the column with the ids of subjects.
func (n Recorded) subject() string {
	if n.Subject != "" {
		return n.Subject
	}
	return n.Subjects.Column
}

// reads are the columns of the i-th step's rows that the next step reads.
func (n Recorded) reads(i int) []string {
	if i+1 < len(n.Steps) {
		return n.Steps[i+1].fromColumns()
	}
	return []string{n.subject()}
}

// columns are the columns of the record that are read, without the columns that Rows reads.
func (r Record) columns() []string {
	out := []string{r.Grantor}
	for _, p := range r.Match {
		out = append(out, p.Column)
	}
	if r.Scope != nil {
		out = append(out, r.Scope.Column)
	}
	if r.Element != "" {
		out = append(out, r.Element)
	}
	if len(r.Grantee.To) > 0 {
		out = append(out, r.Grantee.Column)
	}
	return out
}

func (g Guardians) columns() []string {
	out := []string{g.Subject, g.Guardian}
	for _, p := range g.Match {
		out = append(out, p.Column)
	}
	return out
}

// singleSubject tells whether the only subject is in a column of the row and has no guardians: then the records can be
// compared with that column directly.
func (n Recorded) singleSubject() bool {
	return n.Subject != "" && len(n.Steps) == 0 && n.Record.Relation != nil && n.Record.Guardians == nil &&
		n.Record.Element == ""
}

// orSelf adds that a subject who is the caller needs no record.
func (w *writer) orSelf(n Recorded, row, agreed string) string {
	if len(n.But) == 0 {
		return agreed
	}
	return "(" + oneOf(column(row, n.Subject), n.ownIDsSQL()) + " OR " + agreed + ")"
}

// ownIDsSQL is the array of the session's own ids.
func (n Recorded) ownIDsSQL() string {
	return Grant{Form: n.form(), To: n.But}.idArraySQL() + "::" + n.form().element() + "[]"
}

// recordedSQL writes the probe: for each subject of a row the records are looked up by their grantor. For lists, links
// and guardians it is the only form: a record is compared with the element of the list as well as with the row, and a
// list is no table that could be joined.
func (w *writer) recordedSQL(n Recorded, row string) string {
	if n.subject() == "" || n.Record.Relation == nil {
		return w.nothing()
	}
	return w.forEachSubject(n, row, func(id string) []string {
		out := []string{"NOT EXISTS (" + w.recordSQL(n.Record, row, id) + fence}
		if n.Record.Guardians != nil {
			out = append(out, w.noGuardianAgrees(n, row, id))
		}
		return out
	})
}

// forEachSubject is the condition that no subject of a row refuses; refuses gives the conditions on the subject's id.
func (w *writer) forEachSubject(n Recorded, row string, refuses func(id string) []string) string {
	outer := w.form
	w.form = probe
	defer func() { w.form = outer }()

	var parts []string
	from, first := "", ""
	subject := w.alias()
	if len(n.Steps) == 0 {
		from = n.subjectsSQL(row, subject)
	} else {
		parts = append(parts, n.Steps[0].startNotNull(row))
		if w.policy && !n.Required {
			parts = append(parts, "(EXISTS (SELECT 1 FROM "+w.helper(n.Steps[0].Relation)+") OR (SELECT "+
				EmptyFunction(n.Steps[0].Relation.Name).SQL()+"()))")
		}
		if n.Required {
			there := w.alias()
			parts = append(parts, "EXISTS (SELECT 1 FROM "+w.helper(n.Steps[0].Relation)+" AS "+there+" WHERE "+
				n.Steps[0].onSQL(there, row)+fence)
		}
		first = w.alias()
		last := first
		from = w.helper(n.Steps[0].Relation) + " AS " + first
		for i, step := range n.Steps[1:] {
			next := w.alias()
			from += w.linkSQL(step, last, next, n.reads(i+1))
			last = next
		}
		from += " CROSS JOIN LATERAL " + n.subjectsSQL(last, subject)
	}
	var where []string
	if first != "" {
		where = append(where, n.Steps[0].onSQL(first, row))
	}
	id := subject + ".id"
	if len(n.But) > 0 {
		where = append(where, "("+oneOf(id, n.ownIDsSQL())+") IS NOT TRUE")
	}
	where = append(where, refuses(id)...)
	parts = append(parts, "NOT EXISTS (SELECT 1 FROM "+from+" WHERE "+strings.Join(where, " AND ")+fence)
	if len(parts) == 1 {
		return parts[0]
	}
	return "(" + strings.Join(parts, " AND ") + ")"
}

// noGuardianAgrees is the condition that no guardian of a subject has agreed.
func (w *writer) noGuardianAgrees(n Recorded, row, id string) string {
	g := n.Record.Guardians
	guardian, record := w.alias(), w.alias()
	by := []string{equal(column(guardian, g.Subject), id)}
	by = append(by, pairConditions(g.Match, guardian, row)...)
	if g.Rows != nil {
		by = append(by, w.write(g.Rows, guardian))
	}
	return "NOT EXISTS (SELECT 1 FROM " + w.helper(g.Relation) + " AS " + guardian +
		" CROSS JOIN LATERAL (" + w.recordSQL(n.Record, row, column(guardian, g.Guardian)) + " OFFSET 0) AS " + record +
		" WHERE " + strings.Join(by, " AND ") + fence
}

// subjectsSQL is an item for FROM that lists the ids of the subjects of a row.
func (n Recorded) subjectsSQL(row, alias string) string {
	if n.Subject != "" {
		return "(SELECT " + column(row, n.Subject) + " AS id) AS " + alias
	}
	return n.Subjects.elementsSQL(row, alias)
}

// recordSQL is a query that finds a grantor's records about the row.
func (w *writer) recordSQL(n Record, row, grantor string) string {
	if n.Element != "" && w.element == "" {
		return "SELECT 1 WHERE false"
	}
	r := w.alias()
	where := append(pairConditions(n.Match, r, row), equal(column(r, n.Grantor), grantor))
	where = append(where, w.recordOf(n, r, row)...)
	return "SELECT 1 FROM " + w.helper(n.Relation) + " AS " + r + " WHERE " + strings.Join(where, " AND ")
}

// recordOf are the conditions on a record, without the condition on its grantor.
func (w *writer) recordOf(n Record, r, row string) []string {
	var where []string
	if s := n.Scope; s != nil {
		where = append(where, s.sql(r, row))
	}
	if n.Element != "" {
		where = append(where, equal(column(r, n.Element), w.element))
	}
	if len(n.Grantee.To) > 0 {
		where = append(where, oneOf(column(r, n.Grantee.Column), n.Grantee.idArraySQL()+"::"+n.Grantee.Form.element()+"[]"))
	}
	if n.Rows != nil {
		where = append(where, w.write(n.Rows, r))
	}
	return where
}

func pairConditions(pairs []Pair, to, row string) []string {
	var out []string
	for _, p := range pairs {
		out = append(out, equal(column(to, p.Column), column(row, p.From)))
	}
	return out
}

func (s Scope) sql(record, row string) string {
	value := column(record, s.Column)
	var out []string
	if s.All != "" {
		out = append(out, equal(value, catalog.QuoteLiteral(s.All)+"::pg_catalog.text"))
	}
	for _, c := range s.Is {
		out = append(out, equal(value, column(row, c)))
	}
	for _, l := range s.In {
		out = append(out, l.oneOfSQL(value, row))
	}
	if len(out) == 0 {
		return "false"
	}
	return "(" + strings.Join(out, " OR ") + ")"
}

func everySubjectAgreed(n Recorded, row Row, w World) bool {
	if n.subject() == "" || n.Record.Relation == nil {
		return false
	}
	return everySubject(n, row, w, func(id string) bool { return n.Record.hasAgreed(id, row, w) })
}

// everySubject tells whether each subject of a row agrees; the caller needs not.
func everySubject(n Recorded, row Row, w World, agrees func(id string) bool) bool {
	reached := []Row{row}
	for i, step := range n.Steps {
		var next []Row
		for _, from := range reached {
			to := follow(step, from, w)
			if len(to) == 0 && (i > 0 || n.Required) {
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
	own := idsOf(n.But, w)
	for _, at := range reached {
		ids := []*string{nil}
		if n.Subject == "" {
			if list, ok := n.Subjects.ids(at); ok {
				ids = list
			}
		} else if id, ok := at[n.Subject]; ok {
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

// idsOf are the session's ids: the values of these attributes.
func idsOf(to []Grantee, w World) []string {
	var out []string
	for _, g := range to {
		if id, ok := w.Attributes[g.Attribute]; ok && g.List {
			out = append(out, elements(id)...)
		} else if ok {
			out = append(out, id)
		}
	}
	return out
}

// hasAgreed tells whether a subject, or a guardian, has agreed.
func (n Record) hasAgreed(subject string, row Row, w World) bool {
	grantors := []string{subject}
	if g := n.Guardians; g != nil {
		for _, r := range w.Tables[g.Relation.Name] {
			guardian, ok := r[g.Guardian]
			if s, known := r[g.Subject]; ok && known && s == subject && pairsEqual(g.Match, r, row) &&
				(g.Rows == nil || judge(g.Rows, r, w) == yes) {
				grantors = append(grantors, guardian)
			}
		}
	}
	return slices.ContainsFunc(w.Tables[n.Relation.Name], func(r Row) bool {
		grantor, ok := r[n.Grantor]
		return ok && slices.Contains(grantors, grantor) && pairsEqual(n.Match, r, row) &&
			(n.Scope == nil || n.Scope.holds(r, row)) &&
			n.Element == "" && n.Grantee.includesCaller(r, w) && (n.Rows == nil || judge(n.Rows, r, w) == yes)
	})
}

// includesCaller tells whether a column of one id is the caller's, or the word for everybody.
func (n Grant) includesCaller(record Row, w World) bool {
	if len(n.To) == 0 {
		return true
	}
	id, ok := record[n.Column]
	return ok && (n.All != "" && id == n.All || slices.Contains(idsOf(n.To, w), id))
}

func pairsEqual(pairs []Pair, to, row Row) bool {
	for _, p := range pairs {
		a, ok := to[p.Column]
		b, known := row[p.From]
		if !ok || !known || a != b {
			return false
		}
	}
	return true
}

func (s Scope) holds(record, row Row) bool {
	value, ok := record[s.Column]
	if !ok {
		return false
	}
	if s.All != "" && value == s.All {
		return true
	}
	for _, c := range s.Is {
		if v, ok := row[c]; ok && v == value {
			return true
		}
	}
	for _, l := range s.In {
		if ids, ok := l.ids(row); ok && slices.ContainsFunc(ids, func(id *string) bool { return id != nil && *id == value }) {
			return true
		}
	}
	return false
}
