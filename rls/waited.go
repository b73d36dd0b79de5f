package rls

import (
	"fmt"

	"github.com/pgconsent/pgconsent/policy"
)

// Names of the policies of what has waited. They sort behind the others of ours: PostgreSQL asks restrictive policies
// by their names, so that a row which the others hide is not asked about (get_row_security_policies in rowsecurity.c,
// process_security_barrier_quals in initsplan.c).
const (
	waitedUpdatePolicy = "pgconsent_waited_update"
	waitedDeletePolicy = "pgconsent_waited_delete"
)

// waited refuses (40001) what has waited for another's change of a row, if consent has changed meanwhile. The policy
// for UPDATE holds for SELECT FOR UPDATE and FOR SHARE as well. Of a row that was written before the statement began,
// as nearly all are, two numbers are compared.
func (p *Plan) waited(t *policy.Table) []Statement {
	if p.mode != Enforce {
		return nil
	}
	noted := !p.Unnoticed()[t.Relation.Name]
	isUnmoved := fmt.Sprintf(
		"pg_catalog.age(xmin) OPERATOR(pg_catalog.>) (SELECT "+
			"pg_catalog.age(pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::pg_catalog.xid)) "+
			"OR pgconsent_gate.unmoved(xmin, %t)", noted)
	var out []Statement
	add := func(name, command string) {
		out = append(out, Statement{
			SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR %s TO %s USING (%s)", name,
				t.Relation.Name.SQL(), command, p.bound(t), isUnmoved),
			Why: "What has waited for a row while consent changed ends with 40001: it would show the new row by the old consents.",
		})
	}
	if t.Write.Allows("UPDATE") {
		add(waitedUpdatePolicy, "UPDATE")
	}
	if t.Write.Allows("DELETE") {
		add(waitedDeletePolicy, "DELETE")
	}
	return out
}
