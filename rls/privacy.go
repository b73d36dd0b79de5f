package rls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// privacyTrigger is the name of the triggers that record access. It sorts last, so that they fire after all other
// triggers.
const privacyTrigger = "zz_pgconsent_privacy"

// privacyFunctions are the signatures of the SQL functions that tell who has access to memories. The proxy calls them
// for a caller that it has authenticated.
var privacyFunctions = []string{
	"pgconsent.privacy_rows(pg_catalog.text, pg_catalog.text, pg_catalog.text, pg_catalog.text, " +
		"pg_catalog.text[], pg_catalog.int4)",
	"pgconsent.privacy_consents(pg_catalog.text)",
	"pgconsent.privacy_guardians(pg_catalog.text)",
	"pgconsent.privacy_contexts(pg_catalog.text)",
	"pgconsent.privacy_drawn(pg_catalog.text, pg_catalog.text[], pg_catalog.int4)",
}

// earlierPrivacyRows is the signature of privacy_rows that an earlier version has installed.
const earlierPrivacyRows = "pgconsent.privacy_rows(pg_catalog.text, pg_catalog.text, pg_catalog.text, " +
	"pg_catalog.text, pg_catalog.int4)"

// listAsArray returns the expression of a list column of the row as an array of texts. A value that is no list becomes
// an empty array.
func listAsArray(l predicate.List, row string) string {
	if l.Column == "" {
		return "'{}'::pg_catalog.text[]"
	}
	return "COALESCE(" + l.ArraySQL(row) + "::pg_catalog.text[], '{}'::pg_catalog.text[])"
}

func asText(alias, column string) string {
	if column == "" {
		return "NULL::pg_catalog.text"
	}
	return alias + "." + catalog.QuoteIdent(column) + "::pg_catalog.text"
}

// privacyFeature makes the triggers and functions by which people learn who has access to memories. The triggers record
// each change of grants, consents and participants of contexts, and each belief that is drawn from memories, whichever
// role writes. The functions return who has access; the proxy calls them as the control role.
type privacyFeature struct{ *planFacts }

func (f privacyFeature) objects() []Object {
	s := f.policy.Privacy()
	if s == nil || f.mode != Enforce {
		return []Object{f.functions(nil)}
	}
	var out []Object
	for _, m := range s.Memories {
		out = append(out, f.noteTrigger(m.Relation, `  IF TG_OP OPERATOR(pg_catalog.=) 'UPDATE' THEN
    before := `+listAsArray(m.Grants, "OLD")+`;
  END IF;
  after := `+listAsArray(m.Grants, "NEW")+`;
`+f.noteListChanges("grant", "revoke", m.Relation, asText("NEW", m.Key), asText("NEW", m.StoreColumn))))
	}
	if x := s.Contexts; x != nil {
		key := "NULL::pg_catalog.text"
		if len(x.Relation.PrimaryKey) == 1 {
			key = asText("NEW", x.Relation.PrimaryKey[0])
		}
		out = append(out, f.noteTrigger(x.Relation, `  IF TG_OP OPERATOR(pg_catalog.=) 'UPDATE' THEN
    before := `+listAsArray(x.Participants, "OLD")+`;
  END IF;
  after := `+listAsArray(x.Participants, "NEW")+`;
`+f.noteListChanges("join", "leave", x.Relation, "COALESCE("+key+", '')", asText("NEW", x.Store))))
	}
	if x := s.Consents; x != nil {
		out = append(out, f.consentTrigger(x))
	}
	if g := s.Generalize; g != nil {
		madeKey := "COALESCE(" + asText("NEW", g.Link.Made) + ", '')"
		out = append(out, f.noteTrigger(g.Link.Relation,
			"  IF TG_OP OPERATOR(pg_catalog.=) 'INSERT' THEN\n"+
				f.noteAccess("    ", "draw", g.Link.Relation, madeKey, asText("NEW", g.Link.Store), "after")+"  END IF;\n"))
	}
	return append(out, f.functions(s))
}

func (f privacyFeature) consentTrigger(x *policy.Consents) Object {
	isActive := func(row string) string {
		if x.Revoked == "" {
			return "true"
		}
		return row + "." + catalog.QuoteIdent(x.Revoked) + " IS NULL"
	}
	parties := func(row string) string {
		return "ARRAY[" + asText(row, x.Grantor) + ", " + asText(row, x.Grantee) + "]"
	}
	return f.noteTrigger(x.Relation, `  IF TG_OP OPERATOR(pg_catalog.=) 'UPDATE' THEN
    IF `+isActive("OLD")+` THEN before := `+parties("OLD")+`; END IF;
  END IF;
  IF `+isActive("NEW")+` THEN after := `+parties("NEW")+`; END IF;
  IF after IS DISTINCT FROM before THEN
    IF before OPERATOR(pg_catalog.<>) '{}'::pg_catalog.text[] THEN
`+f.noteAccess("      ", "withdraw", x.Relation, asText("OLD", x.Key), asText("OLD", x.Store), "before")+`    END IF;
    IF after OPERATOR(pg_catalog.<>) '{}'::pg_catalog.text[] THEN
`+f.noteAccess("      ", "consent", x.Relation, asText("NEW", x.Key), asText("NEW", x.Store), "after")+`    END IF;
  END IF;
`)
}

func (f privacyFeature) noteAccess(indent, action string, r *catalog.Relation, key, store, persons string) string {
	return fmt.Sprintf("%sPERFORM pgconsent.privacy_note(%s, %s, %s, %s, %s, pgconsent_signed.attr(%s));\n", indent,
		catalog.QuoteLiteral(action),
		catalog.QuoteLiteral(r.Name.String()), key, store, persons, catalog.QuoteLiteral(f.policy.Privacy().CallerAttribute))
}

// noteListChanges returns PL/pgSQL statements that record which ids a list has gained and lost.
func (f privacyFeature) noteListChanges(gainAction, lossAction string, r *catalog.Relation, key, store string) string {
	elementsWithout := func(a, b string) string {
		return "ARRAY(SELECT DISTINCT u.id FROM pg_catalog.unnest(" + a +
			") AS u (id) WHERE u.id IS NOT NULL AND (u.id OPERATOR(pg_catalog.=) ANY (" + b + ")) IS NOT TRUE ORDER BY 1)"
	}
	return "  changed := " + elementsWithout("after", "before") +
		";\n  IF pg_catalog.cardinality(changed) OPERATOR(pg_catalog.>) 0 THEN\n" +
		f.noteAccess("    ", gainAction, r, key, store, "changed") + "  END IF;\n" +
		"  changed := " + elementsWithout("before", "after") +
		";\n  IF pg_catalog.cardinality(changed) OPERATOR(pg_catalog.>) 0 THEN\n" +
		f.noteAccess("    ", lossAction, r, key, store, "changed") + "  END IF;\n"
}

// noteTrigger returns an object with a trigger and its PL/pgSQL function, whose statements are body. The trigger
// records who gains or loses access by a change of a row.
func (f privacyFeature) noteTrigger(r *catalog.Relation, body string) Object {
	name := predicate.PrivacyFunction(r.Name).SQL()
	o := newObject("trigger "+privacyTrigger+" on "+r.Name.String(),
		"Who is let in or out is noted, whoever does it, with the time and the reason.", r)
	o.create(fmt.Sprintf(`CREATE FUNCTION %s() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $pgconsent$
DECLARE
  before pg_catalog.text[] := '{}';
  after pg_catalog.text[] := '{}';
  changed pg_catalog.text[];
BEGIN
%s  RETURN NULL;
END $pgconsent$`, name, body))
	o.create(fmt.Sprintf("REVOKE ALL ON FUNCTION %s() FROM PUBLIC", name))
	o.create(fmt.Sprintf("CREATE TRIGGER %s AFTER INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION %s()",
		privacyTrigger, r.Name.SQL(), name))
	const why = "Grants are not noted any more."
	o.drop(why, fmt.Sprintf("DROP TRIGGER IF EXISTS %s ON %s", privacyTrigger, r.Name.SQL()))
	o.drop(why, fmt.Sprintf("DROP FUNCTION IF EXISTS %s()", name))
	return o.Object
}

// functions returns the object with the functions that tell who has access. They run as the migrating role, which owns
// the tables, and only the control role may call them. If s is nil, since the policy has no memories, the object only
// drops such functions.
func (f privacyFeature) functions(s *policy.Privacy) Object {
	o := newObject("functions of privacy",
		"Owners, subjects and guardians are told who sees what. The proxy asks on their behalf, and gets "+
			"what this caller may know.")
	for _, function := range append(slices.Clone(privacyFunctions), earlierPrivacyRows) {
		o.drop("Take away what tells who sees what.", "DROP FUNCTION IF EXISTS "+function)
	}
	o.MakeStatements = slices.Clone(o.DropStatements)
	if s == nil {
		return o.Object
	}
	const functionOptions = "LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $pgconsent$\n"
	for _, sql := range []string{
		createPrivacyRows(s, functionOptions), createPrivacyConsents(s.Consents,
			functionOptions), createPrivacyGuardians(s.Guardians, functionOptions),
		createPrivacyContexts(s.Contexts, functionOptions), createPrivacyDrawn(s, functionOptions),
	} {
		o.create(sql)
	}
	functionList := strings.Join(privacyFunctions, ", ")
	o.create(fmt.Sprintf("REVOKE ALL ON FUNCTION %s FROM PUBLIC", functionList))
	o.create(fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s TO %s", functionList, f.control))
	o.grant(rightsOn("TABLE", listOf("pgconsent.privacy_event"), listOf(f.control), "", "SELECT"))
	return o.Object
}

// isGuardianCondition returns the condition that the argument caller of privacy_rows is a guardian of the subject in
// the store.
func isGuardianCondition(g *policy.Guardians, store, subject string) string {
	if g == nil {
		return "false"
	}
	return fmt.Sprintf("EXISTS (SELECT FROM %s AS g WHERE %s OPERATOR(pg_catalog.=) %s AND %s "+
		"OPERATOR(pg_catalog.=) %s AND %s OPERATOR(pg_catalog.=) privacy_rows.caller)",
		g.Relation.Name.SQL(), asText("g", g.Store), store, asText("g", g.Subject), subject, asText("g", g.Guardian))
}

// createPrivacyRows returns the statement that creates privacy_rows, which lists memories and the persons who have
// access to each.
func createPrivacyRows(s *policy.Privacy, functionOptions string) string {
	parts := make([]string, len(s.Memories))
	for i, m := range s.Memories {
		store := asText("t", m.StoreColumn)
		owner, join := store, ""
		if x := s.Stores; x != nil {
			owner = asText("o", x.Owner)
			join = fmt.Sprintf(" JOIN %s AS o ON o.%s OPERATOR(pg_catalog.=) t.%s", x.Relation.Name.SQL(),
				catalog.QuoteIdent(x.ID), catalog.QuoteIdent(m.StoreColumn))
		}
		subjects := listAsArray(m.Subjects, "t")
		// The query reads a memory's subjects only if the caller may ask about this subject. So its duration does not reveal
		// whether a subject occurs.
		parts[i] = fmt.Sprintf(
			"  SELECT %s::pg_catalog.text AS kind, %s AS key, %s AS store, %s AS owner, %s AS source, %s AS "+
				"subjects, %s AS grants, %s AS evidence\n  FROM %s AS t%s\n"+
				"  WHERE CASE WHEN privacy_rows.subject IS NULL THEN true WHEN %s OPERATOR(pg_catalog.=) "+
				"privacy_rows.caller OR privacy_rows.subject OPERATOR(pg_catalog.=) privacy_rows.caller OR %s "+
				"THEN privacy_rows.subject OPERATOR(pg_catalog.=) ANY (%s) ELSE false END",
			catalog.QuoteLiteral(m.Kind), asText("t", m.Key), store, owner, asText("t",
				m.TellerColumn), subjects, listAsArray(m.Grants, "t"), listAsArray(m.Evidence, "t"), m.Relation.Name.SQL(), join,
			owner, isGuardianCondition(s.Guardians, store, "privacy_rows.subject"), subjects)
	}
	return fmt.Sprintf("CREATE FUNCTION pgconsent.privacy_rows(caller pg_catalog.text, subject pg_catalog.text, "+
		"of_kind pg_catalog.text, id pg_catalog.text, after pg_catalog.text[], "+
		`most pg_catalog.int4)
RETURNS TABLE (kind pg_catalog.text, key pg_catalog.text, store pg_catalog.text, owner pg_catalog.text, `+
		"source pg_catalog.text, subjects pg_catalog.text[], grants pg_catalog.text[], evidence pg_catalog.text[], "+
		`speaks pg_catalog.text[])
%sSELECT * FROM (SELECT r.*, ARRAY(SELECT DISTINCT u.id FROM pg_catalog.unnest(r.subjects) AS u (id) `+
		`WHERE u.id IS NOT NULL AND (privacy_rows.caller OPERATOR(pg_catalog.=) u.id OR %s) ORDER BY 1) AS speaks FROM (
%s) AS r
  WHERE (of_kind IS NULL OR of_kind OPERATOR(pg_catalog.=) r.kind) `+
		`AND (privacy_rows.id IS NULL OR privacy_rows.id OPERATOR(pg_catalog.=) r.key)) AS q
WHERE (q.owner OPERATOR(pg_catalog.=) privacy_rows.caller `+
		"OR privacy_rows.subject OPERATOR(pg_catalog.=) ANY (q.speaks) "+
		`OR privacy_rows.subject IS NULL AND pg_catalog.cardinality(q.speaks) OPERATOR(pg_catalog.>) 0)
  AND (after IS NULL OR ROW(q.store, q.kind, q.key) OPERATOR(pg_catalog.>) ROW(after[1], after[2], after[3]))
ORDER BY q.store, q.kind, q.key LIMIT most
$pgconsent$`, functionOptions, isGuardianCondition(s.Guardians, "r.store", "u.id"), strings.Join(parts,
		"\n  UNION ALL\n"))
}

func createPrivacyConsents(x *policy.Consents, functionOptions string) string {
	body := "SELECT NULL::pg_catalog.text, NULL::pg_catalog.text, NULL::pg_catalog.text, NULL::pg_catalog.text, " +
		"NULL::pg_catalog.text WHERE false"
	if x != nil {
		where := []string{asText("t", x.Store) + " OPERATOR(pg_catalog.=) privacy_consents.of_store"}
		if x.Revoked != "" {
			where = append(where, "t."+catalog.QuoteIdent(x.Revoked)+" IS NULL")
		}
		if x.Expires != "" {
			expires := "t." + catalog.QuoteIdent(x.Expires)
			where = append(where, "("+expires+" IS NULL OR "+expires+" OPERATOR(pg_catalog.>) pg_catalog.statement_timestamp())")
		}
		body = fmt.Sprintf("SELECT %s, %s, %s, %s, %s FROM %s AS t WHERE %s ORDER BY 1", asText("t", x.Key),
			asText("t", x.Grantor), asText("t", x.Grantee), asText("t", x.Scope), asText("t",
				x.Given), x.Relation.Name.SQL(), strings.Join(where, " AND "))
	}
	return "CREATE FUNCTION pgconsent.privacy_consents(of_store pg_catalog.text)\nRETURNS TABLE " +
		"(key pg_catalog.text, grantor pg_catalog.text, grantee pg_catalog.text, scope pg_catalog.text, given " +
		"pg_catalog.text)\n" + functionOptions + body + "\n$pgconsent$"
}

func createPrivacyGuardians(x *policy.Guardians, functionOptions string) string {
	body := "SELECT NULL::pg_catalog.text, NULL::pg_catalog.text WHERE false"
	if x != nil {
		body = fmt.Sprintf("SELECT %s, %s FROM %s AS t WHERE %s OPERATOR(pg_catalog.=) privacy_guardians.of_store "+
			"ORDER BY 1, 2", asText("t", x.Subject), asText("t", x.Guardian), x.Relation.Name.SQL(), asText("t", x.Store))
	}
	return "CREATE FUNCTION pgconsent.privacy_guardians(of_store pg_catalog.text)\nRETURNS TABLE " +
		"(subject pg_catalog.text, guardian pg_catalog.text)\n" + functionOptions + body + "\n$pgconsent$"
}

func createPrivacyContexts(x *policy.Contexts, functionOptions string) string {
	body := "SELECT NULL::pg_catalog.text, NULL::pg_catalog.text[] WHERE false"
	if x != nil {
		body = fmt.Sprintf("SELECT %s, %s FROM %s AS t WHERE %s OPERATOR(pg_catalog.=) privacy_contexts.of_store "+
			"ORDER BY 1", asText("t", x.Name), listAsArray(x.Participants, "t"), x.Relation.Name.SQL(), asText("t", x.Store))
	}
	return "CREATE FUNCTION pgconsent.privacy_contexts(of_store pg_catalog.text)\nRETURNS TABLE " +
		"(name pg_catalog.text, participants pg_catalog.text[])\n" + functionOptions + body + "\n$pgconsent$"
}

// createPrivacyDrawn returns the statement that creates privacy_drawn. That function lists the beliefs in the caller's
// own stores that were drawn from memories, with their texts and sources.
func createPrivacyDrawn(s *policy.Privacy, functionOptions string) string {
	body := "SELECT NULL::pg_catalog.text, NULL::pg_catalog.text, NULL::pg_catalog.text, NULL::pg_catalog.text, " +
		"NULL::pg_catalog.text, NULL::pg_catalog.text, NULL::pg_catalog.text, NULL::pg_catalog.text, " +
		"NULL::pg_catalog.text WHERE false"
	if g := s.Generalize; g != nil {
		owner, join := asText("m", g.BeliefKind.StoreColumn), ""
		if x := s.Stores; x != nil {
			owner = asText("o", x.Owner)
			join = fmt.Sprintf(" JOIN %s AS o ON o.%s OPERATOR(pg_catalog.=) m.%s", x.Relation.Name.SQL(),
				catalog.QuoteIdent(x.ID), catalog.QuoteIdent(g.BeliefKind.StoreColumn))
		}
		timeText := "''::pg_catalog.text" // the time as a text that sorts by time
		if g.Link.At != "" {
			timeText = fmt.Sprintf("COALESCE(pg_catalog.to_char(l.%s::pg_catalog.timestamptz AT TIME ZONE 'UTC', "+
				`'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '')`, catalog.QuoteIdent(g.Link.At))
		}
		body = fmt.Sprintf("SELECT * FROM (SELECT %s::pg_catalog.text AS kind, %s AS key, %s AS store, %s AS text, "+
			"COALESCE(%s, '') AS source, COALESCE(%s, '') AS source_kind, COALESCE(%s, '') AS note, "+
			`%s AS at, %s AS owner
  FROM %s AS l JOIN %s AS m ON m.%s OPERATOR(pg_catalog.=) l.%s AND m.%s OPERATOR(pg_catalog.=) l.%s%s) AS q
WHERE q.owner OPERATOR(pg_catalog.=) caller `+
			`AND (after IS NULL OR ROW(q.at, q.key, q.source) OPERATOR(pg_catalog.<) ROW(after[1], after[2], after[3]))
ORDER BY q.at DESC, q.key DESC, q.source DESC LIMIT most`,
			catalog.QuoteLiteral(g.BeliefKind.Kind), asText("m", g.BeliefKind.Key), asText("m", g.BeliefKind.StoreColumn),
			asText("m",
				g.BeliefKind.Content), asText("l", g.Link.Source), asText("l", g.Link.Kind), asText("l", g.Link.Note), timeText,
			owner,
			g.Link.Relation.Name.SQL(), g.BeliefKind.Relation.Name.SQL(), catalog.QuoteIdent(g.BeliefKind.Key),
			catalog.QuoteIdent(g.Link.Made), catalog.QuoteIdent(g.BeliefKind.StoreColumn), catalog.QuoteIdent(g.Link.Store),
			join)
	}
	return "CREATE FUNCTION pgconsent.privacy_drawn(caller pg_catalog.text, after " +
		"pg_catalog.text[], most pg_catalog.int4)\nRETURNS TABLE (kind pg_catalog.text, key pg_catalog.text, " +
		"store pg_catalog.text, text pg_catalog.text, source pg_catalog.text, source_kind pg_catalog.text, note " +
		"pg_catalog.text, at pg_catalog.text, owner pg_catalog.text)\n" + functionOptions + body + "\n$pgconsent$"
}
