package pgcatalog

const (
	// timeOfAStatement is what a trigger may set a column to and still do no more than write the time: that of the transaction or of the statement, which is the same for each row. That of the clock is not.
	timeOfAStatement = `(?:(?:(?:pg_catalog\.)?(?:now|transaction_timestamp|statement_timestamp)\s*\(\s*\)|current_timestamp|localtimestamp)(?:\s+at\s+time\s+zone\s+''utc'')?` +
		`|(?:pg_catalog\.)?timezone\s*\(\s*''utc''(?:::text)?\s*,\s*(?:pg_catalog\.)?now\s*\(\s*\)\s*\))`
	// timedColumn is the column, as a statement of PL/pgSQL sets it.
	timedColumn = `new\.("[a-z0-9_]+"|[a-z_][a-z0-9_]*)\s*:?=`
	// timedBody is the body of a function of triggers, without its comments.
	timedBody = `regexp_replace(p.prosrc, '--[^\n\r]*', ' ', 'g')`
)

// writesTime tells of a trigger t and its function p that it does nothing before an update of a row but to write the time into columns of times that no key has, as an updated_at has: its body in PL/pgSQL consists of that, or
// it is moddatetime of the extension. Nobody else's functions have the names that such a body calls, in whatever schema; what it sets needs no cast but PostgreSQL's own, which nobody replaces.
func writesTime() string {
	const inC = "p.prolang = (SELECT l.oid FROM pg_language AS l WHERE l.lanname = 'c')"
	moddatetime := "(" + inC + " AND p.proname = 'moddatetime' AND " + extensionOf("pg_proc", "p.oid") + " = 'moddatetime')"
	return `(t.tgtype & 83 = 19
	  AND (` + moddatetime + `
	    OR p.prolang = (SELECT l.oid FROM pg_language AS l WHERE l.lanname = 'plpgsql' AND ` + extensionOf("pg_language", "l.oid") + ` = 'plpgsql')
	      AND NOT EXISTS (SELECT FROM unnest(p.proconfig) AS g (setting) WHERE g.setting NOT LIKE 'search\_path=%')
	      AND ` + timedBody + ` ~* '^\s*begin\s+(?:` + timedColumn + `\s*` + timeOfAStatement + `\s*;\s*)+return\s+new\s*;\s*end\s*;?\s*$'
	      AND NOT EXISTS (SELECT FROM pg_proc AS o WHERE o.proname IN ('now', 'transaction_timestamp', 'statement_timestamp', 'timezone') AND o.oid >= 16384))
	  AND NOT EXISTS (
	    SELECT FROM (SELECT CASE WHEN m[1] LIKE '"%' THEN btrim(m[1], '"') ELSE lower(m[1]) END FROM regexp_matches(` + timedBody + `, '` + timedColumn + `', 'gi') AS m WHERE NOT ` + moddatetime + `
	      UNION ALL SELECT replace(encode(t.tgargs, 'escape'), '\000', '') WHERE ` + moddatetime + `) AS s (name)
	      LEFT JOIN pg_attribute AS a ON a.attrelid = t.tgrelid AND a.attname = s.name AND NOT a.attisdropped
	    WHERE (a.atttypid IN ('timestamptz'::regtype, 'timestamp'::regtype, 'date'::regtype) AND a.attgenerated = ''
	      AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = t.tgrelid AND i.indisunique AND a.attnum = ANY (i.indkey))
	      AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.conrelid = t.tgrelid AND k.contype IN ('p', 'u', 'f', 'x') AND a.attnum = ANY (k.conkey))) IS NOT TRUE))`
}
