package rls

import (
	"fmt"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// stampTrigger sorts before what an application calls its triggers: PostgreSQL fires them by name, and the owner's must
// see the stamped values, not the agent's. Whatever they make of these afterwards, the policy judges the final row.
const stampTrigger = `"!pgconsent_stamp"`

// writes makes what agents may change of a table: the commands that the policy does not allow stay closed.
func (p *Plan) writes(t *policy.Table) []Statement {
	table, w := t.Relation.Name.SQL(), t.Write
	insert, update, remove := "WITH CHECK (false)", "USING (false)", "USING (false)"
	whyInsert, whyUpdate, whyDelete := "Agents insert nothing.", "Agents update nothing.", "Agents delete nothing."
	held := t
	if t.Observed != nil {
		held = t.Observed // what agents change is never merely observed
	}
	if p.mode == Enforce {
		if w.Allows("INSERT") {
			insert = fmt.Sprintf("WITH CHECK (%s)", predicate.Check(w.InsertCheck, t.Relation))
			whyInsert = "What a new row of an agent's must be, after all triggers have had it."
		}
		if w.Allows("UPDATE") {
			update = fmt.Sprintf("USING (%s) WITH CHECK (%s)", p.rows(held), predicate.Check(w.UpdateCheck, t.Relation))
			whyUpdate = "Agents change rows that they see, into rows that they see."
		}
		if w.Allows("DELETE") {
			remove = fmt.Sprintf("USING (%s)", p.rows(held))
			whyDelete = "Agents delete rows that they see."
		}
	}
	out := []Statement{
		{SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR INSERT TO %s %s", insertPolicy,
			table, p.bound(t), insert), Why: whyInsert},
		{SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR UPDATE TO %s %s", updatePolicy,
			table, p.bound(t), update), Why: whyUpdate},
		{SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR DELETE TO %s %s", deletePolicy,
			table, p.bound(t), remove), Why: whyDelete},
	}
	if w == nil || p.mode != Enforce {
		return out
	}
	out = append(out, p.waited(t)...)
	out = append(out, p.stamp(t)...)
	out = append(out, p.lists(t)...)
	out = append(out, p.copyIn(t)...)
	writer := p.agent
	if t.Columns != nil {
		writer = p.rowsRole // PostgreSQL writes through the row view with its owner's rights
	}
	grant := func(what, on, why string) {
		out = append(out, Statement{SQL: fmt.Sprintf("GRANT %s ON %s TO %s", what, on, writer), Why: why})
	}
	if w.Insert && len(w.Insertable) > 0 {
		grant("INSERT ("+strings.Join(quoteAll(w.Insertable), ", ")+")", "TABLE "+table,
			"The columns that an agent's INSERT may name.")
	}
	if w.Update {
		grant("UPDATE ("+strings.Join(quoteAll(w.Updatable), ", ")+")", "TABLE "+table,
			"The columns that an agent's UPDATE may set.")
	}
	if w.Delete {
		grant("DELETE", "TABLE "+table, "The policy lets agents delete.")
	}
	if w.Insert {
		for _, sequence := range defaults(t.Relation) {
			out = append(out, Statement{SQL: fmt.Sprintf("GRANT USAGE ON SEQUENCE %s TO %s", sequence.SQL(), p.agent),
				Why: "A default of " + t.Relation.Name.String() + " draws from it."})
		}
	}
	return out
}

// defaults are the sequences that defaults draw from with the rights of whoever inserts. Those of identity columns need
// none.
func defaults(r *catalog.Relation) []catalog.Name {
	var out []catalog.Name
	for _, c := range r.Columns {
		if c.Identity == "" && c.Sequence.Name != "" {
			out = append(out, c.Sequence)
		}
	}
	return out
}

// stamp makes the trigger that sets columns whatever an agent sends. It runs for the agent's role alone.
func (p *Plan) stamp(t *policy.Table) []Statement {
	var stamps []policy.Stamp
	for _, s := range t.Write.Stamps {
		if s.Unless == nil { // else see lists
			stamps = append(stamps, s)
		}
	}
	if !t.Write.Insert || len(stamps) == 0 {
		return nil
	}
	name := predicate.StampFunction(t.Relation.Name).SQL()
	const why = "Columns that agents do not choose. Rows of other roles are left alone."
	var body strings.Builder
	for _, s := range stamps {
		fmt.Fprintf(&body, "  NEW.%s := %s;\n", catalog.QuoteIdent(s.Column), stampedValue(s))
	}
	return []Statement{
		{SQL: fmt.Sprintf(`CREATE FUNCTION %s() RETURNS trigger
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $pgconsent$
BEGIN
%s  RETURN NEW;
END $pgconsent$`, name, body.String()), Why: why},
		{SQL: fmt.Sprintf("REVOKE ALL ON FUNCTION %s() FROM PUBLIC", name), Why: why},
		{SQL: fmt.Sprintf("CREATE TRIGGER %s BEFORE INSERT ON %s FOR EACH ROW WHEN (CURRENT_USER "+
			"OPERATOR(pg_catalog.=) %s::pg_catalog.name) EXECUTE FUNCTION %s()",
			stampTrigger, t.Relation.Name.SQL(), catalog.QuoteLiteral(p.agentName), name), Why: why},
	}
}

// copyIn makes what COPY FROM writes to: a view without rows whose trigger inserts each row as the agent. The columns
// have the table's defaults, for those that a COPY leaves out. The function pins no search path: the owner's triggers
// run inside it, with the path that they have in an INSERT.
func (p *Plan) copyIn(t *policy.Table) []Statement {
	if !t.Write.Insert || len(t.Write.CopyColumns) == 0 {
		return nil
	}
	view, function := predicate.CopyView(t.Relation.Name).SQL(), predicate.CopyFunction(t.Relation.Name).SQL()
	const why = "PostgreSQL refuses COPY FROM to a table under row security. Agents copy to this view, which " +
		"inserts with their rights."
	target := t.Relation.Name
	if t.Columns != nil {
		target = predicate.RowView(target)
	}
	var columns, values []string
	var defaults []Statement
	for _, name := range t.Write.CopyColumns {
		column, quoted := t.Relation.Column(name), catalog.QuoteIdent(name)
		columns = append(columns, "NULL::"+column.Type+" AS "+quoted)
		values = append(values, "NEW."+quoted)
		if left := leftIn(t.Write, name); left != "" {
			defaults = append(defaults, Statement{
				SQL: fmt.Sprintf("ALTER VIEW %s ALTER COLUMN %s SET DEFAULT %s", view, quoted, left), Why: why +
					" A list that it leaves out is filled in as in an INSERT."})
		} else if column.Default != "" {
			defaults = append(defaults, Statement{
				SQL: fmt.Sprintf("ALTER VIEW %s ALTER COLUMN %s SET DEFAULT %s", view, quoted, column.Default), Why: why})
		}
	}
	out := []Statement{
		{SQL: fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s", predicate.RowsSchema, p.agent), Why: why},
		{SQL: fmt.Sprintf("CREATE VIEW %s AS\nSELECT %s WHERE false", view, strings.Join(columns, ", ")), Why: why},
		{SQL: fmt.Sprintf(`CREATE FUNCTION %s() RETURNS trigger
LANGUAGE plpgsql SECURITY INVOKER AS $pgconsent$
BEGIN
  INSERT INTO %s (%s) VALUES (%s);
  IF FOUND THEN RETURN NEW; END IF;
  RETURN NULL;
END $pgconsent$`, function, target.SQL(), strings.Join(quoteAll(t.Write.CopyColumns), ", "), strings.Join(values, ", ")), Why: why},
		{SQL: fmt.Sprintf("REVOKE ALL ON FUNCTION %s() FROM PUBLIC", function), Why: why},
		{SQL: fmt.Sprintf("CREATE TRIGGER pgconsent_copy INSTEAD OF INSERT ON %s FOR EACH ROW EXECUTE FUNCTION %s()",
			view, function), Why: why},
		{SQL: fmt.Sprintf("GRANT INSERT, SELECT ON %s TO %s", view, p.agent),
			Why: why + " SELECT is for the WHERE of COPY: the view has no rows."},
	}
	return append(out, defaults...)
}

// leftIn is what stands for a list that a COPY leaves out, which the policy then fills in.
func leftIn(w *policy.Write, column string) string {
	for _, b := range w.Lists {
		if b.Column == column && b.From != nil {
			return b.OmittedDefault()
		}
	}
	return ""
}

func (p *Plan) dropWrites(t *policy.Table) []Statement {
	const why = "Take away what agents write through."
	if t.Write == nil {
		return nil
	}
	return []Statement{
		{SQL: fmt.Sprintf("DROP TRIGGER IF EXISTS %s ON %s", stampTrigger, t.Relation.Name.SQL()), Why: why},
		{SQL: fmt.Sprintf("DROP FUNCTION IF EXISTS %s()", predicate.StampFunction(t.Relation.Name).SQL()), Why: why},
		{SQL: fmt.Sprintf("DROP TRIGGER IF EXISTS %s ON %s", listTrigger, t.Relation.Name.SQL()), Why: why},
		{SQL: fmt.Sprintf("DROP FUNCTION IF EXISTS %s()", predicate.ListFunction(t.Relation.Name).SQL()), Why: why},
		{SQL: fmt.Sprintf("DROP VIEW IF EXISTS %s", predicate.CopyView(t.Relation.Name).SQL()), Why: why},
		{SQL: fmt.Sprintf("DROP FUNCTION IF EXISTS %s()", predicate.CopyFunction(t.Relation.Name).SQL()), Why: why},
	}
}
