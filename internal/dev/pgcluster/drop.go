package pgcluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// maxDropAttempts is how often DROP DATABASE is tried while sessions use the database. PostgreSQL waits five seconds
// each time for the sessions to end.
const maxDropAttempts = 3

// endSessionsSQL ends those sessions in a database whose roles the caller is a member of.
const endSessionsSQL = `SELECT pg_catalog.count(pg_catalog.pg_terminate_backend(s.pid)) FROM pg_catalog.pg_stat_activity AS s
JOIN pg_catalog.pg_roles AS r ON r.oid = s.usesysid
WHERE s.datname = $1 AND s.pid <> pg_catalog.pg_backend_pid() AND pg_catalog.pg_has_role(r.oid, 'USAGE')
AND (NOT r.rolsuper OR pg_catalog.current_setting('is_superuser') = 'on')`

// DropDatabase ends the sessions in a database and drops the database, if it exists. A role that is no superuser may
// not end autovacuum workers, or sessions of roles of which it is no member. If there is such a session, DROP DATABASE
// with FORCE fails. Without FORCE, PostgreSQL ends autovacuum workers itself and waits for other sessions. The error
// names the roles whose sessions use the database.
func DropDatabase(ctx context.Context, conn *pgx.Conn, name string) error {
	drop := "DROP DATABASE IF EXISTS " + pgx.Identifier{name}.Sanitize()
	var refused *pgconn.PgError
	for range maxDropAttempts {
		if _, err := conn.Exec(ctx, drop+" WITH (FORCE)"); !errors.As(err, &refused) || refused.Code != "42501" {
			return err
		}
		if _, err := conn.Exec(ctx, endSessionsSQL, name); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, drop); !errors.As(err, &refused) || refused.Code != "55006" {
			return err
		}
	}
	var open string
	if err := conn.QueryRow(ctx,
		`SELECT COALESCE(pg_catalog.string_agg(DISTINCT s.usename, ', '), 'nobody any more') FROM pg_catalog.pg_stat_activity AS s
			WHERE s.datname = $1 AND s.usename IS NOT NULL`, name).Scan(&open); err != nil {
		return errors.Join(refused, err)
	}
	return fmt.Errorf("%w: open for %s", refused, open)
}
