package predicate

// UseIndexHint is the comment in front of a statement's text, or behind its signature, which says that the statement's
// own conditions find few rows by an index.
const UseIndexHint = "/*pgconsent:use_index*/"

// withUseIndexHint writes a part of a rule that an index may serve: whose row it is, or to whom it is granted. With
// another index for the agent's own condition the planner combines the two (BitmapAnd), and reads each row of a tenant
// for the few that the agent wants. It does so because it counts the rule's look-ups for every row that the first index
// finds, even for rows of other people, for which nothing is looked up. With [UseIndexHint] the part filters the rows
// that are found, and no index is used for it.
//
// Under row security most rows that an agent's own keys find are its own. So the planner is made to expect that the
// part is true, as in [InjectedCondition]; otherwise it would expect fewer rows than a LIMIT asks for, and sort all
// rows. A search in everybody's texts finds mostly rows of others, so in a signed view the part has its plain estimate.
func (w *predicateWriter) withUseIndexHint(n Node, row string) string {
	condition := w.nodeSQL(n, row)
	if !isIndexable(n) {
		return condition
	}
	hinted := "(" + condition + ") IS TRUE"
	if w.sublinks == choiceForm {
		hinted = "(CASE WHEN " + condition + " THEN true END) IS NOT NULL"
	}
	return "CASE WHEN pgconsent_signed.use_index() THEN " + hinted + " ELSE " + condition + " END"
}

// isIndexable tells whether an index may serve a part of a rule, and the part reads no other table.
func isIndexable(node Node) bool {
	switch n := node.(type) {
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

// readsOtherTables tells whether one of the parts reads other tables.
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
