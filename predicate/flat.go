package predicate

import (
	"strings"

	"github.com/pgconsent/pgconsent/catalog"
)

// Flat writes n as the condition of a door view, whose row is called alias: EXISTS and NOT EXISTS as the planner turns
// them into joins. It means what [Policy] means. It is not a wall by itself: the planner may evaluate what else a
// statement says before it, which therefore must not tell anything, see package rewrite.
//
// The second result is false for a node that has no such form.
func Flat(n Node, alias string) (string, bool) {
	if !flattens(n) {
		return "", false
	}
	w := writer{policy: true, form: flat, prefix: prefixFor(alias)}
	return strings.Join(append(guards(optional(n)), w.write(n, catalog.QuoteIdent(alias))), " AND "), true
}

func flattens(n Node) bool {
	switch n := n.(type) {
	case Own, Status, Tenant, Grant, SQL:
		return true
	case Not:
		return flattens(n.Node)
	case All:
		return flattenParts(n)
	case Any:
		return flattenParts(n)
	case Consent:
		return len(n.Steps) > 0
	case Visible:
		return flattens(n.Rows)
	case Registered:
		return n.single()
	default:
		return false
	}
}

func flattenParts(parts []Node) bool {
	for _, part := range parts {
		if !flattens(part) {
			return false
		}
	}
	return len(parts) > 0
}

// flat writes a Consent or Visible.
func (w *writer) flat(n Node, row string) string {
	switch n := n.(type) {
	case Consent:
		var b strings.Builder
		if n.Required {
			first := w.alias()
			b.WriteString("EXISTS (SELECT 1 FROM " + w.helper(n.Steps[0].Relation) + " AS " + first + " WHERE " + n.Steps[0].on(first, row) + ") AND ")
		}
		first := w.alias()
		b.WriteString("NOT EXISTS (SELECT 1 FROM " + w.helper(n.Steps[0].Relation) + " AS " + first +
			w.unagreed(n, first, n.Steps[0].on(first, row)) + ")")
		return b.String()
	case Visible:
		target := w.alias()
		return "EXISTS (SELECT 1 FROM " + w.helper(n.Relation) + " AS " + target +
			" WHERE " + n.step().on(target, row) + " AND " + w.write(n.Rows, target) + ")"
	case Registered:
		return "EXISTS (" + w.consents(n, row, column(row, n.Of.Subject)) + ")"
	default:
		return "false"
	}
}

// DoorView is the view that vetted statements read in place of a protected table: its visible rows. It raises unless the
// statement is signed.
func DoorView(table catalog.Name) catalog.Name {
	return catalog.Name{Schema: GateSchema, Name: derived(doorPrefix, table)}
}

const doorPrefix = "door_"

// HasDoor tells whether a table whose rows show by n gets a door view, if agents see columns of it as they are. A table that is
// open to agents needs none.
func HasDoor(n Node, rel *catalog.Relation) bool {
	return flattens(n) && (rel.Kind == catalog.Table || rel.Kind == catalog.PartitionedTable) && !rel.IsPartition
}
