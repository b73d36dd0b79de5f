package pgcatalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Grants returns the relations of the application on which PUBLIC or one of the roles has any right, on the whole
// relation or on columns. Roles that do not exist have no rights.
func Grants(ctx context.Context, conn *pgx.Conn, roles ...string) ([]catalog.Grant, error) {
	rows, err := conn.Query(ctx, `
SELECT n.nspname, c.relname, CASE g.grantee WHEN 0::pg_catalog.oid THEN 'PUBLIC'
  ELSE pg_catalog.pg_get_userbyid(g.grantee)::pg_catalog.text END AS grantee
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
CROSS JOIN LATERAL (
  SELECT a.grantee FROM pg_catalog.aclexplode(c.relacl) AS a
  UNION SELECT a.grantee FROM pg_catalog.pg_attribute AS t CROSS JOIN LATERAL pg_catalog.aclexplode(t.attacl) AS a
  WHERE t.attrelid OPERATOR(pg_catalog.=) c.oid AND NOT t.attisdropped) AS g
WHERE c.relkind::pg_catalog.text OPERATOR(pg_catalog.=) ANY (ARRAY['r', 'p', 'v', 'm', 'f'])
  AND n.nspname OPERATOR(pg_catalog.!~) '^(pg_|information_schema$|pgconsent)'
  AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend AS d WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
    AND d.objid OPERATOR(pg_catalog.=) c.oid AND d.deptype OPERATOR(pg_catalog.=) 'e')
  AND (g.grantee OPERATOR(pg_catalog.=) 0::pg_catalog.oid
    OR pg_catalog.pg_get_userbyid(g.grantee)::pg_catalog.text OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.text[]))
ORDER BY 1, 2, 3`, roles)
	if err != nil {
		return nil, fmt.Errorf("read who has rights: %w", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (catalog.Grant, error) {
		var g catalog.Grant
		err := row.Scan(&g.Relation.Schema, &g.Relation.Name, &g.Grantee)
		return g, err
	})
	if err != nil {
		return nil, fmt.Errorf("read who has rights: %w", err)
	}
	return out, nil
}
