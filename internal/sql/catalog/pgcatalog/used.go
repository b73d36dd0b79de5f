package pgcatalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

const isForeignSchemaSQL = `pn.nspname OPERATOR(pg_catalog.!~) '^(pg_|information_schema$|pgconsent)'`

// FunctionUses returns the relations that functions of the application read and write, as far as that can be known.
func FunctionUses(ctx context.Context, conn *pgx.Conn) ([]catalog.FunctionUse, error) {
	return queryRows(ctx, conn, "what functions read", `
WITH relation AS (
  SELECT c.oid, pn.nspname, c.relname, pg_catalog.count(*) OVER (PARTITION BY c.relname) OPERATOR(pg_catalog.=) 1 AS single
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS pn ON pn.oid OPERATOR(pg_catalog.=) c.relnamespace
  WHERE c.relkind::pg_catalog.text OPERATOR(pg_catalog.=) ANY (ARRAY['r', 'p', 'v', 'm', 'f']) AND `+isForeignSchemaSQL+`)
SELECT pn.nspname, p.proname, c.nspname, c.relname, pg_catalog.bool_or(u.takes), pg_catalog.bool_or(u.writes)
FROM pg_catalog.pg_proc AS p
JOIN pg_catalog.pg_namespace AS pn ON pn.oid OPERATOR(pg_catalog.=) p.pronamespace
JOIN pg_catalog.pg_language AS l ON l.oid OPERATOR(pg_catalog.=) p.prolang
CROSS JOIN LATERAL (
  SELECT t.typrelid AS oid, false AS takes, false AS writes FROM pg_catalog.pg_type AS t
  WHERE t.oid OPERATOR(pg_catalog.=) p.prorettype AND p.proretset
  UNION ALL SELECT t.typrelid, true, false FROM pg_catalog.pg_type AS t
    WHERE t.oid OPERATOR(pg_catalog.=) ANY (p.proargtypes::pg_catalog.oid[])
  UNION ALL SELECT d.refobjid, false, false FROM pg_catalog.pg_depend AS d
  WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid OPERATOR(pg_catalog.=) p.oid
    AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
  UNION ALL SELECT r.oid, false, pg_catalog.lower(said.m[1]) OPERATOR(pg_catalog.~) '^(insert|update|delete)'
  FROM pg_catalog.regexp_matches(p.prosrc,
    '\m(insert\s+into|delete\s+from|update|from|join)\s+(?:only\s+)?`+
		`((?:"[^"]+"|[[:alpha:]_][[:alnum:]_$]*)(?:\.(?:"[^"]+"|[[:alpha:]_][[:alnum:]_$]*))?)',
    'gi') AS said (m)
  CROSS JOIN LATERAL pg_catalog.parse_ident(said.m[2]) AS part
  JOIN relation AS r ON r.relname::pg_catalog.text OPERATOR(pg_catalog.=) part[pg_catalog.cardinality(part)]
    AND CASE pg_catalog.cardinality(part) WHEN 1 THEN r.single ELSE r.nspname::pg_catalog.text OPERATOR(pg_catalog.=) part[1] END
  WHERE l.lanname::pg_catalog.text OPERATOR(pg_catalog.=) ANY (ARRAY['sql', 'plpgsql'])) AS u
JOIN relation AS c ON c.oid OPERATOR(pg_catalog.=) u.oid
WHERE `+isForeignSchemaSQL+` GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4`,
		func(u *catalog.FunctionUse) []any {
			return []any{&u.Function.Schema, &u.Function.Name, &u.Relation.Schema, &u.Relation.Name, &u.TakesRows, &u.MayWrite}
		})
}

// Triggers returns the triggers on the application's tables whose functions run with the rights of the role that
// changes a row.
func Triggers(ctx context.Context, conn *pgx.Conn) ([]catalog.Trigger, error) {
	return queryRows(ctx, conn, "triggers", `
SELECT t.tgname, pn.nspname, c.relname, fn.nspname, p.proname,
  (t.tgtype::pg_catalog.int4 OPERATOR(pg_catalog.&) 4) OPERATOR(pg_catalog.<>) 0,
  (t.tgtype::pg_catalog.int4 OPERATOR(pg_catalog.&) 16) OPERATOR(pg_catalog.<>) 0,
  (t.tgtype::pg_catalog.int4 OPERATOR(pg_catalog.&) 8) OPERATOR(pg_catalog.<>) 0
FROM pg_catalog.pg_trigger AS t
JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) t.tgrelid
JOIN pg_catalog.pg_namespace AS pn ON pn.oid OPERATOR(pg_catalog.=) c.relnamespace
JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) t.tgfoid
JOIN pg_catalog.pg_namespace AS fn ON fn.oid OPERATOR(pg_catalog.=) p.pronamespace
WHERE NOT t.tgisinternal AND NOT p.prosecdef AND t.tgenabled OPERATOR(pg_catalog.<>) 'D'
AND fn.nspname OPERATOR(pg_catalog.!~) '^(pg_|pgconsent)' AND `+isForeignSchemaSQL+` ORDER BY 2, 3, 1`,
		func(t *catalog.Trigger) []any {
			return []any{&t.Name, &t.Relation.Schema, &t.Relation.Name, &t.Function.Schema, &t.Function.Name,
				&t.Insert, &t.Update, &t.Delete}
		})
}

// DefinerDefaults returns the columns whose defaults call a SECURITY DEFINER function. A column without a default of
// its own has the default of its domain.
func DefinerDefaults(ctx context.Context, conn *pgx.Conn) ([]catalog.DefinerDefault, error) {
	return queryRows(ctx, conn, "defaults", `
SELECT pn.nspname, c.relname, a.attname, pg_catalog.min(p.oid::pg_catalog.regprocedure::pg_catalog.text)
FROM pg_catalog.pg_attribute AS a
JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) a.attrelid
JOIN pg_catalog.pg_namespace AS pn ON pn.oid OPERATOR(pg_catalog.=) c.relnamespace
CROSS JOIN LATERAL (
  SELECT 'pg_catalog.pg_attrdef'::pg_catalog.regclass AS class, f.oid FROM pg_catalog.pg_attrdef AS f
  WHERE f.adrelid OPERATOR(pg_catalog.=) a.attrelid AND f.adnum OPERATOR(pg_catalog.=) a.attnum
  UNION ALL SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, t.oid FROM pg_catalog.pg_type AS t
  WHERE NOT a.atthasdef AND t.oid OPERATOR(pg_catalog.=) a.atttypid AND t.typdefaultbin IS NOT NULL) AS f
JOIN pg_catalog.pg_depend AS d ON d.classid OPERATOR(pg_catalog.=) f.class AND d.objid OPERATOR(pg_catalog.=) f.oid
  AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) d.refobjid
WHERE p.prosecdef AND NOT a.attisdropped AND a.attgenerated OPERATOR(pg_catalog.=) '' AND `+
		isForeignSchemaSQL+` GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`,
		func(d *catalog.DefinerDefault) []any {
			return []any{&d.Relation.Schema, &d.Relation.Name, &d.Column, &d.Function}
		})
}

// queryRows returns the rows of a query. The function into returns pointers to the fields of T that take the values of
// a row.
func queryRows[T any](ctx context.Context, conn *pgx.Conn, kind, sql string, into func(*T) []any) ([]T, error) {
	rows, err := conn.Query(ctx, sql)
	if err == nil {
		var out []T
		if out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (T, error) {
			var item T
			err := row.Scan(into(&item)...)
			return item, err
		}); err == nil {
			return out, nil
		}
	}
	return nil, fmt.Errorf("read %s: %w", kind, err)
}
