package doctor

import (
	"context"
	"fmt"
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// checkDirectLogins finds logins that are not among the configured owners and may read protected tables on the server
// directly, not through the proxy. Row security lets them read every row, as before pgconsent. Such a login may be an
// agent whose DSN was not changed.
func checkDirectLogins(ctx context.Context, x *examination) ([]Finding, error) {
	if x.Owners == nil {
		return nil, nil
	}
	var tables []uint32
	for _, table := range x.Policy.Tables() {
		if _, isOpen := table.Rows.(predicate.Open); !isOpen || table.Columns != nil {
			tables = append(tables, table.Relation.OID)
		}
	}
	expectedLogins := append([]string{x.AgentRole, x.ControlRole, x.ReaderRole, x.RowsRole}, x.Owners...)
	rows, err := x.conn.Query(ctx, `SELECT r.rolname::pg_catalog.text, c.oid::pg_catalog.regclass::pg_catalog.text
		FROM pg_catalog.pg_roles r, pg_catalog.pg_class c
		WHERE r.rolcanlogin AND NOT r.rolsuper AND r.rolname <> ALL ($1::pg_catalog.text[])
		  AND r.oid <> (SELECT d.datdba FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
		  AND c.oid = ANY ($2::pg_catalog.oid[]) AND r.oid <> c.relowner
		  AND pg_catalog.has_database_privilege(r.oid, pg_catalog.current_database(), 'CONNECT')
		  AND pg_catalog.has_schema_privilege(r.oid, c.relnamespace, 'USAGE')
		  AND pg_catalog.has_any_column_privilege(r.oid, c.oid, 'SELECT')
		ORDER BY 1, 2`, expectedLogins, tables)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var logins []string
	readableTables := map[string][]string{}
	for rows.Next() {
		var login, table string
		if err := rows.Scan(&login, &table); err != nil {
			return nil, err
		}
		if !slices.Contains(logins, login) {
			logins = append(logins, login)
		}
		readableTables[login] = append(readableTables[login], table)
	}
	var found []Finding
	for _, login := range logins {
		found = append(found, Finding{"direct_login", SeverityWarning,
			fmt.Sprintf("%s can log in on the server and read %s past the proxy, every row of them", login,
				nameList(readableTables[login])),
			"Where it is an agent's, give the agent a DSN of the proxy, and REVOKE SELECT. Where it is the application's, list it " +
				"under owners, so that it passes through the proxy, or leave it as it is."})
	}
	return found, rows.Err()
}
