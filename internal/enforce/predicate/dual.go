package predicate

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// UseHashHint in front of a statement's text, or behind its signature, chooses the hashed form of sublinks.
const UseHashHint = "/*pgconsent:use_hash*/"

// form is how a sublink is written.
type form int

const (
	probe      form = iota // looks up the rows of one outer row; OFFSET 0 keeps the planner from hashing a whole helper table
	hashedForm             // does not depend on the outer row: the planner hashes it once
	dual                   // a CASE of both
	flat                   // may become a join
)

// sublink writes a node that reads other tables in the writer's form, which is not probe.
//
// The dual form is CASE WHEN pgconsent_signed.use_hash() THEN hashed ELSE probe END. The planner itself would choose by
// an estimate that ignores LIMIT; its choice has taken 235 times as long as the other form. scan() reads a hint in the
// text of the statement, and is no security input: both forms show the same rows. It is not in a sub-select, so that
// the planner evaluates it, and plans and starts only one form.
func (w *writer) sublink(n Node, row string) string {
	switch w.form {
	case hashedForm:
		return w.hashedSQL(n, row)
	case flat:
		return w.flatSQL(n, row)
	}
	defer func(f form) { w.form = f }(w.form)
	w.form = probe
	probed := w.probeSQL(n, row)
	if !hashable(n, w.row) {
		return probed
	}
	w.form = hashedForm
	return "CASE WHEN pgconsent_signed.use_hash() THEN " + w.hashedSQL(n, row) + " ELSE " + probed + " END"
}

func (w *writer) probeSQL(n Node, row string) string {
	switch n := n.(type) {
	case Consent:
		return w.noSubjectRefuses(n, row)
	case Recorded:
		return w.recordedSQL(n, row)
	}
	return w.write(n, row)
}

// hashedSQL writes sets in place of look-ups. A NULL in the set of NOT IN would hide every row, so NULLs are left out
// of sets. A NULL on the other side is in no set: IS TRUE makes that false.
func (w *writer) hashedSQL(n Node, row string) string {
	switch n := n.(type) {
	case Consent:
		start := column(row, n.Steps[0].From)
		var b strings.Builder
		if n.Required {
			first := w.alias()
			b.WriteString(inSet(start, w.setSQL(n.Steps[0], first)) + " IS TRUE AND ")
		}
		first := w.alias()
		b.WriteString("NOT " + inSet(start, "SELECT "+column(first, n.Steps[0].Column)+" FROM "+
			w.helper(n.Steps[0].Relation)+" AS "+first+
			w.notAgreed(n, first, column(first, n.Steps[0].Column)+" IS NOT NULL")))
		return "(" + b.String() + ")"
	case Visible:
		target := w.alias()
		return inSet(column(row, n.From), w.setSQL(n.step(), target)+" AND "+w.write(n.Rows, target)) + " IS TRUE"
	case Registered:
		return inSet(subjectText(column(row, n.Of.Subject)), w.registeredSet(n)) + " IS TRUE"
	case Recorded:
		grantor := w.alias()
		where := append([]string{column(grantor, n.Record.Grantor) + " IS NOT NULL"}, w.recordOf(n.Record, grantor, row)...)
		return w.orSelf(n, row, inSet(column(row, n.Subject),
			"SELECT "+column(grantor, n.Record.Grantor)+" FROM "+w.helper(n.Record.Relation)+" AS "+grantor+
				" WHERE "+strings.Join(where, " AND "))+" IS TRUE")
	default:
		return "false"
	}
}

// notAgreed ends a query over the rows of the first step, called first: the rows that meet the condition and lead to a
// subject who has not agreed, or to no subject. Where each link leads to at most one row, these are the rows without a
// subject who has agreed: an anti-join, which reads the status of each subject once, and not for each link.
func (w *writer) notAgreed(n Consent, first, condition string) string {
	var b strings.Builder
	last := first
	if len(n.Steps) > 1 && !slices.ContainsFunc(n.Steps[1:], func(s Step) bool { return !s.LeadsToOne() }) {
		var where string
		for i, step := range n.Steps[1:] {
			next := w.alias()
			if i == 0 {
				b.WriteString(w.helper(step.Relation) + " AS " + next)
				where = step.onSQL(next, last)
			} else {
				b.WriteString(" JOIN " + w.helper(step.Relation) + " AS " + next + " ON " + step.onSQL(next, last))
			}
			last = next
		}
		return " WHERE " + condition + " AND NOT EXISTS (SELECT 1 FROM " + b.String() + " WHERE " + where + " AND " +
			w.subjectAgrees(n, last) + ")"
	}
	for i, step := range n.Steps[1:] {
		next := w.alias()
		b.WriteString(" LEFT JOIN (SELECT " + columns(next, append(step.columns(), n.reads(i+1)...)...) + " FROM " +
			w.helper(step.Relation) + " AS " + next + ") AS " + next +
			" ON " + step.onSQL(next, last))
		last = next
	}
	return b.String() + " WHERE " + condition + " AND " + w.subjectAgrees(n, last) + " IS NOT TRUE"
}

func inSet(value, set string) string {
	return "(" + equal(value, "ANY ("+set+")") + ")"
}

// setSQL is a query of all values of a step's column.
func (w *writer) setSQL(step Step, alias string) string {
	return "SELECT " + column(alias, step.Column) + " FROM " + w.helper(step.Relation) + " AS " + alias +
		" WHERE " + column(alias, step.Column) + " IS NOT NULL"
}

// columns lists columns, each once.
func columns(row string, names ...string) string {
	var out []string
	for i, name := range names {
		if slices.Index(names, name) == i {
			out = append(out, column(row, name))
		}
	}
	return strings.Join(out, ", ")
}

// hashable tells whether n has a hashed form that the planner will hash. An unknown node has none.
func hashable(n Node, row *catalog.Relation) bool {
	switch n := n.(type) {
	case Open, Own, Tenant, Grant, Status, SQL:
		return true
	case Not:
		return hashable(n.Node, row)
	case All:
		return hashableParts(n, row)
	case Any:
		return hashableParts(n, row)
	case Consent:
		return len(n.Steps) > 0 && sameHash(row, n.Steps[0].From, n.Steps[0]) &&
			!slices.ContainsFunc(n.Steps, func(s Step) bool { return len(s.And) > 0 })
	case Visible:
		return sameHash(row, n.From, n.step()) && len(n.And) == 0 && hashable(n.Rows, n.Relation)
	case Registered:
		return n.dependsOnSubjectOnly() && row != nil
	case Recorded:
		r := n.Record
		return n.singleSubject() && len(r.Match) == 0 && (r.Scope == nil || len(r.Scope.Is)+len(r.Scope.In) == 0) &&
			sameHash(row, n.Subject, Step{Relation: r.Relation, Column: r.Grantor}) &&
			(r.Rows == nil || hashable(r.Rows, r.Relation))
	default:
		return false
	}
}

func hashableParts(parts []Node, row *catalog.Relation) bool {
	for _, part := range parts {
		if !hashable(part, row) {
			return false
		}
	}
	return true
}

// sameHash tells whether PostgreSQL hashes the comparison of a step, and NULL is the only value that it cannot compare.
// Without hashing the whole set would be scanned for each row.
func sameHash(row *catalog.Relation, from string, to Step) bool {
	if row == nil {
		return false
	}
	a, b := row.Column(from), to.Relation.Column(to.Column)
	return a != nil && b != nil && hashFamilies[a.TypeOID] != "" && hashFamilies[a.TypeOID] == hashFamilies[b.TypeOID]
}

// hashFamilies are the types that PostgreSQL hashes alike within a family.
var hashFamilies = map[uint32]string{
	20: "integer", 21: "integer", 23: "integer",
	25: "text", 1043: "text",
	2950: "uuid",
	1082: "date", 1114: "timestamp", 1184: "timestamptz",
	1700: "numeric", 17: "bytea", 26: "oid",
}

// Set is a set that the hashed form makes: the values of one column, at most all of them.
type Set struct {
	Relation *catalog.Relation
	Column   string
	Reads    []*catalog.Relation // the tables that are read to make it
}

// Sets returns the sets of the hashed form of n; none where the policy on rel has the probe form only.
func Sets(n Node, rel *catalog.Relation) []Set {
	switch n := n.(type) {
	case All:
		return partSets(n, rel)
	case Any:
		return partSets(n, rel)
	case Consent:
		if !hashable(n, rel) {
			return nil
		}
		set := Set{n.Steps[0].Relation, n.Steps[0].Column, nil}
		for _, step := range n.Steps {
			set.Reads = append(set.Reads, step.Relation)
		}
		return []Set{set}
	case Visible:
		if !hashable(n, rel) {
			return nil
		}
		return append([]Set{{n.Relation, n.Column, []*catalog.Relation{n.Relation}}}, Sets(n.Rows, n.Relation)...)
	case Registered:
		if !hashable(n, rel) {
			return nil
		}
		return []Set{{registry, "subject", []*catalog.Relation{registry}}}
	case Recorded:
		if !hashable(n, rel) {
			return nil
		}
		return []Set{{n.Record.Relation, n.Record.Grantor, []*catalog.Relation{n.Record.Relation}}}
	default:
		return nil
	}
}

func partSets(parts []Node, rel *catalog.Relation) []Set {
	var out []Set
	for _, part := range parts {
		out = append(out, Sets(part, rel)...)
	}
	return out
}
