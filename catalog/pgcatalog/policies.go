package pgcatalog

// ofCustomers tells of a row policy l that it is not ours and concerns our roles: PUBLIC has it, or one of them by name. They are members of no role; doctor refuses to serve where one is.
const ofCustomers = `(l.polname NOT LIKE 'pgconsent\_%' AND (0 = ANY (l.polroles)
	OR EXISTS (SELECT FROM pg_policy AS o WHERE o.polname LIKE 'pgconsent\_%' AND o.polroles && l.polroles AND NOT 0 = ANY (o.polroles))
	OR EXISTS (SELECT FROM pg_class AS o JOIN pg_namespace AS s ON s.oid = o.relnamespace WHERE s.nspname IN ('pgconsent', 'pgconsent_gate', 'pgconsent_rows') AND o.relkind = 'v' AND o.relowner = ANY (l.polroles))))`

// idle tells of a function p, which a permissive policy calls, that nothing of anybody's runs by it: beside ours, which is true, PostgreSQL drops the policy before it plans, having worked out what is immutable, and put the bodies of
// functions in SQL in the place of their calls (inline_function, clauses.c). So idle are those that are not immutable, in another language, or that are not put there; and those in SQL whose text reads nothing and names no function, type and
// operator of anybody's, as Supabase's auth.uid() does not.
func idle(p string) string {
	const (
		unclear  = `[\\"]|\$[^0-9]|--|/\*`
		running  = `\m(from|into|table|with|execute|\w+_to_xml\w*|ts_stat|ts_rewrite)\M`
		operator = "[-+*/<>=~!@#%^&|`?]+"
	)
	text := "regexp_replace(" + p + ".prosrc, '''[^'']*''', ' ', 'g')" // without its strings
	named := names(text, p) + " OR EXISTS (SELECT FROM regexp_matches(" + text + ", '" + operator + "', 'g') AS w JOIN pg_operator AS o ON o.oid >= 16384 AND NOT " + ofHonest("pg_operator", "o.oid") + " AND strpos(w[1], o.oprname) > 0)"
	return "CASE WHEN " + p + ".prolang <> (SELECT g.oid FROM pg_language AS g WHERE g.lanname = 'sql') THEN " + p + `.provolatile <> 'i'
	  WHEN ` + p + ".provolatile <> 'i' AND (" + p + ".prosecdef OR " + p + `.proconfig IS NOT NULL) THEN true
	  WHEN ` + p + ".prosqlbody IS NOT NULL OR " + p + ".prosrc ~ '" + unclear + `' THEN false
	  WHEN ` + p + ".provolatile <> 'i' AND " + text + ` ~* '\mselect\M.*\mselect\M' THEN true
	  ELSE ` + text + " !~* '" + running + "' AND NOT (" + named + ") END"
}
