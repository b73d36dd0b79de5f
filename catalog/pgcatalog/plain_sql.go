package pgcatalog

// inSQL is the language SQL. The text of a function in it PostgreSQL may put in the place of its call, and then works out what it can of that as it plans.
const inSQL = "(SELECT l.oid FROM pg_language AS l WHERE l.lanname = 'sql')"

// ours are the schemas of what migrate makes. A name in them is nobody's: it says nothing of a text that was there before.
const ours = "(SELECT s.oid FROM pg_namespace AS s WHERE s.nspname IN ('pgconsent', 'pgconsent_gate', 'pgconsent_catalog', 'pgconsent_rows'))"

// running are functions of PostgreSQL's that run a text, make a value of a type that they are told in one, or call what compares a table's keys; and one that undoes settings.
const running = `\w+_to_xml\w*|ts_stat|ts_rewrite|(domain|array|record|range|multirange)_(in|recv)|pg_input_\w+|satisfies_hash_partition|set_config`

// plainSQL tells of a function p that it is in SQL, and that its text is one SELECT that reads no table, runs no text, and has no name of a function, a type or an operator but PostgreSQL's and those of functions that are not of others: neither it nor what PostgreSQL makes of it as it plans runs anything
// else. So are those that are made to call unaccent immutable, or to tell an address by its look. Values of others' types, which it may take for any, could be cast or compared by what the text does not name; so could PostgreSQL's own, where somebody has made a cast or an order of these.
func plainSQL(p string) string {
	const reading = `\m(from|into|table|with|execute|` + running + `)\M`
	text := withoutStrings(p)
	return "(" + p + ".prolang = " + inSQL + " AND " + p + ".prosqlbody IS NULL AND " + isClear(p) + " AND " + text + ` ~* '^\s*select\M[^;]*;?\s*$' AND ` + text + " !~* '" + reading + "' AND NOT " + hasDefaults(p) + `
		  AND NOT EXISTS (SELECT FROM unnest(` + p + ".proconfig) AS g (setting) WHERE g.setting NOT LIKE 'search\\_path=%') AND NOT EXISTS (SELECT FROM pg_type AS y WHERE y.oid = ANY (" + p + ".prorettype || COALESCE(" + p + ".proallargtypes, " + p + `.proargtypes::oid[])) AND (y.oid >= 16384 OR y.typtype = 'p'))
		  AND NOT EXISTS (SELECT FROM regexp_split_to_table(lower(` + text + `), '\W+') AS w (word) WHERE EXISTS (SELECT FROM pg_proc AS n WHERE n.proname = w.word::name AND n.oid <> ` + p + ".oid AND n.pronamespace NOT IN " + ours + " AND " + ofOthers("n") + `)
		    OR EXISTS (SELECT FROM pg_type AS n WHERE n.typname = w.word::name AND n.typnamespace NOT IN ` + ours + ` AND n.oid >= 16384))
		  AND NOT ` + operators(text) + `
		  AND ` + nobodysOrder + ")"
}

// operators tells of a text that it may have an operator in it by which a function of others is called: by its name, or as LIKE, SIMILAR, IN, BETWEEN, NULLIF or CASE.
func operators(text string) string {
	return "EXISTS (SELECT FROM pg_operator AS o JOIN pg_proc AS n ON n.oid = o.oprcode WHERE o.oid >= 16384 AND (NOT " + ofHonest("pg_operator", "o.oid") + " OR " + ofOthers("n") + ") AND (o.oprname = ANY ('{=,<>,<,<=,>,>=,~,!~,~~,~~*,!~~,!~~*}'::name[]) OR EXISTS (SELECT FROM regexp_matches(" + text + ", '[-+*/<>=~!@#%^&|`?]+', 'g') AS w WHERE strpos(w[1], o.oprname) > 0)))"
}

// nobodysOrder is that nobody has made a cast between types of PostgreSQL's, or an order or a hash of one.
const nobodysOrder = `(SELECT NOT EXISTS (SELECT FROM pg_cast AS u WHERE u.oid >= 16384 AND u.castfunc <> 0 AND u.castsource < 16384 AND u.casttarget < 16384)
		  AND NOT EXISTS (SELECT FROM pg_opclass AS q JOIN pg_am AS am ON am.oid = q.opcmethod AND am.amname IN ('btree', 'hash') WHERE q.oid >= 16384 AND q.opcdefault AND q.opcintype < 16384))`

// hasDefaults tells of a function that arguments which a call leaves out may be worked out for it: the call, as it is stored, does not name what they call.
func hasDefaults(p string) string {
	return "COALESCE(" + p + `.proargdefaults::text ~ '\{(?!CONST|RELABELTYPE)', false)`
}

// withoutStrings is the text of a function in SQL with a space in the place of each string, if it is clear. Names are read as PostgreSQL reads them, whatever the database's language.
func withoutStrings(p string) string {
	return "regexp_replace(" + p + `.prosrc COLLATE "C", '''[^'']*''', ' ', 'g')`
}

// isClear tells of the text of a function that what is taken for its strings are these, and what is taken for its names: none has escapes, and outside of them is no quoted name, dollar quote and comment, and no letter or dollar in a name that is none to all.
func isClear(p string) string {
	return "(" + p + `.prosrc COLLATE "C" !~* '\me''' AND ` + withoutStrings(p) + ` !~ '["\\]|[^\x01-\x7f]|\$([^0-9]|$)|\w\$|--|/\*')`
}
