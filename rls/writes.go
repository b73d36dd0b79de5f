package rls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
)

// stampTrigger is the name of the trigger that sets stamps: columns whose values the policy prescribes. PostgreSQL
// fires triggers in the order of their names. This name sorts before those that applications use, so that the owner's
// triggers see the stamped values. The row policy checks the row after the last trigger.
const stampTrigger = `"!pgconsent_stamp"`

// writePolicies makes the row policies, triggers and rights for what agents may write to one table. The row policies
// refuse commands that the policy does not allow.
type writePolicies struct {
	*planFacts
	*policy.Table
}

func (f writePolicies) objects() []Object {
	w := f.Write
	insert, update, remove := "WITH CHECK (false)", "USING (false)", "USING (false)"
	whyInsert, whyUpdate, whyDelete := "Agents insert nothing.", "Agents update nothing.", "Agents delete nothing."
	enforced := f.Table
	if f.Observed != nil {
		enforced = f.Observed // writing is enforced even if the table's rule for reading is only observed
	}
	var checks [3][]predicate.Node
	if f.mode == Enforce {
		if w.Allows("INSERT") {
			insert = fmt.Sprintf("WITH CHECK (%s)", predicate.CheckSQL(w.InsertCheck, f.Relation))
			whyInsert = "What a new row of an agent's must be, after all triggers have had it."
			checks[0] = []predicate.Node{w.InsertCheck}
		}
		if w.Allows("UPDATE") {
			rows := withinRows(enforced, w.UpdatableRows)
			update = fmt.Sprintf("USING (%s) WITH CHECK (%s)", f.condition(rows, f.Relation), predicate.CheckSQL(w.UpdateCheck,
				f.Relation))
			whyUpdate = "Agents change rows that they see, into rows that they see."
			if w.UpdatableRows != nil {
				whyUpdate = "Agents change some of the rows that they see, into such rows."
			}
			checks[1] = []predicate.Node{rows, w.UpdateCheck}
		}
		if w.Allows("DELETE") {
			rows := withinRows(enforced, w.DeletableRows)
			remove = fmt.Sprintf("USING (%s)", f.condition(rows, f.Relation))
			whyDelete = "Agents delete rows that they see."
			if w.DeletableRows != nil {
				whyDelete = "Agents delete some of the rows that they see."
			}
			checks[2] = []predicate.Node{rows}
		}
	}
	out := []Object{
		f.commandPolicy("INSERT", insertPolicy, insert, whyInsert, checks[0]),
		f.commandPolicy("UPDATE", updatePolicy, update, whyUpdate, checks[1]),
		f.commandPolicy("DELETE", deletePolicy, remove, whyDelete, checks[2]),
	}
	if w == nil || f.mode != Enforce {
		return out
	}
	out = append(out, f.policiesAfterWait()...)
	out = append(out, f.copyFromViews()...)
	return append(out, f.writeRights()...)
}

// triggers returns the triggers on the table itself.
func (f writePolicies) triggers() []Object {
	if f.Write == nil || f.mode != Enforce {
		return nil
	}
	return append(f.stampTriggers(), f.listTriggers()...)
}

// withinRows returns the rule for the rows that a command may change: visible rows that also meet commandRule, if it is
// not nil.
func withinRows(t *policy.Table, commandRule predicate.Node) predicate.Node {
	if commandRule == nil {
		return t.Rows
	}
	return predicate.All{t.Rows, commandRule}
}

func (f writePolicies) commandPolicy(command, name, condition, why string, reads []predicate.Node) Object {
	o := newObject(policyIdentity(name, f.Relation), why, f.Relation)
	o.NeededObjects = f.objectsRead(reads...)
	o.create(fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR %s TO %s %s", name, f.Relation.Name.SQL(), command,
		f.boundRoles(f.Table), condition))
	o.drop(dropPoliciesReason, dropPolicy(name, f.Relation))
	return o.Object
}

// writeRights returns an object with the rights to write to the table and to use the sequences of its columns.
func (f writePolicies) writeRights() []Object {
	w, table := f.Write, []string{f.Relation.Name.SQL()}
	writer := f.agent
	if f.Columns != nil {
		writer = f.rowsRole // agents write through the row view, with its owner's rights
	}
	var grants []migrations.Grant
	give := func(right migrations.Right, why string) {
		grants = append(grants, migrations.Grant{
			Rights: []migrations.Right{right}, Kind: "TABLE", Objects: table, Roles: listOf(writer), Why: why})
	}
	if w.Insert && len(w.Insertable) > 0 {
		give(migrations.Right{Name: "INSERT", Columns: quoteAll(w.Insertable)},
			"The columns that an agent's INSERT may name.")
	}
	if w.Update {
		give(migrations.Right{Name: "UPDATE", Columns: quoteAll(w.Updatable)},
			"The columns that an agent's UPDATE may set.")
	}
	if w.Delete {
		give(migrations.Right{Name: "DELETE"}, "The policy lets agents delete.")
	}
	if w.Insert {
		for _, sequence := range defaultSequences(f.Relation) {
			grants = append(grants, rightsOn("SEQUENCE", listOf(sequence.SQL()), listOf(f.agent),
				"A default of "+f.Relation.Name.String()+" draws from it.", "USAGE"))
		}
	}
	for _, c := range f.Relation.Columns { // for an identity column, COPY and currval need the right, not INSERT
		if w.Insert && c.Identity != "" && c.Sequence.Name != "" && (f.Columns == nil || slices.Contains(w.Insertable, c.Name)) {
			grants = append(grants, rightsOn("SEQUENCE", listOf(c.Sequence.SQL()), listOf(f.agent),
				"currval() and lastval() tell an agent the number that its new row got, and a COPY that leaves it out draws one.", "USAGE"))
		}
	}
	if len(grants) == 0 {
		return nil
	}
	return []Object{rightsObject("to write "+f.Relation.Name.String(), grants...)}
}

// defaultSequences returns the sequences that column defaults use, for which the inserting role needs a right.
// Sequences of identity columns need none for an INSERT.
func defaultSequences(r *catalog.Relation) []catalog.Name {
	var out []catalog.Name
	for _, c := range r.Columns {
		if c.Identity == "" && c.Sequence.Name != "" {
			out = append(out, c.Sequence)
		}
	}
	return out
}

const dropWritesReason = "Take away what agents write through."

// stampTriggers returns the trigger that sets columns to the values that the policy prescribes, whatever the agent
// sends. It fires only for the agent role.
func (f writePolicies) stampTriggers() []Object {
	var stamps []policy.Stamp
	for _, s := range f.Write.Stamps {
		if s.Unless == nil { // the list trigger sets stamps that have a condition
			stamps = append(stamps, s)
		}
	}
	if !f.Write.Insert || len(stamps) == 0 {
		return nil
	}
	table, name := f.Relation.Name.SQL(), predicate.ChangeStampFunction(f.Relation.Name).SQL()
	o := newObject("trigger "+stampTrigger+" on "+f.Relation.Name.String(),
		"Columns that agents do not choose. Rows of other roles are left alone.", f.Relation)
	var body, notices strings.Builder
	for _, s := range stamps {
		column := catalog.QuoteIdent(s.Column)
		fmt.Fprintf(&body, "  NEW.%s := %s;\n", column, stampedValue(s))
		if notice := s.Notice(f.Relation); notice != "" {
			wasSent := "IS NOT NULL" // a value that equals the column's default counts as not sent
			if value := f.Relation.Column(s.Column).Default; value != "" {
				wasSent = "IS DISTINCT FROM " + value
			}
			fmt.Fprintf(&notices, "  IF sent.%[1]s IS DISTINCT FROM NEW.%[1]s AND sent.%[1]s %[2]s THEN\n"+
				"    RAISE NOTICE USING MESSAGE = %[3]s;\n  END IF;\n", column, wasSent, catalog.QuoteLiteral(notice))
		}
	}
	declaration, saveRow := "", ""
	if notices.Len() > 0 {
		declaration, saveRow = "DECLARE\n  sent record;\n", "  sent := NEW;\n"
	}
	o.create(fmt.Sprintf(`CREATE FUNCTION %s() RETURNS trigger
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $pgconsent$
%sBEGIN
%s%s%s  RETURN NEW;
END $pgconsent$`, name, declaration, saveRow, body.String(), notices.String()))
	o.create(fmt.Sprintf("REVOKE ALL ON FUNCTION %s() FROM PUBLIC", name))
	o.create(fmt.Sprintf("CREATE TRIGGER %s BEFORE INSERT ON %s FOR EACH ROW WHEN (CURRENT_USER "+
		"OPERATOR(pg_catalog.=) %s::pg_catalog.name) EXECUTE FUNCTION %s()",
		stampTrigger, table, catalog.QuoteLiteral(f.agentName), name))
	o.drop(dropWritesReason, fmt.Sprintf("DROP TRIGGER IF EXISTS %s ON %s", stampTrigger, table))
	o.drop(dropWritesReason, fmt.Sprintf("DROP FUNCTION IF EXISTS %s()", name))
	return []Object{o.Object}
}

// copyFromViews returns the view that agents' COPY FROM writes to, since PostgreSQL refuses COPY FROM to a table with
// row security. The view has no rows; its trigger inserts each row with the agent's rights. Its columns have the
// table's defaults, for columns that a COPY leaves out. The trigger's function sets no search path, so that the owner's
// triggers run with the same path as in an INSERT.
func (f writePolicies) copyFromViews() []Object {
	if !f.Write.Insert || len(f.Write.Insertable) == 0 {
		return nil
	}
	view, function := predicate.CopyView(f.Relation.Name).SQL(), predicate.CopyFunction(f.Relation.Name).SQL()
	o := newObject("view "+predicate.CopyView(f.Relation.Name).String(),
		"PostgreSQL refuses COPY FROM to a table under row security. Agents copy to this view, which "+
			"inserts with their rights.", f.Relation)
	target := f.Relation.Name
	if f.Columns != nil {
		target = predicate.RowView(target)
	}
	columns, values := make([]string, len(f.Write.Insertable)), make([]string, len(f.Write.Insertable))
	for i, name := range f.Write.Insertable {
		quoted := catalog.QuoteIdent(name)
		columns[i] = "NULL::" + f.Relation.Column(name).Type + " AS " + quoted
		values[i] = "NEW." + quoted
	}
	o.grant(rightsOn("SCHEMA", listOf(predicate.RowsSchema), listOf(f.agent), "", "USAGE"))
	o.create(fmt.Sprintf("CREATE VIEW %s AS\nSELECT %s WHERE false", view, strings.Join(columns, ", ")))
	o.create(fmt.Sprintf(`CREATE FUNCTION %s() RETURNS trigger
LANGUAGE plpgsql SECURITY INVOKER AS $pgconsent$
BEGIN
  INSERT INTO %s (%s) VALUES (%s);
  IF FOUND THEN RETURN NEW; END IF;
  RETURN NULL;
END $pgconsent$`, function, target.SQL(), strings.Join(quoteAll(f.Write.Insertable), ", "), strings.Join(values, ", ")))
	o.create(fmt.Sprintf("REVOKE ALL ON FUNCTION %s() FROM PUBLIC", function))
	o.create(fmt.Sprintf("CREATE TRIGGER pgconsent_copy INSTEAD OF INSERT ON %s FOR EACH ROW EXECUTE FUNCTION %s()",
		view, function))
	why := o.why
	o.why = why + " SELECT is for the WHERE of COPY: the view has no rows."
	o.create(fmt.Sprintf("GRANT INSERT, SELECT ON %s TO %s", view, f.agent))
	for _, name := range f.Write.Insertable {
		value := f.Relation.Column(name).Default
		o.why = why
		if omitted := omittedDefault(f.Write, name); omitted != "" {
			o.why, value = why+" A list that it leaves out is filled in as in an INSERT.", omitted
		}
		if column := f.Relation.Column(name); column.Identity != "" {
			// The sequence is found by name at run time. If the default depended on it, the owner could not drop it.
			value = fmt.Sprintf("pg_catalog.nextval(pg_catalog.pg_get_serial_sequence(%s, %s)::pg_catalog.regclass)",
				catalog.QuoteLiteral(f.Relation.Name.SQL()), catalog.QuoteLiteral(name))
		}
		if value != "" {
			o.create(fmt.Sprintf("ALTER VIEW %s ALTER COLUMN %s SET DEFAULT %s", view, catalog.QuoteIdent(name), value))
		}
	}
	o.drop(dropWritesReason, fmt.Sprintf("DROP VIEW IF EXISTS %s", view))
	o.drop(dropWritesReason, fmt.Sprintf("DROP FUNCTION IF EXISTS %s()", function))
	return []Object{o.Object}
}

// omittedDefault returns the default of a list column in the COPY view. By this value the list trigger recognizes that
// a COPY left out the list, and fills it in.
func omittedDefault(w *policy.Write, column string) string {
	for _, b := range w.Lists {
		if b.Column == column && b.PermittedIDs != nil {
			return b.OmittedDefault()
		}
	}
	return ""
}
