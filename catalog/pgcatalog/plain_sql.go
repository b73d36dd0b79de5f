package pgcatalog

// inSQL is the language SQL. The text of a function in it PostgreSQL may put in the place of its call, and then works out what it can of that as it plans.
const inSQL = "(SELECT l.oid FROM pg_language AS l WHERE l.lanname = 'sql')"

// ours are the schemas of what migrate makes. A name in them is nobody's: it says nothing of a text that was there before.
const ours = "(SELECT s.oid FROM pg_namespace AS s WHERE s.nspname IN ('pgconsent', 'pgconsent_gate', 'pgconsent_catalog', 'pgconsent_rows'))"

// plainSQL tells of a function p that it is in SQL, and that its text reads no table, runs no text, and has no name of a function, a type or an operator but PostgreSQL's and those of functions that are not of others: neither it nor what PostgreSQL makes of it as it plans runs anything
// else. So are those that are made to call unaccent immutable, or to tell an address by its look. Values of others' types could be cast or compared by what the text does not name.
func plainSQL(p string, of func(p string) string) string {
	const (
		running  = `\m(from|into|table|with|execute|\w+_to_xml\w*|ts_stat|ts_rewrite)\M`
		operator = "[-+*/<>=~!@#%^&|`?]+"
		unsaid   = "'{=,<>,<,<=,>,>=,~,~~,~~*,!~~,!~~*}'" // operators of LIKE, IN, BETWEEN, NULLIF, CASE
	)
	text := withoutStrings(p)
	return "(" + p + ".prolang = " + inSQL + " AND " + p + ".prosqlbody IS NULL AND " + p + ".prorettype < 16384 AND 16384 > ALL (" + p + ".proargtypes::oid[]) AND " + isClear(p) + " AND " + text + " !~* '" + running + `'
		  AND NOT EXISTS (SELECT FROM regexp_split_to_table(lower(` + text + `), '\W+') AS w (word) WHERE EXISTS (SELECT FROM pg_proc AS n WHERE n.proname = w.word::name AND n.oid <> ` + p + ".oid AND n.pronamespace NOT IN " + ours + " AND " + of("n") + `)
		    OR EXISTS (SELECT FROM pg_type AS n WHERE n.typname = w.word::name AND n.typnamespace NOT IN ` + ours + ` AND n.oid >= 16384))
		  AND NOT EXISTS (SELECT FROM pg_operator AS o WHERE o.oid >= 16384 AND NOT ` + ofHonest("pg_operator", "o.oid") + " AND (o.oprname = ANY (" + unsaid + "::name[]) OR EXISTS (SELECT FROM regexp_matches(" + text + ", '" + operator + `', 'g') AS w WHERE strpos(w[1], o.oprname) > 0))))`
}

// withoutStrings is the text of a function in SQL with a space in the place of each string, if it is clear.
func withoutStrings(p string) string {
	return "regexp_replace(" + p + ".prosrc, '''[^'']*''', ' ', 'g')"
}

// isClear tells of the text of a function that what is taken for its strings are these: none has escapes, and outside of them is no quoted name, dollar quote and comment.
func isClear(p string) string {
	return "(" + p + `.prosrc !~* '\me''' AND ` + withoutStrings(p) + ` !~ '"|\$([^0-9]|$)|--|/\*')`
}
