package predicate

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Flat writes n as the condition of a signed view of rel, whose row is called alias: with EXISTS and NOT EXISTS, which the
// planner turns into joins. It means the same as [Policy]. It does not enforce anything by itself: the planner may
// evaluate other conditions of the statement before it, and these must be leak-safe, see package rewrite.
//
// The second result is false for a node that has no such form.
func Flat(n Node, rel *catalog.Relation, alias string) (string, bool) {
	if !hasFlatForm(n) {
		return "", false
	}
	w := writer{policy: true, form: flat, prefix: prefixFor(alias), row: rel}
	row := catalog.QuoteIdent(alias)
	if HasHashedPart(n, rel) {
		return strings.Join(append(guards(attributesToGuard(n)), w.hashedParts(n, row)...), " AND "), true
	}
	return strings.Join(append(guards(attributesToGuard(n)), w.writeParts(n, row, w.withUseIndexHint)), " AND "), true
}

// HasHashedPart tells whether the condition of a signed view has parts that [UseHashHint] turns into sets.
func HasHashedPart(n Node, rel *catalog.Relation) bool {
	parts := Conjuncts(n)
	joins, _ := countJoins(parts)
	return joins > 1 && hasFlatForm(n) && !slices.ContainsFunc(parts,
		func(part Node) bool { return joinDepth(part) > 0 && !hashable(part, rel) })
}

// hashedParts writes parts of which several read other tables: each by look-ups, or where the text has [UseHashHint] as
// a set. None becomes a join: of several the planner misjudges how many rows come out (see innerRow), also of those that
// lead to one row, where a statement reads two such views. Look-ups it counts for each row, also where it will hash
// (cost_subplan of an AlternativeSubPlan), and joins tables in any order to have fewer rows. A set it reckons with once.
func (w *writer) hashedParts(n Node, row string) []string {
	var out []string
	for _, part := range Conjuncts(n) {
		text := w.withUseIndexHint(part, row)
		if joinDepth(part) > 0 {
			w.form = hashedForm
			set := w.write(part, row)
			w.form = flat
			text = "CASE WHEN pgconsent_signed.use_hash() THEN " + set + " ELSE (" + text + ") IS TRUE END"
		}
		out = append(out, text)
	}
	return out
}

// hasFlatForm tells whether Flat can write n.
func hasFlatForm(n Node) bool {
	switch n := n.(type) {
	case Own, Status, Tenant, Grant, SQL:
		return true
	case Not:
		return hasFlatForm(n.Node)
	case All:
		return haveFlatForm(n)
	case Any:
		return haveFlatForm(n)
	case Consent:
		return len(n.Steps) > 0
	case Visible:
		return hasFlatForm(n.Rows)
	case Registered:
		return n.singleSubject()
	case Recorded:
		return true
	default:
		return false
	}
}

// haveFlatForm tells whether Flat can write all of one part or more.
func haveFlatForm(parts []Node) bool {
	for _, part := range parts {
		if !hasFlatForm(part) {
			return false
		}
	}
	return len(parts) > 0
}

// flatSQL writes a sublink.
func (w *writer) flatSQL(n Node, row string) string {
	switch n := n.(type) {
	case Consent:
		var b strings.Builder
		if n.Required {
			first := w.alias()
			b.WriteString("EXISTS (SELECT 1 FROM " + w.helper(n.Steps[0].Relation) + " AS " + first + " WHERE " +
				n.Steps[0].onSQL(first, row) + ") AND ")
		}
		first := w.alias()
		b.WriteString("NOT EXISTS (SELECT 1 FROM " + w.helper(n.Steps[0].Relation) + " AS " + first +
			w.notAgreed(n, first, n.Steps[0].onSQL(first, row)) + ")")
		return b.String()
	case Visible:
		target := w.alias()
		return "EXISTS (SELECT 1 FROM " + w.helper(n.Relation) + " AS " + target +
			" WHERE " + n.step().onSQL(target, row) + " AND " + w.linkedRow(n.Rows, target, n.step().LeadsToOne()) + ")"
	case Registered:
		return "EXISTS (" + w.consentsSQL(n, row, column(row, n.Of.Subject)) + ")"
	case Recorded:
		if !n.singleSubject() { // a list cannot be joined
			return w.recordedSQL(n, row)
		}
		return w.orSelf(n, row, "EXISTS ("+w.recordSQL(n.Record, row, column(row, n.Subject))+")")
	default:
		return "false"
	}
}

// innerRow writes the condition on a row: the row of the table, or a row that a link leads to. The planner turns chains
// of links into joins. With several joins it may join two unrelated tables first, and underestimates how many rows that
// gives. So innerRow lets only the longest chain become a join. It adds IS TRUE to the other conditions, which keeps
// PostgreSQL from joining them: it looks them up for a few rows, and hashes them for many.
func (w *writer) innerRow(n Node, row string) string {
	if joins, _ := countJoins(Conjuncts(n)); joins < 2 {
		return w.write(n, row)
	}
	return w.writeParts(n, row, w.write)
}

// linkedRow writes the condition on the row that a link leads to. If the link leads to at most one row, PostgreSQL
// makes a plain join of the link. It estimates that join well as long as nothing else is joined to the row.
func (w *writer) linkedRow(n Node, row string, one bool) string {
	if !one {
		return w.innerRow(n, row)
	}
	var out []string
	for _, part := range Conjuncts(n) {
		text := w.write(part, row)
		if joinDepth(part) > 0 {
			text = "(" + text + ") IS TRUE"
		}
		out = append(out, text)
	}
	return strings.Join(out, " AND ")
}

// writeParts writes the parts of n joined by AND, each part as write writes it. Only the part with the longest chain
// may become a join; see innerRow.
func (w *writer) writeParts(n Node, row string, write func(Node, string) string) string {
	parts := Conjuncts(n)
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

// countJoins is how many of the parts may become joins, and which one has the longest chain.
func countJoins(parts []Node) (joins, furthest int) {
	for i, part := range parts {
		if joinDepth(part) > 0 {
			joins++
		}
		if joinDepth(part) > joinDepth(parts[furthest]) {
			furthest = i
		}
	}
	return joins, furthest
}

// joinDepth is how many tables the planner may join for a node, one after the other.
func joinDepth(n Node) int {
	switch n := n.(type) {
	case Consent:
		return len(n.Steps)
	case Visible:
		furthest := 0
		for _, part := range Conjuncts(n.Rows) {
			furthest = max(furthest, joinDepth(part))
		}
		return 1 + furthest
	case Registered, Recorded:
		return 1
	default:
		return 0
	}
}

// SignedView is the view that leak-safe statements read in place of a protected table: its visible rows. It raises
// unless the statement is signed.
func SignedView(table catalog.Name) catalog.Name {
	return catalog.Name{Schema: SignedSchema, Name: objectName(signedViewPrefix, table)}
}

const signedViewPrefix = "visible_"

// HasSignedView tells whether a table with the rule n gets a signed view, provided that agents see some of its columns
// unmasked. A table that is open to agents needs none.
func HasSignedView(n Node, rel *catalog.Relation) bool {
	return hasFlatForm(n) && (rel.Kind == catalog.Table || rel.Kind == catalog.PartitionedTable) && !rel.IsPartition
}
