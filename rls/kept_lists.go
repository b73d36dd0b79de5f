package rls

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
)

// keptListBody returns the body of a function that returns one of the keptLists. The session keeps the lists in settings.
// It makes them anew if the catalogs or the installed policy have changed, and each minute, since event triggers do not
// tell of all changes; without event triggers, each time. A list that is out of date may lack new objects and have
// dropped ones. It does not have the OID of an object that was hidden when the list was made.
func keptListBody(name string) string {
	setting := "pgconsent." + name
	return `DECLARE
  version text := (SELECT concat_ws('.', i.hash, (SELECT sum(c.n) FROM pgconsent.catalog_change AS c),
      floor(date_part('epoch', statement_timestamp()) / 60)) FROM pgconsent.installed AS i
    WHERE ` + migrations.TracksDDL + `);
BEGIN
IF version IS NULL OR split_part(current_setting('` + setting + `', true), ' ', 1) IS DISTINCT FROM version THEN
  PERFORM pgconsent.keep_lists(COALESCE(version, ''));
END IF;
RETURN QUERY SELECT unnest(split_part(current_setting('` + setting + `'), ' ', 2)::oid[]);`
}

// keepListsBody returns the body of a function that makes the lists with these names. One query makes all of them, since
// planning it takes a new session longer than running it.
func keepListsBody(names []string) string {
	variables, arrays, settings := make([]string, len(names)), make([]string, len(names)), make([]string, len(names))
	for i, name := range names {
		variables[i] = name
		arrays[i] = "ARRAY(" + keptLists[name] + ")"
		settings[i] = "PERFORM set_config('pgconsent." + name + "', version || ' ' || " + name + "::text, false);"
	}
	return "DECLARE\n  " + strings.Join(variables, " oid[];\n  ") + " oid[];\nBEGIN\n" + withLists + "\nSELECT " +
		strings.Join(arrays, ",\n") + "\nINTO " + strings.Join(variables, ", ") + ";\n" + strings.Join(settings, "\n")
}

// keptLists are the queries of the lists of OIDs that a session keeps, by their names. They follow [withLists].
var keptLists = map[string]string{
	"listed_relations":  listedRelations,
	"shown_types":       "SELECT t.oid " + catalog.ShownTypes,
	"shown_constraints": "SELECT k.oid " + catalog.ShownConstraints,
}

// withLists is the WITH clause of the keptLists.
var withLists = withListed + `,
narrowed AS MATERIALIZED (SELECT w.attrelid, w.attnum, w.hidden FROM pgconsent.narrowed AS w),
hidden AS MATERIALIZED (SELECT w.attrelid, w.attnum FROM narrowed AS w WHERE w.hidden),
made AS MATERIALIZED (SELECT c.oid ` + catalog.MadeRelations + `),
shown_table AS (SELECT l.oid FROM listed AS l UNION ALL SELECT m.oid FROM made AS m),
hidden_constraint AS MATERIALIZED (` + hiddenConstraints + `)`

// withListed is the WITH clause of queries that read the list of the policy's tables several times.
const withListed = "WITH listed AS MATERIALIZED (SELECT l.oid FROM pgconsent.listed_table AS l)"

// isHidden returns the SQL condition that one of the columns with these numbers is in the WITH query "hidden".
func isHidden(relation, numbers string) string {
	return "EXISTS (SELECT 1 FROM pg_catalog.unnest(" + numbers + "::pg_catalog.int2[]) AS a (attnum) WHERE (" + relation +
		", a.attnum) IN (SELECT h.attrelid, h.attnum FROM hidden AS h))"
}

// listedRelations is a query of the policy's tables, their indexes, and their columns' sequences. It leaves out indexes
// with expressions, conditions or hidden columns, and sequences of hidden or masked columns. OFFSET 0 makes the planner
// use the catalogs' indexes for each table. Composite types and later views of PostgreSQL's own schemas are in it as well.
var listedRelations = `SELECT s.oid FROM shown_table AS s
UNION ALL
SELECT i.indexrelid FROM listed AS l
CROSS JOIN LATERAL (SELECT i.indexrelid FROM pg_catalog.pg_index AS i
  WHERE i.indrelid = l.oid AND i.indexprs IS NULL AND i.indpred IS NULL
    AND NOT ` + isHidden("i.indrelid", "i.indkey") + ` OFFSET 0) AS i
UNION ALL
SELECT q.oid FROM listed AS l
CROSS JOIN LATERAL (SELECT q.oid FROM pg_catalog.pg_class AS c
  JOIN pg_catalog.pg_depend AS d ON d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = c.oid
  JOIN pg_catalog.pg_class AS q ON q.oid = d.objid
  WHERE c.oid = l.oid AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.deptype IN ('a', 'i')
    AND q.relkind = 'S' AND q.relnamespace = c.relnamespace
    AND (d.refobjid, d.refobjsubid) NOT IN (SELECT w.attrelid, w.attnum FROM narrowed AS w)
  OFFSET 0) AS q`

// hiddenConstraints is a query of the constraints on the policy's tables that involve a hidden column, on either side
// of a foreign key. If no column is hidden, it reads no constraint.
var hiddenConstraints = `SELECT k.oid FROM listed AS l
CROSS JOIN LATERAL (SELECT k.oid, k.conrelid, k.conkey, k.confrelid, k.confkey FROM pg_catalog.pg_constraint AS k
  WHERE k.conrelid = l.oid OFFSET 0) AS k
WHERE EXISTS (SELECT FROM hidden AS h) AND (` + isHidden("k.conrelid", "k.conkey") + " OR " +
	isHidden("k.confrelid", "k.confkey") + ")"
