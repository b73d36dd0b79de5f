package predicate

import (
	"reflect"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Reference shows a row whose foreign key has a NULL, or refers to a row of Relation that meets that relation's own
// predicate. New rows must meet this: so a reference to a hidden row and one to a missing row fail in the same way.
type Reference struct {
	Relation    *catalog.Relation
	Columns     []string // columns of Relation that the foreign key names
	FromColumns []string // columns of the row, in the order of Columns
	Rows        Node     // the predicate for rows of Relation

	// RowBefore leads from a changed row to the same row as it was before the statement. If the statement did not change
	// the key, any target is allowed, since nothing is revealed. If RowBefore has no Relation, there is no row before.
	RowBefore Step
}

func (Reference) node() {}

func (w *predicateWriter) referenceSQL(n Reference, row string) string {
	if w.negated || len(n.FromColumns) == 0 || len(n.FromColumns) != len(n.Columns) {
		return w.hidesAllSQL()
	}
	outer := w.sublinks
	w.sublinks = probeForm
	defer func() { w.sublinks = outer }()
	target := w.newAlias()
	var parts, matches []string
	for i, from := range n.FromColumns {
		parts = append(parts, columnSQL(row, from)+" IS NULL")
		matches = append(matches, equalSQL(columnSQL(target, n.Columns[i]), columnSQL(row, from)))
	}
	matches = append(matches, w.nodeSQL(n.Rows, target))
	if n.RowBefore.Relation != nil {
		before := w.newAlias()
		same := []string{n.RowBefore.onSQL(before, row)}
		for _, from := range n.FromColumns {
			same = append(same, equalSQL(columnSQL(before, from), columnSQL(row, from)))
		}
		parts = append(parts, "EXISTS (SELECT 1 FROM "+w.lookupName(n.RowBefore.Relation)+" AS "+before+
			" WHERE "+strings.Join(same, " AND ")+offsetZeroEnd)
	}
	parts = append(parts, "EXISTS (SELECT 1 FROM "+w.lookupName(n.Relation)+" AS "+target+" WHERE "+
		strings.Join(matches, " AND ")+offsetZeroEnd)
	return "(" + strings.Join(parts, " OR ") + ")"
}

func isReferenceShown(n Reference, row Row, w World) bool {
	if len(n.FromColumns) == 0 || len(n.FromColumns) != len(n.Columns) {
		return false
	}
	for _, from := range n.FromColumns {
		if _, ok := row[from]; !ok {
			return true
		}
	}
	if n.RowBefore.Relation != nil && slices.ContainsFunc(followStep(n.RowBefore, row, w), func(before Row) bool {
		return !slices.ContainsFunc(n.FromColumns, func(from string) bool { return before[from] != row[from] })
	}) {
		return true
	}
	return slices.ContainsFunc(w.Tables[n.Relation.Name], func(target Row) bool {
		for i, c := range n.Columns {
			if v, ok := target[c]; !ok || v != row[n.FromColumns[i]] {
				return false
			}
		}
		return evalNode(n.Rows, target, w) == truthYes
	})
}

// RowColumns returns the row's own columns that a node reads, sorted. known is false if the node may read any column.
func RowColumns(node Node) (columns []string, known bool) {
	found := map[string]bool{}
	known = true
	walkNodes(node, nil, func(node Node, row *catalog.Relation) {
		if row != nil {
			return
		}
		switch n := node.(type) {
		case Open, All, Any, Not:
		case Own, Status, Tenant, Grant, SQL:
			for _, name := range columnsOf(n) {
				found[name] = true
			}
		case Consent:
			if len(n.Steps) > 0 {
				for _, from := range n.Steps[0].fromColumns() {
					found[from] = true
				}
			}
		case Visible:
			for _, from := range n.step().fromColumns() {
				found[from] = true
			}
		case Reference:
			for _, from := range n.FromColumns {
				found[from] = true
			}
		case Derived:
			for _, from := range n.fromColumns() {
				found[from] = true
			}
		case RecordedConsent:
			for _, from := range n.fromColumns() {
				found[from] = true
			}
		case RegistryConsent:
			for _, from := range n.fromColumns() {
				found[from] = true
			}
		default:
			known = false
		}
	})
	return sortedKeys(found), known
}

// Implies reports whether n has all the conjuncts of other.
func Implies(n, other Node) bool {
	parts := Conjuncts(n)
	return !slices.ContainsFunc(Conjuncts(other), func(required Node) bool {
		return !slices.ContainsFunc(parts, func(part Node) bool { return reflect.DeepEqual(part, required) })
	})
}

// Conjuncts returns the parts of n that must all be true, also those of a nested All.
func Conjuncts(n Node) []Node {
	all, ok := n.(All)
	if !ok || len(all) == 0 {
		return []Node{n}
	}
	var out []Node
	for _, part := range all {
		out = append(out, Conjuncts(part)...)
	}
	return out
}
