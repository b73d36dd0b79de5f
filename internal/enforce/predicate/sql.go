package predicate

import (
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// RowPolicySQL returns n as the USING expression of a row policy on rel, in which the row has the table's own name.
// Where possible, sublinks have two forms of the same meaning. pgconsent_signed.use_hash() chooses one of them when
// PostgreSQL plans the statement, see [predicateWriter.sublinkSQL].
//
// The expression never raises an error, since an error in a policy would reveal that a row exists. If the condition
// hides every row without an attribute, the expression does not test separately that the attribute is present.
func RowPolicySQL(n Node, rel *catalog.Relation) string { return policySQL(n, rel, choiceForm) }

// CheckSQL returns n as the WITH CHECK expression of a row policy on rel. Its sublinks have the probe form, since a
// statement usually writes few rows.
func CheckSQL(n Node, rel *catalog.Relation) string { return policySQL(n, rel, probeForm) }

func policySQL(node Node, rel *catalog.Relation, sublinks sublinkForm) string {
	w := predicateWriter{forRowPolicy: true, sublinks: sublinks, prefix: aliasPrefixFor(rel.Name.Name), row: rel}
	parts := guardConditions(attributesToGuard(node))
	if len(requiredAttributes(node)) == 0 {
		parts = []string{"(SELECT pgconsent_signed.sealed())"}
	}
	row := catalog.QuoteIdent(rel.Name.Name)
	_, open := node.(Open)
	switch conjuncts := Conjuncts(node); {
	case open:
	case sublinks == choiceForm && readsOtherTables(conjuncts):
		for _, part := range conjuncts {
			parts = append(parts, w.withUseIndexHint(part, row))
		}
	default:
		parts = append(parts, w.nodeSQL(node, row))
	}
	return strings.Join(parts, " AND ")
}

// InjectedCondition returns n as a condition on the row that a statement calls alias. The condition reads the signed
// lookup views, which raise an error unless the whole text is signed; needsSignature says that it names one. For a
// table without a rule the condition is "true".
//
// The condition repeats that of row security, so it must not reduce the planner's estimates a second time. After a few
// repeated predicates the planner would expect one row and join in nested loops. It expects a CASE that IS NOT NULL to
// be true for nearly all rows. The sublinks in it have the probe form, and run only for rows that row security shows.
func InjectedCondition(n Node, alias string) (sql string, needsSignature bool) {
	if _, open := n.(Open); open {
		return "true", false
	}
	w := predicateWriter{prefix: aliasPrefixFor(alias)}
	parts := append(guardConditions(attributesToGuard(n)), w.nodeSQL(n, catalog.QuoteIdent(alias)))
	return "(CASE WHEN " + strings.Join(parts, " AND ") + " THEN true END) IS NOT NULL", w.namesSignedView
}

// attributesToGuard returns the attributes without which the SQL of a predicate might show a row, so that the SQL must
// test their presence. An Own without its attribute hides the row by itself, if nothing else in the predicate can show
// the row.
func attributesToGuard(n Node) map[string]bool {
	all := requiredAttributes(n)
	for _, a := range attributesThatHide(n) {
		delete(all, a)
	}
	return all
}

func guardConditions(attributes map[string]bool) []string {
	var out []string
	for _, a := range sortedKeys(attributes) {
		out = append(out, attrSQL(a)+" IS NOT NULL")
	}
	return out
}

// attrSQL returns the SQL expression of an attribute's value as text, which PostgreSQL evaluates once for a statement.
func attrSQL(name string) string { return "(SELECT " + attrText(name) + ")" }

func attrText(name string) string { return "pgconsent_signed.attr(" + catalog.QuoteLiteral(name) + ")" }

// aliasPrefixFor returns a prefix for aliases that can never equal the outer row's name.
func aliasPrefixFor(outer string) string {
	prefix := "r"
	for strings.HasPrefix(outer, prefix) {
		prefix += "_"
	}
	return prefix
}

// predicateWriter writes the SQL of a predicate.
type predicateWriter struct {
	forRowPolicy    bool
	readsTables     bool              // the SQL reads the tables themselves, not lookup views
	sublinks        sublinkForm       // the form of sublinks
	row             *catalog.Relation // the table of the outer row; set if sublinks is choiceForm
	prefix          string
	aliasCount      int
	namesSignedView bool
	negated         bool   // true inside a Not: the SQL must be true unless the condition is certainly false
	element         string // for rules about the elements of a list: the SQL of the element
}

// newAlias returns a new alias for a relation in the SQL.
func (w *predicateWriter) newAlias() string {
	w.aliasCount++
	return w.prefix + strconv.Itoa(w.aliasCount)
}

// lookupName returns the name of the view, or table, that the SQL reads for a lookup table.
func (w *predicateWriter) lookupName(r *catalog.Relation) string {
	if w.readsTables {
		return r.Name.SQL()
	}
	if w.forRowPolicy {
		return LookupView(r.Name).SQL()
	}
	w.namesSignedView = true
	return SignedLookupView(r.Name).SQL()
}

// offsetZeroEnd is the end of a sublink in the probe form. OFFSET 0 keeps PostgreSQL from turning the sublink into a
// join or a hash.
const offsetZeroEnd = " OFFSET 0)"

// nodeSQL returns the SQL expression of a node, which may be an operand of AND and OR. An unknown node shows no row.
func (w *predicateWriter) nodeSQL(node Node, row string) string {
	switch n := node.(type) {
	case Open:
		return "true"
	case All:
		return w.joinSQL(n, row, " AND ")
	case Any:
		return w.joinSQL(n, row, " OR ")
	case Own:
		return w.attributeConditionSQL(n, n.sql(row, w.negated))
	case Tenant:
		return w.attributeConditionSQL(n, n.sql(row, w.negated))
	case Grant:
		return w.attributeConditionSQL(n, n.conditionSQL(row, w.negated))
	case SQL:
		return w.leafSQL(expressionSQL(n.Expr, row))
	case Status:
		if w.negated {
			return w.leafSQL(statusSQL(columnSQL(row, n.Column), n.Value))
		}
		return w.statusHoldsSQL(columnSQL(row, n.Column), n.Value, n.ColumnType)
	case Not:
		w.negated = !w.negated
		part := w.nodeSQL(n.Node, row)
		w.negated = !w.negated
		return "NOT (" + part + ")"
	case Consent:
		if w.negated {
			return w.hidesAllSQL()
		}
		return w.consentSQL(n, row)
	case Visible:
		if w.negated {
			return w.hidesAllSQL()
		}
		if w.sublinks != probeForm {
			return w.sublinkSQL(n, row)
		}
		target := w.newAlias()
		return "EXISTS (SELECT 1 FROM " + w.lookupName(n.Relation) + " AS " + target +
			" WHERE " + n.step().onSQL(target, row) +
			" AND " + w.nodeSQL(n.Rows, target) + offsetZeroEnd
	case Reference:
		return w.referenceSQL(n, row)
	case RecordedConsent:
		if w.negated {
			return w.hidesAllSQL()
		}
		if w.sublinks != probeForm {
			return w.sublinkSQL(n, row)
		}
		return w.recordedConsentSQL(n, row)
	case Derived:
		return w.derivedSQL(n, row)
	case RegistryConsent:
		if w.negated {
			return w.hidesAllSQL()
		}
		if w.sublinks != probeForm {
			return w.sublinkSQL(n, row)
		}
		return w.registryConsentSQL(n, row)
	default:
		return w.hidesAllSQL()
	}
}

// leafSQL writes a condition on the row's own columns, which may be NULL.
func (w *predicateWriter) leafSQL(condition string) string {
	if w.negated {
		return "(" + condition + ") IS NOT FALSE"
	}
	return condition
}

// attributeConditionSQL writes a condition on attributes that may be missing.
func (w *predicateWriter) attributeConditionSQL(n Node, condition string) string {
	if w.negated {
		return orMissingSQL(n, w.leafSQL(condition))
	}
	return condition
}

// hidesAllSQL returns a condition that hides every row, also inside a Not.
func (w *predicateWriter) hidesAllSQL() string { return strconv.FormatBool(w.negated) }

func (w *predicateWriter) joinSQL(nodes []Node, row, operator string) string {
	if len(nodes) == 0 {
		return w.hidesAllSQL()
	}
	parts := make([]string, len(nodes))
	for i, node := range nodes {
		parts[i] = w.nodeSQL(node, row)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "(" + strings.Join(parts, operator) + ")"
}

func (w *predicateWriter) consentSQL(n Consent, row string) string {
	if len(n.Steps) == 0 {
		return "false"
	}
	out := "(" + n.Steps[0].startNotNullSQL(row)
	if w.forRowPolicy && !n.FirstRequired {
		out += " AND " + readableSQL(n.Steps[0].Relation)
	}
	if w.sublinks != probeForm {
		return w.storedOrLiveSQL(n, row, out+" AND "+w.sublinkSQL(n, row)+")")
	}
	return w.storedOrLiveSQL(n, row, out+" AND "+w.noSubjectRefusesSQL(n, row)+")")
}

// readableSQL returns the SQL condition that predicates can read a link table: see [ReadableFunction]. The planner
// evaluates the first call, whose argument is a constant. If it returns true, nothing is left to do for the execution.
// A plan that is reused was made under the same views, roles and row policies: PostgreSQL drops the plan when one of
// these changes, since the rest of the condition reads the table.
func readableSQL(link *catalog.Relation) string {
	function := ReadableFunction(link.Name).SQL()
	return "CASE WHEN " + function + "(NULL) THEN true ELSE (SELECT " + function + "(pg_catalog.statement_timestamp())) END"
}

// noSubjectRefusesSQL writes, in the probe form, the condition that no subject refuses.
func (w *predicateWriter) noSubjectRefusesSQL(n Consent, row string) string {
	var b strings.Builder
	if n.FirstRequired {
		first := w.newAlias()
		b.WriteString("EXISTS (SELECT 1 FROM " + w.lookupName(n.Steps[0].Relation) + " AS " + first +
			" WHERE " + n.Steps[0].onSQL(first, row) + offsetZeroEnd + " AND ")
	}
	first := w.newAlias()
	last := first
	b.WriteString("NOT EXISTS (SELECT 1 FROM " + w.lookupName(n.Steps[0].Relation) + " AS " + first)
	for i, step := range n.Steps[1:] {
		next := w.newAlias()
		b.WriteString(w.linkSQL(step, last, next, n.stepColumns(i+1)))
		last = next
	}
	b.WriteString(" WHERE " + n.Steps[0].onSQL(first, row) +
		" AND " + w.subjectAgreesSQL(n, last) + " IS NOT TRUE" + offsetZeroEnd)
	return b.String()
}

// linkSQL writes a join with the rows to which a step leads, or with a row of NULLs if there are none. The inner OFFSET
// 0 makes PostgreSQL look these rows up for each link. Otherwise it would read the whole table of subjects for each
// row.
func (w *predicateWriter) linkSQL(step Step, from, to string, columns []string) string {
	condition := step.onSQL(to, from)
	return " LEFT JOIN LATERAL (SELECT " + columnListSQL(to,
		columns...) + " FROM " + w.lookupName(step.Relation) + " AS " + to +
		" WHERE " + condition + " OFFSET 0) AS " + to + " ON true"
}

// stepColumns returns the columns that step i+1, or the condition on the subject, needs of the rows to which step i
// leads.
func (n Consent) stepColumns(i int) []string {
	if i+1 < len(n.Steps) {
		return n.Steps[i+1].fromColumns()
	}
	if n.ExpiryColumn != "" {
		return []string{n.StatusColumn, n.ExpiryColumn}
	}
	return []string{n.StatusColumn}
}

func columnSQL(row, name string) string { return row + "." + catalog.QuoteIdent(name) }

func equalSQL(a, b string) string { return a + " OPERATOR(pg_catalog.=) " + b }

// statusSQL writes the condition that a column, as text, has this value.
func statusSQL(column, value string) string {
	return "(" + equalSQL(column+"::pg_catalog.text", catalog.QuoteLiteral(value)+"::pg_catalog.text") + ")"
}

// statusHoldsSQL writes a condition that is true if the status is this word, and otherwise false or NULL. An enum or a
// boolean is compared by value, since PostgreSQL has statistics about the column. About the column's text it has none,
// and would expect one row in two hundred. The text of an enum is compared as well, since its values may be renamed;
// PostgreSQL expects that part to be true. The SQL in an agent's statement names no enum: agents may lack USAGE on its
// schema.
func (w *predicateWriter) statusHoldsSQL(column, value, typeName string) string {
	switch text := statusSQL(column, value); {
	case typeName == "boolean":
		return column + map[bool]string{true: " IS TRUE", false: " IS FALSE"}[value == "true"]
	case typeName == "", !w.forRowPolicy:
		return text + " IS TRUE"
	default:
		return "(" + equalSQL(column, catalog.QuoteLiteral(value)+"::"+typeName) + " AND (CASE WHEN " + text +
			" THEN true END) IS NOT NULL)"
	}
}
