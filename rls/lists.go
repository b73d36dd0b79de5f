package rls

import (
	"fmt"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// listTrigger is the name of the trigger that checks lists of ids which agents write. It sorts, and so fires, after the
// stamp trigger, whose values it reads, and before the owner's triggers.
const listTrigger = `"!pgconsent_stamp_lists"`

// The messages of the list trigger's errors. Package proxy replaces them by others for the client.
const (
	malformedListError = "not a list of ids"
	widerListError     = "a list that is wider than it may be"
)

// hasListTrigger reports whether a table needs the list trigger, which fills in lists and conditional stamps and checks
// lists.
func hasListTrigger(w *policy.Write) bool {
	if w == nil || !w.Insert && !w.Update {
		return false
	}
	for _, s := range w.Stamps {
		if s.Unless != nil {
			return true
		}
	}
	return len(w.Lists) > 0
}

// triggerConditions returns the conditions that the list trigger of a table evaluates.
func triggerConditions(w *policy.Write) predicate.All {
	var out predicate.All
	if !hasListTrigger(w) {
		return nil
	}
	for _, s := range w.Stamps {
		if s.Unless != nil {
			out = append(out, s.Unless)
		}
	}
	for _, b := range w.Lists {
		out = append(out, b.Conditions()...)
	}
	return out
}

// listTriggers returns the list trigger and its function. The function belongs to the reader role, since the bounds of
// a list depend on tables that agents cannot read.
func (f writePolicies) listTriggers() []Object {
	w := f.Write
	if !hasListTrigger(w) {
		return nil
	}
	table, name := f.Relation.Name.SQL(), predicate.ListBoundFunction(f.Relation.Name).SQL()
	o := newObject("trigger "+listTrigger+" on "+f.Relation.Name.String(),
		"Lists of ids that agents write are lists, and no wider than the policy lets them be; some "+
			"columns are stamped unless the new row is allowed to say otherwise. Rows of other roles are left alone.",
		f.Relation)
	var insertBody, commonBody strings.Builder
	for _, s := range w.Stamps {
		if s.Unless != nil {
			fmt.Fprintf(&insertBody, "    IF (%s) IS NOT TRUE THEN\n      NEW.%s := %s;\n    END IF;\n",
				predicate.NewRowCondition(s.Unless), catalog.QuoteIdent(s.Column), stampedValue(s))
		}
	}
	for _, b := range w.Lists {
		f.writeInsertedList(&insertBody, b)
		writeChangedList(&commonBody, b)
	}
	body := "  IF TG_OP OPERATOR(pg_catalog.=) 'INSERT' THEN\n" + insertBody.String() + "  ELSE\n" + commonBody.String() +
		"    NULL;\n  END IF;\n"
	var events []string
	if w.Insert {
		events = append(events, "INSERT")
	}
	if w.Update {
		events = append(events, "UPDATE")
	}
	o.grant(rightsOn("SCHEMA", listOf(predicate.OwnSchema), listOf(f.reader), "", "USAGE"))
	o.grant(rightsOn("FUNCTION", []string{
		"pgconsent_signed.attr(pg_catalog.text)", "pgconsent_signed.sealed()",
		"pgconsent_signed.json_grants(pg_catalog.text, pg_catalog.text[])", "pgconsent_signed.json_ids(pg_catalog.text)",
		"pgconsent_signed.jsonb_ids(pg_catalog.jsonb)",
	}, listOf(f.reader), "", "EXECUTE"))
	o.NeededObjects = append(o.NeededObjects, readableIdentities(triggerConditions(w))...)
	o.create(fmt.Sprintf(`CREATE FUNCTION %s() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $pgconsent$
DECLARE
  allowed pg_catalog.text;
  told pg_catalog.text;
BEGIN
%s  RETURN NEW;
END $pgconsent$`, name, body))
	o.create(fmt.Sprintf("REVOKE ALL ON FUNCTION %s() FROM PUBLIC", name))
	o.create(fmt.Sprintf("CREATE TRIGGER %s BEFORE %s ON %s FOR EACH ROW WHEN (CURRENT_USER OPERATOR(pg_catalog.=) "+
		"%s::pg_catalog.name) EXECUTE FUNCTION %s()",
		listTrigger, strings.Join(events, " OR "), table, catalog.QuoteLiteral(f.agentName), name))
	o.create(fmt.Sprintf("ALTER FUNCTION %s() OWNER TO %s", name, f.reader))
	o.drop(dropWritesReason, fmt.Sprintf("DROP TRIGGER IF EXISTS %s ON %s", listTrigger, table))
	o.drop(dropWritesReason, fmt.Sprintf("DROP FUNCTION IF EXISTS %s()", name))
	return []Object{o.Object}
}

// raiseStatement returns a PL/pgSQL statement that raises an error.
func raiseStatement(message, code string) string {
	return fmt.Sprintf("RAISE EXCEPTION %s USING ERRCODE = '%s';", catalog.QuoteLiteral(message), code)
}

// writeInsertedList appends PL/pgSQL statements that fill in the list of a new row if it was left out. They raise an
// error if the list exceeds its bounds.
func (f writePolicies) writeInsertedList(insert *strings.Builder, b predicate.ListBound) {
	column := catalog.QuoteIdent(b.Column)
	if b.Chain != nil {
		fmt.Fprintf(insert, "    told := (%s)::pg_catalog.text;\n", b.ChainIntersectionSQL())
	}
	if b.PermittedIDs != nil {
		defaultList := textCast(b.DefaultListSQL())
		if b.Chain != nil {
			defaultList = textCast(b.LimitToChainSQL(b.DefaultListSQL(), arrayAllowedByChain(b)))
		}
		fmt.Fprintf(insert,
			"    allowed := %s;\n    IF %s OR COALESCE(pg_catalog.cardinality(%s), 0) OPERATOR(pg_catalog.=) "+
				"0 AND %s THEN\n      NEW.%s := %s;\n    END IF;\n",
			defaultList, b.IsOmittedDefaultSQL(), b.ElementsSQL(false), predicate.IsColumnOmittedSQL(f.Relation.Name, b.Column),
			column,
			b.ColumnValueSQL(allowedArray(b)))
	}
	fmt.Fprintf(insert, "    IF %s THEN %s END IF;\n", b.IsMalformedSQL(), raiseStatement(malformedListError, "22023"))
	if b.PermittedIDs != nil {
		fmt.Fprintf(insert, "    IF %s THEN %s END IF;\n", b.ExceedsSQL(allowedArray(b), true),
			raiseStatement(widerListError, "42501"))
	}
	if b.Chain != nil {
		fmt.Fprintf(insert, "    IF %s THEN %s END IF;\n", b.ExceedsChainSQL(arrayAllowedByChain(b), "'{}'::"+b.ArrayType()),
			raiseStatement(widerListError,
				"42501"))
	}
}

// writeChangedList appends PL/pgSQL statements that raise an error if a list which an UPDATE has changed exceeds its
// bounds.
func writeChangedList(update *strings.Builder, b predicate.ListBound) {
	before := "COALESCE(" + b.ElementsSQL(true) + ", '{}'::" + b.ArrayType() + ")"
	fmt.Fprintf(update, "    IF %s THEN\n      IF %s THEN %s END IF;\n", rowDiffersCondition([]string{b.Column}),
		b.IsMalformedSQL(),
		raiseStatement(malformedListError, "22023"))
	if b.MayOnlyRemove {
		fmt.Fprintf(update, "      allowed := %s;\n      IF %s THEN %s END IF;\n", textCast(before),
			b.ExceedsSQL(allowedArray(b), false), raiseStatement(widerListError, "42501"))
	}
	if b.Chain != nil {
		fmt.Fprintf(update, "      told := (%s)::pg_catalog.text;\n      IF %s THEN %s END IF;\n", b.ChainIntersectionSQL(),
			b.ExceedsChainSQL(arrayAllowedByChain(b), before), raiseStatement(widerListError, "42501"))
	}
	update.WriteString("    END IF;\n")
}

// textCast and allowedArray return expressions that convert an array to text and back. So the trigger's text variable
// "allowed" can hold arrays of any type.
func textCast(array string) string              { return "(" + array + ")::pg_catalog.text" }
func allowedArray(b predicate.ListBound) string { return "allowed::" + b.ArrayType() }

// arrayAllowedByChain returns the expression of the list that the rows to which the new row refers allow. Its value is
// NULL if the row refers to none.
func arrayAllowedByChain(b predicate.ListBound) string { return "told::" + b.ArrayType() }

func stampedValue(s policy.Stamp) string {
	if s.Attribute != "" {
		return "pgconsent_signed.attr(" + catalog.QuoteLiteral(s.Attribute) + ")::" + s.Type
	}
	return catalog.QuoteLiteral(s.Value)
}
