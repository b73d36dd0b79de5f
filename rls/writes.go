package rls

import (
	"fmt"
	"strings"

	"github.com/pgconsent/pgconsent/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/predicate"
)

// stampTrigger sorts before what an application calls its triggers: PostgreSQL fires them by name, and the owner's must
// see the stamped values, not the agent's. Whatever they make of these afterwards, the policy judges the final row.
const stampTrigger = `"!pgconsent_stamp"`

// writes makes what agents may change of a table: the commands that the policy does not allow stay closed.
func (p *Plan) writes(t *policy.Table) []Statement {
	table, w := t.Relation.Name.SQL(), t.Write
	insert, update, remove := "WITH CHECK (false)", "USING (false)", "USING (false)"
	whyInsert, whyUpdate, whyDelete := "Agents insert nothing.", "Agents update nothing.", "Agents delete nothing."
	if p.mode == Enforce {
		if w.Allows("INSERT") {
			insert = fmt.Sprintf("WITH CHECK (%s)", predicate.Check(w.InsertCheck, t.Relation))
			whyInsert = "What a new row of an agent's must be, after all triggers have had it."
		}
		if w.Allows("UPDATE") {
			update = fmt.Sprintf("USING (%s) WITH CHECK (%s)", p.rows(t), predicate.Check(w.UpdateCheck, t.Relation))
			whyUpdate = "Agents change rows that they see, into rows that they see."
		}
		if w.Allows("DELETE") {
			remove = fmt.Sprintf("USING (%s)", p.rows(t))
			whyDelete = "Agents delete rows that they see."
		}
	}
	out := []Statement{
		{SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR INSERT TO %s %s", insertPolicy, table, p.bound(t), insert), Why: whyInsert},
		{SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR UPDATE TO %s %s", updatePolicy, table, p.bound(t), update), Why: whyUpdate},
		{SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR DELETE TO %s %s", deletePolicy, table, p.bound(t), remove), Why: whyDelete},
	}
	if w == nil || p.mode != Enforce {
		return out
	}
	out = append(out, p.stamp(t)...)
	grant := func(what, on, why string) {
		out = append(out, Statement{SQL: fmt.Sprintf("GRANT %s ON %s TO %s", what, on, p.agent), Why: why})
	}
	if w.Insert && len(w.Insertable) > 0 {
		grant("INSERT ("+strings.Join(quoteAll(w.Insertable), ", ")+")", "TABLE "+table, "The columns that an agent's INSERT may name.")
	}
	if w.Update {
		grant("UPDATE ("+strings.Join(quoteAll(w.Updatable), ", ")+")", "TABLE "+table, "The columns that an agent's UPDATE may set.")
	}
	if w.Delete {
		grant("DELETE", "TABLE "+table, "The policy lets agents delete.")
	}
	if w.Insert {
		for _, sequence := range defaults(t.Relation) {
			grant("USAGE", "SEQUENCE "+sequence.SQL(), "A default of "+t.Relation.Name.String()+" draws from it.")
		}
	}
	return out
}

// defaults are the sequences that defaults draw from with the rights of whoever inserts. Those of identity columns need none.
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
	if !t.Write.Insert || len(t.Write.Stamps) == 0 {
		return nil
	}
	name := predicate.StampFunction(t.Relation.Name).SQL()
	const why = "Columns that agents do not choose. Rows of other roles are left alone."
	var body strings.Builder
	for _, s := range t.Write.Stamps {
		value := catalog.QuoteLiteral(s.Value)
		if s.Attribute != "" {
			value = "pgconsent_gate.attr(" + catalog.QuoteLiteral(s.Attribute) + ")::" + s.Type
		}
		fmt.Fprintf(&body, "  NEW.%s := %s;\n", catalog.QuoteIdent(s.Column), value)
	}
	return []Statement{
		{SQL: fmt.Sprintf(`CREATE FUNCTION %s() RETURNS trigger
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $pgconsent$
BEGIN
%s  RETURN NEW;
END $pgconsent$`, name, body.String()), Why: why},
		{SQL: fmt.Sprintf("REVOKE ALL ON FUNCTION %s() FROM PUBLIC", name), Why: why},
		{SQL: fmt.Sprintf("CREATE TRIGGER %s BEFORE INSERT ON %s FOR EACH ROW WHEN (CURRENT_USER OPERATOR(pg_catalog.=) %s::pg_catalog.name) EXECUTE FUNCTION %s()",
			stampTrigger, t.Relation.Name.SQL(), catalog.QuoteLiteral(p.agentName), name), Why: why},
	}
}

func (p *Plan) dropWrites(t *policy.Table) []Statement {
	const why = "Take the stamps away."
	if t.Write == nil || len(t.Write.Stamps) == 0 {
		return nil
	}
	return []Statement{
		{SQL: fmt.Sprintf("DROP TRIGGER IF EXISTS %s ON %s", stampTrigger, t.Relation.Name.SQL()), Why: why},
		{SQL: fmt.Sprintf("DROP FUNCTION IF EXISTS %s()", predicate.StampFunction(t.Relation.Name).SQL()), Why: why},
	}
}
