package rls

import (
	"fmt"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// listTrigger sorts after the stamps, whose values it reads, and before the owner's triggers.
const listTrigger = `"!pgconsent_stamp_lists"`

// The errors of the trigger, whose texts package proxy replaces: they speak of what was sent, and name nothing.
const (
	malformedList = "not a list of ids"
	widerList     = "a list that is wider than it may be"
)

// judged tells whether a table has the trigger that fills lists in and holds them to their bounds.
func judged(w *policy.Write) bool {
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

// written are what the triggers of a table read besides the row.
func written(w *policy.Write) predicate.All {
	var out predicate.All
	if !judged(w) {
		return nil
	}
	for _, s := range w.Stamps {
		if s.Unless != nil {
			out = append(out, s.Unless)
		}
	}
	for _, b := range w.Lists {
		out = append(out, b.Nodes()...)
	}
	return out
}

// lists makes the trigger. It belongs to the reader: what a list may hold depends on tables that the agent does not
// see, and on the row as it was.
func (p *Plan) lists(t *policy.Table) []Statement {
	if !judged(t.Write) {
		return nil
	}
	const why = "Lists of ids that agents write are lists, and no wider than the policy lets them be; some " +
		"columns are stamped unless the new row is allowed to say otherwise. Rows of other roles are left alone."
	name := predicate.ListFunction(t.Relation.Name).SQL()
	var insert, both strings.Builder
	for _, s := range t.Write.Stamps {
		if s.Unless != nil {
			fmt.Fprintf(&insert, "    IF (%s) IS NOT TRUE THEN\n      NEW.%s := %s;\n    END IF;\n",
				predicate.OfNewRow(s.Unless), catalog.QuoteIdent(s.Column), stampedValue(s))
		}
	}
	for _, b := range t.Write.Lists {
		column := catalog.QuoteIdent(b.Column)
		fail := func(message, code string) string {
			return fmt.Sprintf("RAISE EXCEPTION %s USING ERRCODE = '%s';", catalog.QuoteLiteral(message), code)
		}
		if b.Chain != nil {
			fmt.Fprintf(&insert, "    told := (%s)::pg_catalog.text;\n", b.ChainIntersection())
		}
		if b.From != nil {
			given := allowed(b, b.DefaultList())
			if b.Chain != nil {
				given = allowed(b, b.CutToChain(b.DefaultList(), told(b)))
			}
			fmt.Fprintf(&insert,
				"    allowed := %s;\n    IF %s OR COALESCE(pg_catalog.cardinality(%s), 0) OPERATOR(pg_catalog.=) "+
					"0 AND %s THEN\n      NEW.%s := %s;\n    END IF;\n",
				given, b.IsOmittedDefault(), b.Elements(false), predicate.ColumnOmitted(t.Relation.Name, b.Column), column,
				b.Stored(taken(b)))
		}
		fmt.Fprintf(&insert, "    IF %s THEN %s END IF;\n", b.Malformed(), fail(malformedList, "22023"))
		if b.From != nil {
			fmt.Fprintf(&insert, "    IF %s THEN %s END IF;\n", b.Exceeds(taken(b), true), fail(widerList, "42501"))
		}
		if b.Chain != nil {
			fmt.Fprintf(&insert, "    IF %s THEN %s END IF;\n", b.ExceedsChain(told(b), "'{}'::"+b.Array()),
				fail(widerList, "42501"))
		}
		fmt.Fprintf(&both, "    IF %s THEN\n      IF %s THEN %s END IF;\n", differ([]string{b.Column}), b.Malformed(),
			fail(malformedList, "22023"))
		if b.Narrow {
			fmt.Fprintf(&both, "      allowed := %s;\n      IF %s THEN %s END IF;\n",
				allowed(b, "COALESCE("+b.Elements(true)+", '{}'::"+b.Array()+")"), b.Exceeds(taken(b), false), fail(widerList, "42501"))
		}
		if b.Chain != nil {
			fmt.Fprintf(&both, "      told := (%s)::pg_catalog.text;\n      IF %s THEN %s END IF;\n", b.ChainIntersection(),
				b.ExceedsChain(told(b), "COALESCE("+b.Elements(true)+", '{}'::"+b.Array()+")"), fail(widerList, "42501"))
		}
		both.WriteString("    END IF;\n")
	}
	body := "  IF TG_OP OPERATOR(pg_catalog.=) 'INSERT' THEN\n" + insert.String() + "  ELSE\n" + both.String() +
		"    NULL;\n  END IF;\n"
	var events []string
	if t.Write.Insert {
		events = append(events, "INSERT")
	}
	if t.Write.Update {
		events = append(events, "UPDATE")
	}
	out := []Statement{
		{SQL: fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s", predicate.Schema, p.reader), Why: why},
		{SQL: fmt.Sprintf("GRANT EXECUTE ON FUNCTION pgconsent_gate.attr(pg_catalog.text), "+
			"pgconsent_gate.sealed(), pgconsent_gate.json_grants(pg_catalog.text, pg_catalog.text[]), "+
			"pgconsent_gate.json_ids(pg_catalog.text), pgconsent_gate.jsonb_ids(pg_catalog.jsonb) TO %s", p.reader), Why: why},
	}
	for _, r := range predicate.ShownWhileEmpty(written(t.Write)) {
		out = append(out, Statement{SQL: fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s() TO %s",
			predicate.EmptyFunction(r.Name).SQL(), p.reader), Why: why})
	}
	return append(out,
		Statement{SQL: fmt.Sprintf(`CREATE FUNCTION %s() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $pgconsent$
DECLARE
  allowed pg_catalog.text;
  told pg_catalog.text;
BEGIN
%s  RETURN NEW;
END $pgconsent$`, name, body), Why: why},
		Statement{SQL: fmt.Sprintf("REVOKE ALL ON FUNCTION %s() FROM PUBLIC", name), Why: why},
		Statement{SQL: fmt.Sprintf(
			"CREATE TRIGGER %s BEFORE %s ON %s FOR EACH ROW WHEN (CURRENT_USER OPERATOR(pg_catalog.=) "+
				"%s::pg_catalog.name) EXECUTE FUNCTION %s()",
			listTrigger, strings.Join(events, " OR "), t.Relation.Name.SQL(), catalog.QuoteLiteral(p.agentName), name), Why: why},
		Statement{SQL: fmt.Sprintf("ALTER FUNCTION %s() OWNER TO %s", name, p.reader), Why: why},
	)
}

// allowed and taken pass an array of any type through one variable of the trigger.
func allowed(_ predicate.Bound, array string) string { return "(" + array + ")::pg_catalog.text" }
func taken(b predicate.Bound) string                 { return "allowed::" + b.Array() }

// told is what the chain lets be, NULL where there is none.
func told(b predicate.Bound) string { return "told::" + b.Array() }

func stampedValue(s policy.Stamp) string {
	if s.Attribute != "" {
		return "pgconsent_gate.attr(" + catalog.QuoteLiteral(s.Attribute) + ")::" + s.Type
	}
	return catalog.QuoteLiteral(s.Value)
}
