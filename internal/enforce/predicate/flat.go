package predicate

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// SignedViewCondition returns n as the condition of a signed view of rel, whose row is called alias. It has EXISTS and
// NOT EXISTS, which PostgreSQL can turn into joins, and the same meaning as [RowPolicySQL]. It does not enforce
// anything by itself: PostgreSQL may evaluate other conditions of the statement before it, so these must be leak-safe
// (see package rewrite).
//
// The second result is false if n cannot be written in this form.
func SignedViewCondition(n Node, rel *catalog.Relation, alias string) (string, bool) {
	if !hasFlatForm(n) {
		return "", false
	}
	w := predicateWriter{forRowPolicy: true, sublinks: existsForm, prefix: aliasPrefixFor(alias), row: rel}
	row := catalog.QuoteIdent(alias)
	if HasHashedPart(n, rel) {
		return strings.Join(append(guardConditions(attributesToGuard(n)), w.hashedPartsSQL(n, row)...), " AND "), true
	}
	return strings.Join(append(guardConditions(attributesToGuard(n)), w.partsSQL(n, row, w.withUseIndexHint)), " AND "),
		true
}

// HasHashedPart reports whether the condition of a signed view has parts that [UseHashHint] makes PostgreSQL hash.
func HasHashedPart(n Node, rel *catalog.Relation) bool {
	parts := Conjuncts(n)
	joins, _ := countJoins(parts)
	return joins > 1 && hasFlatForm(n) && !slices.ContainsFunc(parts,
		func(part Node) bool { return joinDepth(part) > 0 && !isHashable(part, rel) })
}

// hashedPartsSQL writes a condition with several parts that read other tables. Each of these parts is a look-up for
// each row, or a hashed set if the text has [UseHashHint]; none of them becomes a join. PostgreSQL misjudges how many
// rows several joins return (see innerRowSQL), even joins that lead to one row, if a statement reads two such views. It
// adds the cost of a look-up for each row even if it will hash the rows (cost_subplan of an AlternativeSubPlan). To
// have fewer rows it joins tables in any order. It adds the cost of a set only once.
func (w *predicateWriter) hashedPartsSQL(node Node, row string) []string {
	var out []string
	for _, part := range Conjuncts(node) {
		text := w.withUseIndexHint(part, row)
		if joinDepth(part) > 0 {
			w.sublinks = hashedForm
			set := w.nodeSQL(part, row)
			w.sublinks = existsForm
			text = "CASE WHEN pgconsent_signed.use_hash() THEN " + set + " ELSE (" + text + ") IS TRUE END"
		}
		out = append(out, text)
	}
	return out
}

// hasFlatForm reports whether [SignedViewCondition] can write a node.
func hasFlatForm(node Node) bool {
	switch n := node.(type) {
	case Own, Status, Tenant, Grant, SQL:
		return true
	case Not:
		return hasFlatForm(n.Node)
	case All:
		return canWriteAllFlat(n)
	case Any:
		return canWriteAllFlat(n)
	case Consent:
		return len(n.Steps) > 0
	case Visible:
		return hasFlatForm(n.Rows)
	case RegistryConsent:
		return n.hasSingleSubject()
	case RecordedConsent:
		return true
	default:
		return false
	}
}

// canWriteAllFlat reports whether there are parts and [SignedViewCondition] can write each of them.
func canWriteAllFlat(parts []Node) bool {
	for _, part := range parts {
		if !hasFlatForm(part) {
			return false
		}
	}
	return len(parts) > 0
}

// existsSQL writes a node that reads other tables in the form that PostgreSQL may turn into a join.
func (w *predicateWriter) existsSQL(node Node, row string) string {
	switch n := node.(type) {
	case Consent:
		var b strings.Builder
		if n.FirstRequired {
			first := w.newAlias()
			b.WriteString("EXISTS (SELECT 1 FROM " + w.lookupName(n.Steps[0].Relation) + " AS " + first + " WHERE " +
				n.Steps[0].onSQL(first, row) + ") AND ")
		}
		first := w.newAlias()
		b.WriteString("NOT EXISTS (SELECT 1 FROM " + w.lookupName(n.Steps[0].Relation) + " AS " + first +
			w.notAgreedSQL(n, first, n.Steps[0].onSQL(first, row)) + ")")
		return b.String()
	case Visible:
		target := w.newAlias()
		return "EXISTS (SELECT 1 FROM " + w.lookupName(n.Relation) + " AS " + target +
			" WHERE " + n.step().onSQL(target, row) + " AND " + w.linkedRowSQL(n.Rows, target, n.step().LeadsToAtMostOne()) + ")"
	case RegistryConsent:
		return "EXISTS (" + w.consentsSQL(n, row, columnSQL(row, n.Subjects.Subject)) + ")"
	case RecordedConsent:
		if !n.hasSingleSubject() { // a list of ids cannot be joined
			return w.recordedConsentSQL(n, row)
		}
		return w.orCallerSQL(n, row, "EXISTS ("+w.recordSQL(n.Record, row, columnSQL(row, n.Subject))+")")
	default:
		return "false"
	}
}

// innerRowSQL writes the condition on a row: on the row of the table, or on a row to which a link leads. PostgreSQL
// turns chains of links into joins. With several joins it may join two unrelated tables first, and it underestimates
// how many rows that gives. So innerRowSQL lets only the longest chain become a join. It adds IS TRUE to the other
// conditions, which keeps PostgreSQL from joining them: it then looks their rows up if there are few, and hashes them
// if there are many.
func (w *predicateWriter) innerRowSQL(n Node, row string) string {
	if joins, _ := countJoins(Conjuncts(n)); joins < 2 {
		return w.nodeSQL(n, row)
	}
	return w.partsSQL(n, row, w.nodeSQL)
}

// linkedRowSQL writes the condition on the row to which a link leads. If the link leads to at most one row, PostgreSQL
// makes a plain join of it. It estimates that join well as long as nothing else is joined to that row.
func (w *predicateWriter) linkedRowSQL(node Node, row string, atMostOne bool) string {
	if !atMostOne {
		return w.innerRowSQL(node, row)
	}
	var out []string
	for _, part := range Conjuncts(node) {
		text := w.nodeSQL(part, row)
		if joinDepth(part) > 0 {
			text = "(" + text + ") IS TRUE"
		}
		out = append(out, text)
	}
	return strings.Join(out, " AND ")
}

// partsSQL joins the parts of a node by AND, each as the function write writes it. Only the part with the longest chain
// may become a join; see innerRowSQL.
func (w *predicateWriter) partsSQL(node Node, row string, write func(Node, string) string) string {
	parts := Conjuncts(node)
	joins, furthest := countJoins(parts)
	var out []string
	for i, part := range parts {
		text := write(part, row)
		if joins > 1 && i != furthest && joinDepth(part) > 0 {
			text = "(" + text + ") IS TRUE"
		}
		out = append(out, text)
	}
	return strings.Join(out, " AND ")
}

// countJoins returns how many of the parts may become joins, and the index of the part with the longest chain.
func countJoins(parts []Node) (joins, longest int) {
	for i, part := range parts {
		if joinDepth(part) > 0 {
			joins++
		}
		if joinDepth(part) > joinDepth(parts[longest]) {
			longest = i
		}
	}
	return joins, longest
}

// joinDepth returns the length of the longest chain of tables that PostgreSQL may join for a node.
func joinDepth(node Node) int {
	switch n := node.(type) {
	case Consent:
		return len(n.Steps)
	case Visible:
		furthest := 0
		for _, part := range Conjuncts(n.Rows) {
			furthest = max(furthest, joinDepth(part))
		}
		return 1 + furthest
	case RegistryConsent, RecordedConsent:
		return 1
	default:
		return 0
	}
}

// SignedView returns the name of the view that leak-safe statements read in place of a protected table. The view has
// the visible rows, and raises an error unless the statement is signed.
func SignedView(table catalog.Name) catalog.Name {
	return catalog.Name{Schema: SignedSchema, Name: objectName(signedViewPrefix, table)}
}

const signedViewPrefix = "visible_"

// HasSignedView reports whether a table with the rule n gets a signed view, if agents see some of its columns unmasked.
// A table whose rows are all visible needs none.
func HasSignedView(n Node, rel *catalog.Relation) bool {
	return hasFlatForm(n) && (rel.Kind == catalog.Table || rel.Kind == catalog.PartitionedTable) && !rel.IsPartition
}
