// Package builtin tells whether the objects of schema pg_catalog that pgconsent's SQL names are PostgreSQL's own:
// functions, operators, casts, types and the language of its functions.
//
// Names in pgconsent's SQL are schema-qualified. So only a superuser, who may write to pg_catalog, can make PostgreSQL
// use another object in their place. Such an object, for example a function whose argument types fit better, would
// decide the results of triggers, row policies and pgconsent's own checks. [ReadLeakproofFunctions] finds functions to
// which row security passes values of hidden rows.
//
// The package does not find rows that somebody has written into the tables of pg_catalog by hand
// (allow_system_table_mods), nor a modified server program.
package builtin

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Querier is a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// plantedQuery finds objects that somebody has added to pg_catalog. Objects of initdb have OIDs below 16384. The server
// calls a built-in function by its OID. So CREATE OR REPLACE does not change what the function does, unless the planner
// inlines an SQL body. Extensions may put functions into pg_catalog, except under the names of functions that pgconsent
// calls. The query also lists casts of the kinds that rules and functions of pgconsent use, above all casts from text,
// the type of attributes.
const plantedQuery = `
WITH ours AS (
  SELECT p.prosrc FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
  WHERE n.nspname IN ('pgconsent', 'pgconsent_signed', 'pgconsent_catalog', 'pgconsent_rows')
), functions AS (
  SELECT p.oid, p.proname, p.prolang, p.provolatile, p.proisstrict, p.prosecdef, p.proconfig FROM pg_catalog.pg_proc AS p
  WHERE p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace
)
SELECT pg_catalog.format('function pg_catalog.%s(%s)', f.proname, pg_catalog.pg_get_function_identity_arguments(f.oid)) FROM functions AS f
WHERE f.oid >= 16384 AND (
    EXISTS (SELECT FROM ours AS o WHERE pg_catalog.strpos(o.prosrc, 'pg_catalog.' || f.proname || '(') > 0)
    OR EXISTS (SELECT FROM functions AS b WHERE b.proname = f.proname AND b.oid < 16384)
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend AS d
        WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid = f.oid AND d.deptype = 'e'))
  OR f.oid < 16384 AND (
    f.provolatile = 'i' AND f.oid = ANY ($2::pg_catalog.oid[]) OR f.proisstrict AND f.oid = ANY ($3::pg_catalog.oid[])
    OR (f.prosecdef OR f.proconfig IS NOT NULL) AND EXISTS (SELECT FROM ours AS o
      WHERE pg_catalog.strpos(o.prosrc, 'pg_catalog.' || f.proname || '(') > 0)
    OR f.prolang NOT IN (SELECT l.oid FROM pg_catalog.pg_language AS l WHERE l.lanname IN ('internal', 'c', 'sql'))
    OR f.prolang = (SELECT l.oid FROM pg_catalog.pg_language AS l WHERE l.lanname = 'sql') AND f.oid <> ALL ($1::pg_catalog.oid[])
      AND EXISTS (SELECT FROM ours AS o WHERE pg_catalog.strpos(o.prosrc, 'pg_catalog.' || f.proname || '(') > 0))
UNION ALL
SELECT 'operator ' || pg_catalog.format('pg_catalog.%s(%s, %s)', o.oprname, NULLIF(o.oprleft, 0)::pg_catalog.regtype,
  o.oprright::pg_catalog.regtype) FROM pg_catalog.pg_operator AS o
WHERE o.oprnamespace = 'pg_catalog'::pg_catalog.regnamespace
AND GREATEST(o.oid, o.oprcode::pg_catalog.oid, o.oprrest::pg_catalog.oid, o.oprjoin::pg_catalog.oid) >= 16384
UNION ALL
SELECT pg_catalog.format('cast (%s AS %s)', c.castsource::pg_catalog.regtype, c.casttarget::pg_catalog.regtype) FROM pg_catalog.pg_cast AS c
JOIN pg_catalog.pg_type AS t ON t.oid = c.casttarget
WHERE c.castsource < 16384 AND c.casttarget < 16384 AND (c.oid >= 16384 AND c.castmethod <> 'i' OR c.castfunc >= 16384)
  AND (c.castsource = 'pg_catalog.text'::pg_catalog.regtype
    AND t.typname IN ('bool', 'int2', 'int4', 'int8', 'numeric', 'float8', 'uuid', 'date', 'timestamp', 'timestamptz', 'jsonb')
    OR EXISTS (SELECT FROM ours AS o WHERE o.prosrc ~ ('::pg_catalog\.' || t.typname || '\M')))
UNION ALL
SELECT 'type pg_catalog.' || t.typname FROM pg_catalog.pg_type AS t
WHERE t.typnamespace = 'pg_catalog'::pg_catalog.regnamespace AND t.oid >= 16384 AND t.typname ~ '^[a-z0-9_]+$'
  AND EXISTS (SELECT FROM ours AS o WHERE o.prosrc ~ ('pg_catalog\.' || t.typname || '\M'))
UNION ALL
SELECT 'language ' || l.lanname FROM pg_catalog.pg_language AS l LEFT JOIN pg_catalog.pg_proc AS p ON p.oid = l.lanplcallfoid
WHERE l.lanname = 'plpgsql' AND (p.prosrc = 'plpgsql_call_handler' AND p.probin IN ('$libdir/plpgsql', 'plpgsql')) IS NOT TRUE
ORDER BY 1`

// sqlFunctionOIDs are the OIDs of functions of PostgreSQL 15 to 18 that are written in SQL. They have the same names as
// functions that pgconsent calls, but pgconsent calls none of them.
var sqlFunctionOIDs = []uint32{879 /* lpad */, 1384 /* date_part */, 1708 /* round */, 1710, /* trunc */
	2074 /* substring */}

// momentFunctionOIDs are the OIDs of functions that rules and pgconsent call and whose result depends on the time or
// the session. If a superuser marked such a function IMMUTABLE, PostgreSQL would call it only once, when it plans a
// statement. Rows would then show under a consent that has expired since, as long as the plan is used.
var momentFunctionOIDs = []uint32{
	1299 /* now */, 2647 /* transaction_timestamp */, 2648 /* statement_timestamp */, 2649, /* clock_timestamp */
	2077, 3294 /* current_setting */, 817, /* current_query */
	2026 /* pg_backend_pid */, 5059 /* pg_current_xact_id */, 5060 /* pg_current_xact_id_if_assigned */, 5061,
	/* pg_current_snapshot */
}

// nullAcceptingOIDs are the OIDs of functions that pgconsent calls with arguments that may be NULL.
var nullAcceptingOIDs = []uint32{3058 /* concat */, 3059 /* concat_ws */, 3539, 3540 /* format */, 2078,
	/* set_config */
	3036 /* pg_notify */}

// ReadPlantedObjects returns the names of objects in pg_catalog that are not PostgreSQL's own and that PostgreSQL might
// use in place of its own objects. Every role may run the query.
func ReadPlantedObjects(ctx context.Context, q Querier) ([]string, error) {
	return queryNames(ctx, q, "look at what PostgreSQL's functions are", plantedQuery, sqlFunctionOIDs,
		momentFunctionOIDs, nullAcceptingOIDs)
}

// queryNames runs a query whose rows have one name each. An error names the kind of objects that were read.
func queryNames(ctx context.Context, q Querier, kind, sql string, args ...any) ([]string, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return out, nil
}
