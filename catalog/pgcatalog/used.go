package pgcatalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/catalog"
)

// Used returns what is known of the relations that functions of the application read.
func Used(ctx context.Context, conn *pgx.Conn) ([]catalog.Use, error) {
	rows, err := conn.Query(ctx, `
SELECT pn.nspname, p.proname, cn.nspname, c.relname
FROM pg_catalog.pg_proc AS p
JOIN pg_catalog.pg_namespace AS pn ON pn.oid OPERATOR(pg_catalog.=) p.pronamespace
CROSS JOIN LATERAL (
  SELECT t.typrelid AS oid FROM pg_catalog.pg_type AS t WHERE t.oid OPERATOR(pg_catalog.=) p.prorettype AND p.proretset
  UNION SELECT d.refobjid FROM pg_catalog.pg_depend AS d
  WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid OPERATOR(pg_catalog.=) p.oid
    AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass) AS u
JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) u.oid AND c.relkind::pg_catalog.text OPERATOR(pg_catalog.=) ANY (ARRAY['r', 'p', 'v', 'm', 'f'])
JOIN pg_catalog.pg_namespace AS cn ON cn.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE pn.nspname OPERATOR(pg_catalog.!~) '^(pg_|information_schema$|pgconsent)'
ORDER BY 1, 2, 3, 4`)
	if err != nil {
		return nil, fmt.Errorf("read what functions read: %w", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (catalog.Use, error) {
		var u catalog.Use
		err := row.Scan(&u.Function.Schema, &u.Function.Name, &u.Relation.Schema, &u.Relation.Name)
		return u, err
	})
	if err != nil {
		return nil, fmt.Errorf("read what functions read: %w", err)
	}
	return out, nil
}
