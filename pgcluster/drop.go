package pgcluster

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// DropDatabase drops a database if it is there, and ends the sessions in it. A role that is no superuser may not end the
// workers of autovacuum, and FORCE fails where there is one; without it PostgreSQL sends them away itself.
func DropDatabase(ctx context.Context, conn *pgx.Conn, name string) error {
	drop := "DROP DATABASE IF EXISTS " + pgx.Identifier{name}.Sanitize()
	var err error
	for range 3 {
		var refused *pgconn.PgError
		if _, err = conn.Exec(ctx, drop+" WITH (FORCE)"); !errors.As(err, &refused) || refused.Code != "42501" {
			return err
		}
		if _, err = conn.Exec(ctx, drop); !errors.As(err, &refused) || refused.Code != "55006" {
			return err
		}
	}
	return err
}
