package migrations

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
)

// privilege is one entry of an access list: a right that somebody has by name.
type privilege struct {
	Object    string // as GRANT names it: SCHEMA "public"
	Grantee   string // as GRANT names it: PUBLIC or a quoted role
	Privilege string // as GRANT names it: SELECT, or INSERT ("title")
	Grantable bool
}

// privileges reads the access lists of the database, its schemas, relations, columns, sequences and functions. System
// schemas are left out.
func (r *run) privileges(ctx context.Context) (map[privilege]bool, error) {
	rows, err := r.tx.Query(ctx, `
WITH acls (object, column_name, acl) AS (
  SELECT 'DATABASE ' || quote_ident(d.datname), NULL, COALESCE(d.datacl, acldefault('d', d.datdba))
  FROM pg_database AS d WHERE d.datname = current_database()
  UNION ALL
  SELECT 'SCHEMA ' || quote_ident(n.nspname), NULL, COALESCE(n.nspacl, acldefault('n', n.nspowner))
  FROM pg_namespace AS n WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  UNION ALL
  SELECT 'TABLE ' || quote_ident(n.nspname) || '.' || quote_ident(c.relname), NULL, COALESCE(c.relacl, acldefault('r', c.relowner))
  FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  UNION ALL
  SELECT 'TABLE ' || quote_ident(n.nspname) || '.' || quote_ident(c.relname), a.attname, a.attacl
  FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE a.attacl IS NOT NULL AND NOT a.attisdropped
    AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  UNION ALL
  SELECT 'SEQUENCE ' || quote_ident(n.nspname) || '.' || quote_ident(c.relname), NULL, COALESCE(c.relacl, acldefault('s', c.relowner))
  FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE c.relkind = 'S' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  UNION ALL
  SELECT 'FUNCTION ' || quote_ident(n.nspname) || '.' || quote_ident(p.proname) || '(' || pg_get_function_identity_arguments(p.oid) || ')', NULL,
    COALESCE(p.proacl, acldefault('f', p.proowner))
  FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
  WHERE p.prokind <> 'p' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
)
SELECT a.object, CASE WHEN x.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(x.grantee)) END,
  x.privilege_type || COALESCE(' (' || quote_ident(a.column_name) || ')', ''), x.is_grantable
FROM acls AS a CROSS JOIN LATERAL aclexplode(a.acl) AS x`)
	if err != nil {
		return nil, fmt.Errorf("migrate: read the privileges: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[privilege])
	if err != nil {
		return nil, fmt.Errorf("migrate: read the privileges: %w", err)
	}
	set := make(map[privilege]bool, len(list))
	for _, p := range list {
		set[p] = true
	}
	return set, nil
}

// restore returns the statements that turn the privileges after into those before, on what was there before.
func restore(before, after map[privilege]bool) []Statement {
	there := map[string]bool{}
	for p := range before {
		there[p.Object] = true
	}
	const why = "Give back the privileges that were found."
	var out []Statement
	for _, p := range slices.SortedFunc(maps.Keys(after), comparePrivileges) {
		if there[p.Object] && !before[p] {
			out = append(out, Statement{fmt.Sprintf("REVOKE %s ON %s FROM %s", p.Privilege, p.Object, p.Grantee), why})
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(before), comparePrivileges) {
		if after[p] {
			continue
		}
		option := ""
		if p.Grantable {
			option = " WITH GRANT OPTION"
		}
		out = append(out, Statement{fmt.Sprintf("GRANT %s ON %s TO %s%s", p.Privilege, p.Object, p.Grantee, option), why})
	}
	return out
}

func comparePrivileges(a, b privilege) int {
	return slices.Compare([]string{a.Object, a.Grantee, a.Privilege, fmt.Sprint(a.Grantable)},
		[]string{b.Object, b.Grantee, b.Privilege, fmt.Sprint(b.Grantable)})
}
