package predicate

import (
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Policy writes n as the USING expression of a policy on rel. The row is named by the table's own name. Where possible,
// sublinks have two forms of the same meaning, and pgconsent_signed.use_hash() chooses one as the statement is planned:
// see [writer.sublink].
//
// The expression never raises an error, since an error inside a policy would tell that a row exists. Where no row can
// show without an attribute, the expression has no separate test for the attribute.
func Policy(n Node, rel *catalog.Relation) string { return policyOn(n, rel, dual) }

// Check writes n as the WITH CHECK expression of a policy on rel: for the few rows that a statement writes, sublinks
// are probes.
func Check(n Node, rel *catalog.Relation) string { return policyOn(n, rel, probe) }

func policyOn(n Node, rel *catalog.Relation, sublinks form) string {
	w := writer{policy: true, form: sublinks, prefix: prefixFor(rel.Name.Name), row: rel}
	parts := guards(attributesToGuard(n))
	if len(requiredAttributes(n)) == 0 {
		parts = []string{"(SELECT pgconsent_signed.sealed())"}
	}
	row := catalog.QuoteIdent(rel.Name.Name)
	_, open := n.(Open)
	switch conjuncts := Conjuncts(n); {
	case open:
	case sublinks == dual && readsOtherTables(conjuncts):
		for _, part := range conjuncts {
			parts = append(parts, w.withUseIndexHint(part, row))
		}
	default:
		parts = append(parts, w.write(n, row))
	}
	return strings.Join(parts, " AND ")
}

// Inject writes n as a condition on the row that a statement calls alias. It reads the signed helper views, which raise
// an error unless the whole text is signed: needsSignature tells that it names one. An open table gives "true".
//
// The condition repeats that of row security, so it must not count twice in the planner's estimates: with a few doubled
// predicates the planner expects one row and joins in nested loops. It expects a CASE that IS NOT NULL to be true for
// nearly all rows. The sublinks inside stay probes, and run for the rows that row security lets through.
func Inject(n Node, alias string) (sql string, needsSignature bool) {
	if _, open := n.(Open); open {
		return "true", false
	}
	w := writer{prefix: prefixFor(alias)}
	parts := append(guards(attributesToGuard(n)), w.write(n, catalog.QuoteIdent(alias)))
	return "(CASE WHEN " + strings.Join(parts, " AND ") + " THEN true END) IS NOT NULL", w.namesSignedView
}

// attributesToGuard returns the attributes without which n might show a row, so that their presence must be tested. In
// a conjunction an Own without its attribute hides the row by itself.
func attributesToGuard(n Node) map[string]bool {
	all := requiredAttributes(n)
	for _, a := range hidingAttributes(n) {
		delete(all, a)
	}
	return all
}

func guards(attributes map[string]bool) []string {
	var out []string
	for _, a := range sortedKeys(attributes) {
		out = append(out, attr(a)+" IS NOT NULL")
	}
	return out
}

// attr is an attribute's value as text, read once for a statement.
func attr(name string) string { return "(SELECT " + attrText(name) + ")" }

func attrText(name string) string { return "pgconsent_signed.attr(" + catalog.QuoteLiteral(name) + ")" }

// prefixFor returns a prefix for aliases that cannot capture the outer row's name.
func prefixFor(outer string) string {
	prefix := "r"
	for strings.HasPrefix(outer, prefix) {
		prefix += "_"
	}
	return prefix
}

type writer struct {
	policy          bool
	direct          bool              // over the tables themselves
	form            form              // the form of sublinks
	row             *catalog.Relation // the outer row's table, where form is dual
	prefix          string
	aliases         int
	namesSignedView bool
	negated         bool   // inside a Not: what is written is true unless it is certainly false
	element         string // the element that is judged, if a rule judges elements of a list
}

func (w *writer) alias() string {
	w.aliases++
	return w.prefix + strconv.Itoa(w.aliases)
}

// helper names the relation that is read for a table which the predicate needs besides its own row.
func (w *writer) helper(r *catalog.Relation) string {
	if w.direct {
		return r.Name.SQL()
	}
	if w.policy {
		return HelperView(r.Name).SQL()
	}
	w.namesSignedView = true
	return SignedHelperView(r.Name).SQL()
}

// fence ends a sublink. OFFSET 0 keeps the planner from turning it into a join or a hash: it stays a probe.
const fence = " OFFSET 0)"

// write returns an expression that can be an operand of AND and OR. An unknown node shows nothing.
func (w *writer) write(n Node, row string) string {
	switch n := n.(type) {
	case Open:
		return "true"
	case All:
		return w.joinSQL(n, row, " AND ")
	case Any:
		return w.joinSQL(n, row, " OR ")
	case Own:
		return w.withAttributes(n, n.sql(row, w.negated))
	case Tenant:
		return w.withAttributes(n, n.sql(row, w.negated))
	case Grant:
		return w.withAttributes(n, n.sql(row, w.negated))
	case SQL:
		return w.leafSQL(expressionSQL(n.Expr, row))
	case Status:
		if w.negated {
			return w.leafSQL(status(column(row, n.Column), n.Is))
		}
		return w.statusHolds(column(row, n.Column), n.Is, n.Of)
	case Not:
		w.negated = !w.negated
		part := w.write(n.Node, row)
		w.negated = !w.negated
		return "NOT (" + part + ")"
	case Consent:
		if w.negated {
			return w.nothing()
		}
		return w.consentSQL(n, row)
	case Visible:
		if w.negated {
			return w.nothing()
		}
		if w.form != probe {
			return w.sublink(n, row)
		}
		target := w.alias()
		return "EXISTS (SELECT 1 FROM " + w.helper(n.Relation) + " AS " + target +
			" WHERE " + n.step().onSQL(target, row) +
			" AND " + w.write(n.Rows, target) + fence
	case Reference:
		return w.referenceSQL(n, row)
	case Recorded:
		if w.negated {
			return w.nothing()
		}
		if w.form != probe {
			return w.sublink(n, row)
		}
		return w.recordedSQL(n, row)
	case Derived:
		return w.derivedSQL(n, row)
	case Registered:
		if w.negated {
			return w.nothing()
		}
		if w.form != probe {
			return w.sublink(n, row)
		}
		return w.registeredSQL(n, row)
	default:
		return w.nothing()
	}
}

// leafSQL writes a condition on the row's own columns, which may be NULL.
func (w *writer) leafSQL(condition string) string {
	if w.negated {
		return "(" + condition + ") IS NOT FALSE"
	}
	return condition
}

// withAttributes writes a condition on attributes that may be missing.
func (w *writer) withAttributes(n Node, condition string) string {
	if w.negated {
		return orMissing(n, w.leafSQL(condition))
	}
	return condition
}

// nothing is the condition that hides the row, inside a Not as well.
func (w *writer) nothing() string { return strconv.FormatBool(w.negated) }

func (w *writer) joinSQL(nodes []Node, row, operator string) string {
	if len(nodes) == 0 {
		return w.nothing()
	}
	parts := make([]string, len(nodes))
	for i, n := range nodes {
		parts[i] = w.write(n, row)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "(" + strings.Join(parts, operator) + ")"
}

func (w *writer) consentSQL(n Consent, row string) string {
	if len(n.Steps) == 0 {
		return "false"
	}
	out := "(" + n.Steps[0].startNotNull(row)
	if w.policy && !n.Required {
		out += " AND (EXISTS (SELECT 1 FROM " + w.helper(n.Steps[0].Relation) + ") OR (SELECT " +
			EmptyFunction(n.Steps[0].Relation.Name).SQL() + "()))"
	}
	if w.form != probe {
		return w.materializedOr(n, row, out+" AND "+w.sublink(n, row)+")")
	}
	return w.materializedOr(n, row, out+" AND "+w.noSubjectRefuses(n, row)+")")
}

// noSubjectRefuses is, in the probe form, the condition that no subject refuses.
func (w *writer) noSubjectRefuses(n Consent, row string) string {
	var b strings.Builder
	if n.Required {
		first := w.alias()
		b.WriteString("EXISTS (SELECT 1 FROM " + w.helper(n.Steps[0].Relation) + " AS " + first +
			" WHERE " + n.Steps[0].onSQL(first, row) + fence + " AND ")
	}
	first := w.alias()
	last := first
	b.WriteString("NOT EXISTS (SELECT 1 FROM " + w.helper(n.Steps[0].Relation) + " AS " + first)
	for i, step := range n.Steps[1:] {
		next := w.alias()
		b.WriteString(w.linkSQL(step, last, next, n.reads(i+1)))
		last = next
	}
	b.WriteString(" WHERE " + n.Steps[0].onSQL(first, row) +
		" AND " + w.subjectAgrees(n, last) + " IS NOT TRUE" + fence)
	return b.String()
}

// linkSQL joins the rows that a step leads to, or a row of NULLs. The inner OFFSET 0 makes it a probe for each link:
// otherwise the planner reads the whole table of subjects for each row.
func (w *writer) linkSQL(step Step, from, to string, reads []string) string {
	on := step.onSQL(to, from)
	return " LEFT JOIN LATERAL (SELECT " + columns(to, reads...) + " FROM " + w.helper(step.Relation) + " AS " + to +
		" WHERE " + on + " OFFSET 0) AS " + to + " ON true"
}

// reads are the columns of the i-th step's rows that the next step, or the condition on the subject, reads.
func (n Consent) reads(i int) []string {
	if i+1 < len(n.Steps) {
		return n.Steps[i+1].fromColumns()
	}
	if n.Expires != "" {
		return []string{n.Status, n.Expires}
	}
	return []string{n.Status}
}

func column(row, name string) string { return row + "." + catalog.QuoteIdent(name) }

func equal(a, b string) string { return a + " OPERATOR(pg_catalog.=) " + b }

func status(column, is string) string {
	return "(" + equal(column+"::pg_catalog.text", catalog.QuoteLiteral(is)+"::pg_catalog.text") + ")"
}

// statusHolds is true where the status is the word, and false or NULL elsewhere. An enum and a boolean are compared by
// value, since PostgreSQL has statistics of the column; of its text it has none, and expects one row in two hundred.
// The text of an enum is compared as well, since its values may be renamed; the planner expects that part to be true.
// An agent's statement names no enum: agents may lack USAGE on its schema.
func (w *writer) statusHolds(column, is, of string) string {
	switch text := status(column, is); {
	case of == "boolean":
		return column + map[bool]string{true: " IS TRUE", false: " IS FALSE"}[is == "true"]
	case of == "", !w.policy:
		return text + " IS TRUE"
	default:
		return "(" + equal(column, catalog.QuoteLiteral(is)+"::"+of) + " AND (CASE WHEN " + text + " THEN true END) IS NOT NULL)"
	}
}
