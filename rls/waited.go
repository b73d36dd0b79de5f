package rls

import "fmt"

// The names of the row policies for statements that have waited for a row lock. PostgreSQL evaluates restrictive
// policies in the order of their names. These sort after pgconsent's other policies, so they do not run for a row that
// another policy hides. See get_row_security_policies in rowsecurity.c, and process_security_barrier_quals in
// initsplan.c.
const (
	updateAfterWaitPolicy = "pgconsent_waited_update"
	deleteAfterWaitPolicy = "pgconsent_waited_delete"
)

// policiesAfterWait returns row policies that fail with 40001 if an UPDATE or DELETE has waited for another
// transaction's change of a row and consent has changed meanwhile. The policy for UPDATE also applies to SELECT FOR
// UPDATE and FOR SHARE. Nearly always the row was written before the statement began; then the policies only compare
// two numbers.
func (f writePolicies) policiesAfterWait() []Object {
	isTracked := !untrackedRelations(f.planFacts.policy)[f.Relation.Name]
	usingClause := fmt.Sprintf(
		"USING (pg_catalog.age(xmin) OPERATOR(pg_catalog.>) (SELECT "+
			"pg_catalog.age(pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::pg_catalog.xid)) "+
			"OR pgconsent_signed.row_is_current(xmin, %t))", isTracked)
	const why = "What has waited for a row while consent changed ends with 40001: it would show the new row by the " +
		"old consents."
	var out []Object
	if f.Write.Allows("UPDATE") {
		out = append(out, f.commandPolicy("UPDATE", updateAfterWaitPolicy, usingClause, why, nil))
	}
	if f.Write.Allows("DELETE") {
		out = append(out, f.commandPolicy("DELETE", deleteAfterWaitPolicy, usingClause, why, nil))
	}
	return out
}
