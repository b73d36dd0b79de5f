package pgcatalog

import (
	"context"
	"strings"
)

// What PostgreSQL runs as a row is changed may be a function of the owner's, which asks what it likes with the rights of whoever writes. A table is quiet where all of that is PostgreSQL's
// own, or ours; what is not known to be is taken for other.

// others tells of an expression, NULL where there is none, that it may run a function that is neither PostgreSQL's own nor of an extension that is known, or that goes by more than its arguments:
// those that run a text are among these. Functions of any type run what their arguments' types compare by, so that each type in it counts.
func others(tree string) string {
	return "COALESCE(" + tree + `::text ~ '\{(CONVERTROWTYPE|COERCETODOMAIN|ROWCOMPARE|MINMAX|XMLEXPR|JSON|NEXTVALUE|SUBLINK)' OR ` +
		functions(tree, `p.oid IS NULL OR NOT (p.provolatile = 'i' AND NOT (`+ofOthers("p")+` AND NOT `+plainSQL("p")+`) OR p.oid < 16384 AND p.proname = 'now')`) +
		" OR EXISTS (SELECT FROM regexp_matches(" + tree + "::text, '" + typesIn + "', 'g') AS m WHERE NOT " + plainType("m[1]::oid") + "), false)"
}

// typesIn finds the types that a stored expression has to do with.
const typesIn = `:(?!nulltesttype|booltesttype)[a-z_]*type(?:id|Id)? ([0-9]+)`

// ofHonest tells whether an object belongs to an extension that is known.
func ofHonest(class, oid string) string {
	return "(" + oid + " >= 16384 AND " + extensionOf(class, oid) + " IN ('" + strings.Join(honest, "', '") + "'))"
}

// native are the languages of code that only a superuser can have put in a function's place: the server's, under another name, as citext's operators are, and a library's.
const native = "(SELECT l.oid FROM pg_language AS l WHERE l.lanname IN ('c', 'internal'))"

// ofOthers tells whether a function, a row of pg_proc, is neither PostgreSQL's own nor the code of an extension that is known. What such an extension has in another language anyone may have
// replaced, as earth() is made to be, and calls others by name.
func ofOthers(p string) string {
	return "NOT (" + p + ".oid < 16384 AND " + p + ".pronamespace = 'pg_catalog'::regnamespace OR " + ofHonest("pg_proc", p+".oid") + " AND " + p + ".prolang IN " + native + ")"
}

// plainType tells whether nothing of the owner's runs as a value of a type is made, compared or written: PostgreSQL's own, those of extensions that are known, enums, and arrays of these. Domains (but see plainColumn) and rows are none,
// and none is what others have made comparable: arrays of it are compared by that.
func plainType(oid string) string {
	return "EXISTS (SELECT FROM pg_type AS u WHERE (u.oid = " + oid + " OR u.typarray = " + oid + ") AND (u.typtype = 'e' OR u.typtype IN ('b', 'r', 'm') AND u.oid < 16384 OR u.typtype = 'b' AND " + ofHonest("pg_type", "u.oid") + `)
	  AND NOT EXISTS (SELECT FROM pg_opclass AS q JOIN pg_am AS am ON am.oid = q.opcmethod AND am.amname IN ('btree', 'hash')
	    WHERE q.opcdefault AND q.opcintype IN (u.oid, u.typarray) AND q.oid >= 16384 AND NOT ` + ofHonest("pg_opclass", "q.oid") + "))"
}

// plainColumn tells so of what a column has, which may also be a domain over such a type that others have no part in the checks of.
func plainColumn(oid string) string {
	return "(" + plainType(oid) + " OR EXISTS (SELECT FROM pg_type AS d WHERE d.oid = " + oid + " AND d.typtype = 'd' AND " + plainType("d.typbasetype") + `
	  AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.contypid = d.oid AND ` + others("replace(k.conbin::text, '{COERCETODOMAINVALUE ', '{VALUE ')") + ")))"
}

// readQuiet reads which tables are quiet. Of triggers those of foreign keys are PostgreSQL's, which ask with the rights of the tables' owners; ours note what has changed, and some only write the time (timed.go).
func (l *loader) readQuiet(ctx context.Context) error {
	trigger := func(event, but string) string {
		return `EXISTS (SELECT FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid JOIN pg_namespace AS s ON s.oid = p.pronamespace WHERE t.tgrelid = c.oid AND t.tgtype & ` + event + ` <> 0
		  AND (` + others("t.tgqual") + ` OR NOT (p.oid < 16384 AND s.nspname = 'pg_catalog' OR s.nspname = 'pgconsent' AND t.tgtype & 2 = 0` + but + `)))`
	}
	idly := "NOT EXISTS (SELECT FROM regexp_matches(concat(l.polqual, l.polwithcheck), ':(?:opfuncid|funcid) ([0-9]+)', 'g') AS m JOIN pg_proc AS p ON p.oid = m[1]::oid WHERE " + ofOthers("p") + " AND NOT " + idle("p") + ")"
	before := "NOT c.relhasrules AND NOT EXISTS (SELECT FROM pg_policy AS l WHERE l.polrelid = c.oid AND " + ofCustomers + " AND NOT (l.polpermissive AND NOT EXISTS (SELECT FROM regexp_matches(concat(l.polqual, l.polwithcheck), '" + typesIn + "', 'g') AS m WHERE NOT " + plainType("m[1]::oid") + ") AND " + idly + "))"
	compared := "EXISTS (SELECT FROM unnest(con.conpfeqop || con.conppeqop || con.conffeqop || con.conexclop) AS o (oid) JOIN pg_operator AS op ON op.oid = o.oid JOIN pg_proc AS p ON p.oid = op.oprcode WHERE " + ofOthers("p") + ")"
	// Columns of a foreign key are cast to what its operators compare, which are those of the key that it points to.
	cast := "EXISTS (SELECT FROM pg_attribute AS a JOIN pg_cast AS u ON u.castsource = a.atttypid AND u.castcontext = 'i' JOIN pg_proc AS p ON p.oid = u.castfunc WHERE con.contype = 'f' AND a.attrelid = con.conrelid AND a.attnum = ANY (con.conkey) AND " + ofOthers("p") + ")"
	var (
		oid              uint32
		deletes, updates bool
	)
	return l.each(ctx, `SELECT c.oid, `+before+` AND NOT `+trigger("8", "")+`, `+before+` AND NOT `+trigger("16", " OR "+writesTime())+`
		  AND NOT EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND (a.attgenerated = 'v' OR NOT `+plainColumn("a.atttypid")+`))
		  AND NOT EXISTS (SELECT FROM pg_attribute AS a JOIN pg_attrdef AS f ON f.adrelid = a.attrelid AND f.adnum = a.attnum WHERE a.attrelid = c.oid AND a.attgenerated <> '' AND `+others("f.adbin")+`)
		  AND NOT EXISTS (SELECT FROM pg_constraint AS con WHERE con.conrelid = c.oid AND (`+others("con.conbin")+` OR `+compared+` OR `+cast+`))
		  AND NOT EXISTS (SELECT FROM pg_constraint AS con WHERE con.confrelid = c.oid AND `+compared+`)
		  AND NOT EXISTS (SELECT FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid WHERE i.indrelid = c.oid AND (`+others("i.indexprs")+` OR `+others("i.indpred")+`
		    OR x.relam >= 16384 AND NOT `+ofHonest("pg_am", "x.relam")+`
		    OR EXISTS (SELECT FROM unnest(i.indclass::oid[]) AS o (oid) WHERE o.oid >= 16384 AND NOT `+ofHonest("pg_opclass", "o.oid")+`)
		    OR EXISTS (SELECT FROM unnest(i.indclass::oid[]) AS o (oid) JOIN pg_opclass AS q ON q.oid = o.oid JOIN pg_amproc AS m ON m.amprocfamily = q.opcfamily JOIN pg_proc AS p ON p.oid = m.amproc WHERE `+ofOthers("p")+`)))
		FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE c.relkind = 'r' AND c.relam < 16384 AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)' ORDER BY 1`,
		[]any{&oid, &deletes, &updates},
		func() error {
			if r := l.relations[oid]; r != nil {
				r.DeletesQuietly, r.UpdatesQuietly = deletes, updates
			}
			return nil
		})
}
