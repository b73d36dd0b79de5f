package pgcatalog

// ofCustomers tells of a row policy l that it is not ours and concerns our roles: PUBLIC has it, or one of them by name. They are members of no role; doctor refuses to serve where one is.
const ofCustomers = `(l.polname NOT IN ('pgconsent_select', 'pgconsent_insert', 'pgconsent_update', 'pgconsent_delete', 'pgconsent_none', 'pgconsent_open', 'pgconsent_reader', 'pgconsent_current') AND (0 = ANY (l.polroles)
	OR EXISTS (SELECT FROM pg_policy AS o WHERE o.polname LIKE 'pgconsent\_%' AND o.polroles && l.polroles AND NOT 0 = ANY (o.polroles))
	OR EXISTS (SELECT FROM pg_class AS o JOIN pg_namespace AS s ON s.oid = o.relnamespace WHERE s.nspname IN ('pgconsent', 'pgconsent_gate', 'pgconsent_rows') AND o.relkind = 'v' AND o.relowner = ANY (l.polroles))))`

// idle tells of a function p, which a permissive policy calls, that nothing of anybody's runs by it: beside ours, which is true, PostgreSQL drops the policy before it plans, having worked out what is immutable, and put the bodies of
// functions in SQL in the place of their calls (inline_function, clauses.c). So idle are those that are not immutable, in another language, or that are not put there; and those in SQL that are plain, as Supabase's auth.uid() is. What is not put there for a sub-select
// was parsed before, which makes values of the constants in it.
func idle(p string) string {
	return "CASE WHEN " + hasDefaults(p) + " THEN false WHEN " + p + ".prolang <> " + inSQL + " THEN " + p + `.provolatile <> 'i'
	  WHEN ` + p + ".provolatile <> 'i' AND (" + p + ".prosecdef OR " + p + `.proconfig IS NOT NULL) THEN true
	  WHEN ` + p + ".provolatile <> 'i' AND " + p + ".prosqlbody IS NULL AND " + isClear(p) + " AND " + withoutStrings(p) + ` ~* '\(\s*select\M' AND (` + p + ".prosrc !~ '''' OR (SELECT NOT EXISTS (SELECT FROM pg_type AS t WHERE " + typeRuns("t") + `))) THEN true
	  ELSE ` + plainSQL(p) + " END"
}
