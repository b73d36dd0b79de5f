package predicate

// UseIndexHint in front of a statement's text, or behind its signature, says that conditions of its own find few rows
// by an index.
const UseIndexHint = "/*pgconsent:seek*/"

// sought writes a part of a rule for which an index may be read, of the row itself: whose row it is, and to whom it was
// granted. Beside the agent's own condition for an index the planner joins the two (BitmapAnd), and reads each row of a
// tenant for the few that were asked for: it counts what the rule looks up for each row that the first index finds,
// also for those that are another's and for which nothing is looked up. By [UseIndexHint] the part is asked of the rows
// that are found, and no index is read for it.
//
// Behind row security most of what an agent's own keys find is its own, so there the part is expected to hold, as in
// [Inject]; else the planner would expect fewer rows than a LIMIT asks for, and sort all that there are. What an agent
// searches for in everybody's texts is not, so in a door the part counts as it is.
func (w *writer) withUseIndexHint(n Node, row string) string {
	part := w.write(n, row)
	if !isIndexable(n) {
		return part
	}
	asked := "(" + part + ") IS TRUE"
	if w.form == dual {
		asked = "(CASE WHEN " + part + " THEN true END) IS NOT NULL"
	}
	return "CASE WHEN pgconsent_gate.seek() THEN " + asked + " ELSE " + part + " END"
}

// seekable tells whether an index may be read for a part of a rule, and nothing else is looked up for it.
func isIndexable(n Node) bool {
	switch n := n.(type) {
	case Own, Tenant, Grant:
		return true
	case Any:
		for _, part := range n {
			if !isIndexable(part) {
				return false
			}
		}
		return len(n) > 0
	default:
		return false
	}
}

// looksUp tells whether other tables are read for one of the parts.
func readsOtherTables(parts []Node) bool {
	for _, part := range parts {
		switch n := part.(type) {
		case Open, Own, Tenant, Grant, Status, SQL, Not:
		case Any:
			if readsOtherTables(n) {
				return true
			}
		case All:
			if readsOtherTables(n) {
				return true
			}
		default:
			return true
		}
	}
	return false
}
