package predicate

// UseIndexHint is a comment which says that the statement's own conditions find few rows by an index. The rewriter puts
// it in front of a statement's text, or behind the signature.
const UseIndexHint = "/*pgconsent:use_index*/"

// withUseIndexHint writes a part of a rule for which PostgreSQL may use an index: whose row it is, or to whom it is
// granted. If the agent's own condition has another index, PostgreSQL would combine both (BitmapAnd), and read each row
// of a tenant for the few that the agent wants. The reason is that it adds the cost of the rule's look-ups for every
// row that the first index finds, even for other people's rows, for which nothing is looked up. With [UseIndexHint] the
// part only filters the rows found, and no index is used for it.
//
// Under row security, most rows that a search by an agent's own keys finds are the agent's. So the SQL makes PostgreSQL
// expect the part to be true, as in [InjectedCondition]. Otherwise PostgreSQL would expect fewer rows than a LIMIT asks
// for, and sort all rows. A search in everybody's texts mostly finds rows of others, so in a signed view the part has
// its plain estimate.
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

// isIndexable reports whether PostgreSQL may use an index for a part of a rule, and the part reads no other table.
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

// readsOtherTables reports whether one of the parts reads other tables.
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
