package predicate

import (
	"reflect"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Reference shows a row whose foreign key is NULL in part, or refers to a row of Relation that shows by that relation's
// own predicate. New rows must meet it: a hidden target and one that does not exist fail in the same way.
type Reference struct {
	Relation *catalog.Relation
	Columns  []string // columns of Relation
	From     []string // columns of the row, in the order of Columns
	Rows     Node     // the predicate of Relation

	// Before leads from a changed row to itself as it was before the statement: a key that did not change tells nothing,
	// whatever it refers to. Without a relation there is no row before.
	Before Step
}

func (Reference) node() {}

func (w *writer) referenceSQL(n Reference, row string) string {
	if w.negated || len(n.From) == 0 || len(n.From) != len(n.Columns) {
		return w.nothing()
	}
	outer := w.form
	w.form = probe
	defer func() { w.form = outer }()
	target := w.alias()
	var parts, matches []string
	for i, from := range n.From {
		parts = append(parts, column(row, from)+" IS NULL")
		matches = append(matches, equal(column(target, n.Columns[i]), column(row, from)))
	}
	matches = append(matches, w.write(n.Rows, target))
	if n.Before.Relation != nil {
		before := w.alias()
		same := []string{n.Before.onSQL(before, row)}
		for _, from := range n.From {
			same = append(same, equal(column(before, from), column(row, from)))
		}
		parts = append(parts, "EXISTS (SELECT 1 FROM "+w.helper(n.Before.Relation)+" AS "+before+
			" WHERE "+strings.Join(same, " AND ")+fence)
	}
	parts = append(parts, "EXISTS (SELECT 1 FROM "+w.helper(n.Relation)+" AS "+target+" WHERE "+
		strings.Join(matches, " AND ")+fence)
	return "(" + strings.Join(parts, " OR ") + ")"
}

func referenceShows(n Reference, row Row, w World) bool {
	if len(n.From) == 0 || len(n.From) != len(n.Columns) {
		return false
	}
	for _, from := range n.From {
		if _, ok := row[from]; !ok {
			return true
		}
	}
	if n.Before.Relation != nil && slices.ContainsFunc(follow(n.Before, row, w), func(before Row) bool {
		return !slices.ContainsFunc(n.From, func(from string) bool { return before[from] != row[from] })
	}) {
		return true
	}
	return slices.ContainsFunc(w.Tables[n.Relation.Name], func(target Row) bool {
		for i, c := range n.Columns {
			if v, ok := target[c]; !ok || v != row[n.From[i]] {
				return false
			}
		}
		return judge(n.Rows, target, w) == yes
	})
}

// RowColumns returns the columns of the row itself that n reads, sorted; known is false if it may read any.
func RowColumns(n Node) (columns []string, known bool) {
	found := map[string]bool{}
	known = true
	walk(n, nil, func(n Node, row *catalog.Relation) {
		if row != nil {
			return
		}
		switch n := n.(type) {
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
			for _, from := range n.From {
				found[from] = true
			}
		case Derived:
			for _, from := range n.fromColumns() {
				found[from] = true
			}
		case Recorded:
			for _, from := range n.fromColumns() {
				found[from] = true
			}
		case Registered:
			for _, from := range n.fromColumns() {
				found[from] = true
			}
		default:
			known = false
		}
	})
	return sortedKeys(found), known
}

// Implies tells whether a condition has all parts of another one.
func Implies(n, other Node) bool {
	parts := Conjuncts(n)
	return !slices.ContainsFunc(Conjuncts(other), func(asked Node) bool {
		return !slices.ContainsFunc(parts, func(part Node) bool { return reflect.DeepEqual(part, asked) })
	})
}

// Conjuncts returns the parts that must all be true, nested ones included.
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
