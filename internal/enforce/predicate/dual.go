package predicate

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// UseHashHint is a comment that makes row policies use the hashed form of sublinks (sub-selects in conditions). The
// rewriter puts it in front of a statement's text, or behind the signature.
const UseHashHint = "/*pgconsent:use_hash*/"

// sublinkForm says in which form a sublink is written.
type sublinkForm int

const (
	// probeForm looks up the rows for each outer row; OFFSET 0 keeps the planner from hashing a whole lookup table.
	probeForm  sublinkForm = iota
	hashedForm             // does not depend on the outer row, so PostgreSQL hashes its result once
	choiceForm             // a CASE that chooses the probe or the hashed form
	existsForm             // an EXISTS that PostgreSQL may turn into a join
)

// sublinkSQL writes a node that reads other tables, if the writer's form is not probeForm.
//
// The choice form is CASE WHEN pgconsent_signed.use_hash() THEN hashed ELSE probe END. PostgreSQL's own choice relies
// on an estimate that ignores LIMIT, and once took 235 times as long as the other form. use_hash() reads a hint in the
// text of the statement. Security does not depend on the hint: both forms show the same rows. The call is not in a
// sub-select, so the planner evaluates it, and plans and starts only one form.
func (w *predicateWriter) sublinkSQL(node Node, row string) string {
	switch w.sublinks {
	case hashedForm:
		return w.hashedSQL(node, row)
	case existsForm:
		return w.existsSQL(node, row)
	}
	defer func(f sublinkForm) { w.sublinks = f }(w.sublinks)
	w.sublinks = probeForm
	probed := w.probeSQL(node, row)
	if !isHashable(node, w.row) {
		return probed
	}
	w.sublinks = hashedForm
	return "CASE WHEN pgconsent_signed.use_hash() THEN " + w.hashedSQL(node, row) + " ELSE " + probed + " END"
}

// probeSQL writes a node in the probe form, which looks up the other tables' rows for each row.
func (w *predicateWriter) probeSQL(n Node, row string) string {
	switch n := n.(type) {
	case Consent:
		return w.noSubjectRefusesSQL(n, row)
	case RecordedConsent:
		return w.recordedConsentSQL(n, row)
	}
	return w.nodeSQL(n, row)
}

// hashedSQL writes a node in the hashed form: it tests whether a value is in a set of values. A NULL in the set of a
// NOT IN would hide every row, so sets contain no NULL. If the tested value is NULL, IS TRUE makes the result false.
func (w *predicateWriter) hashedSQL(node Node, row string) string {
	switch n := node.(type) {
	case Consent:
		step := n.Steps[0]
		var b strings.Builder
		if n.FirstRequired {
			b.WriteString(step.stepInSetSQL(row, w.stepSetSQL(step, w.newAlias())) + " IS TRUE AND ")
		}
		first := w.newAlias()
		b.WriteString("NOT " + step.stepInSetSQL(row, "SELECT "+columnListSQL(first, step.targetColumns()...)+" FROM "+
			w.lookupName(step.Relation)+" AS "+first+w.notAgreedSQL(n, first, step.targetNotNullSQL(first))))
		return "(" + b.String() + ")"
	case Visible:
		target := w.newAlias()
		return n.step().stepInSetSQL(row, w.stepSetSQL(n.step(), target)+" AND "+w.nodeSQL(n.Rows, target)) + " IS TRUE"
	case RegistryConsent:
		return inSetSQL(subjectText(columnSQL(row, n.Subjects.Subject)), w.consentingSubjectsSQL(n)) + " IS TRUE"
	case RecordedConsent:
		grantor := w.newAlias()
		where := append([]string{columnSQL(grantor, n.Record.GrantorColumn) + " IS NOT NULL"},
			w.recordConditions(n.Record, grantor, row)...)
		return w.orCallerSQL(n, row, inSetSQL(columnSQL(row, n.Subject),
			"SELECT "+columnSQL(grantor, n.Record.GrantorColumn)+" FROM "+w.lookupName(n.Record.Relation)+" AS "+grantor+
				" WHERE "+strings.Join(where, " AND "))+" IS TRUE")
	default:
		return "false"
	}
}

// notAgreedSQL returns the end of a query over the rows of the first step, called first. The query finds the rows that
// meet the condition and lead to a subject who has not agreed, or to no subject. If each further link leads to at most
// one row, an anti-join finds the rows that lead to no subject who has agreed. It reads the status of each subject
// once, and not for each link.
func (w *predicateWriter) notAgreedSQL(n Consent, first, condition string) string {
	var b strings.Builder
	last := first
	if len(n.Steps) > 1 && !slices.ContainsFunc(n.Steps[1:], func(s Step) bool { return !s.LeadsToAtMostOne() }) {
		var where string
		for i, step := range n.Steps[1:] {
			next := w.newAlias()
			if i == 0 {
				b.WriteString(w.lookupName(step.Relation) + " AS " + next)
				where = step.onSQL(next, last)
			} else {
				b.WriteString(" JOIN " + w.lookupName(step.Relation) + " AS " + next + " ON " + step.onSQL(next, last))
			}
			last = next
		}
		return " WHERE " + condition + " AND NOT EXISTS (SELECT 1 FROM " + b.String() + " WHERE " + where + " AND " +
			w.subjectAgreesSQL(n, last) + ")"
	}
	for i, step := range n.Steps[1:] {
		next := w.newAlias()
		b.WriteString(" LEFT JOIN (SELECT " + columnListSQL(next,
			append(step.targetColumns(), n.stepColumns(i+1)...)...) + " FROM " +
			w.lookupName(step.Relation) + " AS " + next + ") AS " + next +
			" ON " + step.onSQL(next, last))
		last = next
	}
	return b.String() + " WHERE " + condition + " AND " + w.subjectAgreesSQL(n, last) + " IS NOT TRUE"
}

func inSetSQL(value, set string) string {
	return "(" + equalSQL(value, "ANY ("+set+")") + ")"
}

// stepInSetSQL returns the SQL condition that the values of the row's link columns are in a set. PostgreSQL would
// compare a row value with some NULLs to the whole set, so such rows are excluded first.
func (s Step) stepInSetSQL(row, set string) string {
	var start []string
	for _, from := range s.fromColumns() {
		start = append(start, columnSQL(row, from))
	}
	if len(start) == 1 {
		return inSetSQL(start[0], set)
	}
	return "(" + s.startNotNullSQL(row) + " AND " + inSetSQL("ROW("+strings.Join(start, ", ")+")", set) + ")"
}

// stepSetSQL returns a query of all values of the columns to which a step leads.
func (w *predicateWriter) stepSetSQL(step Step, alias string) string {
	return "SELECT " + columnListSQL(alias, step.targetColumns()...) + " FROM " + w.lookupName(step.Relation) + " AS " +
		alias +
		" WHERE " + step.targetNotNullSQL(alias)
}

// columnListSQL returns a list of columns as SQL, each column once.
func columnListSQL(row string, names ...string) string {
	var out []string
	for i, name := range names {
		if slices.Index(names, name) == i {
			out = append(out, columnSQL(row, name))
		}
	}
	return strings.Join(out, ", ")
}

// isHashable reports whether a node has a hashed form that PostgreSQL will hash. It returns false for an unknown node.
func isHashable(node Node, row *catalog.Relation) bool {
	switch n := node.(type) {
	case Open, Own, Tenant, Grant, Status, SQL:
		return true
	case Not:
		return isHashable(n.Node, row)
	case All:
		return areHashable(n, row)
	case Any:
		return areHashable(n, row)
	case Consent:
		return len(n.Steps) > 0 && isHashed(row, n.Steps[0])
	case Visible:
		return isHashed(row, n.step()) && isHashable(n.Rows, n.Relation)
	case RegistryConsent:
		return n.dependsOnSubjectOnly() && row != nil
	case RecordedConsent:
		r := n.Record
		return n.hasSingleSubject() && len(r.MatchedColumns) == 0 &&
			(r.Scope == nil || len(r.Scope.WordColumns)+len(r.Scope.ListColumns) == 0) &&
			isHashed(row, Step{Relation: r.Relation, Column: r.GrantorColumn, FromColumn: n.Subject}) &&
			(r.Rows == nil || isHashable(r.Rows, r.Relation))
	default:
		return false
	}
}

func areHashable(parts []Node, row *catalog.Relation) bool {
	for _, part := range parts {
		if !isHashable(part, row) {
			return false
		}
	}
	return true
}

// isHashed reports whether PostgreSQL hashes the comparison of a row's columns with those to which a step leads, and
// can compare all values except NULL. Without hashing it would scan the whole set for each row.
func isHashed(row *catalog.Relation, step Step) bool {
	if row == nil {
		return false
	}
	for _, p := range step.pairs() {
		a, b := row.Column(p.FromColumn), step.Relation.Column(p.Column)
		if a == nil || b == nil || hashFamilies[a.TypeOID] == "" || hashFamilies[a.TypeOID] != hashFamilies[b.TypeOID] {
			return false
		}
	}
	return !step.repeatsColumn()
}

// hashFamilies maps the OIDs of types to families. PostgreSQL hashes equal values of types in one family alike.
var hashFamilies = map[uint32]string{
	20: "integer", 21: "integer", 23: "integer",
	25: "text", 1043: "text",
	2950: "uuid",
	1082: "date", 1114: "timestamp", 1184: "timestamptz",
	1700: "numeric", 17: "bytea", 26: "oid",
}

// HashedSet is a set of values that the hashed form builds. It has the values of the columns in at most all rows of the
// relation.
type HashedSet struct {
	Relation     *catalog.Relation
	Columns      []string
	SourceTables []*catalog.Relation // the tables from which it is built
}

// HashedSets returns the sets that the hashed form of a node builds. It returns none if the policy on rel has only the
// probe form.
func HashedSets(node Node, rel *catalog.Relation) []HashedSet {
	switch n := node.(type) {
	case All:
		return hashedSetsOf(n, rel)
	case Any:
		return hashedSetsOf(n, rel)
	case Consent:
		if !isHashable(n, rel) {
			return nil
		}
		set := HashedSet{n.Steps[0].Relation, n.Steps[0].targetColumns(), nil}
		for _, step := range n.Steps {
			set.SourceTables = append(set.SourceTables, step.Relation)
		}
		return []HashedSet{set}
	case Visible:
		if !isHashable(n, rel) {
			return nil
		}
		return append([]HashedSet{{n.Relation, n.step().targetColumns(), []*catalog.Relation{n.Relation}}},
			HashedSets(n.Rows, n.Relation)...)
	case RegistryConsent:
		if !isHashable(n, rel) {
			return nil
		}
		return []HashedSet{{registryTable, []string{"subject"}, []*catalog.Relation{registryTable}}}
	case RecordedConsent:
		if !isHashable(n, rel) {
			return nil
		}
		return []HashedSet{{n.Record.Relation, []string{n.Record.GrantorColumn}, []*catalog.Relation{n.Record.Relation}}}
	default:
		return nil
	}
}

func hashedSetsOf(parts []Node, rel *catalog.Relation) []HashedSet {
	var out []HashedSet
	for _, part := range parts {
		out = append(out, HashedSets(part, rel)...)
	}
	return out
}
